"""The fragments of an entity beside one another, as rows of a table."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from partita.kb.columns import Readers, keys_of, readers_in
from partita.kb.queries.answers import Answer, entity
from partita.kb.store import tables


@dataclass(frozen=True)
class Row(Answer):
    """A fragment, as one of its entity's."""

    id: str
    source: str | None
    probability: float  # of being of this entity
    properties: dict[str, list[Any]]
    differs: list[str]  # attributes of which it says something else than most of them do


def rows(connection: Connection, id: str) -> list[Row]:
    """See :meth:`KnowledgeBase.rows`."""
    held = entity(connection, id, None)
    fragments, members = tables.fragments, tables.members
    query = (
        select(fragments.c.id, fragments.c.source, fragments.c.properties, members.c.probability)
        .join(members, members.c.fragment == fragments.c.number)
        .where(members.c.entity == int(held.id[1:]), members.c.until.is_(None))
        .order_by(fragments.c.number)
    )
    found = connection.execute(query).all()
    said = [json.loads(row.properties or "{}") for row in found]
    readers = readers_in(connection)
    usual = commonest(said, readers)
    return [
        Row(row.id, row.source, row.probability, own, differences(own, usual, readers))
        for row, own in zip(found, said, strict=True)
    ]


def commonest(said: list[dict[str, list[Any]]], readers: Readers) -> dict[str, frozenset[str]]:
    """Of each attribute the value that most fragments give it, as it is compared; of equal ones the first."""
    counts: dict[str, Counter[frozenset[str]]] = {}
    for fragment in said:
        for attribute, values in fragment.items():
            found = dict.fromkeys(keys_of(readers[attribute], value) for value in values)
            counts.setdefault(attribute, Counter()).update(key for key in found if key)
    return {
        attribute: max(found, key=lambda value: found[value]) for attribute, found in counts.items() if found
    }


def differences(said: dict[str, list[Any]], usual: dict[str, frozenset[str]], readers: Readers) -> list[str]:
    """The attributes of which a fragment says something, and not what most do."""
    found = {
        attribute: {key for value in values if (key := keys_of(readers[attribute], value))}
        for attribute, values in said.items()
    }
    return [attribute for attribute, keys in found.items() if keys and usual[attribute] not in keys]
