"""Empirical Bayes for records: how alike the values of one entity are, and those of different ones.

Given clusters of a sample, each attribute learns m, how alike the values of an entity are, and from pairs of different
clusters u, how alike those of strangers are; in how many entities each value occurs; and its weight. Columns whose
evidence goes together among strangers (a city and its postcodes) count for less: with correlations ρ the weight of a
column is 1 / Σ_b ρ_ab over the columns that are mentioned with it, itself included.

Without labels, clustering a sample and learning from its clusters take turns. That has several fixed points, since
what is taken for strangers makes agreement look common, and so all alone stays alone. So it begins with several
guesses of how many records an entity has, s, under which a value of so many others is no coincidence, and the
likeliest outcome is kept: the one with the highest

    J = log p(partition) + Σ_a w_a·[evidence of the clusters + Σ_records log(share of entities that have its value)].

The guesses are multiples of how often values repeat, in the median attribute: in a table without duplicates that is
hardly ever.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln, logsumexp

from partita._core.checks import label_codes
from partita._core.concentration import alpha_for
from partita._core.typing import Array, Floats, Integers
from partita.learning.pairs import (
    Sample,
    between_counts,
    improve,
    sum_evidence,
    within_counts,
    write_evidence,
    write_levels,
)
from partita.models.records.comparisons.family import LEVELS
from partita.models.records.comparisons.vocabulary import discount_of, shares_of
from partita.models.records.entity_types import Types, learnt_types, log_joint, mentions_of
from partita.models.records.kinds.attribute import AGREEMENT
from partita.models.records.record import Record
from partita.models.registry import learn
from partita.smc.sampler import SplitSMC

SAMPLE = 1000  # fragments that are clustered to learn from
SHARED = 30  # fragments that share a value for it to tie them together in a sample
GUESSES = (1.0, 4.0, 16.0)  # of the records of an entity, in multiples of how often values repeat
REPEATED = 0.6  # of an entity's values are the same
TURNS = 3  # of clustering and learning
POLISH = 2  # more turns, with the sampler itself
PARTICLES = 5  # of it
BELIEF = 10.0  # comparisons behind the prior of m
COLUMN = 0.5  # of the records mention an attribute for it to be a column; else it is a fact
CORRELATION = 0.1  # of two columns, if nothing is known
ALIKE_FROM = 3  # the level from which strangers are alike
PAIRS = 200_000  # of strangers, to see which columns go together
DOUBT = 30.0  # pairs behind the prior of a correlation
REFERENCES = 500  # entities whose values are kept to compare with

Pairs = list[list[tuple[int, str]]]


@learn.register(Record)
def fit_prior(model: Any, X: Any, labels: Array | None = None) -> Any:
    """See :meth:`Record.fit_prior`."""
    fragments = model.validate(X)
    names, attributes = model._modelled()
    pairs: Pairs = [sorted(set(fragment.pairs)) for fragment in fragments]
    occurrences: list[Counter[str]] = [Counter() for _ in attributes]
    for said in pairs:
        for a, value in said:
            occurrences[a][value] += 1
    if labels is not None:
        codes = label_codes("labels", labels)
        if len(codes) != len(pairs):
            raise ValueError(f"labels has {len(codes)} entries, but there are {len(pairs)} fragments")
        rows = seeds = labelled_sample(codes)
    else:
        rows, seeds = neighbourhoods(pairs, occurrences)
    own = [pairs[row] for row in rows]
    among: list[Counter[str]] = [Counter() for _ in attributes]
    for said in own:
        for a, value in said:
            among[a][value] += 1
    counted = [attribute.with_corpus(counts) for attribute, counts in zip(attributes, among, strict=True)]
    learner = Learner(names, counted, own, model.rate)
    drawn = np.isin(rows, seeds)
    if labels is not None:
        found = np.unique(codes[rows], return_inverse=True)[1]
    else:
        found, sample = learner.clusters(), [fragments[row] for row in rows]
        for _ in range(POLISH):
            current = learnt(model, learner, found, drawn, among, len(own), learner.present.mean(axis=0))
            found = SplitSMC(current, n_particles=PARTICLES, random_state=0).fit(sample).refine(1).labels_
    mentioned = np.bincount([a for said in pairs for a in {a for a, _ in said}], minlength=len(names))
    return learnt(model, learner, found, drawn, occurrences, len(pairs), mentioned / len(pairs))


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
    prior = learner.prior(labels)
    size = 1.0 / float(np.mean(1.0 / np.bincount(labels)[labels[drawn]]))
    clusters = values_of_clusters(learner.pairs, labels, len(attributes))
    fitted = dict(model.attributes)
    for a, (name, attribute) in enumerate(zip(names, attributes, strict=True)):
        chosen = references(clusters[a])
        fitted[name] = replace(
            attribute.with_corpus(counts_among_entities(occurrences[a], clusters[a])).learnt_from(clusters[a]),
            agreement=tuple(prior.agreement[a].tolist()),
            weight=float(prior.weights[a]),
            references=chosen,
            kin=len(chosen) * size / n,
        )
    presence = dict(zip(names, mentioned.tolist(), strict=True))
    if model.rate == 0:
        return type(model)(fitted, model.rate, presence, None, size)
    types, rate = learnt_types(mentions_of(learner.pairs, labels, len(names)))
    return type(model)(fitted, rate, presence, named(types, names), size)


class Prior(NamedTuple):
    """What clusters of the sample teach."""

    agreement: Floats  # of each attribute and level
    weights: Floats  # of each attribute
    evidence: Floats  # of each attribute and pair of values, as :class:`Sample` has the levels
    kinds: Floats  # of each pair of records: what it says that they mention the attributes that they do
    base: Floats  # of each attribute: Σ log(share of entities that have a record's value)


class Learner:
    """A sample of records, with all its values compared."""

    def __init__(self, names: list[str], attributes: list[Any], pairs: Pairs, rate: float) -> None:
        self.pairs, self.n, self.n_attributes, self.rate = pairs, len(pairs), len(attributes), rate
        reader = Record(dict(zip(names, attributes, strict=True)))
        reader.check(1)
        vocabulary, ids = reader._vocabulary, [dict[str, int]() for _ in attributes]
        items = [(row, a, ids[a].setdefault(value, len(ids[a]))) for row, said in enumerate(pairs) for a, value in said]
        self.record, self.attribute, self.value = np.array(items, np.int64).reshape(-1, 3).T.copy()
        features = [np.array([vocabulary.value(a, value) for value in own], np.int64) for a, own in enumerate(ids)]
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

    # ------------------------------------------------------------------ learning

    def prior(self, labels: Integers) -> Prior:
        """What clusters teach."""
        base, evidence = np.zeros(self.n_attributes), np.zeros(len(self.sample.levels))
        agreement = self.agreement(labels)
        for a, items in enumerate(self.of):
            holders, log_u = self.strangers(a, items, labels)
            write_evidence(self.sample, a, np.log(agreement[a]), log_u, evidence)
            if len(items):
                base[a] = np.log(holders[self.value[items]] / holders.sum()).sum()
        weights = self.weights(evidence, labels)
        return Prior(agreement, weights, evidence, self.kinds(labels), base)

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
        for group in (columns, ~columns):
            common = counts[group].sum(axis=0) + BELIEF * np.array(AGREEMENT)
            known = counts[group] + BELIEF * common / common.sum()
            found[group] = known / known.sum(axis=1, keepdims=True)
        return found

    def strangers(self, a: int, items: Integers, labels: Integers) -> tuple[Floats, Floats]:
        """In how many clusters each value of an attribute is, and log u of each value and level."""
        n = self.sample.distinct[a]
        holders, counts = np.zeros(n), np.zeros((n, LEVELS))
        listed = np.unique(np.column_stack([labels[self.record[items]], self.value[items]]), axis=0)
        between_counts(self.sample, a, listed[:, 0].copy(), listed[:, 1].copy(), counts, holders)
        return holders, log_shares(counts, holders)

    def weights(self, evidence: Floats, labels: Integers) -> Floats:
        """What each attribute's evidence counts, by how it goes together with that of others.

        Among strangers, as cities with their postcodes, and within an entity, as all that changes with an employer.
        """
        generator = np.random.default_rng(0)
        first, second = generator.integers(self.n, size=(2, PAIRS))
        strangers = labels[first] != labels[second]
        first, second = first[strangers], second[strangers]
        at_random, usual = self.mean_evidence(evidence, first, second, 0)
        alike, given = self.mean_evidence(evidence, first, second, ALIKE_FROM)
        order = np.argsort(labels, kind="stable")
        steps = generator.integers(1, np.maximum(np.bincount(labels)[labels[order]], 2))
        first, second = order, order[np.minimum(np.arange(self.n) + steps, self.n - 1)]
        kin = (labels[first] == labels[second]) & (first != second)
        moments = np.zeros((4, self.n_attributes, self.n_attributes))
        sum_evidence(self.sample, evidence, first[kin], second[kin], np.inf, 0, moments)
        known = moments[0]
        of_kin, square, product = moments[1:] / np.maximum(known, 1.0)
        covariance, variance = product - of_kin * of_kin.T, square - of_kin**2
        scale = np.sqrt(np.maximum(variance * variance.T, 0.0))
        within = np.where(scale > 1e-9, covariance / np.maximum(scale, 1e-9), 0.0)
        within = np.clip((known * within + DOUBT * CORRELATION) / (known + DOUBT), 0.0, 1.0)
        usual, of_kin = np.diag(usual), np.diag(of_kin)
        share = np.clip((given - usual) / np.maximum(of_kin - usual, 0.5), 0.0, 1.0)
        share = (alike * share + DOUBT * CORRELATION) / (alike + DOUBT)
        correlation = np.maximum(0.5 * (share + share.T), within)
        np.fill_diagonal(correlation, 1.0)
        beside = (self.present.T @ self.present) / np.maximum(self.present.sum(axis=0), 1.0)[:, None]
        np.fill_diagonal(beside, 1.0)
        found: Floats = 1.0 / (correlation * beside).sum(axis=1)
        return found

    def mean_evidence(
        self, evidence: Floats, first: Integers, second: Integers, least: int, limit: float | None = None
    ) -> tuple[Floats, Floats]:
        """Of pairs alike in an attribute a: how many speak of b, and what b says of them on average."""
        moments = np.zeros((4, self.n_attributes, self.n_attributes))
        limit = math.log(self.n) if limit is None else limit
        sum_evidence(self.sample, evidence, first, second, limit, least, moments)
        return moments[0], moments[1] / np.maximum(moments[0], 1.0)

    def kinds(self, labels: Integers) -> Floats:
        """What it says of two records that they mention the attributes that they do: the odds of one type."""
        if self.rate == 0:
            return np.zeros((self.n, self.n))
        types, rate = learnt_types(mentions_of(self.pairs, labels, self.n_attributes))
        if len(types.weights) == 1:
            return np.zeros((self.n, self.n))
        joint = log_joint(mentions_of(self.pairs, np.arange(self.n), self.n_attributes), types, rate)
        of_type = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
        found: Floats = np.log(np.maximum((of_type / types.weights) @ of_type.T, 1e-6))
        return found

    # ------------------------------------------------------------------ clustering

    def clusters(self) -> Integers:
        """The likeliest of the clusterings that learning arrives at."""
        best, found = -np.inf, np.arange(self.n)
        nothing = self.prior(found).base
        for guess in GUESSES:
            size = float(np.clip(guess * self.repeats() / REPEATED, 0.3, max(self.n / 4, 0.3)))
            labels = self.first_clusters(size)
            score = -np.inf
            for turn in range(TURNS + 1):
                prior = self.prior(labels)
                rounds = 1 if turn < TURNS else 0
                labels, evidence = self.improved(prior, log_alpha(labels), labels, rounds, turn)
                if turn == TURNS:
                    score = log_partition(labels) + float(
                        (prior.weights * (evidence[:-1] + prior.base - nothing)).sum() + evidence[-1]
                    )
            if score > best:
                best, found = score, labels
        return found

    def repeats(self) -> float:
        """How many others have a record's value, on average: in the median attribute, by how often it is mentioned."""
        found, mentioned = np.zeros(self.n_attributes), self.present.sum(axis=0)
        for a, items in enumerate(self.of):
            counts = np.bincount(self.value[items])
            found[a] = (counts * (counts - 1)).sum() / max(len(items), 1)
        order = np.argsort(found)
        reached = np.cumsum(mentioned[order])
        return float(found[order][np.searchsorted(reached, reached[-1] / 2)])

    def first_clusters(self, size: float) -> Integers:
        """Clusters if entities have about so many records besides one: then as many that agree are no coincidence."""
        evidence, mentioned = np.zeros(len(self.sample.levels)), self.present.sum(axis=0)
        for a, items in enumerate(self.of):
            n, offset = self.sample.distinct[a], self.sample.offset[a]
            occurrences = np.bincount(self.value[items], minlength=n).astype(float)
            levels = self.sample.levels[offset : offset + n * n].reshape(n, n)
            counts = np.column_stack([(levels == at) @ occurrences for at in range(LEVELS)])
            counts[:, -1] -= 1.0
            own = size * mentioned[a] / self.n * np.array(AGREEMENT)
            counts = np.maximum(counts - own, 0.0)
            write_evidence(self.sample, a, np.log(AGREEMENT), log_shares(counts, occurrences), evidence)
        mean = float(self.present.sum(axis=1).mean())
        weights = np.full(self.n_attributes, 1.0 / (1.0 + CORRELATION * max(mean - 1.0, 0.0)))
        prior = Prior(np.zeros(0), weights, evidence, np.zeros((self.n, self.n)), np.zeros(0))
        return self.improved(prior, math.log(self.n / size), np.arange(self.n), 2, TURNS)[0]

    def improved(
        self, prior: Prior, concentration: float, labels: Integers, rounds: int, seed: int
    ) -> tuple[Integers, Floats]:
        """Better clusters under a prior, and the evidence of each attribute, and of what is mentioned, for them."""
        generator = np.random.default_rng(seed)
        orders = np.array([generator.permutation(self.n) for _ in range(rounds)], np.int64).reshape(rounds, self.n)
        labels = labels.copy()
        evidence = improve(self.sample, prior.evidence, prior.kinds, prior.weights, concentration, labels, orders)
        return np.unique(labels, return_inverse=True)[1], evidence


