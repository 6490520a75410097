"""Values of records as the numbered features that kernels count and compare."""

from __future__ import annotations

from collections import Counter
from typing import Any
from zlib import crc32

import numpy as np

from partita._core.typing import Array, Floats
from partita.models.records.comparisons.family import (
    ALIKE,
    LEVELS,
    NEAR,
    NOBODY,
    OTHERS,
    SAME,
    ComparisonFamily,
)
from partita.models.records.comparisons.similarity import level_counts, nearness_counts
from partita.models.records.tables import new_tables
from partita.models.records.vocabulary import Growing, Numbered

SHAPE = 0.5  # of the Gamma distribution of how many are alike to one value, among all values
SHARED_ONCE = (4.0, 5.0)  # values of one entity, and of one or two, behind the prior of d
UNKNOWN = np.array([0.9, 0.04, 0.03, 0.01, 0.008, 0.006, 0.004, 0.002])  # u where there are no references


class ComparedValues(Numbered):
    """Values of all attributes, numbered through from 1, with what they are compared by."""

    def __init__(self, attributes: list[Any], presence: Array, sharpness: float, crowding: float) -> None:
        super().__init__(attributes)
        self.sharpness, self.crowding = sharpness, crowding
        self.owner = Growing(np.int64, 1)
        self.rank, self.numbers = Growing(np.int64, 1), Growing(np.float64, 1)
        self.first, self.last = Growing(np.int64, 1), Growing(np.int64, 1)
        self.grams, self.weights = Growing(np.int64), Growing(np.float64)
        self.log_u = Growing(np.float64, LEVELS)
        self.ids: list[dict[str, int]] = [{} for _ in attributes]
        self.parts: list[dict[str, int]] = [{} for _ in attributes]
        self._new(NOBODY)  # of mentions
        self.totals = np.array([[self._new(NOBODY) for _ in range(2)] for _ in attributes], np.int64)
        self.totals = self.totals.reshape(-1, 2)
        self.presence = presence
        self.log_m = np.log(np.array([attribute.agreement for attribute in attributes], np.float64)).reshape(
            -1, LEVELS
        )
        for row, attribute in zip(self.log_m, attributes, strict=True):
            leave_out(row, attribute.neutral)
        self.strength = np.array([attribute.weight for attribute in attributes], np.float64)
        self.scale = np.array([attribute.scale for attribute in attributes], np.float64)
        self.measure = np.array([attribute.measure for attribute in attributes], np.int64)
        self.others: tuple[Any, ...] = ()
        for a, attribute in enumerate(attributes):
            if attribute.family_class is not None:
                self.measure[a] = OTHERS + len(self.others)
                self.others += (attribute.family(),)
        self.references = [References(self, a) for a in range(len(attributes))]

    def _new(self, owner: int, number: float = 0.0, rank: int = 0) -> int:
        self.rank.append(rank)
        self.owner.append(owner)
        self.numbers.append(number)
        self.first.append(self.grams.n)
        self.last.append(self.grams.n)
        if owner == NOBODY:
            self.log_u.extend(np.zeros(LEVELS))
        return self.owner.n - 1

    def vector(self, a: int, value: str) -> tuple[Any, Floats]:
        """The numbers of a value's parts, ascending, and what each counts."""
        known = self.parts[a]
        weights = {
            known.setdefault(part, len(known)): w for part, w in self.attributes[a].vector(value).items()
        }
        grams = np.array(sorted(weights), np.int64)
        return grams, np.array([weights[gram] for gram in grams.tolist()], np.float64)

    def value(self, a: int, value: str) -> int:
        """The feature of a value of attribute ``a``."""
        known = self.ids[a].get(value)
        if known is not None:
            return known
        attribute = self.attributes[a]
        feature = self._new(a, attribute.number(value), crc32(value.encode("utf-8", "surrogatepass")))
        self.ids[a][value] = feature
        grams, weights = (
            self.vector(a, value) if self.measure[a] == ALIKE else (np.empty(0, np.int64), np.empty(0))
        )
        self.grams.extend(grams)
        self.weights.extend(weights)
        self.last.array[feature] = self.grams.n
        log_u = np.log(self.references[a].shares(value, attribute.number(value), grams, weights))
        leave_out(log_u, attribute.neutral)
        self.log_u.extend(log_u)
        return feature

    def family(self, tables: Any = None) -> ComparisonFamily:
        """The vocabulary as the kernels read it, with tables of its own unless they are given."""
        return ComparisonFamily(
            items=self.items.used,
            owner=self.owner.used,
            rank=self.rank.used,
            number=self.numbers.used,
            first=self.first.used,
            last=self.last.used,
            grams=self.grams.used,
            weights=self.weights.used,
            log_u=self.log_u.used.reshape(-1, LEVELS),
            log_m=self.log_m,
            strength=self.strength,
            measure=self.measure,
            scale=self.scale,
            sharpness=self.sharpness,
            crowding=self.crowding,
            totals=self.totals,
            presence=self.presence,
            tables=new_tables(True) if tables is None else tables,
            others=self.others,
        )


