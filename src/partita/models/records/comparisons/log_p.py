"""log p(c) of a cluster's table."""

from __future__ import annotations

import math

import numpy as np

from partita._core.kernel import inner
from partita._core.lent import lent
from partita.models.records.comparisons.family import OTHERS, VALUES
from partita.models.records.comparisons.presence import weigh_types
from partita.models.records.comparisons.values import choose, others_gain
from partita.models.records.tables import CAPACITY, START, count_of, slot_of


@inner
def log_marginal(family, statistics, c, size, d):
    """log p(c) of the cluster's row."""
    family, statistics = lent(family), lent(statistics)
    pool, sums, totals = family.tables.pool, family.tables.sums, family.totals
    start, capacity = np.int64(statistics[c, START]), np.int64(statistics[c, CAPACITY])
    total = weigh_types(pool, totals, family.presence, statistics, c, size) - family.crowding * math.lgamma(
        max(size, 1)
    )
    for a in range(totals.shape[0]):  # in this order, that of the table depends on how it came about
        n = count_of(pool, start, capacity, totals[a, VALUES])
        if n == 0:
            continue
        if family.measure[a] >= OTHERS:
            total += whole(family, start, capacity, a)
        else:
            total += family.strength[a] * sums[slot_of(pool, start, capacity, totals[a, VALUES])]
    return total


@inner
def whole(family, start, capacity, a):
    """log p of all values of an attribute that has a kernel of its own."""
    n = choose(family, start, capacity, np.int64(0), np.int64(0), a)
    chosen = family.tables.chosen
    for i in range(n):
        chosen[i, 1] = 0
    return others_gain(family.others, family.measure[a] - OTHERS, chosen, family.number, n)
