"""What speaks for one clustering against another, step by step, in nats.

The difference of two clusterings' scores (paper, eq. 3) is a sum, over the clusters that only one of them has, of
what the prior says of sizes, what mentioning just these attributes says of the kind of thing, and what each
attribute's values say. A language model does not tell which attribute its verdict is due to: what it says beyond
the records is a step of its own.
"""

from __future__ import annotations

import math
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from partita._core.typing import Floats
from partita.kb.clustering import Clustering
from partita.models.records.record import OTHER, Record
from partita.models.scoring.scored import log_p_of

PRIOR, KIND, REST = "prior", "attributes mentioned", "other clusterings"  # steps that are no attribute's
NETWORK = "language model"  # what it says beyond the steps before
MOST = 200_000  # fragments that a model is asked about before it is made anew

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
    evidence = {
        name: float(sum(sign * score for (_, sign), score in zip(signs, found, strict=True)))
        for name, found in scores_of(
            clustering, list(model.numbers), [cluster for cluster, _ in signs]
        ).items()
    }
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
    return scores_of(clustering, [name], clusters).get(name)


def scores_of(clustering: Clustering, names: list[str], clusters: list[Cluster]) -> dict[str, Floats]:
    """log p of what clusters say of each of some attributes; without those of which none says anything."""
    model = clustering.model
    fragments = {x: clustering.said(x) for cluster in clusters for x in cluster}
    said, places, found = [], [], {}
    for name in names:
        parts = {x: only(model, fragment, name) for x, fragment in fragments.items()}
        speaking = {x: part for x, part in parts.items() if part}
        if not speaking:
            continue
        found[name] = np.zeros(len(clusters))
        for k, cluster in enumerate(clusters):
            if cluster & speaking.keys():
                said.append([speaking[x] for x in sorted(cluster & speaking.keys())])
                places.append((name, k))
    scores = attributes_alone(model).scores(said)
    for (name, k), part, score in zip(places, said, scores.tolist(), strict=True):
        found[name][k] = score - model.log_size(len(part))
    return found


class AttributesAlone:
    """What a model says of values, whatever is mentioned; made ready once, for that takes long."""

    def __init__(self, model: Record) -> None:
        self._model = Record(model.attributes, 0.0, model.presence, None, model.size)
        self._seen = MOST

    def scores(self, clusters: list[list[dict[str, list[Any]]]]) -> Floats:
        """log p of clusters of fragments."""
        if not clusters:
            return np.empty(0)
        self._seen += sum(map(len, clusters))
        if self._seen > MOST:  # it remembers all values that it has seen
            self._model.check(1)
            self._seen = 0
        return log_p_of(self._model, [self._model.read(cluster) for cluster in clusters])


READY: WeakKeyDictionary[Record, AttributesAlone] = WeakKeyDictionary()


def attributes_alone(model: Record) -> AttributesAlone:
    """A model's attributes, ready to be asked."""
    if model not in READY:
        READY[model] = AttributesAlone(model)
    return READY[model]


def mentioned(model: Record, fragment: dict[str, list[Any]]) -> set[str]:
    """The attributes of the model that a fragment mentions."""
    return {name if name in model.numbers else OTHER for name in fragment}


def only(model: Record, fragment: dict[str, list[Any]], name: str) -> dict[str, list[Any]]:
    """What a fragment says of one attribute of the model."""
    return {key: said for key, said in fragment.items() if (key if key in model.numbers else OTHER) == name}
