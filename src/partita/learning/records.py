"""Empirical Bayes for records: how alike the values of one entity are, and those of different ones.

Given clusters of a sample, each attribute learns m, how alike the values of an entity are, and from pairs of different
clusters u, how alike those of strangers are; in how many entities each value occurs; and its weight. Columns whose
evidence goes together among strangers (a city and its postcodes) count for less: with correlations ρ the weight of a
column is 1 / Σ_b ρ_ab over the columns that are mentioned with it, itself included; where all labels are known it is
that of :mod:`.discriminant`. What says one thing alone is learnt by :mod:`.one_attribute`.

Without labels, clustering a sample and learning from its clusters take turns. That has several fixed points:
fragments of an entity that are taken for strangers make agreement look common, so that all alone stay alone, and all
in one stay together; a family that is taken for a person has nobody left who could show that strangers share an
address. So the first turn is careful (:func:`.guesses.careful`): it joins only those who agree in nearly everything.
If pairs of records then show that strangers live together (:mod:`.neighbours`), columns are weighed by what these
share, and it goes on so. Else a later turn is bold (:func:`.guesses.bold`): it begins with a guess of how many records
an entity has (:attr:`.Learner.akin`), for a value that so many have is no coincidence. Where what a turn joins makes
attributes depend on one another (:mod:`.dependence`), strangers have been joined after all: it is taken back, and
columns have the weights of :mod:`.discriminant`, as if the clusters of the turn before were known.
m begins with, and stays near, what it is in labelled tables (``AGREEMENT``, ``OF_FACTS``).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from partita._core.progress import Watcher, unwatched
from partita._core.typing import Array, Floats, Integers
from partita.learning.guesses import bold, careful, first_guess, references
from partita.learning.known import Known, known_of, whole_clusters
from partita.learning.learner import Learner, Pairs, Prior
from partita.learning.neighbours import prior_among_neighbours
from partita.learning.one_attribute import of_one_attribute
from partita.models.records.entity_types import Types, learnt_types, mentions_of
from partita.models.records.record import Record
from partita.models.registry import learn
from partita.smc.sampler import SplitSMC

SAMPLE = 2000  # fragments that are clustered to learn from
SHARED = 30  # fragments that share a value for it to tie them together in a sample
GUESS = 0.5  # of the others that a record seems to have are its own: most pairs are in a few large entities
TURNS = 8  # of clustering and learning, at most
BOLD = 2  # the turn that is bold
DEPENDENCE = 0.1  # nats a pair by which attributes may come to depend on one another within clusters
STILL = 0.99  # of the clusters of the turn before, if more is joined; else what is split off would go on splitting
PARTICLES = 5  # of the sampler that clusters
MORE = 0.1  # fragments that an entity has beyond those that were found, if nothing is known


@learn.register(Record)
def fit_prior(
    model: Any,
    X: Any,
    labels: Array | None = None,
    pairs: Any = None,
    progress: Watcher = unwatched,
    around: tuple[list[int], list[int]] | None = None,
) -> Any:
    """See :meth:`Record.fit_prior`.

    Where ``X`` is itself a sample of more, ``around`` may have what :func:`neighbourhoods` would find among all of it.
    """
    fragments = model.validate(X)
    known = known_of(len(fragments), labels, pairs)
    names, attributes = model._modelled()
    said_by: Pairs = [sorted(set(fragment.pairs)) for fragment in fragments]
    occurrences = counted(said_by, len(names))
    everything = known.is_complete
    if everything:
        rows = seeds = whole_clusters(known.group, SAMPLE, np.random.default_rng(0)).tolist()
    else:
        rows, seeds = around or neighbourhoods(said_by, occurrences, known.rows)
    sample = [fragments[row] for row in rows]
    del fragments  # all others: they take much memory
    own, known = [said_by[row] for row in rows], known.among(rows)
    among = counted(own, len(names))
    learner = learner_of(names, attributes, own, among)
    drawn = np.isin(rows, seeds)
    mentioned = np.bincount([a for said in said_by for a in {a for a, _ in said}], minlength=len(names))
    if learner.says_one_thing and not any(attribute.family_class for attribute in attributes):
        return of_one_attribute(model, learner, occurrences, mentioned, len(said_by), known.group, everything)
    if everything:
        found = np.unique(known.group, return_inverse=True)[1]
        prior: Prior | None = learner.prior(found, known=True)
    else:
        found, prior = in_turns(model, learner, sample, known, drawn, among, progress)
    share = mentioned / len(said_by)
    return learnt(model, learner, found, drawn, occurrences, len(said_by), share, prior)


def learner_of(names: list[str], attributes: list[Any], said_by: Pairs, among: list[Counter[str]]) -> Learner:
    """What is to be learnt from a sample, in which the values of each attribute occur so often."""
    counts = zip(attributes, among, strict=True)
    return Learner(names, [attribute.with_corpus(own) for attribute, own in counts], said_by)


def in_turns(
    model: Any,
    learner: Learner,
    sample: list[Any],
    known: Known,
    drawn: Array,
    among: list[Counter[str]],
    progress: Watcher,
) -> tuple[Integers, Prior | None]:
    """Clusters of the sample, which is clustered and learnt from in turns; and m and weights, if they are special.

    A turn that makes attributes depend on one another has joined strangers who share things, and is taken back.
    """
    shares = learner.present.mean(axis=0)
    guess = first_guess(model, learner, among, GUESS * learner.akin)
    current, found, least = careful(guess, learner), np.arange(learner.n), np.inf
    lesson: Prior | None = None
    neighbours = True  # as long as they are seen after every turn
    for turn in range(TURNS):
        if turn > 0:
            current = learnt(model, learner, found, drawn, among, learner.n, shares, lesson)
        if turn == BOLD and not neighbours:
            current = bold(current, guess)
        sampler = SplitSMC(current, n_particles=PARTICLES, keys="auto", random_state=turn)
        fitting, refining = halves(progress, turn, learner.n)
        sampler.fit(sample, progress=fitting)
        before, found = found, known.clusters(sampler, refining)
        if turn >= BOLD - 1:
            dependent = learner.dependence(found)
            tells = 2 * joined(before) >= joined(found)  # else too little was joined to know what is usual
            if tells and dependent > least + DEPENDENCE:
                return before, lesson or learner.prior(before, known=True)
            least = min(least, dependent) if tells else dependent
        lesson = prior_among_neighbours(learner, found, known.labels) if neighbours else None
        neighbours = lesson is not None
        if turn > BOLD and found.max() + 1 > STILL * (before.max() + 1):
            break
    return found, lesson


def joined(labels: Integers) -> int:
    """How many rows are joined to another."""
    return len(labels) - int(labels.max()) - 1


def halves(progress: Watcher, turn: int, n: int) -> tuple[Callable[[int], object], Watcher]:
    """What a turn's sampler tells while it observes n rows, and while it looks at them again, for the whole.

    The whole is as many turns as there are at least; each one more is part of it once it has begun.
    """
    before, total = turn * n, max(turn + 1, BOLD + 2) * n

    def fitting(row: int) -> None:
        progress(before + row // 2, total)

    def refining(done: int, subproblems: int) -> None:
        progress(before + n // 2 + (n - n // 2) * done // max(subproblems, 1), total)

    return fitting, refining


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
    prior: Prior | None = None,
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
    prior : pair of arrays, optional
        m and weights, else those of :meth:`.Learner.prior`.
    """
    names, attributes = model._modelled()
    agreement, weights = learner.prior(labels) if prior is None else prior
    size = 1.0 / float(np.mean(1.0 / np.bincount(labels)[labels[drawn]])) + MORE
    clusters = values_of_clusters(learner.pairs, labels, len(attributes))
    fitted = dict(model.attributes)
    for a, (name, attribute) in enumerate(zip(names, attributes, strict=True)):
        chosen = references(clusters[a])
        fitted[name] = replace(
            attribute.with_corpus(counts_among_entities(occurrences[a], clusters[a])).learnt_from(
                clusters[a]
            ),
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
    drawn = np.random.default_rng(0).permutation(len(pairs)).tolist()
    reached = ((row for pair in pairs[seed] for row in holders.get(pair, ())) for seed in drawn)
    return gathered(drawn, reached, known[: SAMPLE // 2])


def gathered(
    drawn: Iterable[int], reached: Iterable[Iterable[int]], known: Sequence[int] = ()
) -> tuple[list[int], list[int]]:
    """Rows that were drawn, each with those that it reaches, until they are enough; and which of them were drawn."""
    chosen: dict[int, None] = dict.fromkeys(known)
    seeds = []
    for seed, rows in zip(drawn, reached, strict=True):
        chosen |= dict.fromkeys([seed, *rows])
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
