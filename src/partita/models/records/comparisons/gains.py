"""log p(x | c) of an observation under many clusters: what it would add to the evidence of each."""

from __future__ import annotations

import numpy as np

from partita._core.kernel import inner, shared
from partita._core.lent import lent
from partita.models.records.comparisons.family import OTHERS, VALUES
from partita.models.records.comparisons.presence import presence_gain
from partita.models.records.comparisons.values import (
    choose,
    evidence,
    forget,
    gather,
    others_gain,
    prepare,
    with_items,
)
from partita.models.records.tables import CAPACITY, LOG_SIZE, SIZE, START, count_of, slot_of


@inner
def own_gain(family, start, capacity, first, last, a):
    """What an observation adds to an attribute that has a kernel of its own."""
    n = choose(family, start, capacity, first, last, a)
    chosen, number = family.tables.chosen, family.number
    return others_gain(family.others, family.measure[a] - OTHERS, chosen, number, n)


@shared
def gains(family, statistics, ids, first, last, data, x, out):
    """log|c| + log p(x|c) of each of many clusters."""
    family, statistics = lent(family), lent(statistics)
    tables = family.tables
    n_groups = prepare(family, int(data[x, 0]), int(data[x, 1]))
    groups, totals, presence = tables.groups, family.totals, family.presence
    pool, sums = tables.pool, tables.sums
    strength, measure = family.strength, family.measure
    for k in range(first, last):
        c = ids[k]
        start, capacity = np.int64(statistics[c, START]), np.int64(statistics[c, CAPACITY])
        if c == 0:
            start, capacity = np.int64(0), np.int64(0)
        total = presence_gain(
            pool, groups, totals, presence, statistics, c, start, capacity, statistics[c, SIZE], n_groups
        )
        gather(family, start, capacity, n_groups)
        at = np.int64(0)
        for g in range(n_groups):
            a = groups[g, 0]
            at, m = with_items(family, at, g, groups[g, 1], groups[g, 2])
            if measure[a] >= OTHERS:
                total += own_gain(family, start, capacity, groups[g, 1], groups[g, 2], a)
                continue
            before = 0.0
            if count_of(pool, start, capacity, totals[a, VALUES]) > 0:
                before = sums[slot_of(pool, start, capacity, totals[a, VALUES])]
            total += strength[a] * (evidence(family, a, m) - before)
        out[c] = total + (1.0 - family.crowding) * statistics[c, LOG_SIZE]
    forget(family, n_groups)
