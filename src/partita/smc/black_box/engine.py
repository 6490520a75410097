"""The engine for a black box: which clusters to ask it for, and what is kept of the answers.

A new observation goes through the same four steps as under any model that is not compiled. Its gains come
from one call of the black box, for the observation alone and for the clusters of the candidates, all of them
or those that the surrogate proposes; the gains of all others are −inf. Of each cluster the state keeps its
score lgamma(|c|) + log p(c), so p(c) is never asked for again; its members are read off the particles. With a
lookahead the call asks at once for what a :mod:`~partita.smc.black_box.rehearsal` shows to be needed next.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln

from partita._core.typing import Array, Floats, Integers
from partita.models.base import Model
from partita.models.black_box import BlackBox
from partita.models.scoring.evaluator import Evaluator, Sets
from partita.smc.black_box.foresight import Foresight
from partita.smc.black_box.surrogate import (
    CompiledSurrogate,
    Surrogate,
    members_left,
    members_of,
    pieces,
    propose,
    surrogate_of,
    tables,
)
from partita.smc.engine import Engine, used_clusters, views
from partita.smc.state.keys import EVERYTHING, Keys
from partita.smc.state.state import Settings
from partita.smc.steps.candidates import candidates_of_row
from partita.smc.steps.step import keep_bonds


@dataclass(frozen=True)
class Batch:
    """Observations as a black box's engine stores them, from outside or from another engine."""

    data: Floats  # as the surrogate has encoded them
    observations: Sequence[Any] = ()  # what the black box sees, where they have no numbers yet
    numbers: Integers | None = None  # the evaluator's names for them

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, k: int | slice) -> Batch:
        """Observation ``k`` of a batch from outside, or several."""
        observations = self.observations[k] if isinstance(k, slice) else [self.observations[k]]
        return Batch(self.data[k], observations)


