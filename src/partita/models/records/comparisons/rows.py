"""A cluster's table as observations come and go."""

from __future__ import annotations

import math

import numpy as np

from partita._core.kernel import borrowed, inner, shared
from partita.models.records.comparisons.family import MENTIONS, OTHERS, PRESENT, TOTAL, VALUE, VALUES
from partita.models.records.comparisons.presence import weigh_types
from partita.models.records.comparisons.similarity import affinity
from partita.models.records.comparisons.values import compare, forget, prepare, term
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


@inner
def add_affinities(family, start, capacity, n_groups, by):
    """Add what an observation's values are to those of a table to their T, or take it out.

    The observation is not counted in the table. Its own values' T are written by :func:`compare`.
    """
    tables, items = family.tables, borrowed(family.items)
    pool, sums, owner, kind = borrowed(tables.pool), borrowed(tables.sums), borrowed(family.owner), borrowed(family.kind)
    groups, group_of, measure = borrowed(tables.groups), borrowed(tables.group_of), borrowed(family.measure)
    for k in range(start, start + capacity):
        w, n = pool[k] >> 32, pool[k] & COUNT
        if n == 0 or kind[w] != VALUE or group_of[owner[w]] < 0 or measure[owner[w]] >= OTHERS:
            continue
        g, more = group_of[owner[w]], 0.0
        for i in range(groups[g, 1], groups[g, 2]):
            more += affinity(family, owner[w], items[i], w)
        sums[k] += by * n * more


@inner
def sum_logarithms(family, start, capacity, a):
    """Write an attribute's sum of logarithms from its values."""
    pool, sums, owner, kind = family.tables.pool, family.tables.sums, family.owner, family.kind
    total = 0.0
    for k in range(start, start + capacity):
        v, n = pool[k] >> 32, pool[k] & COUNT
        if n > 0 and kind[v] == VALUE and owner[v] == a and sums[k] > 0.0:
            total += term(sums[k], n)
    sums[slot_of(pool, start, capacity, family.totals[a, VALUES])] = total


@shared
def shift(family, statistics, child, parent, size, data, x, by):
    """Row of ``child``, of so many members: that of ``parent`` with ``x`` added or taken out."""
    first, last = int(data[x, 0]), int(data[x, 1])
    copy_table(family.tables, statistics, child, parent, 4 * (last - first) + 1 if by > 0 else np.int64(0))
    n_groups = prepare(family, first, last)
    tables, items = family.tables, borrowed(family.items)
    pool, sums, groups = borrowed(tables.pool), borrowed(tables.sums), borrowed(tables.groups)
    start, capacity = np.int64(statistics[child, START]), np.int64(statistics[child, CAPACITY])
    used, measure, totals = np.int64(0), borrowed(family.measure), borrowed(tables.totals)
    if by < 0:
        count_items(family, pool, start, capacity, n_groups, by)
        take_out(family, start, capacity, n_groups)
    else:
        compare(family, start, capacity, n_groups)
        add_affinities(family, start, capacity, n_groups, by)
        used = count_items(family, pool, start, capacity, n_groups, by)
        for g in range(n_groups):
            if measure[groups[g, 0]] < OTHERS:
                for k in range(groups[g, 1], groups[g, 2]):
                    sums[slot_of(pool, start, capacity, items[k])] = totals[k - first]
                sums[slot_of(pool, start, capacity, family.totals[groups[g, 0], VALUES])] = borrowed(tables.shared)[g]
    forget(family, n_groups)
    statistics[child, USED] += used
    weigh(family, pool, statistics, child, size)


@inner
def take_out(family, start, capacity, n_groups):
    """Take an observation, which is no more counted, out of the T of a table, and sum logarithms anew."""
    tables, items = family.tables, borrowed(family.items)
    pool, sums, groups = borrowed(tables.pool), borrowed(tables.sums), borrowed(tables.groups)
    owner, kind, measure = borrowed(family.owner), borrowed(family.kind), borrowed(family.measure)
    for g in range(n_groups):
        a = groups[g, 0]
        if measure[a] >= OTHERS:
            continue
        for i in range(groups[g, 1], groups[g, 2]):
            own = groups[g, 2] - groups[g, 1] - 1.0
            for k in range(start, start + capacity):
                w, n = pool[k] >> 32, pool[k] & COUNT
                if n > 0 and kind[w] == VALUE and owner[w] == a:
                    own += n * affinity(family, a, items[i], w)
            sums[slot_of(pool, start, capacity, items[i])] -= own
    add_affinities(family, start, capacity, n_groups, np.int64(-1))
    for g in range(n_groups):
        if measure[groups[g, 0]] < OTHERS:
            sum_logarithms(family, start, capacity, groups[g, 0])


@inner
def weigh(family, pool, statistics, c, size):
    """Write a row's size, and what types its entity may be of."""
    statistics[c, SIZE], statistics[c, LOG_SIZE] = size, math.log(max(size, 1))
    if family.presence.shape[0] > 1:
        weigh_types(pool, borrowed(family.totals), borrowed(family.presence), statistics, c, size)


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
    affinities = np.zeros(high)
    for k in range(low, low + high):
        v, n = pool[k] >> 32, pool[k] & COUNT
        if n == 0 or kind[v] != VALUE or family.measure[owner[v]] >= OTHERS:
            continue
        for i in range(start, start + capacity):
            w, m = pool[i] >> 32, pool[i] & COUNT
            if m > 0 and kind[w] == VALUE and owner[w] == owner[v]:
                more = n * m * affinity(family, owner[v], v, w)
                affinities[k - low] += more
                sums[i] += more
    used = np.int64(0)
    for k in range(low, low + high):
        feature, n = pool[k] >> 32, pool[k] & COUNT
        if n > 0:
            used += add(pool, start, capacity, feature, n)
            if kind[feature] == VALUE:
                sums[slot_of(pool, start, capacity, feature)] += sums[k] + affinities[k - low]
    for k in range(start, start + capacity):
        feature, n = pool[k] >> 32, pool[k] & COUNT
        if n > 0 and kind[feature] == TOTAL and feature != MENTIONS:
            a = owner[feature]
            if feature == totals[a, VALUES] and family.measure[a] < OTHERS:
                sum_logarithms(family, start, capacity, a)
    statistics[child, USED] += used
    weigh(family, pool, statistics, child, size_first + size_second)
