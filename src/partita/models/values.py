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

import copy
import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from partita._kernel import inner
from partita.models.corpus import END, START, Letters
from partita.models.folding import words_of
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


class Value:
    """An attribute of which each entity has one true value.

    Parameters
    ----------
    distortion : float
        β, how often a mention does not say the true value.
    typo : float
        τ, the share of typos among distortions; the others name another value altogether.
    further : float
        ρ, the probability of one edit more.
    common : int
        Values that the corpus has as often are drawn by their frequency; rarer ones are spelled.
    order : int
        Length of the n-grams that spell them.
    """

    family_mode = TRUE_VALUE
    theta, phi = 1.0, -1.0  # values are counted, words are not

    def __init__(
        self,
        distortion: float = 0.05,
        typo: float = 0.8,
        further: float = 0.2,
        common: int = 2,
        order: int = 3,
    ) -> None:
        for name, value in (("distortion", distortion), ("typo", typo), ("further", further)):
            if not 0.0 < value < 1.0:
                raise ValueError(f"{name} must be between 0 and 1, got {value!r}")
        if common < 1 or order < 1:
            raise ValueError(f"common and order must be at least 1, got {common!r} and {order!r}")
        self.distortion, self.typo, self.further = distortion, typo, further
        self.common, self.order = common, order
        self._learn({})

    def fit_corpus(self, counts: Mapping[str, int]) -> Value:
        """A copy that knows how often the corpus has which value."""
        fitted = copy.copy(self)
        fitted._learn(counts)
        return fitted

    def _learn(self, counts: Mapping[str, int]) -> None:
        frequent = {value: n for value, n in counts.items() if n >= self.common}
        total, n_frequent = sum(counts.values()), sum(frequent.values())
        self.rare = (total - n_frequent + 1) / (total + 1)  # the probability of a rare value
        self.frequency = {value: (1.0 - self.rare) * n / n_frequent for value, n in frequent.items()}
        self.spelling = Letters(counts, self.order)
        self.n_letters = max(len(Counter(letter for value in counts for letter in value)), 10)

    @staticmethod
    def parse(raw: Any) -> str:
        """What is compared: words without case, accents and punctuation.

        >>> Value.parse("  O'Brien,  Seán ")
        'obrien sean'
        """
        if isinstance(raw, int | float | np.number) and not isinstance(raw, bool) and math.isfinite(raw):
            raw = str(raw)
        if not isinstance(raw, str):
            raise ValueError(f"a value must be a text or a finite number, got {raw!r}")
        value = " ".join(words_of(raw)) or raw.strip()
        if not value:
            raise ValueError("a value must not be empty")
        return value

    @property
    def settings(self) -> list[float]:
        """What the kernels need to know, in the order of ``KEPT``, …"""
        beta, tau, rho = self.distortion, self.typo, self.further
        first_edit = math.log(beta * tau * (1.0 - rho))
        other = math.log(beta * (1.0 - tau))
        return [math.log(1.0 - beta), first_edit, math.log(rho), other, float(self.n_letters)]

    def words(self, value: str) -> list[str]:
        """There are none."""
        return []

    def letters(self, value: str) -> list[int]:
        """The letters that are compared."""
        return [ord(letter) for letter in value[:COMPARED]]

    def value_base(self, value: str) -> tuple[bool, float]:
        """log f(value)."""
        frequency = self.frequency.get(value)
        if frequency is not None:
            return True, math.log(frequency)
        text = START * (self.order - 1) + value + END
        total = math.log(self.rare)
        for at in range(self.order - 1, len(text)):
            total += math.log(self.spelling.probability(text[at - self.order + 1 : at], text[at]))
        return True, total
