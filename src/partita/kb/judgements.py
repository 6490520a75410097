"""What humans say of fragments and entities, and how the posterior comes to obey it.

What they say is a *judgement*: confirm, separate, split or unsure. One about an entity is about all fragments that it
has at that time. All but the last give the sampler *constraints* while the fragments are present; the judgement itself
outlives them.
"""

from __future__ import annotations

import getpass
from collections.abc import Sequence
from itertools import chain, combinations
from typing import Any

from sqlalchemy import Connection

from partita._core.typing import Integers
from partita.kb import conditioning
from partita.kb.columns import keys_of, readers_in
from partita.kb.conditioning import Before
from partita.kb.groups import Groups
from partita.kb.queries.answers import entity, fragments_meant, name_then
from partita.kb.session import Session
from partita.kb.store import judgements as rows
from partita.kb.store.fragments import all_of, numbers_of
from partita.kb.store.journal import Journal
from partita.smc.state.constraints import constraints_from

LONGEST = 60  # characters of what a judgement is about, in a message


class ConflictError(ValueError):
    """What cannot be because of what was judged, or undone, before."""


def judge(session: Session, kind: str, a: str, b: str, user: str | None) -> int:
    """Record that a user confirms, separates or is unsure of two fragments, or entities; its number."""
    with session.changing() as journal:
        named, sides = two_sides(session.connection, a, b)
        return record(session, journal, kind, named, sides, user)


def two_sides(connection: Connection, a: str, b: str) -> tuple[tuple[str, str], list[list[str]]]:
    """What two ids of fragments or entities are called, and the fragments that are meant.

    A fragment beside its own entity is one beside the others of it.
    """
    (first, one), (second, two) = (fragments_meant(connection, id) for id in (a, b))
    if set(one) <= set(two):
        two = [id for id in two if id not in one]
    one = [id for id in one if id not in two]
    if not one or not two:
        raise ValueError(
            f"{a!r} and {b!r} are the same, {second if a == b else first}: name two different ones"
        )
    return (first, second), [one, two]


def record(
    session: Session,
    journal: Journal,
    kind: str,
    named: tuple[str, str],
    sides: list[list[str]],
    user: str | None,
) -> int:
    """Write a judgement down and let the posterior obey it; ValueError if it contradicts others."""
    connection = session.connection
    judgement = rows.write(connection, kind, named, sides, user or current_user(), journal.at)
    event = journal.next_event - 1
    journal.note(rows.KINDS[kind], judgement=judgement, first=named[0], second=named[1])
    if kind == "unsure":
        return judgement
    if not are_possible(connection):
        raise ConflictError(contradiction(connection, judgement, kind, named, sides))
    touched = [sorted(numbers_of(connection, chain(*sides)).values())]
    outcome, before = conditioning.judge(session.live, *rows.constraints(connection), touched, event)
    rows.remember(connection, judgement, before)
    journal.record(outcome, judgement=judgement)
    return judgement


def undo(session: Session, judgement: int | None, user: str | None) -> int:
    """Take a judgement back, the last one unless it is named; returns its number."""
    with session.changing() as journal:
        connection = session.connection
        row = to_undo(connection, judgement)
        rows.mark_undone(connection, row.number, user or current_user(), journal.at)
        sides = rows.sides_of(connection, [row.number])[row.number]
        journal.note("undone", judgement=row.number)
        touched = sorted(numbers_of(connection, chain(*sides)).values())
        if row.kind != "unsure" and len(touched) > 1:
            kept = rows.remembered(connection, row.number)
            before = None if kept is None else Before(*kept)
            constraints = rows.constraints(connection)
            outcome, restored = conditioning.take_back(session.live, *constraints, [touched], before)
            names: dict[int, str | None] = {}
            if before is not None and restored:
                names = {e: name_then(connection, e, before.event) for e in set(before.entities.values())}
            journal.record(outcome, names=names, undone=row.number)
        rows.forget(connection, row.number)
    return int(row.number)


def to_undo(connection: Connection, judgement: int | None) -> Any:
    """The row of the judgement to be undone; KeyError or ValueError if there is none."""
    if judgement is None:
        judgement = rows.last_standing(connection)
        if judgement is None:
            raise KeyError("there is no judgement to undo")
    row = rows.find(connection, judgement)
    if row is None:
        raise KeyError(f"there is no judgement {judgement}")
    if row.undone_at is not None:
        raise ConflictError(f"judgement {judgement} was undone already, by {row.undone_by}")
    return row


# ---------------------------------------------------------------------- cuts inside an entity


