"""Which pair of clusters to merge next.

The *gain* of a pair is the log-ratio of the posterior with the two merged to the posterior with them apart.
:class:`Pairs` keeps the gains of all pairs and every cluster's best partner, so that after a merge only the
new cluster's gains are evaluated. A batch of pairs drawn at random needs nothing kept.

Equal gains: the pair whose first members come first is taken. A cluster's id is its first member's number,
plus one, so ids decide.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partita._core.kernel import inner, kernel
from partita._core.typing import Floats, Integers
from partita.models.scoring.partition import vacate


class Pairs(NamedTuple):
    """Gains of all pairs of clusters, by their ids."""

    gain: Floats  # (n + 1, n + 1), symmetric
    best: Floats  # (n + 1,): the highest gain of each cluster
    partner: Integers  # (n + 1,): with whom


def no_pairs(n: int) -> Pairs:
    """Room for the pairs of so many clusters."""
    return Pairs(np.empty((n + 1, n + 1)), np.full(n + 1, -np.inf), np.zeros(n + 1, np.int64))


@inner
def scan(pairs, partition, i):
    """Find the best partner of cluster ``i``."""
    best, partner = -np.inf, np.int64(0)
    for k in range(partition.n_clusters[0]):
        j = partition.ids[k + 1]
        gain = pairs.gain[i, j]
        if j != i and (gain > best or (gain == best and j < partner)):
            best, partner = gain, j
    pairs.best[i] = best
    pairs.partner[i] = partner


@inner
def best_pair(pairs, partition):
    """The pair with the highest gain, the smaller id first; (0, 0) if no gain is above 0."""
    best, first = 0.0, np.int64(0)
    for k in range(partition.n_clusters[0]):
        i = partition.ids[k + 1]
        if pairs.best[i] > best or (first > 0 and pairs.best[i] == best and i < first):
            best, first = pairs.best[i], i
    return (first, pairs.partner[first]) if first > 0 else (first, first)


@inner
def settle(pairs, partition, i, j):
    """Cluster ``j`` has joined ``i``, whose new gains are in place: find all best partners again."""
    for k in range(partition.n_clusters[0]):
        other = partition.ids[k + 1]
        gain, partner = pairs.gain[i, other], pairs.partner[other]
        if i in (other, partner) or partner == j:
            scan(pairs, partition, other)
        elif gain > pairs.best[other] or (gain == pairs.best[other] and i < partner):
            pairs.best[other], pairs.partner[other] = gain, i


@inner
def unite(partition, i, j):
    """Let all members of cluster ``j`` join cluster ``i``."""
    y, end = partition.head[j], partition.before[partition.head[j]]
    for _ in range(partition.size[j]):
        partition.label[y] = i
        y = partition.after[y]
    x, following = partition.head[i], partition.after[partition.head[i]]
    partition.after[x] = y
    partition.before[y] = x
    partition.after[end] = following
    partition.before[following] = end
    partition.size[i] += partition.size[j]
    partition.size[j] = 0
    vacate(partition, j)


@inner
def n_pairs(partition):
    """The number of pairs of clusters."""
    return partition.n_clusters[0] * (partition.n_clusters[0] - 1) // 2


@inner
def candidates(partition, uniforms, tried):
    """Write pairs to try, the smaller id first; returns how many: all, if there are no more than asked for.

    Two uniform numbers draw a pair: the place of one cluster among all, and of another among the rest.
    """
    ids, count = partition.ids, partition.n_clusters[0]
    number = min(n_pairs(partition), uniforms.shape[0])
    everything = number == n_pairs(partition)
    p, q = np.int64(1), np.int64(0)
    for k in range(number):
        if not everything:
            p, q = np.int64(uniforms[k, 0] * count), np.int64(uniforms[k, 1] * (count - 1))
            if q >= p:
                q += 1
        tried[k, 0] = min(ids[p + 1], ids[q + 1])
        tried[k, 1] = max(ids[p + 1], ids[q + 1])
        if everything:
            q += 1
            if q == p:
                p, q = p + 1, np.int64(0)
    return number


@inner
def best_candidate(tried, gain, number):
    """Index of the pair with the highest gain; −1 if none is above 0."""
    best = -1
    for k in range(number):
        i, j = tried[k, 0], tried[k, 1]
        if best < 0:
            better = gain[k] > 0.0
        else:
            first, second = tried[best, 0], tried[best, 1]
            earlier = i < first or (i == first and j < second)
            better = gain[k] > gain[best] or (gain[k] == gain[best] and earlier)
        if better:
            best = k
    return best


@kernel
def scan_all(pairs, partition):
    """Find the best partners of all clusters."""
    for k in range(partition.n_clusters[0]):
        scan(pairs, partition, partition.ids[k + 1])


@kernel
def find_best(pairs, partition):
    """:func:`best_pair`, for Python."""
    return best_pair(pairs, partition)


@kernel
def settle_pairs(pairs, partition, i, j):
    """:func:`settle`, for Python."""
    settle(pairs, partition, i, j)


@kernel
def unite_clusters(partition, i, j):
    """:func:`unite`, for Python."""
    unite(partition, i, j)


@kernel
def draw_candidates(partition, uniforms, tried):
    """:func:`candidates`, for Python, and whether they are all pairs that there are."""
    number = candidates(partition, uniforms, tried)
    return number, number == n_pairs(partition)


@kernel
def find_best_candidate(tried, gain, number):
    """:func:`best_candidate`, for Python."""
    return best_candidate(tried, gain, number)
