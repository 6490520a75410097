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

from partita import priors
from partita._kernel import inner, kernel
from partita.smc.resample import normalise
from partita.smc.state import descending

PRIOR = (0.5, 1.5)
STEP = math.log(2.0)


expected_clusters = inner(priors.expected_clusters)


@inner
def best_alpha(n_clusters, n_observations):
    """The α that maximises the expected log-prior of partitions with so many clusters on average."""
    low, high = math.log(1e-6), math.log(1e12)
    for _ in range(80):  # the derivative in log α is decreasing where it matters
        middle = 0.5 * (low + high)
        alpha = math.exp(middle)
        expected = expected_clusters(alpha, n_observations)
        if n_clusters + PRIOR[0] - (PRIOR[0] + PRIOR[1]) * alpha / (1.0 + alpha) > expected:
            low = middle
        else:
            high = middle
    return math.exp(0.5 * (low + high))


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
def tilt(state, s, step):
    """Multiply the weight of each row of subproblem ``s`` by exp(step · K), and sort the rows again."""
    sub, cells = state.subproblems[s], state.cells
    at = sub.cells + sub.columns + sub.clusters
    counts = clusters_per_row(state, s)
    weight, matrix = np.empty(sub.rows), np.empty((sub.rows, sub.columns), np.int64)
    for i in range(sub.rows):
        weight[i] = state.weights[sub.weights + i] + step * counts[i]
        for j in range(sub.columns):
            matrix[i, j] = cells[at + i * sub.columns + j]
    normalise(weight, sub.rows)
    order = descending(weight, sub.rows)
    for i in range(sub.rows):
        state.weights[sub.weights + i] = weight[order[i]]
        for j in range(sub.columns):
            cells[at + i * sub.columns + j] = matrix[order[i], j]


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


@kernel
def learn_alpha(state):
    """At the marks, one step of EM for α, which moves the whole posterior."""
    n = state.n_observations
    if n < state.next_alpha:
        return
    state.next_alpha = n + n // 4 + 1
    log_alpha = math.log(best_alpha(mean_clusters(state), n))
    log_alpha = min(max(log_alpha, state.log_alpha - STEP), state.log_alpha + STEP)
    for s in range(state.n_subproblems):
        if state.subproblems[s].rows > 0:
            tilt(state, s, log_alpha - state.log_alpha)
    state.log_alpha = log_alpha
