"""Types of entities: which attributes are mentioned of a film, a town, a person.

An entity of size n mentions attribute a in n_a of its fragments. Given its type k its rate of doing so is
Gamma(b·f_ka, b), and n_a Poisson, so that with weights w

    p(n_1, n_2, …) ∝ Σ_k w_k Π_a Γ(b·f_ka + n_a) / Γ(b·f_ka) · b^(b·f_ka) / (b + n)^(b·f_ka + n_a).

Attributes that go together are then evidence of a type once, and not each by itself of an entity. Weights and
shares are learnt by EM; how many types there are, and b, by how well one half of the entities predicts the
other.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, logsumexp

from partita._core.typing import Array, Floats, Integers

NUMBERS = (1, 4, 8, 16)  # of types that are tried
ENTITIES = 10  # for each type, at least
RATES = np.geomspace(1.0, 32.0, 6)  # b that are tried
RATE = 2.0  # where little data leave b
DOUBT = 0.5  # and how far from it in log b
STEPS = 15  # of EM
SMOOTHING = 4.0  # fragments of all types together behind the shares of one
UNSEEN = 4e-3  # mentions of what nobody mentions
WORTH = 0.5  # more types must predict an entity so much better, in nats


class Mentions(NamedTuple):
    """How often entities mention attributes: a sparse matrix, and the number of fragments of each."""

    entity: Integers
    attribute: Integers
    times: Floats
    size: Floats
    n_attributes: int
    distinct: Integers  # of its entries but for the entity, of which there are few: where each occurs first
    which: Integers  # of each entry: which of these it is


class Types(NamedTuple):
    """Weights, and of each type the share of fragments that mention each attribute."""

    weights: Floats
    shares: Floats


def mentions_of(said: Iterable[Iterable[tuple[int, str]]], labels: Integers, n: int) -> Mentions:
    """What clusters of fragments, given as attributes and values, mention."""
    counts: dict[int, Counter[int]] = defaultdict(Counter)
    sizes: Counter[int] = Counter()
    for pairs, label in zip(said, labels.tolist(), strict=True):
        sizes[label] += 1
        counts[label].update({a for a, _ in pairs})
    triples = [(e, a, count) for e, label in enumerate(sizes) for a, count in counts[label].items()]
    entity, attribute, count = np.array(triples, np.int64).reshape(-1, 3).T
    size = np.array(list(sizes.values()), np.float64)
    _, distinct, which = np.unique(count * n + attribute, return_index=True, return_inverse=True)
    return Mentions(entity, attribute, count.astype(np.float64), size, n, distinct, which)


def learnt_types(mentions: Mentions) -> tuple[Types, float]:
    """The types that entities fall into, and b."""
    n = len(mentions.size)
    half = np.random.default_rng(0).permutation(n) % 2 == 1
    best, number, chosen = -np.inf, 1, RATE
    for tried in NUMBERS:
        if tried > 1 and n < ENTITIES * tried:
            break
        predicted = -0.5 * (np.log(RATES / RATE) / DOUBT) ** 2
        for learnt in (half, ~half):
            types = fitted(mentions, learnt, RATE, tried)
            predicted += [log_mentions(mentions, types, b)[~learnt].sum() for b in RATES]
        if predicted.max() > best + WORTH * n:
            best, number, chosen = predicted.max(), tried, float(RATES[predicted.argmax()])
    return fitted(mentions, np.ones(n, bool), chosen, number), chosen


def log_joint(mentions: Mentions, types: Types, rate: float) -> Floats:
    """log p of each entity's mentions and its type, one column a type."""
    entity, size = mentions.entity, mentions.size
    attribute, times = mentions.attribute[mentions.distinct], mentions.times[mentions.distinct]
    spread = mentions.times * np.log(rate + size)[entity]
    columns = []
    for weight, shares in zip(types.weights, rate * types.shares, strict=True):
        rising = gammaln(shares[attribute] + times) - gammaln(shares[attribute])
        column = np.bincount(entity, rising[mentions.which] - spread, len(size))
        columns.append(column + np.log(weight) - shares.sum() * np.log1p(size / rate))
    return np.column_stack(columns)


def log_mentions(mentions: Mentions, types: Types, rate: float) -> Floats:
    """log p of each entity's mentions."""
    result: Floats = logsumexp(log_joint(mentions, types, rate), axis=1)
    return result


def fitted(mentions: Mentions, learnt: Array, rate: float, n: int) -> Types:
    """So many types, learnt from some of the entities."""
    evidence = learnt / (1.0 + mentions.size / rate)  # of a fragment: large entities have rates of their own
    overall = shares_of(mentions, evidence[:, None], np.ones(mentions.n_attributes), UNSEEN)
    if n == 1:
        return Types(np.ones(1), overall)
    chance = np.bincount(mentions.entity, mentions.times, len(learnt)) * learnt
    if np.count_nonzero(chance) < n:
        return Types(np.ones(1), overall)
    seeds = np.random.default_rng(0).choice(len(learnt), n, replace=False, p=chance / chance.sum())
    own = np.zeros((len(learnt), n))
    own[seeds, range(n)] = evidence[seeds]
    types = Types(np.full(n, 1.0 / n), shares_of(mentions, own, overall[0], SMOOTHING))
    for _ in range(STEPS):
        joint = log_joint(mentions, types, rate)
        belongs = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
        weights = (belongs[learnt].sum(axis=0) + 1.0) / (learnt.sum() + n)
        types = Types(weights, shares_of(mentions, belongs * evidence[:, None], overall[0], SMOOTHING))
    return types


def shares_of(mentions: Mentions, evidence: Floats, expected: Floats, smoothing: float) -> Floats:
    """Shares of fragments that mention each attribute, where each column weighs the entities.

    So many fragments that mention what is expected are added.
    """
    counts = [
        np.bincount(mentions.attribute, own[mentions.entity] * mentions.times, mentions.n_attributes)
        for own in evidence.T
    ]
    return (np.array(counts) + smoothing * expected) / ((mentions.size @ evidence)[:, None] + smoothing)
