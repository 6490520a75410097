"""Labels of the observations, 0..K−1 in order of first appearance, from the clusters of the blocks."""

import numpy as np

from partita._core.kernel import kernel
from partita._core.typing import Floats, Integers
from partita.posterior.losses import Layout

#: Clusterings are sampled in batches of about this many blocks.
BATCH = 1 << 17


def appearance(observation_block: Integers, n_blocks: int) -> Integers:
    """(B,) the blocks in the order in which the observations first show them."""
    x = np.arange(len(observation_block))
    first = np.empty(n_blocks, np.int64)
    first[observation_block[::-1]] = x[::-1]  # of several the last assigned stays
    return observation_block[first[observation_block] == x]


def label(clusters: Integers, order: Integers, observation_block: Integers) -> Integers:
    """(n, N) labels of whole clusterings, from the cluster id of each of their blocks, an (n, B) array.

    `order` has the blocks as they first appear.
    """
    labels = np.empty_like(clusters)
    label_blocks(clusters, order, np.full(clusters.max(initial=-1) + 1, -1), 0, labels)
    return labels.take(observation_block, axis=1)


@kernel
def label_blocks(
    clusters: Integers, order: Integers, table: Integers, first_row: int, labels: Integers
) -> None:
    """Fill in the (n, B) labels of the blocks, which may take the place of the clusters.

    In `table`, which starts as −1, stand labels + row·B, so that rows need no new table; it has been used for
    `first_row` rows before.
    """
    for row in range(clusters.shape[0]):
        base = (first_row + row) * order.shape[0]
        following = base
        for i in range(order.shape[0]):
            b = order[i]
            c = clusters[row, b]
            if table[c] < base:
                table[c] = following
                following += 1
            labels[row, b] = table[c] - base


def sample(layout: Layout, uniforms: Floats, order: Integers, observation_block: Integers) -> Integers:
    """(n, N) labels of whole clusterings, a particle of each subproblem drawn by each of (n, S) uniforms."""
    labels = np.empty((len(uniforms), len(observation_block)), np.int64)
    table = np.full(layout.cells.max(initial=-1) + 1, -1)
    widths, blocks = np.diff(layout.blocks_start), np.arange(len(order))
    subproblem = np.repeat(np.arange(len(widths)), widths)
    batch = BATCH // (len(order) + 1) + 1
    for i in range(0, len(labels), batch):
        rows = np.empty(uniforms[i : i + batch].shape, np.int64)
        draw(layout.rows_start, layout.weights, uniforms[i : i + batch], rows)
        shift = layout.cells_start[:-1] + rows * widths - layout.blocks_start[:-1]
        clusters = layout.cells[shift.take(subproblem, axis=1) + blocks]
        label_blocks(clusters, order, table, i, clusters)
        np.take(clusters, observation_block, axis=1, out=labels[i : i + batch], mode="clip")
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
