"""Step 1, update: every way the new observation x can extend a particle (paper, section 3.3).

In: the state, and each cluster's ``gain`` log|c| + log p(x|c). Out: the *putative* particles, each one a
(subproblem, row, cluster) with weight w(s, i)·|c|·p(x|c), or w(s, i)·α·p(x) for the empty cluster 0. The
weights of each subproblem are normalised before they are pooled. That x is alone is one and the same event
in every subproblem, so only the *home* subproblem, which holds the best assignment to an existing cluster,
may propose it. Nothing in the state changes but working memory.

A pool for greedy resampling keeps only the m heaviest, in a heap, and passes over every subproblem and every
row whose bound shows that it cannot be among them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partita._kernel import inner
from partita._typing import Array
from partita.models.families import log_predictives
from partita.smc.state import descending


class Particles(NamedTuple):
    """Putative or retained particles."""

    weight: Array  # (n,): log-weights
    where: Array  # (n, 3): subproblem, row, and the cluster that x joins


@inner
def score(state, family, x):
    """Score observation ``x`` against every cluster (paper, eq. 1, in logarithms)."""
    cells, subproblems, clusters, gain = state.cells, state.subproblems, state.clusters, state.gain
    ids = np.zeros(state.n_clusters, np.int64)  # the empty cluster first
    count = 1
    for s in range(state.n_subproblems):
        sub = subproblems[s]
        if sub.rows > 0:
            first = sub.cells + sub.columns
            for k in range(first, first + sub.clusters):
                ids[count] = cells[k]
                count += 1
    log_predictives(family, state.statistics, ids, 0, count, state.data, x, gain)
    for k in range(1, count):
        gain[ids[k]] += clusters[ids[k]].log_size


@inner
def find_home(state):
    """The subproblem that holds the best assignment of x to an existing cluster; −1 if there is none.

    On the way, finds the largest gain in each subproblem, which no putative particle of it can exceed.
    """
    cells, weights, gain, bound = state.cells, state.weights, state.gain, state.bound
    subproblems, n = state.subproblems, state.n_subproblems
    first = 0
    for s in range(n):
        sub = subproblems[s]
        best = -np.inf
        if sub.rows > 0:
            at = sub.cells + sub.columns
            for k in range(at, at + sub.clusters):
                best = max(best, gain[cells[k]])
        bound[s] = best
        if best > bound[first]:
            first = s
    home, best = -1, -np.inf
    for k in range(n):
        # From the most promising one on, nearly all others are ruled out by their bounds.
        s = first if k == 0 else (k - 1 if k <= first else k)
        if bound[s] <= best:
            continue
        sub = subproblems[s]
        at = sub.cells + sub.columns + sub.clusters
        for i in range(sub.rows):
            weight = weights[sub.weights + i]
            if weight + bound[s] <= best:
                break  # rows are in descending order of weight
            for j in range(at + i * sub.columns, at + (i + 1) * sub.columns):
                if weight + gain[cells[j]] > best:
                    home, best = s, weight + gain[cells[j]]
    return home


@inner
def sift_down(heap, keys, start, count):
    """Restore the order of a heap of indices, smallest key at the top, from ``start`` downwards."""
    entry = heap[start]
    while 2 * start + 1 < count:
        below = 2 * start + 1
        if below + 1 < count and keys[heap[below + 1]] < keys[heap[below]]:
            below += 1
        if keys[entry] <= keys[heap[below]]:
            break
        heap[start] = heap[below]
        start = below
    heap[start] = entry


@inner
def sift_up(heap, keys, start):
    """Restore the order of a heap of indices, smallest key at the top, from ``start`` upwards."""
    entry = heap[start]
    while start > 0 and keys[entry] < keys[heap[(start - 1) // 2]]:
        heap[start] = heap[(start - 1) // 2]
        start = (start - 1) // 2
    heap[start] = entry


@inner
def offer(pool, heap, count, weight, s, row, cluster):
    """Put a putative particle into a pool of the heaviest, in the place of the lightest if it is full."""
    size = pool.weight.shape[0]
    entry = count if count < size else heap[0]
    pool.weight[entry] = weight
    pool.where[entry, 0], pool.where[entry, 1], pool.where[entry, 2] = s, row, cluster
    if count == size:
        sift_down(heap, pool.weight, 0, size)
        return count
    heap[count] = count
    sift_up(heap, pool.weight, count)
    return count + 1


@inner
def expand(state, s, home, pool, heap, count):
    """Offer every putative particle of subproblem ``s`` that can still enter the pool."""
    cells, weights, gain, seen = state.cells, state.weights, state.gain, state.seen
    size = pool.weight.shape[0]
    least = pool.weight[heap[0]] if count == size else -np.inf  # what a particle must exceed
    new = state.log_alpha + gain[0] if s == home else -np.inf
    bound = max(state.bound[s], new)
    sub = state.subproblems[s]
    at = sub.cells + sub.columns + sub.clusters
    mark = state.tick
    state.tick += sub.rows
    for i in range(sub.rows):
        weight = weights[sub.weights + i]
        if weight + bound <= least:
            break
        mark += 1
        if weight + new > least:
            count = offer(pool, heap, count, weight + new, s, i, np.int64(0))
            least = pool.weight[heap[0]] if count == size else -np.inf
        for j in range(at + i * sub.columns, at + (i + 1) * sub.columns):
            c = cells[j]
            if seen[c] != mark:
                seen[c] = mark
                if weight + gain[c] > least:
                    count = offer(pool, heap, count, weight + gain[c], s, i, c)
                    least = pool.weight[heap[0]] if count == size else -np.inf
    return count


@inner
def pool_putative(state, home, size, dropped):
    """The ``size`` heaviest putative particles of the subproblems not dropped, heaviest first."""
    pool = Particles(np.empty(size), np.empty((size, 3), np.int64))
    heap = np.empty(size, np.int64)
    count = np.int64(0)
    for k in range(-1, state.n_subproblems):
        s = home if k < 0 else k  # the home first: its particles rule out most others
        if (k == home) or dropped[s] or state.subproblems[s].rows == 0:
            continue
        if count < size or k < 0 or state.bound[s] > pool.weight[heap[0]]:
            count = expand(state, s, home, pool, heap, count)
    order = descending(pool.weight, count)
    result = Particles(np.empty(count), np.empty((count, 3), np.int64))
    for k in range(count):
        result.weight[k] = pool.weight[order[k]]
        for j in range(3):
            result.where[k, j] = pool.where[order[k], j]
    return result
