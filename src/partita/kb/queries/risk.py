"""The entities most at risk, and what was foretold of what humans have judged."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import chain, combinations

import numpy as np
from sqlalchemy import Connection, select

from partita._core.typing import Array, Floats
from partita.kb.clustering import Clustering
from partita.kb.conditioning import Before
from partita.kb.queries.answers import Answer, entity_id
from partita.kb.queries.doubts import Particles
from partita.kb.queries.questions import in_doubt
from partita.kb.store import judgements, tables
from partita.kb.store.database import select_all
from partita.kb.store.fragments import numbers_of
from partita.metrics import Calibration, calibration
from partita.smc.moves.constrain import scores_of


@dataclass(frozen=True)
class AtRisk(Answer):
    """An entity, and how wrong it may be."""

    id: str
    name: str | None
    size: int
    probability: float  # the mean, over its fragments, of being of this entity
    expected_wrong_pairs: float  # of pairs with a fragment of it: wrongly together, or wrongly apart


def at_risk(connection: Connection, clustering: Clustering, limit: int) -> list[AtRisk]:
    """See :meth:`KnowledgeBase.at_risk`."""
    worth: dict[int, float] = {}
    for of in in_doubt(clustering).values():
        entity = clustering.entity[of.members]
        number = dict(zip(of.clusters[0][of.block].tolist(), entity.tolist(), strict=True))
        worth |= {number[cluster]: wrong for cluster, wrong in wrong_pairs_of_each(of).items()}
    worst = sorted(worth, key=lambda each: (-worth[each], each))[:limit]
    entities, members = tables.entities, tables.members
    rows = {row.number: row for row in select_all(connection, select(entities), entities.c.number, worst)}
    query = select(members.c.entity, members.c.probability).where(members.c.until.is_(None))
    sure: dict[int, list[float]] = defaultdict(list)
    for row in select_all(connection, query, members.c.entity, worst):
        sure[row.entity].append(row.probability)
    return [
        AtRisk(
            id=str(entity_id(each)),
            name=rows[each].name,
            size=rows[each].size,
            probability=sum(sure[each]) / max(len(sure[each]), 1),
            expected_wrong_pairs=worth[each],
        )
        for each in worst
        if worth[each] > 0.0
    ]


def wrong_pairs_of_each(of: Particles) -> dict[int, float]:
    """Of each cluster of the best particle the expected number of wrong pairs that one of its fragments is in.

    Those within it that another particle has apart, and those of it and others that another particle has together.
    """
    own, place = np.unique(of.clusters[0], return_inverse=True)
    place = place.ravel()
    sizes = np.bincount(place, of.sizes)
    found = np.zeros(len(own))
    for row, weight in zip(of.clusters[1:], of.weights[1:].tolist(), strict=True):
        other = np.unique(row, return_inverse=True)[1].ravel()
        shared, which = np.unique(place * (int(other.max()) + 1) + other, return_inverse=True)
        overlap = np.bincount(which.ravel(), of.sizes)
        mine, theirs = np.divmod(shared, int(other.max()) + 1)
        inside = np.bincount(mine, overlap**2, len(own))
        outside = np.bincount(mine, overlap * (np.bincount(other, of.sizes)[theirs] - overlap), len(own))
        found += weight * ((sizes**2 - inside) / 2.0 + outside)
    return dict(zip(own.tolist(), found.tolist(), strict=True))


# ---------------------------------------------------------------------- what was foretold


def foretold(connection: Connection, clustering: Clustering, n_bins: int) -> Calibration | None:
    """See :meth:`KnowledgeBase.foretold`."""
    probabilities: list[float] = []
    outcomes: list[bool] = []
    present = set(clustering.present.tolist())
    for row in judgements.binding(connection):
        kept = judgements.remembered(connection, row.number)
        numbers = numbers_of(connection, row.fragments)
        if kept is None or len(numbers) < len(row.fragments):
            continue
        before = Before(*kept)
        if not present.issuperset(chain(*(numbers for numbers, _ in before.parts))):
            continue
        pairs = [(numbers[one[0]], numbers[other[0]]) for one, other in combinations(row.sides, 2)]
        found = probabilities_before(clustering, before, pairs)
        probabilities += found
        outcomes += [row.kind == "confirm"] * len(found)
    if not probabilities:
        return None
    return calibration(np.array(probabilities), np.array(outcomes), n_bins)


def probabilities_before(clustering: Clustering, before: Before, pairs: list[tuple[int, int]]) -> list[float]:
    """How probable it was of pairs of fragments that they are together, before a judgement.

    By the particles that there were, each with the weight that the model gives it.
    """
    part_of = {number: k for k, (numbers, _) in enumerate(before.parts) for number in numbers}
    weights: dict[int, tuple[Array, Floats]] = {}
    found = []
    for one, other in pairs:
        k = part_of[one]
        if part_of[other] != k:
            found.append(0.0)
            continue
        numbers, rows = before.parts[k]
        if k not in weights:
            labels, members = np.array(rows, np.int64), np.array(clustering.places(numbers), np.int64)
            engine = clustering.engine
            engine.need(sorted({engine.subproblem_of(x) for x in members.tolist()}))
            scores = scores_of(engine, members, labels)
            weight = np.exp(scores - scores.max())
            weights[k] = labels, weight / weight.sum()
        labels, weight = weights[k]
        same = labels[:, numbers.index(one)] == labels[:, numbers.index(other)]
        found.append(float(weight @ same))
    return found
