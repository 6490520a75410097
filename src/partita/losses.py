"""Expected losses of a clustering under the posterior, and the clusterings that minimise them.

Three losses compare an estimated clustering with the true one. With A = |ĉ|, C = |c| and I = |ĉ ∩ c| for an
estimated cluster ĉ and a true cluster c, and n observations,

    Binder    over pairs:    Σ_ĉ m·A(A−1)/2 + Σ_c s·C(C−1)/2 − Σ_ĉ Σ_c (m+s)·I(I−1)/2
    VI        in nats:       ( Σ_ĉ A log A + Σ_c C log C − 2 Σ_ĉ Σ_c I log I ) / n
    B-cubed   1 − mean F1:   ( n − Σ_ĉ Σ_c 2I²/(A+C) ) / n

where m and s are the costs of a falsely merged and of a falsely separated pair. All are sums over pairs
(ĉ, c), so their expectation needs no more than the probability of each cluster c that occurs in some
particle, and it is a sum over the estimated clusters of f(ĉ) = g(A) − Σ_c P(c) h(I, A, C), plus a constant.

Two facts keep the search for a minimiser small. Joining sets that are never together only raises f. And f is
concave in the share of a *block* (observations that are together in every particle) that goes to one of two
clusters, so no minimiser divides a block. Each connected component of blocks is then minimised alone:
exactly, by dynamic programming over the subsets of its blocks, where these are few; else by local search
from the particles that do best.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

BINDER, VI, BCUBED = 0, 1, 2

#: Components of at most this many blocks are minimised exactly, at a cost of O(3^blocks).
EXACT_BLOCKS = 12
#: Local search starts from this many particles, those of least expected loss.
PARTICLE_STARTS = 4
#: Gains below this share of the loss's scale are rounding, not progress.
TOLERANCE = 1e-13

Ints = NDArray[np.int64]
Cells = NDArray[np.int32]
Floats = NDArray[np.float64]


class Loss(NamedTuple):
    """Which loss (BINDER, VI or BCUBED), and Binder's two costs."""

    code: int
    false_merge: float = 1.0
    false_split: float = 1.0


class Layout(NamedTuple):
    """The particles of all subproblems: each row holds a cluster number for every block of its subproblem."""

    blocks_start: Ints  # (S+1,)
    rows_start: Ints  # (S+1,)
    cells_start: Ints  # (S+1,) the rows of subproblem s are cells[cells_start[s]:cells_start[s+1]], in turn
    cells: Cells  # numbers given as clusters appear, 0, 1, …
    weights: Floats  # (rows,) sum to one in every subproblem
    block_size: Ints  # (B,) observations in the block


class WeightedClusters(NamedTuple):
    """The clusters that occur in some particle, with their probabilities, as sets of blocks."""

    weight: Floats  # (C,) probability that the cluster is part of the clustering
    size: Ints  # (C,) observations in the cluster
    start: Ints  # (C+1,) the cluster's blocks are blocks[start[c]:start[c+1]], ascending
    blocks: Ints
    block_start: Ints  # (B+1,) the clusters that hold block b are holders[block_start[b]:block_start[b+1]]
    holders: Ints
    block_size: Ints  # (B,) observations in the block


