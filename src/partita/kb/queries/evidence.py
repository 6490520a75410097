"""What speaks for one clustering against another, step by step, in nats.

The difference of two clusterings' scores (paper, eq. 3) is a sum, over the clusters that only one of them has, of
what the prior says of sizes, what mentioning just these attributes says of the kind of thing, and what each
attribute's values say. A language model does not tell which attribute its verdict is due to: what it says beyond
the records is a step of its own.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from partita._core.typing import Floats
from partita.kb.clustering import Clustering
from partita.models.records.record import OTHER, Record

PRIOR, KIND, REST = "prior", "attributes mentioned", "other clusterings"  # steps that are no attribute's
NETWORK = "language model"  # what it says beyond the steps before

Cluster = frozenset[int]  # of observations


def evidence_of(
    clustering: Clustering, joined: frozenset[Cluster], apart: frozenset[Cluster]
) -> dict[str, float]:
    """:func:`waterfall`, with what a language model says beyond it, if there is one."""
    steps = waterfall(clustering, joined, apart)
    if clustering.network is not None:
        steps[NETWORK] = difference(clustering, joined, apart) - math.fsum(steps.values())
    return steps


def waterfall(
    clustering: Clustering, joined: frozenset[Cluster], apart: frozenset[Cluster]
) -> dict[str, float]:
    """The difference of two clusterings' scores, step by step; attributes by the size of their evidence."""
    model, log_alpha = clustering.model, math.log(clustering.engine.alpha)
    signs = [(cluster, 1.0) for cluster in joined - apart] + [(cluster, -1.0) for cluster in apart - joined]
    prior = sum(
        sign * (log_alpha + math.lgamma(len(cluster)) + model.log_size(len(cluster)))
        for cluster, sign in signs
    )
    kind = sum(sign * presence_of(clustering, cluster) for cluster, sign in signs)
    evidence = {}
    for name in model.numbers:
        found = attribute_scores(clustering, name, [cluster for cluster, _ in signs])
        if found is not None:
            evidence[name] = float(sum(sign * score for (_, sign), score in zip(signs, found, strict=True)))
    steps = {PRIOR: prior, KIND: kind} if model.rate else {PRIOR: prior}
    return steps | dict(sorted(evidence.items(), key=lambda entry: -abs(entry[1])))


def difference(clustering: Clustering, joined: frozenset[Cluster], apart: frozenset[Cluster]) -> float:
    """The difference of two clusterings' scores, as the model has them that the entities are found with."""
    engine, log_alpha = clustering.engine, math.log(clustering.engine.alpha)
    signs = [(cluster, 1.0) for cluster in joined - apart] + [(cluster, -1.0) for cluster in apart - joined]
    if not signs:
        return 0.0
    with engine.lock:
        scores = engine.scores([np.array(sorted(cluster)) for cluster, _ in signs])
    return math.fsum(sign * (log_alpha + score) for (_, sign), score in zip(signs, scores, strict=True))


def presence_of(clustering: Clustering, cluster: Cluster) -> float:
    """What mentioning just these attributes adds to log p(c)."""
    mentions = np.zeros(len(clustering.model.numbers), np.int64)
    for x in cluster:
        for name in mentioned(clustering.model, clustering.said(x)):
            mentions[clustering.model.numbers[name]] += 1
    return clustering.model.log_presence(mentions, len(cluster))


def attribute_scores(clustering: Clustering, name: str, clusters: list[Cluster]) -> Floats | None:
    """log p of what clusters say of one attribute; None if none of them says anything."""
    model = clustering.model
    parts = {x: only(model, clustering.said(x), name) for cluster in clusters for x in cluster}
    speaking = {x: part for x, part in parts.items() if part}
    if not speaking:
        return None
    scores = np.zeros(len(clusters))
    some = [k for k, cluster in enumerate(clusters) if cluster & speaking.keys()]
    said = [[speaking[x] for x in sorted(clusters[k] & speaking.keys())] for k in some]
    scores[some] = Record(model.attributes, 0.0, model.presence, None, model.size).log_likelihood(said)
    scores[some] -= [model.log_size(len(part)) for part in said]
    return scores


def mentioned(model: Record, fragment: dict[str, list[Any]]) -> set[str]:
    """The attributes of the model that a fragment mentions."""
    return {name if name in model.numbers else OTHER for name in fragment}


def only(model: Record, fragment: dict[str, list[Any]], name: str) -> dict[str, list[Any]]:
    """What a fragment says of one attribute of the model."""
    return {key: said for key, said in fragment.items() if (key if key in model.numbers else OTHER) == name}
