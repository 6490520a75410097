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


@inner
def add_cluster(state, family, c, at, sub, j):
    """Write the row of a cluster that a particle, whose cells begin ``at``, has from its column ``j`` on."""
    size = np.int64(0)
    for k in range(j, sub.columns):
        if state.cells[at + k] == c:
            size = add_block(state, family, c, size, state.cells[sub.cells + k])


@kernel
def rebuild_rows(state, family, slots):
    """Write the clusters' rows of statistics of some subproblems from the members; all else is as it is."""
    state.tick += 1
    for s in slots:
        sub = state.subproblems[s]
        sub.absent = 0
        first = sub.cells + sub.columns + sub.clusters
        for i in range(sub.rows):
            at = first + i * sub.columns
            for j in range(sub.columns):
                c = state.cells[at + j]
                if state.seen[c] != state.tick:  # any particle that has it will do
                    state.seen[c] = state.tick
                    add_cluster(state, family, c, at, sub, j)
