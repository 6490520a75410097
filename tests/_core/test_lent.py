"""Lent tuples: what is lent is read, written and replaced where it is, and no reference is counted or lost."""

import sys
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from partita._core.kernel import inner
from partita._core.lent import lent
from partita.models.records.tables import new_tables


class Family(NamedTuple):
    """Such as kernels have."""

    counts: Any
    step: float
    others: Any
    tables: Any


@inner
def count(family, k):
    """Read and write fields of all sorts."""
    family.counts[k] += family.step
    family.others[0][k] += 1
    tables = family.tables
    if tables.pool.shape[0] < 5000:
        tables.pool = np.full(5000, 7)
    tables.end += 1
    return family.counts[k] + family.tables.pool[k]


@njit
def total(family, n):
    """What the calls return, added up."""
    borrower, result = lent(family), 0.0
    for k in range(n):
        result += count(borrower, k)
    return result, family.tables.pool, family.tables.end


def test_a_lent_tuple_is_the_tuple_itself():
    family = Family(np.zeros(3), 2.0, (np.zeros(3, np.int64),), new_tables(True))
    holders = [sys.getrefcount(part) for part in (family.counts, family.others[0])]
    result, pool, end = total(family, 3)
    assert result == 3 * (2.0 + 7.0)
    assert family.counts.tolist() == [2.0] * 3
    assert family.others[0].tolist() == [1] * 3
    assert pool[:1].tolist() == [7]
    assert (len(pool), end) == (5000, 3)
    assert [sys.getrefcount(part) for part in (family.counts, family.others[0])] == holders


@njit
def largest(numbers):
    """A lent array, and one that is lent again."""
    given = lent(lent(numbers))
    best = given[0]
    for k in range(given.shape[0]):
        best = max(best, given[k])
    return best


def test_an_array_is_lent_too():
    assert largest(np.array([1.0, 5.0, 3.0])) == 5.0
