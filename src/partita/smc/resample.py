"""Step 2, resample: at most m of the putative particles (paper, sections 3.3 and 3.4, appendix B.2).

In: the putative particles. Out: the *retained* ones with normalised log-weights, heaviest first, from the
subproblems worth joining. Subproblems whose share of the retained weight is at most 1/m are dropped (never
the heaviest): a merge would discard them again. Greedy resampling then fills up to m from those that stay.

Greedy takes the m heaviest, which is nearest to the pool in KL(p̂‖p). Three unbiased schemes are there for
comparison; where they draw a particle more than once, its weights add up:

- multinomial: m independent draws;
- stratified (Carpenter, Clifford and Fearnhead 1999): one draw from each of m equal slices;
- optimal (Fearnhead and Clifford 2003): particles heavier than a threshold 1/κ are kept as they are, the
  others are drawn by stratified sampling and get weight 1/κ.
"""

from __future__ import annotations

import math

import numpy as np

from partita._kernel import kernel
from partita.smc.state import descending, uniform
from partita.smc.update import pool_putative, reorder

GREEDY, MULTINOMIAL, STRATIFIED, OPTIMAL = range(4)


@kernel
def normalise(weights, n):
    """Subtract log Σ exp from the first ``n`` log-weights."""
    top = -np.inf
    for k in range(n):
        top = max(top, weights[k])
    total = 0.0
    for k in range(n):
        total += math.exp(weights[k] - top)
    top += math.log(total)
    for k in range(n):
        weights[k] -= top


@kernel
def add_draws(state, probabilities, draws, stratified, value, weights):
    """Draw from ``probabilities``: one from each of equal slices, or all from the whole; add ``value`` each."""
    last = probabilities.shape[0] - 1
    total = 0.0
    for p in probabilities:
        total += p
    point = 1.0
    entry, below = last, total
    for k in range(draws, 0, -1):  # from the top down
        if stratified:
            point = (k - 1 + uniform(state)) / draws
        else:  # the largest of k uniform numbers below the previous one
            point *= (1.0 - uniform(state)) ** (1.0 / k)
        while entry > 0 and below - probabilities[entry] > point * total:
            below -= probabilities[entry]
            entry -= 1
        weights[entry] += value


@kernel
def threshold(probabilities, m):
    """The κ with Σ min(1, κ p) = m (Fearnhead and Clifford 2003)."""
    n = probabilities.shape[0]
    order = descending(probabilities, n)
    rest = 0.0
    for k in range(n - 1, -1, -1):
        rest += probabilities[order[k]]
    kept = 0
    while (m - kept) * probabilities[order[kept]] > rest:
        rest -= probabilities[order[kept]]
        kept += 1
    return (m - kept) / rest


@kernel
def draw(state, pool, m):
    """Retain particles at random, unbiasedly."""
    n = pool.count[0]
    normalise(pool.weight, n)
    probabilities, weights = np.empty(n), np.zeros(n)
    positive = 0
    for k in range(n):
        probabilities[k] = math.exp(pool.weight[k])
        positive += probabilities[k] > 0.0
    if state.resampling != OPTIMAL:
        add_draws(state, probabilities, m, state.resampling == STRATIFIED, 1.0 / m, weights)
    elif positive <= m:
        for k in range(n):
            weights[k] = probabilities[k]
    else:
        kappa = threshold(probabilities, m)
        draws = m
        for k in range(n):
            if kappa * probabilities[k] > 1.0:
                weights[k] = probabilities[k]
                probabilities[k] = 0.0
                draws -= 1
        add_draws(state, probabilities, draws, True, 1.0 / kappa, weights)
    retained = 0
    for k in range(n):
        pool.weight[k] = math.log(weights[k]) if weights[k] > 0.0 else -np.inf
        retained += weights[k] > 0.0
    return reorder(pool, descending(pool.weight, n)[:retained])


@kernel
def drop_light(retained, m, dropped):
    """Normalise, and mark the subproblems with at most 1/m of the weight; true if there are any."""
    normalise(retained.weight, retained.count[0])
    share = np.zeros(dropped.shape[0])
    top = retained.subproblem[0]
    for k in range(retained.count[0]):
        s = retained.subproblem[k]
        share[s] += math.exp(retained.weight[k])
    for k in range(retained.count[0]):
        s = retained.subproblem[k]
        if share[s] > share[top]:
            top = s
    any_dropped = False
    for s in range(dropped.shape[0]):
        dropped[s] = s != top and share[s] * m <= 1.0
        any_dropped = any_dropped or (share[s] > 0.0 and dropped[s])
    return any_dropped


@kernel
def without(retained, dropped):
    """The particles of the subproblems that are not dropped."""
    kept = np.empty(retained.count[0], np.int64)
    count = 0
    for k in range(retained.count[0]):
        if not dropped[retained.subproblem[k]]:
            kept[count] = k
            count += 1
    return reorder(retained, kept[:count])


@kernel
def greedy(state, home):
    """The m heaviest putative particles of the subproblems worth joining."""
    m = state.particles
    dropped = np.zeros(state.n_subproblems, np.bool_)
    retained = pool_putative(state, home, m, dropped)
    if drop_light(retained, m, dropped):
        retained = pool_putative(state, home, m, dropped)
        normalise(retained.weight, retained.count[0])
    return retained


@kernel
def random(state, home):
    """Particles retained by one of the schemes that draw at random."""
    size = 0
    for s in range(state.n_subproblems):
        size += state.subproblems[s].rows * (state.subproblems[s].columns + 1)
    dropped = np.zeros(state.n_subproblems, np.bool_)
    if state.resampling == GREEDY:  # with the multinomial merge
        return greedy(state, home)
    retained = draw(state, pool_putative(state, home, size, dropped), state.particles)
    if drop_light(retained, state.particles, dropped):
        retained = without(retained, dropped)
        normalise(retained.weight, retained.count[0])
    return retained
