"""What a knowledge base's tables say of entities, fragments, events and judgements."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from sqlalchemy import Connection, func, select

from partita.kb.fragments import Fragment
from partita.kb.queries.listing import listed
from partita.kb.store import tables
from partita.kb.store.database import select_all
from partita.kb.store.fragments import no_fragment
from partita.kb.store.fragments import numbers_of as numbers_of
from partita.kb.store.judgements import sides_of
from partita.kb.store.statements import Lookup
from partita.models.records.fragments import as_text

ENTITIES = "E"  # what their ids begin with
PLAINLY = "entity:"  # before the id of an entity, where a fragment has the same
PAGE = 500  # entities that are read at a time
LARGEST = (1 << 63) - 1  # number that a table holds
CAUSED = Lookup(select(tables.events), tables.events.c.fragment)
NAMES = Lookup(select(tables.entities.c.number, tables.entities.c.name), tables.entities.c.number)


class Answer:
    """What all answers share."""

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return asdict(self)  # type: ignore[call-overload,no-any-return]


@dataclass(frozen=True)
class Value(Answer):
    """A value that fragments give an attribute of an entity."""

    value: Any
    probability: float  # that a fragment which says so is of this entity: the surest of them
    sources: list[str]  # where they are from; their ids, if it is not known


@dataclass(frozen=True)
class Entity(Answer):
    """A cluster of fragments with what they say."""

    id: str
    name: str | None
    properties: dict[str, list[Value]]
    fragments: list[str]  # ids
    probability: float  # the mean, over the fragments, of being of this entity
    merged_from: str | None = None  # the id that was asked for, if it has been merged into this one


@dataclass(frozen=True)
class Found(Answer):
    """An entity that a search has found."""

    id: str
    name: str | None
    size: int
    score: float
    matches: list[str]  # the values that match


@dataclass(frozen=True)
class Event(Answer):
    """Something that has happened.

    Who keeps an account of which fragment is of which entity, and lets every event take its ``fragments`` to
    ``to_entity``, has the entities as they are. ``detail`` has the ``name`` of an entity that is new, and ``from``
    and ``to`` of one that is renamed.
    """

    number: int
    at: str
    kind: str
    entity: str | None
    other: str | None
    fragment: str | None  # that caused it
    fragments: list[str]  # that it took from one entity to another
    from_entity: str | None  # None: they are new
    to_entity: str | None  # None: they are gone
    detail: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it; where fragments went as ``from`` and ``to``."""
        found = super().as_dict()
        return {{"from_entity": "from", "to_entity": "to"}.get(key, key): found[key] for key in found}


@dataclass(frozen=True)
class Judgement(Answer):
    """What a user has said of fragments or entities."""

    number: int
    kind: str
    first: str  # the entity or fragment that it was said of, and the other one
    second: str  # of a split: the fragments that leave, or "by" and an attribute
    sides: list[list[str]]  # the fragments that it is about: those of each
    user: str
    at: str
    undone_by: str | None
    undone_at: str | None


# ---------------------------------------------------------------------- entities


def entity_id(number: int | None) -> str | None:
    """The id of an entity."""
    return None if number is None else f"{ENTITIES}{number}"


def names_of(connection: Connection, numbers: Iterable[int]) -> dict[int, str | None]:
    """What entities are called, by number."""
    return dict(NAMES(connection, numbers))


def entity_number(connection: Connection, id: str) -> int:
    """The number of an entity; KeyError if there never was one."""
    named = str(id).removeprefix(PLAINLY)
    digits = named.removeprefix(ENTITIES)
    if named.startswith(ENTITIES) and digits.isdecimal() and digits.isascii() and len(digits) < 18:
        table = tables.entities
        found = connection.scalar(select(table.c.number).where(table.c.number == int(digits)))
        if found is not None:
            return int(found)
    raise KeyError(f"there is no entity {id!r}: ids are such as {ENTITIES}1, as partita entities lists them")


def entities(
    connection: Connection,
    minimum: int,
    limit: int | None,
    sort: str = "size",
    where: Mapping[str, Any] | None = None,
) -> Iterator[Entity]:
    """See :meth:`KnowledgeBase.entities`."""
    rows = listed(connection, sort, minimum, where, limit)
    for start in range(0, len(rows), PAGE):
        page = {row.number: row.name for row in rows[start : start + PAGE]}
        yield from described(connection, page)


