"""A partition that changes by one observation at a time.

Clusters have ids 1..n; 0 is the empty cluster, and to open a new cluster is to join it. What a model keeps of
each cluster stands beside, under the same ids (:mod:`~partita.models.scoring.scored`, :mod:`partita.offline.sweeps`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partita._core.kernel import inner, kernel
from partita._core.typing import Array, Integers


class Partition(NamedTuple):
    """A partition of n observations, as kernels see it."""

    label: Integers  # (n,): the cluster of each observation
    size: Integers  # (n + 1,): of each cluster
    head: Integers  # (n + 1,): one member of each cluster
    after: Integers  # (n,): the next member of the same cluster, in a circle
    before: Integers  # (n,): the previous one
    ids: Integers  # (n + 1,): the empty cluster, then those in use, then the free ones
    place: Integers  # (n + 1,): where in ``ids`` each cluster stands
    n_clusters: Integers  # (1,): the number of clusters in use

    @property
    def used(self) -> Integers:
        """Ids of the clusters in use, the empty one first."""
        return self.ids[: self.n_clusters[0] + 1]


def new_partition(labels: Integers) -> Partition:
    """The partition with these labels, 0..K−1."""
    n = len(labels)
    partition = Partition(
        label=np.zeros(n, np.int64),
        size=np.zeros(n + 1, np.int64),
        head=np.zeros(n + 1, np.int64),
        after=np.zeros(n, np.int64),
        before=np.zeros(n, np.int64),
        ids=np.arange(n + 1),
        place=np.arange(n + 1),
        n_clusters=np.zeros(1, np.int64),
    )
    fill(partition, labels)
    return partition


def in_order(labels: Array) -> Integers:
    """Labels as numbers 0..K−1 in order of first appearance."""
    _, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[codes]


@kernel
def fill(partition, labels):
    """Let all observations enter an empty partition."""
    for x in range(labels.shape[0]):
        c = labels[x] + 1
        if partition.size[c] == 0:
            occupy(partition, c)
        link(partition, x, c)


@inner
def occupy(partition, c):
    """Move a free id to the end of those in use."""
    ids, place = partition.ids, partition.place
    partition.n_clusters[0] += 1
    other = ids[partition.n_clusters[0]]
    ids[place[c]] = other
    place[other] = place[c]
    ids[partition.n_clusters[0]] = c
    place[c] = partition.n_clusters[0]


@inner
def vacate(partition, c):
    """Move the id of a cluster that is now empty to the front of the free ones."""
    ids, place = partition.ids, partition.place
    last = ids[partition.n_clusters[0]]
    ids[place[c]] = last
    place[last] = place[c]
    ids[partition.n_clusters[0]] = c
    place[c] = partition.n_clusters[0]
    partition.n_clusters[0] -= 1


@inner
def link(partition, x, c):
    """Put ``x`` into the circle of the members of ``c``."""
    after, before = partition.after, partition.before
    if partition.size[c] == 0:
        partition.head[c] = x
        after[x] = x
        before[x] = x
    else:
        y = partition.head[c]
        after[x] = after[y]
        before[after[y]] = x
        after[y] = x
        before[x] = y
    partition.label[x] = c
    partition.size[c] += 1


@inner
def leave(partition, x):
    """Take ``x`` out of its cluster, whose id is returned; it is free if ``x`` was alone."""
    c = partition.label[x]
    after, before = partition.after[x], partition.before[x]
    partition.after[before] = after
    partition.before[after] = before
    partition.head[c] = after
    partition.size[c] -= 1
    if partition.size[c] == 0:
        vacate(partition, c)
    return c


@inner
def enter(partition, x, c):
    """Put ``x`` into cluster ``c``, or for 0 into a new one; returns the id.

    The id that was freed last is the first to be taken again: an observation that leaves a cluster of its
    own for a cluster of its own comes back to the same id.
    """
    if c == 0:
        c = partition.ids[partition.n_clusters[0] + 1]
        occupy(partition, c)
    link(partition, x, c)
    return c


@kernel
def take_out(partition, x):
    """:func:`leave`, for Python."""
    return leave(partition, x)


@kernel
def put_in(partition, x, c):
    """:func:`enter`, for Python."""
    return enter(partition, x, c)
