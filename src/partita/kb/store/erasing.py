"""Erasing what a fragment has said, everywhere."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import Connection, delete, select, update

from partita.kb.store import tables

NAMES = ("name", "from", "to")  # of an entity, in events


def erase(
    connection: Connection, id: str, names_given: Callable[[Mapping[str, list[Any]]], list[str]]
) -> set[str]:
    """Erase what all versions of a fragment have said, and the names that entities have had from them.

    ``names_given`` is a function from what a fragment says to the names that it gives its entity. Returns the
    names erased.
    """
    table, members, entities, events = tables.fragments, tables.members, tables.entities, tables.events
    versions = connection.execute(select(table.c.number, table.c.properties).where(table.c.id == id)).all()
    names = {name for row in versions for name in names_given(json.loads(row.properties or "{}"))}
    numbers = [row.number for row in versions]
    owners = select(members.c.entity).where(members.c.fragment.in_(numbers)).distinct()
    gone = (entities.c.number.in_(owners), entities.c.ended.is_not(None), entities.c.name.in_(names))
    connection.execute(update(entities).where(*gone).values(name=None))
    naming = select(events.c.number, events.c.detail).where(
        events.c.kind.in_(("created", "split", "renamed")), events.c.detail.is_not(None)
    )
    own = naming.where(events.c.entity.in_(owners) | events.c.other.in_(owners))
    for row in connection.execute(own).all():
        known = json.loads(row.detail)
        detail = {key: None if key in NAMES and said in names else said for key, said in known.items()}
        if detail == known:
            continue
        change = update(events).where(events.c.number == row.number)
        connection.execute(change.values(detail=json.dumps(detail, ensure_ascii=False)))
    connection.execute(delete(tables.said).where(tables.said.c.fragment.in_(numbers)))
    nothing = {"properties": None, "source": None, "digest": "", "key_codes": b""}
    connection.execute(update(table).where(table.c.id == id).values(nothing))
    return names
