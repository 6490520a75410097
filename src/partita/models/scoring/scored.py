"""A partition and what a model says of its clusters, kept up to date: for the loops that run in Python."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from partita._core.checks import check_finite
from partita._core.kernel import kernel
from partita._core.typing import Floats, Integers
from partita.models.base import Model, copied, n_features_of
from partita.models.scoring.additive import AdditiveScorer
from partita.models.scoring.partition import Partition, new_partition
from partita.models.scoring.scorers import scorer_of


class PartitionClusters:
    """The clusters of a partition, as a scorer sees them; the last row of statistics is free to work on."""

    def __init__(self, partition: Partition, data: Floats, width: int) -> None:
        n = len(partition.size)
        self.partition, self.data = partition, data
        self.statistics, self._log_p = np.zeros((n + 1, width)), np.zeros(n)

    @property
    def sizes(self) -> Integers:
        return self.partition.size

    def members(self, ids: Integers) -> list[Integers]:
        members = members_of(self.partition, np.asarray(ids, np.int64))
        return np.split(members, np.cumsum(self.partition.size[ids])[:-1])

    def log_p(self, ids: Integers) -> Floats:
        return self._log_p[ids]

    def note(self, ids: Integers, log_p: Floats) -> None:
        self._log_p[ids] = log_p


class ScoredPartition:
    """A partition of observations that changes, first by its owner's hand and then here.

    Parameters
    ----------
    model : Model
    X : validated observations
    partition : Partition
    check : bool
        Whether to refuse what is impossible: an observation even by itself, or a cluster of the partition.
    """

    def __init__(self, model: Model, X: Any, partition: Partition, check: bool = True) -> None:
        self.partition, self.scorer = partition, scorer_of(model, X)
        encoded = self.scorer.encode(X)
        self.scorer.store(encoded, 0)
        self.clusters = PartitionClusters(partition, self.scorer.data_of(encoded), self.scorer.width)
        self.scorer.start(self.clusters)
        if check and self.scorer.family is None:  # a compiled one has done so
            self.scorer.check(encoded)
        log_p = self.sum_anew()
        if check and (log_p == -np.inf).any():
            impossible = partition.used[1:][log_p == -np.inf]
            row = int(np.argmax(np.isin(partition.label, impossible)))
            raise ValueError(f"row {row}: its cluster in init is impossible under the model")

    def sum_anew(self) -> Floats:
        """log p(c) of the clusters in use, in their order, from their members: no rounding stays for good."""
        used = self.partition.used[1:].copy()
        members = self.clusters.members(used)
        if self.scorer.family is None:
            members = [np.sort(held) for held in members]
        log_p = self.scorer.fill(self.clusters, used, members, "clusters")
        self.clusters.note(used, log_p)
        return log_p

    def log_likelihood(self) -> Floats:
        """log p(c) of the clusters in use, in their order."""
        if isinstance(self.scorer, AdditiveScorer):
            return self.sum_anew()
        return self.scorer.log_likelihood(self.clusters, self.partition.used[1:].copy(), "clusters")

    def gains(self, x: int, ids: Integers) -> Floats:
        """log|c| + log p(x | c) of clusters that do not hold ``x``; log p(x) for the empty one."""
        return self.scorer.gains(self.clusters, ids, self.scorer.stored(self.clusters.data, x), f"row {x}")

    def shrink(self, c: int, x: int) -> None:
        """``x`` has left cluster ``c``."""
        self.scorer.shrink(self.clusters, np.array([c]), x, f"row {x}")

    def grow(self, c: int, x: int) -> None:
        """``x`` has entered cluster ``c``: after the ``gains`` of ``c``, or of 0 if it is new."""
        parent = c if self.partition.size[c] > 1 else 0
        self.scorer.grow(self.clusters, np.array([c]), np.array([parent]), x, f"row {x}")

    def unions(self, first: Integers, second: Integers) -> Floats:
        """log p(c) of the unions of many pairs of clusters."""
        return self.scorer.unions(self.clusters, first, second, "merging")

    def unite(self, first: int, second: int, log_p: float) -> None:
        """Cluster ``second`` is about to join ``first``."""
        self.scorer.unite(self.clusters, first, second, log_p)


def log_likelihood(model: Model, clusters: Any) -> Floats:
    """See :meth:`Model.log_likelihood`."""
    listed = list(clusters) if isinstance(clusters, Iterable) else [clusters]
    if not all(isinstance(cluster, Iterable) for cluster in listed):
        raise TypeError("clusters must be a list of clusters, each a list of observations")
    given = [list(cluster) for cluster in listed]
    for k, cluster in enumerate(given):
        if not cluster:
            raise ValueError(f"cluster {k} is empty")
    if not given:
        return np.empty(0)
    checked: list[Any] = [
        rows_of(cluster, f"cluster {k}") if model.reads_rows else cluster for k, cluster in enumerate(given)
    ]
    if model.reads_rows and len({rows.shape[1] for rows in checked}) > 1:
        raise ValueError(
            f"clusters have rows of different lengths: {sorted({rows.shape[1] for rows in checked})}"
        )
    X = np.concatenate(checked) if model.reads_rows else model.validate([x for c in checked for x in c])
    own = copied(model)
    own.check(n_features_of(X))
    ends = np.cumsum([len(cluster) for cluster in given]).tolist()
    return log_p_of(own, [X[start:end] for start, end in pairwise([0, *ends])])


def rows_of(cluster: list[Any], name: str) -> Floats:
    """A cluster's rows as finite floats; errors name the cluster and the row in it."""
    try:
        rows = np.array(cluster, np.float64)
    except (TypeError, ValueError):
        rows = np.empty(0)
    if rows.ndim != 2:
        raise ValueError(
            f"{name} must have rows of numbers, all of one length, such as [[0.0, 1.0], [0.2, 0.9]]"
        )
    try:
        check_finite(rows)
    except ValueError as error:
        raise ValueError(f"{name}, {error}") from None
    return rows


def log_p_of(model: Model, clusters: Sequence[Any]) -> Floats:
    """log p(c) of clusters, each a sequence of validated observations, under a model that has been checked."""
    X = [x for cluster in clusters for x in cluster]
    partition = new_partition(np.repeat(np.arange(len(clusters)), [len(cluster) for cluster in clusters]))
    scored = ScoredPartition(model, np.array(X) if model.reads_rows else X, partition, check=False)
    return scored.clusters.log_p(partition.used[1:])


@kernel
def members_of(partition, ids):
    """The members of clusters, one after the other."""
    n = 0
    for c in ids:
        n += partition.size[c]
    members, at = np.empty(n, np.int64), 0
    for c in ids:
        y = partition.head[c]
        for _ in range(partition.size[c]):
            members[at] = y
            at += 1
            y = partition.after[y]
    return members
