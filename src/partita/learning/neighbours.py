"""Strangers who share much: families at one address, branches of one chain, editions of one book.

A pair of records of which much is said is of one entity (*kin*), or of *neighbours*, or of strangers who happen to be
alike. Kin are alike in every attribute as often as m says. Neighbours share some attributes, each at a rate of its own,
and in the others they are alike no more often than any strangers: who has a brother's address has a name and a date of
birth of their own. That is a latent class model of pairs (Fellegi and Sunter 1969 has two classes), fitted by EM. It
needs no clusters but for u, and tells neighbours from kin before any are joined.

Without it, strangers of whom much is said are left out when columns are weighed, for they may be kin; so a last name, a
street, a postcode and a telephone count as if they went together by chance, each log n nats, and the more records
there are, the surer it is that families are persons.

Kin whose records differ in something are no neighbours. Three things must hold, at every turn of learning:

- Neighbours agree in fewer attributes than kin, by more than one. In one alone is what kin do who differ in it: given
  the class attributes are independent, so that m has it already. Columns that go together among strangers, and what few
  records mention, count for less.
- Most of them are in different clusters, and where there are labels of different entities. Whom a third record joins
  are kin.
- There are some.

Then weights are those of :mod:`.discriminant`, where each pair is of strangers as far as it is not of kin; m is that of
the kin in the mixture.

Which of two groups that lie in each other is an entity cannot be seen in records: people who have moved house are to
their addresses as families are to their members. The smaller one is taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import betainc

from partita._core.typing import Array, Floats, Integers
from partita.learning.dependence import FEWEST
from partita.learning.discriminant import expected_of, weights_by
from partita.learning.known import UNKNOWN
from partita.learning.learner import AGREE_FROM, Learner, Prior
from partita.learning.pairs import NearPairs, count_near, sum_near, tell_apart, write_near

NEAR = 0.5  # of log n nats speak for pairs that are looked at
MOST = 100_000  # such pairs, else every second, third, … of them
FAR = 1_000_000  # pairs of which less is said
BELIEF = 100.0  # pairs behind what is expected of m, and of what neighbours share
ROUNDS = 50  # of EM
MORE_THAN = 1.0  # attributes in which neighbours differ from kin
INSIDE = 0.5  # of the neighbours at most are of one cluster
SURE = 0.99


class Mixture(NamedTuple):
    """Classes of pairs, and what pairs of each have in common."""

    kin: Floats  # how probably each pair is
    neighbours: Floats
    m: Floats  # of each attribute and level
    alike: Floats  # the same of neighbours, in what they share
    shared: Floats  # of each attribute: how often neighbours share it
    shares: Floats  # of all pairs: of kin, and of neighbours


def prior_among_neighbours(learner: Learner, labels: Integers, known: Integers | None = None) -> Prior | None:
    """m and the weights, as :meth:`.Learner.prior` has them, if there are neighbours; None if there are not.

    Parameters
    ----------
    learner : Learner
    labels : int array
        The clusters.
    known : int array, optional
        Of each record the entity that it is known to be of; ``UNKNOWN`` if it is not.
    """
    agreement, evidence, u = learner.evidence(labels)
    near, stride = near_pairs(learner, evidence)
    if len(near.first) * stride < FEWEST:
        return None
    log_u = np.log(agreement)[near.attribute, near.level] - near.said
    every = learner.n * (learner.n - 1) / 2 / stride
    begin = start(agreement, len(near.first), learner.n / stride / every)
    found = fitted(near, log_u, begin, agreement, every, like_kin)
    number = found.neighbours.sum()
    if number * stride < FEWEST or inside(found, near, labels) > INSIDE * number:
        return None
    if known is not None and are_kin(found, near, known):
        return None
    counting = learner.weights(evidence, labels, math.log(learner.n)) * learner.present.mean(axis=0)
    if counting @ differences(near, found) <= MORE_THAN:
        return None
    found = fitted(near, log_u, found, agreement, every, in_their_way)
    return found.m, weights_among(learner, evidence, expected_of(agreement, u), near, found, stride)


def inside(found: Mixture, near: NearPairs, labels: Integers, told: Array | bool = True) -> float:
    """How many neighbours, among the pairs that are ``told``, have one label."""
    return float(found.neighbours[(labels[near.first] == labels[near.second]) & told].sum())


def are_kin(found: Mixture, near: NearPairs, known: Integers) -> bool:
    """Whether labels say that most neighbours are of one entity: that is surer than ``SURE``, with a flat prior."""
    told = (known[near.first] != UNKNOWN) & (known[near.second] != UNKNOWN)
    same = inside(found, near, known, told)
    other = float(found.neighbours[told].sum()) - same
    return bool(betainc(1.0 + same, 1.0 + other, INSIDE) < 1.0 - SURE)


def near_pairs(learner: Learner, evidence: Floats) -> tuple[NearPairs, int]:
    """Pairs of which enough is said, or one of so many of them."""
    limit, counts = NEAR * math.log(learner.n), np.zeros(3, np.int64)
    count_near(learner.sample, evidence, limit, learner.n_attributes, 1, counts)
    stride = -(-int(counts[0]) // MOST) or 1
    if stride > 1:
        counts[:] = 0
        count_near(learner.sample, evidence, limit, learner.n_attributes, stride, counts)
    pairs, items = int(counts[1]), int(counts[2])
    first, second, starts = (np.zeros(n, np.int64) for n in (pairs, pairs, pairs + 1))
    near = NearPairs(
        first, second, starts, np.zeros(items, np.int64), np.zeros(items, np.int64), np.zeros(items)
    )
    write_near(learner.sample, evidence, limit, learner.n_attributes, stride, near)
    return near, stride


# ---------------------------------------------------------------------- EM


def start(agreement: Floats, pairs: int, share: float) -> Mixture:
    """Kin as they are in the clusters, neighbours who share each attribute or not, and as many of both."""
    unknown, half = np.zeros(pairs), np.full(len(agreement), 0.5)
    return Mixture(unknown, unknown, agreement, agreement, half, np.full(2, 0.5 * share))


def like_kin(counts: Floats, agreement: Floats, m: Floats) -> Floats:
    """Neighbours are as alike in what they share as kin are."""
    return m


def in_their_way(counts: Floats, agreement: Floats, m: Floats) -> Floats:
    """They are alike in it in a way of their own, as e-mail addresses are that begin with one last name."""
    return shares_of(counts, agreement)


def shares_of(counts: Floats, agreement: Floats) -> Floats:
    """How alike pairs are to each degree, near what is expected."""
    known = counts + BELIEF * agreement
    found: Floats = known / known.sum(axis=1, keepdims=True)
    return found


def fitted(
    near: NearPairs,
    log_u: Floats,
    found: Mixture,
    agreement: Floats,
    every: float,
    alike: Callable[[Floats, Floats, Floats], Floats],
) -> Mixture:
    """A likelier mixture than the one ``found``, with m near what is expected; of ``every`` pair, however far."""
    for _ in range(ROUNDS):
        kin, neighbours = np.zeros((2, len(near.first)))
        of_kin, of_neighbours = np.zeros((2, *agreement.shape))
        spoken = np.zeros(len(agreement))
        others = max(1.0 - found.shares.sum(), 1.0 / every)  # where nearly all pairs are near
        log_prior = np.log(np.append(found.shares, others))
        classes = np.log(found.m), found.alike, found.shared, log_prior
        tell_apart(near, log_u, *classes, kin, neighbours, of_kin, of_neighbours, spoken)
        m = shares_of(of_kin, agreement)
        shared = (of_neighbours.sum(axis=1) + 0.5) / (spoken + 1.0)
        shares = np.maximum([kin.sum(), neighbours.sum()], 1e-3) / every
        found = Mixture(kin, neighbours, m, alike(of_neighbours, agreement, m), shared, shares)
    return found


# ---------------------------------------------------------------------- what follows


def differences(near: NearPairs, found: Mixture) -> Floats:
    """Of each attribute: in how many more pairs kin agree than neighbours do, of those that speak of it."""
    items = np.repeat(found.neighbours, np.diff(near.starts))
    agree = items * (near.level >= AGREE_FROM)
    spoken, agreeing = (np.bincount(near.attribute, of, len(found.m)) for of in (items, agree))
    of_kin = found.m[:, AGREE_FROM:].sum(axis=1)
    lost: Floats = np.maximum(of_kin - (agreeing + of_kin) / (spoken + 1.0), 0.0)
    return lost


def weights_among(
    learner: Learner, evidence: Floats, expected: Floats, near: NearPairs, found: Mixture, stride: int
) -> Floats:
    """The weight of each attribute, where pairs are of strangers as far as they are not of kin."""
    first, second = np.random.default_rng(0).integers(learner.n, size=(2, FAR))
    two = first != second
    first, second = first[two], second[two]
    limit, size = NEAR * math.log(learner.n), (learner.n_attributes, learner.n_attributes)
    scale = learner.n * (learner.n - 1) / 2 / len(first)  # all pairs for each

    def mean_of(weights: Floats, enough: Floats) -> tuple[Floats, Floats]:
        counts, sums = np.zeros((2, *size))
        sum_near(near, weights, enough, counts, sums)
        return counts, sums / np.maximum(counts, 1.0)

    def strangers(enough: Floats | None = None) -> tuple[Floats, Floats]:
        enough = np.full(len(expected), -np.inf) if enough is None else enough
        far, said = learner.mean_evidence(evidence, first, second, limit, enough=enough)
        counts, means = mean_of(stride * (1.0 - found.kin), enough)
        total = scale * far + counts
        return total, (scale * far * said + counts * means) / np.maximum(total, 1.0)

    kin = mean_of(stride * found.kin, np.full(len(expected), -np.inf))
    return weights_by(learner, expected, kin, strangers)
