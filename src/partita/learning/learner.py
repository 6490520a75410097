"""What a sample of records teaches, given its clusters or before there are any."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array

from partita._core.typing import Array, Floats, Integers
from partita.learning.dependence import dependence
from partita.learning.discriminant import expected_of, weights_of_known
from partita.learning.guesses import CORRELATION, REPEATED
from partita.learning.pairs import (
    Sample,
    between_counts,
    count_akin,
    count_given_others,
    count_levels,
    count_levels_of_strangers,
    sum_evidence,
    within_counts,
    write_evidence,
    write_levels,
)
from partita.models.records.comparisons.family import LEVELS
from partita.models.records.comparisons.vocabulary import UNKNOWN, discount_of, equal_by_chance, shares_of
from partita.models.records.kinds.attribute import AGREEMENT, SILENT
from partita.models.records.record import COLUMN, Record

# The same as AGREEMENT, of what few records mention; from the same command.
OF_FACTS = (0.216, 0.024, 0.034, 0.032, 0.049, 0.062, 0.025, 0.558)
BELIEF = 100.0  # comparisons behind the prior of m
ONE_THING = 1.1  # attributes that a record mentions, on average, for it to have a single one
AGREE_FROM = 5  # the level from which values agree
ENOUGH = 0.5  # of what agreement in the attribute says that says most
STEP = 0.25  # nats: how finely it is counted what else is said of pairs that agree
FARTHEST = 100  # such steps
EVEN = 0.5  # of the pairs that agree in something rare are of one entity, if nothing else is said of them
ROUNDS = 200  # of EM
FEWEST_AKIN = 0.3  # others of a record at a guess, at least
COMMON = 0.04  # of all pairs are the same in a column that tells hardly anybody apart
NEVER = 0.01  # agreeing pairs a record: with less, a column is the same for nobody
FEW = 20.0  # pairs that say little of how often an attribute agrees
MOST_ALIKE = 0.1  # pairs a record, those of which most is said, are of one entity if any are
LEAST_GAIN = 0.1  # that m is above u
WORTH = 0.2  # of the share of pairs of one entity by the attribute that says most of it
SINGLED_OUT = 0.02  # of all pairs at most, else these are none that others single out
LEAST_WORTH = 0.1  # of what equality would be more than usual, if an attribute says anything
ALIKE_FROM = 3  # the level from which strangers are alike
PAIRS = 200_000  # of strangers, to see which columns go together
DOUBT = 30.0  # pairs behind the prior of a correlation

Pairs = list[list[tuple[int, str]]]
Prior = tuple[Floats, Floats]  # m of each attribute and level, and the weight of each attribute


class Survey(NamedTuple):
    """What all pairs of records show before there are clusters."""

    akin: float  # others of its entity that a record has, at a guess
    silent: Array  # which columns are alike as by chance in pairs that are alike in others


class Learner:
    """A sample of records, with all its values compared."""

    def __init__(self, names: list[str], attributes: list[Any], pairs: Pairs) -> None:
        self.pairs, self.n, self.n_attributes = pairs, len(pairs), len(attributes)
        reader = Record(dict(zip(names, attributes, strict=True)))
        reader.check(1)
        vocabulary, ids = reader._vocabulary, [dict[str, int]() for _ in attributes]
        items = [
            (row, a, ids[a].setdefault(value, len(ids[a])))
            for row, said in enumerate(pairs)
            for a, value in said
        ]
        self.record, self.attribute, self.value = np.array(items, np.int64).reshape(-1, 3).T.copy()
        features = [
            np.array([vocabulary.value(a, value) for value in own], np.int64) for a, own in enumerate(ids)
        ]
        distinct = np.array([len(own) for own in ids], np.int64)
        offset = np.concatenate([[0], np.cumsum(distinct**2)])
        levels = np.zeros(offset[-1], np.int8)
        family = vocabulary.family()
        for a in range(self.n_attributes):
            write_levels(family, features[a], a, levels[offset[a] : offset[a + 1]])
        starts = np.searchsorted(self.record, np.arange(self.n + 1))
        self.sample = Sample(starts, self.attribute, self.value, distinct, offset, levels)
        self.of = [np.flatnonzero(self.attribute == a) for a in range(self.n_attributes)]
        self.present = np.zeros((self.n, self.n_attributes))
        self.present[self.record, self.attribute] = 1.0
        # Then nothing can tell namesakes from the same again, and the same again is what people expect.
        self.says_one_thing = float(self.present.sum(axis=1).mean()) <= ONE_THING

    def prior(self, labels: Integers, limit: float | None = None, known: bool = False) -> Prior:
        """What clusters teach: m of each attribute and level, and the weight of each attribute.

        If they were found, pairs of different clusters of which all says more than ``limit`` are left out, for they may
        be no strangers; of ``known`` ones it is certain.
        """
        agreement, evidence, u = self.evidence(labels)
        if known:
            return agreement, weights_of_known(self, evidence, expected_of(agreement, u), labels)
        return agreement, self.weights(evidence, labels, math.log(self.n) if limit is None else limit)

    def evidence(self, labels: Integers) -> tuple[Floats, Floats, Floats]:
        """m of each attribute and level; what each pair of values is worth; and u, the mean over values."""
        agreement, evidence = self.agreement(labels), np.zeros(len(self.sample.levels))
        u = agreement.copy()
        for a, items in enumerate(self.of):
            log_u = self.log_u(a, items, labels)
            write_evidence(self.sample, a, np.log(agreement[a]), log_u, evidence)
            if len(items):
                u[a] = np.exp(log_u).mean(axis=0)
        return agreement, evidence, u

    def agreement(self, labels: Integers) -> Floats:
        """m of each attribute, near that of all columns, or of all facts, which few records mention."""
        counts = self.within(labels)
        columns, silent = self.present.mean(axis=0) >= COLUMN, self.survey.silent
        found = np.empty_like(counts)
        for group, expected in ((columns & ~silent, AGREEMENT), (silent, AGREEMENT), (~columns, OF_FACTS)):
            common = counts[group].sum(axis=0) + BELIEF * np.array(expected)
            known = counts[group] + BELIEF * common / common.sum()
            found[group] = known / known.sum(axis=1, keepdims=True)
        return found

    def within(self, labels: Integers) -> Floats:
        """How many pairs of one cluster are alike to each degree, attribute by attribute: see the kernel."""
        counts = np.zeros((self.n_attributes, LEVELS))
        for a, items in enumerate(self.of):
            order = items[np.argsort(labels[self.record[items]], kind="stable")]
            of = labels[self.record[order]]
            ends = np.append(np.flatnonzero(np.diff(of)) + 1, len(of)) if len(of) else np.zeros(0, np.int64)
            within_counts(self.sample, a, self.record[order], self.value[order], ends, counts[a])
        return counts

    def log_u(self, a: int, items: Integers, labels: Integers) -> Floats:
        """log u of each value of an attribute and level, from how alike those of other clusters are to it."""
        n = self.sample.distinct[a]
        holders, counts = np.zeros(n), np.zeros((n, LEVELS))
        listed = np.unique(np.column_stack([labels[self.record[items]], self.value[items]]), axis=0)
        between_counts(self.sample, a, listed[:, 0].copy(), listed[:, 1].copy(), counts, holders)
        overall = holders @ counts
        shares = shares_of(counts, (overall + 0.5 / LEVELS) / (overall.sum() + 0.5))
        shares[:, -1] = equal_by_chance(counts[:, -1], discount_of(holders), counts.sum(axis=1))
        found: Floats = np.log(shares)
        return found

    def weights(self, evidence: Floats, labels: Integers, limit: float) -> Floats:
        """What each attribute's evidence counts, by how it goes together with that of others among strangers.

        Not within entities: two people in one cluster differ in everything at once, and would stay together by that.
        What says nothing counts for nothing.
        """
        generator = np.random.default_rng(0)
        first, second = generator.integers(self.n, size=(2, PAIRS))
        strangers = labels[first] != labels[second]
        first, second = first[strangers], second[strangers]
        usual = np.diag(self.mean_evidence(evidence, first, second, limit)[1])
        alike, given = self.mean_evidence(evidence, first, second, limit, ALIKE_FROM)
        of_kin = np.diag(self.mean_evidence(evidence, *self.kin_of(labels))[1])
        share = np.clip((given - usual) / np.maximum(of_kin - usual, 0.5), 0.0, 1.0)
        share = (alike * share + DOUBT * CORRELATION) / (alike + DOUBT)
        # A city follows from its postcode, but not the other way round; where all may be strangers, that is enough.
        correlation = 0.5 * (share + share.T) if math.isfinite(limit) else np.maximum(share, share.T)
        silent = self.survey.silent
        correlation[silent], correlation[:, silent] = 0.0, 0.0
        np.fill_diagonal(correlation, 1.0)
        found: Floats = np.where(silent, SILENT, 1.0 / (correlation * self.beside()).sum(axis=1))
        return found

    def beside(self) -> Floats:
        """Of the records that mention an attribute a, the share that mentions b."""
        found: Floats = (self.present.T @ self.present) / np.maximum(self.present.sum(axis=0), 1.0)[:, None]
        np.fill_diagonal(found, 1.0)
        return found

    def kin_of(self, labels: Integers) -> tuple[Integers, Integers]:
        """Pairs of records of one cluster, of n members n − 1."""
        order = np.argsort(labels, kind="stable")
        kin = labels[order[:-1]] == labels[order[1:]]
        return order[:-1][kin], order[1:][kin]

    def mean_evidence(
        self,
        evidence: Floats,
        first: Integers,
        second: Integers,
        limit: float = np.inf,
        least: int = 0,
        enough: Floats | None = None,
    ) -> tuple[Floats, Floats]:
        """Of pairs alike in an attribute a: how many speak of b, and what b says of them on average; see the kernel."""
        counts, sums = np.zeros((2, self.n_attributes, self.n_attributes))
        enough = np.full(self.n_attributes, -np.inf) if enough is None else enough
        sum_evidence(self.sample, evidence, first, second, limit, least, enough, counts, sums)
        return counts, sums / np.maximum(counts, 1.0)

    def different_values(self, a: int, groups: Integers) -> tuple[Floats, Floats]:
        """How many pairs of different values of an attribute are alike to each degree but equality: all, and kin.

        Kin are those of which two records are known to be of one group; −1 is none.
        """
        n, at = int(self.sample.distinct[a]), int(self.sample.offset[a])
        levels = self.sample.levels[at : at + n * n].reshape(n, n)
        pairs = np.tril_indices(n, -1)
        every = np.bincount(levels[pairs], minlength=LEVELS)[: LEVELS - 1].astype(float)
        known = np.flatnonzero((self.attribute == a) & (groups[self.record] >= 0))
        of, values = groups[self.record[known]], self.value[known]
        held = coo_array((np.ones(len(known)), (values, of)), (n, int(of.max(initial=0)) + 1)).tocsr()
        together = coo_array(held @ held.T)
        below = together.row > together.col
        kin = np.bincount(levels[together.row[below], together.col[below]], minlength=LEVELS)
        return every, kin[: LEVELS - 1].astype(float)

    def worth_given_others(self, evidence: Floats, usual: Floats) -> Floats:
        """How much more alike than usual the pairs are in each attribute of which all others say most, as a share.

        These are of one entity if any are. In a number of the row, or a flag that is set at random, they are alike as
        any two; so it is no evidence against a pair that they differ in it. Infinite where too few pairs tell, or where
        the others single none out.
        """
        counts = np.zeros((self.n_attributes, 2 * FARTHEST + 1, 2))
        count_given_others(self.sample, evidence, STEP, counts)
        pairs, likeness = np.moveaxis(counts[:, ::-1].cumsum(axis=1), 2, 0)
        far = np.argmax(pairs >= max(MOST_ALIKE * self.n, FEW), axis=1)
        every, alike = (np.take_along_axis(of, far[:, None], axis=1)[:, 0] for of in (pairs, likeness))
        share = (alike / np.maximum(every, 1.0) - usual) / np.maximum(LEVELS - 1.0 - usual, LEAST_GAIN)
        tell = (every >= FEW) & (every <= np.maximum(SINGLED_OUT * pairs[:, -1], FEW))
        found: Floats = np.where(tell, np.maximum(share, 0.0), np.inf)
        return found

    def silent_columns(self, columns: Array, evidence: Floats, counts: Floats) -> Array:
        """Which columns are no more alike than usual in pairs that are alike in all others.

        They are found one by one, for one that says nothing hides what others say; at last those are taken back of
        which more is to be seen without the others. Likeness counts for no more than equality: rare degrees of it in a
        column of few values would single pairs out.

        What tells strangers apart differs in pairs that are alike in all else, too: first names in a household. So
        only a column that is the same for nobody, or for many, may be silent, and only if others confirm each other.
        """
        silent, same = np.zeros(self.n_attributes, bool), counts[:, -1]
        columns = columns & ((same < NEVER * self.n) | (same >= COMMON * counts.sum(axis=1)))
        usual = counts @ np.arange(LEVELS) / np.maximum(counts.sum(axis=1), 1.0)
        while True:
            heard = np.where(silent[:, None], 0.0, np.minimum(evidence, evidence[:, -1:]))
            worth = self.worth_given_others(heard, usual)
            among = np.where(columns & ~silent, worth, np.inf)
            least = int(np.lexsort((same, among))[0])
            if not among[least] < LEAST_WORTH:
                confirmed = ~silent & (worth >= LEAST_WORTH) & np.isfinite(worth)
                return silent & (worth < LEAST_WORTH) & bool(confirmed.any())
            silent[least] = True

    def dependence(self, labels: Integers) -> float:
        """How much agreement in one attribute tells of that in others, within clusters: see :mod:`.dependence`."""
        values = np.full((self.n, self.n_attributes), -1)
        values[self.record[::-1], self.attribute[::-1]] = self.value[::-1]  # the first of several
        return dependence(values, labels, self.agree)

    def agree(self, a: int, first: Integers, second: Integers) -> Array:
        """Which values of an attribute agree."""
        at, n = self.sample.offset[a], self.sample.distinct[a]
        found: Array = self.sample.levels[at + first * n + second] >= AGREE_FROM
        return found

    @property
    def akin(self) -> float:
        """How many others of its entity a record has, at a guess."""
        return self.survey.akin

    @cached_property
    def survey(self) -> Survey:
        """What all pairs of records show before there are clusters.

        Of the pairs that agree in something that few pairs agree in, some are of one entity: how many, and which, is
        told by what all other attributes say of them, with m as it is usual, for each attribute by itself. Of these
        count those that agree in as many attributes as they differ in. u is that of pairs that do not agree in as much
        elsewhere: of all pairs that mention what only a few entities have, most are kin.
        """
        counts = np.zeros((self.n_attributes, LEVELS))
        count_levels(self.sample, counts)
        spoken, agree = counts.sum(axis=1), counts[:, AGREE_FROM:].sum(axis=1)
        information = -np.log((agree + 1.0) / (spoken + 2.0))
        columns = self.present.mean(axis=0) >= COLUMN
        usual = np.where(columns[:, None], AGREEMENT, OF_FACTS)
        evidence = np.log(usual) - np.log((counts + 0.5 / LEVELS) / (spoken[:, None] + 0.5))
        silent = self.silent_columns(columns, evidence, counts)
        evidence[silent], information[silent] = 0.0, 0.0
        telling = columns & ~silent & (agree >= NEVER * self.n)
        enough = ENOUGH * float(information[telling].max() if telling.any() else information.max())
        strangers = np.zeros_like(counts)
        count_levels_of_strangers(self.sample, AGREE_FROM, information, enough, strangers)
        share = (strangers + FEW * UNKNOWN) / (strangers.sum(axis=1, keepdims=True) + FEW)
        evidence = np.where(silent[:, None], 0.0, np.log(usual) - np.log(share))
        for _ in range(2):
            found, levels = np.zeros((self.n_attributes, 2 * FARTHEST + 1, 2)), np.zeros_like(counts)
            count_akin(self.sample, AGREE_FROM, information, enough, evidence, STEP, found, levels)
            evidence[columns & says_nothing(levels, agree / np.maximum(spoken, 1.0), usual)] = 0.0
        said = np.linspace(-STEP * FARTHEST, STEP * FARTHEST, 2 * FARTHEST + 1)
        kin = sum(float(probably_kin(said, of[:, 0]) @ of[:, 1]) for of in found)
        others = 2.0 * kin / self.n / REPEATED
        akin = float(np.clip(others, FEWEST_AKIN, max(self.n / 4, FEWEST_AKIN)))
        return Survey(akin, silent)


def says_nothing(levels: Floats, by_chance: Floats, usual: Floats) -> Array:
    """Which attributes agree hardly more often than by chance in pairs that agree in another, while others do.

    Each attribute says what share of these pairs are of one entity, (rate − u) / (m − u). A flag that is set at
    random, or a number of the row, says that none is, whoever they are.
    """
    n = levels.sum(axis=1)
    beyond = levels[:, AGREE_FROM:].sum(axis=1) - n * by_chance
    share = beyond / ((n + FEW) * np.maximum(usual[:, AGREE_FROM:].sum(axis=1) - by_chance, LEAST_GAIN))
    found: Array = share < WORTH * share.max(initial=0.0)
    return found


def probably_kin(evidence: Floats, counts: Floats) -> Floats:
    """How probably a pair of which so much evidence speaks is of one entity, given how many pairs there are of each.

    The share of pairs of one entity is the likeliest one, found by EM.
    """
    share, ratio, n = EVEN, np.exp(evidence), max(float(counts.sum()), 1.0)
    for _ in range(ROUNDS):
        kin: Floats = share * ratio / (share * ratio + 1.0 - share)
        share = float(counts @ kin) / n
    return kin
