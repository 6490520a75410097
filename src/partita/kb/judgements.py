"""What humans have said: the judgements that count, whether they agree, and the bonds that they are."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, select

from partita.kb.store import tables
from partita.kb.store.database import select_all
from partita.smc.state.constraints import constraints_from

JUDGED = {"confirm": "confirmed", "separate": "separated", "unsure": "unsure"}  # kinds, and their events

Pairs = list[tuple[int, int]]


def standing(connection: Connection) -> list[Any]:
    """The judgements that count, in order."""
    table = tables.judgements
    query = select(table).where(table.c.undone_at.is_(None)).order_by(table.c.number)
    return list(connection.execute(query))


def bonds(connection: Connection, without: str | None = None) -> tuple[Pairs, Pairs]:
    """The pairs of fragments present that are confirmed, and those that are separated, by number."""
    found = [row for row in standing(connection) if without not in (row.first, row.second)]
    table = tables.fragments
    query = select(table.c.id, table.c.number).where(table.c.gone.is_(None))
    ids = {id for row in found for id in (row.first, row.second)}
    number = {row.id: row.number for row in select_all(connection, query, table.c.id, ids)}
    pairs: dict[str, Pairs] = {kind: [] for kind in JUDGED}
    for row in found:
        if row.first in number and row.second in number:
            pairs[row.kind].append((number[row.first], number[row.second]))
    return pairs["confirm"], pairs["separate"]


def companions(connection: Connection, id: str) -> set[str]:
    """The fragments that one was judged together with, or apart from."""
    judged = [(row.first, row.second) for row in standing(connection) if row.kind != "unsure"]
    return {other for pair in judged if id in pair for other in pair if other != id}


def are_possible(connection: Connection) -> bool:
    """Whether the judgements agree with one another, those of fragments that are gone for now as well."""
    place: dict[str, int] = {}
    pairs: dict[str, Pairs] = {kind: [] for kind in JUDGED}
    for row in standing(connection):
        first, second = (place.setdefault(id, len(place)) for id in (row.first, row.second))
        pairs[row.kind].append((first, second))
    try:
        constraints_from(pairs["confirm"], pairs["separate"])
    except ValueError:
        return False
    return True


def contradiction(connection: Connection, number: int, kind: str, first: str, second: str) -> str:
    """Why a judgement cannot be, and which others stand against it."""
    opposite = "separate" if kind == "confirm" else "confirm"
    listed = ", ".join(
        f"{row.number} ({row.kind} {row.first!r} {row.second!r}, by {row.user})"
        for row in standing(connection)
        if row.number != number
        and row.kind != "unsure"
        and (row.kind == opposite or {row.first, row.second} & {first, second})
    )
    return f"cannot {kind} {first!r} and {second!r}: it contradicts earlier judgements; undo one of {listed}"
