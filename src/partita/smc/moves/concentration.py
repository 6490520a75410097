"""The concentration α: empirical Bayes along the stream, without evaluations.

The posterior knows α only through the number of clusters: a particle with K clusters has α^K in its weight.
EM's M-step for α maximises the expectation of log p(partition | α) = K log α + lgamma(α) − lgamma(α + n),
which needs the posterior mean of K alone, and moving from α to α′ tilts every particle by (α′/α)^K. The prior
α/(1 + α) ~ Beta(1/2, 3/2) keeps α from following the first few observations, whichever way they fall.

A step at most doubles or halves α. Else the first few observations, should they all be apart, would ask for
an α so large that nothing after them could ever come together.

It happens when the number of observations passes fixed marks a quarter apart, so that the result does not
depend on how the data were batched and the cost stays a small constant an observation.
"""

from __future__ import annotations

import math

import numpy as np

from partita._core.concentration import best_alpha
from partita._core.kernel import inner, kernel
from partita._core.sorting import descending
from partita.smc.state.state import n_present
from partita.smc.steps.resample import normalise
from partita.smc.steps.split import stamp

STEP = math.log(2.0)


@inner
def clusters_per_row(state, s):
    """The number of clusters of each particle of subproblem ``s``."""
    sub, cells, seen = state.subproblems[s], state.cells, state.seen
    at = sub.cells + sub.columns + sub.clusters
    counts = np.zeros(sub.rows, np.int64)
    for i in range(sub.rows):
        state.tick += 1
        for j in range(at + i * sub.columns, at + (i + 1) * sub.columns):
            if seen[cells[j]] != state.tick:
                seen[cells[j]] = state.tick
                counts[i] += 1
    return counts


@inner
def score_rows(state, s):
    """The score Σ_c [log α + lgamma(|c|) + log p(c)] of each particle, to the last bit as it was weighed."""
    sub, cells, seen = state.subproblems[s], state.cells, state.seen
    at = sub.cells + sub.columns + sub.clusters
    scores = np.zeros(sub.rows)
    for i in range(sub.rows):
        state.tick += 1
        for j in range(at + i * sub.columns, at + (i + 1) * sub.columns):
            if seen[cells[j]] != state.tick:
                seen[cells[j]] = state.tick
                scores[i] += state.log_alpha + state.clusters[cells[j]].score
    return scores


@inner
def sort_rows(state, s, weight):
    """Give the rows of subproblem ``s`` these log-weights, and sort them again."""
    sub, cells = state.subproblems[s], state.cells
    at = sub.cells + sub.columns + sub.clusters
    order, moved = descending(weight, sub.rows), 0
    for i in range(sub.rows):
        state.weights[sub.weights + i] = weight[order[i]]
        moved += order[i] != i
    normalise(state.weights[sub.weights :], sub.rows)
    if moved:
        matrix = cells[at : at + sub.rows * sub.columns].copy()
        for i in range(sub.rows):
            for j in range(sub.columns):
                cells[at + i * sub.columns + j] = matrix[order[i] * sub.columns + j]
        stamp(state, s)


@inner
def tilt(state, s, step):
    """Weigh the rows of subproblem ``s`` for the present α, which is exp(step) times the one before."""
    sub = state.subproblems[s]
    if state.exact:
        weight = score_rows(state, s)
    else:
        counts, weight = clusters_per_row(state, s), np.empty(sub.rows)
        for i in range(sub.rows):
            weight[i] = state.weights[sub.weights + i] + step * counts[i]
    sort_rows(state, s, weight)


@inner
def mean_clusters(state):
    """The posterior mean of the number of clusters."""
    total = 0.0
    for s in range(state.n_subproblems):
        sub = state.subproblems[s]
        if sub.rows > 0:
            counts = clusters_per_row(state, s)
            for i in range(sub.rows):
                total += math.exp(state.weights[sub.weights + i]) * counts[i]
    return total


@inner
def change_alpha(state, log_alpha):
    """Let another α count, for the whole posterior."""
    step = log_alpha - state.log_alpha
    if step != 0.0:
        state.log_alpha = log_alpha
        for s in range(state.n_subproblems):
            if state.subproblems[s].rows > 0:
                tilt(state, s, step)


@inner
def following(n):
    """The mark after the one at n observations."""
    return n + n // 4 + 1


@inner
def expected_number(n, size, found, belief):
    """How many clusters n observations have, if so many have been found: see :func:`learn_alpha`."""
    return found ** (1.0 - belief) * max(n / size, 1.0) ** belief if size > 0.0 else found


@kernel
def learn_alpha(state, size, belief):
    """At the marks, one step of EM for α, which moves the whole posterior.

    Where the model expects clusters of a ``size``, above 0, what is found moves their number only a part of the way, in
    proportion, from what that makes, 1 − ``belief``: clusters teach α, and α makes clusters, so what is found may be
    its own cause.
    """
    n = n_present(state)
    if n < state.next_alpha:
        return
    state.next_alpha = following(n)
    log_alpha = math.log(best_alpha(expected_number(n, size, mean_clusters(state), belief), n))
    change_alpha(state, min(max(log_alpha, state.log_alpha - STEP), state.log_alpha + STEP))


@kernel
def learn_alpha_at(state, size, belief, mark, rounds):
    """Steps of EM for α as if the last mark had been at so many observations, of which there are more by now."""
    n = n_present(state)
    state.next_alpha = following(mark)
    for _ in range(rounds):
        found = mean_clusters(state) * mark / n
        change_alpha(state, math.log(best_alpha(expected_number(mark, size, found, belief), mark)))


@kernel
def marks_to(n):
    """The marks at which α is learnt of n observations, 0 before them."""
    marks, mark = [0], 10
    while mark <= n:
        marks.append(mark)
        mark = following(mark)
    return np.array(marks)


@kernel
def weigh_all(state):
    """Weigh all rows anew, where they stand without weights; for exact ones only."""
    for s in range(state.n_subproblems):
        if state.subproblems[s].rows > 0:
            sort_rows(state, s, score_rows(state, s))
