"""What the values of a cluster say together: the evidence of an attribute, with an observation and without."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba.extending import overload

from partita._core.kernel import INNER, inner
from partita.models.records.comparisons.family import LEVELS, LINKED
from partita.models.records.comparisons.similarity import affinity_of, level, remembered
from partita.models.records.tables import COUNT
from partita.models.registry import FAMILIES

EQUAL = LEVELS - 1
MOST = 128  # different values of an attribute in a cluster for which all trees are counted
ENDS = 4  # of a group: where its values end in ``found``


@inner
def grown_to(array, n):
    """A longer array with the same contents."""
    result = np.empty((2 * n, array.shape[1]), np.int64)
    for i in range(array.shape[0]):
        for j in range(array.shape[1]):
            result[i, j] = array[i, j]
    return result


@inner
def make_room(family, n):
    """Have room for n groups, and for the group of each attribute."""
    tables, n_attributes = family.tables, family.totals.shape[0]
    if tables.groups.shape[0] < n:
        tables.groups = grown_to(tables.groups, n)
    if tables.group_of.shape[0] < n_attributes:
        tables.group_of = np.full(n_attributes, -1, np.int64)


@inner
def prepare(family, start, end):
    """List what an observation says of each attribute: attribute and range of items; returns the number of groups."""
    make_room(family, end - start + 1)
    items, owner = family.items, family.owner
    groups, group_of = family.tables.groups, family.tables.group_of
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
    groups, group_of = family.tables.groups, family.tables.group_of
    for g in range(n_groups):
        group_of[groups[g, 0]] = -1


@inner
def gather(family, start, capacity, n_groups):
    """List a table's values of the attributes that have a group, in ``found``, group by group, sorted by rank.

    Where a group's values end is noted beside it, in ``groups``.
    """
    tables = family.tables
    if tables.found.shape[0] <= 2 * capacity:
        tables.found = grown_to(tables.found, 2 * capacity + 1)
    pool, owner, found = tables.pool, family.owner, tables.found
    groups, group_of = tables.groups, tables.group_of
    for g in range(n_groups):
        groups[g, ENDS] = 0
    n = capacity
    for k in range(start, start + capacity):  # behind where they will be, as they come
        v, count = pool[k] >> 32, pool[k] & COUNT
        if count and owner[v] >= 0 and group_of[owner[v]] >= 0:
            found[n, 0], found[n, 1], found[n, 2] = group_of[owner[v]], v, count
            groups[found[n, 0], ENDS] += 1
            n += 1
    begin = np.int64(0)
    for g in range(n_groups):  # for now where they begin; each value moves it on by one
        begin, groups[g, ENDS] = begin + groups[g, ENDS], begin
    for k in range(capacity, n):
        g = found[k, 0]
        at = groups[g, ENDS]
        found[at, 1], found[at, 2] = found[k, 1], found[k, 2]
        groups[g, ENDS] += 1
    begin = np.int64(0)
    for g in range(n_groups):
        if groups[g, ENDS] > begin + 1:
            sort_by_rank(family, begin, groups[g, ENDS])
        begin = groups[g, ENDS]


@inner
def sort_by_rank(family, begin, end):
    """Sort rows of ``found`` by rank and number, by Shell's method."""
    found, rank = family.tables.found, family.rank
    for k in range(begin, end):
        found[k, 0] = rank[found[k, 1]]
    gap = np.int64(1)
    while 3 * gap < end - begin:
        gap = 3 * gap + 1
    while gap > 0:
        for k in range(begin + gap, end):
            key, v, count, at = found[k, 0], found[k, 1], found[k, 2], np.int64(k)
            while at - gap >= begin:
                low = at - gap
                if found[low, 0] < key or (found[low, 0] == key and found[low, 1] < v):
                    break
                found[at, 0], found[at, 1], found[at, 2] = found[low, 0], found[low, 1], found[low, 2]
                at = low
            found[at, 0], found[at, 1], found[at, 2] = key, v, count
        gap //= 3


