"""Step 1, update: every way the new observation x can extend a particle (paper, section 3.3).

In: the candidates, and the ``gain`` log|c| + log p(x|c) of each of their clusters. Out: the *putative*
particles, each one a (subproblem, row, cluster) with weight w(s, i)·|c|·p(x|c), or w(s, i)·α·p(x) for the
empty cluster 0. The weights of each subproblem are normalised before they are pooled. That x is alone is one
and the same event in every subproblem, so only the *home* subproblem, which holds the best assignment to an
existing cluster, may propose it. Nothing in the state changes but working memory.

A pool for greedy resampling keeps only the m heaviest, and passes over every subproblem and every row whose
bound shows that it cannot be among them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partita._kernel import inner
from partita._typing import Array
from partita.models.families import gains
from partita.smc.state import descending


class Particles(NamedTuple):
    """Putative or retained particles."""

    weight: Array  # (n,): log-weights
    where: Array  # (n, 3): subproblem, row, and the cluster that x joins


@inner
def score(state, family, data, x):
    """Score row ``x`` of the data against every cluster of the candidates (paper, eq. 1, in logarithms)."""
    cells, subproblems, candidates = state.cells, state.subproblems, state.candidates
    ids = state.child  # long enough, and not in use until x is placed
    ids[0] = 0  # the empty cluster first
    count = 1
    for q in range(state.n_candidates):
        sub = subproblems[candidates[q]]
        first = sub.cells + sub.columns
        for k in range(first, first + sub.clusters):
            ids[count] = cells[k]
            count += 1
    gains(family, state.statistics, ids, 0, count, data, x, state.gain)


@inner
def find_home(state):
    """The candidate that holds the best assignment of x to an existing cluster; −1 if there is no cluster.

    On the way, finds the largest gain in each candidate, which no putative particle of it can exceed.
    """
    cells, weights, gain, bound = state.cells, state.weights, state.gain, state.bound
    subproblems, candidates, n = state.subproblems, state.candidates, state.n_candidates
    home, first, highest = -1, 0, -np.inf
    for q in range(n):
        home = candidates[q]  # should x be impossible in every cluster
        sub = subproblems[home]
        best = -np.inf
        at = sub.cells + sub.columns
        for k in range(at, at + sub.clusters):
            best = max(best, gain[cells[k]])
        bound[home] = best
        if best > highest:
            first, highest = q, best
    best = -np.inf
    for k in range(n):
        # From the most promising one on, nearly all others are ruled out by their bounds.
        s = candidates[first if k == 0 else (k - 1 if k <= first else k)]
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
def expand(state, s, home, least):
    """The putative particles of subproblem ``s`` that are heavier than ``least``."""
    cells, weights, gain, seen = state.cells, state.weights, state.gain, state.seen
    new = state.log_alpha + gain[0] if s == home else -np.inf
    bound = max(state.bound[s], new)
    sub = state.subproblems[s]
    size = sub.rows * (sub.columns + 1)
    weight, where = np.empty(size), np.empty((size, 3), np.int64)
    count = 0
    at = sub.cells + sub.columns + sub.clusters
    mark = state.tick
    state.tick += sub.rows
    for i in range(sub.rows):
        before = weights[sub.weights + i]
        if before + bound <= least:
            break  # rows are in descending order of weight
        mark += 1
        if before + new > least:
            weight[count] = before + new
            where[count, 0], where[count, 1], where[count, 2] = s, i, 0
            count += 1
        for j in range(at + i * sub.columns, at + (i + 1) * sub.columns):
            c = cells[j]
            if seen[c] != mark:
                seen[c] = mark
                if before + gain[c] > least:
                    weight[count] = before + gain[c]
                    where[count, 0], where[count, 1], where[count, 2] = s, i, c
                    count += 1
    return Particles(weight[:count], where[:count])


@inner
def kth_largest(values, n, k):
    """The k-th largest of the first ``n`` values, 1 ≤ k ≤ n: quickselect on a copy."""
    copy = np.empty(n)
    for i in range(n):
        copy[i] = values[i]
    low, high = 0, n - 1
    while low < high:
        pivot = copy[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while copy[i] > pivot:
                i += 1
            while copy[j] < pivot:
                j -= 1
            if i <= j:
                copy[i], copy[j] = copy[j], copy[i]
                i += 1
                j -= 1
        if k - 1 <= j:
            high = j
        elif k - 1 >= i:
            low = i
        else:
            break
    return copy[k - 1]


@inner
def heaviest(a, b, size):
    """The ``size`` heaviest of two lists of particles, heaviest first; of equal ones the first."""
    n_a, n = a.weight.shape[0], a.weight.shape[0] + b.weight.shape[0]
    weight = np.empty(n)
    for k in range(n):
        weight[k] = a.weight[k] if k < n_a else b.weight[k - n_a]
    entries = np.empty(n, np.int64)
    kept = np.int64(0)
    least = kth_largest(weight, n, size) if n > size else -np.inf
    equal = size if n > size else 0  # room left for those as heavy as the lightest
    for k in range(n):
        equal -= n > size and weight[k] > least
    for k in range(n):
        if weight[k] > least or (weight[k] == least and equal > 0):
            equal -= weight[k] == least
            entries[kept] = k
            weight[kept] = weight[k]
            kept += 1
    order = descending(weight, kept)
    result = Particles(np.empty(kept), np.empty((kept, 3), np.int64))
    for k in range(kept):
        result.weight[k] = weight[order[k]]
        entry = entries[order[k]]
        for j in range(3):
            result.where[k, j] = a.where[entry, j] if entry < n_a else b.where[entry - n_a, j]
    return result


@inner
def pool_putative(state, home, size):
    """The ``size`` heaviest putative particles of the candidates not dropped, heaviest first."""
    candidates, dropped, bound = state.candidates, state.dropped, state.bound
    pool = Particles(np.empty(0), np.empty((0, 3), np.int64))
    least = -np.inf
    for q in range(-1, state.n_candidates):
        s = home if q < 0 else candidates[q]  # the home first: its particles rule out most others
        if (q >= 0 and s == home) or dropped[s]:
            continue
        if q < 0 or bound[s] > least:
            pool = heaviest(pool, expand(state, s, home, least), size)
            if pool.weight.shape[0] == size:
                least = pool.weight[size - 1]
    return pool
