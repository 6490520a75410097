"""Step 4, split: divide the changed subproblem into independent ones (paper, section 3.2).

In: the rows that ``merge`` chose. Out: the state with x in it. The new rows are written as a matrix of
(rows × blocks) cluster ids; the connected components of "these two blocks share a cluster in some row" become
subproblems, whose particles are the distinct projections of the rows. Under exact weights each projection
gets its own score, which of all weights on that support is nearest to the posterior in KL (appendix B.2);
the paper's marginal weights sum those of the rows that project onto it. Last, blocks whose columns have
become equal, because every remaining particle has them together, are joined.
"""

from __future__ import annotations

import math

import numpy as np

from partita._kernel import kernel
from partita.smc.resample import normalise
from partita.smc.state import (
    descending,
    free_subproblem,
    give_cluster,
    join_blocks,
    marks,
    new_subproblem,
    singleton_block,
    take_cluster,
)


@kernel
def child_of(state, c, visit):
    """The cluster c ∪ {x}, made when it is first asked for in this step."""
    if state.seen[c] == visit:
        return state.child[c]
    child = take_cluster(state)
    state.seen[c] = visit
    state.child[c] = child
    state.clusters[child].size = state.clusters[c].size + 1
    state.clusters[child].score = state.clusters[c].score + state.gain[c]
    state.created[state.n_created, 0] = child
    state.created[state.n_created, 1] = c
    state.n_created += 1
    return state.child[c]


@kernel
def write_rows(state, x, joint):
    """The blocks and the matrix of the joined subproblem, with x in a column of its own at the end."""
    n_rows, n_columns = joint.cluster.shape[0], 1
    for s in joint.subproblems:
        n_columns += state.subproblems[s].columns
    blocks = np.empty(n_columns, np.int64)
    matrix = np.empty((n_rows, n_columns), np.int64)
    cells = state.cells
    visit = marks(state, 1)
    for i in range(n_rows):
        matrix[i, n_columns - 1] = child_of(state, joint.cluster[i], visit)
    first = 0
    for q in range(joint.subproblems.shape[0]):
        sub = state.subproblems[joint.subproblems[q]]
        for j in range(sub.columns):
            blocks[first + j] = cells[sub.cells + j]
        for i in range(n_rows):
            joined, child = joint.cluster[i], matrix[i, n_columns - 1]
            row = sub.cells + sub.columns + sub.clusters + joint.source[i, q] * sub.columns
            for j in range(sub.columns):
                c = cells[row + j]
                matrix[i, first + j] = child if c == joined else c
        first += sub.columns
    blocks[n_columns - 1] = singleton_block(state, x)
    return blocks, matrix


@kernel
def components(state, matrix):
    """The component of each column, numbered from 0 in order of first appearance, and their number."""
    n_rows, n_columns = matrix.shape
    seen, column_of = state.seen, state.child
    root = np.empty(n_columns, np.int64)
    for j in range(n_columns):
        root[j] = j
    visit = marks(state, n_rows)
    for i in range(n_rows):
        for j in range(n_columns):
            c = matrix[i, j]
            if seen[c] < visit:
                seen[c] = visit + i
                column_of[c] = j
            elif seen[c] == visit + i:  # in later rows a cluster joins the same columns again
                a, b = column_of[c], j
                while root[a] != a:
                    a = root[a]
                while root[b] != b:
                    b = root[b]
                root[max(a, b)] = min(a, b)
    count = 0
    for j in range(n_columns):
        if root[j] == j:
            root[j] = count
            count += 1
        else:
            root[j] = root[root[j]]  # smaller columns have their final number already
    return root, count


@kernel
def fingerprint(previous, value):
    """Mix one more id into a hash; equality is always checked as well."""
    return (previous ^ np.uint64(value)) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x632BE59BD9B4E019)


@kernel
def hash_table(count):
    """An empty table of a power of two entries, at least twice ``count``."""
    size = 4
    while size < 2 * count:
        size *= 2
    table = np.empty(size, np.int64)
    for k in range(size):
        table[k] = -1
    return table


@kernel
def equal_rows(matrix, i, k):
    """Whether two rows are equal."""
    for j in range(matrix.shape[1]):
        if matrix[i, j] != matrix[k, j]:
            return False
    return True


@kernel
def distinct_rows(matrix, weight):
    """Move the distinct rows to the front, adding up the weights of equal ones; returns their number."""
    n_rows, n_columns = matrix.shape
    table = hash_table(n_rows)
    count = 0
    for i in range(n_rows):
        mark = np.uint64(0)
        for j in range(n_columns):
            mark = fingerprint(mark, matrix[i, j])
        at = np.int64(mark >> np.uint64(20)) & (table.shape[0] - 1)
        while table[at] >= 0 and not equal_rows(matrix, table[at], i):
            at = (at + 1) & (table.shape[0] - 1)
        k = table[at]
        if k < 0:
            table[at] = count
            for j in range(n_columns):
                matrix[count, j] = matrix[i, j]
            weight[count] = weight[i]
            count += 1
        else:
            high, low = max(weight[k], weight[i]), min(weight[k], weight[i])
            weight[k] = high + math.log1p(math.exp(low - high))
    return count


