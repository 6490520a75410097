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
REPLAYED = 4000  # observations, at most, of all replays of one list of subproblems, unless it is one replay


def constrain(engine: Any, constraints: Any, touched: Iterable[Sequence[int]]) -> None:
    """Replace the constraints, and bring the subproblems of the observations ``touched`` in line with them.

    These are lists of observations that are to be looked at together, for their constraints have changed; those
    that are not in the state are passed over. What conforms already stays as it is, unless something is possible
    again that was ruled out.
    """
    present = engine.present
    before, now = (statements(constraints_among(each, present)) for each in (engine.constraints, constraints))
    lifted = bool(before - now) or leaves_free(engine.constraints, present)
    if before == now and not lifted:
        engine.constraints = constraints
        return
    engine.constraints = constraints
    broken = [
        subproblems
        for subproblems in affected(engine, constraints, touched)
        if lifted or len(subproblems) > 1 or breaks(engine, subproblems[0])
    ]
    if not broken:
        return  # and nothing is drawn: to load constraints is to change nothing
    generator = np.random.default_rng(int(new_seed(engine.state)))
    for subproblems in broken:
        if not reconsider(engine, subproblems, generator):
            for s in subproblems:
                if lifted or breaks(engine, s):
                    reconsider(engine, [s], generator)


def statements(constraints: Any) -> set[Any]:
    """What constraints say, one by one: pairs that are together, and cuts."""
    together, cuts = said_by(constraints)
    return {*together, *(frozenset(map(frozenset, sides)) for sides in cuts)}


def leaves_free(constraints: Any, present: Integers) -> bool:
    """Whether observations that are gone have held others, by what was said of them, where nothing else holds them.

    They have not where two others of their group remain, who are held by all that held them, nor where nobody of their
    group does, but others on their side of each cut.
    """
    observations, groups, starts, sides = parts_of(constraints)
    here = np.isin(observations, present)
    remaining = np.bincount(groups[here], minlength=len(starts) - 1)

    def entries(group: int) -> set[tuple[int, int]]:
        return set(map(tuple, sides[starts[group] : starts[group + 1]].tolist()))

    left = np.unique(groups[~here])
    if (remaining[left] == 1).any():
        return True
    alone = left[remaining[left] == 0]
    if not len(alone):
        return False
    taken = set().union(*map(entries, np.flatnonzero(remaining).tolist()))
    return any(entries(group) - taken for group in alone.tolist())


def affected(engine: Any, constraints: Any, touched: Iterable[Sequence[int]]) -> list[list[int]]:
    """Lists of subproblems to be taken as one: those of observations touched together, or of one group."""
    observations, groups, *_ = (part.tolist() for part in parts_of(constraints))
    group_of = dict(zip(observations, groups, strict=True))
    present = set(engine.present.tolist())
    companions: dict[int, list[int]] = {}
    for x, group in group_of.items():
        if x in present:
            companions.setdefault(group, []).append(x)
    found: list[set[int]] = []
    for some in touched:
        here = present.intersection(some)
        joined = {group_of[x] for x in here if x in group_of}
        slots = {engine.subproblem_of(x) for x in here.union(*(companions[group] for group in joined))}
        apart = [other for other in found if not other & slots]
        found = [*apart, slots.union(*(other for other in found if other & slots))] if slots else found
    return [sorted(slots) for slots in found]


class Local(NamedTuple):
    """The constraints among some observations, by their places among these."""

    places: Integers  # of those that have any
    firsts: Integers  # of each the first of those that it must be with
    cuts: list[tuple[Integers, Integers]]  # of each the places on its sides, and the side of each


