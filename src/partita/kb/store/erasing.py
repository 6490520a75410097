"""Erasing what a fragment has said, everywhere."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, delete, select, update

from partita.kb.names import Given
from partita.kb.store import tables
from partita.kb.store.database import batches, select_all
from partita.models.records.fragments import as_text

NAMING = ("created", "split", "renamed")  # events that say what an entity is called,
NAMES = ("name", "from", "to")  # and where


def owners(connection: Connection, ids: Iterable[str]) -> set[int]:
    """The entities that any version of some fragments has ever been of."""
    members, versions = tables.members, tables.fragments
    query = select(members.c.entity).join(versions, versions.c.number == members.c.fragment).distinct()
    return {row.entity for row in select_all(connection, query, versions.c.id, ids)}


def erase(
    connection: Connection,
    ids: Iterable[str],
    names_given: Callable[[Mapping[str, list[Any]]], list[Given]],
    kept: set[str],
) -> set[str]:
    """Erase what all versions of some fragments have said, and the names that entities have had from them.

    ``names_given`` is a function from what a fragment says to the names that it gives its entity; ``kept`` are names
    that others give it as well. Returns the names erased.
    """
    table, found = tables.fragments, set[str]()
    for some in batches(ids):
        query = select(table.c.number, table.c.properties).where(table.c.id.in_(some))
        said = {row.number: json.loads(row.properties or "{}") for row in connection.execute(query)}
        for numbers in batches(said):
            found |= _erase(connection, {number: said[number] for number in numbers}, names_given, kept)
    return found


def _erase(
    connection: Connection,
    said: Mapping[int, Mapping[str, list[Any]]],
    names_given: Callable[[Mapping[str, list[Any]]], list[Given]],
    kept: set[str],
) -> set[str]:
    """The same for some rows of fragments, by number."""
    table, members, entities = tables.fragments, tables.members, tables.entities
    numbers = list(said)
    names = {one.name for properties in said.values() for one in names_given(properties)} - kept
    values = {as_text(v) for properties in said.values() for given in properties.values() for v in given}
    of = list(connection.scalars(select(members.c.entity).where(members.c.fragment.in_(numbers)).distinct()))
    for some in batches(names):
        gone = (entities.c.number.in_(of), entities.c.ended.is_not(None), entities.c.name.in_(some))
        connection.execute(update(entities).where(*gone).values(name=None))
    erase_from_events(connection, of, values, kept)
    connection.execute(delete(tables.said).where(tables.said.c.fragment.in_(numbers)))
    nothing = {"properties": None, "source": None, "digest": "", "key_codes": b""}
    connection.execute(update(table).where(table.c.number.in_(numbers)).values(nothing))
    return names


def erase_from_events(
    connection: Connection, of: Sequence[int], values: Collection[str], kept: set[str]
) -> None:
    """Erase names that entities have had, and that consist of such values, from the events that say them."""
    events = tables.events
    query = select(events.c.number, events.c.detail).where(
        events.c.kind.in_(NAMING),
        events.c.detail.is_not(None),
        events.c.entity.in_(of) | events.c.other.in_(of),
    )
    for row in connection.execute(query).all():
        said = json.loads(row.detail)
        gone = {key for key in NAMES if said.get(key) not in kept and made_of(said.get(key), values)}
        if gone:
            detail = {key: None if key in gone else told for key, told in said.items()}
            change = update(events).where(events.c.number == row.number)
            connection.execute(change.values(detail=json.dumps(detail, ensure_ascii=False)))


def made_of(name: str | None, values: Collection[str]) -> bool:
    """Whether a name is a value, or several one after the other: entities may have been named by others before."""
    if name is None or name in values:
        return name is not None
    return any(
        name.startswith(f"{value} ") and made_of(name[len(value) + 1 :], values) for value in values if value
    )
