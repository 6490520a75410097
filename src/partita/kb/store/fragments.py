"""Fragments as rows of the store: looked up, written, ended.

A fragment is known to users by its id, to everything else by its number. A new version of a fragment is a new
row with a new number; the row before it stays, with the event that ended it. *Present* are those not ended.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Connection, bindparam, delete, func, select, update

from partita._core.typing import Integers
from partita.kb.clustering import Codes
from partita.kb.fragments import Fragment
from partita.kb.store.database import insert_all, select_all
from partita.kb.store.statements import Lookup, fetch_one
from partita.kb.store.tables import fragments, present, said, words
from partita.models.records.folding import NOTHING, words_of
from partita.models.records.fragments import as_text

LONGEST = 100  # characters of a word that are kept
WORDS = 1000  # words of a fragment that are kept

KNOWN = Lookup(
    select(fragments.c.id, fragments.c.number, fragments.c.digest, fragments.c.source).where(present),
    fragments.c.id,
)
ID = Lookup(select(fragments.c.number, fragments.c.id), fragments.c.number)
SAID = Lookup(select(fragments.c.number, fragments.c.properties), fragments.c.number)
LAST = select(func.max(fragments.c.number))


class Known(NamedTuple):
    """A fragment that is present."""

    number: int
    digest: str
    source: str | None


# ---------------------------------------------------------------------- looking up


def known(connection: Connection, ids: Iterable[str]) -> dict[str, Known]:
    """Those of some fragments that are present, by id."""
    return {id: Known(*rest) for id, *rest in KNOWN(connection, ids)}


def numbers_of(connection: Connection, ids: Iterable[str]) -> dict[str, int]:
    """The numbers of fragments that are present, by id."""
    return {id: one.number for id, one in known(connection, ids).items()}


def number_of(connection: Connection, id: str) -> int:
    """The number of a fragment that is present; KeyError if it is not."""
    found = numbers_of(connection, [id])
    if id not in found:
        raise KeyError(no_fragment(connection, id))
    return found[id]


def no_fragment(connection: Connection, id: str) -> str:
    """That there is no such fragment, and what there is."""
    if connection.scalar(select(fragments.c.number).where(fragments.c.id == id).limit(1)) is not None:
        return f"fragment {id!r} has been removed"
    near = select(fragments.c.id).where(present, fragments.c.id.startswith(id[:3], autoescape=True))
    some = list(connection.scalars(near.order_by(fragments.c.number).limit(3)))
    some = some or list(connection.scalars(select(fragments.c.id).where(present).limit(3)))
    there = ", ".join(map(repr, some))
    return f"there is no fragment or entity {id!r}" + (f"; there are {there}, …" if there else "")


def ids_of(connection: Connection, numbers: Integers) -> dict[int, str]:
    """The ids of fragments, by number."""
    return dict(ID(connection, numbers.tolist()))


def present_ids(connection: Connection) -> list[str]:
    """The ids of the fragments present, in order of their numbers."""
    return list(connection.scalars(select(fragments.c.id).where(present).order_by(fragments.c.number)))


def all_present(connection: Connection) -> tuple[Integers, list[Fragment]]:
    """The fragments present, without their sources, and their numbers, which ascend."""
    query = select(fragments.c.number, fragments.c.id, fragments.c.properties).where(present)
    rows = list(connection.execute(query.order_by(fragments.c.number)))
    numbers = np.array([row.number for row in rows], np.int64)
    return numbers, [Fragment(row.id, None, json.loads(row.properties)) for row in rows]


def all_of(connection: Connection, ids: Iterable[str]) -> list[Fragment]:
    """Those of some fragments that are present, in order of their numbers."""
    query = select(fragments.c.number, fragments.c.id, fragments.c.source, fragments.c.properties).where(
        present
    )
    rows = sorted(select_all(connection, query, fragments.c.id, ids), key=lambda row: row.number)
    return [Fragment(row.id, row.source, json.loads(row.properties)) for row in rows]


def of_sources(connection: Connection, sources: Collection[str | None]) -> list[Any]:
    """Number, id and source of the fragments present that are from some sources; None is to have none."""
    query = select(fragments.c.number, fragments.c.id, fragments.c.source).where(present)
    named = [source for source in sources if source is not None]
    rows = select_all(connection, query, fragments.c.source, named)
    if None in sources:
        rows += connection.execute(query.where(fragments.c.source.is_(None))).all()
    return sorted(rows, key=lambda row: row.number)


def by_source(connection: Connection) -> Counter[str | None]:
    """How many fragments are present, by where they are from."""
    query = select(fragments.c.source, func.count().label("n")).where(present).group_by(fragments.c.source)
    return Counter({row.source: row.n for row in connection.execute(query)})


def properties_of(connection: Connection, numbers: Sequence[int]) -> list[dict[str, list[Any]]]:
    """What fragments say, in the order of the numbers given; KeyError, TypeError or ValueError if damaged."""
    found = dict(SAID(connection, numbers))
    return [json.loads(found[number]) for number in numbers]


def last_number(connection: Connection) -> int:
    """The highest number that any fragment has had."""
    return fetch_one(connection, LAST) or 0


# ---------------------------------------------------------------------- writing


class NewRows:
    """Rows of fragments that come in together: what each is, what it says, and the words to find it by."""

    def __init__(self) -> None:
        self._fragments: list[dict[str, Any]] = []
        self._said: list[dict[str, Any]] = []
        self._words: list[dict[str, Any]] = []

    def add(self, number: int, fragment: Fragment, found: Codes, event: int) -> None:
        """One more fragment, that came with an event."""
        row = {"number": number, "id": fragment.id, "source": fragment.source, "digest": fragment.digest}
        text = json.dumps(fragment.properties, ensure_ascii=False)
        self._fragments.append(row | {"properties": text, **found._asdict(), "added": event, "gone": None})
        for attribute, values in fragment.properties.items():
            for value in values:
                self._said.append({"fragment": number, "attribute": attribute, "value": as_text(value)})
        self._words += [{"word": word, "fragment": number} for word in words_in(fragment.properties)]

    def insert(self, connection: Connection) -> None:
        """Write all of them."""
        insert_all(connection, fragments, self._fragments)
        insert_all(connection, said, self._said)
        insert_all(connection, words, self._words)


def words_in(properties: Mapping[str, Iterable[Any]]) -> list[str]:
    """The different words of what a fragment says, as they are searched for."""
    found = dict.fromkeys(
        word[:LONGEST]
        for values in properties.values()
        for value in values
        for word in words_of(as_text(value))
        if word != NOTHING
    )
    return list(found)[:WORDS]


def end(connection: Connection, number: int, event: int) -> None:
    """A fragment is no longer present, from an event on; what it said stays, but is not searched any more."""
    connection.execute(update(fragments).where(fragments.c.number == number).values(gone=event))
    connection.execute(delete(words).where(words.c.fragment == number))


def replace_codes(connection: Connection, numbers: Integers, codes: Sequence[Codes]) -> None:
    """Let fragments have other codes."""
    rows = [{"which": number, **new._asdict()} for number, new in zip(numbers.tolist(), codes, strict=True)]
    change = update(fragments).where(fragments.c.number == bindparam("which"))
    connection.execute(change.values({name: bindparam(name) for name in Codes._fields}), rows)
