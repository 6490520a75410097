"""Rows of statistics made anew from the clusters' members, where a file has none."""

from __future__ import annotations

import numpy as np

from partita._core.kernel import inner, kernel
from partita.models.scoring.families import extend


@inner
def add_block(state, family, c, size, b):
    """Add the members of block ``b`` to the row of ``c``, a cluster of ``size``; returns its new size."""
    block = state.blocks[b]
    x = block.head
    for _ in range(block.size):
        parent = c if size > 0 else np.int64(0)
        extend(family, state.statistics, c, parent, size, state.data, x)
        size += 1
        x = state.observations[x].next
    return size


@kernel
def rebuild_rows(state, family, slots):
    """Write the clusters' rows of statistics of some subproblems from the members; all else is as it is."""
    size, row = np.zeros(state.n_clusters, np.int64), np.full(state.n_clusters, -1)
    for s in slots:
        sub = state.subproblems[s]
        sub.absent = 0
        at = sub.cells + sub.columns + sub.clusters
        for i in range(sub.rows):
            for j in range(sub.columns):
                c = state.cells[at + i * sub.columns + j]
                if row[c] < 0:
                    row[c] = i  # any row that has it will do
                if row[c] == i:
                    size[c] = add_block(state, family, c, size[c], state.cells[sub.cells + j])
