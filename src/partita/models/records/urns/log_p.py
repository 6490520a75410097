"""log p(c) of a cluster's table of counts, and what it says of the entity's type."""

from __future__ import annotations

import math

import numpy as np

from partita._core.kernel import inner
from partita.models.records.tables import CAPACITY, COUNT, START, count_of
from partita.models.records.urns.family import (
    COMMON_WORDS,
    COMPOSED,
    CONTEXT,
    IN_COMMON,
    LETTER,
    OF_COMMON,
    RARE,
    VALUE,
    VALUES,
    WORD,
    WORDS,
)


@inner
def rising(x, n):
    """log x(x + 1)…(x + n − 1)."""
    return math.lgamma(x + n) - math.lgamma(x)


@inner
def log_urn(base, strength, n):
    """What n draws of one thing from an urn, of which the first was new, add to log p(c)."""
    return math.log(strength) + base + math.lgamma(n)


@inner
def log_total(family, a, feature, n):
    """What the total number of draws from an attribute's urns adds to log p(c)."""
    theta, phi = family.theta[a], family.phi[a]
    if feature == family.totals[a, VALUES] and theta > 0.0:
        return -rising(theta, n)
    if feature == family.totals[a, WORDS] and phi > 0.0:
        return -rising(phi, n)
    if feature == family.totals[a, COMMON_WORDS] and phi > 0.0:
        return rising(phi, n)
    return 0.0


@inner
def log_marginal(family, statistics, c, size, d):
    """log p(c) of the cluster's row."""
    kind, owner, base, pool = family.kind, family.owner, family.base, family.tables.pool
    start, capacity = np.int64(statistics[c, START]), np.int64(statistics[c, CAPACITY])
    total = 0.0
    for k in range(start, start + capacity):
        feature, n = pool[k] >> 32, pool[k] & COUNT
        if n == 0:
            continue
        what, a = kind[feature], owner[feature]
        if what == VALUE or what == COMPOSED:  # noqa: SIM109
            total += log_urn(base[feature], family.theta[a], n)
        elif what == WORD or what == RARE:  # noqa: SIM109
            total += log_urn(base[feature], family.phi[a], n)
        elif what == IN_COMMON:
            total -= log_urn(base[feature - 1], family.phi[a], n)
        elif what == LETTER or what == CONTEXT:  # noqa: SIM109
            given = count_of(pool, start, capacity, feature + 1)
            sign = 1.0 if what == LETTER else -1.0
            total += sign * rising(base[feature] + given, n)
        elif what == OF_COMMON:
            continue
        else:
            total += log_total(family, a, feature, n)
    return total
