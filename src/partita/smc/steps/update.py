"""Step 1, update: every way the new observation x can extend a particle (paper, section 3.3).

In: the candidates, and the ``gain`` log|c| + log p(x|c) of each of their clusters. Out of :func:`update`: the
*putative* particles, each one a (subproblem, row, cluster) with weight w(s, i)·|c|·p(x|c), or w(s, i)·α·p(x) for
the empty cluster 0. The weights of each subproblem are normalised before they are pooled. That x is alone is one
and the same event in every subproblem, so only the *home* subproblem, which holds the best assignment to an
existing cluster (:func:`find_home`), may propose it. Nothing in the state changes but working memory.

A pool for greedy resampling keeps only the m heaviest, and passes over every subproblem and every row whose
bound shows that it cannot be among them. Where the model's family has a *ceiling* for the gains of a whole
subproblem, the clusters of a large one are scored late, if at all: when its ceiling does not rule it out. The
result is the same to the last bit.

Where partitions are let go against which the odds are too long, putative particles are too. Then of a family without
ceilings only the clusters of each candidate's best partition are scored at first; those of its other partitions, which
differ little, only where the best one is within these odds of the best of all.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from partita._core.kernel import INNER, inner, shared
from partita._core.sorting import descending, kth_largest
from partita._core.typing import Array
from partita.models.scoring.families import ceiling, enclose, gains, has_ceiling, is_family

FEW = 3  # clusters that are scored rather than bounded
ROUNDING = 1e-9  # relative: what ceilings may be off by


class Particles(NamedTuple):
    """Putative or retained particles."""

    weight: Array  # (n,): log-weights
    where: Array  # (n, 3): subproblem, row, and the cluster that x joins


@inner
def list_clusters(state, s, count):
    """Append the clusters of subproblem ``s`` to a list of ``count`` ids; returns how many there are then."""
    ids, cells, sub = state.child, state.cells, state.subproblems[s]  # not in use until x is placed
    first = sub.cells + sub.columns
    for k in range(first, first + sub.clusters):
        ids[count] = cells[k]
        count += 1
    return count


@inner
def score(state, family, data, x):
    """Score row ``x`` of the data against every cluster of the candidates (paper, eq. 1, in logarithms)."""
    state.child[0] = 0  # the empty cluster first
    count = np.int64(1)
    for q in range(state.n_candidates):
        state.late[state.candidates[q]] = False
        count = list_clusters(state, state.candidates[q], count)
    gains(family, state.statistics, state.child, np.int64(0), count, data, x, state.gain)
    state.n_scored = count


@inner
def score_all(state, family, x):
    """:func:`score` for a stored observation."""
    score(state, family, state.data, x)


@inner
def score_few(state, family, x):
    """Score a stored observation against candidates of few clusters, and bound the gains of the others."""
    late, candidates, n = state.late, state.candidates, state.subproblems.shape[0]
    if state.hulls.shape[0] < n:
        state.hulls = np.empty((n, state.statistics.shape[1]))
    state.child[0] = 0
    count = np.int64(1)
    for q in range(state.n_candidates):
        s = candidates[q]
        late[s] = state.subproblems[s].clusters > FEW and state.n_candidates > 1
        if not late[s]:
            count = list_clusters(state, s, count)
    gains(family, state.statistics, state.child, np.int64(0), count, state.data, x, state.gain)
    state.n_scored = count
    for q in range(state.n_candidates):
        s = candidates[q]
        if late[s]:
            if not state.enclosed[s]:
                count = list_clusters(state, s, np.int64(0))
                d = state.data.shape[1]
                enclose(family, state.statistics, state.child, 0, count, state.hulls, s, d)
                state.enclosed[s] = True
            highest = ceiling(family, state.hulls, s, state.data, x)
            state.bound[s] = highest + ROUNDING * (1.0 + abs(highest))


@inner
def list_best(state, s, count):
    """Append the clusters of the best partition of subproblem ``s`` to a list; returns how many there are then."""
    ids, cells, seen, sub = state.child, state.cells, state.seen, state.subproblems[s]
    first = sub.cells + sub.columns + sub.clusters
    for k in range(first, first + sub.columns):
        if seen[cells[k]] != state.tick:
            seen[cells[k]] = state.tick
            ids[count] = cells[k]
            count += 1
    return count


@inner
def score_best(state, family, x):
    """Score a stored observation against the best partition of each candidate, and leave the others for later."""
    late, candidates, gain = state.late, state.candidates, state.gain
    state.tick += 1
    state.child[0] = 0
    count = np.int64(1)
    for q in range(state.n_candidates):
        late[candidates[q]] = state.subproblems[candidates[q]].rows > 1
        count = list_best(state, candidates[q], count)
    gains(family, state.statistics, state.child, np.int64(0), count, state.data, x, gain)
    state.n_scored = count
    margin = math.log(state.longest_odds)
    for q in range(state.n_candidates):
        s = candidates[q]
        sub, highest = state.subproblems[s], -np.inf
        first = sub.cells + sub.columns + sub.clusters
        for k in range(first, first + sub.columns):
            highest = max(highest, gain[state.cells[k]])
        state.bound[s] = highest + margin


@inner
def score_likely(state, family, x):
    """Score a stored observation against every candidate, or first against their best partitions."""
    if state.longest_odds > 0 and state.n_candidates > 1:
        score_best(state, family, x)
    else:
        score_all(state, family, x)


def score_promising(state: Any, family: Any, x: Any) -> None:
    """Score a stored observation against every candidate, or where some can be ruled out only against others."""


@overload(score_promising, jit_options=INNER)
def _score_promising(state, family, x):
    return score_few.py_func if has_ceiling(family) else score_likely.py_func


@inner
def score_one(state, family, x, s):
    """Score a stored observation against a candidate left for later."""
    n = list_clusters(state, s, np.int64(0))
    gains(family, state.statistics, state.child, np.int64(0), n, state.data, x, state.gain)
    state.n_scored += n
    state.late[s] = False
    state.bound[s] = largest_gain(state, s)


@inner
def score_none(state, family, x, s):
    """Nothing is left for later."""


def score_late(state: Any, family: Any, x: Any, s: Any) -> None:
    """Score against a candidate left for later, which only a compiled family does."""


@overload(score_late, jit_options=INNER)
def _score_late(state, family, x, s):
    return score_one.py_func if is_family(family) else score_none.py_func


@inner
def largest_gain(state, s):
    """The largest gain in a candidate, which no putative particle of it can exceed."""
    cells, gain, sub = state.cells, state.gain, state.subproblems[s]
    best = -np.inf
    at = sub.cells + sub.columns
    for k in range(at, at + sub.clusters):
        best = max(best, gain[cells[k]])
    return best


@inner
def find_bounds(state):
    """The largest gain in each candidate that is scored."""
    for q in range(state.n_candidates):
        s = state.candidates[q]
        if not state.late[s]:
            state.bound[s] = largest_gain(state, s)


@inner
def highest_bound(state):
    """The place among the candidates of the first with the highest bound."""
    first, highest = 0, -np.inf
    for q in range(state.n_candidates):
        if state.bound[state.candidates[q]] > highest:
            first, highest = q, state.bound[state.candidates[q]]
    return first


@inner
def find_home(state, family, x):
    """The candidate that holds the best assignment of x to an existing cluster; −1 if there is no cluster."""
    cells, weights, gain, bound = state.cells, state.weights, state.gain, state.bound
    subproblems, candidates, n = state.subproblems, state.candidates, state.n_candidates
    if n == 0:
        return -1
    find_bounds(state)
    first = highest_bound(state)
    while state.late[candidates[first]]:
        score_late(state, family, x, candidates[first])
        first = highest_bound(state)
    home, best = candidates[n - 1], -np.inf  # should x be impossible in every cluster
    for k in range(n):
        # From the most promising one on, nearly all others are ruled out by their bounds.
        s = candidates[first if k == 0 else (k - 1 if k <= first else k)]
        if bound[s] > best and state.late[s]:
            score_late(state, family, x, s)
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


@shared
def update(state, family, x, home, size):
    """The ``size`` heaviest putative particles of the candidates not dropped, heaviest first, and how many the
    pool was chosen from."""
    candidates, dropped, bound = state.candidates, state.dropped, state.bound
    pool = Particles(np.empty(0), np.empty((0, 3), np.int64))
    least, pooled = -np.inf, 0
    for q in range(-1, state.n_candidates):
        s = home if q < 0 else candidates[q]  # the home first: its particles rule out most others
        if (q >= 0 and s == home) or dropped[s]:
            continue
        if bound[s] > least and state.late[s]:
            score_late(state, family, x, s)
        if q < 0 or bound[s] > least:
            more = expand(state, s, home, least)
            pooled += more.weight.shape[0]
            pool = heaviest(pool, more, size)
            if pool.weight.shape[0] == size:
                least = pool.weight[size - 1]
            if state.longest_odds > 0:
                least = max(least, pool.weight[0] - math.log(state.longest_odds))
    n = pool.weight.shape[0]
    while n > 1 and pool.weight[n - 1] < least:
        n -= 1
    return Particles(pool.weight[:n], pool.where[:n]), pooled
