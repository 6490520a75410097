"""How the clustering comes to obey judgements, and how it becomes what it was when one is taken back.

A judgement changes the subproblems that its fragments are in. What these were before is remembered with it: their
particles, and the entity of each fragment. If nothing else has changed there since, undoing it puts all of that back,
ids of entities that had ended included. Otherwise the posterior is conditioned anew, on the judgements that remain.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from partita._core.typing import Integers
from partita.kb.clustering import Clustering, Cuts, Outcome, Pairs, Touched
from partita.kb.identity import restored
from partita.smc.moves.constrain import affected, conforms, local_to, scores_of
from partita.smc.moves.install import install
from partita.smc.moves.rows import canonical
from partita.smc.reading.best import best_clustering
from partita.smc.reading.particles import partitions
from partita.smc.state.access import changed_since, n_changes

Part = tuple[list[int], list[list[int]]]  # of a subproblem its fragments, and its particles as labels


class Before(NamedTuple):
    """What a part of the clustering was before a judgement, so that it can be again; as JSON can hold it."""

    parts: list[Part]
    entities: dict[str, int]  # of each fragment, by its number
    after: str  # a hash of what the judgement has made of it
    event: int  # the last one before


def judge(
    clustering: Clustering, together: Pairs, cuts: Cuts, touched: Touched, event: int
) -> tuple[Outcome, Before]:
    """Condition on pairs and cuts of fragments; also what there was, after ``event``, of all that it may change."""
    engine, places = clustering.engine, clustering.places
    touched = list(touched)
    slots = affected(engine, clustering.constraints(together, cuts), [places(some) for some in touched])
    parts = parts_in(clustering, sorted(chain(*slots)))
    numbers = list(chain(*(members for members, _ in parts)))
    entities = dict(zip(map(str, numbers), clustering.entity[places(numbers)].tolist(), strict=True))
    outcome = clustering.constrain(together, cuts, touched)
    return outcome, Before(parts, entities, hash_of(parts_of(clustering, numbers)), event)


def take_back(
    clustering: Clustering, together: Pairs, cuts: Cuts, touched: Touched, before: Before | None
) -> tuple[Outcome, bool]:
    """Condition anew where a judgement counts no longer; what has changed, and whether all is as it was before."""
    numbers = [] if before is None else list(map(int, before.entities))
    if before is None or hash_of(parts_of(clustering, numbers)) != before.after:
        return clustering.constrain(together, cuts, touched), False
    engine, stamp = clustering.engine, int(n_changes(clustering.engine.state))
    constraints = clustering.constraints(together, cuts)
    members, joint = joint_of(clustering, before.parts)
    local = local_to(constraints, members)
    if not all(conforms(row, local) for row in joint):  # to a judgement that has come since
        return clustering.constrain(together, cuts, touched), False
    engine.constraints = constraints
    slots = sorted({engine.subproblem_of(x) for x in members.tolist()})
    engine.need(slots)
    install(engine, slots, members, joint, scores_of(engine, members, joint))
    changed = changed_since(engine.state, stamp)[0]
    outcome = called_as_before(clustering, changed, before.entities)
    return (clustering.rename(changed), False) if outcome is None else (outcome, True)


def called_as_before(clustering: Clustering, slots: Integers, entities: dict[str, int]) -> Outcome | None:
    """Call the best clusters of some subproblems what they were called; None if others are called so by now."""
    members, clusters, _ = best_clustering(clustering.engine.state, slots)
    numbers, had = clustering.numbers[members], clustering.entity[members]
    wanted = np.array([entities[str(number)] for number in numbers.tolist()], np.int64)
    pairs = set(zip(clusters.tolist(), wanted.tolist(), strict=True))
    elsewhere = np.isin(np.delete(clustering.entity, members), wanted).any()
    if elsewhere or not len(pairs) == len(set(clusters.tolist())) == len(set(wanted.tolist())):
        return None
    clustering.entity[members] = wanted
    moved = wanted != had
    columns = (numbers[moved].tolist(), had[moved].tolist(), wanted[moved].tolist())
    revived = frozenset(wanted.tolist()) - frozenset(had.tolist())
    return Outcome(restored(numbers, had, wanted), list(zip(*columns, strict=True)), revived=revived)


# ---------------------------------------------------------------------- subproblems as numbers of fragments


def parts_in(clustering: Clustering, slots: Iterable[int]) -> list[Part]:
    """What subproblems hold, the best particles first."""
    found = []
    for s in slots:
        members, ids, scores = partitions(clustering.engine.state, s)
        rows = canonical(ids[np.argsort(-scores, kind="stable")])
        found.append((clustering.numbers[members].tolist(), rows.tolist()))
    return found


def parts_of(clustering: Clustering, numbers: Sequence[int]) -> list[Part]:
    """What the subproblems of some fragments hold; nothing if one of these is gone."""
    engine = clustering.engine
    if not set(clustering.present.tolist()).issuperset(numbers):
        return []
    slots = {engine.subproblem_of(x) for x in clustering.places(numbers)}
    return parts_in(clustering, sorted(slots))


def joint_of(clustering: Clustering, parts: list[Part]) -> tuple[Integers, Integers]:
    """Observations, and partitions of them all among which is each particle of each part once at least."""
    members = np.array(clustering.places(chain(*(numbers for numbers, _ in parts))), np.int64)
    most = max(len(rows) for _, rows in parts)
    labels, used = [], 0
    for _, rows in parts:
        given = np.array(rows, np.int64)
        labels.append(given[np.arange(most) % len(given)] + used)
        used += int(given.max()) + 1
    return members, canonical(np.concatenate(labels, axis=1))


def hash_of(parts: list[Part]) -> str:
    """A hash of subproblems, whatever the order of their fragments and particles."""
    found: list[Any] = []
    for numbers, rows in parts:
        order = np.argsort(numbers, kind="stable")
        labels = canonical(np.array(rows, np.int64)[:, order])
        found.append([sorted(numbers), sorted(labels.tolist())])
    return hashlib.blake2b(json.dumps(sorted(found)).encode(), digest_size=16).hexdigest()
