"""An index from keys to the observations that have them (DESIGN, section 5).

Keys are 64-bit numbers (:mod:`partita.smc.state.keys`). Those of all observations stand one after the other, each
observation's in ascending order. A hash table with open addressing has a row for each key: where the list of its
observations is in ``owners``, how many there are, in the order in which they came, and for how many there is room. A
list that is full moves to twice the room, so it is read from one piece of memory, which is what a look-up does. An
observation's keys are *stored* when it arrives and *inserted* when it is observed, so that what a look-up finds does
not depend on how the data were batched.

Kernels grow these arrays in place, doubling the table, so that an insertion costs a constant on average.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.experimental import structref

from partita._core.kernel import inner, kernel
from partita._core.typing import Integers

KEY, FIRST, COUNT, ROOM = range(4)  # columns of the table; without room a row is empty

FIELDS = [
    ("on", types.int64),  # 0: nothing is kept, every observation meets every subproblem
    ("starts", types.int64[::1]),  # where the keys of each observation start, and where the last one's end
    ("keys", types.int64[::1]),
    ("table", types.int64[:, ::1]),
    ("n_distinct", types.int64),  # how many keys it holds
    ("owners", types.int64[::1]),  # the lists of observations, and pieces that became too small
    ("end", types.int64),  # of what is in use of it
    ("free", types.int64[::1]),  # by log₂ of the room: the first free piece; in it is where the next one is
]


@structref.register
class IndexType(types.StructRef):  # type: ignore[misc]
    """Numba's type of an :class:`Index`."""

    def preprocess_fields(self, fields):
        """Fields are declared with their final types."""
        return fields


class Index(structref.StructRefProxy):  # type: ignore[misc]
    """The index, as kernels see it; ``FIELDS`` says what is in it."""


structref.define_boxing(IndexType, Index)
INDEX = IndexType(FIELDS)


@kernel
def new_index(on):
    """An empty index, in use or not."""
    index = structref.new(INDEX)
    index.on, index.n_distinct = on, 0
    index.starts, index.keys = np.zeros(1, np.int64), np.empty(0, np.int64)
    index.table, index.owners = np.zeros((16, 4), np.int64), np.empty(0, np.int64)
    index.end, index.free = 0, np.full(40, -1)
    return index


@inner
def longer(array, size):
    """The array itself where it is long enough, else a copy with room to spare."""
    n = array.shape[0]
    if n >= size:
        return array
    result = np.empty(max(size, n * 3 // 2), np.int64)
    for k in range(n):
        result[k] = array[k]
    return result


@kernel
def store_keys(index, first, starts, keys):
    """Store the keys of observations from ``first`` on, in place of any stored there and not inserted."""
    n, at = starts.shape[0] - 1, index.starts[first]
    index.starts = longer(index.starts, first + n + 1)
    index.keys = longer(index.keys, at + keys.shape[0])
    for x in range(n):
        index.starts[first + x + 1] = at + starts[x + 1]
        for p in range(starts[x], starts[x + 1]):
            index.keys[at + p] = keys[p]


@inner
def empty_index(index):
    """Forget all observations."""
    for k in range(index.table.shape[0]):
        index.table[k, COUNT] = index.table[k, ROOM] = 0
    index.n_distinct, index.end, index.starts[0] = 0, 0, 0
    for level in range(index.free.shape[0]):
        index.free[level] = -1


@inner
def slot(table, key):
    """The row of the table that holds ``key``, or that would."""
    mask = table.shape[0] - 1
    at = np.int64((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)) & mask
    while table[at, ROOM] > 0 and table[at, KEY] != key:
        at = (at + 1) & mask
    return at


@inner
def enlarge(index):
    """Twice the table."""
    old, table = index.table, np.zeros((2 * index.table.shape[0], 4), np.int64)
    for k in range(old.shape[0]):
        if old[k, ROOM] > 0:
            at = slot(table, old[k, KEY])
            for column in range(4):
                table[at, column] = old[k, column]
    index.table = table


@inner
def move(index, at):
    """Give the list of a row twice the room, or room for one."""
    table = index.table
    first, room, level = table[at, FIRST], table[at, ROOM], 0
    while (1 << level) < 2 * room:
        level += 1
    begin = index.free[level]
    if begin >= 0:
        index.free[level] = index.owners[begin]
    else:
        begin, index.end = index.end, index.end + (1 << level)
        index.owners = longer(index.owners, index.end)
    for k in range(room):
        index.owners[begin + k] = index.owners[first + k]
    if room > 0:
        index.owners[first] = index.free[level - 1]
        index.free[level - 1] = first
    table[at, FIRST], table[at, ROOM] = begin, 1 << level


@inner
def insert(index, x):
    """Let the keys of observation ``x``, all of them stored, lead to it; it must follow all inserted ones."""
    for p in range(index.starts[x], index.starts[x + 1]):
        if 2 * index.n_distinct >= index.table.shape[0]:
            enlarge(index)
        at = slot(index.table, index.keys[p])
        table = index.table
        if table[at, ROOM] == 0:
            table[at, KEY] = index.keys[p]
            index.n_distinct += 1
        if table[at, COUNT] == table[at, ROOM]:
            move(index, at)
        index.owners[table[at, FIRST] + table[at, COUNT]] = x
        table[at, COUNT] += 1


@inner
def delete(index, x):
    """Let no key lead to observation ``x`` any more; its keys cost the length of their lists."""
    table, owners = index.table, index.owners
    for p in range(index.starts[x], index.starts[x + 1]):
        at = slot(table, index.keys[p])
        table[at, COUNT] -= 1  # a row without observations stays, so that those behind it are found
        gone, end = table[at, FIRST], table[at, FIRST] + table[at, COUNT]
        while owners[gone] != x:
            gone += 1
        for k in range(gone, end):
            owners[k] = owners[k + 1]


@kernel
def insert_first(index, n):
    """Insert the first ``n`` observations into an index that holds none."""
    for x in range(n):
        insert(index, x)


@kernel
def branched(index):
    """An index that is like this one, and grows by itself; what is stored, but not inserted, they share."""
    other = new_index(index.on)
    other.n_distinct, other.starts, other.keys = index.n_distinct, index.starts, index.keys
    other.table, other.owners = index.table.copy(), index.owners.copy()
    other.end, other.free = index.end, index.free.copy()
    return other


def filled_index(starts: Integers, keys: Integers) -> Any:
    """An index in use that holds these observations; they are as :func:`store_keys` takes them."""
    index = new_index(1)
    store_keys(index, 0, starts, keys)
    insert_first(index, len(starts) - 1)
    return index