@kernel
def equal_columns(matrix, j, k):
    """Whether two columns are equal."""
    for i in range(matrix.shape[0]):
        if matrix[i, j] != matrix[i, k]:
            return False
    return True


@kernel
def join_equal_columns(state, blocks, matrix):
    """Join the blocks that every row has together; the columns that remain move to the front."""
    n_rows, n_columns = matrix.shape
    hashes = np.zeros(n_columns, np.uint64)
    for i in range(n_rows):
        for j in range(n_columns):
            hashes[j] = fingerprint(hashes[j], matrix[i, j])
    table = hash_table(n_columns)
    count = 0
    for j in range(n_columns):
        at = np.int64(hashes[j] >> np.uint64(20)) & (table.shape[0] - 1)
        while table[at] >= 0 and not (
            hashes[table[at]] == hashes[j] and equal_columns(matrix, table[at], j)
        ):
            at = (at + 1) & (table.shape[0] - 1)
        k = table[at]
        if k >= 0:
            blocks[k] = join_blocks(state, blocks[k], blocks[j])
            continue
        table[at] = count
        if count < j:
            blocks[count], hashes[count] = blocks[j], hashes[j]
            for i in range(n_rows):
                matrix[i, count] = matrix[i, j]
        count += 1
    return count


@kernel
def weigh(state, matrix, n_columns, weight):
    """Give each row its score Σ_c [log α + lgamma(|c|) + log p(c)]; returns the distinct clusters."""
    n_rows = matrix.shape[0]
    seen, clusters = state.seen, state.clusters
    found = np.empty(n_rows * n_columns, np.int64)
    count = 0
    visit = marks(state, n_rows)
    for i in range(n_rows):
        score = 0.0
        for j in range(n_columns):
            c = matrix[i, j]
            if seen[c] < visit:
                found[count] = c
                count += 1
            if seen[c] != visit + i:
                seen[c] = visit + i
                score += state.log_alpha + clusters[c].score
        if state.exact:
            weight[i] = score
    return found[:count]


@kernel
def settle(state, blocks, matrix, weight):
    """Write one component as a subproblem: join equal columns, weigh the rows and sort them."""
    n_rows = matrix.shape[0]
    n_columns = join_equal_columns(state, blocks, matrix)
    found = weigh(state, matrix, n_columns, weight)
    normalise(weight, n_rows)
    order = descending(weight, n_rows)
    s = new_subproblem(state, n_rows, n_columns, found.shape[0])
    sub, cells = state.subproblems[s], state.cells
    at = sub.cells
    for j in range(n_columns):
        cells[at] = blocks[j]
        state.blocks[blocks[j]].subproblem = s
        state.blocks[blocks[j]].column = j
        at += 1
    for c in found:
        cells[at] = c
        at += 1
    for i in range(n_rows):
        state.weights[sub.weights + i] = weight[order[i]]
        for j in range(n_columns):
            cells[at] = matrix[order[i], j]
            at += 1


@kernel
def project(blocks, matrix, weight, component, k):
    """Copies of the columns of component ``k``, and of the weights."""
    n_columns = 0
    for j in range(component.shape[0]):
        n_columns += component[j] == k
    part, sub = np.empty(n_columns, np.int64), np.empty((matrix.shape[0], n_columns), np.int64)
    column = 0
    for j in range(component.shape[0]):
        if component[j] == k:
            part[column] = blocks[j]
            for i in range(matrix.shape[0]):
                sub[i, column] = matrix[i, j]
            column += 1
    return part, sub, weight.copy()


@kernel
def forget(state, subproblems):
    """Free the old subproblems; returns their clusters, some of which the new rows may still hold."""
    size = 0
    for s in subproblems:
        size += state.subproblems[s].clusters
    found = np.empty(size, np.int64)
    count = 0
    for s in subproblems:
        sub = state.subproblems[s]
        for k in range(sub.clusters):
            found[count] = state.cells[sub.cells + sub.columns + k]
            count += 1
        free_subproblem(state, s)
    return found


@kernel
def split(state, old, blocks, matrix, weight):
    """Write new rows in the place of the ``old`` subproblems, one subproblem a component."""
    before = forget(state, old)
    since = marks(state, 1)
    component, count = components(state, matrix)
    if not state.splitting:
        count = min(count, 1)
    if count == 1:
        settle(state, blocks, matrix, weight)
    else:
        for k in range(count):
            part, projected, total = project(blocks, matrix, weight, component, k)
            n_rows = distinct_rows(projected, total)
            settle(state, part, projected[:n_rows], total[:n_rows])
    for c in before:
        if state.seen[c] < since:  # no new row holds it
            give_cluster(state, c)
    return count
