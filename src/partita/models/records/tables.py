"""Sparse counts of many clusters: what text and record models keep of each.

A cluster of texts has counts of letters, one of records counts of values, that are few beside all there are, so each
has a small open-addressing table from feature to count. The tables of all clusters lie in one pool, which
kernels enlarge themselves. An entry is one 64-bit number, the feature in its upper and the count in its lower
half; 0 is a free one, features begin at 1. A row of ``statistics`` says where a cluster's table is:

    [log|c|, start in the pool, size of the table (a power of two, or 0), entries in use, |c|]

and after these come the log-probabilities of the types that its entity may be of.

A row that is written anew keeps its piece of the pool where it is large enough, so a cluster's id and its
memory are reused together. Pieces that became too small wait in one list a size for the next to need one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.experimental import structref

from partita._core.kernel import inner, kernel
from partita._core.lent import lent

LOG_SIZE, START, CAPACITY, USED, SIZE = range(5)
WIDTH = 5
SMALLEST = 8
COUNT = (1 << 32) - 1
COMPARED = 1 << 16  # pairs of values that are remembered

FIELDS = [
    ("pool", types.int64[::1]),
    ("sums", types.float64[::1]),  # beside each entry a number, for models that keep sums; else empty
    ("end", types.int64),
    ("free", types.int64[::1]),  # by log₂ of the size: the first free piece; in it is where the next one is
    # Working memory of records:
    ("groups", types.int64[:, ::1]),  # what an observation says of each attribute
    ("found", types.int64[:, ::1]),  # a cluster's values of these, and their counts
    ("chosen", types.int64[:, ::1]),  # values of one attribute, and how often they occur, without and with it
    # Pairs of values that were compared last, each followed by the bits of what came of it: one look at the memory.
    ("near", types.int64[::1]),
    ("group_of", types.int64[::1]),  # of each attribute: its group in the observation, or −1
    ("joined", types.float64[:, ::1]),  # weights between values of an attribute
    ("reach", types.float64[::1]),  # and of each value with all
]


@structref.register
class TablesType(types.StructRef):  # type: ignore[misc]
    """Numba's type of :class:`Tables`."""

    def preprocess_fields(self, fields):
        """Fields are declared with their final types."""
        return fields


class Tables(structref.StructRefProxy):  # type: ignore[misc]
    """The pool of all tables, and working memory; ``FIELDS`` says what is in it."""


structref.define_boxing(TablesType, Tables)
TABLES = TablesType(FIELDS)


@kernel
def new_tables(keeps_sums):
    """An empty pool, with a number beside each entry or without."""
    tables = structref.new(TABLES)
    tables.pool, tables.end = np.zeros(1024, np.int64), 0
    tables.sums = np.zeros(1024 if keeps_sums else 0)
    tables.free = np.full(40, -1, np.int64)
    begin_work(tables)
    return tables


@inner
def begin_work(tables):
    """Have working memory."""
    tables.groups, tables.found = np.empty((16, 5), np.int64), np.empty((64, 3), np.int64)
    tables.chosen = np.empty((64, 3), np.int64)
    tables.near = np.zeros(2 * COMPARED, np.int64)
    tables.group_of = np.full(16, -1, np.int64)
    tables.joined, tables.reach = np.empty((16, 16)), np.empty(16)


@kernel
def beside(tables):
    """The same tables with other working memory, to be read at the same time."""
    others = structref.new(TABLES)
    others.pool, others.end, others.sums, others.free = tables.pool, tables.end, tables.sums, tables.free
    begin_work(others)
    return others


@inner
def free_all(tables):
    """Forget all tables; rows of statistics must not point to them any more."""
    tables.end = 0
    for level in range(tables.free.shape[0]):
        tables.free[level] = -1


@inner
def place(feature, mask):
    """Where in its table a feature is looked for first."""
    return np.int64((np.uint64(feature) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)) & mask


@inner
def count_of(pool, start, capacity, feature):
    """The count of a feature in a table."""
    if capacity == 0:
        return np.int64(0)
    mask = capacity - 1
    at = place(feature, mask)
    while True:
        entry = pool[start + at]
        if entry >> 32 == feature:
            return entry & COUNT
        if entry == 0:
            return np.int64(0)
        at = (at + 1) & mask


