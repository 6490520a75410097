"""Erasing what a fragment has said, everywhere."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, delete, select, update

from partita.kb.store import tables

SAYING = ("name", "from", "to")  # in the details of events: what an entity is called


def erase(
    connection: Connection,
    id: str,
    names_given: Callable[[Mapping[str, list[Any]]], list[str]],
    in_use: set[str],
) -> set[str]:
    """Erase what all versions of a fragment have said, and the names that entities have had from them.

    ``names_given`` is a function from what a fragment says to the names that it gives its entity. Names ``in_use``,
    that entities have from other fragments, stay. Returns the names erased.
    """
    table, members, entities = tables.fragments, tables.members, tables.entities
    versions = connection.execute(select(table.c.number, table.c.properties).where(table.c.id == id)).all()
    numbers = [row.number for row in versions]
    owners = list(
        connection.scalars(select(members.c.entity).where(members.c.fragment.in_(numbers)).distinct())
    )
    names = {name for row in versions for name in names_given(json.loads(row.properties or "{}"))} - in_use
    gone = (entities.c.number.in_(owners), entities.c.ended.is_not(None), entities.c.name.in_(names))
    connection.execute(update(entities).where(*gone).values(name=None))
    erase_from_events(connection, owners, names)
    connection.execute(delete(tables.said).where(tables.said.c.fragment.in_(numbers)))
    nothing = {"properties": None, "source": None, "digest": "", "key_codes": b""}
    connection.execute(update(table).where(table.c.id == id).values(nothing))
    return names


def erase_from_events(connection: Connection, owners: Sequence[int], names: set[str]) -> None:
    """Erase names that entities have had from the events that say them."""
    events = tables.events
    saying = events.c.kind.in_(("created", "split", "renamed")) & events.c.detail.is_not(None)
    query = select(events.c.number, events.c.detail).where(
        saying, events.c.entity.in_(owners) | events.c.other.in_(owners)
    )
    for row in connection.execute(query).all():
        said = json.loads(row.detail)
        detail = {key: None if key in SAYING and said[key] in names else said[key] for key in said}
        if detail != said:
            change = update(events).where(events.c.number == row.number)
            connection.execute(change.values(detail=json.dumps(detail, ensure_ascii=False)))
