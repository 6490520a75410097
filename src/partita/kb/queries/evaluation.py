"""How good a knowledge base's clustering is, where the true entities of fragments are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sqlalchemy import Connection

from partita.kb.clustering import Clustering
from partita.kb.store.fragments import present_ids
from partita.metrics import bcubed, calibration, pairs_for_calibration, pairwise
from partita.posterior import Posterior

PAIRS = 100_000  # to check probabilities with


def evaluate(
    connection: Connection, clustering: Clustering, truth: Mapping[str, Any], loss: str
) -> dict[str, float]:
    """See :meth:`KnowledgeBase.evaluate`."""
    ids, posterior = present_ids(connection), clustering.posterior
    known = np.array([k for k, id in enumerate(ids) if id in truth], np.int64)
    if not len(known):
        some = ", ".join(map(repr, list(truth)[:3]))
        raise ValueError(f"none of the ids with a true entity is that of a fragment: {some}, …")
    labels = np.array([str(truth[ids[k]]) for k in known.tolist()])
    found = posterior.labels(loss=loss)[known]
    score, pairs = bcubed(labels, found), pairwise(labels, found)
    result = {
        "fragments": len(known),
        "true entities": len(set(labels.tolist())),
        "entities": len(set(found.tolist())),
        "precision": score.precision,
        "recall": score.recall,
        "f1": score.f1,
        "pair precision": pairs.precision,
        "pair recall": pairs.recall,
    }
    error = calibration_error(posterior, known, labels)
    return result if error is None else result | {"calibration error": error}


def calibration_error(posterior: Posterior, known: Any, labels: Any) -> float | None:
    """The expected calibration error of ``together``; None if nothing was ever unsure."""
    place = np.full(posterior.n_observations, -1)
    place[known] = np.arange(len(known))
    i, j = pairs_for_calibration(posterior, PAIRS, 0)
    both = (place[i] >= 0) & (place[j] >= 0)
    if not both.any():
        return None
    same = labels[place[i[both]]] == labels[place[j[both]]]
    return float(calibration(posterior.together(i[both], j[both]), same).expected_calibration_error)
