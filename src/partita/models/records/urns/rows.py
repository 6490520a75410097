"""A cluster's table of counts as observations come and go."""

from __future__ import annotations

import math

import numpy as np

from partita._core.kernel import inner, shared
from partita._core.lent import lent
from partita.models.records.tables import CAPACITY, COUNT, LOG_SIZE, SIZE, START, USED, add, copy_table
from partita.models.records.urns.family import CONTEXT, LETTER


@inner
def begin(family, statistics, d):
    """Row of the empty cluster: nothing in it."""
    for k in range(statistics.shape[1]):
        statistics[0, k] = 0.0


@inner
def write_size(statistics, c, size):
    """Write how many members a cluster has."""
    statistics[c, SIZE], statistics[c, LOG_SIZE] = size, math.log(max(size, 1))


@shared
def shift(family, statistics, child, parent, size, data, x, by):
    """Row of ``child``, of so many members: that of ``parent`` with ``x`` added or taken out."""
    tokens, starts = lent(family.tokens), lent(family.starts)
    first, last = starts[int(data[x, 0])], starts[int(data[x, 1])]
    copy_table(family.tables, statistics, child, parent, 2 * (last - first) if by > 0 else np.int64(0))
    pool = lent(family.tables.pool)
    start, capacity = np.int64(statistics[child, START]), np.int64(statistics[child, CAPACITY])
    used = np.int64(0)
    for t in range(first, last):
        used += add(pool, start, capacity, tokens[t, CONTEXT], by)
        used += add(pool, start, capacity, tokens[t, LETTER], by)
    statistics[child, USED] += used
    write_size(statistics, child, size)


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
    copy_table(family.tables, statistics, child, first, np.int64(statistics[second, USED]))
    pool = lent(family.tables.pool)
    start, capacity = np.int64(statistics[child, START]), np.int64(statistics[child, CAPACITY])
    used, low = np.int64(0), np.int64(statistics[second, START])
    for k in range(low, low + np.int64(statistics[second, CAPACITY])):
        feature, n = pool[k] >> 32, pool[k] & COUNT
        if n > 0:
            used += add(pool, start, capacity, feature, n)
    statistics[child, USED] += used
    write_size(statistics, child, size_first + size_second)
