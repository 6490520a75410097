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

import math
from typing import NamedTuple

import numpy as np

from partita._kernel import kernel
from partita._typing import Array
from partita.models.families import log_predictive
from partita.smc.state import descending, marks


class Particles(NamedTuple):
    """Putative or retained particles, of which ``count[0]`` are there."""

    weight: Array  # log-weights
    subproblem: Array
    row: Array
    cluster: Array
    count: Array  # (1,)


@kernel
def new_particles(size):
    """Room for so many particles."""
    return Particles(
        np.empty(size),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.zeros(1, np.int64),
    )


@kernel
def score(state, family, x):
    """Score observation ``x`` against every cluster (paper, eq. 1, in logarithms), and bound subproblems."""
    statistics, cells, clusters = state.statistics, state.cells, state.clusters
    subproblems, gain, data = state.subproblems, state.gain, state.data
    gain[0] = log_predictive(family, statistics, 0, data, x)
    for s in range(state.n_subproblems):
        sub = subproblems[s]
        if sub.rows > 0:
            first = sub.cells + sub.columns
            for k in range(first, first + sub.clusters):
                c = cells[k]
                gain[c] = math.log(clusters[c].size) + log_predictive(family, statistics, c, data, x)


@kernel
def find_bounds(state):
    """The largest gain within each subproblem, which no putative particle of it can exceed."""
    cells, gain, bound = state.cells, state.gain, state.bound
    for s in range(state.n_subproblems):
        sub = state.subproblems[s]
        best = -np.inf
        if sub.rows > 0:
            first = sub.cells + sub.columns
            for k in range(first, first + sub.clusters):
                best = max(best, gain[cells[k]])
        bound[s] = best


@kernel
def find_home(state):
    """The subproblem that holds the best assignment of x to an existing cluster; −1 if there is none."""
    cells, weights, gain, bound = state.cells, state.weights, state.gain, state.bound
    first = 0  # from the most promising subproblem on, nearly all others are ruled out by their bounds
    for s in range(state.n_subproblems):
        if bound[s] > bound[first]:
            first = s
    home, best = -1, -np.inf
    for k in range(-1, state.n_subproblems):
        s = first if k < 0 else k
        if s >= state.n_subproblems or bound[s] <= best:
            continue
        sub = state.subproblems[s]
        at = sub.cells + sub.columns + sub.clusters
        for i in range(sub.rows):
            weight = weights[sub.weights + i]
            if weight + bound[s] <= best:
                break  # rows are in descending order of weight
            for j in range(at + i * sub.columns, at + (i + 1) * sub.columns):
                if weight + gain[cells[j]] > best:
                    home, best = s, weight + gain[cells[j]]
    return home


@kernel
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


@kernel
def sift_up(heap, keys, start):
    """Restore the order of a heap of indices, smallest key at the top, from ``start`` upwards."""
    entry = heap[start]
    while start > 0 and keys[entry] < keys[heap[(start - 1) // 2]]:
        heap[start] = heap[(start - 1) // 2]
        start = (start - 1) // 2
    heap[start] = entry


@kernel
def offer(pool, heap, weight, s, row, cluster):
    """Offer a putative particle to a pool of the heaviest."""
    count = pool.count[0]
    size = pool.weight.shape[0]
    if count < size:
        entry = count
        heap[count] = count
        pool.count[0] = count + 1
    else:
        entry = heap[0]
        if weight <= pool.weight[entry]:
            return
    pool.weight[entry] = weight
    pool.subproblem[entry] = s
    pool.row[entry] = row
    pool.cluster[entry] = cluster
    if count < size:
        sift_up(heap, pool.weight, count)
    else:
        sift_down(heap, pool.weight, 0, size)


@kernel
def expand(state, s, is_home, pool, heap):
    """Offer every putative particle of subproblem ``s`` that can still enter the pool."""
    cells, weights, gain, seen = state.cells, state.weights, state.gain, state.seen
    size = pool.weight.shape[0]
    new = state.log_alpha + gain[0]
    bound = max(state.bound[s], new) if is_home else state.bound[s]
    sub = state.subproblems[s]
    at = sub.cells + sub.columns + sub.clusters
    visit = marks(state, sub.rows)
    for i in range(sub.rows):
        weight = weights[sub.weights + i]
        if pool.count[0] == size and weight + bound <= pool.weight[heap[0]]:
            break
        if is_home:
            offer(pool, heap, weight + new, s, i, 0)
        for j in range(at + i * sub.columns, at + (i + 1) * sub.columns):
            c = cells[j]
            if seen[c] != visit + i:
                seen[c] = visit + i
                offer(pool, heap, weight + gain[c], s, i, c)


@kernel
def pool_putative(state, home, size, dropped):
    """The ``size`` heaviest putative particles of the subproblems not dropped, heaviest first."""
    pool, heap = new_particles(size), np.empty(size, np.int64)
    if not dropped[home]:
        expand(state, home, True, pool, heap)
    for s in range(state.n_subproblems):
        if s == home or dropped[s] or state.subproblems[s].rows == 0:
            continue
        if pool.count[0] < size or state.bound[s] > pool.weight[heap[0]]:
            expand(state, s, False, pool, heap)
    return reorder(pool, descending(pool.weight, pool.count[0]))


@kernel
def reorder(particles, order):
    """Some particles, in a given order."""
    n = order.shape[0]
    result = new_particles(n)
    for k in range(n):
        result.weight[k] = particles.weight[order[k]]
        result.subproblem[k] = particles.subproblem[order[k]]
        result.row[k] = particles.row[order[k]]
        result.cluster[k] = particles.cluster[order[k]]
    result.count[0] = n
    return result
