"""Where a further observation would go, under the whole posterior."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from partita._core.kernel import inner, kernel
from partita._core.typing import Floats, Integers
from partita.smc.state.keys import EVERYTHING, Keys
from partita.smc.state.state import n_present
from partita.smc.steps.candidates import find_candidates, find_candidates_of_row
from partita.smc.steps.update import find_bounds, score


@inner
def spread(state, labels, out):
    """Distribute x over the labels, given the gains; returns log p(x | all observed).

    The mass w(s, i)·|c|·p(x|c) of each putative particle goes to the labels of c's members; all of it, and
    α·p(x) of a new cluster, is α + n times the density.
    """
    cells, gain = state.cells, state.gain
    find_bounds(state)
    new = state.log_alpha + gain[0]
    top = new
    for q in range(state.n_candidates):
        top = max(top, state.bound[state.candidates[q]])
    n = out.shape[0]
    for k in range(n):
        out[k] = 0.0
    out[n - 1] = math.exp(new - top)
    for q in range(state.n_candidates):
        sub = state.subproblems[state.candidates[q]]
        if state.bound[state.candidates[q]] < top - 745.0:  # below that, exp gives 0
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
    return top + math.log(total) - math.log(math.exp(state.log_alpha) + n_present(state))


@kernel
def spread_rows(state, family, data, starts, keys, labels, out):
    """:func:`spread` for each row of the data, with its keys."""
    for x in range(data.shape[0]):
        find_candidates_of_row(state, starts, keys, x)
        score(state, family, data, x)
        spread(state, labels, out[x])


@kernel
def spread_scored(state, labels, out):
    """:func:`spread` for a user's model, which has set the gains."""
    spread(state, labels, out)


@kernel
def log_density_ahead(state, family, end):
    """Σ log p(x | all observed) over the observations stored but still to come, up to ``end``."""
    labels, out = np.zeros(state.n_observations, np.int64), np.empty(2)
    total = 0.0
    for x in range(state.n_observations, end):
        find_candidates(state, x)
        score(state, family, state.data, x)
        total += spread(state, labels, out)
    return total


def log_prequential(engine: Any, encoded: Floats) -> float:
    """Observe all of ``encoded``; returns how well it was foreseen, Σ log p(x_t | those before).

    The prequential log-density (Dawid 1984), for a compiled family. "Those before" may lack the last tenth:
    predictions are made for so many observations at once.
    """
    n, end, total = engine.n_observations, engine.store(encoded), 0.0
    while n < end:
        stop = min(n + n // 10 + 1, end)
        total += float(log_density_ahead(engine.state, engine.family, stop))
        engine.run(stop)
        n = stop
    return total


def predictive(engine: Any, encoded: Floats, labels: Integers, keys: Keys = EVERYTHING) -> Floats:
    """Probabilities of each label and of a new cluster, shape (n, K + 1), from the rows' candidates."""
    out = np.zeros((len(encoded), int(labels.max()) + 2))
    with engine.lock:
        of_observation = np.zeros(engine.n_observations, np.int64)
        of_observation[engine.present] = labels
        if engine.family is not None:
            spread_rows(engine.state, engine.family, encoded, *keys, of_observation, out)
            return out
        for k in engine.loop.weigh_rows(encoded, keys):
            spread_scored(engine.state, of_observation, out[k])
    return out