def log_shares(counts: Floats, holders: Floats) -> Floats:
    """log u by value and level, from how many strangers are alike to each value; see ``References``."""
    overall = holders @ counts
    overall = (overall + 0.5 / LEVELS) / (overall.sum() + 0.5)
    shares = shares_of(counts, overall)
    shares[:, -1] = (counts[:, -1] + 1.0 - discount_of(holders)) / (counts.sum(axis=1) + 2.0)
    found: Floats = np.log(shares)
    return found


def log_alpha(labels: Integers) -> float:
    """The concentration that fits clusters."""
    return math.log(alpha_for(float(labels.max() + 1), float(len(labels))))


def log_partition(labels: Integers) -> float:
    """log-probability of a partition under the Dirichlet process that fits it best (Ewens)."""
    sizes, alpha = np.bincount(labels), math.exp(log_alpha(labels))
    rising = gammaln(alpha + len(labels)) - gammaln(alpha)
    return float(len(sizes) * math.log(alpha) + gammaln(sizes).sum() - rising)


def references(clusters: list[Counter[str]]) -> tuple[str, ...]:
    """Values of entities, about as many of each."""
    generator = np.random.default_rng(0)
    each = -(-REFERENCES // max(len(clusters), 1))
    found: list[str] = []
    for c in generator.permutation(len(clusters)).tolist():
        values = sorted(clusters[c])
        found += [values[k] for k in generator.permutation(len(values))[:each].tolist()]
        if len(found) >= REFERENCES:
            break
    return tuple(found[:REFERENCES])


def labelled_sample(codes: Integers) -> list[int]:
    """Rows of whole clusters, as many as are learnt from."""
    rows: list[int] = []
    order = np.argsort(codes, kind="stable")
    of_clusters = np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)
    for c in np.random.default_rng(0).permutation(len(of_clusters)).tolist():
        if rows and len(rows) + len(of_clusters[c]) > SAMPLE:
            continue
        rows += of_clusters[c].tolist()
    return sorted(rows)
def neighbourhoods(pairs: Pairs, occurrences: list[Counter[str]]) -> tuple[list[int], list[int]]:
    """Rows of a sample that has many fragments of the same entities, those that share a rare value with one of some.

    Also these, which are drawn at random.
    """
    if len(pairs) <= SAMPLE:
        return list(range(len(pairs))), list(range(len(pairs)))
    holders: dict[tuple[int, str], list[int]] = defaultdict(list)
    for row, said in enumerate(pairs):
        for a, value in said:
            if occurrences[a][value] <= SHARED:
                holders[a, value].append(row)
    chosen: dict[int, None] = {}
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
