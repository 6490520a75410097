"""Empirical Bayes for records: how alike the values of one entity are, and those of different ones.

Given clusters of a sample, each attribute learns m, how alike the values of an entity are, and from pairs of different
clusters u, how alike those of strangers are; in how many entities each value occurs; and its weight. Columns whose
evidence goes together among strangers (a city and its postcodes) count for less: with correlations ρ the weight of a
column is 1 / Σ_b ρ_ab over the columns that are mentioned with it, itself included.

Without labels, clustering a sample and learning from its clusters take turns. That has several fixed points:
fragments of an entity that are taken for strangers make agreement look common, so that all alone stay alone, and all
in one stay together; a family that is taken for a person has nobody left who could show that strangers share an
address. So the first turn is careful (:func:`careful`): it joins only those who agree in nearly everything, and learns
what strangers have in common. A later one is bold (:func:`bold`): it begins with a guess of how many records an entity
has, from the pairs that agree in as many attributes as they differ in (:meth:`Learner.akin`), for a value that so many
have is no coincidence. m begins with, and stays near, what it is in labelled tables (``AGREEMENT``, ``OF_FACTS``).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import nnls

from partita._core.typing import Array, Floats, Integers
from partita.learning.guesses import (
    CORRELATION,
    REPEATED,
    bold,
    careful,
    first_guess,
    of_one_attribute,
    references,
)
from partita.learning.known import known_of, whole_clusters
from partita.learning.pairs import (
    Sample,
    agreements,
    between_counts,
    count_akin,
    sum_evidence,
    within_counts,
    write_evidence,
    write_levels,
)
from partita.models.records.comparisons.family import LEVELS
from partita.models.records.comparisons.vocabulary import discount_of, equal_by_chance, shares_of
from partita.models.records.entity_types import Types, learnt_types, mentions_of
from partita.models.records.kinds.attribute import AGREEMENT
from partita.models.records.record import COLUMN, Record
from partita.models.registry import learn
from partita.smc.sampler import SplitSMC

SAMPLE = 2000  # fragments that are clustered to learn from
SHARED = 30  # fragments that share a value for it to tie them together in a sample
GUESS = 0.33  # of the others that a record seems to have are its own: most pairs are in a few large entities
AGREE_FROM = 5  # the level from which values agree
ENOUGH = 0.5  # of what agreement in the attribute says that says most
TURNS = 8  # of clustering and learning, at most
BOLD = 2  # the turn that is bold
STILL = 0.99  # of the clusters of the turn before, if more is joined; else what is split off would go on splitting
ONE_THING = 1.1  # attributes that a record mentions, on average, for it to have a single one
PARTICLES = 5  # of the sampler that clusters
BELIEF = 100.0  # comparisons behind the prior of m
MORE = 0.1  # fragments that an entity has beyond those that were found, if nothing is known
# How alike the values of an entity are in what few records mention, if nothing is known:
OF_FACTS = (0.3, 0.035, 0.035, 0.045, 0.04, 0.03, 0.015, 0.5)
ALIKE_FROM = 3  # the level from which strangers are alike
PAIRS = 200_000  # of strangers, to see which columns go together
DOUBT = 30.0  # pairs behind the prior of a correlation
CERTAIN = 9.0  # squared standard deviations beyond chance that values must be alike to have other spellings
SHARES = np.linspace(0.02, 0.9, 45)  # of strangers as alike that are alike to one more degree, to be tried

Pairs = list[list[tuple[int, str]]]


@learn.register(Record)
def fit_prior(model: Any, X: Any, labels: Array | None = None, pairs: Any = None) -> Any:
    """See :meth:`Record.fit_prior`."""
    fragments = model.validate(X)
    known = known_of(len(fragments), labels, pairs)
    names, attributes = model._modelled()
    said_by: Pairs = [sorted(set(fragment.pairs)) for fragment in fragments]
    occurrences = counted(said_by, len(names))
    everything = known.is_complete
    if everything:
        rows = seeds = whole_clusters(known.group, SAMPLE, np.random.default_rng(0)).tolist()
    else:
        rows, seeds = neighbourhoods(said_by, occurrences, known.rows)
    own, known = [said_by[row] for row in rows], known.among(rows)
    among = counted(own, len(names))
    with_counts = [attribute.with_corpus(counts) for attribute, counts in zip(attributes, among, strict=True)]
    learner = Learner(names, with_counts, own)
    drawn = np.isin(rows, seeds)
    mentioned = np.bincount([a for said in said_by for a in {a for a, _ in said}], minlength=len(names))
    if learner.says_one_thing and 2 * len(known.rows) < len(own):
        return of_one_attribute(model, learner, occurrences)
    if everything:
        learner.says_one_thing = False
        found = np.unique(known.group, return_inverse=True)[1]
    else:
        sample, shares = [fragments[row] for row in rows], learner.present.mean(axis=0)
        guess = first_guess(model, learner, among, GUESS * learner.akin())
        current, clusters = careful(guess, learner), len(own)
        for turn in range(TURNS):
            if turn > 0:
                current = learnt(model, learner, found, drawn, among, len(own), shares)
            if turn == BOLD:
                current = bold(current, guess)
            found = known.clusters(
                SplitSMC(current, n_particles=PARTICLES, keys="auto", random_state=turn).fit(sample)
            )
            before, clusters = clusters, int(found.max()) + 1
            if turn > BOLD and clusters > STILL * before:
                break
    return learnt(model, learner, found, drawn, occurrences, len(said_by), mentioned / len(said_by))


def counted(said_by: Pairs, n: int) -> list[Counter[str]]:
    """Of each of n attributes, how often each value occurs."""
    found: list[Counter[str]] = [Counter() for _ in range(n)]
    for said in said_by:
        for a, value in said:
            found[a][value] += 1
    return found


def learnt(
    model: Any,
    learner: Learner,
    labels: Integers,
    drawn: Array,
    occurrences: list[Counter[str]],
    n: int,
    mentioned: Floats,
) -> Any:
    """The model with what clusters of the sample teach.

    Parameters
    ----------
    model : Record
    learner : Learner
    labels : int array
        The clusters.
    drawn : bool array
        Which records of the sample were drawn at random.
    occurrences : list of Counter
        Of each attribute: how often each value occurs, in all n records.
    n : int
    mentioned : float array
        Of each attribute: the share of records that mention it.
    """
    names, attributes = model._modelled()
    agreement, weights = learner.prior(labels)
    size = 1.0 / float(np.mean(1.0 / np.bincount(labels)[labels[drawn]])) + MORE
    clusters = values_of_clusters(learner.pairs, labels, len(attributes))
    fitted = dict(model.attributes)
    for a, (name, attribute) in enumerate(zip(names, attributes, strict=True)):
        chosen = references(clusters[a])
        fitted[name] = replace(
            attribute.with_corpus(
                dict.fromkeys(occurrences[a], 1.0)
                if learner.says_one_thing
                else counts_among_entities(occurrences[a], clusters[a])
            ).learnt_from(clusters[a]),
            agreement=tuple(agreement[a].tolist()),
            weight=float(weights[a]),
            references=chosen,
            kin=len(chosen) * size / n,
        )
    presence = dict(zip(names, mentioned.tolist(), strict=True))
    if model.rate == 0:
        return type(model)(fitted, model.rate, presence, None, size)
    types, rate = learnt_types(mentions_of(learner.pairs, labels, len(names)))
    return type(model)(fitted, rate, presence, named(types, names), size)


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

    # ------------------------------------------------------------------ learning

    def prior(self, labels: Integers, limit: float | None = None) -> tuple[Floats, Floats]:
        """What clusters teach: m of each attribute and level, and the weight of each attribute.

        Pairs of different clusters of which all says more than ``limit`` are left out, for they may be no strangers.
        """
        agreement, evidence = self.agreement(labels), np.zeros(len(self.sample.levels))
        for a, items in enumerate(self.of):
            write_evidence(self.sample, a, np.log(agreement[a]), self.log_u(a, items, labels), evidence)
        limit = math.log(self.n) if limit is None else limit
        return agreement, self.weights(evidence, labels, limit)

    def agreement(self, labels: Integers) -> Floats:
        """m of each attribute, near that of all columns, or of all facts, which few records mention."""
        counts = np.zeros((self.n_attributes, LEVELS))
        for a, items in enumerate(self.of):
            order = items[np.argsort(labels[self.record[items]], kind="stable")]
            of = labels[self.record[order]]
            ends = np.append(np.flatnonzero(np.diff(of)) + 1, len(of)) if len(of) else np.zeros(0, np.int64)
            within_counts(self.sample, a, self.record[order], self.value[order], ends, counts[a])
        columns = self.present.mean(axis=0) >= COLUMN
        found = np.empty_like(counts)
        for group, expected in ((columns, AGREEMENT), (~columns, OF_FACTS)):
            common = counts[group].sum(axis=0) + BELIEF * np.array(expected)
            known = counts[group] + BELIEF * common / common.sum()
            found[group] = known / known.sum(axis=1, keepdims=True)
        return found

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
        """
        generator = np.random.default_rng(0)
        first, second = generator.integers(self.n, size=(2, PAIRS))
        strangers = labels[first] != labels[second]
        first, second = first[strangers], second[strangers]
        usual = np.diag(self.mean_evidence(evidence, first, second, 0, limit)[1])
        alike, given = self.mean_evidence(evidence, first, second, ALIKE_FROM, limit)
        order = np.argsort(labels, kind="stable")
        first, second = order[:-1], order[1:]
        kin = labels[first] == labels[second]
        of_kin = np.diag(self.mean_evidence(evidence, first[kin], second[kin], 0, np.inf)[1])
        share = np.clip((given - usual) / np.maximum(of_kin - usual, 0.5), 0.0, 1.0)
        share = (alike * share + DOUBT * CORRELATION) / (alike + DOUBT)
        correlation = 0.5 * (share + share.T)
        np.fill_diagonal(correlation, 1.0)
        beside = (self.present.T @ self.present) / np.maximum(self.present.sum(axis=0), 1.0)[:, None]
        np.fill_diagonal(beside, 1.0)
        found: Floats = 1.0 / (correlation * beside).sum(axis=1)
        return found

    def mean_evidence(
        self, evidence: Floats, first: Integers, second: Integers, least: int, limit: float
    ) -> tuple[Floats, Floats]:
        """Of pairs alike in an attribute a: how many speak of b, and what b says of them on average."""
        counts, sums = np.zeros((2, self.n_attributes, self.n_attributes))
        sum_evidence(self.sample, evidence, first, second, limit, least, counts, sums)
        return counts, sums / np.maximum(counts, 1.0)

    def spellings(self, a: int) -> float:
        """How many different values of an attribute an entity has, by how alike all of them are.

        Of pairs of strangers a certain share of those that are alike to a degree are so to the next; what is beyond
        that are pairs of one entity, with m as it is usual.
        """
        n, at = int(self.sample.distinct[a]), int(self.sample.offset[a])
        if n < 2:
            return 1.0
        levels = self.sample.levels[at : at + n * n].reshape(n, n)[np.tril_indices(n, -1)]
        counts = as_alike(np.bincount(levels, minlength=LEVELS)[1:-1])
        usual = as_alike(np.array(AGREEMENT[1:-1]))
        scale = 1.0 / np.sqrt(counts + 1.0)
        alone, best, pairs = np.inf, np.inf, 0.0  # squared deviations without and with pairs of one entity
        for share in SHARES:
            strangers = share ** np.arange(len(counts)) * scale
            alone = min(alone, nnls(strangers[:, None], counts * scale)[1] ** 2)
            found, rest = nnls(np.column_stack([strangers, usual * scale]), counts * scale)
            if rest**2 < best:
                best, pairs = rest**2, float(found[1])
        if alone - best < CERTAIN:
            pairs = 0.0
        return 1.0 + 2.0 * pairs * (1.0 - AGREEMENT[-1]) / n

    def akin(self) -> float:
        """How many others of its entity a record has, at a guess.

        Those that agree with it in as many attributes as they differ in, and in something that few pairs agree in.
        """
        counts = np.zeros((self.n_attributes, 2))
        agreements(self.sample, AGREE_FROM, counts)
        information = -np.log((counts[:, 1] + 1.0) / (counts[:, 0] + 2.0))
        columns = self.present.mean(axis=0) >= COLUMN
        enough = ENOUGH * float(information[columns].max() if columns.any() else information.max())
        pairs = count_akin(self.sample, AGREE_FROM, information, enough)
        return float(np.clip(2.0 * pairs / self.n / REPEATED, 0.3, max(self.n / 4, 0.3)))