@inner
def with_items(family, at, g, first, last):
    """List the values of a group in ``chosen``, with those of an observation's items, sorted by rank.

    ``found`` has those of the group from ``at`` on. Returns where it has those of the next group, and how many are in
    ``chosen``.
    """
    tables, items, rank = family.tables, family.items, family.rank
    end = tables.groups[g, ENDS]
    if tables.chosen.shape[0] <= end - at + last - first:
        tables.chosen = grown_to(tables.chosen, end - at + last - first + 1)
    found, chosen, m = tables.found, tables.chosen, np.int64(0)
    for k in range(at, end):
        chosen[m, 0], chosen[m, 1] = found[k, 1], found[k, 2]
        m += 1
    for k in range(first, last):
        v, place = items[k], m
        while place > 0 and rank[chosen[place - 1, 0]] > rank[v]:
            place -= 1
        same = place - 1
        while same >= 0 and rank[chosen[same, 0]] == rank[v] and chosen[same, 0] > v:
            same -= 1
        if same >= 0 and chosen[same, 0] == v:
            chosen[same, 1] += 1
            continue
        place = same + 1
        for i in range(m, place, -1):
            chosen[i, 0], chosen[i, 1] = chosen[i - 1, 0], chosen[i - 1, 1]
        chosen[place, 0], chosen[place, 1] = v, 1
        m += 1
    return end, m


@inner
def evidence(family, a, m):
    """What m values of an attribute, in ``chosen`` with their counts, say: the mean over all trees that join them.

    Equal values are taken together. With n_v of the value v, weights A_vw = exp(q·e(v, w)) and S_v = Σ_w
    n_w·A_vw, all trees have Π_v S_v^(n_v − 1) / n_v times the sum over those of the distinct values, weighted by
    n_v·n_w·A_vw. That is a determinant (Kirchhoff), here by taking out one value after the other and joining its
    neighbours: nothing is subtracted, so nothing is lost. That costs m³; beyond ``MOST`` different values it is a
    bound from below, so that clusters into which everything has fallen end neither the day nor the evidence.
    """
    tables, q = family.tables, family.sharpness
    chosen, log_u, near = tables.chosen, family.log_u, tables.near
    n = np.int64(0)
    for i in range(m):
        n += chosen[i, 1]
    if n < 2:
        return 0.0
    if m == 1:
        said = affinity_of(family, log_u, a, EQUAL, chosen[0, 0], chosen[0, 0])
        return (n - 1.0) * (said if q == LINKED else math.log(said) / q)
    if tables.joined.shape[0] < m:
        tables.joined, tables.reach = np.empty((2 * m, 2 * m)), np.empty(2 * m)
    joined, reach = tables.joined, tables.reach
    for i in range(m):
        v, count = chosen[i, 0], chosen[i, 1]
        joined[i, i] = affinity_of(family, log_u, a, EQUAL, v, v) if count > 1 else 1.0
        for j in range(i):
            key, slot, known = remembered(near, chosen[j, 0], v)
            if not known:  # the family is large: to pass it on takes longer than the rest
                at = level(family, a, chosen[j, 0], v)
                said = affinity_of(family, log_u, a, at, chosen[j, 0], v)
                near[slot], near[slot + 1] = key, np.float64(said).view(np.int64)
            joined[i, j] = near[slot + 1].view(np.float64)
    if q == LINKED:
        return linked(joined, reach, chosen, m)
    return (
        log_mean_of_trees(joined, reach, chosen, m, n) if m <= MOST else mean_log(joined, chosen, m, n)
    ) / q


@inner
def log_mean_of_trees(joined, reach, chosen, m, n):
    """log of the mean over all trees, given A in ``joined``, which is overwritten."""
    total, product = -(n - 2.0) * math.log(n), 1.0  # logarithms are dear: of many factors one is taken
    for i in range(m):
        count = chosen[i, 1]
        reach[i] = count * joined[i, i] if count > 1 else 0.0
        for j in range(i):
            one = joined[i, j]
            joined[i, j] = count * chosen[j, 1] * one
            reach[i] += chosen[j, 1] * one
            reach[j] += count * one
    for i in range(m):
        if chosen[i, 1] > 1:
            total += (chosen[i, 1] - 1.0) * math.log(reach[i]) - math.log(chosen[i, 1])
    for k in range(m - 1, 0, -1):
        every = 0.0
        for j in range(k):
            every += joined[k, j]
        product *= every
        if not 1e-100 < product < 1e100:
            total, product = total + math.log(product), 1.0
        for i in range(1, k):
            share = joined[k, i] / every
            for j in range(i):
                joined[i, j] += share * joined[k, j]
    return total + math.log(product)


