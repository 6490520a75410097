"""Sparse counts of many clusters: what text and record models keep of each.

A cluster of texts has counts of values, words and letters that are few beside all there are, so each cluster
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

from partita._core.kernel import borrowed, inner, kernel

LOG_SIZE, START, CAPACITY, USED, SIZE = range(5)
WIDTH = 5
SMALLEST = 8
COUNT = (1 << 32) - 1

FIELDS = [
    ("pool", types.int64[::1]),
    ("end", types.int64),
    ("free", types.int64[::1]),  # by log₂ of the size: the first free piece; in it is where the next one is
    # Working memory of a text or record family:
    ("added", types.int64[::1]),  # a table of what the observation under consideration has added itself
    ("added_mark", types.int64[::1]),
    ("mark", types.int64),
    ("words", types.int64[:, ::1]),
    ("tokens", types.int64[:, ::1]),
    ("groups", types.int64[:, ::1]),
    ("empty", types.float64[::1]),
    ("found", types.int64[:, ::1]),  # values of a cluster and their counts
    ("chosen", types.int64[:, ::1]),  # those of one attribute: without the observation, and with it
    ("near", types.int64[:, ::1]),  # pairs of values, and how many edits they are apart
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
def new_tables():
    """An empty pool."""
    tables = structref.new(TABLES)
    tables.pool, tables.end = np.zeros(1024, np.int64), 0
    tables.free = np.full(40, -1, np.int64)
    tables.added, tables.added_mark, tables.mark = np.zeros(64, np.int64), np.zeros(64, np.int64), 0
    tables.words, tables.tokens = np.empty((64, 4), np.int64), np.empty((256, 3), np.int64)
    tables.groups, tables.empty = np.empty((16, 5), np.int64), np.empty(16)
    tables.found, tables.chosen = np.empty((64, 2), np.int64), np.empty((64, 3), np.int64)
    tables.near = np.zeros((4096, 2), np.int64)
    return tables


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
        tables.end = start + capacity
    pool = borrowed(tables.pool)
    for k in range(start, start + capacity):
        pool[k] = 0
    return start


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
    pool = borrowed(tables.pool)
    if capacity == old_capacity:
        for k in range(capacity):
            pool[start + k] = pool[old_start + k]
    else:
        for k in range(start, start + capacity):
            pool[k] = 0
        used = np.int64(0)
        for k in range(old_start, old_start + old_capacity):
            entry = pool[k]
            if entry & COUNT:
                used += add(pool, start, capacity, entry >> 32, entry & COUNT)
    if own_capacity and start != own_start:
        release(tables, own_start, own_capacity)
    statistics[child, START], statistics[child, CAPACITY] = start, capacity
    statistics[child, USED] = used


@kernel
def kept_tables(tables):
    """Copies of what tables are made from: the pool as far as it is in use, and its free pieces."""
    return tables.pool[: tables.end].copy(), tables.free.copy()


@kernel
def fill_tables(tables, pool, free):
    """Write contents that :func:`kept_tables` has returned."""
    tables.pool, tables.end, tables.free = pool.copy(), pool.shape[0], free.copy()


def filled_tables(pool: Any, free: Any) -> Any:
    """Tables with such contents, and working memory of their own."""
    tables = new_tables()
    fill_tables(tables, pool, free)
    return tables
