"""The particles on flat arrays, and the clusters that occur in them with their probabilities."""

from typing import NamedTuple

import numpy as np

from partita._kernel import kernel
from partita._typing import Floats, Integers


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
    row_clusters: Integers  # (rows,) number of clusters of the particle
    clusters: WeightedClusters


def heaviest(layout: Layout) -> Integers:
    """Where the heaviest particle of its subproblem keeps each block's cluster, as indices of cells."""
    shift = layout.cells_start[:-1] - layout.blocks_start[:-1]
    return np.repeat(shift, np.diff(layout.blocks_start)) + np.arange(len(layout.block_size))


def take_census(layout: Layout) -> Census:
    """Number the clusters; collect for each its blocks and the total weight of the particles that have it."""
    n_cells, n_blocks = len(layout.cells), len(layout.block_size)
    table = np.full(layout.cells.max(initial=-1) + 1, -1)
    cells = np.empty(n_cells, np.int64)
    row_clusters = np.zeros(len(layout.weights), np.int64)
    weight, last_row = np.zeros(len(table)), np.full(len(table), -1)
    members, holders = np.empty(n_cells, np.int64), np.empty(n_cells, np.int64)
    n_clusters, n_pairs = list_clusters(
        layout, table, last_row, cells, row_clusters, weight, members, holders
    )
    members, holders = members[:n_pairs], holders[:n_pairs]
    order, start = grouped(holders, n_clusters)
    by_block, block_start = grouped(members, n_blocks)
    blocks = members[order]
    size = np.add.reduceat(layout.block_size[blocks], start[:-1]) if n_clusters else np.zeros(0, np.int64)
    clusters = WeightedClusters(
        weight[:n_clusters].copy(), size, start, blocks, block_start, holders[by_block], layout.block_size
    )
    return Census(cells, row_clusters, clusters)


@kernel  # type: ignore[untyped-decorator]
def list_clusters(
    layout: Layout,
    table: Integers,
    last_row: Integers,
    cells: Integers,
    row_clusters: Integers,
    weight: Floats,
    members: Integers,
    holders: Integers,
) -> tuple[int, int]:
    """Fill in cells, row_clusters, weight, and the pairs (block, cluster) as they first appear; count both.

    `table`, which takes ids to numbers, and `last_row`, the last particle to have a cluster, start as −1.
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
                    n_clusters += 1
                cells[cell] = c
                cell += 1
                if last_row[c] != row:
                    last_row[c] = row
                    weight[c] += layout.weights[row]
                    row_clusters[row] += 1
                if c >= n_before:  # the first particle to have this cluster lists its blocks
                    members[n_pairs] = b
                    holders[n_pairs] = c
                    n_pairs += 1
    return n_clusters, n_pairs


def grouped(keys: Integers, n_keys: int) -> tuple[Integers, Integers]:
    """Indices sorted by key, in order within a key, and where each key's begin."""
    start = np.zeros(n_keys + 1, np.int64)
    np.cumsum(np.bincount(keys, minlength=n_keys), out=start[1:])
    order = np.empty(len(keys), np.int64)
    distribute(keys, start[:-1].copy(), order)
    return order, start


@kernel  # type: ignore[untyped-decorator]
def distribute(keys: Integers, place: Integers, order: Integers) -> None:
    for i in range(keys.shape[0]):
        order[place[keys[i]]] = i
        place[keys[i]] += 1
