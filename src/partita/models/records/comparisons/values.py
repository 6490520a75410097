"""What a cluster says of the attributes of an observation, compared with what that says."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba.extending import overload

from partita._core.kernel import INNER, borrowed, inner
from partita.models.records.comparisons.family import OTHERS, VALUE
from partita.models.records.comparisons.similarity import affinity, rounded
from partita.models.records.tables import COUNT
from partita.models.registry import FAMILIES


@inner
def grown_to(array, n):
    """The array itself where it is long enough, else one that is, with the same contents."""
    if array.shape[0] >= n:
        return array
    result = np.empty((2 * n, array.shape[1]), np.int64)
    for i in range(array.shape[0]):
        for j in range(array.shape[1]):
            result[i, j] = array[i, j]
    return result


@inner
def potential(log_terms, n, sharpness, cohesion):
    """The evidence of n values, from Σ_v n_v·log(T_v / n_v)."""
    if n < 2:
        return 0.0
    return (1.0 - 1.0 / n) * (0.5 * n) ** cohesion * (log_terms - n * rounded(math.log(n - 1.0))) / sharpness


@inner
def term(total, n):
    """What a value that occurs n times adds to the sum of logarithms."""
    return n * rounded(math.log(total / n))


@inner
def prepare(family, start, end):
    """List what an observation says of each attribute: attribute and range of items; returns the number of groups."""
    tables, items, owner = family.tables, borrowed(family.items), borrowed(family.owner)
    tables.groups = grown_to(tables.groups, end - start + 1)
    if tables.group_of.shape[0] < family.totals.shape[0]:
        tables.group_of = np.full(family.totals.shape[0], -1, np.int64)
    if tables.shared.shape[0] <= end - start:
        tables.shared, tables.totals = np.zeros(2 * (end - start) + 2), np.zeros(2 * (end - start) + 2)
        tables.times = np.zeros(2 * (end - start) + 2, np.int64)
    groups, group_of = borrowed(tables.groups), borrowed(tables.group_of)
    n = np.int64(0)
    for k in range(start, end):
        a = owner[items[k]]
        if n == 0 or groups[n - 1, 0] != a:
            groups[n, 0], groups[n, 1] = a, k
            group_of[a] = n
            n += 1
        groups[n - 1, 2] = k + 1
    return n


@inner
def forget(family, n_groups):
    """Forget what :func:`prepare` has noted."""
    groups, group_of = borrowed(family.tables.groups), borrowed(family.tables.group_of)
    for g in range(n_groups):
        group_of[groups[g, 0]] = -1


@inner
def compare(family, start, capacity, n_groups):
    """Compare an observation's values with those in a table.

    Writes, of each of its items, T of the value with it, in ``tables.totals``, and how often it then occurs, in
    ``tables.times``; of each group Σ_v n_v·log(T_v / n_v), in ``tables.shared``.
    """
    tables, items = family.tables, borrowed(family.items)
    pool, sums, owner, kind = borrowed(tables.pool), borrowed(tables.sums), borrowed(family.owner), borrowed(family.kind)
    groups, group_of, shared = borrowed(tables.groups), borrowed(tables.group_of), borrowed(tables.shared)
    totals, times, measure = borrowed(tables.totals), borrowed(tables.times), borrowed(family.measure)
    if n_groups == 0:
        return
    base = groups[0, 1]
    for g in range(n_groups):
        shared[g] = 0.0
        for i in range(groups[g, 1], groups[g, 2]):
            totals[i - base], times[i - base] = groups[g, 2] - groups[g, 1] - 1.0, 1
    for k in range(start, start + capacity):
        w, n = pool[k] >> 32, pool[k] & COUNT
        if n == 0 or kind[w] != VALUE:
            continue
        a = owner[w]
        g = group_of[a]
        if g < 0 or measure[a] >= OTHERS:
            continue
        more, same = 0.0, np.int64(-1)
        for i in range(groups[g, 1], groups[g, 2]):
            found = affinity(family, a, items[i], w)
            totals[i - base] += n * found
            more += found
            if items[i] == w:
                same = i - base
        if same < 0:
            shared[g] += term(sums[k] + n * more, n)
        else:
            totals[same] += sums[k] + n * more
            times[same] += n
    for g in range(n_groups):
        for i in range(groups[g, 1], groups[g, 2]):
            if totals[i - base] > 0.0:
                shared[g] += term(totals[i - base], times[i - base])


# ---------------------------------------------------------------------- attributes with a kernel of their own


@inner
def choose(family, start, capacity, first, last, a):
    """List a table's values of an attribute without and with an observation, in ``chosen``; returns how many."""
    tables, items = family.tables, borrowed(family.items)
    tables.chosen = grown_to(tables.chosen, capacity + last - first + 1)
    pool, owner, kind = borrowed(tables.pool), borrowed(family.owner), borrowed(family.kind)
    chosen, n = borrowed(tables.chosen), np.int64(0)
    for k in range(start, start + capacity):
        w, count = pool[k] >> 32, pool[k] & COUNT
        if count > 0 and kind[w] == VALUE and owner[w] == a:
            chosen[n, 0], chosen[n, 1], chosen[n, 2] = w, count, count
            n += 1
    for k in range(first, last):
        i = 0
        while i < n and chosen[i, 0] != items[k]:
            i += 1
        if i == n:
            chosen[n, 0], chosen[n, 1], chosen[n, 2] = items[k], 0, 0
            n += 1
        chosen[i, 2] += 1
    return n


@inner
def listed(chosen, column, number, n, values, counts):
    """Values that occur and their counts, from one column of ``chosen``; returns how many."""
    count = 0
    for i in range(n):
        if chosen[i, column] > 0:
            values[count], counts[count] = number[chosen[i, 0]], chosen[i, column]
            count += 1
    return count


def others_gain(others: Any, place: Any, chosen: Any, number: Any, n: Any) -> Any:
    """log p of what ``chosen`` has, with the observation over without it, by the kernel at a place in ``others``."""


@overload(others_gain, jit_options=INNER)
def _others_gain(others, place, chosen, number, n):
    if not len(others):

        def nothing(others, place, chosen, number, n):
            return 0.0

        return nothing
    log_values = FAMILIES[others[0].instance_class].log_values

    def first_or_rest(others, place, chosen, number, n):
        if place > 0:
            return others_gain(others[1:], place - 1, chosen, number, n)
        values, counts = np.empty(n), np.empty(n, np.int64)
        before = listed(chosen, np.int64(1), number, n, values, counts)
        result = -log_values(others[0], values, counts, before) if before > 0 else 0.0
        return result + log_values(
            others[0], values, counts, listed(chosen, np.int64(2), number, n, values, counts)
        )

    return first_or_rest
