"""Conditioning a posterior on constraints: partitions that break them go, the best that keep them come in.

Of the subproblems that new constraints touch, all that must share a cluster are taken as one. Old particles that
keep the constraints stay candidates. *Grafts* of those that do not, in which the clusters of observations that must
be together are joined, and *replays*, in which the observations come again under the constraints, those that have
some first, are the new ones. The m best of all are kept: exact where m is no less than the number of partitions.
"""

from __future__ import annotations

from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from partita._core.typing import Array, Floats, Integers
from partita.smc.moves.install import install
from partita.smc.moves.refine import run_again
from partita.smc.moves.rows import best_of, product
from partita.smc.reading.particles import partitions
from partita.smc.state.constraints import constraints_among, pairs_of, parts_of
from partita.smc.state.state import new_seed

REPLAYS = 4


def constrain(engine: Any, constraints: Any, touched: Integers) -> None:
    """Replace the constraints, and bring the subproblems of the observations ``touched`` in line with them.

    These are observations whose constraints have changed; those that are not in the state are passed over.
    """
    before, after = (set(chain(*pairs_of(given))) for given in (engine.constraints, constraints))
    engine.constraints = constraints
    found = affected(engine, touched)
    if not found:
        return  # and nothing is drawn: to load constraints is to change nothing
    generator = np.random.default_rng(int(new_seed(engine.state)))
    for subproblems in found:
        together = reconsider(engine, subproblems, generator)
        if not together and before - after:  # what was ruled out is possible again, in each by itself
            for s in subproblems:
                reconsider(engine, [s], generator)


def affected(engine: Any, touched: Integers) -> list[list[int]]:
    """Lists of subproblems to be taken as one: those of observations touched together, or of one group."""
    observations, groups, _ = parts_of(engine.constraints)
    present = set(engine.present.tolist())
    companions: dict[int, list[int]] = {}
    for x, group in zip(observations.tolist(), groups.tolist(), strict=True):
        if x in present:
            companions.setdefault(group, []).append(x)
    group_of = dict(zip(observations.tolist(), groups.tolist(), strict=True))
    found: list[set[int]] = []
    for pair in touched.reshape(-1, 2).tolist():
        reached = {y for x in pair if x in present for y in (x, *companions.get(group_of.get(x, -1), ()))}
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


def conforms(row: Integers, observations: Integers, groups: Integers, apart: Integers) -> bool:
    """Whether a partition, as labels, keeps the constraints."""
    cluster: dict[int, int] = {}
    for x, group in zip(observations.tolist(), groups.tolist(), strict=True):
        if cluster.setdefault(group, row[x]) != row[x]:
            return False
    return all(
        first not in cluster or second not in cluster or cluster[first] != cluster[second]
        for first, second in apart.tolist()
    )


def crosses(row: Integers, border: Integers) -> bool:
    """Whether a partition, as labels, has a cluster on both sides of a border."""
    parts = np.split(row, border)
    return len(np.unique(row)) < sum(len(np.unique(part)) for part in parts)


def grafts(
    engine: Any, members: Integers, labels: Integers, local: tuple[Integers, Integers, Integers]
) -> list[tuple[Integers, Floats]]:
    """Partitions in which the clusters of observations that must be together are joined."""
    observations, groups, _ = local
    joined = []
    for row in labels:
        graft = row.copy()
        for group in np.unique(groups):
            held = np.unique(graft[observations[groups == group]])
            graft[np.isin(graft, held)] = held[0]
        if conforms(graft, *local):
            joined.append(graft)
    if not joined:
        return []
    rows = np.unique(np.array(joined), axis=0)
    return [(rows, np.array([score_of(engine, members, row) for row in rows]))]


def score_of(engine: Any, members: Integers, row: Integers) -> float:
    """The score Σ_c [log α + lgamma(|c|) + log p(c)] of a partition of some observations, as labels."""
    clusters = [members[row == label] for label in np.unique(row)]
    return float(sum(engine.scores(clusters)) + len(clusters) * np.log(engine.alpha))
