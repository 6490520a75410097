"""Labels of the observations, 0..K−1 in order of first appearance, from particles."""

import numpy as np

from partita._kernel import kernel
from partita._typing import Floats, Integers
from partita.losses import Layout


def label(cells: Integers, first: Integers, blocks_start: Integers, observation_block: Integers) -> Integers:
    """Labels of whole clusterings, one a row.

    Parameters
    ----------
    cells : int64 array
        Cluster ids from 0.
    first : (n, S) int64 array
        In clustering i, the blocks of subproblem s are in the clusters ``cells[first[i, s]:]``, in turn.
    blocks_start : (S+1,) int64 array
        The first block of each subproblem.
    observation_block : (N,) int64 array
        The block of each observation.

    Returns
    -------
    (n, N) int64 array
    """
    labels = np.empty((len(first), len(observation_block)), np.int64)
    clusters = np.empty(blocks_start[-1], np.int64)
    table = np.full(cells.max(initial=-1) + 1, -1)
    label_rows(cells, first, blocks_start, observation_block, clusters, table, labels)
    return labels


@kernel  # type: ignore[untyped-decorator]
def label_rows(
    cells: Integers,
    first: Integers,
    blocks_start: Integers,
    observation_block: Integers,
    clusters: Integers,
    table: Integers,
    labels: Integers,
) -> None:
    """Fill in labels. `clusters` is scratch; `table` starts as −1 and holds numbers never used before."""
    n_rows, n_observations = labels.shape
    for row in range(n_rows):
        for s in range(blocks_start.shape[0] - 1):
            shift = first[row, s] - blocks_start[s]
            for b in range(blocks_start[s], blocks_start[s + 1]):
                clusters[b] = cells[shift + b]
        base = row * n_observations
        following = base
        for x in range(n_observations):
            c = clusters[observation_block[x]]
            if table[c] < base:
                table[c] = following
                following += 1
            labels[row, x] = table[c] - base


def draw(layout: Layout, uniforms: Floats) -> Integers:
    """Where the cells of a random particle begin, for each uniform number of an (n, S) array."""
    if len(layout.weights) == 0:
        return np.zeros(uniforms.shape, np.int64)
    first, end = layout.rows_start[:-1], layout.rows_start[1:]
    cumulative = np.cumsum(layout.weights)
    before = np.concatenate(([0.0], cumulative))
    targets = before[first] + uniforms * (before[end] - before[first])
    rows = np.clip(np.searchsorted(cumulative, targets, side="right"), first, end - 1)
    return layout.cells_start[:-1] + (rows - first) * np.diff(layout.blocks_start)