class Search(NamedTuple):
    """An estimate under local search; its clusters are slots 0..B, some of them empty."""

    assignment: Ints  # (B,) slot of each block, −1 while it moves
    size: Ints  # (B+1,) observations in each slot
    first: Ints  # (B+1,) a linked list of each slot's blocks: the first one, or −1
    following: Ints  # (B,) and for each block the next, or −1
    share: Ints  # (B+1,) scratch, zero between uses
    change: Floats  # (B+1,) scratch, infinite between uses
    amount: Ints  # (C,) scratch, zero between uses
    overlap: Ints  # (C,) scratch, zero between uses


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def renumber(ids: Cells, table: Cells) -> int:
    """Number the ids 0, 1, … as they appear, in place, and count them. `table` holds −1, before and after."""
    original = np.empty(len(ids), np.int32)
    count = 0
    for i in range(len(ids)):
        if table[ids[i]] < 0:
            table[ids[i]] = count
            original[count] = ids[i]
            count += 1
        ids[i] = table[ids[i]]
    for known in original[:count]:
        table[known] = -1
    return count


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def weigh_clusters(layout: Layout, n_clusters: int) -> WeightedClusters:
    """Collect the clusters, each with the total weight of the particles that have it."""
    weight = np.zeros(n_clusters)
    size = np.zeros(n_clusters, np.int64)
    start = np.zeros(n_clusters + 1, np.int64)
    block_start = np.zeros(len(layout.block_size) + 1, np.int64)
    last_row = np.full(n_clusters, -1, np.int64)
    pairs = np.empty((len(layout.cells), 2), np.int32)  # (block, cluster), as they first appear
    n_pairs, n_known = 0, 0
    for s in range(len(layout.rows_start) - 1):
        cell = layout.cells_start[s]
        for row in range(layout.rows_start[s], layout.rows_start[s + 1]):
            n_known_before = n_known
            for b in range(layout.blocks_start[s], layout.blocks_start[s + 1]):
                c = layout.cells[cell]
                cell += 1
                if last_row[c] != row:
                    last_row[c] = row
                    weight[c] += layout.weights[row]
                if c >= n_known_before:  # the first particle to have this cluster lists its blocks
                    n_known = max(n_known, c + 1)
                    size[c] += layout.block_size[b]
                    start[c + 1] += 1
                    block_start[b + 1] += 1
                    pairs[n_pairs, 0], pairs[n_pairs, 1] = b, c
                    n_pairs += 1
    start, block_start = np.cumsum(start), np.cumsum(block_start)
    blocks, holders = np.empty(n_pairs, np.int64), np.empty(n_pairs, np.int64)
    next_block, next_holder = start.copy(), block_start.copy()
    for b, c in pairs[:n_pairs]:
        blocks[next_block[c]] = b
        holders[next_holder[b]] = c
        next_block[c] += 1
        next_holder[b] += 1
    return WeightedClusters(weight, size, start, blocks, block_start, holders, layout.block_size)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def xlogx(x: float) -> float:
    return x * math.log(x) if x > 0 else 0.0


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def joint_xlogx(x: float, y: float) -> float:
    """L(x, y) = (x+y) log(x+y) − x log x − y log y."""
    return float(xlogx(x + y) - xlogx(x) - xlogx(y))


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def size_term(loss: Loss, size: int, cost: float) -> float:
    """g(A) of an estimated cluster, and the same function of a true one; `cost` is per pair, for Binder."""
    if loss.code == BINDER:
        return cost * 0.5 * size * (size - 1.0)
    return xlogx(float(size)) if loss.code == VI else 0.0


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def overlap_term(loss: Loss, shared: int) -> float:
    """h(I, A, C), for B-cubed times (A + C)."""
    if loss.code == BINDER:
        return (loss.false_merge + loss.false_split) * 0.5 * shared * (shared - 1.0)
    return 2.0 * xlogx(float(shared)) if loss.code == VI else 2.0 * float(shared) * shared


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def cluster_loss(loss: Loss, clusters: WeightedClusters, blocks: Ints, counts: Ints, overlap: Ints) -> float:
    """f(ĉ) of the cluster with counts[i] observations of blocks[i]. `overlap` is zeros, before and after."""
    size = counts.sum()
    for i in range(len(blocks)):
        for h in range(clusters.block_start[blocks[i]], clusters.block_start[blocks[i] + 1]):
            overlap[clusters.holders[h]] += counts[i]
    total: float = size_term(loss, size, loss.false_merge)
    for i in range(len(blocks)):
        for h in range(clusters.block_start[blocks[i]], clusters.block_start[blocks[i] + 1]):
            c = clusters.holders[h]
            if overlap[c] > 0:
                scale = float(size + clusters.size[c]) if loss.code == BCUBED else 1.0
                total -= clusters.weight[c] * overlap_term(loss, overlap[c]) / scale
                overlap[c] = 0
    return total


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def expected_loss(
    loss: Loss, clusters: WeightedClusters, order: Ints, group_start: Ints, observation_block: Ints
) -> float:
    """Posterior expected loss of the clustering whose clusters are order[group_start[k]:group_start[k+1]]."""
    overlap = np.zeros(len(clusters.size), np.int64)
    seen = np.full(len(clusters.block_size), -1, np.int64)  # where a block stands in `blocks`
    n = len(order)
    total = float(n) if loss.code == BCUBED else 0.0
    for c in range(len(clusters.size)):
        total += clusters.weight[c] * size_term(loss, clusters.size[c], loss.false_split)
    for k in range(len(group_start) - 1):
        members = order[group_start[k] : group_start[k + 1]]
        blocks = np.empty(len(members), np.int64)
        counts = np.zeros(len(members), np.int64)
        n_blocks = 0
        for x in members:
            b = observation_block[x]
            if seen[b] < 0:
                seen[b] = n_blocks
                blocks[n_blocks] = b
                n_blocks += 1
            counts[seen[b]] += 1
        for b in blocks[:n_blocks]:
            seen[b] = -1
        total += cluster_loss(loss, clusters, blocks[:n_blocks], counts[:n_blocks], overlap)
    total = max(total, 0.0)  # rounding aside, no loss is negative
    return total if loss.code == BINDER else total / max(n, 1)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def minimise(loss: Loss, layout: Layout, clusters: WeightedClusters) -> Ints:
    """For every block the smallest block of its cluster, in the clustering of least expected loss."""
    component: Ints = components(clusters)
    order, start = grouped(component, len(component))
    estimate = component.copy()
    table = np.full(len(clusters.size), -1, np.int32)
    s = 0
    for root in range(len(component)):
        blocks = order[start[root] : start[root + 1]]
        if len(blocks) <= 1 or clusters.block_start[root + 1] - clusters.block_start[root] == 1:
            continue  # no component's smallest block, or a component that is one cluster in every particle
        while layout.blocks_start[s + 1] <= root:
            s += 1
        rows, problem = restrict(layout, s, blocks, table)
        if len(blocks) <= EXACT_BLOCKS:
            assignment = exact_minimiser(loss, problem, rows[0])
        else:
            assignment = searched_minimiser(loss, problem, rows)
        for i in range(len(blocks)):
            first = 0
            while assignment[first] != assignment[i]:
                first += 1
            estimate[blocks[i]] = blocks[first]
    return estimate


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def grouped(keys: Ints, n_keys: int) -> tuple[Ints, Ints]:
    """Indices sorted by key, and where each key's begin."""
    start = np.zeros(n_keys + 1, np.int64)
    for key in keys:
        start[key + 1] += 1
    for key in range(n_keys):
        start[key + 1] += start[key]
    order, at = np.empty(len(keys), np.int64), start.copy()
    for i in range(len(keys)):
        order[at[keys[i]]] = i
        at[keys[i]] += 1
    return order, start


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def components(clusters: WeightedClusters) -> Ints:
    """For every block the smallest block it is connected to through shared clusters."""
    parent = np.arange(len(clusters.block_size))
    for c in range(len(clusters.size)):
        for at in range(clusters.start[c], clusters.start[c + 1]):
            one, other = clusters.blocks[clusters.start[c]], clusters.blocks[at]
            while parent[one] != one:
                parent[one] = parent[parent[one]]
                one = parent[one]
            while parent[other] != other:
                parent[other] = parent[parent[other]]
                other = parent[other]
            parent[max(one, other)] = min(one, other)
    for b in range(len(parent)):
        parent[b] = parent[parent[b]]
    return parent


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def restrict(layout: Layout, s: int, blocks: Ints, table: Cells) -> tuple[Ints, WeightedClusters]:
    """The particles and clusters of some blocks of subproblem s, both numbered afresh."""
    n_blocks, n_rows = len(blocks), layout.rows_start[s + 1] - layout.rows_start[s]
    width = layout.blocks_start[s + 1] - layout.blocks_start[s]
    cells = np.empty(n_rows * n_blocks, np.int32)
    for row in range(n_rows):
        first = layout.cells_start[s] + row * width - layout.blocks_start[s]
        for i in range(n_blocks):
            cells[row * n_blocks + i] = layout.cells[first + blocks[i]]
    n_clusters = renumber(cells, table)
    weights = layout.weights[layout.rows_start[s] : layout.rows_start[s + 1]]
    ends = np.array([[0, n_blocks], [0, n_rows], [0, len(cells)]])
    own = Layout(ends[0], ends[1], ends[2], cells, weights, layout.block_size[blocks])
    return cells.reshape((n_rows, n_blocks)).astype(np.int64), weigh_clusters(own, n_clusters)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def exact_minimiser(loss: Loss, problem: WeightedClusters, best_particle: Ints) -> Ints:
    """The minimiser over all partitions of the blocks; the best particle wherever it does as well."""
    subset_loss = losses_of_subsets(loss, problem)
    n_blocks = len(problem.block_size)
    everything = (1 << n_blocks) - 1
    least = np.zeros(everything + 1)  # of all partitions of a subset, with the cluster of its lowest block
    choice = np.zeros(everything + 1, np.int64)
    for subset in range(1, everything + 1):
        lowest = subset & -subset
        rest = subset ^ lowest
        least[subset] = np.inf
        part = rest
        while True:
            total = subset_loss[part | lowest] + least[rest ^ part]
            if total < least[subset]:
                least[subset] = total
                choice[subset] = part | lowest
            if part == 0:
                break
            part = (part - 1) & rest

    particle_mask = np.zeros(best_particle.max() + 1, np.int64)
    for b in range(n_blocks):
        particle_mask[best_particle[b]] |= 1 << b
    particle_loss = subset_loss[particle_mask].sum()
    scale = np.abs(subset_loss).max()
    if particle_loss <= least[everything] + TOLERANCE * n_blocks * scale:
        return best_particle
    assignment = np.zeros(n_blocks, np.int64)
    remaining = everything
    label = 0
    while remaining:
        for b in range(n_blocks):
            if choice[remaining] >> b & 1:
                assignment[b] = label
        remaining ^= choice[remaining]
        label += 1
    return assignment


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def losses_of_subsets(loss: Loss, problem: WeightedClusters) -> Floats:
    """f of every subset of the blocks, by its bit mask."""
    n_subsets = 1 << len(problem.block_size)
    size = np.zeros(n_subsets, np.int64)
    for b in range(len(problem.block_size)):
        for subset in range(1 << b):
            size[subset | 1 << b] = size[subset] + problem.block_size[b]
    overlap = np.array([overlap_term(loss, shared) for shared in size])
    result = np.array([size_term(loss, total, loss.false_merge) for total in size])
    for c in range(len(problem.size)):
        mask = 0
        for at in range(problem.start[c], problem.start[c + 1]):
            mask |= 1 << problem.blocks[at]
        for subset in range(1, n_subsets):
            scale = float(size[subset] + problem.size[c]) if loss.code == BCUBED else 1.0
            result[subset] -= problem.weight[c] * overlap[subset & mask] / scale
    return result


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def searched_minimiser(loss: Loss, problem: WeightedClusters, rows: Ints) -> Ints:
    """The best local minimum from the particles of least loss, all blocks together, and all apart."""
    n_blocks, n_starts = len(problem.block_size), min(len(rows), PARTICLE_STARTS)
    particle_loss = np.empty(len(rows))
    for p in range(len(rows)):
        particle_loss[p] = partition_loss(loss, problem, rows[p])
    least = particle_loss.min()
    best: Ints = rows[particle_loss.argmin()]
    for attempt in range(n_starts + 2):
        start = np.arange(n_blocks)
        if attempt < n_starts:
            nearest = particle_loss.argmin()
            start = rows[nearest]
            particle_loss[nearest] = np.inf
        elif attempt == n_starts:
            start = np.zeros(n_blocks, np.int64)
        found = local_minimum(loss, problem, start)
        total = partition_loss(loss, problem, found)
        if total < least:
            best, least = found, total
    return best


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def partition_loss(loss: Loss, problem: WeightedClusters, assignment: Ints) -> float:
    """Σ f(ĉ) over the clusters of an assignment of the blocks."""
    overlap = np.zeros(len(problem.size), np.int64)
    n_slots = assignment.max() + 1
    order, start = grouped(assignment, n_slots)
    total = 0.0
    for k in range(n_slots):
        blocks = order[start[k] : start[k + 1]]
        total += cluster_loss(loss, problem, blocks, problem.block_size[blocks], overlap)
    return total


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def local_minimum(loss: Loss, problem: WeightedClusters, start: Ints) -> Ints:
    """Move single blocks, and then whole clusters, until nothing lowers the expected loss."""
    n_blocks, n_clusters = len(problem.block_size), len(problem.size)
    search = Search(
        np.full(n_blocks, -1),
        np.zeros(n_blocks + 1, np.int64),
        np.full(n_blocks + 1, -1),
        np.full(n_blocks, -1),
        np.zeros(n_blocks + 1, np.int64),
        np.full(n_blocks + 1, np.inf),
        np.zeros(n_clusters, np.int64),
        np.zeros(n_clusters, np.int64),
    )
    for b in range(n_blocks):
        slot = 0
        while start[slot] != start[b]:
            slot += 1
        attach(problem, search, b, slot)
    tolerance = rounding(loss, problem.block_size.sum())
    improved = True
    while improved:
        improved = False
        for b in range(n_blocks):
            improved |= shift(loss, problem, search, np.full(1, b), tolerance)
        if not improved:
            for k in range(n_blocks + 1):
                if search.size[k] > 0:
                    improved |= shift(loss, problem, search, members(search, k), tolerance)
    return search.assignment


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def rounding(loss: Loss, n: int) -> float:
    """What a change per observation moved must exceed to count, among n observations."""
    if loss.code == BINDER:
        return TOLERANCE * n * (loss.false_merge + loss.false_split)
    return TOLERANCE * n * (1.0 + math.log(n)) if loss.code == VI else TOLERANCE * n


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def attach(problem: WeightedClusters, search: Search, block: int, k: int) -> None:
    search.assignment[block] = k
    search.size[k] += problem.block_size[block]
    search.following[block] = search.first[k]
    search.first[k] = block


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def detach(problem: WeightedClusters, search: Search, block: int) -> None:
    k = search.assignment[block]
    search.assignment[block] = -1
    search.size[k] -= problem.block_size[block]
    if search.first[k] == block:
        search.first[k] = search.following[block]
    else:
        before = search.first[k]
        while search.following[before] != block:
            before = search.following[before]
        search.following[before] = search.following[block]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def members(search: Search, k: int) -> Ints:
    """The blocks of estimated cluster k."""
    found = np.empty(len(search.assignment), np.int64)
    count = 0
    b = search.first[k]
    while b >= 0:
        found[count] = b
        count += 1
        b = search.following[b]
    return found[:count]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def shift(loss: Loss, problem: WeightedClusters, search: Search, moving: Ints, tolerance: float) -> bool:
    """Move some blocks of one estimated cluster to where they cost least; tell whether that is elsewhere."""
    old, added = search.assignment[moving[0]], 0
    for b in moving:
        detach(problem, search, b)
        added += problem.block_size[b]
    candidates = joining_losses(loss, problem, search, moving, added)
    best, least = old, 0.0  # what a cluster of its own costs
    if search.size[old] > 0:
        least = search.change[old]
        if least > tolerance * added:
            best, least = np.argmin(search.size), 0.0
    for k in candidates:
        if search.change[k] < least - tolerance * added:
            best, least = k, search.change[k]
        search.change[k] = np.inf
    for b in moving:
        attach(problem, search, b, best)
    return bool(best != old)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def joining_losses(loss: Loss, problem: WeightedClusters, search: Search, moving: Ints, added: int) -> Ints:
    """The estimated clusters ĉ that are ever together with the detached blocks d, of `added` observations.

    Sets change[k] to f(ĉ ∪ d) − f(ĉ) − f(d). With B = |d|, and J = |d ∩ c|, that is

        Binder    m·A·B − Σ_c P(c) (m+s)·I·J
        VI        L(A, B) − 2 Σ_c P(c) L(I, J),    L(x, y) = (x+y) log(x+y) − x log x − y log y
        B-cubed   D(ĉ, B) + D(d, A) − Σ_c P(c) 4·I·J/(A+B+C),    D(ĉ, B) = Σ_c P(c) 2I² B / ((A+C)(A+B+C))
    """
    held, n_held = np.empty(len(problem.size), np.int64), 0
    for b in moving:
        for c in problem.holders[problem.block_start[b] : problem.block_start[b + 1]]:
            if search.amount[c] == 0:
                held[n_held] = c
                n_held += 1
            search.amount[c] += problem.block_size[b]
    found, n_found = np.empty(len(search.size), np.int64), 0
    touched = np.empty(len(search.size), np.int64)
    for c in held[:n_held]:
        n_touched = 0
        for b in problem.blocks[problem.start[c] : problem.start[c + 1]]:
            k = search.assignment[b]
            if k >= 0:
                if search.share[k] == 0:
                    touched[n_touched] = k
                    n_touched += 1
                search.share[k] += problem.block_size[b]
        for k in touched[:n_touched]:
            if search.change[k] == np.inf:
                found[n_found] = k
                n_found += 1
                search.change[k] = size_change(loss, problem, search, k, held[:n_held], added)
            total = float(search.size[k] + added + problem.size[c])
            gain = overlap_gain(loss, float(search.share[k]), float(search.amount[c]), total)
            search.change[k] -= problem.weight[c] * gain
            search.share[k] = 0
    for c in held[:n_held]:
        search.amount[c] = 0
    return found[:n_found]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def overlap_gain(loss: Loss, one: float, other: float, total: float) -> float:
    """The term of a cluster c that shares `one` with ĉ and `other` with d; `total` is A + B + C."""
    if loss.code == BINDER:
        return (loss.false_merge + loss.false_split) * one * other
    return 2.0 * joint_xlogx(one, other) if loss.code == VI else 4.0 * one * other / total


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def size_change(
    loss: Loss, problem: WeightedClusters, search: Search, k: int, held: Ints, added: int
) -> float:
    """The terms that depend on the size of ĉ ∪ d alone: m·A·B, or L(A, B), or D(ĉ, B) + D(d, A)."""
    size = search.size[k]
    if loss.code == BINDER:
        return loss.false_merge * float(size) * added
    if loss.code == VI:
        return float(joint_xlogx(float(size), float(added)))
    total = 0.0
    for c in held:
        total += dilution(problem, c, search.amount[c], added, size)
    for adding in (True, False):
        b = search.first[k]
        while b >= 0:
            for c in problem.holders[problem.block_start[b] : problem.block_start[b + 1]]:
                if adding:
                    search.overlap[c] += problem.block_size[b]
                elif search.overlap[c] > 0:
                    total += dilution(problem, c, search.overlap[c], size, added)
                    search.overlap[c] = 0
            b = search.following[b]
    return total


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def dilution(problem: WeightedClusters, c: int, shared: int, size: int, added: int) -> float:
    """The term of cluster c in D(ĉ, B): what B foreign observations in ĉ cost."""
    before = float(size + problem.size[c])
    return float(problem.weight[c] * 2.0 * shared * shared * added / (before * (before + added)))
