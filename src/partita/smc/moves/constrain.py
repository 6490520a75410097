"""Conditioning a posterior on constraints: partitions that break them go, the best that keep them come in.

Of the subproblems that new constraints touch, all that must share a cluster are taken as one. Old particles that
keep the constraints stay candidates. *Grafts* of those that do not, in which the clusters of observations that must
be together are joined and those that a cut goes through are divided, and *replays*, in which the observations come
again under the constraints, those that have some first, are the new ones. The m best of all are kept: exact where m
is no less than the number of partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from partita._core.typing import Array, Floats, Integers
from partita.smc.moves.install import install
from partita.smc.moves.refine import run_again
from partita.smc.moves.rows import best_of, product
from partita.smc.reading.particles import partitions
from partita.smc.state.constraints import constraints_among, parts_of, said_by
from partita.smc.state.state import new_seed

REPLAYS = 4


def constrain(engine: Any, constraints: Any, touched: Iterable[Sequence[int]]) -> None:
    """Replace the constraints, and bring the subproblems of the observations ``touched`` in line with them.

    These are lists of observations that are to be looked at together, for their constraints have changed; those
    that are not in the state are passed over.
    """
    lifted = statements(engine.constraints) - statements(constraints)
    engine.constraints = constraints
    found = affected(engine, constraints, touched)
    if not found:
        return  # and nothing is drawn: to load constraints is to change nothing
    generator = np.random.default_rng(int(new_seed(engine.state)))
    for subproblems in found:
        together = reconsider(engine, subproblems, generator)
        if not together and lifted:  # what was ruled out is possible again, in each by itself
            for s in subproblems:
                reconsider(engine, [s], generator)


def statements(constraints: Any) -> set[Any]:
    """What constraints say, one by one: pairs that are together, and cuts."""
    together, cuts = said_by(constraints)
    return {*together, *(frozenset(map(frozenset, sides)) for sides in cuts)}


def affected(engine: Any, constraints: Any, touched: Iterable[Sequence[int]]) -> list[list[int]]:
    """Lists of subproblems to be taken as one: those of observations touched together, or of one group."""
    observations, groups, *_ = parts_of(constraints)
    present = set(engine.present.tolist())
    companions: dict[int, list[int]] = {}
    for x, group in zip(observations.tolist(), groups.tolist(), strict=True):
        if x in present:
            companions.setdefault(group, []).append(x)
    group_of = dict(zip(observations.tolist(), groups.tolist(), strict=True))
    found: list[set[int]] = []
    for some in touched:
        reached = {y for x in some if x in present for y in (x, *companions.get(group_of.get(x, -1), ()))}
        slots = {engine.subproblem_of(x) for x in reached}
        apart = [other for other in found if not other & slots]
        found = [*apart, slots.union(*(other for other in found if other & slots))] if slots else found
    return [sorted(slots) for slots in found]


class Explored(NamedTuple):
    """Partitions of some observations that conform to constraints, the best first."""

    members: Integers
    labels: Integers  # (rows, members)
    scores: Floats
    conformed: bool  # whether all particles did before
    crossing: Array  # which rows have a cluster in more than one of the subproblems


def reconsider(engine: Any, subproblems: list[int], generator: np.random.Generator) -> bool:
    """Make one of some subproblems, and keep the best of its partitions that conform to the constraints.

    Not where that is not worth it; returns whether it was done.
    """
    found = explore(engine, subproblems, engine.constraints, generator)
    weight = np.exp(found.scores - found.scores[0])
    worth_joining = found.crossing[0] or weight[found.crossing].sum() * engine.particles > weight.sum()
    if len(subproblems) > 1 and not worth_joining and found.conformed:
        return False
    install(engine, subproblems, found.members, found.labels, found.scores)
    return True


def explore(
    engine: Any, subproblems: list[int], constraints: Any, generator: np.random.Generator
) -> Explored:
    """The best partitions, taking subproblems as one, that conform to constraints; changes nothing."""
    engine.need(subproblems)
    old = [partitions(engine.state, s) for s in subproblems]
    members = np.concatenate([observations for observations, _, _ in old])
    border = np.cumsum([len(observations) for observations, _, _ in old])[:-1]
    labels, scores = product([part[1:] for part in old], engine.particles)
    local = parts_of(constraints_among(constraints, members))
    kept = np.array([conforms(row, *local) for row in labels], bool)
    options = [(labels[kept], scores[kept]), *grafts(engine, members, labels[~kept], local)]
    others = np.delete(np.arange(len(members)), local[0])
    for _ in range(REPLAYS):
        order = np.concatenate([local[0], generator.permutation(others)])
        found, values = run_again(engine, members[order], generator, constraints)
        found[:, order] = found.copy()
        options.append((found, values))
    labels, scores, best = best_of(options, engine.particles)
    crossing = np.array([crosses(row, border) for row in labels[best]], bool)
    return Explored(members, labels[best], scores[best], bool(kept.all()), crossing)


def conforms(
    row: Integers, observations: Integers, groups: Integers, starts: Integers, sides: Integers
) -> bool:
    """Whether a partition, as labels, keeps the constraints."""
    cluster: dict[int, int] = {}
    for x, group in zip(observations.tolist(), groups.tolist(), strict=True):
        if cluster.setdefault(group, int(row[x])) != row[x]:
            return False
    held: dict[tuple[int, int], int] = {}  # of a cut and a cluster the side
    return all(
        held.setdefault((cut, label), side) == side
        for group, label in cluster.items()
        for cut, side in sides[starts[group] : starts[group + 1]].tolist()
    )


def crosses(row: Integers, border: Integers) -> bool:
    """Whether a partition, as labels, has a cluster on both sides of a border."""
    parts = np.split(row, border)
    return len(np.unique(row)) < sum(len(np.unique(part)) for part in parts)


def grafts(
    engine: Any, members: Integers, labels: Integers, local: tuple[Integers, ...]
) -> list[tuple[Integers, Floats]]:
    """Partitions in which clusters are joined and divided as the constraints have it."""
    made = [graft(row, *local) for row in labels]
    joined = [row for row in made if conforms(row, *local)]
    if not joined:
        return []
    rows = np.unique(np.array(joined), axis=0)
    return [(rows, np.array([score_of(engine, members, row) for row in rows]))]


def graft(
    row: Integers, observations: Integers, groups: Integers, starts: Integers, sides: Integers
) -> Integers:
    """A partition, as labels, with the clusters of each group joined, and those that a cut goes through divided.

    What is on no side of the cut stays with the largest.
    """
    made = row.copy()
    for group in np.unique(groups):
        held = np.unique(made[observations[groups == group]])
        made[np.isin(made, held)] = held[0]
    size = np.diff(starts)
    cuts = np.repeat(np.arange(len(size)), size)  # the group of each entry of ``sides``
    for cut in np.unique(sides[:, 0]):
        side_of = dict(
            zip(cuts[sides[:, 0] == cut].tolist(), sides[sides[:, 0] == cut, 1].tolist(), strict=True)
        )
        side = np.array([side_of.get(group, -1) for group in groups.tolist()], np.int64)
        for label in np.unique(made[observations[side >= 0]]):
            here = (side >= 0) & (made[observations] == label)
            found, counts = np.unique(side[here], return_counts=True)
            for leaving in np.delete(found, counts.argmax()):
                made[observations[here & (side == leaving)]] = made.max() + 1
    return made


def score_of(engine: Any, members: Integers, row: Integers) -> float:
    """The score Σ_c [log α + lgamma(|c|) + log p(c)] of a partition of some observations, as labels."""
    clusters = [members[row == label] for label in np.unique(row)]
    return float(sum(engine.scores(clusters)) + len(clusters) * np.log(engine.alpha))
