"""Reading the particles of subproblems."""

from __future__ import annotations

import numpy as np

from partita._core.kernel import kernel


@kernel
def first_members(state):
    """One observation of each subproblem."""
    found = np.empty(state.n_subproblems, np.int64)
    count = 0
    for s in range(state.n_subproblems):
        if state.subproblems[s].rows > 0:
            found[count] = state.blocks[state.cells[state.subproblems[s].cells]].head
            count += 1
    return found[:count]


@kernel
def partitions(state, s):
    """The observations of subproblem ``s``, their cluster ids in each row, and the rows' scores."""
    sub, cells = state.subproblems[s], state.cells
    n = 0
    for j in range(sub.columns):
        n += state.blocks[cells[sub.cells + j]].size
    members, ids = np.empty(n, np.int64), np.empty((sub.rows, n), np.int64)
    scores = np.zeros(sub.rows)
    at = sub.cells + sub.columns + sub.clusters
    k = 0
    for j in range(sub.columns):
        block = state.blocks[cells[sub.cells + j]]
        x = block.head
        for _ in range(block.size):
            members[k] = x
            for i in range(sub.rows):
                ids[i, k] = cells[at + i * sub.columns + j]
            x = state.observations[x].next
            k += 1
    for i in range(sub.rows):
        state.tick += 1
        for j in range(sub.columns):
            c = cells[at + i * sub.columns + j]
            if state.seen[c] != state.tick:
                state.seen[c] = state.tick
                scores[i] += state.log_alpha + state.clusters[c].score
    return members, ids, scores
