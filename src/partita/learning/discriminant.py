"""What the evidence of each attribute counts if the true clusters are known.

Strangers that are alike in one column (two editions of a program, a family at one address) are often alike in others
too. How much of what column b says of an entity's own records it says of such strangers as well is a share of its
*gap*, the mean evidence of an entity's records over that of strangers:

    share_ab = (mean of e_b among strangers of whom a says half of what it says of kin − usual_b) / gap_b.

Evidence in nats that is honest has a variance of as many nats as its gap, and of two columns the covariance
share_ab·gap_b, which is symmetric but for chance. The weights are those of the linear discriminant (Fisher 1936),
w = Σ⁻¹·gap, none below ``LEAST``: of two columns that say the same the better one keeps its weight, equally good ones
share it, and independent ones have 1 each.

This is for clusters that are known, or of which no more may be joined (:mod:`.dependence`), and for strangers who are
seen to be neighbours (:mod:`.neighbours`). Where clusters were only found, records of one entity that are still apart
look like strangers that are alike in everything, and no column would count.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from partita._core.typing import Floats, Integers
from partita.learning.guesses import CORRELATION
from partita.models.records.kinds.attribute import SILENT

if TYPE_CHECKING:
    from partita.learning.learner import Learner

PAIRS = 1_000_000  # of records, to see which columns go together
LIKE_KIN = 0.5  # of what an attribute says of kin is enough for strangers to be alike in it
LEAST_SHARE = 0.05  # of what columns of one table say alike
LEAST_GAP = 0.5  # nats
LEAST = 0.05  # weight
DOUBT = 30.0  # pairs behind what is expected of a share, or of a mean
ROUNDS = 200  # of finding the weights, one after the other


def expected_of(m: Floats, u: Floats) -> Floats:
    """What each attribute is expected to say of kin."""
    found: Floats = (m * np.log(m / u)).sum(axis=1)
    return found


def weights_of_known(learner: Learner, evidence: Floats, expected: Floats, labels: Integers) -> Floats:
    """The weight of each attribute, given true clusters, and what it is ``expected`` to say of kin where few are."""
    first, second = np.random.default_rng(0).integers(learner.n, size=(2, PAIRS))
    apart = labels[first] != labels[second]
    first, second = first[apart], second[apart]
    kin = learner.mean_evidence(evidence, *learner.kin_of(labels))

    def strangers(enough: Floats | None = None) -> tuple[Floats, Floats]:
        return learner.mean_evidence(evidence, first, second, enough=enough)

    return weights_by(learner, expected, kin, strangers)


def weights_by(
    learner: Learner,
    expected: Floats,
    kin: tuple[Floats, Floats],
    strangers: Callable[[Floats | None], tuple[Floats, Floats]],
) -> Floats:
    """The weight of each attribute, by what it says of kin, and of strangers that have ``enough`` in common.

    Both are as :meth:`.Learner.mean_evidence` has them.
    """
    usual = np.diag(strangers(None)[1])
    known, of_kin = map(np.diag, kin)
    of_kin = (known * of_kin + DOUBT * expected) / (known + DOUBT)
    gap = np.maximum(of_kin - usual, LEAST_GAP)
    alike, given = strangers(LIKE_KIN * of_kin)
    share = (alike * (given - usual) / gap + DOUBT * CORRELATION) / (alike + DOUBT)
    silent, beside = learner.survey.silent, learner.beside()
    beside[silent], beside[:, silent] = 0.0, 0.0
    found: Floats = np.where(silent, SILENT, discriminant(np.clip(share, LEAST_SHARE, 1.0), gap, beside))
    return found


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
