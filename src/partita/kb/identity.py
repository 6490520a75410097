"""Which entity is which, when clusters change: the rules by which entities keep their numbers.

An entity follows most of its fragments. Where clusters are joined, the entity that brings the most fragments
keeps its number, the older one if they bring as many, and the others are *merged* into it. Where a cluster
comes apart, its largest part keeps the number, of equal parts the one with the earliest fragment, and every
other part is *split* off as a new entity. Numbers are never used again, but by :func:`restored`: what a judgement
had merged, and its undoing splits off, is called what it was called before.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import NamedTuple

import numpy as np

from partita._core.typing import Integers

NOBODY = -1  # what an observation is of that is new


class Change(NamedTuple):
    """One thing that has happened to an entity."""

    kind: str  # created, joined, moved, merged, split, updated, left or emptied
    entity: int  # that it happened to
    other: int = (
        NOBODY  # merged: the one that is no more; split: the new one; moved: where from; updated: where to
    )
    member: int = NOBODY  # created, joined, moved, left, updated: the observation


def renamed(
    members: Integers, before: Integers, clusters: Integers, next_entity: int
) -> tuple[Integers, list[Change], int]:
    """Name clusters that have changed.

    Parameters
    ----------
    members : (n,) array
        Observations, in ascending order: all those of the clusters, and of the entities, that are concerned.
    before : (n,) array
        The entity of each; ``NOBODY`` for a new one.
    clusters : (n,) array
        The cluster of each, as it is now.
    next_entity : int
        The number of the next new entity.

    Returns
    -------
    after : (n,) array
        The entity of each from now on.
    changes : list of Change
    next_entity : int
    """
    overlap = Counter(zip(before.tolist(), clusters.tolist(), strict=True))
    heirs = _heirs(overlap, clusters)
    names = _keepers(overlap, heirs)
    parents: dict[int, int] = {}  # of entities split off
    for cluster in dict.fromkeys(clusters.tolist()):
        if cluster not in names:
            names[cluster] = next_entity
            origin = {e: n for (e, c), n in overlap.items() if c == cluster and e != NOBODY}
            if origin:
                parents[next_entity] = min(origin, key=lambda e: (-origin[e], e))
            next_entity += 1
    after = np.array([names[cluster] for cluster in clusters.tolist()], np.int64)
    merged = {e: names[cluster] for e, cluster in heirs.items() if names[cluster] != e}
    changes = _changes(members, before, after, merged, parents)
    return after, changes, next_entity


def restored(members: Integers, before: Integers, after: Integers) -> list[Change]:
    """What happens when observations go back to the entities that they were of once, some of which have ended."""
    overlap = Counter(zip(before.tolist(), after.tolist(), strict=True))
    ending, coming = set(before.tolist()) - set(after.tolist()), set(after.tolist()) - set(before.tolist())
    merged = {e: max((n, -a) for (b, a), n in overlap.items() if b == e)[1] * -1 for e in ending}
    parents = {e: max((n, -b) for (b, a), n in overlap.items() if a == e)[1] * -1 for e in coming}
    return _changes(members, before, after, merged, parents)


def _heirs(overlap: Counter[tuple[int, int]], clusters: Integers) -> dict[int, int]:
    """Of each entity the cluster that holds most of it, of equal ones the one with the earliest member."""
    first = {cluster: -k for k, cluster in enumerate(dict.fromkeys(clusters.tolist()))}
    parts: dict[int, list[int]] = defaultdict(list)
    for entity, cluster in overlap:
        if entity != NOBODY:
            parts[entity].append(cluster)
    return {e: max(held, key=lambda c: (overlap[e, c], first[c])) for e, held in parts.items()}


def _keepers(overlap: Counter[tuple[int, int]], heirs: dict[int, int]) -> dict[int, int]:
    """Of each cluster that is an heir the entity whose number it keeps: the largest, or the older."""
    claims: dict[int, list[int]] = defaultdict(list)
    for entity, cluster in heirs.items():
        claims[cluster].append(entity)
    return {c: max(entities, key=lambda e: (overlap[e, c], -e)) for c, entities in claims.items()}


def _changes(
    members: Integers, before: Integers, after: Integers, merged: dict[int, int], parents: dict[int, int]
) -> list[Change]:
    """What has happened, entity by entity; what a merge or split explains is not repeated."""
    changes = [Change("merged", into, gone) for gone, into in sorted(merged.items())]
    changes += [Change("split", origin, new) for new, origin in sorted(parents.items())]
    known = set(before.tolist()) | set(parents)
    for x, old, new in zip(members.tolist(), before.tolist(), after.tolist(), strict=True):
        if old == NOBODY:
            changes.append(Change("joined" if new in known else "created", new, member=x))
            known.add(new)
        elif new not in (old, merged.get(old)) and parents.get(new) != old:
            changes.append(Change("moved", new, old, x))
    return changes
