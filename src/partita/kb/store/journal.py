"""What happens in a knowledge base, as rows of its tables: events, and who is a member of which entity, when.

The *register* has the present: of each entity its size and the names that its fragments give it. Each
transaction has a *journal*, which records what happens and writes all of it at the end.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain, groupby
from types import MappingProxyType
from typing import Any

import numpy as np
from sqlalchemy import Connection, bindparam, func, select, update

from partita._core.progress import Watcher, unwatched
from partita.kb.clustering import Outcome
from partita.kb.identity import NOBODY, Change
from partita.kb.names import Given, best_name
from partita.kb.store.database import insert_all
from partita.kb.store.erasing import NAMES, NAMING, made_of
from partita.kb.store.fragments import ids_of
from partita.kb.store.statements import Deletion, execute, fetch_one
from partita.kb.store.tables import entities, events, members

DIGITS = 4  # of probabilities
PORTION = 10_000  # rows that are made at a time where there are many
WAYS = 3  # of naming entities that an event tells

LAST = select(func.max(events.c.number))
NOW = (members.c.fragment == bindparam("number"), members.c.until.is_(None))
ENDED = update(members).where(*NOW).values(until=bindparam("moment"))
SURER = update(members).where(*NOW).values(probability=bindparam("sure"))
DELETE = Deletion(entities.c.number)


@dataclass(slots=True)
class Entry:
    """An entity, as the register has it."""

    created: int  # the event
    name: str | None = None
    size: int = 0
    names: Counter[Given] | None = field(
        default_factory=Counter
    )  # that fragments give it; None: to be fetched
    ended: int | None = None
    merged_into: int | None = None


class Register(dict[int, Entry]):
    """The entities that have fragments, by number.

    Parameters
    ----------
    fetch : callable
        From an entity to the names that its fragments give it, each as often as it is given.
    """

    def __init__(self, fetch: Callable[[int], Iterable[Given]] = lambda entity: ()) -> None:
        super().__init__()
        self._fetch = fetch

    def load(self, connection: Connection) -> None:
        """Take in the entities that the store has; their names are fetched when they are needed."""
        for row in connection.execute(select(entities).where(entities.c.ended.is_(None))):
            self[row.number] = Entry(row.created, row.name, row.size, names=None)

    def name_anew(self, given: Mapping[int, Iterable[Given]]) -> None:
        """From now on fragments give their entities other names: of each entity those it is given now."""
        for entity, entry in self.items():
            entry.names = Counter(given.get(entity, ()))

    def move(self, names: Iterable[Given], before: int, after: int) -> None:
        """A fragment that gives its entity these names goes from one to another."""
        for entity, by in ((before, -1), (after, 1)):
            if entity != NOBODY:
                given, self[entity].size = self.names(entity), self[entity].size + by
                for name in names:
                    given[name] += by
                    if given[name] == 0:
                        del given[name]

    def names(self, entity: int) -> Counter[Given]:
        """The names that an entity's fragments give it."""
        entry = self[entity]
        if entry.names is None:
            entry.names = Counter(self._fetch(entity))
        return entry.names


def moved_by(outcome: Outcome) -> list[list[int]]:
    """Of each change the fragments, by number, that it takes from one entity to another, in ascending order."""
    singly = {
        (change.member, change.other, change.entity) for change in outcome.changes if change.kind == "moved"
    }
    ways: dict[tuple[int, int], list[int]] = defaultdict(list)
    for number, before, after in outcome.moves:
        if (number, before, after) not in singly:
            ways[before, after].append(number)
    found = []
    for change in outcome.changes:
        if change.member != NOBODY:
            found.append([change.member])
        elif change.kind == "merged":
            found.append(sorted(ways[change.other, change.entity]))
        elif change.kind == "split":
            found.append(sorted(ways[change.entity, change.other]))
        else:
            found.append([])
    return found


