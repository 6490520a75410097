"""Which attributes a cluster mentions, and what that says of the entity's type.

The formula is that of :mod:`partita.models.records.entity_types`.
"""

from __future__ import annotations

import math

import numpy as np

from partita._core.kernel import inner
from partita.models.records.comparisons.family import MENTIONS, PRESENT, UNHEARD
from partita.models.records.tables import CAPACITY, START, WIDTH, count_of


@inner
def log_sum(top, total, term):
    """Add exp(term) to exp(top)·total; returns the new two."""
    if term > top:
        return term, total * math.exp(top - term) + 1.0
    return top, total + math.exp(term - top)


@inner
def rising(x, n):
    """log x(x + 1)…(x + n − 1)."""
    return math.lgamma(x + n) - math.lgamma(x)


@inner
def presence_gain(pool, groups, totals, presence, statistics, c, start, capacity, size, n_groups):
    """log-probability of mentioning just the attributes that the observation mentions.

    An entity is of one of several types. It mentions each attribute at a rate of its own, Gamma(b·f, b) with
    the type's f, and the numbers of mentions are Poisson: evidence of what kind of thing it is.
    """
    n = totals.shape[0]
    rate = presence[0, n + 1]
    if rate == 0.0:
        return 0.0
    shrink, share = math.log1p(1.0 / (rate + size)), 1.0 / (rate + size + 1.0)
    gain = -count_of(pool, start, capacity, MENTIONS) * shrink
    for g in range(n_groups):
        groups[g, 3] = count_of(pool, start, capacity, totals[groups[g, 0], PRESENT])
    top, total = -np.inf, 0.0
    for k in range(presence.shape[0]):
        term, product = statistics[c, WIDTH + k] - presence[k, n] * shrink, 1.0
        for g in range(n_groups):
            if presence[k, groups[g, 0]] == UNHEARD:
                continue
            product *= (presence[k, groups[g, 0]] + groups[g, 3]) * share
            if product < 1e-200:
                term += math.log(product)
                product = 1.0
        term += math.log(product)
        if presence.shape[0] == 1:
            return gain + term
        top, total = log_sum(top, total, term)
    return gain + top + math.log(total)


@inner
def weigh_types(pool, totals, presence, statistics, c, size):
    """Write the log-probabilities of the types given a cluster; returns what presence adds to log p(c)."""
    n, types = totals.shape[0], presence.shape[0]
    rate = presence[0, n + 1]
    if rate == 0.0:
        return 0.0
    start, capacity = np.int64(statistics[c, START]), np.int64(statistics[c, CAPACITY])
    for k in range(types):
        statistics[c, WIDTH + k] = presence[k, n + 2] - presence[k, n] * math.log1p(size / rate)
    for a in range(n):  # in this order, that of the table depends on how it came about
        count = count_of(pool, start, capacity, totals[a, PRESENT])
        if count > 0:
            for k in range(types):
                statistics[c, WIDTH + k] += rising(presence[k, a], count)
    top, total = -np.inf, 0.0
    for k in range(types):
        top, total = log_sum(top, total, statistics[c, WIDTH + k])
    result = top + math.log(total)
    for k in range(types):
        statistics[c, WIDTH + k] -= result
    return result - count_of(pool, start, capacity, MENTIONS) * math.log(rate + size)
