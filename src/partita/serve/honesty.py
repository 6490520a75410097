"""How far the service may be believed, on one page: how sure it is, where it may be wrong, and how it has fared."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sqlalchemy import func, select

from partita.kb import KnowledgeBase
from partita.kb.labels import labels_kept
from partita.kb.store import tables
from partita.metrics import Calibration
from partita.serve.desk import Kept

BINS = 10
RISKS = 20  # entities


def honesty(kb: KnowledgeBase, kept: Kept) -> dict[str, Any]:
    """All of it, worked out once a moment."""
    return kept("honesty", lambda: worked_out(kb))


def worked_out(kb: KnowledgeBase) -> dict[str, Any]:
    """The distribution of sureness, the entities at risk, and the calibration curve, where something is known."""
    if not kb.stats()["fragments"]:
        return {"sureness": sureness(kb), "risk": [], "calibration": None}
    return {
        "sureness": sureness(kb),
        "risk": [one.as_dict() for one in kb.at_risk(RISKS)],
        "calibration": compared(kb),
    }


def sureness(kb: KnowledgeBase) -> list[dict[str, Any]]:
    """How many entities, of how many fragments, are how sure."""
    members = tables.members
    query = select(func.count(), func.avg(members.c.probability)).where(members.c.until.is_(None))
    with kb.store.reading() as connection:
        found = np.array(list(map(tuple, connection.execute(query.group_by(members.c.entity)))), float)
    sizes, sure = found.reshape(-1, 2).T
    place = np.minimum((sure * BINS).astype(int), BINS - 1)
    entities, fragments = np.bincount(place, minlength=BINS), np.bincount(place, sizes, BINS)
    return [
        {"from": k / BINS, "to": (k + 1) / BINS, "entities": int(entities[k]), "fragments": int(fragments[k])}
        for k in range(BINS)
    ]


def compared(kb: KnowledgeBase) -> dict[str, Any] | None:
    """Probabilities against what is known: labels, where there are any, else what humans have judged.

    Of what was judged, with the probabilities from before the judgement; after it they are certain. None if nothing is
    known of a pair.
    """
    with kb.store.reading() as connection:
        labels = labels_kept(connection)
    found, source = (kb.reliability(labels, BINS), "labels") if labels else (None, "labels")
    if found is None:
        found, source = kb.foretold(BINS), "judgements"
    return None if found is None else {"source": source} | as_bins(found)


def as_bins(found: Calibration) -> dict[str, Any]:
    """A calibration curve as JSON can hold it; the means of an empty bin are null."""
    bins: list[dict[str, Any]] = [
        {
            "from": k / BINS,
            "to": (k + 1) / BINS,
            "pairs": int(n),
            "mean": None if math.isnan(mean) else float(mean),
            "true": None if math.isnan(true) else float(true),
        }
        for k, (n, mean, true) in enumerate(
            zip(found.bin_count, found.bin_probability, found.bin_frequency, strict=True)
        )
    ]
    error = float(found.expected_calibration_error)
    return {
        "bins": bins,
        "n": int(found.bin_count.sum()),
        "expected_calibration_error": error,
        "brier": found.brier,
    }
