"""log p(c) of a cluster's table."""

from __future__ import annotations

import numpy as np

from partita._core.kernel import borrowed, inner
from partita.models.records.comparisons.family import MENTIONS, OTHERS, TOTAL, VALUES
from partita.models.records.comparisons.presence import weigh_types
from partita.models.records.comparisons.values import choose, others_gain, potential
from partita.models.records.tables import CAPACITY, COUNT, START


@inner
def log_marginal(family, statistics, c, size, d):
    """log p(c) of the cluster's row."""
    pool, sums, kind, owner = family.tables.pool, family.tables.sums, family.kind, family.owner
    start, capacity = np.int64(statistics[c, START]), np.int64(statistics[c, CAPACITY])
    total = weigh_types(pool, kind, owner, family.totals, family.presence, statistics, c, size)
    for k in range(start, start + capacity):
        feature, n = pool[k] >> 32, pool[k] & COUNT
        if n == 0 or kind[feature] != TOTAL or feature == MENTIONS or feature != family.totals[owner[feature], VALUES]:
            continue
        a = owner[feature]
        if family.measure[a] >= OTHERS:
            total += whole(family, start, capacity, a)
        else:
            total += family.strength[a] * potential(sums[k], n, family.sharpness, family.cohesion * (1.0 - family.strength[a]))
    return total


@inner
def whole(family, start, capacity, a):
    """log p of all values of an attribute that has a kernel of its own."""
    n = choose(family, start, capacity, np.int64(0), np.int64(0), a)
    chosen = borrowed(family.tables.chosen)
    for i in range(n):
        chosen[i, 1] = 0
    return others_gain(family.others, family.measure[a] - OTHERS, chosen, borrowed(family.number), n)
