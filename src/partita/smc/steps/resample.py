"""Step 2, resample: at most m of the putative particles (paper, sections 3.3 and 3.4, appendix B.2).

In: the putative particles. Out: the *retained* ones with normalised log-weights, heaviest first, from the
subproblems worth joining. Subproblems whose share of the retained weight is at most 1/m are dropped (never
the heaviest; :func:`find_light`): a merge would discard them again. After greedy resampling the update is made
once more, to fill up to m from those that stay.

Greedy takes the m heaviest, which is nearest to the pool in KL(p̂‖p). Three unbiased schemes are there for
comparison; where they draw a particle more than once, its weights add up:

- multinomial: m independent draws;
- stratified (Carpenter, Clifford and Fearnhead 1999): one draw from each of m equal slices;
- optimal (Fearnhead and Clifford 2003): particles heavier than a threshold 1/κ are kept as they are, the
  others are drawn from slices at the same place in each, so that none is drawn twice, and get weight 1/κ.
"""

from __future__ import annotations

import math

import numpy as np

from partita._core.kernel import inner
from partita._core.sorting import descending
from partita.smc.state.state import uniform
from partita.smc.steps.update import Particles

GREEDY, MULTINOMIAL, STRATIFIED, OPTIMAL = range(4)


@inner
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


@inner
def find_light(state, retained):
    """Mark the candidates that hold at most 1/m of the weight; true if any retained particle is of one."""
    share, dropped, candidates = state.share, state.dropped, state.candidates
    for q in range(state.n_candidates):
        share[candidates[q]] = 0.0
    n = retained.weight.shape[0]
    for k in range(n):
        share[retained.where[k, 0]] += math.exp(retained.weight[k])
    top = retained.where[0, 0]
    for k in range(n):
        if share[retained.where[k, 0]] > share[top]:
            top = retained.where[k, 0]
    for q in range(state.n_candidates):
        s = candidates[q]
        dropped[s] = s != top and share[s] * state.particles <= 1.0
    light = 0
    for k in range(n):
        light += dropped[retained.where[k, 0]]
    return light > 0


@inner
def drop_none(state):
    """Begin with every candidate."""
    dropped, candidates = state.dropped, state.candidates
    for q in range(state.n_candidates):
        dropped[candidates[q]] = False


@inner
def greedy(putative):
    """All of the m heaviest putative particles."""
    normalise(putative.weight, putative.weight.shape[0])
    return putative


@inner
def add_draws(state, probabilities, draws, value, weights):
    """Draw entries, from the whole or one from each of equal slices; each adds ``value`` to its weight."""
    total = 0.0
    for p in probabilities:
        total += p
    point, same = 1.0, uniform(state)
    entry, below = probabilities.shape[0] - 1, total
    for k in range(draws, 0, -1):  # from the top down
        if state.resampling == MULTINOMIAL:  # the largest of k uniform numbers below the previous one
            point *= (1.0 - uniform(state)) ** (1.0 / k)
        elif state.resampling == STRATIFIED:
            point = (k - 1 + uniform(state)) / draws
        else:
            point = (k - 1 + same) / draws
        while entry > 0 and below - probabilities[entry] > point * total:
            below -= probabilities[entry]
            entry -= 1
        weights[entry] += value


@inner
def keep_heavy(probabilities, m, weights):
    """Find κ with Σ min(1, κ p) = m (Fearnhead and Clifford 2003); move what is above 1/κ to the weights.

    Returns how many particles that is, and κ.
    """
    n = probabilities.shape[0]
    order = descending(probabilities, n)
    rest = np.zeros(n + 1)  # summed from the lightest up: differences would lose them beside a heavy one
    for k in range(n - 1, -1, -1):
        rest[k] = rest[k + 1] + probabilities[order[k]]
    kept = 0
    while (m - kept) * probabilities[order[kept]] > rest[kept]:
        weights[order[kept]] = probabilities[order[kept]]
        probabilities[order[kept]] = 0.0
        kept += 1
    return kept, (m - kept) / rest[kept]


@inner
def draw(state, pool, m):
    """The weights with which particles are retained at random, unbiasedly; 0 for those that are not."""
    n = pool.weight.shape[0]
    probabilities, weights = np.empty(n), np.zeros(n)
    positive = 0
    for k in range(n):
        probabilities[k] = math.exp(pool.weight[k])
        positive += probabilities[k] > 0.0
    if state.resampling != OPTIMAL:
        add_draws(state, probabilities, m, 1.0 / m, weights)
    elif positive <= m:
        return probabilities
    else:
        kept, kappa = keep_heavy(probabilities, m, weights)
        add_draws(state, probabilities, m - kept, 1.0 / kappa, weights)
    return weights


@inner
def keep_positive(particles, weights):
    """The particles with positive weights, heaviest first, with these weights normalised."""
    n = 0
    for weight in weights:
        n += weight > 0.0
    order = descending(weights, weights.shape[0])
    result = Particles(np.empty(n), np.empty((n, 3), np.int64))
    for k in range(n):
        result.weight[k] = math.log(weights[order[k]])
        for j in range(3):
            result.where[k, j] = particles.where[order[k], j]
    normalise(result.weight, n)
    return result


@inner
def at_random(state, putative):
    """Particles retained by one of the schemes that draw at random, of those worth joining."""
    normalise(putative.weight, putative.weight.shape[0])
    retained = keep_positive(putative, draw(state, putative, state.particles))
    if find_light(state, retained):
        weights = np.empty(retained.weight.shape[0])
        for k in range(weights.shape[0]):
            weights[k] = 0.0 if state.dropped[retained.where[k, 0]] else math.exp(retained.weight[k])
        retained = keep_positive(retained, weights)
    return retained
