"""The minimiser over all partitions of a few blocks, by dynamic programming over their subsets.

In: components of blocks. Out: for each the partition of least Σ f(ĉ), the heaviest particle wherever that
does as well. A subset of a component's blocks is a number whose bit i says whether it has the i-th block.
"""

from typing import NamedTuple

import numpy as np

from partita._core.kernel import inner, kernel
from partita._core.typing import Floats, Integers

from ._clusters import WeightedClusters
from ._terms import TOLERANCE, Terms


class Subsets(NamedTuple):
    """What is known of the subsets of a component's blocks."""

    size: Integers  # observations
    value: Floats  # t(size)
    loss: Floats  # f
    least: Floats  # the least Σ f over all partitions of the subset,
    choice: Integers  # and the cluster of its lowest block there


class Components(NamedTuple):
    """The blocks of each component, named by its smallest: order[start[root]:start[root+1]], ascending."""

    order: Integers
    start: Integers  # (B+1,)
    position: Integers  # (B,) each block's place in its component


def minimise_exactly(
    terms: Terms,
    clusters: WeightedClusters,
    components: Components,
    roots: Integers,
    best: Integers,
    estimate: Integers,
) -> None:
    """For every block of the components `roots` set estimate to the smallest block of its cluster.

    `best` is the cluster of each block in its heaviest particle.
    """
    if len(roots) == 0:
        return
    n_subsets = 1 << int((components.start[roots + 1] - components.start[roots]).max())
    sizes, choices = np.zeros((2, n_subsets), np.int64)
    values, losses, least = np.zeros((3, n_subsets))
    subsets = Subsets(sizes, values, losses, least, choices)
    minimise_each(terms, clusters, components, roots, best, subsets, estimate)


@kernel
def minimise_each(
    terms: Terms,
    clusters: WeightedClusters,
    components: Components,
    roots: Integers,
    best: Integers,
    subsets: Subsets,
    estimate: Integers,
) -> None:
    for r in range(roots.shape[0]):
        first = components.start[roots[r]]
        n_blocks = components.start[roots[r] + 1] - first
        weigh_subsets(terms, clusters, components, first, n_blocks, subsets)
        scale = partition_subsets(n_blocks, subsets)
        everything = (1 << n_blocks) - 1
        particle_loss = 0.0
        for i in range(first, first + n_blocks):
            b, c = components.order[i], best[components.order[i]]
            estimate[b] = clusters.blocks[clusters.start[c]]
            if estimate[b] == b:
                subset = 0
                for at in range(clusters.start[c], clusters.start[c + 1]):
                    subset |= 1 << components.position[clusters.blocks[at]]
                particle_loss += subsets.loss[subset]
        if particle_loss <= subsets.least[everything] + TOLERANCE * n_blocks * scale:
            continue
        remaining = everything
        while remaining:
            lowest = -1
            for i in range(n_blocks):
                if subsets.choice[remaining] >> i & 1:
                    if lowest < 0:
                        lowest = components.order[first + i]
                    estimate[components.order[first + i]] = lowest
            remaining ^= subsets.choice[remaining]


@inner
def weigh_subsets(
    terms: Terms,
    clusters: WeightedClusters,
    components: Components,
    first: int,
    n_blocks: int,
    subsets: Subsets,
) -> None:
    """Set size, value and loss."""
    n_subsets = 1 << n_blocks
    for i in range(n_blocks):
        size = clusters.block_size[components.order[first + i]]
        for subset in range(1 << i):
            subsets.size[subset | 1 << i] = subsets.size[subset] + size
    for subset in range(n_subsets):
        subsets.value[subset] = terms.value[subsets.size[subset]]
        subsets.loss[subset] = terms.size_cost * subsets.value[subset]
    for i in range(first, first + n_blocks):
        b = components.order[i]
        for h in range(clusters.block_start[b], clusters.block_start[b + 1]):
            c = clusters.holders[h]
            if clusters.blocks[clusters.start[c]] != b:
                continue  # seen with an earlier block
            cluster = 0
            for at in range(clusters.start[c], clusters.start[c + 1]):
                cluster |= 1 << components.position[clusters.blocks[at]]
            cost = terms.overlap_cost * clusters.weight[c]
            for subset in range(1, n_subsets):
                discount = terms.discount[subsets.size[subset] + clusters.size[c]]
                subsets.loss[subset] -= cost * subsets.value[subset & cluster] * discount


@inner
def partition_subsets(n_blocks: int, subsets: Subsets) -> float:
    """Set least and choice; return the largest |loss|."""
    scale = 0.0
    for subset in range(1, 1 << n_blocks):
        scale = max(scale, abs(subsets.loss[subset]))
        lowest = subset & -subset
        rest = subset ^ lowest
        part, least, choice = rest, np.inf, subset
        while True:
            total = subsets.loss[part | lowest] + subsets.least[rest ^ part]
            if total < least:
                least, choice = total, part | lowest
            if part == 0:
                break
            part = (part - 1) & rest
        subsets.least[subset], subsets.choice[subset] = least, choice
    return scale
