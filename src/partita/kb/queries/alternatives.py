"""What else an entity may be: the clusterings of its subproblem, and how probably its fragments are together.

A subproblem has the fragments that the particles could not tell apart from the entity's; each particle is a whole
clustering of them, with its probability. Of a large subproblem some fragments are shown: those of the entity first,
and of these, and of the others, those first that do not go the same way in all clusterings.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from sqlalchemy import Connection

from partita._core.typing import Array, Floats, Integers
from partita.kb.clustering import Clustering
from partita.kb.identity import renamed
from partita.kb.queries.answers import Answer, entity_now
from partita.kb.store.fragments import ids_of
from partita.smc.reading.particles import partitions

SHOWN = 400  # fragments, at most
DIGITS = 4  # of probabilities in a matrix


@dataclass(frozen=True)
class Alternative(Answer):
    """A clustering of a subproblem's fragments."""

    probability: float
    clusters: list[
        list[str]
    ]  # ids of the fragments that are shown; those of the entity first, then the largest
    differs: list[str]  # those that go elsewhere than in the most probable one


@dataclass(frozen=True)
class Alternatives(Answer):
    """What an entity may be."""

    fragments: list[str]  # ids of the subproblem's, or of some of them
    total: int  # how many it has
    clusterings: list[Alternative]  # the most probable first
    other: float  # the probability of those that are not listed


@dataclass(frozen=True)
class Matrix(Answer):
    """How probably fragments of a subproblem are of one entity."""

    fragments: list[str]  # in such an order that what belongs together stands together
    total: int
    matrix: list[list[float]]


@dataclass(frozen=True)
class Local:
    """The particles of an entity's subproblem, the most probable first, by the entities that they make."""

    entity: int
    members: Integers  # observations
    names: Integers  # (rows, members): the entity that each is of, under the numbers that entities keep
    probabilities: Floats

    @property
    def elsewhere(self) -> Array:
        """(rows, members): whether it goes elsewhere than in the first row."""
        found: Array = self.names != self.names[0]
        return found

    def some(self, limit: int) -> Integers:
        """The places of the members that are shown."""
        own, moves = self.names[0] == self.entity, self.elsewhere.any(axis=0)
        return np.sort(np.lexsort((self.members, ~moves, ~own))[:limit])


def alternatives(connection: Connection, clustering: Clustering, id: str, limit: int) -> Alternatives:
    """See :meth:`KnowledgeBase.alternatives`."""
    local = local_to(connection, clustering, id)
    shown = local.some(SHOWN)
    ids = fragment_ids(connection, clustering, local, shown)
    found: dict[bytes, list[int]] = {}  # rows that are the same as far as is shown
    for row, labels in enumerate(as_first_seen(local.names[:, shown])):
        found.setdefault(labels.tobytes(), []).append(row)
    listed = [
        Alternative(
            probability=float(local.probabilities[rows].sum()),
            clusters=clusters_of(local, rows[0], shown, ids),
            differs=[ids[k] for k in np.flatnonzero(local.elsewhere[rows[0]][shown]).tolist()],
        )
        for rows in found.values()
    ]
    listed.sort(key=lambda one: -one.probability)
    rest = sum(one.probability for one in listed[limit:])
    return Alternatives(ids, len(local.members), listed[:limit], rest)


def matrix(connection: Connection, clustering: Clustering, id: str, limit: int) -> Matrix:
    """See :meth:`KnowledgeBase.matrix`."""
    local = local_to(connection, clustering, id)
    shown = local.some(limit)
    names = local.names[:, shown]
    keys = [rank for row in names[::-1] for rank in ranks_of(row, local.entity)]
    shown = shown[np.lexsort((local.members[shown], *keys))]
    names = local.names[:, shown]
    found = np.zeros((len(shown), len(shown)))
    for row, probability in zip(names, local.probabilities.tolist(), strict=True):
        found += probability * (row[:, None] == row[None, :])
    ids = fragment_ids(connection, clustering, local, shown)
    return Matrix(ids, len(local.members), np.minimum(found, 1.0).round(DIGITS).tolist())


def local_to(connection: Connection, clustering: Clustering, id: str) -> Local:
    """The particles of an entity's subproblem."""
    number = int(entity_now(connection, id).number)
    engine = clustering.engine
    with engine.lock:
        first = int(np.flatnonzero(clustering.entity == number)[0])
        members, ids, scores = partitions(engine.state, engine.subproblem_of(first))
    order = np.argsort(-scores, kind="stable")
    weights = np.exp(scores[order] - scores.max())
    before, numbers = clustering.entity[members], clustering.numbers[members]
    names = [renamed(numbers, before, row, clustering.next_entity)[0] for row in ids[order]]
    return Local(number, members, np.array(names), weights / weights.sum())


def fragment_ids(connection: Connection, clustering: Clustering, local: Local, places: Integers) -> list[str]:
    """The ids of the fragments at some places."""
    numbers = clustering.numbers[local.members[places]]
    ids = ids_of(connection, numbers)
    return [ids[number] for number in numbers.tolist()]


def clusters_of(local: Local, row: int, shown: Integers, ids: list[str]) -> list[list[str]]:
    """The clusters of a row, those of the entity first, then the largest."""
    found: dict[int, list[str]] = {}
    for name, id in zip(local.names[row][shown].tolist(), ids, strict=True):
        found.setdefault(name, []).append(id)
    order = sorted(found, key=lambda name: (name != local.entity, -len(found[name]), name))
    return [found[name] for name in order]


def as_first_seen(names: Integers) -> Integers:
    """Rows of labels, numbered in the order in which they come, so that the same clustering looks the same."""
    found = np.empty_like(names)
    for k, row in enumerate(names):
        _, first, which = np.unique(row, return_index=True, return_inverse=True)
        found[k] = np.argsort(np.argsort(first))[which.ravel()]
    return found


def ranks_of(row: Integers, entity: int) -> tuple[Integers, Integers]:
    """By what a row's clusters are put in order, the last first: the entity, then the largest; and one by one."""
    sizes = Counter(row.tolist())
    rank = np.array([0 if name == entity else 1 + len(row) - sizes[name] for name in row.tolist()])
    return row, rank
