"""How good a knowledge base's clustering is, where the true entities of fragments are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sqlalchemy import Connection

from partita._core.typing import Array, Floats, Integers
from partita.kb.clustering import Clustering
from partita.kb.store.fragments import present_ids
from partita.metrics import Calibration, bcubed, calibration, pairs_for_calibration, pairwise
from partita.posterior import Posterior

PAIRS = 100_000  # to check probabilities with
SURE = 0.99  # a probability above which a pair is held for certain


def evaluate(
    connection: Connection, clustering: Clustering, truth: Mapping[str, Any], loss: str
) -> dict[str, float]:
    """See :meth:`KnowledgeBase.evaluate`."""
    known, labels = known_labels(present_ids(connection), truth)
    posterior = clustering.posterior
    found = posterior.labels(loss=loss)[known]
    score, pairs = bcubed(labels, found), pairwise(labels, found)
    result = {
        "fragments": len(known),
        "true entities": len(set(labels.tolist())),
        "entities": len(set(found.tolist())),
        "precision": score.precision,
        "recall": score.recall,
        "f1": score.f1,
        "harmonic f1": harmonic(score.precision, score.recall),
        "pair precision": pairs.precision,
        "pair recall": pairs.recall,
        "pair f1": pairs.f1,
    }
    probability, same = known_pairs(posterior, known, labels)
    if not len(probability):
        return result
    result["calibration error"] = calibration(probability, same).expected_calibration_error
    sure = probability > SURE
    result["pairs held for certain"] = int(sure.sum())
    return result | ({"true among these": float(same[sure].mean())} if sure.any() else {})


def harmonic(precision: float, recall: float) -> float:
    """The harmonic mean of precision and recall."""
    return 2.0 * precision * recall / (precision + recall)


def reliability(
    connection: Connection, clustering: Clustering, truth: Mapping[str, Any], n_bins: int
) -> Calibration | None:
    """See :meth:`KnowledgeBase.reliability`."""
    known, labels = known_labels(present_ids(connection), truth)
    probability, same = known_pairs(clustering.posterior, known, labels)
    return calibration(probability, same, n_bins) if len(probability) else None


def known_labels(ids: Sequence[str], truth: Mapping[str, Any]) -> tuple[Integers, Array]:
    """Which fragments have a true entity, and which; ValueError if none has."""
    known = np.array([k for k, id in enumerate(ids) if id in truth], np.int64)
    if not len(known):
        some = ", ".join(map(repr, list(truth)[:3]))
        raise ValueError(f"none of the ids with a true entity is that of a fragment: {some}, …")
    return known, np.array([str(truth[ids[k]]) for k in known.tolist()])


def known_pairs(posterior: Posterior, known: Integers, labels: Array) -> tuple[Floats, Array]:
    """Pairs of one subproblem whose truth is known: their probability, and whether they are the same."""
    nothing = np.zeros(0), np.zeros(0, bool)
    if posterior.n_subproblems == posterior.n_observations:  # nothing was ever unsure
        return nothing
    place = np.full(posterior.n_observations, -1)
    place[known] = np.arange(len(known))
    i, j = pairs_for_calibration(posterior, PAIRS, 0)
    both = (place[i] >= 0) & (place[j] >= 0)
    if not both.any():
        return nothing
    same = labels[place[i[both]]] == labels[place[j[both]]]
    return np.asarray(posterior.together(i[both], j[both])), same
