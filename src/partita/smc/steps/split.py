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

from partita._core.hashing import hash_table, mix
from partita._core.kernel import inner, shared
from partita._core.sorting import descending
from partita.smc.steps.resample import normalise


@inner
def new_cluster(state, parent):
    """The cluster ``parent`` ∪ {x}, whose statistics the model will fill in."""
    clusters = state.clusters
    c = state.free_cluster
    if c >= 0:
        state.free_cluster = clusters[c].size
    else:
        c = state.n_clusters
        state.n_clusters += 1
    clusters[c].size = clusters[parent].size + 1
    clusters[c].score = clusters[parent].score + state.gain[parent]
    state.created[state.n_created, 0] = c
    state.created[state.n_created, 1] = parent
    state.n_created += 1
    return c


@inner
def new_block(state, x):
    """A block with ``x`` as its only member."""
    b = state.free_block
    if b >= 0:
        state.free_block = state.blocks[b].head
    else:
        b = state.n_blocks
        state.n_blocks += 1
    block, observation = state.blocks[b], state.observations[x]
    block.head, block.size = x, 1
    observation.block, observation.next, observation.previous = b, x, x
    return b


@shared
def write_rows(state, x, joint):
    """The blocks and the matrix of the joined subproblem, with x in a column of its own at the end."""
    cells, seen, child = state.cells, state.seen, state.child
    n_rows, n_columns = joint.cluster.shape[0], 1
    for s in joint.subproblems:
        n_columns += state.subproblems[s].columns
    blocks, matrix = np.empty(n_columns, np.int64), np.empty((n_rows, n_columns), np.int64)
    blocks[n_columns - 1] = new_block(state, x)
    state.n_created = 0
    state.tick += 1
    for i in range(n_rows):
        c = joint.cluster[i]
        if seen[c] != state.tick:
            seen[c] = state.tick
            child[c] = new_cluster(state, c)
        matrix[i, n_columns - 1] = child[c]
    first = 0
    for q in range(joint.subproblems.shape[0]):
        sub = state.subproblems[joint.subproblems[q]]
        for j in range(sub.columns):
            blocks[first + j] = cells[sub.cells + j]
        for i in range(n_rows):
            joined, instead = joint.cluster[i], matrix[i, n_columns - 1]
            row = sub.cells + sub.columns + sub.clusters + joint.source[i, q] * sub.columns
            for j in range(sub.columns):
                c = cells[row + j]
                matrix[i, first + j] = instead if c == joined else c
        first += sub.columns
    return blocks, matrix


@inner
def components(state, matrix):
    """The component of each column, numbered from 0 in order of first appearance, and their number."""
    n_rows, n_columns = matrix.shape
    seen, column_of = state.seen, state.child
    root = np.empty(n_columns, np.int64)
    for j in range(n_columns):
        root[j] = j
    first, left = state.tick + 1, n_columns
    state.tick += n_rows
    for i in range(n_rows):
        if left == 1:
            break
        for j in range(n_columns):
            c = matrix[i, j]
            if seen[c] < first:
                seen[c] = first + i
                column_of[c] = j
            elif seen[c] == first + i:  # in later rows a cluster joins the same columns again
                a, b = column_of[c], j
                while root[a] != a:
                    a = root[a]
                while root[b] != b:
                    b = root[b]
                left -= a != b
                root[max(a, b)] = min(a, b)
    count = 0
    for j in range(n_columns):
        if root[j] == j:
            root[j] = count
            count += 1
        else:
            root[j] = root[root[j]]  # smaller columns have their final number already
    return root, count


@inner
def distinct_rows(matrix, weight):
    """Move the distinct rows to the front, adding up the weights of equal ones; returns their number."""
    n_rows, n_columns = matrix.shape
    table = hash_table(n_rows)
    count = 0
    for i in range(n_rows):
        code = np.uint64(0)
        for j in range(n_columns):
            code = mix(code, matrix[i, j])
        at = np.int64(code >> np.uint64(20)) & (table.shape[0] - 1)
        while table[at] >= 0:
            k, j = table[at], 0
            while j < n_columns and matrix[k, j] == matrix[i, j]:
                j += 1
            if j == n_columns:
                break
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


@inner
def join_blocks(state, a, b):
    """Join two blocks; the smaller one is relabelled, so an observation is at most log₂ n times."""
    blocks, observations = state.blocks, state.observations
    if blocks[a].size < blocks[b].size:
        a, b = b, a
    head_a, head_b = blocks[a].head, blocks[b].head
    state.joined[state.n_joined, 0], state.joined[state.n_joined, 1] = head_a, head_b
    state.n_joined += 1
    x = head_b
    for _ in range(blocks[b].size):
        observations[x].block = a
        x = observations[x].next
    tail_a, tail_b = observations[head_a].previous, observations[head_b].previous
    observations[tail_a].next = head_b
    observations[head_b].previous = tail_a
    observations[tail_b].next = head_a
    observations[head_a].previous = tail_b
    blocks[a].size += blocks[b].size
    blocks[b].size, blocks[b].head = 0, state.free_block
    state.free_block = b
    return a


