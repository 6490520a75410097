"""Judgements as rows of the store: what humans said of pairs of fragments, and the constraints it gives."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, func, insert, select, update

from partita.kb.store.fragments import numbers_of
from partita.kb.store.tables import judgements

KINDS = {"confirm": "confirmed", "separate": "separated", "unsure": "unsure"}  # with their events

Pairs = list[tuple[int, int]]


def standing(connection: Connection) -> list[Any]:
    """The judgements that count, in order."""
    query = select(judgements).where(judgements.c.undone_at.is_(None)).order_by(judgements.c.number)
    return list(connection.execute(query))


def constraints(connection: Connection, without: str | None = None) -> tuple[Pairs, Pairs]:
    """The pairs of fragments present that must be together, and those that must be apart, by number.

    ``without`` is a fragment whose judgements are left out.
    """
    found = [row for row in standing(connection) if without not in (row.first, row.second)]
    number = numbers_of(connection, {id for row in found for id in (row.first, row.second)})
    pairs: dict[str, Pairs] = {kind: [] for kind in KINDS}
    for row in found:
        if row.first in number and row.second in number:
            pairs[row.kind].append((number[row.first], number[row.second]))
    return pairs["confirm"], pairs["separate"]


def companions(connection: Connection, id: str) -> set[str]:
    """The fragments that one was judged to be together with, or apart from."""
    judged = [(row.first, row.second) for row in standing(connection) if row.kind != "unsure"]
    return {other for pair in judged if id in pair for other in pair if other != id}


def find(connection: Connection, number: int) -> Any:
    """A judgement; None if there is none of that number."""
    return connection.execute(select(judgements).where(judgements.c.number == number)).first()


def write(connection: Connection, kind: str, first: str, second: str, user: str, at: str) -> int:
    """Write a judgement down; returns its number."""
    number = (connection.scalar(select(func.max(judgements.c.number))) or 0) + 1
    row = {"number": number, "kind": kind, "first": first, "second": second, "user": user, "at": at}
    connection.execute(insert(judgements), row)
    return number


def mark_undone(connection: Connection, number: int, user: str, at: str) -> None:
    """A judgement counts no longer."""
    change = update(judgements).where(judgements.c.number == number)
    connection.execute(change.values(undone_by=user, undone_at=at))
