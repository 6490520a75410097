"""Taking observations out again: what refinement, rejuvenation and removal share.

Exact weights make improvement simple: any partition of a subproblem's points has a computable score, and the
m best of old and new are never a worse approximation (DESIGN, "Refinement"). To *re-observe* x, take it out
of every particle of its subproblem, drop the duplicates that this makes, and let it come in as a new
observation: every old particle is among the putative ones, and x may now cross into another subproblem.

Taking x out costs no more than putting it in. Where x shares its block with others, the matrix stays as it
is; where it is a block of its own, its column goes. Clusters that held x shrink: their statistics are
downdated where that is safe and rebuilt from the members where it would cancel digits.
"""

from __future__ import annotations

import numpy as np

from partita._core.kernel import inner
from partita.models.scoring.families import extend, gains, reduce
from partita.smc.state.state import has_room
from partita.smc.steps.split import distinct_rows, split


@inner
def read(state, s):
    """The blocks, matrix and log-weights of subproblem ``s``, as copies."""
    sub, cells = state.subproblems[s], state.cells
    blocks, weight = np.empty(sub.columns, np.int64), np.empty(sub.rows)
    matrix = np.empty((sub.rows, sub.columns), np.int64)
    for j in range(sub.columns):
        blocks[j] = cells[sub.cells + j]
    at = sub.cells + sub.columns + sub.clusters
    for i in range(sub.rows):
        weight[i] = state.weights[sub.weights + i]
        for j in range(sub.columns):
            matrix[i, j] = cells[at]
            at += 1
    return blocks, matrix, weight


@inner
def unlink(state, x):
    """Take ``x`` out of its block's list of members."""
    observations, block = state.observations, state.blocks[state.observations[x].block]
    after, before = observations[x].next, observations[x].previous
    observations[before].next = after
    observations[after].previous = before
    block.size -= 1
    if block.head == x:
        block.head = after
    if block.size == 0:
        block.head = state.free_block
        state.free_block = observations[x].block
    observations[x].block = -1


@inner
def drop_column(matrix, column):
    """A copy of the matrix without one column."""
    result = np.empty((matrix.shape[0], matrix.shape[1] - 1), np.int64)
    for i in range(matrix.shape[0]):
        for j in range(result.shape[1]):
            result[i, j] = matrix[i, j + (j >= column)]
    return result


@inner
def twin(matrix, column, i):
    """A cluster that has the columns of row i's cluster in ``column``, bar that one; −1 if there is none."""
    c = matrix[i, column]
    first = 0
    while first == column or matrix[i, first] != c:
        first += 1
    for k in range(matrix.shape[0]):
        other = matrix[k, first]
        same = matrix[k, column] != other
        for j in range(matrix.shape[1]):
            if j != column and (matrix[k, j] == other) != (matrix[i, j] == c):
                same = False
        if same:
            return other
    return np.int64(-1)


@inner
def detach(state, x):
    """Take ``x`` out of its subproblem's partitions, but not yet out of its clusters' statistics.

    Returns the subproblem, its blocks, matrix and log-weights, and the clusters that must shrink. Where a
    smaller cluster is one that another particle has already, that one takes its place.
    """
    block = state.blocks[state.observations[x].block]
    s, column, alone_in_block = block.subproblem, block.column, block.size == 1
    blocks, matrix, weight = read(state, s)
    shrinking = np.empty(matrix.shape[0], np.int64)
    count = 0
    state.tick += 1
    for i in range(matrix.shape[0]):
        c = matrix[i, column]
        if state.seen[c] == state.tick or state.clusters[c].size == 1:
            continue  # done already, or it vanishes with x
        state.seen[c] = state.tick
        other = twin(matrix, column, i) if alone_in_block else np.int64(-1)
        if other < 0:
            shrinking[count] = c
            count += 1
        else:
            substitute(matrix, column, c, other)
    unlink(state, x)
    if alone_in_block:
        matrix = drop_column(matrix, column)
        matrix = matrix[: distinct_rows(matrix, weight)]
        for j in range(column, blocks.shape[0] - 1):
            blocks[j] = blocks[j + 1]
        blocks = blocks[:-1]
    return s, blocks, matrix, weight[: matrix.shape[0]], shrinking[:count]


@inner
def substitute(matrix, column, c, other):
    """Write cluster ``other`` for cluster ``c`` everywhere but in ``column``, which is about to go."""
    for i in range(matrix.shape[0]):
        if matrix[i, column] == c:
            for j in range(matrix.shape[1]):
                if matrix[i, j] == c and j != column:
                    matrix[i, j] = other


@inner
def room_to_remove(state, x):
    """Whether there is room for the subproblem of ``x`` to be written once more."""
    sub = state.subproblems[state.blocks[state.observations[x].block].subproblem]
    cells = sub.columns * (sub.rows + 1) + sub.clusters
    return has_room(state, cells, sub.rows * sub.columns, np.int64(0), sub.columns, np.int64(0))


@inner
def gain_of(state, family, c, x):
    """log|c| + log p(x | c) for a single cluster."""
    ids = np.empty(1, np.int64)
    ids[0] = c
    gains(family, state.statistics, ids, np.int64(0), np.int64(1), state.data, x, state.gain)
    return state.gain[c]


@inner
def rebuild(state, family, blocks, matrix, c):
    """Compute a cluster's statistics and score from its members."""
    i, j = 0, 0
    while matrix[i, j] != c:
        j += 1
        if j == matrix.shape[1]:
            i, j = i + 1, 0
    size, total, parent = 0, 0.0, np.int64(0)
    for j in range(matrix.shape[1]):
        if matrix[i, j] == c:
            y = state.blocks[blocks[j]].head
            for _ in range(state.blocks[blocks[j]].size):
                total += gain_of(state, family, parent, y)
                extend(family, state.statistics, c, parent, size, state.data, y)
                parent = c
                size += 1
                y = state.observations[y].next
    state.clusters[c].size = size
    state.clusters[c].score = total


@inner
def shrink(state, family, blocks, matrix, c, x):
    """Compute the statistics and score of cluster ``c`` now that ``x`` has left it."""
    size = state.clusters[c].size
    if reduce(family, state.statistics, c, c, size, state.data, x):
        state.clusters[c].size = size - 1
        state.clusters[c].score -= gain_of(state, family, c, x)
    else:
        rebuild(state, family, blocks, matrix, c)


@inner
def reattach(state, s, blocks, matrix, weight):
    """Write what remains of subproblem ``s``."""
    old = np.empty(1, np.int64)
    old[0] = s
    split(state, old, blocks, matrix, weight)


@inner
def remove(state, family, x):
    """Take observation ``x`` out of the state."""
    s, blocks, matrix, weight, shrinking = detach(state, x)
    for c in shrinking:
        shrink(state, family, blocks, matrix, c, x)
    reattach(state, s, blocks, matrix, weight)
