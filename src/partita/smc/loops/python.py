"""The loop over observations for a model that is not compiled: its scorer is called once or twice an observation.

Every other step is the compiled one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from partita._core.kernel import kernel
from partita._core.typing import Floats, Integers
from partita.smc.moves.remove import detach, reattach, room_to_remove
from partita.smc.state.access import created_clusters, used_clusters
from partita.smc.state.clusters import StateClusters
from partita.smc.state.keys import Keys
from partita.smc.state.state import grown
from partita.smc.steps.candidates import candidates_of, candidates_of_row, count_in
from partita.smc.steps.follow import follow_one
from partita.smc.steps.step import keep_constraints, options, place


class PythonLoop:
    """What an engine does for a model that is not compiled.

    Attributes
    ----------
    placing : (int, int)
        The observation whose options are weighed, and one that it must be with; −1 for none.
    """

    def __init__(self, engine: Any) -> None:
        self.engine = engine
        self.placing = (-1, -1)

    def settle(self) -> None:
        """What fails half way is undone by a copy of the state."""

    def reset(self) -> None:
        """Nothing is remembered from one step to the next."""

    @property
    def clusters(self) -> StateClusters:
        """The clusters as they are."""
        return StateClusters(self.engine.state)

    # ------------------------------------------------------------------ observing

    def observe(self, end: int) -> bool:
        """Observe what is stored up to ``end``, or until names no longer fit; returns whether they do."""
        engine = self.engine
        while (x := engine.n_observations) < end:
            self.put_in(x, engine.called(x))
            count_observation(engine.state)
            if engine.follows and not follow_one(engine.state, x):
                return False
        return True

    def observe_again(self, x: int) -> None:
        """Take ``x`` out of its subproblem and let it come in anew."""
        self.take_out(x)
        self.put_in(x, f"observation {x}")

    def put_in(self, x: int, who: str) -> None:
        """Let observation ``x`` join the state; errors name ``who`` it is."""
        engine, scorer = self.engine, self.engine.scorer
        self.placing = x, options(engine.state, x)
        ids, gains = self.weigh_stored(x, who)
        self._set_gains(ids, gains)
        while not place(engine.state, x, len(ids)):
            engine.state = grown(engine.state)
            options(engine.state, x)
            self._set_gains(ids, gains)
        self.placing = -1, -1
        scorer.grow(self.clusters, *created_clusters(engine.state), x, who)

    def weigh_stored(self, x: int, who: str) -> tuple[Integers, Floats]:
        """The clusters worth asking for, given the candidates, and the gains that a stored observation has."""
        row = self.engine.stored(x)
        ids = self._worth_asking(row, who)
        return ids, self._gains(ids, row, who)

    def _worth_asking(self, row: Any, who: str) -> Integers:
        """The empty cluster and those of the candidates, all or those that a surrogate proposes."""
        engine, scorer = self.engine, self.engine.scorer
        ids: Integers = used_clusters(engine.state)
        if scorer.surrogate is None:
            return ids
        clusters = self.clusters
        clusters.gain[ids] = scorer.surrogate.gains(clusters, ids, scorer.data_of(row), who)
        keep_constraints(engine.state, *self.placing)
        return engine.proposals(engine.state)

    def _gains(self, ids: Integers, row: Any, who: str) -> Floats:
        gains: Floats = self.engine.scorer.gains(self.clusters, ids, row, who)
        if gains[0] == -np.inf:
            raise ValueError(f"{who}: impossible under the model, even as a cluster of its own")
        return gains

    def _set_gains(self, ids: Integers, gains: Floats) -> None:
        """Clusters that were not asked for cannot be joined, nor those that constraints rule out."""
        gain = self.clusters.gain
        gain[:] = -np.inf
        gain[ids] = gains
        keep_constraints(self.engine.state, *self.placing)

    def take_out(self, x: int) -> None:
        """Take ``x`` out of the state."""
        engine, scorer, who = self.engine, self.engine.scorer, f"observation {x}"
        done, detached = detach_if_room(engine.state, x)
        if not done:
            engine.state = grown(engine.state)
            done, detached = detach_if_room(engine.state, x)
        s, blocks, matrix, weight, shrinking = detached
        if len(shrinking):
            clusters = StateClusters(engine.state, (blocks, matrix))
            before = scorer.log_likelihood(clusters, shrinking, who)
            clusters.sizes[shrinking] -= 1
            scorer.shrink(clusters, shrinking, x, who)
            after = scorer.left(clusters, shrinking, x, before, who)
            if (after == -np.inf).any():
                raise ValueError(
                    f"{who}: a cluster is possible under the model, but impossible without this observation"
                )
            clusters.note(shrinking, after)
        reattach_rows(engine.state, s, blocks, matrix, weight)

    def fill(self, ids: Integers, members: list[Integers]) -> None:
        """Compute the statistics, sizes and scores of clusters from their members."""
        clusters, who = self.clusters, f"observation {members[0][0]}"
        clusters.sizes[ids] = [len(its_members) for its_members in members]
        log_p = self.engine.scorer.fill(clusters, ids, members, who)
        if (log_p == -np.inf).any():
            raise ValueError(
                f"{who}: {type(self.engine.model).__name__} calls a cluster impossible that was possible as it "
                "grew; log p(c) must depend on the set alone"
            )
        clusters.note(ids, log_p)

    # ------------------------------------------------------------------ weighing

    def weigh(self, x: int) -> None:
        """Find the candidates for observation ``x``, and the gains that it would have in their clusters.

        They only say where to look: where there is a surrogate, they are the surrogate's.
        """
        engine, scorer, who = self.engine, self.engine.scorer, f"observation {x}"
        candidates_of(engine.state, x)
        row, ids = engine.stored(x), used_clusters(engine.state)
        clusters = self.clusters
        if scorer.surrogate is None:
            clusters.gain[ids] = self._gains(ids, row, who)
        else:
            clusters.gain[ids] = scorer.surrogate.gains(clusters, ids, scorer.data_of(row), who)

    def weigh_rows(self, encoded: Any, keys: Keys) -> Iterator[int]:
        """Set the gains of rows that are not stored, and their candidates, one by one."""
        most = self.engine.at_once
        for first in range(0, len(encoded), most):
            rows = range(first, min(first + most, len(encoded)))
            try:
                found = self._weigh_together(encoded, keys, rows)
            except Exception:  # which may be that of any row
                found = None
            for k in rows:
                candidates_of_row(self.engine.state, *keys, k)
                if found:
                    self._set_gains(*found[k])
                else:
                    ids = self._worth_asking(encoded[k], f"row {k}")
                    self._set_gains(ids, self._gains(ids, encoded[k], f"row {k}"))
                yield k

    def _weigh_together(
        self, encoded: Any, keys: Keys, rows: range
    ) -> dict[int, tuple[Integers, Floats]] | None:
        """Ids and gains of several rows by one call of a black box; None if there is one alone, or it fails."""
        if len(rows) == 1:
            return None
        scorer, used, sets = self.engine.scorer, {}, []
        numbers = scorer.evaluator.add(encoded[rows.start : rows.stop].observations)
        try:
            for k in rows:
                candidates_of_row(self.engine.state, *keys, k)
                used[k] = self._worth_asking(encoded[k], f"row {k}")
                own = numbers[k - rows.start : k - rows.start + 1]
                sets += scorer.joined_sets(self.clusters, used[k], own)
            after = scorer.evaluator.log_marginals(sets, "rows", remember=False)
        finally:
            scorer.evaluator.forget(numbers)
        ends = np.cumsum([len(ids) for ids in used.values()])
        found = {
            k: (used[k], scorer.gains_given(self.clusters, used[k], part))
            for k, part in zip(rows, np.split(after, ends[:-1]), strict=True)
        }
        return None if any(gains[0] == -np.inf for _, gains in found.values()) else found


@kernel
def count_observation(state):
    """One observation more is in."""
    count_in(state)


@kernel
def detach_if_room(state, x):
    """:func:`~partita.smc.moves.remove.detach`, and whether there was room for it."""
    if room_to_remove(state, x):
        return True, detach(state, x)
    nothing = np.empty(0, np.int64)
    return False, (np.int64(0), nothing, np.empty((0, 0), np.int64), np.empty(0), nothing)


@kernel
def reattach_rows(state, s, blocks, matrix, weight):
    """:func:`~partita.smc.moves.remove.reattach`."""
    reattach(state, s, blocks, matrix, weight)