def as_alike(counts: Array) -> Array:
    """Of each degree of likeness, how many are alike to that degree at least."""
    found: Array = np.cumsum(counts[::-1])[::-1]
    return found


def neighbourhoods(
    pairs: Pairs, occurrences: list[Counter[str]], known: Sequence[int] = ()
) -> tuple[list[int], list[int]]:
    """Rows of a sample that has many fragments of the same entities, those that share a rare value with one of some.

    Also these, which are drawn at random. Rows of which something is ``known`` are in it, up to half of it.
    """
    if len(pairs) <= SAMPLE:
        return list(range(len(pairs))), list(range(len(pairs)))
    holders: dict[tuple[int, str], list[int]] = defaultdict(list)
    for row, said in enumerate(pairs):
        for a, value in said:
            if occurrences[a][value] <= SHARED:
                holders[a, value].append(row)
    chosen: dict[int, None] = dict.fromkeys(known[: SAMPLE // 2])
    seeds = []
    for seed in np.random.default_rng(0).permutation(len(pairs)).tolist():
        reached = [seed, *(row for pair in pairs[seed] for row in holders.get(pair, ()))]
        chosen |= dict.fromkeys(reached)
        seeds.append(seed)
        if len(chosen) >= SAMPLE:
            break
    return sorted(chosen), seeds


def named(types: Types, names: list[str]) -> list[tuple[float, dict[str, float]]]:
    """Types as :class:`Record` takes them."""
    weights, shares = types.weights.tolist(), types.shares.tolist()
    return [(weight, dict(zip(names, own, strict=True))) for weight, own in zip(weights, shares, strict=True)]


def values_of_clusters(said: Pairs, labels: Integers, n: int) -> list[list[Counter[str]]]:
    """Of each attribute, the values that each cluster has, with their counts."""
    found: list[dict[int, Counter[str]]] = [defaultdict(Counter) for _ in range(n)]
    for pairs, label in zip(said, labels.tolist(), strict=True):
        for a, value in pairs:
            found[a][label][value] += 1
    return [list(of_attribute.values()) for of_attribute in found]


def counts_among_entities(occurrences: Counter[str], clusters: list[Counter[str]]) -> dict[str, float]:
    """In how many entities each value occurs: all its occurrences by the share that was first in its cluster.

    For a value that the sample has not, the share among those that occur about as often. Where the sample
    does not show all occurrences, two count as two: to take values of two entities for one's own joins them.
    """
    holders = Counter(value for cluster in clusters for value in cluster)
    seen: Counter[str] = Counter()
    for cluster in clusters:
        seen.update(cluster)
    of_size: dict[int, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for value, n in seen.items():
        totals = of_size[int(math.log2(occurrences[value]))]
        totals[0] += holders[value]
        totals[1] += n
    share = {size: first / n for size, (first, n) in of_size.items()}
    everywhere = sum(holders.values()) / max(sum(seen.values()), 1)
    counts = {}
    for value, n in occurrences.items():
        first = holders[value] / seen[value] if value in seen else share.get(int(math.log2(n)), everywhere)
        counts[value] = n * first if seen[value] == n else max(n * first, min(n, 2))
    return counts
