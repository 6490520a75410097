"""The expected loss of a given clustering."""

import numpy as np

from partita._core.kernel import kernel
from partita._core.typing import Floats, Integers

from ._clusters import Census, Layout, WeightedClusters, grouped
from ._terms import BCUBED, BINDER, Loss, Terms, tabulate


def expected_loss(
    loss: Loss, clusters: WeightedClusters, groups: Integers, observation_block: Integers
) -> float:
    """Posterior expected loss of the clustering in which observation x is in cluster groups[x] of 0, 1, …"""
    n, n_blocks = len(groups), len(clusters.block_size)
    if n == 0:
        return 0.0
    by_block, block_start = grouped(groups, observation_block, n_blocks)
    blocks = np.repeat(np.arange(n_blocks), np.diff(block_start))
    blocks, start = grouped(blocks, by_block, int(groups.max()) + 1)  # of a group, ascending
    is_first = np.ones(n + 1, np.bool_)
    np.not_equal(blocks[1:], blocks[:-1], out=is_first[1:-1])
    is_first[start] = True
    pieces = np.flatnonzero(is_first)  # of a block in a group, and the end
    terms = tabulate(loss, n)
    number = np.cumsum(is_first) - 1
    total = cluster_losses(terms, clusters, number[start], blocks[pieces[:-1]], np.diff(pieces)).sum()
    if loss.code == BCUBED:
        total += n
    else:
        scale = loss.false_split if loss.code == BINDER else 1.0
        total += scale * (clusters.weight * terms.value[clusters.size]).sum()
    total = max(float(total), 0.0)  # rounding aside, no loss is negative
    return total if loss.code == BINDER else total / n


def cluster_losses(
    terms: Terms, clusters: WeightedClusters, start: Integers, blocks: Integers, counts: Integers
) -> Floats:
    """f(ĉ) of every ĉ = start[k]:start[k+1], which has counts[i] observations of blocks[i]."""
    result = np.empty(len(start) - 1)
    add_overlaps(terms, clusters, start, blocks, counts, np.zeros(len(clusters.size), np.int64), result)
    return result


@kernel
def add_overlaps(
    terms: Terms,
    clusters: WeightedClusters,
    start: Integers,
    blocks: Integers,
    counts: Integers,
    overlap: Integers,
    result: Floats,
) -> None:
    """The kernel of `cluster_losses`. `overlap` is zeros, before and after."""
    for k in range(result.shape[0]):
        size = 0
        for i in range(start[k], start[k + 1]):
            size += counts[i]
            for h in range(clusters.block_start[blocks[i]], clusters.block_start[blocks[i] + 1]):
                overlap[clusters.holders[h]] += counts[i]
        shared = 0.0
        for i in range(start[k], start[k + 1]):
            for h in range(clusters.block_start[blocks[i]], clusters.block_start[blocks[i] + 1]):
                c = clusters.holders[h]
                if overlap[c] > 0:
                    discount = terms.discount[size + clusters.size[c]]
                    shared += clusters.weight[c] * terms.value[overlap[c]] * discount
                    overlap[c] = 0
        result[k] = terms.size_cost * terms.value[size] - terms.overlap_cost * shared


def probability(layout: Layout, census: Census, groups: Integers, observation_block: Integers) -> float:
    """Probability of exactly this clustering: of the particles all of whose clusters are groups."""
    if len(groups) == 0:
        return 1.0
    clusters, counts = census.clusters, np.bincount(groups)
    low, high = np.full(len(layout.block_size), len(counts)), np.full(len(layout.block_size), -1)
    np.minimum.at(low, observation_block, groups)
    np.maximum.at(high, observation_block, groups)
    low = np.minimum.reduceat(low[clusters.blocks], clusters.start[:-1])
    high = np.maximum.reduceat(high[clusters.blocks], clusters.start[:-1])
    is_group = (low == high) & (counts[low] == clusters.size)
    widths = np.repeat(np.diff(layout.blocks_start), np.diff(layout.rows_start))
    rows = np.concatenate(([0], np.cumsum(widths)[:-1]))
    matches = np.logical_and.reduceat(is_group[census.cells], rows)
    return float(np.add.reduceat(layout.weights * matches, layout.rows_start[:-1]).prod())