def described(connection: Connection, names: dict[int, str | None]) -> list[Entity]:
    """Entities as they are, given their numbers and names."""
    members = tables.members
    query = select(members.c.entity, members.c.fragment, members.c.probability)
    query = query.where(members.c.until.is_(None))
    return assembled(connection, names, select_all(connection, query, members.c.entity, list(names)))


def assembled(connection: Connection, names: dict[int, str | None], rows: list[Any]) -> list[Entity]:
    """Entities from their members."""
    table = tables.fragments
    query = select(table.c.number, table.c.id, table.c.source, table.c.properties)
    found = {
        row.number: row for row in select_all(connection, query, table.c.number, [r.fragment for r in rows])
    }
    held: dict[int, list[tuple[Any, float]]] = {number: [] for number in names}
    for row in sorted(rows, key=lambda row: row.fragment):
        held[row.entity].append((found[row.fragment], row.probability))
    return [
        Entity(
            id=f"{ENTITIES}{number}",
            name=name,
            properties=properties_of(held[number]),
            fragments=[fragment.id for fragment, _ in held[number]],
            probability=sum(p for _, p in held[number]) / max(len(held[number]), 1),
        )
        for number, name in names.items()
    ]


def properties_of(fragments: list[tuple[Any, float]]) -> dict[str, list[Value]]:
    """What fragments say, attribute by attribute, what most of them say first."""
    said: dict[str, dict[str, tuple[Any, list[float], dict[str, None]]]] = {}
    for fragment, probability in fragments:
        for attribute, values in json.loads(fragment.properties or "{}").items():
            for value in values:
                known = said.setdefault(attribute, {}).setdefault(as_text(value), (value, [], {}))
                known[1].append(probability)
                known[2][fragment.source or fragment.id] = None
    return {
        attribute: [
            Value(value, max(probabilities), list(sources))
            for value, probabilities, sources in sorted(found.values(), key=lambda entry: -sum(entry[1]))
        ]
        for attribute, found in said.items()
    }


def entity(connection: Connection, id: str, as_of: int | datetime | None) -> Entity:
    """See :meth:`KnowledgeBase.entity`."""
    if as_of is not None:
        return entity_then(connection, id, entity_number(connection, id), moment_of(connection, as_of))
    row = entity_now(connection, id)
    found = described(connection, {row.number: row.name})[0]
    return found if row.number == entity_number(connection, id) else replace(found, merged_from=id)


def entity_now(connection: Connection, id: str) -> Any:
    """The row of an entity, or of the one that it was merged into; KeyError if it has no fragments any more."""
    query = select(tables.entities)
    row = connection.execute(query.where(tables.entities.c.number == entity_number(connection, id))).one()
    while row.merged_into is not None:
        row = connection.execute(query.where(tables.entities.c.number == row.merged_into)).one()
    if row.ended is not None:
        raise KeyError(f"entity {id!r} has no fragments any more, since event {row.ended}")
    return row


def entity_then(connection: Connection, id: str, number: int, moment: int) -> Entity:
    """An entity as it was after an event."""
    members = tables.members
    query = select(members.c.entity, members.c.fragment, members.c.probability)
    then = (members.c.since <= moment) & (members.c.until.is_(None) | (members.c.until > moment))
    rows = list(connection.execute(query.where(members.c.entity == number, then)))
    if not rows:
        raise KeyError(f"entity {id!r} had no fragments after event {moment}")
    return assembled(connection, {number: name_then(connection, number, moment)}, rows)[0]


def name_then(connection: Connection, number: int, moment: int) -> str | None:
    """What an entity was called after an event."""
    events, entities = tables.events, tables.entities
    renamed = select(events.c.detail).where(events.c.entity == number, events.c.kind == "renamed")
    later = connection.scalar(renamed.where(events.c.number > moment).order_by(events.c.number).limit(1))
    if later is not None:
        name = json.loads(later)["from"]
    else:
        name = connection.scalar(select(entities.c.name).where(entities.c.number == number))
    return None if name is None else str(name)


def moment_of(connection: Connection, when: int | datetime) -> int:
    """The last event up to a time; an event's number is one itself."""
    if isinstance(when, datetime):
        at = when.astimezone(UTC).isoformat(timespec="milliseconds")
        events = tables.events
        return int(connection.scalar(select(func.max(events.c.number)).where(events.c.at <= at)) or 0)
    if isinstance(when, bool) or not isinstance(when, int):
        raise TypeError(f"a moment is the number of an event or a datetime, not {when!r}")
    return min(when, LARGEST)


