"""log p(x | c) of an observation under many clusters: what it would add to the evidence of each."""

from __future__ import annotations

import numpy as np

from partita._core.kernel import borrowed, inner, shared
from partita.models.records.comparisons.family import OTHERS, VALUES
from partita.models.records.comparisons.presence import presence_gain
from partita.models.records.comparisons.values import choose, compare, forget, others_gain, potential, prepare
from partita.models.records.tables import CAPACITY, LOG_SIZE, SIZE, START, count_of, slot_of


@inner
def own_gain(family, start, capacity, first, last, a):
    """What an observation adds to an attribute that has a kernel of its own."""
    n = choose(family, start, capacity, first, last, a)
    chosen, number = borrowed(family.tables.chosen), borrowed(family.number)
    return others_gain(family.others, family.measure[a] - OTHERS, chosen, number, n)


@shared
def gains(family, statistics, ids, first, last, data, x, out):
    """log|c| + log p(x|c) of each of many clusters."""
    tables = family.tables
    n_groups = prepare(family, int(data[x, 0]), int(data[x, 1]))
    pool, sums, groups = borrowed(tables.pool), borrowed(tables.sums), borrowed(tables.groups)
    together, totals, presence = borrowed(tables.shared), borrowed(family.totals), borrowed(family.presence)
    strength, measure = borrowed(family.strength), borrowed(family.measure)
    q = family.sharpness
    for k in range(first, last):
        c = ids[k]
        start, capacity = np.int64(statistics[c, START]), np.int64(statistics[c, CAPACITY])
        if c == 0:
            start, capacity = np.int64(0), np.int64(0)
        total = presence_gain(
            pool, groups, totals, presence, statistics, c, start, capacity, statistics[c, SIZE], n_groups
        )
        compare(family, start, capacity, n_groups)
        for g in range(n_groups):
            a, more = groups[g, 0], groups[g, 2] - groups[g, 1]
            if measure[a] >= OTHERS:
                total += own_gain(family, start, capacity, groups[g, 1], groups[g, 2], a)
                continue
            n = count_of(pool, start, capacity, totals[a, VALUES])
            if n > 0:
                s = family.cohesion * (1.0 - strength[a])
                before = sums[slot_of(pool, start, capacity, totals[a, VALUES])]
                total += strength[a] * (potential(together[g], n + more, q, s) - potential(before, n, q, s))
        out[c] = total + statistics[c, LOG_SIZE]
    forget(family, n_groups)