@inner
def join_equal_columns(state, blocks, matrix):
    """Join the blocks that every row has together; the columns that remain move to the front."""
    n_rows, n_columns = matrix.shape
    codes = np.zeros(n_columns, np.uint64)
    for i in range(n_rows):
        for j in range(n_columns):
            codes[j] = mix(codes[j], matrix[i, j])
    table = hash_table(n_columns)
    count = 0
    for j in range(n_columns):
        at = np.int64(codes[j] >> np.uint64(20)) & (table.shape[0] - 1)
        while table[at] >= 0:
            k, i = table[at], 0
            while i < n_rows and matrix[i, k] == matrix[i, j]:
                i += 1
            if i == n_rows:
                break
            at = (at + 1) & (table.shape[0] - 1)
        k = table[at]
        if k >= 0:
            blocks[k] = join_blocks(state, blocks[k], blocks[j])
            continue
        table[at] = count
        if count < j:
            blocks[count] = blocks[j]
            for i in range(n_rows):
                matrix[i, count] = matrix[i, j]
        count += 1
    return count


@inner
def weigh(state, matrix, n_columns, weight):
    """Give each row its score Σ_c [log α + lgamma(|c|) + log p(c)]; returns the distinct clusters."""
    n_rows = matrix.shape[0]
    seen, clusters = state.seen, state.clusters
    found = np.empty(n_rows * n_columns, np.int64)
    count = 0
    first = state.tick + 1
    state.tick += n_rows
    for i in range(n_rows):
        score = 0.0
        for j in range(n_columns):
            c = matrix[i, j]
            if seen[c] < first:
                found[count] = c
                count += 1
            if seen[c] != first + i:
                seen[c] = first + i
                score += state.log_alpha + clusters[c].score
        if state.exact:
            weight[i] = score
    return found[:count]


@inner
def stamp(state, s):
    """Note that the slot of subproblem ``s`` has changed."""
    state.n_changes += 1
    state.subproblems[s].stamp = state.n_changes


@inner
def settle(state, blocks, matrix, weight):
    """Write one component as a subproblem: join equal columns, weigh the rows and sort them."""
    n_rows = matrix.shape[0]
    n_columns = join_equal_columns(state, blocks, matrix)
    found = weigh(state, matrix, n_columns, weight)
    order = descending(weight, n_rows)
    s = state.free_subproblem
    if s >= 0:
        state.free_subproblem = state.subproblems[s].cells
    else:
        s = state.n_subproblems
        state.n_subproblems += 1
    sub, cells, weights, at = state.subproblems[s], state.cells, state.weights, state.end_cells
    all_blocks = state.blocks
    state.enclosed[s] = False
    sub.cells, sub.weights = at, state.end_weights
    sub.rows, sub.columns, sub.clusters = n_rows, n_columns, found.shape[0]
    sub.absent = 0
    stamp(state, s)
    state.written[state.n_written] = s
    state.n_written += 1
    for j in range(n_columns):
        cells[at] = blocks[j]
        all_blocks[blocks[j]].subproblem = s
        all_blocks[blocks[j]].column = j
        at += 1
    for c in found:
        cells[at] = c
        at += 1
    for i in range(n_rows):
        weights[sub.weights + i] = weight[order[i]]
        for j in range(n_columns):
            cells[at] = matrix[order[i], j]
            at += 1
    normalise(weights[sub.weights :], n_rows)  # when sorted, so that it can be done again to the last bit
    state.live_cells += at - sub.cells
    state.live_weights += n_rows
    state.end_cells = at
    state.end_weights += n_rows


@inner
def project(blocks, matrix, weight, component, k):
    """Copies of the columns of component ``k``, and of the weights."""
    n_rows, n_columns = matrix.shape[0], 0
    for j in range(component.shape[0]):
        n_columns += component[j] == k
    part, projected = np.empty(n_columns, np.int64), np.empty((n_rows, n_columns), np.int64)
    column = 0
    for j in range(component.shape[0]):
        if component[j] == k:
            part[column] = blocks[j]
            for i in range(n_rows):
                projected[i, column] = matrix[i, j]
            column += 1
    return part, projected, weight.copy()


@inner
def forget(state, subproblems):
    """Free the old subproblems; returns their clusters, some of which the new rows may still hold."""
    size = 0
    for s in subproblems:
        size += state.subproblems[s].clusters
    found, cells = np.empty(size, np.int64), state.cells
    count = 0
    for s in subproblems:
        sub = state.subproblems[s]
        for k in range(sub.clusters):
            found[count] = cells[sub.cells + sub.columns + k]
            count += 1
        state.live_cells -= sub.columns + sub.clusters + sub.rows * sub.columns
        state.live_weights -= sub.rows
        sub.rows, sub.cells = 0, state.free_subproblem
        state.free_subproblem = s
        stamp(state, s)
    return found


@shared
def split(state, old, blocks, matrix, weight):
    """Write new rows in the place of the ``old`` subproblems, one subproblem a component."""
    before = forget(state, old)
    state.n_written = state.n_joined = 0
    since = state.tick
    component, count = components(state, matrix)
    if not state.splitting and count > 1:
        for j in range(component.shape[0]):
            component[j] = 0
        count = 1
    for k in range(count):
        part, projected, total = project(blocks, matrix, weight, component, k)
        n_rows = distinct_rows(projected, total) if count > 1 else matrix.shape[0]
        settle(state, part, projected[:n_rows], total)
    seen, clusters = state.seen, state.clusters
    for c in before:
        if seen[c] <= since:  # no new row holds it
            clusters[c].size = state.free_cluster
            state.free_cluster = c
