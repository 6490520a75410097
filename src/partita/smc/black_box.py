"""The engine for a black box: which clusters to ask it for, and what is kept of the answers.

A new observation goes through the same four steps as under any model that is not compiled. Its gains come
from one call of the black box, for the observation alone and for the clusters of the candidates, all of them
or those that the surrogate proposes; the gains of all others are −inf. Of each cluster the state keeps its
score lgamma(|c|) + log p(c), so p(c) is never asked for again; its members are read off the particles.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln

from partita._typing import Array, Floats, Integers
from partita.models.base import Model
from partita.models.black_box import BlackBox, Evaluator
from partita.smc.candidates import candidates_of_row
from partita.smc.engine import Engine, used_clusters, views
from partita.smc.keys import EVERYTHING, Keys
from partita.smc.state import Settings
from partita.smc.step import keep_bonds
from partita.smc.surrogate import (
    CompiledSurrogate,
    Surrogate,
    members_left,
    members_of,
    pieces,
    propose,
    surrogate_of,
    tables,
)


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
    ) -> None:
        self.evaluator = evaluator
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
        return BlackBoxEngine(self.model, settings, *self.widths, log_alpha, seed, evaluator=self.evaluator)

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
        ids = used_clusters(self.state)[1:]
        if self.surrogate is not None:
            self.surrogate.gains(self.state, np.append(0, ids), encoded.data, who)
            keep_bonds(self.state, *self._placing)
            ids = propose(self.state, self.n_proposals)
        members = [self.numbers[m] for m in pieces(members_of(self.state, ids))]
        passing = encoded.numbers is None  # a row to predict, which is not to stay
        x = self.evaluator.add(encoded.observations) if passing else np.atleast_1d(encoded.numbers)
        try:
            # Where x is asked about clusters that hold it, to find its neighbours, it counts once.
            sets = [x, *(m if x[0] in m else np.append(m, x) for m in members)]
            after = self.evaluator.log_marginals(sets, who, remember=not passing)
        finally:
            if passing:
                self.evaluator.forget(x)
        if after[0] == -np.inf:
            raise ValueError(f"{who}: impossible under the model, even as a cluster of its own")
        return np.append(0, ids), after

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
        members = pieces(members_left(self.state, blocks, matrix, shrinking))
        after = self.evaluator.log_marginals([self.numbers[m] for m in members], who)
        if (after == -np.inf).any():
            raise ValueError(
                f"{who}: score calls a cluster possible, but impossible without this observation"
            )
        if self.surrogate is not None:
            self.surrogate.shrink(self.state, detached, x, who)
        self._write(shrinking, np.array([len(m) for m in members]), after)

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
