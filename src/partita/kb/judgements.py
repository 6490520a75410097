"""What humans say of pairs of fragments, and how the posterior comes to obey it.

What they say is a *judgement*: confirm, separate or unsure. The first two give the sampler a *constraint*,
must-link or cannot-link, while both fragments are present; the judgement itself outlives them.
"""

from __future__ import annotations

import getpass

from sqlalchemy import Connection

from partita._core.typing import Integers
from partita.kb.queries.answers import two_fragments
from partita.kb.session import Session
from partita.kb.store import judgements as rows
from partita.kb.store.fragments import numbers_of
from partita.kb.store.journal import Journal
from partita.smc.state.constraints import constraints_from


def judge(session: Session, kind: str, a: str, b: str, user: str | None) -> int:
    """Record that a user confirms, separates or is unsure of two fragments, or entities; its number."""
    with session.changing() as journal:
        connection = session.connection
        first, second = two_fragments(connection, a, b)
        judgement = rows.write(connection, kind, first, second, user or current_user(), journal.at)
        journal.note(rows.KINDS[kind], judgement=judgement, first=first, second=second)
        if kind != "unsure":
            if not are_possible(connection):
                raise ValueError(contradiction(connection, judgement, kind, first, second))
            number = numbers_of(connection, (first, second))
            outcome = session.constrain([(number[first], number[second])])
            journal.record(outcome, judgement=judgement)
    return judgement


def undo(session: Session, judgement: int, user: str | None) -> None:
    """Take a judgement back; the posterior is what it would have been without."""
    with session.changing() as journal:
        connection = session.connection
        row = rows.find(connection, judgement)
        if row is None:
            raise KeyError(f"there is no judgement {judgement}")
        if row.undone_at is not None:
            raise ValueError(f"judgement {judgement} was undone already, by {row.undone_by}")
        rows.mark_undone(connection, judgement, user or current_user(), journal.at)
        journal.note("undone", judgement=judgement)
        number = numbers_of(connection, (row.first, row.second))
        if row.kind != "unsure" and len(number) == 2:
            outcome = session.constrain([(number[row.first], number[row.second])])
            journal.record(outcome, undone=judgement)


def release(session: Session, id: str) -> list[int]:
    """Before a fragment goes, lift the constraints on it; the judgements themselves stay.

    Returns the numbers of the fragments present that it was judged together with.
    """
    others = rows.companions(session.connection, id)
    if others:
        session.constrain([], without=id)
    return sorted(numbers_of(session.connection, others).values())


def constrain_again(session: Session, journal: Journal, ids: set[str]) -> None:
    """Where fragments have come that were judged before, let the posterior obey that again."""
    if any(row.first in ids or row.second in ids for row in rows.standing(session.connection)):
        journal.record(session.constrain(), judged_before=True)


def answers(session: Session, numbers: Integers) -> list[tuple[int, int, bool]]:
    """What is judged of fragments of these numbers, by their places: whether they are of the same thing."""
    place = {number: k for k, number in enumerate(numbers.tolist())}
    together, apart = rows.constraints(session.connection)
    return [
        (place[a], place[b], same) for same, pairs in ((True, together), (False, apart)) for a, b in pairs
    ]


# ---------------------------------------------------------------------- do they agree?


def are_possible(connection: Connection) -> bool:
    """Whether the judgements agree with one another, those of fragments that are gone for now as well."""
    place: dict[str, int] = {}
    pairs: dict[str, rows.Pairs] = {kind: [] for kind in rows.KINDS}
    for row in rows.standing(connection):
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
        for row in rows.standing(connection)
        if row.number != number
        and row.kind != "unsure"
        and (row.kind == opposite or {row.first, row.second} & {first, second})
    )
    return f"cannot {kind} {first!r} and {second!r}: it contradicts earlier judgements; undo one of {listed}"


def current_user() -> str:
    """Who is at the keyboard."""
    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):
        return "unknown"
