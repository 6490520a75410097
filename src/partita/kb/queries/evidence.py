"""What speaks for one clustering against another, step by step, in nats.

The difference of two clusterings' scores (paper, eq. 3) is a sum, over the clusters that only one of them has, of
what the prior says of sizes, what mentioning just these attributes says of the kind of thing, and what each
attribute's values say. A language model does not tell which attribute its verdict is due to: what it says beyond
the records is a step of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple
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


class Scores(NamedTuple):
    """What a model says of clusters: log p of each."""

    presence: dict[Cluster, float]  # that just these attributes are mentioned
    attributes: dict[str, dict[Cluster, float]]  # of those of which any of them says something


def evidence_of(
    clustering: Clustering,
    joined: frozenset[Cluster],
    apart: frozenset[Cluster],
    scores: Scores | None = None,
) -> dict[str, float]:
    """:func:`waterfall`, with what a language model says beyond it, if there is one."""
    steps = waterfall(clustering, joined, apart, scores)
    if clustering.network is not None:
        steps[NETWORK] = difference(clustering, joined, apart) - math.fsum(steps.values())
    return steps


def waterfall(
    clustering: Clustering,
    joined: frozenset[Cluster],
    apart: frozenset[Cluster],
    scores: Scores | None = None,
) -> dict[str, float]:
    """The difference of two clusterings' scores, step by step; attributes by the size of their evidence.

    Of clusters that have been asked about already, ``scores`` has what the model says.
    """
    model, log_alpha = clustering.model, math.log(clustering.engine.alpha)
    signs = [(cluster, 1.0) for cluster in joined - apart] + [(cluster, -1.0) for cluster in apart - joined]
    presence, attributes = scores or scores_of(clustering, [cluster for cluster, _ in signs])
    prior = sum(
        sign * (log_alpha + math.lgamma(len(cluster)) + model.log_size(len(cluster)))
        for cluster, sign in signs
    )
    kind = sum(sign * presence[cluster] for cluster, sign in signs)
    evidence = {
        name: float(sum(sign * found[cluster] for cluster, sign in signs))
        for name, found in attributes.items()
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


def attribute_scores(clustering: Clustering, name: str, clusters: list[Cluster]) -> Floats | None:
    """log p of what clusters say of one attribute; None if none of them says anything."""
    found = scores_of(clustering, clusters).attributes.get(name)
    return None if found is None else np.array([found[cluster] for cluster in clusters])


def scores_of(clustering: Clustering, clusters: Iterable[Cluster]) -> Scores:
    """What the model says of clusters; the model is asked about all of them at once, for asking costs most."""
    model, clusters = clustering.model, list(dict.fromkeys(clusters))
    parts = {x: divided(model, said) for x, said in fragments_of(clustering, set().union(*clusters)).items()}
    said, places, attributes = [], [], {}
    for name in model.numbers:
        speaking = {x for x, part in parts.items() if part.get(name)}
        if not speaking:
            continue
        attributes[name] = dict.fromkeys(clusters, 0.0)
        for cluster in clusters:
            if who := sorted(cluster & speaking):
                said.append([parts[x][name] for x in who])
                places.append((name, cluster))
    scores = attributes_alone(model).scores(said)
    for (name, cluster), part, score in zip(places, said, scores.tolist(), strict=True):
        attributes[name][cluster] = score - model.log_size(len(part))
    presence = {cluster: presence_of(model, [parts[x] for x in cluster]) for cluster in clusters}
    return Scores(presence, attributes)


def fragments_of(clustering: Clustering, xs: Iterable[int]) -> dict[int, dict[str, list[Any]]]:
    """What observations say; those that are not in memory come from the store in one call."""
    engine, xs = clustering.engine, sorted(xs)
    engine.need(sorted({engine.subproblem_of(x) for x in xs}))
    if clustering.network is None:
        engine.fetch_all(xs)
    return {x: engine.observation(x) for x in xs}


def presence_of(model: Record, parts: list[dict[str, Any]]) -> float:
    """What mentioning just these attributes adds to log p(c), of fragments that are divided by attribute."""
    mentions = np.zeros(len(model.numbers), np.int64)
    for part in parts:
        for name in part:
            mentions[model.numbers[name]] += 1
    return model.log_presence(mentions, len(parts))


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
        parts = {id(part): part for cluster in clusters for part in cluster}  # of several clusters, maybe
        read = dict(zip(parts, self._model.read(parts.values()), strict=True))
        return log_p_of(self._model, [[read[id(part)] for part in cluster] for cluster in clusters])


READY: WeakKeyDictionary[Record, AttributesAlone] = WeakKeyDictionary()


def attributes_alone(model: Record) -> AttributesAlone:
    """A model's attributes, ready to be asked."""
    if model not in READY:
        READY[model] = AttributesAlone(model)
    return READY[model]


def divided(model: Record, fragment: dict[str, list[Any]]) -> dict[str, dict[str, list[Any]]]:
    """What a fragment says of each attribute of the model that it mentions."""
    parts: dict[str, dict[str, list[Any]]] = {}
    for key, said in fragment.items():
        parts.setdefault(key if key in model.numbers else OTHER, {})[key] = said
    return parts


def only(model: Record, fragment: dict[str, list[Any]], name: str) -> dict[str, list[Any]]:
    """What a fragment says of one attribute of the model."""
    return {key: said for key, said in fragment.items() if (key if key in model.numbers else OTHER) == name}