@inner
def linked(joined, sizes, chosen, m):
    """The sum of what average linkage says at each joining of groups, given e in ``joined``, which is overwritten.

    Groups that are each other's nearest are joined, wherever they are: with averages that leads to the same groups as
    joining the nearest of all (Bruynooghe 1977), in m² steps. A group is a row; one that was joined has the size 0.
    """
    total = 0.0
    for i in range(m):
        if chosen[i, 1] > 1:
            total += (chosen[i, 1] - 1.0) * joined[i, i]
        sizes[i] = 1.0
    chain, length = np.empty(m, np.int64), 0
    for _ in range(m - 1):
        if length == 0:
            at = np.int64(0)
            while sizes[at] == 0.0:
                at += 1
            chain[0], length = at, 1
        while True:
            last = chain[length - 1]
            best = chain[length - 2] if length > 1 else np.int64(-1)  # which stays if others are as near
            for k in range(m):
                if sizes[k] == 0.0 or k == last:
                    continue
                if best < 0 or said_of(joined, last, k) > said_of(joined, last, best):
                    best = np.int64(k)
            if length > 1 and best == chain[length - 2]:
                break
            chain[length] = best
            length += 1
        length -= 2
        low, high = min(last, best), max(last, best)
        total += joined[high, low]
        both = sizes[low] + sizes[high]
        for k in range(m):
            if sizes[k] > 0.0 and k != low and k != high:
                mean = (sizes[low] * said_of(joined, low, k) + sizes[high] * said_of(joined, high, k)) / both
                joined[max(low, k), min(low, k)] = mean
        sizes[low], sizes[high] = both, 0.0
    return total


@inner
def said_of(joined, i, j):
    """What is said of two groups."""
    return joined[i, j] if i > j else joined[j, i]


@inner
def mean_log(joined, chosen, m, n):
    """The mean over all trees of the logarithm, which is at most the logarithm of the mean (Jensen).

    A tree has n − 1 of the n(n − 1)/2 edges, each as often as any other.
    """
    total = 0.0
    for i in range(m):
        count = chosen[i, 1]
        total += 0.5 * count * (count - 1.0) * math.log(joined[i, i])
        for j in range(i):
            total += count * chosen[j, 1] * math.log(joined[i, j])
    return 2.0 * total / n


# ---------------------------------------------------------------------- attributes with a kernel of their own


@inner
def choose(family, start, capacity, first, last, a):
    """List a table's values of an attribute without and with an observation, in ``chosen``; returns how many."""
    tables, items = family.tables, family.items
    if tables.chosen.shape[0] <= capacity + last - first:
        tables.chosen = grown_to(tables.chosen, capacity + last - first + 1)
    pool, owner = tables.pool, family.owner
    chosen, n = tables.chosen, np.int64(0)
    for k in range(start, start + capacity):
        w, count = pool[k] >> 32, pool[k] & COUNT
        if count > 0 and owner[w] == a:
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
    in_order(chosen, family.rank, n)
    return n


@inner
def in_order(chosen, rank, n):
    """Sort rows of ``chosen`` by what their values say: that of the table depends on how it came about."""
    for k in range(1, n):
        v, before, after, at = chosen[k, 0], chosen[k, 1], chosen[k, 2], k
        while at > 0 and rank[chosen[at - 1, 0]] > rank[v]:
            for j in range(3):
                chosen[at, j] = chosen[at - 1, j]
            at -= 1
        chosen[at, 0], chosen[at, 1], chosen[at, 2] = v, before, after


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