def leave_out(log_shares: Floats, n: int) -> None:
    """Make the first n levels say nothing, and the others be given that it is none of these.

    Were these left as they are, strangers would look alike on average: the levels that tell them apart are gone.
    """
    if n:
        log_shares[n:] -= np.log(np.exp(log_shares[n:]).sum())
        log_shares[:n] = 0.0


def discount_of(holders: Floats) -> float:
    """d of the Pitman–Yor process that entities draw their values from, by how many values one and two of them have.

    An entity has a value that h of E others have with probability (h − d) / (E + 1). Where hardly any value is shared,
    as with e-mail addresses, d is near 1, and sharing one is hardly ever chance.
    """
    once, twice = float((holders < 1.5).sum()), float(((holders >= 1.5) & (holders < 2.5)).sum())
    return (once + SHARED_ONCE[0]) / (once + 2.0 * twice + SHARED_ONCE[1])


def equal_by_chance(others: Any, discount: float, entities: Any) -> Any:
    """u of equality: how probable it is that an entity has a value that so many others of all entities have.

    At least one has it, whose value it is.
    """
    return (np.maximum(others, 1.0) - discount) / (entities + 1.0)


def shares_of(counts: Floats, overall: Floats) -> Floats:
    """u by level: how many of some strangers are as alike to a value, given how many are to all values.

    For each level the shares of different values are Gamma distributed about the overall one, and counts Poisson.
    """
    found: Floats = (counts + SHAPE) / (counts.sum(axis=-1, keepdims=True) + SHAPE / overall)
    return found


def by_part(vectors: list[tuple[Any, Floats]]) -> tuple[Any, Any, Floats]:
    """Of each part of texts: where its list of those that have it begins; these lists, and what it counts in each."""
    grams = np.concatenate([grams for grams, _ in vectors]) if vectors else np.empty(0, np.int64)
    weights = np.concatenate([weights for _, weights in vectors]) if vectors else np.empty(0)
    texts = np.repeat(np.arange(len(vectors)), [len(grams) for grams, _ in vectors])
    order = np.argsort(grams, kind="stable")
    starts = np.searchsorted(grams[order], np.arange(int(grams.max(initial=-1)) + 2))
    return starts, texts[order], weights[order]


class References:
    """How often values of other entities are alike to a value of an attribute, by the attribute's references.

    Equality is counted in the corpus: a value that h of E entities have is shared by the h − 1 others, by one at least.
    """

    def __init__(self, vocabulary: ComparedValues, a: int) -> None:
        attribute = vocabulary.attributes[a]
        self.by_chance = attribute.by_chance
        self.measure, self.scale = int(vocabulary.measure[a]), attribute.scale
        self.kin = attribute.kin * np.array(attribute.agreement)
        self.holders, self.entities = attribute.corpus.counts, attribute.corpus.total
        self.discount = discount_of(np.array(list(self.holders.values())))
        given = attribute.references
        self.n, self.given = len(given), Counter(given)
        self.numbers = np.array([attribute.number(value) for value in given], np.float64)
        vectors = [vocabulary.vector(a, value) for value in given] if self.measure == ALIKE else []
        self.starts, self.of, self.weights = by_part(vectors)
        self.totals = np.zeros(self.n)
        self.overall = UNKNOWN
        if self.n > 1:
            total = np.zeros(LEVELS)
            nothing = (np.empty(0, np.int64), np.empty(0))
            for k, value in enumerate(given):
                grams, weights = vectors[k] if vectors else nothing
                total += self.counts(value, self.numbers[k], grams, weights, itself=1.0)
            self.overall = (total + UNKNOWN) / (total.sum() + 1.0)

    def counts(self, value: str, number: float, grams: Any, weights: Floats, itself: float = 0.0) -> Floats:
        """How many references are alike to each degree, but for those of the same entity, and for itself if it is one.

        Equal are those of the very same value: texts with the same words in another order are as alike as can be.
        """
        found, same = np.zeros(LEVELS), float(self.given[value])
        if self.measure == ALIKE:
            level_counts(self.starts, self.of, self.weights, grams, weights, self.totals, found)
        elif self.measure == NEAR:
            nearness_counts(self.numbers, number, self.scale, found)
        elif self.measure == SAME:
            found[0] = self.n
        found[0 if self.measure == SAME else LEVELS - 2] -= same
        found[-1] += same - itself
        strangers: Floats = np.maximum(found - self.kin, 0.0)
        return strangers

    def shares(self, value: str, number: float, grams: Any, weights: Floats) -> Floats:
        """u of a value, by level."""
        if self.by_chance:
            return np.array(self.by_chance)
        found = self.counts(value, number, grams, weights) if self.n else np.zeros(LEVELS)
        shares = shares_of(found, self.overall)
        if self.entities > 0.0:
            others = self.holders.get(value, 0.0) - 1.0
            shares[-1] = equal_by_chance(others, self.discount, self.entities)
        return shares
