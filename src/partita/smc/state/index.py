"""An index from keys to the observations that have them (DESIGN, section 5).

Keys are 64-bit numbers (:mod:`partita.smc.state.keys`). Those of all observations stand one after the other, each
observation's in ascending order, and every entry points to the entry before it with the same key: a list from
the most recent observation to the first. A hash table with open addressing finds the latest entry of a key,
and how many there are. An observation's keys are *stored* when it arrives and *inserted* when it is observed,
so that what a look-up finds does not depend on how the data were batched.

Kernels grow these arrays in place, doubling the table, so that an insertion costs a constant on average.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.experimental import structref

from partita._core.kernel import inner, kernel
from partita._core.typing import Integers

FIELDS = [
    ("on", types.int64),  # 0: nothing is kept, every observation meets every subproblem
    ("starts", types.int64[::1]),  # where the keys of each observation start, and where the last one's end
    ("keys", types.int64[::1]),
    ("owner", types.int64[::1]),  # the observation that each key is of
    ("earlier", types.int64[::1]),  # the entry before with the same key; −1 if there is none
    ("heads", types.int64[::1]),  # the table: the latest entry of a key; −1 where it is empty
    ("counts", types.int64[::1]),  # the table: how many entries the key has
    ("n_distinct", types.int64),  # how many keys the table holds
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
    index.owner, index.earlier = np.empty(0, np.int64), np.empty(0, np.int64)
    index.heads, index.counts = np.full(16, -1), np.zeros(16, np.int64)
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
    index.owner = longer(index.owner, at + keys.shape[0])
    index.earlier = longer(index.earlier, at + keys.shape[0])
    for x in range(n):
        index.starts[first + x + 1] = at + starts[x + 1]
        for p in range(starts[x], starts[x + 1]):
            index.keys[at + p] = keys[p]
            index.owner[at + p] = first + x


@inner
def slot(heads, keys, key):
    """The place in the table that holds ``key``, or that would."""
    mask = heads.shape[0] - 1
    at = np.int64((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)) & mask
    while heads[at] >= 0 and keys[heads[at]] != key:
        at = (at + 1) & mask
    return at


@inner
def enlarge(index):
    """Twice the table."""
    size = 2 * index.heads.shape[0]
    heads, counts = np.full(size, -1), np.zeros(size, np.int64)
    for k in range(index.heads.shape[0]):
        head = index.heads[k]
        if head >= 0:
            at = slot(heads, index.keys, index.keys[head])
            heads[at], counts[at] = head, index.counts[k]
    index.heads, index.counts = heads, counts


@inner
def insert(index, x):
    """Let the keys of observation ``x``, all of them stored, lead to it; it must follow all inserted ones."""
    for p in range(index.starts[x], index.starts[x + 1]):
        if 2 * index.n_distinct >= index.heads.shape[0]:
            enlarge(index)
        at = slot(index.heads, index.keys, index.keys[p])
        index.earlier[p] = index.heads[at] if index.counts[at] > 0 else -1
        index.n_distinct += index.heads[at] < 0
        index.heads[at] = p
        index.counts[at] += 1


@inner
def delete(index, x):
    """Let no key lead to observation ``x`` any more; its keys cost the length of their lists."""
    for p in range(index.starts[x], index.starts[x + 1]):
        at = slot(index.heads, index.keys, index.keys[p])
        index.counts[at] -= 1
        if index.counts[at] == 0:
            continue  # the entry stays, so that those behind it in the table are found
        if index.heads[at] == p:
            index.heads[at] = index.earlier[p]
            continue
        q = index.heads[at]
        while index.earlier[q] != p:
            q = index.earlier[q]
        index.earlier[q] = index.earlier[p]


@kernel
def insert_first(index, n):
    """Insert the first ``n`` observations into an index that holds none."""
    for x in range(n):
        insert(index, x)


@kernel
def branched(index):
    """An index that is like this one, and grows by itself; what is stored, but not inserted, they share."""
    other = new_index(index.on)
    other.n_distinct, other.starts = index.n_distinct, index.starts
    other.keys, other.owner = index.keys, index.owner
    other.earlier, other.heads, other.counts = index.earlier.copy(), index.heads.copy(), index.counts.copy()
    return other


def filled_index(starts: Integers, keys: Integers) -> Any:
    """An index in use that holds these observations; they are as :func:`store_keys` takes them."""
    index = new_index(1)
    store_keys(index, 0, starts, keys)
    insert_first(index, len(starts) - 1)
    return index
