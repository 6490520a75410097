"""Values of records as the numbered features that kernels count and compare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from partita._core.hashing import code_of
from partita._core.typing import Array, Floats, Integers
from partita.models.records.comparisons.family import (
    ALIKE,
    LEVELS,
    NEAR,
    NOBODY,
    OTHERS,
    SAME,
    ComparisonFamily,
)
from partita.models.records.comparisons.parts import Parts, named
from partita.models.records.comparisons.similarity import level_counts, nearness_counts
from partita.models.records.tables import new_tables
from partita.models.records.vocabulary import Growing, Numbered

SHAPE = 0.5  # of the Gamma distribution of how many are alike to one value, among all values
SHARED_ONCE = (4.0, 5.0)  # values of one entity, and of one or two, behind the prior of d
NO_PARTS = named([])
UNKNOWN = np.array([0.9, 0.04, 0.03, 0.01, 0.008, 0.006, 0.004, 0.002])  # u where there are no references


class Values(NamedTuple):
    """What values are compared by, as it can be kept outside a vocabulary: it hangs on the model alone."""

    owner: Integers  # the attribute of each
    rank: Integers
    number: Floats
    log_u: Floats  # one row a value
    lengths: Integers  # how many parts each has
    grams: Integers  # of one value after the other
    weights: Floats


class Length(NamedTuple):
    """How much a vocabulary has."""

    items: int
    values: int
    grams: int


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
        self.new: list[tuple[int, str]] = []  # values that :meth:`compare_new` waits for
        self.kept: list[dict[int, int]] = [{} for _ in attributes]  # values known by their ranks alone
        self._count()  # of mentions
        self.totals = np.array([[self._count() for _ in range(2)] for _ in attributes], np.int64)
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
        self._references: list[References | None] = [None for _ in attributes]  # until they are needed

    def _count(self) -> int:
        """A feature that is no value."""
        self.owner.append(NOBODY)
        for growing in (self.rank, self.numbers, self.first, self.last):
            growing.append(0)
        self.log_u.extend(np.zeros(LEVELS))
        return self.owner.n - 1

    def value(self, a: int, value: str) -> int:
        """The feature of a value of attribute ``a``; what it is compared by is found when it is asked for."""
        known = self.ids[a].get(value)
        if known is None:
            known = self.kept[a].get(rank_of(value)) if self.kept[a] else None
            if known is None:
                known = self.owner.n + len(self.new)
                self.new.append((a, value))
            self.ids[a][value] = known
        return known

    def compare_new(self) -> None:
        """Store what new values are compared by; all at once, for each call is dear."""
        if not self.new:
            return
        owner = np.array([a for a, _ in self.new], np.int64)
        values, first = [value for _, value in self.new], self.owner.n
        self.new = []
        self.owner.extend(owner)
        self.rank.extend(np.array(list(map(rank_of, values)), np.int64))
        for growing in (self.numbers, self.first, self.last):
            growing.extend(np.zeros(len(values), growing.array.dtype))
        self.log_u.extend(np.zeros(LEVELS * len(values)))
        for a in np.unique(owner).tolist():
            places = np.flatnonzero(owner == a)
            self._compare(a, [values[k] for k in places.tolist()], first + places)

    def _compare(self, a: int, values: list[str], features: Integers) -> None:
        """Store the parts or numbers of values of an attribute, and how often other entities are alike to them."""
        attribute, parts, numbers = self.attributes[a], NO_PARTS, np.zeros(len(values))
        if self.measure[a] == ALIKE:
            parts = attribute.parts(values)
            self.first.array[features] = parts.first + self.grams.n
            self.last.array[features] = parts.last + self.grams.n
            self.grams.extend(parts.grams)
            self.weights.extend(parts.weights)
        elif self.measure[a] != SAME:
            numbers = np.array([attribute.number(value) for value in values], np.float64)
            self.numbers.array[features] = numbers
        found = np.log(self.references(a).shares(values, numbers, parts))
        leave_out(found, attribute.neutral)
        self.log_u.used.reshape(-1, LEVELS)[features] = found

    def references(self, a: int) -> References:
        """What values of attribute ``a`` are compared with to see how many are alike to them by chance."""
        known = self._references[a]
        if known is None:
            known = self._references[a] = References(self, a)
        return known

    # ------------------------------------------------------------------ kept elsewhere

    def to_keep(self, features: Integers) -> Values:
        """What some values are compared by."""
        self.compare_new()
        first = self.first.used[features]
        lengths = self.last.used[features] - first
        at = np.repeat(first - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())
        return Values(
            self.owner.used[features],
            self.rank.used[features],
            self.numbers.used[features],
            self.log_u.used.reshape(-1, LEVELS)[features],
            lengths,
            self.grams.used[at],
            self.weights.used[at],
        )

    def take_in(self, values: Values) -> Integers:
        """The features of values that :meth:`to_keep` has returned, none of which is known; they are from now on."""
        features = self.hold(values)
        for a, known in enumerate(self.kept):
            own = values.owner == a
            known |= zip(values.rank[own].tolist(), features[own].tolist(), strict=True)
        return features

    def hold(self, values: Values) -> Integers:
        """The features of values that :meth:`to_keep` has returned; they are not found again by what they say."""
        self.compare_new()
        first, start = self.owner.n, self.grams.n
        ends = start + np.cumsum(values.lengths)
        self.owner.extend(values.owner)
        self.rank.extend(values.rank)
        self.numbers.extend(values.number)
        self.first.extend(ends - values.lengths)
        self.last.extend(ends)
        self.grams.extend(values.grams)
        self.weights.extend(values.weights)
        self.log_u.extend(values.log_u.ravel())
        return np.arange(first, self.owner.n)

    def length(self) -> Length:
        """How much there is now, for :meth:`cut_to`."""
        self.compare_new()
        return Length(self.items.n, self.owner.n, self.grams.n)

    def cut_to(self, length: Length) -> None:
        """Let go of observations and of values that were held since."""
        self.items.n = length.items
        self.grams.n = self.weights.n = length.grams
        for growing in (self.owner, self.rank, self.numbers, self.first, self.last):
            growing.n = length.values
        self.log_u.n = length.values * LEVELS

    # ------------------------------------------------------------------ for the kernels

    def family(self, tables: Any = None) -> ComparisonFamily:
        """The vocabulary as the kernels read it, with tables of its own unless they are given."""
        self.compare_new()
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


def rank_of(value: str) -> int:
    """The number that orders values by what they say."""
    return code_of(value.encode("utf-8", "surrogatepass"))


def leave_out(log_shares: Floats, n: int) -> None:
    """Make the first n levels say nothing, and the others be given that it is none of these.

    Were these left as they are, strangers would look alike on average: the levels that tell them apart are gone.
    """
    if n:
        log_shares[..., n:] -= np.log(np.exp(log_shares[..., n:]).sum(axis=-1, keepdims=True))
        log_shares[..., :n] = 0.0


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


class Holders(NamedTuple):
    """Of each part, ascending, which texts have it, and what it counts in each."""

    known: Integers
    starts: Integers  # where the texts of each begin, and where the last one's end
    texts: Integers
    weights: Floats


def by_part(parts: Parts) -> Holders:
    """Which texts have each part."""
    known, starts = np.unique(grams := np.sort(parts.grams), return_index=True)
    order = np.argsort(parts.grams, kind="stable")
    texts = np.repeat(np.arange(len(parts.first)), parts.last - parts.first)
    return Holders(known, np.append(starts, len(grams)), texts[order], parts.weights[order])


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
        parts = attribute.parts(given) if self.measure == ALIKE else NO_PARTS
        self.parts = by_part(parts)
        self.overall = UNKNOWN
        if self.n > 1:
            total = self.counts(given, self.numbers, parts, itself=1.0).sum(axis=0)
            self.overall = (total + UNKNOWN) / (total.sum() + 1.0)

    def counts(self, values: Sequence[str], numbers: Floats, parts: Parts, itself: float = 0.0) -> Floats:
        """How many references are alike to each degree, but for those of the same entity, and for itself if it is one.

        Equal are those of the very same value: texts with the same words in another order are as alike as can be.
        """
        found = np.zeros((len(values), LEVELS))
        same = np.array([float(self.given[value]) for value in values])
        if self.measure == ALIKE:
            level_counts(self.parts, self.n, parts, found)
        elif self.measure == NEAR:
            nearness_counts(self.numbers, numbers, self.scale, found)
        elif self.measure == SAME:
            found[:, 0] = self.n
        found[:, 0 if self.measure == SAME else LEVELS - 2] -= same
        found[:, -1] += same - itself
        strangers: Floats = np.maximum(found - self.kin, 0.0)
        return strangers

    def shares(self, values: Sequence[str], numbers: Floats, parts: Parts) -> Floats:
        """u of values, by level."""
        if self.by_chance:
            return np.tile(self.by_chance, (len(values), 1))
        found = self.counts(values, numbers, parts) if self.n else np.zeros((len(values), LEVELS))
        shares = shares_of(found, self.overall)
        if self.entities > 0.0:
            others = np.array([self.holders.get(value, 0.0) for value in values]) - 1.0
            shares[:, -1] = equal_by_chance(others, self.discount, self.entities)
        return shares
