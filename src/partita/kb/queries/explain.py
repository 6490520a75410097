"""Why two fragments are together, or apart: a waterfall of evidence that adds up to the log-odds.

Two clusterings are compared: the best in which the fragments are together, and the best in which they are
apart. One of them is what the knowledge base holds, the other its strongest alternative. The difference of
their scores (paper, eq. 3) is a sum, over the clusters that only one of them has, of what the prior says of
sizes, what mentioning just these attributes says of the kind of thing, and what each attribute's values say.
Where the particles hold several clusterings of either kind, what the others add is a step of its own. So
the steps sum to the log-odds of the probability that the two are together.

A language model says how likely whole clusters are, and not by which attribute. There the attributes'
evidence is what the records say, and a step of its own is how far the language model's differs from theirs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
from scipy.special import logsumexp
from sqlalchemy import Connection

from partita._core.typing import Floats, Integers
from partita.kb.clustering import Clustering
from partita.kb.queries.answers import Answer, Event, events
from partita.kb.store.fragments import ids_of, numbers_of
from partita.kb.store.judgements import standing
from partita.models.records.record import OTHER, Record
from partita.smc.moves.constrain import explore
from partita.smc.reading.particles import partitions
from partita.smc.state.constraints import constraints_from, said_by

PRIOR, KIND, REST = "prior", "attributes mentioned", "other clusterings"  # steps that are no attribute's
NETWORK = "language model"  # what it says beyond the steps before

Cluster = frozenset[int]  # of observations


@dataclass(frozen=True)
class Step(Answer):
    """One step of a waterfall."""

    attribute: str  # or PRIOR, KIND, NETWORK or REST
    nats: float  # above 0: for being together
    first: list[Any]  # what the two fragments say
    second: list[Any]


@dataclass(frozen=True)
class Explanation(Answer):
    """Why two fragments are together, or apart."""

    first: str  # their ids
    second: str
    probability: float  # that they are together
    log_odds: float  # the sum of the steps
    together: bool  # in the best clustering
    steps: list[Step]
    clusters: list[
        list[str]
    ]  # of the best clustering, those that the alternative has not, as ids of fragments
    alternative: list[list[str]]  # of the strongest alternative, those that the best clustering has not
    judgements: list[int]  # that have decided it, whatever the evidence
    events: list[Event]  # that the two fragments have caused


def explain(connection: Connection, clustering: Clustering, first: str, second: str) -> Explanation:
    """See :meth:`KnowledgeBase.explain`."""
    numbers = numbers_of(connection, [first, second])
    a, b = (clustering.place(numbers[id]) for id in (first, second))
    joined, apart, log_odds = hypotheses(clustering, a, b)
    steps = waterfall(clustering, joined, apart)
    if clustering.network is not None:
        steps[NETWORK] = difference(clustering, joined, apart) - math.fsum(steps.values())
    rest = log_odds - math.fsum(steps.values())
    if rest != 0.0 and abs(rest) > 1e-12 * max(1.0, abs(log_odds)):
        steps[REST] = rest
    together = bool(clustering.entity[a] == clustering.entity[b])
    said = [clustering.said(x) for x in (a, b)]
    ids = ids_of(connection, clustering.numbers[sorted(set().union(*joined, *apart))])
    held, other = (joined, apart) if together else (apart, joined)
    return Explanation(
        first=first,
        second=second,
        probability=1.0 / (1.0 + math.exp(-log_odds)) if log_odds > -700.0 else 0.0,
        log_odds=log_odds,
        together=together,
        steps=[
            Step(name, nats, *(values_of(clustering, s, name) for s in said)) for name, nats in steps.items()
        ],
        clusters=named(clustering, held - other, ids),
        alternative=named(clustering, other - held, ids),
        judgements=deciding(connection, clustering, a, b),
        events=events(connection, None, None, None, (first, second)),
    )


# ---------------------------------------------------------------------- the two clusterings


def hypotheses(
    clustering: Clustering, a: int, b: int
) -> tuple[frozenset[Cluster], frozenset[Cluster], float]:
    """The best clusterings with ``a`` and ``b`` together and apart, and the log-odds of being together."""
    engine = clustering.engine
    with engine.lock:
        slots = sorted({engine.subproblem_of(x) for x in (a, b)})
        generator = np.random.default_rng(0)
        found = {}
        for kind in (True, False):
            found[kind] = held(engine, slots, a, b, kind) or alternative(engine, slots, a, b, kind, generator)
    (joined, with_scores), (apart, without_scores) = found[True], found[False]
    log_odds = float(logsumexp(with_scores) - logsumexp(without_scores))
    return joined, apart, log_odds


def held(
    engine: Any, slots: list[int], a: int, b: int, together: bool
) -> tuple[frozenset[Cluster], Floats] | None:
    """The best clustering of a kind that the particles hold, and the scores of all of that kind."""
    parts = [partitions(engine.state, s) for s in slots]
    if len(parts) == 1:
        members, ids, scores = parts[0]
        same = ids[:, members == a][:, 0] == ids[:, members == b][:, 0]
        kind = same == together
        if not kind.any():
            return None
        best = np.flatnonzero(kind)[scores[kind].argmax()]
        return clusters_of(members, ids[best]), scores[kind]
    if together:
        return None
    best_rows = [clusters_of(members, ids[scores.argmax()]) for members, ids, scores in parts]
    totals = np.add.outer(parts[0][2], parts[1][2]).ravel()
    return best_rows[0] | best_rows[1], totals


def alternative(
    engine: Any, slots: list[int], a: int, b: int, together: bool, generator: np.random.Generator
) -> tuple[frozenset[Cluster], Floats]:
    """The best clustering of a kind that the particles do not hold, and its score."""
    bound, cuts = said_by(engine.constraints)
    extra_bound, extra_cuts = ([(a, b)], []) if together else ([], [[[a], [b]]])
    try:
        constraints = constraints_from([*bound, *extra_bound], [*cuts, *extra_cuts])
    except ValueError:  # a judgement rules it out; this is what would be without it
        constraints = constraints_from(extra_bound, extra_cuts)
    found = explore(engine, slots, constraints, generator)
    return clusters_of(found.members, found.labels[0]), found.scores[:1]


def clusters_of(members: Integers, labels: Integers) -> frozenset[Cluster]:
    """A row of labels as a set of clusters."""
    clusters: dict[int, list[int]] = {}
    for x, label in zip(members.tolist(), labels.tolist(), strict=True):
        clusters.setdefault(label, []).append(x)
    return frozenset(map(frozenset, clusters.values()))


# ---------------------------------------------------------------------- the steps


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


# ---------------------------------------------------------------------- in words


def values_of(clustering: Clustering, fragment: dict[str, list[Any]], name: str) -> list[Any]:
    """What a fragment says of one step's attribute."""
    if name not in clustering.model.numbers:
        return []
    said = only(clustering.model, fragment, name)
    if name == OTHER:
        return [f"{key}: {value}" for key, values in said.items() for value in values]
    return said.get(name, [])


