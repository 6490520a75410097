"""Scoring by a user's model: log p(c) from the sums of additive statistics.

A row holds the sums and, last, log p(c).
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from partita._core.typing import Floats, Integers
from partita.models.base import Model
from partita.models.scoring.contract import Clusters, Scorer, gains_from


class AdditiveScorer(Scorer):
    """A user's model.

    Parameters
    ----------
    model : Model
        With ``statistics`` and ``log_marginal``.
    n_encoded : int
        How many statistics an observation has.
    """

    def __init__(self, model: Model, n_encoded: int) -> None:
        self.model, self.width = model, n_encoded + 1
        self._weighed: tuple[Integers, Floats] = (np.empty(0, np.int64), np.empty(0))

    def fresh(self) -> Self:
        return type(self)(self.model, self.width - 1)

    def encode(self, X: Any) -> Floats:
        encoded: Floats = self.model.encode(X)
        if encoded.shape[1] != self.width - 1:
            raise ValueError(
                f"{type(self.model).__name__}.statistics must always return {self.width - 1} columns, as for "
                f"the first row, got {encoded.shape[1]}"
            )
        return encoded

    def _log_p(self, totals: Floats, sizes: Any, who: str) -> Floats:
        return log_marginals(self.model, totals, np.asarray(sizes, np.float64), who)

    def check(self, encoded: Floats, what: str = "model") -> None:
        alone = self._log_p(encoded, np.ones(len(encoded)), "rows")
        if (alone == -np.inf).any():
            row = int(np.argmax(alone == -np.inf))
            raise ValueError(f"row {row}: impossible under the {what}, even as a cluster of its own")

    def fill_rows(self, clusters: Clusters, ids: Integers, members: list[Integers], who: str) -> None:
        statistics, data = clusters.statistics, clusters.data
        for c, its_members in zip(ids.tolist(), members, strict=True):
            statistics[c, :-1] = data[its_members].sum(axis=0)
        sizes = np.array([len(its_members) for its_members in members])
        statistics[ids, -1] = self._log_p(statistics[ids, :-1], sizes, who)

    def log_likelihood(self, clusters: Clusters, ids: Integers, who: str) -> Floats:
        return clusters.statistics[ids, -1]

    def gains(self, clusters: Clusters, ids: Integers, row: Floats, who: str) -> Floats:
        statistics, sizes = clusters.statistics, clusters.sizes[ids]
        after = self._log_p(statistics[ids, :-1] + row, sizes + 1.0, who)
        self._weighed = ids, after
        return gains_from(sizes, statistics[ids, -1], after)

    def grow(self, clusters: Clusters, children: Integers, parents: Integers, x: int, who: str) -> None:
        statistics = clusters.statistics
        ids, after = self._weighed
        of_cluster = np.empty(len(statistics))
        of_cluster[ids] = after
        statistics[children, :-1] = statistics[parents, :-1] + clusters.data[x]
        statistics[children, -1] = of_cluster[parents]

    def shrink(self, clusters: Clusters, ids: Integers, x: int, who: str) -> None:
        statistics, sizes = clusters.statistics, clusters.sizes[ids]
        statistics[ids[sizes == 0]] = 0.0  # a model need not know what nothing is
        ids, sizes = ids[sizes > 0], sizes[sizes > 0]
        if len(ids):
            statistics[ids, :-1] -= clusters.data[x]
            statistics[ids, -1] = self._log_p(statistics[ids, :-1], sizes, who)

    def unions(self, clusters: Clusters, first: Integers, second: Integers, who: str) -> Floats:
        totals, sizes = clusters.statistics[:, :-1], clusters.sizes
        return self._log_p(totals[first] + totals[second], sizes[first] + sizes[second], who)

    def unite(self, clusters: Clusters, first: int, second: int, log_p: float) -> None:
        clusters.statistics[first, :-1] += clusters.statistics[second, :-1]
        clusters.statistics[first, -1] = log_p


def log_marginals(model: Model, totals: Floats, sizes: Floats, who: str) -> Floats:
    """log p(c) of many clusters under a user's model; an error names ``who`` they are tried for."""
    result = np.asarray(model.log_marginal(totals, sizes), np.float64)
    name = f"{who}: {type(model).__name__}.log_marginal"
    if result.shape != sizes.shape:
        raise ValueError(f"{name} must return one number a cluster, {sizes.shape}, got {result.shape}")
    if not (result < np.inf).all():
        wrong = result[~(result < np.inf)][0]
        raise ValueError(f"{name} returned {wrong}; logarithms must be below infinity")
    return result
