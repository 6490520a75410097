"""A cluster's table as observations come and go."""

from __future__ import annotations

import math

import numpy as np

from partita._core.kernel import borrowed, inner, shared
from partita.models.records.comparisons.family import MENTIONS, OTHERS, PRESENT, VALUE, VALUES
from partita.models.records.comparisons.presence import weigh_types
from partita.models.records.comparisons.similarity import evidence
from partita.models.records.comparisons.values import compare, forget, prepare
from partita.models.records.tables import (
    CAPACITY,
    COUNT,
    LOG_SIZE,
    SIZE,
    START,
    USED,
    WIDTH,
    add,
    copy_table,
    slot_of,
)


@inner
def begin(family, statistics, d):
    """Row of the empty cluster: nothing in it."""
    for k in range(statistics.shape[1]):
        statistics[0, k] = 0.0
    for k in range(family.presence.shape[0]):
        statistics[0, WIDTH + k] = family.presence[k, family.totals.shape[0] + 2]


@inner
def count_items(family, pool, start, capacity, n_groups, by):
    """Add an observation's values to a table, or take them out; returns the number of new entries."""
    items, totals, groups = borrowed(family.items), borrowed(family.totals), borrowed(family.tables.groups)
    used = np.int64(0)
    for g in range(n_groups):
        a = groups[g, 0]
        used += add(pool, start, capacity, MENTIONS, by)
        used += add(pool, start, capacity, totals[a, PRESENT], by)
        used += add(pool, start, capacity, totals[a, VALUES], (groups[g, 2] - groups[g, 1]) * by)
        for k in range(groups[g, 1], groups[g, 2]):
            used += add(pool, start, capacity, items[k], by)
    return used


@shared
def shift(family, statistics, child, parent, size, data, x, by):
    """Row of ``child``, of so many members: that of ``parent`` with ``x`` added or taken out."""
    first, last = int(data[x, 0]), int(data[x, 1])
    copy_table(family.tables, statistics, child, parent, 4 * (last - first) + 1 if by > 0 else np.int64(0))
    n_groups = prepare(family, first, last)
    tables, totals = family.tables, borrowed(family.totals)
    pool, sums, groups = borrowed(tables.pool), borrowed(tables.sums), borrowed(tables.groups)
    start, capacity = np.int64(statistics[child, START]), np.int64(statistics[child, CAPACITY])
    used = np.int64(0)
    if by < 0:
        count_items(family, pool, start, capacity, n_groups, by)
    compare(family, start, capacity, n_groups)
    if by > 0:
        used = count_items(family, pool, start, capacity, n_groups, by)
    together = borrowed(tables.shared)
    for g in range(n_groups):
        if family.measure[groups[g, 0]] < OTHERS:
            sums[slot_of(pool, start, capacity, totals[groups[g, 0], VALUES])] += by * together[g]
    forget(family, n_groups)
    statistics[child, USED] += used
    weigh(family, pool, statistics, child, size)


@inner
def weigh(family, pool, statistics, c, size):
    """Write a row's size, and what types its entity may be of."""
    statistics[c, SIZE], statistics[c, LOG_SIZE] = size, math.log(max(size, 1))
    if family.presence.shape[0] > 1:
        kind, owner = borrowed(family.kind), borrowed(family.owner)
        weigh_types(pool, kind, owner, borrowed(family.totals), borrowed(family.presence), statistics, c, size)


@inner
def extend(family, statistics, child, parent, size, data, x):
    """Row of the cluster with ``x`` added."""
    shift(family, statistics, child, parent, size + 1, data, x, np.int64(1))


@inner
def reduce(family, statistics, child, parent, size, data, x):
    """Row of the cluster with ``x`` taken out: sums are exact, so nothing is lost."""
    shift(family, statistics, child, parent, size - 1, data, x, np.int64(-1))
    return True


@inner
def join(family, statistics, child, first, second, size_first, size_second, d):
    """Row of the union of two clusters."""
    if child == second:
        first, second = second, first
    tables, kind, owner = family.tables, borrowed(family.kind), borrowed(family.owner)
    copy_table(tables, statistics, child, first, np.int64(statistics[second, USED]))
    pool, sums, totals = borrowed(tables.pool), borrowed(tables.sums), borrowed(family.totals)
    start, capacity = np.int64(statistics[child, START]), np.int64(statistics[child, CAPACITY])
    low, high = np.int64(statistics[second, START]), np.int64(statistics[second, CAPACITY])
    for k in range(low, low + high):
        v, n = pool[k] >> 32, pool[k] & COUNT
        if n == 0 or kind[v] != VALUE or family.measure[owner[v]] >= OTHERS:
            continue
        a, across = owner[v], 0.0
        for i in range(start, start + capacity):
            w, m = pool[i] >> 32, pool[i] & COUNT
            if m > 0 and kind[w] == VALUE and owner[w] == a:
                across += m * evidence(family, a, v, w)
        if across != 0.0:
            sums[slot_of(pool, start, capacity, totals[a, VALUES])] += n * across
    used = np.int64(0)
    for k in range(low, low + high):
        feature, n = pool[k] >> 32, pool[k] & COUNT
        if n > 0:
            used += add(pool, start, capacity, feature, n)
            sums[slot_of(pool, start, capacity, feature)] += sums[k]
    statistics[child, USED] += used
    weigh(family, pool, statistics, child, size_first + size_second)
