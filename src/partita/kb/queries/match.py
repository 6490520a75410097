"""Where a record would go, were it added; nothing is.

The record meets the candidates that it would meet if it came in, those that share a key with it, and each of
their particles and clusters has the weight that the update gives it (paper, section 3.3): w(s, i)·|c|·p(x|c), and
α·p(x) for a new one. Summed over all particles these are the posterior predictive probabilities of the entities
(:mod:`partita.smc.reading.predict`).

The evidence of an entity c is that of the best clustering, against being new:

    log|c| − log α + log p(c ∪ {x}) − log p(c) − log p({x}),

step by step as in :mod:`~partita.kb.queries.explain`: what the prior says of sizes, what mentioning just these
attributes says, what each attribute's values say. What other particles make of it is a step of its own, so that
the steps sum to the log-odds, log P(c) − log P(new).
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Connection

from partita._core.typing import Floats, Integers
from partita.kb.clustering import Clustering
from partita.kb.queries.answers import Answer, entity_id, names_of
from partita.kb.queries.evidence import KIND, NETWORK, PRIOR, REST
from partita.kb.queries.explain import values_of
from partita.models.scoring.compiled import read_gains
from partita.smc.reading.best import best_clustering
from partita.smc.reading.predict import predictive
from partita.smc.state.clusters import StateClusters
from partita.smc.steps.candidates import candidates_of_row

NEW = "new"  # stands for an entity that is not known yet
LOOKED_AT = 30  # fragments of an entity, at most, whose values are named beside the record's
VALUES = 3  # of an attribute of an entity that are named, the commonest first


@dataclass(frozen=True)
class MatchStep(Answer):
    """One step of the evidence."""

    attribute: str  # or PRIOR, KIND, NETWORK or REST
    nats: float  # above 0: for going there
    record: list[Any]  # what the record says
    entity: list[Any]  # what most of the entity's fragments say


@dataclass(frozen=True)
class Match(Answer):
    """Somewhere that a record may go."""

    entity: str  # its id, or NEW
    name: str | None
    probability: float
    log_odds: float  # of going there against being new; the sum of the steps
    steps: list[MatchStep]


@dataclass(frozen=True)
class Matched(Answer):
    """A record, and where it may go."""

    record: str  # its id
    matches: list[Match]  # the most probable first


@dataclass(frozen=True)
class Places:
    """The candidates for a record."""

    members: Integers  # the observations in them
    label: Integers  # of each the place of its cluster in the best clustering
    clusters: Integers  # their ids
    probabilities: Floats  # of going there, and last of being new
    encoded: Any  # the record, as the sampler has it


def match(connection: Connection, clustering: Clustering, checked: list[Any], limit: int) -> list[Match]:
    """Where a record may go, in a list as the model has validated it; see :meth:`KnowledgeBase.match`."""
    with clustering.engine.lock:
        places = places_for(clustering, checked)
        best = np.argsort(-places.probabilities, kind="stable")[:limit].tolist()
        new = len(places.clusters)
        known = [k for k in best if k != new]
        first = {k: places.members[places.label == k] for k in known}
        numbers = {k: int(clustering.entity[first[k][0]]) for k in known}
        steps = dict(zip(known, evidence(clustering, places, known), strict=True))
        clustering.engine.fetch_all([x for members in first.values() for x in members[:LOOKED_AT].tolist()])
        names = names_of(connection, numbers.values())
        found = []
        for k in best:
            probability = float(places.probabilities[k])
            if k == new:
                found.append(Match(NEW, None, probability, 0.0, []))
                continue
            beside = said_by(clustering, first[k], checked[0])
            listed = [
                MatchStep(
                    name, nats, values_of(clustering, checked[0], name), values_of(clustering, beside, name)
                )
                for name, nats in steps[k].items()
            ]
            id = str(entity_id(numbers[k]))
            log_odds = math.fsum(steps[k].values())
            found.append(Match(id, names[numbers[k]], probability, log_odds, listed))
    return found


def places_for(clustering: Clustering, checked: list[Any]) -> Places:
    """The candidates for a record, and how probable it is to go where."""
    engine = clustering.engine
    encoded, keys = engine.encode(checked), engine.keys(checked)
    slots = candidates_of_row(engine.state, *keys, 0)
    engine.need(slots)
    members, ids, _ = best_clustering(engine.state, slots)
    clusters, label = np.unique(ids, return_inverse=True)
    present = engine.present
    labels = np.zeros(len(present), np.int64)
    labels[np.searchsorted(present, members)] = label
    if not len(clusters):  # nothing shares a key with it, or there is nothing
        return Places(members, label, clusters, np.ones(1), encoded)
    found = predictive(engine, encoded, labels, keys)[0]
    probabilities = np.append(found[: len(clusters)], found[-1])
    return Places(members, label, clusters, probabilities, encoded)


# ---------------------------------------------------------------------- evidence


def evidence(clustering: Clustering, places: Places, known: list[int]) -> list[dict[str, float]]:
    """Of some candidates' clusters the steps from being new to being of them."""
    if not known:
        return []
    model, network = clustering.model, clustering.network
    state = StateClusters(clustering.engine.state)
    ids = places.clusters[known]
    by_attribute, presence = gains_over_new(clustering, places.encoded, ids)
    found = []
    for at, k in enumerate(known):
        size = int(state.sizes[ids[at]])
        crowding = model.log_size(size + 1) - model.log_size(size) - model.log_size(1)
        steps = {PRIOR: math.log(size) - math.log(clustering.engine.alpha) + crowding}
        if model.rate:
            steps[KIND] = float(presence[at])
        attributes = {name: float(gains[at]) for name, gains in by_attribute.items()}
        steps |= dict(sorted(attributes.items(), key=lambda entry: -abs(entry[1])))
        if network is not None and np.isfinite(gain := state.gain[ids[at]] - state.gain[0]):
            total = float(gain) - math.log(clustering.engine.alpha)
            steps[NETWORK] = total - math.fsum(steps.values())
        here, new = float(places.probabilities[k]), float(places.probabilities[-1])
        if here > 0.0 and new > 0.0:
            rest = math.log(here) - math.log(new) - math.fsum(steps.values())
            if abs(rest) > 1e-9 * max(1.0, abs(math.log(here) - math.log(new))):
                steps[REST] = rest
        found.append(steps)
    return found


