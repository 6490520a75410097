"""Erasing what a fragment has said, everywhere."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, delete, select, update

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


def erase(connection: Connection, ids: Iterable[str], kept: set[str]) -> set[str]:
    """Erase what all versions of some fragments have said, and the names that entities have had from them.

    ``kept`` are names that others give them as well. Returns the values erased.
    """
    table, found = tables.fragments, set[str]()
    for some in batches(ids):
        query = select(table.c.number, table.c.properties).where(table.c.id.in_(some))
        said = {row.number: json.loads(row.properties or "{}") for row in connection.execute(query)}
        for numbers in batches(said):
            found |= _erase(connection, {number: said[number] for number in numbers}, kept)
    return found


def _erase(connection: Connection, said: Mapping[int, Mapping[str, list[Any]]], kept: set[str]) -> set[str]:
    """The same for some rows of fragments, by number."""
    table, members = tables.fragments, tables.members
    numbers = list(said)
    values = {as_text(v) for properties in said.values() for given in properties.values() for v in given}
    of = list(connection.scalars(select(members.c.entity).where(members.c.fragment.in_(numbers)).distinct()))
    erase_from_ended(connection, of, values, kept)
    erase_from_events(connection, of, values, kept)
    connection.execute(delete(tables.said).where(tables.said.c.fragment.in_(numbers)))
    nothing = {"properties": None, "source": None, "digest": "", "key_codes": b"", "value_numbers": None}
    connection.execute(update(table).where(table.c.number.in_(numbers)).values(nothing))
    return values


def erase_from_ended(
    connection: Connection, of: Sequence[int], values: Collection[str], kept: set[str]
) -> None:
    """Erase the names that entities had when they ended, and that consist of such values."""
    entities = tables.entities
    named = entities.c.ended.is_not(None) & entities.c.name.is_not(None)
    rows = select_all(
        connection, select(entities.c.number, entities.c.name).where(named), entities.c.number, of
    )
    gone = [row.number for row in rows if row.name not in kept and made_of(row.name, values)]
    for some in batches(gone):
        connection.execute(update(entities).where(entities.c.number.in_(some)).values(name=None))


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
    if name is None:
        return False
    starts = [0]  # where a value may begin: what is before are values
    for end in (*(place for place, letter in enumerate(name) if letter == " "), len(name)):
        if any(name[start:end] in values for start in starts):
            starts.append(end + 1)
    return starts[-1] == len(name) + 1
