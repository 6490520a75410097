"""How unsure it is where each observation belongs."""

import math

import numpy as np

from partita._kernel import kernel
from partita._typing import Floats, Integers
from partita.losses import WeightedClusters


def block_entropies(clusters: WeightedClusters, best: Integers) -> Floats:
    """Entropy of q_x for the members x of each block, where best[b] is the block's cluster M_k."""
    n_clusters = len(clusters.size)
    target = np.empty(len(clusters.blocks), np.int64)
    overlap = np.zeros(len(clusters.blocks), np.int64)
    end = np.empty(n_clusters, np.int64)
    meet(clusters, best, np.full(n_clusters, -1), target, overlap, end)
    entropy = np.empty(len(clusters.block_size))
    measure(clusters, best, target, overlap, end, np.zeros(n_clusters), entropy)
    return np.maximum(entropy, 0.0)


@kernel  # type: ignore[untyped-decorator]
def meet(
    clusters: WeightedClusters,
    best: Integers,
    position: Integers,
    target: Integers,
    overlap: Integers,
    end: Integers,
) -> None:
    """Find for each cluster the k of the M_k it meets, and how many observations they share.

    Those of cluster c come to stand in target and overlap at start[c]:end[c]. `position` starts as −1.
    """
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


@kernel  # type: ignore[untyped-decorator]
def measure(
    clusters: WeightedClusters,
    best: Integers,
    target: Integers,
    overlap: Integers,
    end: Integers,
    q: Floats,
    entropy: Floats,
) -> None:
    """Fill in the entropies. `q` is zeros, before and after."""
    for b in range(entropy.shape[0]):
        alone = 0.0
        for h in range(clusters.block_start[b], clusters.block_start[b + 1]):
            c = clusters.holders[h]
            if clusters.size[c] == 1:
                alone += clusters.weight[c]
                continue
            share = clusters.weight[c] / (clusters.size[c] - 1)
            for at in range(clusters.start[c], end[c]):
                companions = overlap[at]
                if target[at] == best[b]:
                    companions -= 1
                q[target[at]] += share * companions
        total = alone * math.log(alone) if alone > 0.0 else 0.0
        for h in range(clusters.block_start[b], clusters.block_start[b + 1]):
            c = clusters.holders[h]
            for at in range(clusters.start[c], end[c]):
                k = target[at]
                if q[k] > 0.0:
                    total += q[k] * math.log(q[k])
                    q[k] = 0.0
        entropy[b] = -total