@inner
def slot_of(pool, start, capacity, feature):
    """Where in the pool a feature of a table is; it must be there."""
    mask = capacity - 1
    at = place(feature, mask)
    while pool[start + at] >> 32 != feature:
        at = (at + 1) & mask
    return start + at


@inner
def add(pool, start, capacity, feature, by):
    """Add to the count of a feature; returns 1 if it is a new entry, for which there must be room."""
    mask = capacity - 1
    at = place(feature, mask)
    while True:
        entry = pool[start + at]
        if entry >> 32 == feature:
            pool[start + at] = entry + by
            return 0
        if entry == 0:
            pool[start + at] = (np.int64(feature) << 32) + by
            return 1
        at = (at + 1) & mask


@inner
def allocate(tables, capacity):
    """The start of a piece of the pool of so many entries, all free."""
    level = 0
    while (1 << level) < capacity:
        level += 1
    start = tables.free[level]
    if start >= 0:
        tables.free[level] = tables.pool[start]
    else:
        start = tables.end
        if start + capacity > tables.pool.shape[0]:
            larger = np.empty(max(tables.pool.shape[0] * 4 // 3, start + capacity), np.int64)
            old = tables.pool
            for k in range(start):
                larger[k] = old[k]
            tables.pool = larger
            if tables.sums.shape[0] > 0:
                more, few = np.zeros(larger.shape[0]), tables.sums
                for k in range(start):
                    more[k] = few[k]
                tables.sums = more
        tables.end = start + capacity
    clear(lent(tables.pool), lent(tables.sums), start, capacity)
    return start


@inner
def clear(pool, sums, start, capacity):
    """Free all entries of a piece; the sum beside a free one is 0."""
    for k in range(start, start + capacity):
        pool[k] = 0
        if sums.shape[0] > 0:
            sums[k] = 0.0


@inner
def release(tables, start, capacity):
    """Give a piece of the pool back."""
    level = 0
    while (1 << level) < capacity:
        level += 1
    tables.pool[start] = tables.free[level]
    tables.free[level] = start


@inner
def copy_table(tables, statistics, child, parent, extra):
    """Make the table of ``child`` that of ``parent``, with room for ``extra`` more; they may be the same."""
    used = np.int64(statistics[parent, USED])
    capacity = np.int64(statistics[child, CAPACITY])
    needed = SMALLEST
    while 3 * needed < 4 * (used + extra):
        needed *= 2
    if child == parent and capacity >= needed:
        return
    old_start, old_capacity = np.int64(statistics[parent, START]), np.int64(statistics[parent, CAPACITY])
    own_start, own_capacity = np.int64(statistics[child, START]), capacity
    start = own_start
    if capacity < needed or capacity > 4 * needed:
        start, capacity = allocate(tables, needed), np.int64(needed)
    pool, sums = lent(tables.pool), lent(tables.sums)
    keeps_sums = sums.shape[0] > 0
    if capacity == old_capacity:
        for k in range(capacity):
            pool[start + k] = pool[old_start + k]
            if keeps_sums:
                sums[start + k] = sums[old_start + k]
    else:
        clear(pool, sums, start, capacity)
        used = np.int64(0)
        for k in range(old_start, old_start + old_capacity):
            entry = pool[k]
            if entry & COUNT:
                used += add(pool, start, capacity, entry >> 32, entry & COUNT)
                if keeps_sums:
                    sums[slot_of(pool, start, capacity, entry >> 32)] = sums[k]
    if own_capacity and start != own_start:
        release(tables, own_start, own_capacity)
    statistics[child, START], statistics[child, CAPACITY] = start, capacity
    statistics[child, USED] = used


@kernel
def kept_tables(tables):
    """Copies of what tables are made from: the pool and its sums as far as it is in use, and its free pieces."""
    return tables.pool[: tables.end].copy(), tables.sums[: tables.end].copy(), tables.free.copy()


@kernel
def fill_tables(tables, pool, sums, free):
    """Write contents that :func:`kept_tables` has returned."""
    tables.pool, tables.sums, tables.end, tables.free = pool.copy(), sums.copy(), pool.shape[0], free.copy()


def filled_tables(pool: Any, sums: Any, free: Any, keeps_sums: bool) -> Any:
    """Tables with such contents, and working memory of their own."""
    tables = new_tables(keeps_sums)
    if len(pool):
        fill_tables(tables, pool, sums, free)
    return tables
