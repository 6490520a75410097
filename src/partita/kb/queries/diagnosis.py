"""How far the probabilities of a knowledge base are to be believed, with the truth or without it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Connection

from partita.kb.clustering import Clustering
from partita.kb.queries.evaluation import known_labels
from partita.kb.store.fragments import all_present
from partita.metrics import (
    EvidenceSlopes,
    Reliability,
    Sign,
    evidence_slopes,
    reliability_without_labels,
    signs_of_collapse,
)


@dataclass(frozen=True)
class Diagnosis:
    """What :meth:`KnowledgeBase.diagnose` has found.

    Attributes
    ----------
    fragments, entities : int
    alpha : float
        The concentration.
    reliability : Reliability or None
        None with a language model, out of which no attribute can be left.
    warnings : list of Sign
    slopes : EvidenceSlopes or None
        None without labels.
    """

    fragments: int
    entities: int
    alpha: float
    reliability: Reliability | None
    warnings: list[Sign]
    slopes: EvidenceSlopes | None

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        found: dict[str, Any] = {
            "fragments": self.fragments,
            "entities": self.entities,
            "alpha": self.alpha,
            "reliability": None if self.reliability is None else self.reliability.as_dict(),
            "warnings": [sign._asdict() for sign in self.warnings],
        }
        if self.slopes is not None:
            levels = self.slopes._asdict().items()
            found["slopes"] = {level: None if slope is None else slope._asdict() for level, slope in levels}
        return found


def diagnose(
    connection: Connection, clustering: Clustering, truth: Mapping[str, Any] | None, n_records: int
) -> Diagnosis:
    """See :meth:`KnowledgeBase.diagnose`."""
    _, fragments = all_present(connection)
    said, model, posterior = [f.properties for f in fragments], clustering.model, clustering.posterior
    if not said:
        raise ValueError("the knowledge base is empty: add fragments first")
    known, labels = (None, None) if truth is None else known_labels([f.id for f in fragments], truth)
    reliability = None
    if clustering.network is None:
        reliability = reliability_without_labels(model, said, posterior, n_records=n_records)
    slopes = None
    if known is not None:
        some = [said[k] for k in known.tolist()]
        slopes = evidence_slopes(model, some, labels, clustering.engine.alpha, n_records=n_records)
    return Diagnosis(
        fragments=len(said),
        entities=len(np.unique(posterior.labels())),
        alpha=clustering.engine.alpha,
        reliability=reliability,
        warnings=signs_of_collapse(said, posterior, reliability),
        slopes=slopes,
    )
