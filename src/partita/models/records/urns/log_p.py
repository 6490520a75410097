"""log p(c) of a cluster's table of counts."""

from __future__ import annotations

import math

import numpy as np

from partita._core.kernel import inner
from partita.models.records.tables import CAPACITY, COUNT, START


@inner
def rising(x, n):
    """log x(x + 1)…(x + n − 1)."""
    return math.lgamma(x + n) - math.lgamma(x)


@inner
def log_marginal(family, statistics, c, size, d):
    """log p(c) of the cluster's row."""
    base, sign, pool = family.base, family.sign, family.tables.pool
    start, capacity = np.int64(statistics[c, START]), np.int64(statistics[c, CAPACITY])
    total = 0.0
    for k in range(start, start + capacity):
        feature, n = pool[k] >> 32, pool[k] & COUNT
        if n > 0:
            total += sign[feature] * rising(base[feature], n)
    return total
