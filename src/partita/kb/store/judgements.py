"""Judgements as rows of the store: what humans said of fragments, and the constraints it gives.

A judgement has *sides*, lists of fragments: those that it confirms are all of one thing, those that it separates
are of as many things as there are sides, or more. One about two fragments has two sides of one fragment each.
"""

from __future__ import annotations

import json
import zlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from typing import Any, NamedTuple

from sqlalchemy import Connection, delete, func, insert, select, update

from partita.kb.store.database import batches, check, checksum, insert_all, select_all
from partita.kb.store.fragments import numbers_of
from partita.kb.store.statements import Lookup, fetch_one
from partita.kb.store.tables import judged, judgements, undoing

KINDS = {
    "confirm": "confirmed",
    "separate": "separated",
    "split": "cut",
    "unsure": "unsure",
}  # and their events

Pairs = list[tuple[int, int]]
Cuts = list[list[list[int]]]  # of each the fragments on its sides


STANDING = select(judgements).where(judgements.c.undone_at.is_(None)).order_by(judgements.c.number)
ANY = select(judgements.c.number).where(judgements.c.undone_at.is_(None)).limit(1)
ABOUT = Lookup(select(judged.c.judgement), judged.c.fragment)


class Standing(NamedTuple):
    """A judgement that counts."""

    number: int
    kind: str
    first: str
    second: str
    user: str
    sides: list[list[str]]  # ids of fragments

    @property
    def fragments(self) -> list[str]:
        """All that it is about."""
        return list(chain(*self.sides))


def standing(connection: Connection, among: Iterable[int] | None = None) -> list[Standing]:
    """The judgements that count, in order; only those of certain numbers, if these are given."""
    if fetch_one(connection, ANY) is None:  # as is usual, and asked for each fragment that comes alone
        return []
    if among is None:
        rows = list(connection.execute(STANDING))
    else:
        rows = select_all(connection, STANDING, judgements.c.number, sorted(among))
    sides = sides_of(connection, [row.number for row in rows])
    return [
        Standing(row.number, row.kind, row.first, row.second, row.user, sides[row.number]) for row in rows
    ]


def binding(connection: Connection, ids: Iterable[str] | None = None) -> list[Standing]:
    """The judgements that the posterior must obey; only those about some fragments, if these are given."""
    among = None
    if ids is not None:
        among = {number for (number,) in ABOUT(connection, ids)}
    return [row for row in standing(connection, among) if row.kind != "unsure"]


def sides_of(connection: Connection, numbers: Sequence[int]) -> dict[int, list[list[str]]]:
    """The fragments on the sides of some judgements."""
    found: dict[int, dict[int, list[str]]] = {number: defaultdict(list) for number in numbers}
    query = select(judged).order_by(judged.c.judgement, judged.c.side, judged.c.place)
    for row in select_all(connection, query, judged.c.judgement, numbers):
        found[row.judgement][row.side].append(row.fragment)
    return {number: list(sides.values()) for number, sides in found.items()}


def as_constraints(
    rows: Sequence[Standing], place: dict[str, int], without: str | None = None
) -> tuple[Pairs, Cuts]:
    """The pairs that must be together, and the cuts, by the places of fragments; those without one are left out.

    So is the fragment ``without``.
    """
    together: Pairs = []
    cuts: Cuts = []
    for row in rows:
        sides = [[place[id] for id in side if id in place and id != without] for side in row.sides]
        if row.kind == "confirm":
            together += pairwise(chain(*sides))
        elif row.kind != "unsure" and sum(map(bool, sides)) > 1:
            cuts.append([side for side in sides if side])
    return together, cuts


def constraints(connection: Connection) -> tuple[Pairs, Cuts]:
    """The pairs of fragments present that must be together, and the cuts, by number."""
    rows = binding(connection)
    return as_constraints(rows, numbers_of(connection, {id for row in rows for id in row.fragments}))


def companions(connection: Connection, id: str) -> set[str]:
    """The fragments that one was judged to be together with, or apart from."""
    return set(chain(*(row.fragments for row in binding(connection, [id])))) - {id}


def find(connection: Connection, number: int) -> Any:
    """A judgement; None if there is none of that number."""
    if not 0 < number < 1 << 63:  # which no table holds
        return None
    return connection.execute(select(judgements).where(judgements.c.number == number)).first()


def last_standing(connection: Connection) -> int | None:
    """The number of the last judgement that counts; None if none does."""
    found = connection.scalar(select(func.max(judgements.c.number)).where(judgements.c.undone_at.is_(None)))
    return None if found is None else int(found)


def write(
    connection: Connection, kind: str, named: tuple[str, str], sides: list[list[str]], user: str, at: str
) -> int:
    """Write a judgement down, and what its sides were called; returns its number."""
    number = (connection.scalar(select(func.max(judgements.c.number))) or 0) + 1
    row = {"number": number, "kind": kind, "first": named[0], "second": named[1], "user": user, "at": at}
    connection.execute(insert(judgements), row)
    members = [
        {"judgement": number, "side": side, "place": place, "fragment": id}
        for side, ids in enumerate(sides)
        for place, id in enumerate(ids)
    ]
    insert_all(connection, judged, members)
    return number


def mark_undone(connection: Connection, number: int, user: str, at: str) -> None:
    """A judgement counts no longer."""
    change = update(judgements).where(judgements.c.number == number)
    connection.execute(change.values(undone_by=user, undone_at=at))


# ---------------------------------------------------------------------- what it takes to undo one


def remember(connection: Connection, number: int, before: Any) -> None:
    """Keep what was before a judgement, as JSON can hold it."""
    body = zlib.compress(json.dumps(before).encode(), 1)
    connection.execute(insert(undoing), {"judgement": number, "body": body, "checksum": checksum(body)})


def forget(connection: Connection, number: int | None = None) -> None:
    """Let go of what was before a judgement; before all of them, if everything is clustered anew."""
    change = delete(undoing)
    connection.execute(change if number is None else change.where(undoing.c.judgement == number))


def forget_of(connection: Connection, ids: Iterable[str]) -> None:
    """Let go of what was before the judgements of some fragments."""
    for some in batches(ids):
        of = select(judged.c.judgement).where(judged.c.fragment.in_(some))
        connection.execute(delete(undoing).where(undoing.c.judgement.in_(of)))


def remembered(connection: Connection, number: int) -> Any:
    """What was before a judgement; None if that is not known."""
    row = connection.execute(select(undoing).where(undoing.c.judgement == number)).first()
    if row is None:
        return None
    check(row.body, row.checksum, f"what was before judgement {number}")
    return json.loads(zlib.decompress(row.body))
