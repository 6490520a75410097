"""A cluster's table as observations come and go."""

from __future__ import annotations

import math

import numpy as np

from partita._core.kernel import inner, shared
from partita._core.lent import lent
from partita.models.records.comparisons.family import MENTIONS, OTHERS, PRESENT, UNHEARD, VALUES
from partita.models.records.comparisons.presence import weigh_types
from partita.models.records.comparisons.values import evidence, forget, gather, make_room, prepare, with_items
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
    count_of,
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
    items, totals, groups = family.items, family.totals, family.tables.groups
    used = np.int64(0)
    for g in range(n_groups):
        a = groups[g, 0]
        if family.presence[0, a] != UNHEARD:
            used += add(pool, start, capacity, MENTIONS, by)
            used += add(pool, start, capacity, totals[a, PRESENT], by)
        used += add(pool, start, capacity, totals[a, VALUES], (groups[g, 2] - groups[g, 1]) * by)
        for k in range(groups[g, 1], groups[g, 2]):
            used += add(pool, start, capacity, items[k], by)
    return used


@inner
def new_entries(family, statistics, parent, n_groups):
    """How many entries an observation needs that the table of ``parent`` has not, at most."""
    items, totals, groups, pool = family.items, family.totals, family.tables.groups, family.tables.pool
    start, capacity = np.int64(statistics[parent, START]), np.int64(statistics[parent, CAPACITY])
    new = np.int64(count_of(pool, start, capacity, MENTIONS) == 0)
    for g in range(n_groups):
        new += 2 * (count_of(pool, start, capacity, totals[groups[g, 0], VALUES]) == 0)
        for k in range(groups[g, 1], groups[g, 2]):
            new += count_of(pool, start, capacity, items[k]) == 0
    return new


@inner
def write_evidence(family, start, capacity, n_groups):
    """Write what a table's values of the attributes that have a group say, beside the counts of them."""
    tables, totals, measure = family.tables, family.totals, family.measure
    groups, sums = tables.groups, tables.sums
    gather(family, start, capacity, n_groups)
    at, nothing = np.int64(0), np.int64(0)
    for g in range(n_groups):
        a = groups[g, 0]
        at, m = with_items(family, at, g, nothing, nothing)
        if measure[a] < OTHERS and m > 0:
            sums[slot_of(tables.pool, start, capacity, totals[a, VALUES])] = evidence(family, a, m)


@shared
def shift(family, statistics, child, parent, size, data, x, by):
    """Row of ``child``, of so many members: that of ``parent`` with ``x`` added or taken out."""
    family, statistics = lent(family), lent(statistics)
    n_groups = prepare(family, int(data[x, 0]), int(data[x, 1]))
    new = new_entries(family, statistics, parent, n_groups) if by > 0 else np.int64(0)
    copy_table(family.tables, statistics, child, parent, new)
    pool = family.tables.pool
    start, capacity = np.int64(statistics[child, START]), np.int64(statistics[child, CAPACITY])
    statistics[child, USED] += count_items(family, pool, start, capacity, n_groups, by)
    write_evidence(family, start, capacity, n_groups)
    forget(family, n_groups)
    weigh(family, pool, statistics, child, size)


@inner
def weigh(family, pool, statistics, c, size):
    """Write a row's size, and what types its entity may be of."""
    statistics[c, SIZE], statistics[c, LOG_SIZE] = size, math.log(max(size, 1))
    if family.presence.shape[0] > 1:
        weigh_types(pool, family.totals, family.presence, statistics, c, size)


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
    family, statistics = lent(family), lent(statistics)
    if child == second:
        first, second = second, first
    tables = family.tables
    copy_table(tables, statistics, child, first, np.int64(statistics[second, USED]))
    pool, used = tables.pool, np.int64(0)
    start, capacity = np.int64(statistics[child, START]), np.int64(statistics[child, CAPACITY])
    low, high = np.int64(statistics[second, START]), np.int64(statistics[second, CAPACITY])
    for k in range(low, low + high):
        if pool[k] & COUNT > 0:
            used += add(pool, start, capacity, pool[k] >> 32, pool[k] & COUNT)
    statistics[child, USED] += used
    n_groups = prepare_mentioned(family, low, high)
    write_evidence(family, start, capacity, n_groups)
    forget(family, n_groups)
    weigh(family, pool, statistics, child, size_first + size_second)


@inner
def prepare_mentioned(family, start, capacity):
    """Give each attribute that a table mentions a group, without items; returns the number of groups."""
    tables, n_attributes, n = family.tables, family.totals.shape[0], np.int64(0)
    make_room(family, n_attributes)
    groups, group_of = tables.groups, tables.group_of
    for a in range(n_attributes):
        if count_of(tables.pool, start, capacity, family.totals[a, VALUES]) > 0:
            groups[n, 0], group_of[a] = a, n
            n += 1
    return n
