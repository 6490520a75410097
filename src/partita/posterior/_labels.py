"""Labels of the observations, 0..K−1 in order of first appearance, from the clusters of the blocks."""

import numpy as np

from partita._kernel import kernel
from partita._typing import Floats, Integers
from partita.losses import Layout

#: Clusterings are sampled in batches of about this many blocks.
BATCH = 1 << 19


def label(clusters: Integers, observation_block: Integers) -> Integers:
    """(n, N) labels of whole clusterings, from the cluster id of each of their blocks, an (n, B) array."""
    labels = np.empty((len(clusters), len(observation_block)), np.int64)
    label_rows(clusters, observation_block, np.full(clusters.max(initial=-1) + 1, -1), labels)
    return labels


@kernel
def label_rows(clusters: Integers, observation_block: Integers, table: Integers, labels: Integers) -> None:
    """Fill in labels. In `table`, which starts as −1, stand labels + row·N, so rows need no new table."""
    n_rows, n_observations = labels.shape
    for row in range(n_rows):
        base = row * n_observations
        following = base
        for x in range(n_observations):
            c = clusters[row, observation_block[x]]
            if table[c] < base:
                table[c] = following
                following += 1
            labels[row, x] = table[c] - base


def sample(layout: Layout, uniforms: Floats, observation_block: Integers) -> Integers:
    """(n, N) labels of whole clusterings, a particle of each subproblem drawn by each of (n, S) uniforms."""
    labels = np.empty((len(uniforms), len(observation_block)), np.int64)
    table = np.empty(layout.cells.max(initial=-1) + 1, np.int64)
    widths, blocks = np.diff(layout.blocks_start), np.arange(len(layout.block_size))
    subproblem = np.repeat(np.arange(len(widths)), widths)
    batch = BATCH // (len(blocks) + 1) + 1
    for i in range(0, len(labels), batch):
        rows = np.empty(uniforms[i : i + batch].shape, np.int64)
        draw(layout.rows_start, layout.weights, uniforms[i : i + batch], rows)
        shift = layout.cells_start[:-1] + rows * widths - layout.blocks_start[:-1]
        cells = shift.take(subproblem, axis=1) + blocks
        table.fill(-1)
        label_rows(layout.cells[cells], observation_block, table, labels[i : i + batch])
    return labels


@kernel
def draw(rows_start: Integers, weights: Floats, uniforms: Floats, rows: Integers) -> None:
    """Set rows to the particles that uniforms draw, counted from the heaviest of the subproblem."""
    for i in range(uniforms.shape[0]):
        for s in range(uniforms.shape[1]):
            rest, row = uniforms[i, s], rows_start[s]
            while rest >= weights[row] and row + 1 < rows_start[s + 1]:
                rest -= weights[row]
                row += 1
            rows[i, s] = row - rows_start[s]
