"""A cluster's table of counts as observations come and go."""

from __future__ import annotations

import math

import numpy as np

from partita._core.kernel import borrowed, inner, shared
from partita.models.records.tables import (
    CAPACITY,
    COUNT,
    LOG_SIZE,
    SIZE,
    START,
    USED,
    add,
    copy_table,
    count_of,
)
from partita.models.records.urns.family import (
    COMMON_WORDS,
    COMPOSED,
    N_COMPOSED,
    RARE,
    SPELLED,
    VALUE,
    VALUES,
    WORDS,
)


@inner
def begin(family, statistics, d):
    """Row of the empty cluster: nothing in it."""
    for k in range(statistics.shape[1]):
        statistics[0, k] = 0.0


@inner
def count_word(pool, kind, firsts, lasts, parts, totals, phi, start, capacity, a, w, common, by):
    """Add a word to a table, or take it out; returns the number of new entries."""
    used = add(pool, start, capacity, totals[a, WORDS], by)
    if common:
        used += add(pool, start, capacity, totals[a, COMMON_WORDS], by)
        used += add(pool, start, capacity, w + 1, by)
    if phi[a] > 0.0:
        used += add(pool, start, capacity, w, by)
        if count_of(pool, start, capacity, w) != (by > 0):
            return used
    rare = kind[w] == RARE
    if rare:
        used += add(pool, start, capacity, totals[a, SPELLED], by)
    for t in range(firsts[w], lasts[w]):
        used += add(pool, start, capacity, parts[t] if rare else parts[t] + 1, by)
    return used


@inner
def count_value(pool, kind, firsts, lasts, parts, totals, theta, phi, start, capacity, a, v, n, by):
    """Add a value n times to a table, or take it out; returns the number of new entries."""
    used = add(pool, start, capacity, totals[a, VALUES], n * by)
    if theta[a] > 0.0:
        used += add(pool, start, capacity, v, n * by)
        if count_of(pool, start, capacity, v) != (n if by > 0 else 0):
            return used
    common = kind[v] == VALUE
    if not common:
        used += add(pool, start, capacity, totals[a, N_COMPOSED], by)
    for p in range(firsts[v], lasts[v]):
        used += count_word(
            pool, kind, firsts, lasts, parts, totals, phi, start, capacity, a, parts[p], common, by
        )
    return used


@inner
def most_features(items, firsts, lasts, parts, first, last):
    """No more entries than this are new to a table when an observation is added."""
    count = np.int64(1)
    for k in range(first, last):
        count += 4
        for p in range(firsts[items[k]], lasts[items[k]]):
            count += 5 + lasts[parts[p]] - firsts[parts[p]]
    return count


@shared
def shift(family, statistics, child, parent, size, data, x, by):
    """Row of ``child``, of so many members: that of ``parent`` with ``x`` added or taken out."""
    items, kind, owner = borrowed(family.items), borrowed(family.kind), borrowed(family.owner)
    firsts, lasts, parts = borrowed(family.first), borrowed(family.last), borrowed(family.parts)
    totals, theta, phi = borrowed(family.totals), borrowed(family.theta), borrowed(family.phi)
    first, last = int(data[x, 0]), int(data[x, 1])
    extra = most_features(items, firsts, lasts, parts, first, last) if by > 0 else np.int64(0)
    copy_table(family.tables, statistics, child, parent, extra)
    pool = borrowed(family.tables.pool)
    start, capacity = np.int64(statistics[child, START]), np.int64(statistics[child, CAPACITY])
    used, once = np.int64(0), np.int64(1)
    for k in range(first, last):
        a = owner[items[k]]
        used += count_value(
            pool, kind, firsts, lasts, parts, totals, theta, phi, start, capacity, a, items[k], once, by
        )
    statistics[child, USED] += used
    statistics[child, SIZE], statistics[child, LOG_SIZE] = size, math.log(max(size, 1))


@inner
def extend(family, statistics, child, parent, size, data, x):
    """Row of the cluster with ``x`` added."""
    shift(family, statistics, child, parent, size + 1, data, x, np.int64(1))


@inner
def reduce(family, statistics, child, parent, size, data, x):
    """Row of the cluster with ``x`` taken out: counts are whole, so nothing is lost."""
    shift(family, statistics, child, parent, size - 1, data, x, np.int64(-1))
    return True


@inner
def join(family, statistics, child, first, second, size_first, size_second, d):
    """Row of the union of two clusters."""
    if child == second:
        first, second = second, first
    kind, owner, firsts, lasts, parts = family.kind, family.owner, family.first, family.last, family.parts
    totals, theta, phi = family.totals, family.theta, family.phi
    copy_table(family.tables, statistics, child, first, np.int64(statistics[second, USED]))
    pool = borrowed(family.tables.pool)
    start, capacity = np.int64(statistics[child, START]), np.int64(statistics[child, CAPACITY])
    used, more = np.int64(0), np.int64(1)
    low = np.int64(statistics[second, START])
    for k in range(low, low + np.int64(statistics[second, CAPACITY])):
        feature, n = pool[k] >> 32, pool[k] & COUNT
        if n == 0:
            continue
        a = owner[feature]
        if theta[a] < 0.0:
            used += add(pool, start, capacity, feature, n)
        elif kind[feature] == VALUE or kind[feature] == COMPOSED:
            used += count_value(
                pool, kind, firsts, lasts, parts, totals, theta, phi, start, capacity, a, feature, n, more
            )
    statistics[child, USED] += used
    size = size_first + size_second
    statistics[child, SIZE], statistics[child, LOG_SIZE] = size, math.log(size)
