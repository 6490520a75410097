"""What the evidence of each attribute counts, as columns that go together must not count as if they were independent.

Strangers that are alike in one column (two editions of a program, a family at one address) are often alike in others
too. How much of what column b says of an entity's own records it says of such strangers as well is a share of its
*gap*, the mean evidence of an entity's records over that of strangers:

    share_ab = (mean of e_b among strangers of whom a says as much as of many an entity's records − usual_b) / gap_b.

Evidence in nats that is honest has a variance of as many nats as its gap, and of two columns the covariance
share_ab·gap_b, which is symmetric but for chance. The weights are those of the linear discriminant (Fisher 1936),
w = Σ⁻¹·gap, none below ``LEAST``: of two columns that say the same the better one keeps its weight, equally good ones
share it, and independent ones have 1 each.

Records of one entity that are in different clusters look like strangers that are alike in everything. So a pair counts
by how probably it is one of strangers; and if records seem to have more others than the clusters give them, as many of
the pairs are taken out as are missed, up to ``MISSED`` of those that were found.
"""

from __future__ import annotations

import math

import numpy as np

from partita._core.typing import Floats, Integers
from partita.learning.guesses import CORRELATION
from partita.learning.pairs import Sample, sum_evidence, sum_given

PAIRS = 1_000_000  # of records, to see which columns go together
USUAL = 200_000  # of these, to see what columns say of strangers
DOUBT = 30.0  # pairs behind what is expected of a share, or of a mean
LIKE_KIN = (
    0.5  # of what an attribute says of an entity's own records is enough for strangers to be alike in it
)
LEAST_SHARE = 0.05  # of what columns of one table say alike
LEAST_GAP = 0.5  # nats
LEAST = 0.05  # weight
MISSED = 0.35  # of as many pairs as were found may have been missed
FEWEST = 0.1  # others of a record, if nothing is known
ROUNDS = 200  # of finding the weights, one after the other


def others_of(labels: Integers) -> float:
    """How many others of its cluster a record has, on average."""
    sizes = np.bincount(labels)
    return float(sizes @ (sizes - 1.0)) / max(len(labels), 1)


def weights_of(
    sample: Sample,
    present: Floats,
    evidence: Floats,
    expected: Floats,
    labels: Integers,
    others: float | None = None,
) -> Floats:
    """The weight of each attribute.

    Parameters
    ----------
    sample : Sample
        Records.
    present : array of shape (n, attributes)
        Which of them mention which attributes.
    evidence : array
        Of each attribute a matrix of what pairs of its values say.
    expected : array
        What each attribute says of an entity's own records, where few are known.
    labels : int array
        Clusters.
    others : float, optional
        How many others of its entity a record seems to have; without it the clusters are taken for the truth.
    """
    n, n_attributes = present.shape
    first, second = np.random.default_rng(0).integers(n, size=(2, PAIRS))
    first, second = first[first != second], second[first != second]
    together = labels[first] == labels[second]
    apart = first[~together], second[~together]
    _, usual = means(sample, evidence, apart[0][:USUAL], apart[1][:USUAL], n_attributes)
    order = np.argsort(labels, kind="stable")
    adjacent = labels[order[1:]] == labels[order[:-1]]
    known, of_kin = means(sample, evidence, order[1:][adjacent], order[:-1][adjacent], n_attributes)
    of_kin = (known * of_kin + DOUBT * expected) / (known + DOUBT)
    gap = np.maximum(of_kin - usual, LEAST_GAP)

    limit, missed = np.inf, 0.0
    if others is not None:
        own = max(others_of(labels), FEWEST)
        limit, missed = math.log(n / own), min(max(others / own - 1.0, 0.0), MISSED)
    counts, sums = np.zeros((2, 2, n_attributes, n_attributes))
    sum_given(sample, evidence, *apart, LIKE_KIN * of_kin, limit, counts[0], sums[0])
    kin = first[together], second[together]
    sum_given(sample, evidence, *kin, LIKE_KIN * of_kin, np.inf, counts[1], sums[1])
    above = sums - counts * usual
    left = np.maximum(counts[0] - missed * counts[1], 0.0)
    total = np.where(left > 0.0, above[0] - missed * above[1], 0.0)
    share = np.clip((total / gap + DOUBT * CORRELATION) / (left + DOUBT), LEAST_SHARE, 1.0)
    beside = (present.T @ present) / np.maximum(present.sum(axis=0), 1.0)[:, None]
    return discriminant(share, gap, beside)


def means(
    sample: Sample, evidence: Floats, first: Integers, second: Integers, n_attributes: int
) -> tuple[Floats, Floats]:
    """Of each attribute: how many pairs of records speak of it, and what it says of them on average."""
    counts, sums = np.zeros((2, n_attributes))
    sum_evidence(sample, evidence, first, second, counts, sums)
    return counts, sums / np.maximum(counts, 1.0)


def discriminant(share: Floats, gap: Floats, beside: Floats) -> Floats:
    """w ≥ ``LEAST`` with the greatest w·gap − ½ w·Σ·w, by going up along one weight after the other.

    Columns count as far as they are mentioned ``beside`` each other.
    """
    given = share * gap[None, :]
    covariance = np.minimum(0.5 * (given + given.T), np.sqrt(np.outer(gap, gap))) * beside
    np.fill_diagonal(covariance, 0.0)
    weights = np.ones(len(gap))
    for _ in range(ROUNDS):
        for a in range(len(gap)):
            weights[a] = max(1.0 - covariance[a] @ weights / gap[a], LEAST)
    return weights
