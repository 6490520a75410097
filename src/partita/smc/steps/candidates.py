"""Step 0, candidates: the subproblems that x is scored against (DESIGN, section 5).

Without an index they are all there are, and the steps that follow are exact. With one, the keys of x lead to
earlier observations, those to their blocks and subproblems. The rarest key comes first, as it says most, and
within a key the latest observation, until so many have been visited that the budget is spent. Of the
subproblems met, those stay that share most with x, a key counting −log of the share of observations that have
it: the cost of an observation is bounded however common its keys are, and however many subproblems there are.

Out: ``candidates``, in order of their slots, which decides ties. No later step looks at any other subproblem.
"""

from __future__ import annotations

import math

import numpy as np

from partita._core.kernel import inner, kernel, shared
from partita._core.sorting import descending
from partita.smc.state.index import COUNT, FIRST, insert, slot
from partita.smc.state.state import n_present

BUDGET = 1000  # observations that a look-up visits at most
MOST = 10  # subproblems that x is scored against at most


@inner
def meet_all(state):
    """Make every subproblem a candidate."""
    candidates, subproblems, count = state.candidates, state.subproblems, 0
    for s in range(state.n_subproblems):
        if subproblems[s].rows > 0:
            candidates[count] = s
            count += 1
    state.n_candidates = count


@inner
def meet_keys(state, keys, first, last):
    """Make the subproblems of observations that share ``keys[first:last]`` candidates."""
    table, owners, n = state.index.table, state.index.owners, last - first
    rows, rarity = np.empty(n, np.int64), np.empty(n)
    for k in range(n):
        rows[k] = slot(table, keys[first + k])
        rarity[k] = -table[rows[k], COUNT]
    observations, blocks, met, met_at = state.observations, state.blocks, state.met, state.met_at
    left, count = BUDGET, np.int64(0)
    found, latest, shared = np.empty(BUDGET), np.empty(BUDGET, np.int64), np.empty(BUDGET)
    state.tick += 1
    for k in descending(rarity, n):
        begin, times = table[rows[k], FIRST], table[rows[k], COUNT]
        worth = math.log((n_present(state) + 1.0) / max(times, 1.0))
        for at in range(begin + times - 1, max(begin, begin + times - left) - 1, -1):
            block = observations[owners[at]].block
            if block >= 0:  # it has not been taken out
                s = blocks[block].subproblem
                if met[s] != state.tick:
                    met[s], met_at[s] = state.tick, count
                    found[count], latest[count], shared[count] = -s, -1, 0.0
                    count += 1
                if latest[met_at[s]] != k:
                    latest[met_at[s]] = k
                    shared[met_at[s]] += worth
        left = max(left - times, 0)
    keep_most_shared(state, found, shared, count)


@inner
def keep_most_shared(state, found, shared, count):
    """Make those that share most candidates, in order of their slots; of equal ones those met first."""
    if count > MOST:
        best = descending(shared, count)
        kept = np.empty(MOST)
        for k in range(MOST):
            kept[k] = found[best[k]]
        found, count = kept, np.int64(MOST)
    order = descending(found, count)
    for k in range(count):
        state.candidates[k] = -np.int64(found[order[k]])
    state.n_candidates = count


@shared
def find_candidates(state, x):
    """The candidates for observation ``x``, which is stored."""
    index = state.index
    if index.on:
        meet_keys(state, index.keys, index.starts[x], index.starts[x + 1])
    else:
        meet_all(state)


@inner
def find_candidates_of_row(state, starts, keys, row):
    """The candidates for a row that is not stored, with its keys; no ``starts`` make it meet them all."""
    if starts.shape[0] > 0:
        meet_keys(state, keys, starts[row], starts[row + 1])
    else:
        meet_all(state)


@inner
def count_in(state):
    """The next observation is in the state: count it, and let others find it."""
    if state.index.on:
        insert(state.index, state.n_observations)
    state.n_observations += 1


@kernel
def candidates_of(state, x):
    """For a user's model: find the candidates for observation ``x``."""
    find_candidates(state, x)


@kernel
def candidates_of_row(state, starts, keys, row):
    """For a user's model, and for reports: find the candidates for a row that is not stored."""
    find_candidates_of_row(state, starts, keys, row)
    return state.candidates[: state.n_candidates].copy()


@kernel
def kept_keys(state):
    """Whether the index is in use, and copies of what it is made from; removed observations have no keys."""
    index, n = state.index, state.n_observations if state.index.on else np.int64(0)
    starts, keys = np.zeros(n + 1, np.int64), np.empty(index.starts[n], np.int64)
    at = np.int64(0)
    for x in range(n):
        if state.observations[x].block >= 0:
            for p in range(index.starts[x], index.starts[x + 1]):
                keys[at] = index.keys[p]
                at += 1
        starts[x + 1] = at
    return index.on, starts, keys[:at]
