"""Where a further observation would go, under the whole posterior."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from partita._kernel import inner, kernel
from partita._typing import Floats, Integers
from partita.smc.update import find_home, score


@inner
def spread(state, labels, out):
    """Distribute x over the labels, given the gains.

    The mass w(s, i)·|c|·p(x|c) of each putative particle goes to the labels of c's members.
    """
    cells, gain = state.cells, state.gain
    find_home(state)  # for the bounds
    new = state.log_alpha + gain[0]
    top = new
    for s in range(state.n_subproblems):
        top = max(top, state.bound[s])
    n = out.shape[0]
    for k in range(n):
        out[k] = 0.0
    out[n - 1] = math.exp(new - top)
    for s in range(state.n_subproblems):
        sub = state.subproblems[s]
        if sub.rows == 0 or state.bound[s] < top - 745.0:  # below that, exp gives 0
            continue
        at = sub.cells + sub.columns + sub.clusters
        for i in range(sub.rows):
            weight = state.weights[sub.weights + i] - top
            for j in range(sub.columns):
                c = cells[at + i * sub.columns + j]
                block = state.blocks[cells[sub.cells + j]]
                share = block.size / state.clusters[c].size
                out[labels[block.head]] += share * math.exp(weight + gain[c])
    total = 0.0
    for k in range(n):
        total += out[k]
    for k in range(n):
        out[k] /= total


@kernel
def spread_rows(state, family, data, labels, out):
    """:func:`spread` for each row of the data."""
    for x in range(data.shape[0]):
        score(state, family, data, x)
        spread(state, labels, out[x])


@kernel
def spread_scored(state, labels, out):
    """:func:`spread` for a user's model, which has set the gains."""
    spread(state, labels, out)


def predictive(engine: Any, encoded: Floats, labels: Integers) -> Floats:
    """Probabilities of each label and of a new cluster, shape (n, K + 1)."""
    out = np.zeros((len(encoded), int(labels.max()) + 2))
    with engine.lock:
        if engine.family is not None:
            spread_rows(engine.state, engine.family, encoded, labels, out)
            return out
        for k in range(len(encoded)):
            engine.set_gains(*engine.log_marginals_with(encoded[k], f"row {k}"))
            spread_scored(engine.state, labels, out[k])
    return out
