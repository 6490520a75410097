"""Erasing what a fragment has said, everywhere."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, delete, select, update

from partita.kb.store import tables
from partita.kb.store.database import batches


def erase(
    connection: Connection, ids: Iterable[str], names_given: Callable[[Mapping[str, list[Any]]], list[str]]
) -> set[str]:
    """Erase what all versions of some fragments have said, and the names that entities have had from them.

    ``names_given`` is a function from what a fragment says to the names that it gives its entity. Returns the
    names erased.
    """
    table, found = tables.fragments, set[str]()
    for some in batches(ids):
        versions = connection.execute(select(table.c.number, table.c.properties).where(table.c.id.in_(some)))
        rows = versions.all()
        names = {name for row in rows for name in names_given(json.loads(row.properties or "{}"))}
        for numbers in batches(row.number for row in rows):
            _erase(connection, numbers, names)
        found |= names
    return found


def _erase(connection: Connection, numbers: list[int], names: set[str]) -> None:
    """Erase what rows of fragments have said, and where their entities have had these names."""
    table, members, entities, events = tables.fragments, tables.members, tables.entities, tables.events
    owners = select(members.c.entity).where(members.c.fragment.in_(numbers)).distinct()
    for some in batches(names):
        gone = (entities.c.number.in_(owners), entities.c.ended.is_not(None), entities.c.name.in_(some))
        connection.execute(update(entities).where(*gone).values(name=None))
    renamed = select(events.c.number, events.c.detail).where(
        events.c.kind == "renamed", events.c.entity.in_(owners)
    )
    for row in connection.execute(renamed).all():
        detail = {key: None if name in names else name for key, name in json.loads(row.detail).items()}
        change = update(events).where(events.c.number == row.number)
        connection.execute(change.values(detail=json.dumps(detail, ensure_ascii=False)))
    connection.execute(delete(tables.said).where(tables.said.c.fragment.in_(numbers)))
    nothing = {"properties": None, "source": None, "digest": "", "key_codes": b""}
    connection.execute(update(table).where(table.c.number.in_(numbers)).values(nothing))