def local_to(constraints: Any, members: Integers) -> Local:
    """The constraints among some observations."""
    places, groups, starts, sides = parts_of(constraints_among(constraints, members))
    _, first, which = np.unique(groups, return_index=True, return_inverse=True)
    counts = starts[groups + 1] - starts[groups]
    begins = np.repeat(starts[groups] - np.cumsum(counts) + counts, counts)
    entries = sides[begins + np.arange(len(begins))]
    order = np.argsort(entries[:, 0], kind="stable")
    owners, entries = np.repeat(places, counts)[order], entries[order]
    borders = np.flatnonzero(np.diff(entries[:, 0])) + 1
    cuts = zip(np.split(owners, borders), np.split(entries[:, 1], borders), strict=True)
    return Local(places, places[first][which], [cut for cut in cuts if len(np.unique(cut[1])) > 1])


def breaks(engine: Any, s: int) -> bool:
    """Whether a partition of a subproblem does not conform to the constraints."""
    members, ids, _ = partitions(engine.state, s)
    local = local_to(engine.constraints, members)
    return not all(conforms(row, local) for row in ids)


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
    local = local_to(constraints, members)
    kept = np.array([conforms(row, local) for row in labels], bool)
    options = [(labels[kept], scores[kept]), *grafts(engine, members, labels[~kept], local)]
    others = np.delete(np.arange(len(members)), local.places)
    for _ in range(max(1, min(REPLAYS, REPLAYED // len(members)))):
        order = np.concatenate([local.places, generator.permutation(others)])
        found, values = run_again(engine, members[order], generator, constraints)
        found[:, order] = found.copy()
        options.append((found, values))
    labels, scores, best = best_of(options, engine.particles, engine.longest_odds)
    crossing = np.array([crosses(row, border) for row in labels[best]], bool)
    return Explored(members, labels[best], scores[best], bool(kept.all()), crossing)


def conforms(row: Integers, local: Local) -> bool:
    """Whether a partition, as labels, keeps the constraints."""
    together = (row[local.places] == row[local.firsts]).all()
    return bool(together) and not any(len(divided(row, *cut)) for cut in local.cuts)


def divided(row: Integers, places: Integers, sides: Integers) -> Integers:
    """The labels that are on several sides of a cut."""
    both = np.unique(np.column_stack([row[places], sides]), axis=0)
    labels, counts = np.unique(both[:, 0], return_counts=True)
    return labels[counts > 1]


def crosses(row: Integers, border: Integers) -> bool:
    """Whether a partition, as labels, has a cluster on both sides of a border."""
    parts = np.split(row, border)
    return len(np.unique(row)) < sum(len(np.unique(part)) for part in parts)


def grafts(engine: Any, members: Integers, labels: Integers, local: Local) -> list[tuple[Integers, Floats]]:
    """Partitions in which clusters are joined and divided as the constraints have it."""
    made = [graft(row, local) for row in labels]
    if not made:
        return []
    rows = np.unique(np.array(made), axis=0)
    return [(rows, scores_of(engine, members, rows))]


def graft(row: Integers, local: Local) -> Integers:
    """A partition, as labels, with the clusters of each group joined, and those that a cut goes through divided.

    What is on no side of the cut stays with the largest.
    """
    made = row.copy()
    for x, first in zip(local.places.tolist(), local.firsts.tolist(), strict=True):
        if made[x] != made[first]:
            made[made == made[x]] = made[first]
    for places, sides in local.cuts:
        for label in divided(made, places, sides):
            here = made[places] == label
            found, counts = np.unique(sides[here], return_counts=True)
            for leaving in np.delete(found, counts.argmax()):
                made[places[here & (sides == leaving)]] = made.max() + 1
    return made


def scores_of(engine: Any, members: Integers, rows: Integers) -> Floats:
    """The scores Σ_c [log α + lgamma(|c|) + log p(c)] of partitions of some observations, as labels."""
    made = [[members[row == label] for label in np.unique(row)] for row in rows]
    distinct = {cluster.tobytes(): cluster for clusters in made for cluster in clusters}
    scores = dict(zip(distinct, engine.scores(list(distinct.values())), strict=True))
    log_alpha = np.log(engine.alpha)
    totals = [sum(scores[c.tobytes()] for c in clusters) + len(clusters) * log_alpha for clusters in made]
    return np.array(totals)
