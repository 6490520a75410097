"""How unsure it is where each observation belongs."""

import math
from typing import NamedTuple

import numpy as np

from partita._core.kernel import kernel
from partita._core.typing import Floats, Integers
from partita.posterior.losses import WeightedClusters


class Meetings(NamedTuple):
    """For each cluster the clusters M_k of the best clustering that it meets, at start[c]:end[c]."""

    end: Integers  # (C,)
    target: Integers  # k
    overlap: Integers  # and how many observations the two share


def block_entropies(clusters: WeightedClusters, best: Integers) -> Floats:
    """Entropy of q_x for the members x of each block, where best[b] is the block's cluster M_k."""
    n_pairs, n_clusters = len(clusters.blocks), len(clusters.size)
    meetings = Meetings(
        np.empty(n_clusters, np.int64), np.empty(n_pairs, np.int64), np.zeros(n_pairs, np.int64)
    )
    position, q = np.full(n_clusters, -1), np.zeros(n_clusters)
    share = clusters.weight / np.maximum(clusters.size - 1, 1)
    entropy = np.zeros(len(clusters.block_size))
    measure(clusters, best, share, meetings, position, q, entropy)
    alone = (clusters.size == 1) & (clusters.weight > 0.0)  # of a block at most one such cluster
    weight = clusters.weight[alone]
    entropy[clusters.blocks[clusters.start[:-1][alone]]] -= weight * np.log(weight)
    return np.maximum(entropy, 0.0)


@kernel
def measure(
    clusters: WeightedClusters,
    best: Integers,
    share: Floats,
    meetings: Meetings,
    position: Integers,
    q: Floats,
    entropy: Floats,
) -> None:
    """Fill in meetings and entropy, but for being alone.

    `share` is P(c) over the number of companions. `position` starts as −1; `q` is zeros, before and after.
    """
    end, target, overlap = meetings
    for c in range(clusters.size.shape[0]):
        first = clusters.start[c]
        end[c] = first
        for at in range(first, clusters.start[c + 1]):
            b = clusters.blocks[at]
            k = best[b]
            if position[k] < first:
                position[k] = end[c]
                target[end[c]] = k
                end[c] += 1
            overlap[position[k]] += clusters.block_size[b]

    for b in range(entropy.shape[0]):
        total = 0.0
        for h in range(clusters.block_start[b], clusters.block_start[b + 1]):
            c = clusters.holders[h]
            for at in range(clusters.start[c], end[c]):
                k = target[at]
                q[k] += share[c] * (overlap[at] - (k == best[b]))  # companions of x in M_k
        for h in range(clusters.block_start[b], clusters.block_start[b + 1]):
            c = clusters.holders[h]
            for at in range(clusters.start[c], end[c]):
                k = target[at]
                if q[k] > 0.0:
                    total += q[k] * math.log(q[k])
                    q[k] = 0.0
        entropy[b] = -total
