"""The particles on flat arrays, and the clusters that occur in them with their probabilities."""

from typing import NamedTuple

import numpy as np

from partita._core.kernel import kernel
from partita._core.typing import Array, Floats, Integers


class Layout(NamedTuple):
    """The particles of all subproblems: each row holds a cluster id for every block of its subproblem."""

    blocks_start: Integers  # (S+1,)
    rows_start: Integers  # (S+1,)
    cells_start: (
        Integers  # (S+1,) the rows of subproblem s are cells[cells_start[s]:cells_start[s+1]], in turn
    )
    cells: Integers  # any ids from 0, the largest of the order of their number
    weights: Floats  # (rows,) sum to one in every subproblem
    block_size: Integers  # (B,) observations in the block


class WeightedClusters(NamedTuple):
    """The clusters that occur in some particle, numbered as they appear, with their probabilities."""

    weight: Floats  # (C,) probability that the cluster is part of the clustering
    size: Integers  # (C,) observations in the cluster
    start: Integers  # (C+1,) the cluster's blocks are blocks[start[c]:start[c+1]], ascending
    blocks: Integers
    block_start: (
        Integers  # (B+1,) the clusters that hold block b are holders[block_start[b]:block_start[b+1]]
    )
    holders: Integers
    block_size: Integers  # (B,) observations in the block


class Census(NamedTuple):
    """What one pass over the particles finds."""

    cells: Integers  # the layout's cells, by the numbers of the clusters
    best: Integers  # (B,) the block's cluster in the heaviest particle
    row_clusters: Integers  # (rows,) number of clusters of the particle
    clusters: WeightedClusters


def heaviest(blocks_start: Integers, cells_start: Integers) -> Integers:
    """(B,) where the heaviest particle of its subproblem keeps each block's cluster, as indices of cells."""
    shift = cells_start[:-1] - blocks_start[:-1]
    return np.repeat(shift, np.diff(blocks_start)) + np.arange(blocks_start[-1])


def take_census(layout: Layout) -> Census:
    """Number the clusters; collect for each its blocks and the total weight of the particles that have it."""
    n_cells, n_blocks = len(layout.cells), len(layout.block_size)
    table = np.full(layout.cells.max(initial=-1) + 1, -1, np.int32)
    cells = np.empty(n_cells, np.int64)
    row_clusters = np.zeros(len(layout.weights), np.int64)
    weight, size = np.zeros(len(table)), np.zeros(len(table), np.int64)
    first_block = np.empty(len(table), np.int64)
    members, holders = np.empty(n_cells, np.int64), np.empty(n_cells, np.int64)
    n_clusters, n_pairs = list_clusters(
        layout, table, first_block, cells, row_clusters, weight, size, members, holders
    )
    members, holders = members[:n_pairs], holders[:n_pairs]
    blocks, start = grouped(members, holders, n_clusters)
    by_block, block_start = grouped(holders, members, n_blocks)
    clusters = WeightedClusters(
        weight[:n_clusters].copy(),
        size[:n_clusters].copy(),
        start,
        blocks,
        block_start,
        by_block,
        layout.block_size,
    )
    best = cells[heaviest(layout.blocks_start, layout.cells_start)]
    return Census(cells, best, row_clusters, clusters)


@kernel
def list_clusters(
    layout: Layout,
    table: Array,
    first_block: Integers,
    cells: Integers,
    row_clusters: Integers,
    weight: Floats,
    size: Integers,
    members: Integers,
    holders: Integers,
) -> tuple[int, int]:
    """Fill in all but the scratch: (block, cluster) pairs as members and holders. Count clusters and pairs.

    `table`, which takes ids to numbers, starts as −1. `first_block`, of each cluster, is scratch.
    """
    n_clusters, n_pairs = 0, 0
    for s in range(layout.rows_start.shape[0] - 1):
        cell = layout.cells_start[s]
        for row in range(layout.rows_start[s], layout.rows_start[s + 1]):
            n_before = n_clusters
            for b in range(layout.blocks_start[s], layout.blocks_start[s + 1]):
                c = table[layout.cells[cell]]
                if c < 0:
                    c = n_clusters
                    table[layout.cells[cell]] = c
                    first_block[c] = b
                    n_clusters += 1
                cells[cell] = c
                cell += 1
                if first_block[c] == b:
                    weight[c] += layout.weights[row]
                    row_clusters[row] += 1
                if c >= n_before:  # the first particle to have this cluster lists its blocks
                    size[c] += layout.block_size[b]
                    members[n_pairs] = b
                    holders[n_pairs] = c
                    n_pairs += 1
    return n_clusters, n_pairs


def grouped(values: Integers, keys: Integers, n_keys: int) -> tuple[Integers, Integers]:
    """The values sorted by their keys, in order within a key, and where each key's begin."""
    start = np.zeros(n_keys + 1, np.int64)
    np.cumsum(np.bincount(keys, minlength=n_keys), out=start[1:])
    result = np.empty_like(values)
    distribute(values, keys, start[:-1].copy(), result)
    return result, start


@kernel
def distribute(values: Integers, keys: Integers, place: Integers, result: Integers) -> None:
    """Put each value in the next place of its key."""
    for i in range(keys.shape[0]):
        result[place[keys[i]]] = values[i]
        place[keys[i]] += 1
