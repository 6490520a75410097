"""How good is a clustering, and how honest are its probabilities?

`bcubed`, `pairwise`, `adjusted_rand_index` and `variation_of_information` compare a clustering with the truth.
`calibration` asks whether of all pairs said to share a cluster with probability 0.7 seventy per cent do;
`calibration_of` draws the pairs from a posterior and answers in one call. `reliability_without_labels` estimates the
same for records from the records alone, and says when it cannot tell; `signs_of_collapse` lists what is strange about
a clustering. `evidence_slopes` asks whether evidence is worth what it says, at three levels.
"""

from partita.metrics.clusterings import (
    BCubed,
    Pairwise,
    adjusted_rand_index,
    bcubed,
    pairwise,
    variation_of_information,
)
from partita.metrics.collapse import Sign, signs_of_collapse
from partita.metrics.left_out import AttributeReliability
from partita.metrics.probabilities import Calibration, calibration, calibration_of, pairs_for_calibration
from partita.metrics.slopes import EvidenceSlopes, Slope, evidence_slopes
from partita.metrics.unlabelled import Reliability, reliability_without_labels

__all__ = [
    "AttributeReliability",
    "BCubed",
    "Calibration",
    "EvidenceSlopes",
    "Pairwise",
    "Reliability",
    "Sign",
    "Slope",
    "adjusted_rand_index",
    "bcubed",
    "calibration",
    "calibration_of",
    "evidence_slopes",
    "pairs_for_calibration",
    "pairwise",
    "reliability_without_labels",
    "signs_of_collapse",
    "variation_of_information",
]
