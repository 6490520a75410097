"""Which clusters a surrogate proposes to a black box.

The surrogate's gains only choose which clusters the black box is asked for: those in the m′ best assignments to
existing clusters (paper, appendix C.1). That a new observation may be alone is not the surrogate's to decide, as α
is not made for its likelihood.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from partita._core.kernel import inner, kernel
from partita._core.sorting import sink
from partita._core.typing import Integers


@inner
def bounds(state):
    """The largest gain in each candidate, in their order, and which of them has the largest of all."""
    bound, first = np.full(state.n_candidates, -np.inf), 0
    for q in range(state.n_candidates):
        sub = state.subproblems[state.candidates[q]]
        at = sub.cells + sub.columns
        for k in range(at, at + sub.clusters):
            bound[q] = max(bound[q], state.gain[state.cells[k]])
        if bound[q] > bound[first]:
            first = q
    return bound, first


def propose(state: Any, n: int) -> Integers:
    """The empty cluster, and those of the candidates that the n best w(s, i)·|c|·p(x|c) are of, given the gains."""
    return np.append(0, best_assignments(state, n))


@kernel
def best_assignments(state, n):
    """The clusters of the candidates, each once, that the n best assignments are to."""
    cells, gain, seen = state.cells, state.gain, state.seen
    bound, first = bounds(state)
    total = 0
    for q in range(state.n_candidates):
        sub = state.subproblems[state.candidates[q]]
        total += sub.rows * sub.columns
    n = min(n, total)
    value, cluster = np.full(n, -np.inf), np.full(n, -1)
    for k in range(state.n_candidates):
        q = first if k == 0 else (k - 1 if k <= first else k)  # the most promising one first
        sub = state.subproblems[state.candidates[q]]
        at = sub.cells + sub.columns + sub.clusters
        for i in range(sub.rows):
            weight = state.weights[sub.weights + i]
            if weight + bound[q] <= value[0]:
                break  # rows are in descending order of weight
            state.tick += 1
            for j in range(at + i * sub.columns, at + (i + 1) * sub.columns):
                c = cells[j]
                if seen[c] != state.tick:
                    seen[c] = state.tick
                    if weight + gain[c] > value[0]:
                        value[0], cluster[0] = weight + gain[c], c
                        sink(value, cluster, n)
    count = 0
    state.tick += 1
    for k in range(n):
        c = cluster[k]
        if c >= 0 and seen[c] != state.tick:
            seen[c] = state.tick
            cluster[count] = c
            count += 1
    return cluster[:count]