class Journal:
    """What happens in one transaction.

    Parameters
    ----------
    connection : Connection
        Of the transaction.
    register : Register
        Kept up to date on the way.
    names_of : callable
        From the numbers of fragments to the names that each gives its entity.

    Attributes
    ----------
    next_event : int
        The number of the next event.
    at : str
        The time, which all of it has in common.
    """

    def __init__(
        self,
        connection: Connection,
        register: Register,
        names_of: Callable[[Iterable[int]], Mapping[int, list[Given]]],
    ) -> None:
        self.next_event = (fetch_one(connection, LAST) or 0) + 1
        self.at = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._connection, self._register, self._names_of = connection, register, names_of
        self._events: list[dict[str, Any]] = []
        self._open: dict[int, tuple[int, int]] = {}  # of each fragment that moved: its entity, and since when
        self._past: list[dict[str, Any]] = []  # memberships that began and ended within this transaction
        self._ended: dict[int, int] = {}  # when the membership that the table has of a fragment ended
        self._touched: set[int] = set()  # entities
        self._due: list[int] = []  # entities that may have another name
        self._born: dict[int, dict[str, Any]] = {}  # of entities that an event has begun, its row
        self._ids: dict[int, str] = {}  # of fragments, by number, as far as they were mentioned
        self._erased: set[str] = set()  # values of which no name is to be written down,
        self._in_use: set[str] = set()  # but for these

    @property
    def has_events(self) -> bool:
        """Whether anything has happened."""
        return bool(self._events)

    @property
    def moved(self) -> Collection[int]:
        """The numbers of the fragments that are of another entity than before."""
        return self._open.keys()

    def names_in_use(self, entities: Iterable[int]) -> set[str]:
        """What entities with fragments are called, and what those of some, and of what was touched, call them."""
        named = {entry.name for entry in self._register.values() if entry.ended is None and entry.name}
        known = self._register.keys() & (self._touched | set(entities))
        return named | {one.name for entity in known for one in self._register.names(entity)}

    def hide(self, values: set[str], kept: set[str]) -> None:
        """Write no name down that consists of values which are erased, but for those that are kept."""
        self._erased |= values
        self._in_use |= kept

    def _is_hidden(self, name: str | None) -> bool:
        """Whether a name is not to be written down."""
        return name not in self._in_use and made_of(name, self._erased)

    def note(self, kind: str, **detail: Any) -> None:
        """An event that is not an entity's."""
        self._event(kind, None, None, None, detail)

    def record(
        self,
        outcome: Outcome,
        fragment: str | None = None,
        names: Mapping[int, str | None] = MappingProxyType({}),
        **detail: Any,
    ) -> None:
        """What has changed because of a fragment, or of what ``detail`` says.

        ``names`` are those of entities that are as they were once, whatever their fragments say.
        """
        if not (outcome.changes or outcome.moves or self._due):
            return
        moment = self.next_event
        for entity in outcome.revived:
            self._revive(entity)
        if fragment is not None and outcome.fragment != NOBODY:
            self._ids[outcome.fragment] = fragment
        moved = moved_by(outcome)
        for change, numbers in zip(outcome.changes, moved, strict=True):
            self._change(change, moment, fragment, detail, numbers)
        given = self._names_of(number for number, _, _ in outcome.moves)
        for number, before, after in outcome.moves:
            self._move(number, before, after, moment, given[number])
        touched = (entity for _, *pair in outcome.moves for entity in pair if entity != NOBODY)
        for entity in dict.fromkeys(chain(touched, self._due)):
            self._rename(entity, moment, fragment, detail, names)
        self._due = []
        self._born.clear()

    def begin(
        self,
        ids: Sequence[str],
        entity: Sequence[int],
        sure: Sequence[float],
        names: Sequence[Iterable[Given]],
        progress: Watcher = unwatched,
    ) -> None:
        """Write that the first fragments there are, numbered from 1, have come, with an event each.

        Each is of an ``entity``, and so ``sure`` of it, and gives it ``names``. An entity begins with its first
        fragment, under the name that it has in the end.
        """
        n, moment = len(ids), self.next_event
        for number, some in groupby(sorted(range(n), key=entity.__getitem__), entity.__getitem__):
            fellows = list(some)
            name = best_name(Counter(chain.from_iterable(names[x] for x in fellows)), None)
            self._register[number] = Entry(moment + fellows[0], name, len(fellows), names=None)
        for start in range(0, n, PORTION):
            progress(start, n)
            portion = range(start, min(start + PORTION, n))
            insert_all(
                self._connection, events, [self._coming(ids[x], entity[x], moment + x) for x in portion]
            )
            rows = [
                {"fragment": x + 1, "entity": entity[x], "since": moment + x, "until": None}
                | {"probability": sure[x]}
                for x in portion
            ]
            insert_all(self._connection, members, rows)
        insert_all(self._connection, entities, [self._row(number) for number in self._register])
        self.next_event += n
        progress(n, n)

    def _coming(self, id: str, entity: int, moment: int) -> dict[str, Any]:
        """The event that a fragment has come, of an entity that may have begun with it."""
        entry = self._register[entity]
        kind, detail = ("created", {"name": entry.name}) if entry.created == moment else ("joined", {})
        row = {"number": moment, "at": self.at, "kind": kind, "entity": entity, "other": None}
        return row | {"fragment": id, "fragments": as_json([id]), "detail": as_json(detail)}

    def note_naming(self, ways: Sequence[Sequence[str]]) -> None:
        """Entities are named by other attributes from now on."""
        self.note("naming", name=[list(way) for way in ways[:WAYS]])

    def name_anew(self, given: Mapping[int, Iterable[Given]]) -> None:
        """Fragments give entities other names from now on: those that they give now, before the next record."""
        self._register.name_anew(given)
        self._due = sorted(given)

    def _revive(self, entity: int) -> None:
        """Let an entity that had ended have fragments again, under the name that it had."""
        row = self._connection.execute(select(entities).where(entities.c.number == entity)).one()
        self._register[entity] = Entry(row.created, row.name)

    def _change(
        self, change: Change, moment: int, fragment: str | None, detail: dict[str, Any], numbers: list[int]
    ) -> None:
        kind, entity, other, _ = change
        for number in (entity, other):
            if number != NOBODY and number not in self._register:
                self._register[number] = Entry(created=moment)
        if kind == "merged":
            gone = self._register[other]
            gone.ended, gone.merged_into = moment, entity
        elif kind == "emptied":
            self._register[entity].ended, self._register[entity].name = moment, None
        self._touched |= {entity, other} - {NOBODY}
        row = self._event(kind, entity, None if other == NOBODY else other, fragment, detail, numbers)
        if kind in ("created", "split"):
            self._born.setdefault(entity if kind == "created" else other, row)

    def _move(self, number: int, before: int, after: int, moment: int, names: list[Given]) -> None:
        self._register.move(names, before, after)
        self._touched |= {before, after} - {NOBODY}
        if number in self._open:
            entity, since = self._open.pop(number)
            if since < moment:
                row = {"fragment": number, "entity": entity, "since": since, "until": moment}
                self._past.append(row | {"probability": 1.0})
        elif before != NOBODY:
            self._ended[number] = moment
        if after != NOBODY:
            self._open[number] = after, moment

    def _rename(
        self,
        entity: int,
        moment: int,
        fragment: str | None,
        cause: dict[str, Any],
        names: Mapping[int, str | None],
    ) -> None:
        """Give an entity the name that its fragments do; that of one that has just begun is told where it did."""
        entry = self._register[entity]
        given = self._register.names(entity)
        name = names[entity] if entity in names else best_name(given, entry.name)
        if entry.size == 0:
            return
        if name != entry.name and entry.created < moment:
            self._event("renamed", entity, None, fragment, {"from": entry.name, "to": name} | cause)
            self._touched.add(entity)
        if entity in self._born:
            begun = self._born[entity]
            begun["detail"] = (begun["detail"] or {}) | {
                "name": entry.name if entry.created < moment else name
            }
        entry.name = name

    def _event(
        self,
        kind: str,
        entity: int | None,
        other: int | None,
        fragment: str | None,
        detail: dict[str, Any],
        numbers: Sequence[int] = (),
    ) -> dict[str, Any]:
        row = {"number": self.next_event, "at": self.at, "kind": kind, "entity": entity, "other": other}
        row |= {"fragment": fragment, "fragments": numbers, "detail": detail}
        self._events.append(row)
        self.next_event += 1
        return row

    def _rows(self) -> list[dict[str, Any]]:
        """The events as rows, with the ids of the fragments that they move, and without names that are hidden."""
        wanted = {number for row in self._events for number in row["fragments"]} - self._ids.keys()
        ids = self._ids | ids_of(self._connection, np.array(sorted(wanted), np.int64))
        rows = []
        for row in self._events:
            moved, detail = row["fragments"], row["detail"]
            if row["kind"] in NAMING:
                hidden = {key for key in NAMES if self._is_hidden(detail.get(key))}
                detail = {key: None if key in hidden else told for key, told in detail.items()}
            listed = as_json([ids[number] for number in moved])
            rows.append(row | {"fragments": listed, "detail": as_json(detail)})
        return rows

    def write(self, probabilities: dict[int, float]) -> None:
        """Write everything; ``probabilities``, by fragment, are those of memberships that have changed."""
        connection = self._connection
        insert_all(connection, events, self._rows())
        rows = [{"number": number, "moment": moment} for number, moment in self._ended.items()]
        execute(connection, ENDED, rows, ())
        present = [
            {"fragment": number, "entity": entity, "since": since, "until": None}
            | {"probability": probabilities.pop(number, 1.0)}
            for number, (entity, since) in self._open.items()
        ]
        insert_all(connection, members, self._past + present)
        surer = [{"number": number, "sure": sure} for number, sure in probabilities.items()]
        execute(connection, SURER, surer, ())
        DELETE(connection, self._touched)
        insert_all(connection, entities, [self._row(entity) for entity in sorted(self._touched)])
        for entity in self._touched:
            if self._register[entity].ended is not None:
                del self._register[entity]

    def _row(self, entity: int) -> dict[str, Any]:
        entry = self._register[entity]
        name = None if entry.ended is not None and self._is_hidden(entry.name) else entry.name
        row = {"number": entity, "name": name, "size": entry.size, "created": entry.created}
        return row | {"ended": entry.ended, "merged_into": entry.merged_into}


def as_json(found: Any) -> str | None:
    """Something as JSON, if there is anything in it."""
    return json.dumps(found, ensure_ascii=False) if found else None
