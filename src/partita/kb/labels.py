"""Known matches: the true entities of some fragments, from which the model is learnt. They teach, and do not bind.

They are kept, so that whatever is learnt later is learnt from them, too; those of fragments that are yet to come as
well. Where they contradict what humans have judged they are refused; where a later judgement contradicts them, the
judgement counts, and what it concerns of them teaches no longer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from sqlalchemy import Connection

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
    kept = labels_kept(connection)
    left = {id: entity for id, entity in kept.items() if id not in set(ids)}
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
    left = dict(labels)
    while (found := contradiction(left, judged)) is not None:
        for id in found.fragments:
            del left[id]
    return left


def contradiction(labels: Mapping[str, str], judged: Sequence[Standing]) -> Contradiction | None:
    """The first contradiction between labels and judgements; None if they agree."""
    rows = [row for row in judged if row.kind != "unsure"]
    groups = Groups()
    for row in rows:
        if row.kind == "confirm":
            groups.join(row.fragments)
    first: dict[str, str] = {}  # fragment of each group that has a label
    for id, entity in labels.items():
        other = first.setdefault(groups.of(id), id)
        if labels[other] != entity:
            numbers = [row.number for row in rows if groups.of(row.fragments[0]) == groups.of(id)]
            said = f"the labels say that {other!r} is of {labels[other]!r} and {id!r} of {entity!r}"
            concerned = [each for each in labels if groups.of(each) == groups.of(id)]
            return Contradiction(concerned, f"{said}, but {saying(numbers)} that they are the same")
    held: dict[str, str] = {}  # fragment of each label
    for id, entity in labels.items():
        groups.join([held.setdefault(entity, id), id])
    for row in (row for row in rows if row.kind != "confirm"):
        side_of: dict[str, tuple[int, str]] = {}
        for side, id in ((side, id) for side, ids in enumerate(row.sides) for id in ids):
            before, other = side_of.setdefault(groups.of(id), (side, id))
            if before != side:
                said = f"by the labels {other!r} and {id!r} are the same"
                concerned = [each for each in labels if groups.of(each) == groups.of(id)]
                return Contradiction(concerned, f"{said}, but {saying([row.number])} that they are different")
    return None


def saying(numbers: Sequence[int]) -> str:
    """Which judgements say something."""
    one = len(numbers) == 1
    return f"judgement{'' if one else 's'} {', '.join(map(str, numbers))} say{'s' if one else ''}"


class Groups:
    """Sets of things, of which some are joined."""

    def __init__(self) -> None:
        self._parent: dict[str, str] = {}

    def of(self, thing: str) -> str:
        """One of a thing's set, the same for all of it."""
        root = thing
        while (parent := self._parent.get(root, root)) != root:
            root = parent
        while (parent := self._parent.get(thing, thing)) != root:
            self._parent[thing], thing = root, parent
        return root

    def join(self, things: Sequence[str]) -> None:
        """Make one set of those of some things."""
        for one, other in pairwise(things):
            self._parent[self.of(other)] = self.of(one)
