"""Attributes without urns of words: what a cluster says of one, all values at once, and how likely that is.

How likely is for the kernels of the attribute's kind to say, of a third party's kind as well.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import overload

from partita._core.kernel import INNER, borrowed, inner
from partita.models.records.kinds.number import NUMBER, numbers_gain
from partita.models.records.kinds.value import values_gain
from partita.models.records.tables import COUNT
from partita.models.records.urns.family import OTHERS, URNS, VALUE
from partita.models.records.urns.observation import grown_to
from partita.models.registry import FAMILIES


@inner
def gather(tables, pool, kind, owner, mode, start, capacity, more):
    """List a cluster's values of attributes without urns of words, in ``tables.found``; returns how many.

    There is room for ``more`` in ``tables.chosen``.
    """
    tables.found = grown_to(tables.found, capacity)
    tables.chosen = grown_to(tables.chosen, capacity + more)
    found, n = borrowed(tables.found), np.int64(0)
    for k in range(start, start + capacity):
        feature, count = pool[k] >> 32, pool[k] & COUNT
        if count > 0 and kind[feature] == VALUE and mode[owner[feature]] != URNS:
            found[n, 0], found[n, 1] = feature, count
            n += 1
    return n


@inner
def choose(found, chosen, owner, items, first, last, n_found, a):
    """List what was found of one attribute, without and with an observation; returns how much it is."""
    n = np.int64(0)
    for i in range(n_found):
        if owner[found[i, 0]] == a:
            chosen[n, 0], chosen[n, 1], chosen[n, 2] = found[i, 0], found[i, 1], found[i, 1]
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
def listed(chosen, column, base, n, values, counts):
    """Values that occur and their counts, from one column of ``chosen``; returns how many."""
    count = 0
    for i in range(n):
        if chosen[i, column] > 0:
            values[count], counts[count] = base[chosen[i, 0]], chosen[i, column]
            count += 1
    return count


def others_gain(others: Any, place: Any, chosen: Any, base: Any, n: Any) -> Any:
    """log p of what ``chosen`` has, with the observation over without it, by the kernel at a place in ``others``."""


@overload(others_gain, jit_options=INNER)
def _others_gain(others, place, chosen, base, n):
    if not len(others):

        def nothing(others, place, chosen, base, n):
            return 0.0

        return nothing
    log_values = FAMILIES[others[0].instance_class].log_values

    def first_or_rest(others, place, chosen, base, n):
        if place > 0:
            return others_gain(others[1:], place - 1, chosen, base, n)
        values, counts = np.empty(n), np.empty(n, np.int64)
        before = listed(chosen, np.int64(1), base, n, values, counts)
        result = -log_values(others[0], values, counts, before) if before > 0 else 0.0
        return result + log_values(
            others[0], values, counts, listed(chosen, np.int64(2), base, n, values, counts)
        )

    return first_or_rest


@inner
def chosen_gain(family, a, n):
    """log p of what ``tables.chosen`` has of an attribute, with the observation over without it."""
    chosen, base, settings = borrowed(family.tables.chosen), borrowed(family.base), borrowed(family.settings)
    if family.mode[a] == NUMBER:
        return numbers_gain(chosen, base, settings, family.theta[a], a, n)
    if family.mode[a] >= OTHERS:
        return others_gain(family.others, family.mode[a] - OTHERS, chosen, base, n)
    firsts, parts, near = borrowed(family.first), borrowed(family.parts), borrowed(family.tables.near)
    return values_gain(chosen, base, settings, firsts, parts, near, a, n)


@inner
def log_found(family, n_found):
    """log p of all that was found."""
    total, owner = 0.0, borrowed(family.owner)
    found, chosen = borrowed(family.tables.found), borrowed(family.tables.chosen)
    for i in range(n_found):
        if found[i, 1] == 0:
            continue  # done already
        a, n = owner[found[i, 0]], np.int64(0)
        for j in range(i, n_found):
            if owner[found[j, 0]] == a:
                chosen[n, 0], chosen[n, 1], chosen[n, 2] = found[j, 0], 0, found[j, 1]
                found[j, 1] = 0
                n += 1
        total += chosen_gain(family, a, n)
    return total
