"""One true value per entity, seen through typos and other distortions.

An entity has one value of the attribute, y, drawn with its frequency f(y) in the corpus. Each mention says y,
or with probability β something else: a typo of it, or another value altogether (Marchant et al. 2021,
"d-blink"). The true value is summed over those that were mentioned:

    p(c) = Σ_y f(y) Π_v K(v | y)^n_v,    K(v | y) = (1 − β)·[v = y] + β·(τ·typo(v | y) + (1 − τ)·f(v)).

A typo is a number d of edits, the first for certain and each further one with probability ρ. A string of ℓ
letters out of A has fewer than A·(2ℓ + 1) neighbours, one of which is chosen:

    typo(v | y) = (1 − ρ)·ρ^(d − 1) / Π_{k<d} A·(2·(ℓ + k) + 1),    d ≥ 1,

which no sum over v brings above 1. More than 1 + ℓ/3 edits are no typo: by then most values are likelier by
themselves. d is the optimal-string-alignment distance, in which exchanging two neighbouring letters is one
edit. Of long strings the first 64 letters are compared.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from partita._core.checks import positive_number
from partita._core.kernel import inner
from partita.models.records.corpus import END, LONGEST, START, Letters
from partita.models.records.kinds.attribute import Attribute, check_letters
from partita.models.records.tables import place
from partita.models.registry import register

TRUE_VALUE = 1  # the mode of such an attribute
TYPO, FURTHER, OTHER, LETTERS = range(4)  # its settings: the logarithms of β·τ·(1 − ρ), ρ, β·(1 − τ); and A
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
def ones(bits):
    """How many bits are set."""
    bits = bits - ((bits >> 1) & 0x5555555555555555)
    bits = (bits & 0x3333333333333333) + ((bits >> 2) & 0x3333333333333333)
    bits = (bits + (bits >> 4)) & 0x0F0F0F0F0F0F0F0F
    return ((bits * 0x0101010101010101) >> 56) & 0x7F


@inner
def edits(first, parts, near, v, y, most):
    """The edits between two different values, or any number above ``most`` if it is.

    An edit removes one kind of letter at most, and adds one at most, so most pairs need no closer look.
    """
    u, w = first[v + 1], first[y + 1]
    n_u, n_w = parts[u], parts[w]
    removed, added = ones(parts[w + 1] & ~parts[u + 1]), ones(parts[u + 1] & ~parts[w + 1])
    least = max(removed, added, n_u - n_w, n_w - n_u)
    if least > most:
        return least
    key = (np.int64(min(v, y)) << 32) + np.int64(max(v, y))
    at = place(key, np.int64(near.shape[0] - 1))
    if near[at, 0] != key:  # else it was one of the last to be compared
        near[at, 0] = key
        near[at, 1] = max(edit_distance(parts, u + 2, n_u, w + 2, n_w), 1)
    return near[at, 1]


@inner
def log_mention(settings, base, first, parts, near, a, v, y):
    """log K(v | y) of two different values."""
    length = parts[first[y + 1]]
    other, most = settings[a, OTHER] + base[v], 1 + length // 3
    d, choices = edits(first, parts, near, v, y, most), 1.0
    if d > most:
        return other
    for k in range(d):
        choices *= settings[a, LETTERS] * (2 * (length + k) + 1)
    typo = settings[a, TYPO] + (d - 1) * settings[a, FURTHER] - math.log(choices)
    if typo < other:
        return other + math.log1p(math.exp(typo - other))
    return typo + math.log1p(math.exp(other - typo))


@inner
def log_sum(top, total, term):
    """Add exp(term) to exp(top)·total; returns the new two."""
    if term > top:
        return term, total * math.exp(top - term) + 1.0
    return top, total + math.exp(term - top)


@inner
def values_gain(chosen, base, settings, first, parts, near, a, n):
    """log p of the values in the first n rows of ``chosen``, with the observation over without it."""
    top, total, top_before, total_before = -np.inf, 0.0, -np.inf, 0.0
    for i in range(n):
        y = chosen[i, 0]
        term = before = base[y]
        for j in range(n):
            v = chosen[j, 0]
            log_k = base[y + 1] if v == y else log_mention(settings, base, first, parts, near, a, v, y)
            before += chosen[j, 1] * log_k
            term += chosen[j, 2] * log_k
        top, total = log_sum(top, total, term)
        if chosen[i, 1] > 0:
            top_before, total_before = log_sum(top_before, total_before, before)
    result = top + math.log(total)
    return result - (top_before + math.log(total_before)) if total_before > 0.0 else result


def spelled(value: str) -> list[int]:
    """A value as the kernels compare it: the number of its letters, which kinds they are of, and themselves.

    Kinds are bits of one number, so letters of rarer scripts may share one.
    """
    letters = [ord(letter) for letter in value[:COMPARED]]
    kinds = sum(1 << bit for bit in {letter % 64 for letter in letters})
    return [len(letters), kinds - (1 << 64 if kinds >> 63 else 0), *letters]


@register
@dataclass(frozen=True)
class Value(Attribute):
    """One true value per entity, seen through typos and other distortions: a surname, a postcode.

    Parameters
    ----------
    distortion : float
        How often a mention does not say the true value.
    typo : float
        The share of typos among distortions; the others name another value altogether.
    further : float
        The probability that a typo has one edit more.
    letters : int
        Order of the n-grams that spell values which the corpus does not have twice.
    corpus : Corpus
        How often each value occurs.
    """

    theta: ClassVar[float] = 1.0  # type: ignore[misc]
    distortion: float = 0.05
    typo: float = 0.8
    further: float = 0.2
    letters: int = 3

    kind: ClassVar[str] = "value"
    learnt: ClassVar[tuple[str, ...]] = ("distortion",)
    family_mode: ClassVar[int] = TRUE_VALUE

    def check(self, name: str) -> None:
        for parameter in ("distortion", "typo", "further"):
            if not positive_number(f"{parameter} of {name!r}", getattr(self, parameter)) < 1.0:
                raise ValueError(f"{parameter} of {name!r} must be below 1, got {getattr(self, parameter)!r}")
        check_letters(name, self.letters)

    def learnt_from(self, clusters: list[Counter[str]]) -> Self:
        """The share of distorted mentions that clusters of values show."""
        several = [cluster for cluster in clusters if sum(cluster.values()) > 1]
        distorted = sum(sum(cluster.values()) - max(cluster.values()) for cluster in several)
        mentions = sum(sum(cluster.values()) for cluster in several)
        return replace(self, distortion=(distorted + 1.0) / (mentions + 20.0))

    @property
    def settings(self) -> list[float]:
        """What the kernels need to know, in the order of TYPO, FURTHER, …."""
        beta, tau, rho = self.distortion, self.typo, self.further
        first_edit, other = math.log(beta * tau * (1.0 - rho)), math.log(beta * (1.0 - tau))
        n_letters = max(len({letter for value in self.corpus.counts for letter in value}), 10)
        return [first_edit, math.log(rho), other, float(n_letters), 0.0]

    def log_true(self, value: str) -> float:
        """The log-probability of saying the true value, if it is this one."""
        by_chance = self.distortion * (1.0 - self.typo) * math.exp(self.value_base(value)[1])
        return math.log(1.0 - self.distortion + by_chance)

    @cached_property
    def _letters(self) -> Letters:
        return self.corpus.letters(self.letters, False)

    def value_base(self, value: str) -> tuple[bool, float]:
        values, before = self.corpus.values, self.letters - 1
        total = values.log(value)
        if not values.common(value):
            text = START * before + value[:LONGEST] + END
            for at in range(before, len(text)):
                total += math.log(self._letters.probability(text[at - before : at], text[at]))
        return True, total
