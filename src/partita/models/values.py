"""One true value per entity, seen through typos and other distortions.

An entity has one value of the attribute, y, drawn with its frequency f(y) in the corpus. Each mention says y,
or with probability β something else: a typo of it, or another value altogether (Marchant et al. 2021,
"d-blink"). The true value is summed over those that were mentioned:

    p(c) = Σ_y f(y) Π_v K(v | y)^n_v,    K(v | y) = (1 − β)·[v = y] + β·(τ·typo(v | y) + (1 − τ)·f(v)).

A typo is a number d of edits, the first for certain and each further one with probability ρ. A string of ℓ
letters out of A has fewer than A·(2ℓ + 1) neighbours, one of which is chosen:

    typo(v | y) = (1 − ρ)·ρ^(d − 1) / Π_{k<d} A·(2·(ℓ + k) + 1),    d ≥ 1,

which no sum over v brings above 1. d is the optimal-string-alignment distance, in which exchanging two
neighbouring letters is one edit. Of long strings the first 64 letters are compared.
"""

from __future__ import annotations

import math

import numpy as np

from partita._kernel import inner
from partita.models.tables import place

TRUE_VALUE = 1  # the mode of such an attribute
KEPT, TYPO, FURTHER, OTHER, LETTERS = range(5)  # its settings: log of 1 − β, β·τ·(1 − ρ), ρ, β·(1 − τ); A
COMPARED = 64  # letters


@inner
def edit_distance(parts, u, n_u, v, n_v):
    """Optimal string alignment of ``parts[u : u + n_u]`` and ``parts[v : v + n_v]``, at most 64 letters each.

    Bit-parallel: one step a letter for a whole column of the table (Hyyrö 2003).
    """
    if n_u == 0:
        return n_v
    end = np.int64(1) << (n_u - 1)
    rises, falls = np.int64(-1), np.int64(0)  # from row to row of the column
    diagonal, before = np.int64(0), np.int64(0)
    distance = n_u
    for j in range(v, v + n_v):
        letter, equal = parts[j], np.int64(0)
        for i in range(n_u):
            equal |= np.int64(parts[u + i] == letter) << i
        swapped = ((~diagonal & equal) << 1) & before
        diagonal = (((equal & rises) + rises) ^ rises) | equal | falls | swapped
        right_rises, right_falls = falls | ~(diagonal | rises), diagonal & rises
        if right_rises & end:
            distance += 1
        elif right_falls & end:
            distance -= 1
        right_rises, right_falls = (right_rises << 1) | 1, right_falls << 1
        rises, falls = right_falls | ~(diagonal | right_rises), right_rises & diagonal
        before = equal
    return distance


@inner
def edits(family, v, y):
    """The edits between two different values; those computed last are remembered."""
    near, first, parts = family.tables.near, family.first, family.parts
    key = (np.int64(min(v, y)) << 32) + np.int64(max(v, y))
    at = place(key, np.int64(near.shape[0] - 1))
    if near[at, 0] != key:
        u, w = first[v], first[y]
        near[at, 0] = key
        near[at, 1] = max(edit_distance(parts, u + 1, parts[u], w + 1, parts[w]), 1)
    return near[at, 1]


@inner
def log_mention(family, a, v, y):
    """log K(v | y)."""
    settings = family.settings
    other = settings[a, OTHER] + family.base[v]
    if v == y:
        likely = settings[a, KEPT]
    else:
        d, choices = edits(family, v, y), 1.0
        neighbours = 2 * family.parts[family.first[y]] + 1
        for k in range(d):
            choices *= settings[a, LETTERS] * (neighbours + 2 * k)
        likely = settings[a, TYPO] + (d - 1) * settings[a, FURTHER] - math.log(choices)
    if likely < other:
        return other + math.log1p(math.exp(likely - other))
    return likely + math.log1p(math.exp(other - likely))


@inner
def log_values(family, a, n, column):
    """log p of the values in the first n rows of ``tables.chosen``, whose counts are in one column."""
    chosen = family.tables.chosen
    top, total = -np.inf, 1.0
    for i in range(n):
        y = chosen[i, 0]
        if chosen[i, column] == 0:
            continue
        term = family.base[y]
        for j in range(n):
            if chosen[j, column] > 0:
                term += chosen[j, column] * log_mention(family, a, chosen[j, 0], y)
        if term > top:
            total, top = total * math.exp(top - term), term
            total += 1.0
        else:
            total += math.exp(term - top)
    return top + math.log(total) if top > -np.inf else 0.0