def entity_of(connection: Connection, id: str) -> Entity:
    """See :meth:`KnowledgeBase.entity_of`."""
    fragments, members, known = tables.fragments, tables.members, tables.entities
    query = (
        select(known.c.number, known.c.name)
        .join(members, members.c.entity == known.c.number)
        .join(fragments, fragments.c.number == members.c.fragment)
        .where(fragments.c.id == id, members.c.until.is_(None))
    )
    row = connection.execute(query).first()
    if row is None:
        raise KeyError(no_fragment(connection, id))
    return described(connection, {row.number: row.name})[0]


def surest_fragment(connection: Connection, id: str) -> str:
    """The id of the fragment that most surely is of an entity, of equal ones the earliest."""
    try:
        found = entity_now(connection, id)
    except KeyError:
        raise KeyError(no_fragment(connection, id)) from None
    fragments, members = tables.fragments, tables.members
    query = (
        select(fragments.c.id)
        .join(members, members.c.fragment == fragments.c.number)
        .where(members.c.entity == found.number, members.c.until.is_(None))
        .order_by(members.c.probability.desc(), fragments.c.number)
    )
    return str(connection.scalar(query.limit(1)))


def fragments_meant(connection: Connection, id: str) -> tuple[str, list[str]]:
    """What an id of a fragment or an entity stands for: what it is called, and the fragments."""
    if numbers_of(connection, [id]):
        return id, [id]
    try:
        found = entity(connection, id, None)
    except KeyError:
        raise KeyError(no_fragment(connection, id)) from None
    return found.id, found.fragments


def two_fragments(connection: Connection, a: str, b: str) -> tuple[str, str]:
    """The ids of two fragments, each named by its own id or by an entity; ValueError if they are the same."""
    first, second = (fragment_meant(connection, id) for id in (a, b))
    if first == second:
        why = "both stand for" if a != b else "name two different ones: both are"
        raise ValueError(f"{a!r} and {b!r}: {why} fragment {first!r}")
    return first, second


def fragment_meant(connection: Connection, id: str) -> str:
    """The id itself if it is a fragment's; that of the surest fragment of an entity."""
    return id if numbers_of(connection, [id]) else surest_fragment(connection, id)


# ---------------------------------------------------------------------- fragments


def fragment(connection: Connection, id: str) -> Fragment:
    """See :meth:`KnowledgeBase.fragment`."""
    table = tables.fragments
    row = connection.execute(select(table).where(table.c.id == id, table.c.gone.is_(None))).first()
    if row is None:
        raise KeyError(no_fragment(connection, id))
    return Fragment(row.id, row.source, json.loads(row.properties))


# ---------------------------------------------------------------------- history


def events(
    connection: Connection,
    since: int | datetime | None,
    entity: str | None,
    limit: int | None,
) -> list[Event]:
    """See :meth:`KnowledgeBase.events`."""
    table = tables.events
    query = select(table).order_by(table.c.number).limit(limit)
    if since is not None:
        query = query.where(table.c.number > moment_of(connection, since))
    if entity is not None:
        number = entity_number(connection, entity)
        query = query.where((table.c.entity == number) | (table.c.other == number))
    return [as_event(row) for row in connection.execute(query)]


def caused_by(connection: Connection, *fragments: str) -> list[Event]:
    """What some fragments have caused."""
    names = tables.events.c.keys()
    rows = [SimpleNamespace(**dict(zip(names, row, strict=True))) for row in CAUSED(connection, fragments)]
    return [as_event(row) for row in sorted(rows, key=lambda row: row.number)]


def as_event(row: Any) -> Event:
    """A row of the table of events."""
    entity, other = entity_id(row.entity), entity_id(row.other)
    ways = {
        "created": (None, entity),
        "joined": (None, entity),
        "moved": (other, entity),
        "merged": (other, entity),
        "split": (entity, other),
        "left": (entity, None),
        "updated": (entity, other),
    }
    way = ways.get(row.kind, (None, None))
    return Event(
        number=row.number,
        at=row.at,
        kind=row.kind,
        entity=entity,
        other=other,
        fragment=row.fragment,
        fragments=json.loads(row.fragments or "[]"),
        from_entity=way[0],
        to_entity=way[1],
        detail=json.loads(row.detail or "{}"),
    )


def judgements(connection: Connection) -> list[Judgement]:
    """See :meth:`KnowledgeBase.judgements`."""
    rows = connection.execute(select(tables.judgements).order_by(tables.judgements.c.number)).all()
    sides = sides_of(connection, [row.number for row in rows])
    return [Judgement(sides=sides[row.number], **row._mapping) for row in rows]