def named(clustering: Clustering, clusters: Iterable[Cluster], ids: dict[int, str]) -> list[list[str]]:
    """Clusters as ids of fragments, the largest first."""
    listed = [[ids[int(clustering.numbers[x])] for x in sorted(cluster)] for cluster in clusters]
    return sorted(listed, key=lambda cluster: (-len(cluster), cluster))


def deciding(connection: Connection, clustering: Clustering, a: int, b: int) -> list[int]:
    """The judgements that make two fragments be together, or apart."""
    together, cuts = said_by(clustering.engine.constraints)
    group = {x: x for pair in together for x in pair} | {x: first for first, x in together}
    own = [group.get(x, x) for x in (a, b)]
    sides = [{group.get(x, x): k for k, side in enumerate(cut) for x in side} for cut in cuts]
    apart = any(own[0] in side and own[1] in side and side[own[0]] != side[own[1]] for side in sides)
    if own[0] != own[1] and not apart:
        return []
    rows = [row for row in standing(connection) if row.kind != "unsure"]
    numbers = numbers_of(connection, {id for row in rows for id in row.fragments})
    found = []
    for row in rows:
        places = [[clustering.place(numbers[id]) for id in side if id in numbers] for side in row.sides]
        reached = [{group.get(x, x) for x in side} for side in places]
        if row.kind == "confirm":
            decides = own[0] == own[1] and sum(map(len, places)) > 1 and own[0] in set().union(*reached)
        else:
            decides = any({own[0]} <= one and {own[1]} <= other for one, other in permutations(reached, 2))
        if decides:
            found.append(row.number)
    return found
