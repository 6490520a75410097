"""Records that say one thing alone, such as names: how alike different values are is all there is to learn from."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import nnls
from sklearn.isotonic import isotonic_regression

from partita._core.concentration import PRIOR, alpha_for, expected_clusters
from partita._core.typing import Floats, Integers
from partita.learning.guesses import first_guess
from partita.learning.learner import BELIEF, Learner
from partita.learning.recombined import likeness_of_recombined
from partita.models.records.comparisons.family import ALIKE, BOUNDS
from partita.models.records.kinds.attribute import AGREEMENT
from partita.models.records.record import OTHER, nobody_says_other

SPELT_ALIKE = 0.02  # of the values of an entity at most are not the same, if it has no other spellings
EQUAL = 4.0  # nats by which equal values are of one entity
THINNING = 8.0  # nats by which strangers thin out from no likeness to all of it
FALLING = 2  # the degree of likeness from which they do
FITS = 5  # of how many there are
CERTAIN = 9.0  # squared standard deviations by which kin must explain better how alike values are
NEARLY = 5  # the degree of likeness that strangers hardly ever reach, and kin do
MOST_BY_CHANCE = 0.999  # of strangers are so alike
LEAST_PAIRS = 0.5  # of strangers that are alike to a degree


def of_one_attribute(
    model: Any,
    learner: Learner,
    occurrences: list[Counter[str]],
    mentioned: Integers,
    n: int,
    labels: Integers,
    complete: bool,
) -> Any:
    """The model of n records that say one thing alone: equal values are of one entity.

    All else is how alike pairs of different values are, and how many of these are of one entity: with α the odds
    against it, the evidence of a pair and α say together how probably it is. If an entity has no other spellings,
    values of one are the same. Records that say nothing are alone.

    Parameters
    ----------
    model : Record
    learner : Learner
    occurrences : list of Counter
        Of each attribute: how often each value occurs, in all n records.
    mentioned : int array
        Of each attribute: how many of these mention it.
    n : int
    labels : int array
        Of each record of the sample the group that it is known to be of; −1 is none.
    complete : bool
        Whether all are known.
    """
    names, attributes = model._modelled()
    only = int(learner.present.sum(axis=0).argmax())
    every, known = learner.different_values(only, labels)
    usual = np.array(AGREEMENT[:-1]) / sum(AGREEMENT[:-1])
    usual = (known + BELIEF * usual) / (known.sum() + BELIEF)
    kin, strangers = float(known.sum()), np.maximum(every - known, LEAST_PAIRS)
    # How far numbers lie apart thins out in no such way as how alike texts are.
    if not complete and attributes[only].measure == ALIKE:
        words = likeness_of_recombined(attributes[only].with_corpus(occurrences[only]), occurrences[only])
        likely, others = kin_and_strangers(every, usual, *words)
        if likely:  # what is not known to be kin may be
            kin, strangers = max(likely, kin), others
    distinct = max(len(occurrences[only]), 1)
    more = distinct / max(int(learner.sample.distinct[only]), 1)  # strangers than in the sample
    apart = float(more * strangers.sum() / max(kin, LEAST_PAIRS))  # odds against kin, of different values
    if kin:
        same = share_of_equal(learner, only, labels) if complete else AGREEMENT[-1]
        size = size_of((1.0 - same) * apart, n)
        odds = alpha_for(n / size, float(n))
    else:
        clusters = distinct + n - float(mentioned[only])
        size = max(n / clusters, 1.0)
        odds = alpha_for(clusters, float(n))
        same = 1.0 - min(odds / apart, SPELT_ALIKE)
    by_chance = chances(usual, strangers, strangers + kin * usual)
    guess = first_guess(model, learner, occurrences, size - 1.0)
    fitted = dict(guess.attributes)
    fitted[names[only]] = replace(
        fitted[names[only]],
        agreement=(*((1.0 - same) * usual).tolist(), same),
        by_chance=(*by_chance.tolist(), same / odds * math.exp(-EQUAL)),
        weight=1.0,
    )
    alone = len(names) - (OTHER in names and nobody_says_other(guess.presence)) == 1
    rate = 0.0 if alone else model.rate
    return type(model)(fitted, rate, guess.presence, None, size)


def share_of_equal(learner: Learner, a: int, labels: Integers) -> float:
    """How often values of one entity are the same, by true clusters."""
    counts = learner.within(labels)[a]
    return float((counts[-1] + BELIEF * AGREEMENT[-1]) / (counts.sum() + BELIEF))


def chances(usual: Floats, strangers: Floats, counts: Floats) -> Floats:
    """u by degree, such that to be more alike never says less: where few are so alike, counts say anything.

    Log-ratios of m and u that fall are taken together, each by how many pairs there are (isotonic regression).
    """
    shares = strangers / strangers.sum()
    rising = isotonic_regression(np.log(usual / shares), sample_weight=counts)
    found: Floats = usual * np.exp(-rising)
    return np.minimum(found, MOST_BY_CHANCE)


def size_of(alpha: float, n: float) -> float:
    """The size that entities are expected to have for α="auto" to be this, of n observations."""
    clusters = expected_clusters(alpha, n) + (PRIOR[0] + PRIOR[1]) * alpha / (1.0 + alpha) - PRIOR[0]
    return max(n / max(clusters, 1.0), 1.0)


def kin_and_strangers(
    counts: Floats, usual: Floats, by_words: Floats | None = None, covered: float = 0.0
) -> tuple[float, Floats]:
    """How many pairs of different values are of one entity, and how many of two by degree, given how many there are.

    Strangers thin out with likeness, by ``THINNING`` nats from none to all of it, beyond the degrees that most are
    of, and what is beyond that are kin, of whom a share is alike to each degree as is ``usual``: an empirical null
    (Efron 2004). If strangers alone do as well, there are no kin; and no more than those that are nearly the same
    allow for: people who share a name are alike, but never nearly the same. Where words at random (:mod:`.recombined`)
    make fewer nearly the same, they are the null, for as large a share of the pairs as is ``covered``.
    """
    ends = np.exp(-THINNING * np.concatenate([[0.0], BOUNDS, [1.0]]))
    parts = np.column_stack([(ends[:-1] - ends[1:]) / ends[FALLING], usual])[FALLING:]
    some = counts[FALLING:]
    scale = 1.0 / np.sqrt(some + 1.0)
    for _ in range(FITS):  # Poisson counts: each weighed by what is expected
        (strangers, kin), rest = nnls(parts * scale[:, None], some * scale)
        scale = 1.0 / np.sqrt(parts @ [strangers, kin] + 1.0)
    alone = nnls(parts[:, :1] * scale[:, None], some * scale)[1]
    by_chance, certain = strangers * parts[:, 0], alone**2 - rest**2 >= CERTAIN
    if by_words is not None and covered > 0.0:
        made = covered * counts.sum() * by_words[FALLING:] + (1.0 - covered) * by_chance
        if made[NEARLY - FALLING] < by_chance[NEARLY - FALLING]:
            by_chance, certain, kin = made, True, np.inf
    nearly = by_chance[NEARLY - FALLING]
    beyond = counts[NEARLY] - nearly
    if not certain or beyond < math.sqrt(CERTAIN * (nearly + 1.0)):
        return 0.0, np.maximum(counts, LEAST_PAIRS)
    kin = min(kin, beyond / usual[NEARLY])
    found = np.concatenate([counts[:FALLING] - kin * usual[:FALLING], by_chance])
    return float(kin), np.maximum(found, LEAST_PAIRS)
