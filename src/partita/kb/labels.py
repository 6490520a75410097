"""Known matches: the true entities of some fragments, from which the model is learnt. They teach, and do not bind.

They are kept, so that whatever is learnt later is learnt from them, too; those of fragments that are yet to come as
well. Where they contradict what humans have judged they are refused; where a later judgement contradicts them, the
judgement counts, and what it concerns of them teaches no longer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection

from partita.kb.groups import Groups
from partita.kb.store.database import get, put
from partita.kb.store.fragments import numbers_of
from partita.kb.store.judgements import Standing, standing

KEPT = "labels"  # under this name


class Taught(NamedTuple):
    """What the model was learnt from, beside what fragments say."""

    labels: int  # fragments whose true entity is known
    unknown: int  # ids with a true entity that no fragment has
    judgements: int  # that say of fragments whether they are the same


class Contradiction(NamedTuple):
    """Labels that judgements rule out."""

    fragments: list[str]  # with these labels
    reason: str


def taught(connection: Connection) -> Taught:
    """What a model that is learnt now is learnt from."""
    kept = labels_kept(connection)
    judged = [row for row in standing(connection) if row.kind != "unsure"]
    present = numbers_of(connection, kept) if kept else {}
    used = present.keys() & agreeing(kept, judged).keys()
    return Taught(len(used), len(kept) - len(present), len(judged))


def keep(connection: Connection, given: Mapping[str, Any]) -> None:
    """Keep labels in place of those before; ValueError if they cannot be used."""
    if not isinstance(given, Mapping):
        raise TypeError(f"labels must map ids of fragments to true entities, got {type(given).__name__}")
    labels = {str(id): str(entity) for id, entity in given.items() if entity is not None}
    if labels and not numbers_of(connection, labels):
        some = ", ".join(map(repr, list(labels)[:3]))
        raise ValueError(f"none of the ids with a true entity is that of a fragment: {some}, …")
    found = contradiction(labels, standing(connection))
    if found is not None:
        raise ValueError(f"{found.reason}; correct the labels, or undo the judgement")
    put(connection, KEPT, labels)


def forget(connection: Connection, ids: Iterable[str]) -> None:
    """Erase the labels of fragments that are removed."""
    kept, gone = labels_kept(connection), set(ids)
    left = {id: entity for id, entity in kept.items() if id not in gone}
    if len(left) < len(kept):
        put(connection, KEPT, left)


def labels_kept(connection: Connection) -> dict[str, str]:
    """The true entities that are known, by fragments' ids."""
    found: dict[str, str] = get(connection, KEPT, {})
    return found


def labels_of(connection: Connection, ids: Sequence[str]) -> list[str | None] | None:
    """The labels of some fragments that teach, None where there is none; None if nobody has one."""
    kept = labels_kept(connection)
    if not kept:
        return None
    labels = agreeing(kept, standing(connection))
    return [labels.get(id) for id in ids]


# ---------------------------------------------------------------------- do they agree with what is judged?


def agreeing(labels: Mapping[str, str], judged: Sequence[Standing]) -> dict[str, str]:
    """The labels that no judgement contradicts."""
    ruled_out = {id for found in contradictions(labels, judged) for id in found.fragments}
    return {id: entity for id, entity in labels.items() if id not in ruled_out}


def contradiction(labels: Mapping[str, str], judged: Sequence[Standing]) -> Contradiction | None:
    """The first contradiction between labels and judgements; None if they agree."""
    return next(contradictions(labels, judged), None)


def contradictions(labels: Mapping[str, str], judged: Sequence[Standing]) -> Iterator[Contradiction]:
    """All contradictions between labels and judgements, without the labels of those before."""
    groups, left = Groups(), dict(labels)
    confirmed = [row for row in judged if row.kind == "confirm"]
    for row in confirmed:
        groups.join(row.fragments)
    said_of: dict[str, list[int]] = {}  # each group, by number
    for row in confirmed:
        said_of.setdefault(groups.of(row.fragments[0]), []).append(row.number)
    for group, ids in grouped(labels, groups).items():
        one = ids[0]
        other = next((id for id in ids if labels[id] != labels[one]), None)
        if other is not None:
            said = f"the labels say that {one!r} is of {labels[one]!r} and {other!r} of {labels[other]!r}"
            yield Contradiction(ids, f"{said}, but {saying(said_of[group])} that they are the same")
            for id in ids:
                del left[id]
    held: dict[str, str] = {}  # fragment of each label
    for id, entity in left.items():
        groups.join([held.setdefault(entity, id), id])
    found = grouped(left, groups)
    for row in (row for row in judged if row.kind not in ("confirm", "unsure")):
        side_of: dict[str, tuple[int, str]] = {}
        for side, id in ((side, id) for side, ids in enumerate(row.sides) for id in ids):
            before, first = side_of.setdefault(group := groups.of(id), (side, id))
            if before != side and group in found:
                said = f"by the labels {first!r} and {id!r} are the same"
                reason = f"{said}, but {saying([row.number])} that they are different"
                yield Contradiction(found.pop(group), reason)


def grouped(ids: Iterable[str], groups: Groups) -> dict[str, list[str]]:
    """The ids in each group."""
    found: dict[str, list[str]] = {}
    for id in ids:
        found.setdefault(groups.of(id), []).append(id)
    return found


def saying(numbers: Sequence[int]) -> str:
    """Which judgements say something."""
    one = len(numbers) == 1
    return f"judgement{'' if one else 's'} {', '.join(map(str, numbers))} say{'s' if one else ''}"
