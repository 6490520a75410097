"""Step 0, candidates: the subproblems that x is scored against (DESIGN, section 5).

Without an index they are all there are, and the steps that follow are exact. With one, the keys of x lead to
earlier observations, those to their blocks and subproblems. The rarest key comes first, as it says most, and
within a key the latest observation, until so many have been visited that the budget is spent: the cost of an
observation is bounded however common its keys are, and however many subproblems there are.

Out: ``candidates``, in order of their slots, which decides ties. No later step looks at any other subproblem.
"""

from __future__ import annotations

import numpy as np

from partita._kernel import inner, kernel
from partita.smc.index import insert, slot
from partita.smc.state import descending

BUDGET = 1000  # observations that a look-up visits at most


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
    """Make the subproblems of observations that share one of ``keys[first:last]`` candidates."""
    index, n = state.index, last - first
    heads, rarity = np.empty(n, np.int64), np.empty(n)
    for k in range(n):
        at = slot(index.heads, index.keys, keys[first + k])
        heads[k], rarity[k] = index.heads[at], -index.counts[at]
    met, left, count = state.met, BUDGET, 0
    found = np.empty(BUDGET)
    state.tick += 1
    for k in descending(rarity, n):
        p = heads[k]
        while p >= 0 and left > 0:
            left -= 1
            block = state.observations[index.owner[p]].block
            if block >= 0:  # it has not been taken out
                s = state.blocks[block].subproblem
                if met[s] != state.tick:
                    met[s] = state.tick
                    found[count] = -s
                    count += 1
            p = index.earlier[p]
    order = descending(found, count)
    for k in range(count):
        state.candidates[k] = -np.int64(found[order[k]])
    state.n_candidates = count


@inner
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
    """Whether the index is in use, and copies of what it is made from."""
    index, n = state.index, state.n_observations if state.index.on else np.int64(0)
    return index.on, index.starts[: n + 1].copy(), index.keys[: index.starts[n]].copy()