def gains_over_new(clustering: Clustering, encoded: Any, ids: Integers) -> tuple[dict[str, Floats], Floats]:
    """What a record's values, attribute by attribute, and its mentions add to clusters beyond what they are alone."""
    engine, model = clustering.engine, clustering.model
    scorer: Any = engine.scorer if clustering.network is None else engine.scorer.surrogate
    statistics = StateClusters(engine.state).statistics
    row = engine.scorer.data_of(encoded)
    silent = scorer.family.presence.copy()
    silent[:, -2] = 0.0  # the rate, without which mentions say nothing
    whole = scorer.family._replace(crowding=1.0)  # with which sizes, that are the prior's, say nothing
    values = whole._replace(presence=silent)
    both = np.concatenate([[0], ids])
    owners = values.owner[values.items[int(row[0, 0]) : int(row[0, 1])]]
    names, said = list(model.numbers), np.unique(owners)
    parts = row[0, 0] + np.searchsorted(owners, np.column_stack([said, said + 1]))
    gains = read_gains(values, statistics, both, parts)
    found = {names[a]: own[1:] - own[0] for a, own in zip(said.tolist(), gains, strict=True)}
    if not model.rate:
        return found, np.zeros(len(ids))
    [gains] = read_gains(whole, statistics, both, row)
    return found, gains[1:] - gains[0] - sum(found.values())


def said_by(clustering: Clustering, members: Integers, names: Collection[str]) -> dict[str, list[Any]]:
    """What an entity's fragments say of some attributes, the commonest first: a little of each."""
    counts: dict[str, dict[Any, int]] = {name: {} for name in names}
    for x in members[:LOOKED_AT].tolist():
        said = clustering.engine.observation(x)
        for name in counts.keys() & said.keys():
            for value in said[name]:
                counts[name][value] = counts[name].get(value, 0) + 1
    return {name: sorted(count, key=lambda v: -count[v])[:VALUES] for name, count in counts.items()}
