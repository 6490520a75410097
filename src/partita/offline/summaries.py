"""What a model keeps of the clusters of a partition, for the loops that run in Python.

Gibbs sampling asks ``gains``, ``shrink`` and ``grow``, agglomerative clustering ``unions`` and ``unite``,
both ask for ``log_marginals``. All read which observations are together, and how many, from the partition
they were made for, which is changed first. A black box knows nothing but member sets, and remembers the
scores of those in use.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from partita._core.kernel import kernel
from partita._core.typing import Floats, Integers
from partita.models.base import CompiledModel, Model
from partita.models.black_box import BlackBox
from partita.models.scoring.encoding import log_marginals
from partita.models.scoring.families import gains, log_marginal
from partita.offline.member_sets import MemberSets
from partita.offline.partition import Partition, new_partition
from partita.offline.rows import Rows, grow, rows_of, shrink


class Summaries(Protocol):
    """What Gibbs sampling asks for."""

    def gains(self, x: int, ids: Integers) -> Floats:
        """log|c| + log p(x | c) of many clusters, which do not hold ``x``; log p(x) for the empty one."""

    def shrink(self, c: int, x: int) -> None:
        """``x`` has left cluster ``c``."""

    def grow(self, c: int, x: int) -> None:
        """``x`` has entered cluster ``c``: after the ``gains`` of ``c``, or of 0 if it is new."""

    def log_marginals(self) -> Floats:
        """log p(c) of the clusters in use, in the order of ``partition.used``."""


class MergeableSummaries(Summaries, Protocol):
    """What agglomerative clustering asks for, of models that are not compiled."""

    def unions(self, first: Integers, second: Integers) -> Floats:
        """log p(c) of the unions of many pairs of clusters."""

    def unite(self, first: int, second: int, log_marginal: float) -> None:
        """Cluster ``second`` is about to join ``first``."""


def summaries_of(model: Model, X: Any, partition: Partition) -> Summaries:
    """What the model keeps of the clusters of a partition."""
    if isinstance(model, CompiledModel):
        return Compiled(model, X, partition)
    return mergeable_summaries_of(model, X, partition)


def mergeable_summaries_of(model: Model, X: Any, partition: Partition) -> MergeableSummaries:
    """The same for a model that is not compiled."""
    if isinstance(model, BlackBox):
        return MemberSets(model, X, partition)
    return Additive(model, X, partition)


def log_marginals_of(model: Model, clusters: list[list[Any]]) -> Floats:
    """log p(c) of clusters, each a list of observations."""
    X = [x for cluster in clusters for x in cluster]
    labels = np.repeat(np.arange(len(clusters)), [len(cluster) for cluster in clusters])
    return summaries_of(model, np.array(X) if model.reads_rows else X, new_partition(labels)).log_marginals()


class Additive:
    """A user's model: sums of statistics, and log p(c)."""

    def __init__(self, model: Model, X: Floats, partition: Partition) -> None:
        self.model, self.partition = model, partition
        self.data = model.encode(X)
        self.totals = np.zeros((len(partition.size), self.data.shape[1]))
        self.marginal, self.joined = np.zeros(len(partition.size)), np.zeros(len(partition.size))
        alone = log_marginals(model, self.data, np.ones(len(X)), "rows")
        if (alone == -np.inf).any():
            row = int(np.argmax(alone == -np.inf))
            raise ValueError(f"row {row}: impossible under the model, even as a cluster of its own")
        if (self.log_marginals() == -np.inf).any():
            row = int(np.argmax(self.marginal[partition.label] == -np.inf))
            raise ValueError(f"row {row}: its cluster in init is impossible under the model")

    def log_marginals(self) -> Floats:
        """log p(c) of the clusters in use; sums anew, so that no rounding stays for good."""
        self.totals[:] = 0.0
        np.add.at(self.totals, self.partition.label, self.data)
        used = self.partition.used[1:]
        sizes = self.partition.size[used].astype(np.float64)
        self.marginal[used] = log_marginals(self.model, self.totals[used], sizes, "clusters")
        return self.marginal[used]

    def gains(self, x: int, ids: Integers) -> Floats:
        sizes = self.partition.size[ids]
        after = log_marginals(
            self.model, self.totals[ids] + self.data[x], sizes + np.float64(1.0), f"row {x}"
        )
        self.joined[ids] = after
        # A surrogate may rule a cluster out that the model has: nothing is proposed to join it.
        before = self.marginal[ids]
        possible = before > -np.inf
        gain = np.full(len(ids), -np.inf)
        np.subtract(after, before, out=gain, where=possible)
        return gain + np.log(np.maximum(sizes, 1))

    def shrink(self, c: int, x: int) -> None:
        size = self.partition.size[c]
        self.totals[c] = self.totals[c] - self.data[x] if size > 0 else 0.0
        if size > 0:
            sizes = np.array([size], float)
            self.marginal[c] = log_marginals(self.model, self.totals[c : c + 1], sizes, f"row {x}")[0]

    def grow(self, c: int, x: int) -> None:
        self.totals[c] += self.data[x]
        self.marginal[c] = self.joined[c if self.partition.size[c] > 1 else 0]

    def unions(self, first: Integers, second: Integers) -> Floats:
        """log p(c) of the unions of many pairs of clusters."""
        sizes = (self.partition.size[first] + self.partition.size[second]).astype(np.float64)
        return log_marginals(self.model, self.totals[first] + self.totals[second], sizes, "merging")

    def unite(self, first: int, second: int, log_marginal: float) -> None:
        """Cluster ``second`` has joined ``first``."""
        self.totals[first] += self.totals[second]
        self.marginal[first] = log_marginal


class Compiled:
    """A compiled model beside one that is not: its rows, one observation at a time."""

    def __init__(self, model: CompiledModel, X: Floats, partition: Partition) -> None:
        self.partition = partition
        self.rows: Rows = rows_of(model, X, partition)

    def log_marginals(self) -> Floats:
        """log p(c) of the clusters in use."""
        return marginals(self.rows, self.partition)

    def gains(self, x: int, ids: Integers) -> Floats:
        fill_gains(self.rows, ids, x)
        return self.rows.gain[ids]

    def shrink(self, c: int, x: int) -> None:
        shrink_row(self.rows, self.partition, c, x)

    def grow(self, c: int, x: int) -> None:
        grow_row(self.rows, self.partition, c, x)


@kernel
def fill_gains(rows, ids, x):
    """The family's ``gains``, for Python."""
    gains(rows.family, rows.statistics, ids, np.int64(0), np.int64(ids.shape[0]), rows.data, x, rows.gain)


@kernel
def shrink_row(rows, partition, c, x):
    """``rows.shrink``, for Python."""
    shrink(rows, partition, c, x)


@kernel
def grow_row(rows, partition, c, x):
    """``rows.grow``, for Python."""
    grow(rows, partition, c, x)


@kernel
def marginals(rows, partition):
    """log p(c) of the clusters in use."""
    found, d = np.empty(partition.n_clusters[0]), rows.data.shape[1]
    for k in range(found.shape[0]):
        c = partition.ids[k + 1]
        found[k] = log_marginal(rows.family, rows.statistics, c, partition.size[c], d)
    return found