class BlackBoxEngine(Engine):
    """An engine whose model is a black box.

    Parameters as for :class:`~partita.smc.engine.Engine`, and

    Parameters
    ----------
    evaluator : Evaluator
        Asks the black box; engines that replay observations share it.
    foresight : Foresight, optional
        What has been learnt about looking ahead; they share that, too.
    """

    model: BlackBox

    def __init__(
        self,
        model: BlackBox,
        settings: Settings,
        n_features: int,
        n_encoded: int,
        log_alpha: float,
        seed: int,
        candidates: Any = None,
        *,
        evaluator: Evaluator,
        foresight: Foresight | None = None,
    ) -> None:
        self.evaluator = evaluator
        self.foresight = Foresight(int(model.reach)) if foresight is None else foresight
        self._asked_at: int | None = (
            None  # how many observations there were at the last call that looked ahead
        )
        self.n_proposals = settings.particles if model.n_proposals is None else int(model.n_proposals)
        self.numbers: Integers = np.empty(0, np.int64)  # of the observations, for the evaluator
        self.surrogate: Surrogate | None = None
        if model.surrogate is not None:
            self.surrogate = surrogate_of(model.surrogate, n_features, n_encoded)
        super().__init__(model, settings, n_features, n_encoded, log_alpha, seed, candidates)
        if self.surrogate is not None:
            self.surrogate.start(self.state)

    def _family(self) -> tuple[Any, int]:
        return None, 0 if self.surrogate is None else self.surrogate.width

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"surrogate": copy.copy(self.surrogate)}  # which may own tables

    @property
    def compiled(self) -> Any:
        return self.surrogate.family if isinstance(self.surrogate, CompiledSurrogate) else None

    @property
    def observations(self) -> list[Any]:
        """What the black box sees."""
        return [self.evaluator.observations[number] for number in self.numbers[self.present].tolist()]

    def like(self, settings: Settings, log_alpha: float, seed: int) -> Engine:
        shared = {"evaluator": self.evaluator, "foresight": self.foresight}
        return BlackBoxEngine(self.model, settings, *self.widths, log_alpha, seed, **shared)  # type: ignore[arg-type]

    # ------------------------------------------------------------------ observations

    def encode(self, X: Any) -> Batch:
        with self.lock:
            data: Floats = super().encode(X)
            if self.surrogate is not None:
                self.surrogate.check(data)
            return Batch(data, rows_of(X))

    def stored(self, x: Any) -> Batch:
        return Batch(tables(self.state)[3][x], numbers=self.numbers[x])

    def store(self, encoded: Any, keys: Keys = EVERYTHING) -> int:
        n, numbers = self.n_observations, encoded.numbers
        end = super().store(encoded.data, keys)
        if numbers is None:
            last = int(self.numbers[n - 1]) if n else -1
            numbers = self.evaluator.add(encoded.observations, after=last)
        self.numbers = np.concatenate([self.numbers[:n], numbers])
        return end

    # ------------------------------------------------------------------ clusters

    def fill_all(self, ids: Integers, members: list[Integers]) -> None:
        who = f"observation {members[0][0]}"
        log_marginal = self.evaluator.log_marginals([self.numbers[m] for m in members], who)
        if (log_marginal == -np.inf).any():
            raise ValueError(f"{who}: score gives different answers for the same cluster")
        for c, its_members in zip(ids, members, strict=True):
            if self.surrogate is not None:
                self.surrogate.fill(self.state, c, its_members, who)
        self._write(ids, np.array([len(m) for m in members]), log_marginal)

    def agrees(self, n: int) -> bool:
        """Whether the black box still says of the n smallest clusters what the state keeps of them."""
        _, clusters, _, _ = tables(self.state)
        candidates_of_row(self.state, *EVERYTHING, 0)
        ids = used_clusters(self.state)[1:]
        ids = ids[np.argsort(clusters["size"][ids], kind="stable")[:n]]
        sets = [self.numbers[m] for m in pieces(members_of(self.state, ids))]
        kept = clusters["score"][ids] - gammaln(clusters["size"][ids])
        found = self.evaluator.log_marginals(sets, "clusters")
        return np.allclose(found, kept, rtol=1e-6, atol=1e-6)

    def gains_for_others(self, x: int) -> None:
        """The surrogate's, if there is one: they only say where to look."""
        row, who = self.stored(x), f"observation {x}"
        if self.surrogate is None:
            self.set_gains(*self.log_marginals_with(row, who))
        else:
            self.surrogate.gains(self.state, used_clusters(self.state), row.data, who)

    def log_marginals_with(self, encoded: Any, who: str) -> tuple[Array, Floats]:
        """The empty cluster and those of the candidates worth asking for, and log p(c ∪ {x}) of each."""
        ids = self._proposed(encoded.data, who)
        passing = encoded.numbers is None  # a row to predict, which is not to stay
        x = self.evaluator.add(encoded.observations) if passing else np.atleast_1d(encoded.numbers)
        try:
            after = self._log_marginals_joined(self._joined(ids, x), ids, encoded.data, who, not passing)
        finally:
            if passing:
                self.evaluator.forget(x)
        if after[0] == -np.inf:
            raise ValueError(f"{who}: impossible under the model, even as a cluster of its own")
        return np.append(0, ids), after

    def _proposed(self, row: Floats, who: str) -> Integers:
        """The clusters of the candidates worth asking for: all, or those that the surrogate proposes."""
        ids: Integers = used_clusters(self.state)[1:]
        if self.surrogate is None:
            return ids
        self.surrogate.gains(self.state, np.append(0, ids), row, who)
        keep_bonds(self.state, *self._placing)
        return propose(self.state, self.n_proposals)

    def _joined(self, ids: Integers, x: Integers) -> list[Integers]:
        """Observation ``x``, by its number, alone and with each of some clusters."""
        members, start = members_of(self.state, ids)
        numbers = self.numbers[members]
        sets = pieces((np.insert(numbers, start[1:], x), start + np.arange(len(start))))
        if (numbers == x).any():
            # Where x is asked about clusters that hold it, to find its neighbours, it counts once.
            sets = [np.unique(numbers) for numbers in sets]
        return [x, *sets]

    def _log_marginals_joined(
        self, sets: list[Integers], ids: Integers, row: Floats, who: str, remember: bool
    ) -> Floats:
        """log p(c) of an observation alone, and with each of the clusters ``ids``."""
        if self._placing[0] < 0 or self.foresight.most == 1:
            return self.evaluator.log_marginals(sets, who, remember)
        after = self.evaluator.log_marginals(sets, who, ahead=self._ahead)
        if self.surrogate is not None and len(ids):
            self.foresight.compare(self.state, ids, after)
        return after

    def _ahead(self) -> Sets:
        """What is needed to place the present observation, and will be for those that follow."""
        from partita.smc.black_box.rehearsal import Rehearsal

        n = self.n_observations
        is_new = self._placing[0] == n
        rounds = self.rejuvenation if is_new else self.rounds_left
        if n + is_new == len(self.numbers) and not rounds:
            return {}  # nothing follows
        since = None if self._asked_at is None else n - self._asked_at
        self._asked_at = n
        return Rehearsal(self).wanted_until(n + self.foresight.reach(since, max(len(self.numbers) - n, 1)))

    def weigh_rows(self, encoded: Any, keys: Keys) -> Iterator[int]:
        for first in range(0, len(encoded), self.foresight.most):
            rows = range(first, min(first + self.foresight.most, len(encoded)))
            try:
                found = self._weigh_together(encoded, keys, rows)
            except Exception:  # which may be that of any row
                found = None
            for k in rows:
                candidates_of_row(self.state, *keys, k)
                self.set_gains(*(found[k] if found else self.log_marginals_with(encoded[k], f"row {k}")))
                yield k

    def _weigh_together(
        self, encoded: Any, keys: Keys, rows: range
    ) -> dict[int, tuple[Array, Floats]] | None:
        """:meth:`log_marginals_with` of several rows in one call; None if there is one alone, or it fails."""
        if len(rows) == 1:
            return None
        used, sets = {}, []
        numbers = self.evaluator.add(encoded[rows.start : rows.stop].observations)
        try:
            for k in rows:
                candidates_of_row(self.state, *keys, k)
                used[k] = np.append(0, self._proposed(encoded.data[k], f"row {k}"))
                sets += self._joined(used[k][1:], numbers[k - rows.start : k - rows.start + 1])
            after = self.evaluator.log_marginals(sets, "rows", remember=False)
        finally:
            self.evaluator.forget(numbers)
        ends = np.cumsum([len(ids) for ids in used.values()])
        found = {k: (used[k], part) for k, part in zip(rows, np.split(after, ends[:-1]), strict=True)}
        return None if any(part[0] == -np.inf for _, part in found.values()) else found

    def set_gains(self, used: Array, after: Floats) -> None:
        _, clusters, gain, _ = tables(self.state)
        size = np.maximum(clusters["size"][used], 1)
        before = clusters["score"][used] - gammaln(size)
        gain[:] = -np.inf
        gain[used] = np.log(size) + after - before

    def _extend(self, x: int, used: Array, after: Floats, who: str) -> None:
        created: Integers = views(self.state)[4]
        if self.surrogate is not None:
            self.surrogate.extend(self.state, created, x, who)
        _, clusters, gain, _ = tables(self.state)
        of_cluster = np.empty(len(gain))
        of_cluster[used] = after
        child, parent = created[:, 0], created[:, 1]
        self._write(child, clusters["size"][child], of_cluster[parent])

    def _shrink(self, x: int, detached: Any, who: str) -> None:
        _, blocks, matrix, _, shrinking = detached
        clusters = tables(self.state)[1]
        members = pieces(members_left(self.state, blocks, matrix, shrinking))
        before = clusters["score"][shrinking] - gammaln(clusters["size"][shrinking])
        if self.surrogate is not None:
            self.surrogate.shrink(self.state, detached, x, who)
        sets = [self.numbers[m] for m in members]
        after = self._log_marginals_left(sets, shrinking, x, before, who)
        if (after == -np.inf).any():
            raise ValueError(
                f"{who}: score calls a cluster possible, but impossible without this observation"
            )
        self._write(shrinking, np.array([len(m) for m in members]), after)

    def _log_marginals_left(
        self, sets: list[Integers], ids: Integers, x: int, before: Floats, who: str
    ) -> Floats:
        """log p(c) of clusters that ``x`` has left; ``before`` they were such with it."""
        return self.evaluator.log_marginals(sets, who)

    def _write(self, ids: Integers, sizes: Integers, log_marginal: Floats) -> None:
        """Sizes and scores of clusters."""
        _, clusters, _, _ = tables(self.state)
        clusters["size"][ids] = sizes
        clusters["score"][ids] = gammaln(sizes) + log_marginal


def rows_of(X: Any) -> list[Any]:
    """Validated observations one by one, those of an array as rows of a copy that nobody changes."""
    if not isinstance(X, np.ndarray):
        return list(X)
    X = X.copy()
    X.setflags(write=False)
    return list(X)


def engine_for(
    model: Model,
    settings: Settings,
    n_features: int,
    n_encoded: int,
    log_alpha: float,
    seed: int,
    candidates: Any = None,
) -> Engine:
    """An empty engine for this model; parameters as for :class:`~partita.smc.engine.Engine`."""
    others = (settings, n_features, n_encoded, log_alpha, seed, candidates)
    if isinstance(model, BlackBox):
        return BlackBoxEngine(model, *others, evaluator=model.evaluator())
    return Engine(model, *others)