def split(session: Session, id: str, by: str | None, leaving: str | Sequence[str], user: str | None) -> int:
    """Divide an entity: by the values of an attribute, or into those that leave and those that stay; its number."""
    leaving = [leaving] if isinstance(leaving, str) else leaving
    if (by is None) == (not leaving):
        raise ValueError("say how to split: by an attribute, or the fragments that leave")
    with session.changing() as journal:
        connection = session.connection
        found = entity(connection, id, None)
        if by is None:
            gone, members = dict.fromkeys(leaving), set(found.fragments)
            stranger = next((each for each in gone if each not in members), None)
            if stranger is not None:
                raise ValueError(f"fragment {stranger!r} is not of {found.id}, so it cannot leave it")
            staying = [each for each in found.fragments if each not in gone]
            if not staying:
                raise ValueError(f"all fragments of {found.id} would leave it: name those of one part only")
            return record(session, journal, "split", (found.id, ", ".join(gone)), [staying, list(gone)], user)
        sides = parts_by(connection, found.id, found.fragments, by)
        return record(session, journal, "split", (found.id, f"by {by}"), sides, user)


def parts_by(connection: Connection, named: str, ids: Sequence[str], attribute: str) -> list[list[str]]:
    """Fragments that have a value of an attribute in common, directly or through others; those without are left out."""
    reader = readers_in(connection)[attribute]
    said: dict[str, list[str]] = {}  # by each fragment
    alike, known = Groups(), set[str]()
    for fragment in all_of(connection, ids):
        known |= fragment.properties.keys()
        values = {key for value in fragment.properties.get(attribute, []) for key in keys_of(reader, value)}
        if values:
            said[fragment.id] = list(values)
            alike.join(said[fragment.id])
    parts: dict[str, list[str]] = {}
    for id, of_it in said.items():
        parts.setdefault(alike.of(of_it[0]), []).append(id)
    if len(parts) > 1:
        return list(parts.values())
    if not parts:
        there = ", ".join(sorted(known))
        raise ValueError(f"no fragment of {named} says anything of {attribute!r}; they have {there}")
    raise ValueError(
        f"all fragments of {named} that say something of {attribute!r} say the same: nothing to split"
    )


# ---------------------------------------------------------------------- as fragments come and go


def companions(session: Session, id: str) -> list[int]:
    """The numbers of the fragments present that one was judged together with."""
    return sorted(numbers_of(session.connection, rows.companions(session.connection, id)).values())


def constrain_again(session: Session, journal: Journal, ids: set[str]) -> None:
    """Where fragments have come that were judged before, let the posterior obey that again."""
    concerned = rows.binding(session.connection, ids)
    if concerned:
        touched = [list(numbers_of(session.connection, row.fragments).values()) for row in concerned]
        journal.record(session.constrain(touched), judged_before=True)


def answers(session: Session, numbers: Integers) -> list[tuple[int, int, bool]]:
    """What is judged of fragments of these numbers, by their places: whether they are of the same thing.

    Of two sides that are different things each fragment is in a pair at least: not all pairs, which may be many.
    """
    place = {number: k for k, number in enumerate(numbers.tolist())}
    together, cuts = rows.constraints(session.connection)
    apart = [
        (one[k % len(one)], other[k % len(other)])
        for sides in cuts
        for one, other in combinations(sides, 2)
        for k in range(max(len(one), len(other)))
    ]
    return [
        (place[a], place[b], same) for same, pairs in ((True, together), (False, apart)) for a, b in pairs
    ]


# ---------------------------------------------------------------------- do they agree?


def are_possible(connection: Connection) -> bool:
    """Whether the judgements agree with one another, those of fragments that are gone for now as well."""
    found = rows.standing(connection)
    place = {id: k for k, id in enumerate(dict.fromkeys(id for row in found for id in row.fragments))}
    try:
        constraints_from(*rows.as_constraints(found, place))
    except ValueError:
        return False
    return True


def contradiction(
    connection: Connection, number: int, kind: str, named: tuple[str, str], sides: list[list[str]]
) -> str:
    """Why a judgement cannot be, and which others stand against it."""
    others = [row for row in rows.binding(connection) if row.number != number]
    concerned, reached = set(chain(*sides)), set[str]()
    while reached != concerned:  # through what is confirmed
        reached = set(concerned)
        for row in others:
            if row.kind == "confirm" and not concerned.isdisjoint(row.fragments):
                concerned.update(row.fragments)
    listed = ", ".join(
        f"{row.number} ({row.kind} {row.first!r} {shortened(row.second)!r}, by {row.user})"
        for row in others
        if not concerned.isdisjoint(row.fragments)
    )
    said = f"{kind} {named[0]!r} and {shortened(named[1])!r}"
    return f"cannot {said}: it contradicts earlier judgements; undo one of {listed}"


def shortened(name: str) -> str:
    """What a judgement is about, in a sentence."""
    return name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"


def current_user() -> str:
    """Who is at the keyboard."""
    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):
        return "unknown"
