"""Values in the store: pieces of many values each, by the number of the first."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator

import numpy as np
from sqlalchemy import Connection, bindparam, delete, select, update

from partita._core.typing import Integers
from partita.kb.store.database import check, checksum, insert_all, select_all
from partita.kb.store.tables import fragments, vocabulary
from partita.kb.values import NUMBERS, KnownValues, Piece, packed, unpacked, without

ALL = select(vocabulary).order_by(vocabulary.c.first)
CHANGE = update(vocabulary).where(vocabulary.c.first == bindparam("which"))


def save(connection: Connection, known: KnownValues) -> None:
    """Write what fragments say for the first time."""
    rows = [
        {"first": first, "body": body, "checksum": checksum(body, first)} for first, body in known.unsaved()
    ]
    insert_all(connection, vocabulary, rows)


def load(connection: Connection) -> Iterator[Piece]:
    """All values; StoreError for what is damaged."""
    for row in connection.execute(ALL):
        check(row.body, row.checksum, f"values from number {row.first} on", row.first)
        yield Piece(row.first, row.body)


def forget(connection: Connection) -> None:
    """Let go of all values: the model is another."""
    connection.execute(delete(vocabulary))


def said_by(connection: Connection, ids: Iterable[str]) -> Integers:
    """The numbers of what all versions of some fragments have said."""
    rows = select_all(connection, select(fragments.c.value_numbers), fragments.c.id, ids)
    return np.unique(np.frombuffer(b"".join(row.value_numbers or b"" for row in rows), NUMBERS))


def erase(connection: Connection, numbers: Iterable[int]) -> None:
    """Erase values."""
    firsts = list(connection.scalars(select(vocabulary.c.first).order_by(vocabulary.c.first)))
    gone: dict[int, list[int]] = defaultdict(list)
    for number in numbers:
        if (at := bisect_right(firsts, number)) > 0:
            gone[firsts[at - 1]].append(number)
    for first, own in gone.items():
        body = connection.execute(select(vocabulary.c.body).where(vocabulary.c.first == first)).scalar_one()
        values = unpacked(body)
        which = np.isin(first + np.arange(len(values.owner)), own)
        new = packed(without(values, which))
        connection.execute(CHANGE.values(body=new, checksum=checksum(new, first)), {"which": first})
