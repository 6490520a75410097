"""The entities that are most wrong, where the true entities of fragments are known, and what is wrong in them.

What is wrong is counted in pairs of fragments. Those that are *joined*, though they are of different true entities,
are of the entity that holds them. Those that are *missed*, for their true entity is spread over several, are of the
entity that has most of it. So each wrong pair is counted once.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from partita.kb.clustering import Clustering
from partita.kb.queries.answers import Answer, entity_id
from partita.kb.queries.evaluation import known_labels
from partita.kb.store import tables
from partita.kb.store.database import select_all
from partita.kb.store.fragments import present_ids


@dataclass(frozen=True)
class Mistaken(Answer):
    """An entity that is wrong, and how."""

    entity: str
    name: str | None
    holds: dict[str, list[str]]  # of each true entity, the fragments of it that are here; most first
    spread: dict[str, dict[str, int]]  # true entities mostly here: how many fragments each entity has of them
    joined: int  # pairs of fragments of different true entities
    missed: int  # pairs of the true entities that are mostly here, which are apart


def worst(
    connection: Connection, clustering: Clustering, truth: Mapping[str, Any], limit: int
) -> list[Mistaken]:
    """See :meth:`KnowledgeBase.worst`."""
    ids = present_ids(connection)
    known, labels = known_labels(ids, truth)
    entities = clustering.entity[clustering.engine.present][known].tolist()
    held: dict[int, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for k, true, entity in zip(known.tolist(), labels.tolist(), entities, strict=True):
        held[entity][true].append(ids[k])
    found = sorted(mistaken(held), key=lambda one: (-one.joined - one.missed, int(one.entity[1:])))[:limit]
    table = tables.entities
    numbers = [int(one.entity[1:]) for one in found]
    rows = select_all(connection, select(table.c.number, table.c.name), table.c.number, numbers)
    name = {entity_id(row.number): row.name for row in rows}
    return [Mistaken(**(vars(one) | {"name": name[one.entity]})) for one in found]


def mistaken(held: Mapping[int, Mapping[str, list[str]]]) -> list[Mistaken]:
    """The entities in which something is wrong, in no order; ``held`` has the fragments of each true entity."""
    shares: dict[str, Counter[int]] = defaultdict(Counter)
    for entity, of in held.items():
        for true, fragments in of.items():
            shares[true][entity] = len(fragments)
    homes: dict[int, list[str]] = defaultdict(list)  # true entities by the entity that has most of them
    for true, share in shares.items():
        if len(share) > 1:
            homes[min(share, key=lambda entity: (-share[entity], entity))].append(true)
    found = []
    for entity, of in held.items():
        joined = pairs_apart([len(fragments) for fragments in of.values()])
        missed = sum(pairs_apart(list(shares[true].values())) for true in homes[entity])
        if joined + missed:
            holds = {true: of[true] for true in sorted(of, key=lambda true: (-len(of[true]), true))}
            spread = {
                true: {str(entity_id(other)): n for other, n in in_order(shares[true])}
                for true in sorted(homes[entity], key=lambda true: (-sum(shares[true].values()), true))
            }
            found.append(Mistaken(str(entity_id(entity)), None, holds, spread, joined, missed))
    return found


def pairs_apart(sizes: list[int]) -> int:
    """How many pairs of items are in different ones of some sets."""
    return (sum(sizes) ** 2 - sum(size**2 for size in sizes)) // 2


def in_order(share: Counter[int]) -> list[tuple[int, int]]:
    """The entities that have some of a true one, and how much, most first."""
    return sorted(share.items(), key=lambda item: (-item[1], item[0]))
