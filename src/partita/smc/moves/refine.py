"""Refinement: look again at what has been seen (DESIGN, "Refinement").

Under exact weights any partition of a subproblem's observations has a computable score, so the m best of old
and new partitions are never a worse approximation. *Replay* finds new ones by running the observations of a
subproblem through the sampler again, in a random order. Run together with those of its *neighbour*, the
subproblem that one of them would fall in otherwise, this also mends clusters divided between the two: such a
pair is joined where partitions that cross it hold more than 1/m of the weight, as in the merge step.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from partita._core.kernel import kernel
from partita._core.progress import Watcher, unwatched
from partita._core.typing import Floats, Integers
from partita.smc.moves.install import install
from partita.smc.moves.rows import best_of, product
from partita.smc.reading.particles import first_members, partitions
from partita.smc.state.constraints import constraints_among
from partita.smc.state.state import Settings, dismantle, new_seed
from partita.smc.steps.update import find_bounds, score_late


def refine(
    engine: Any,
    of: Integers | None = None,
    most: int | None = None,
    progress: Watcher = unwatched,
) -> None:
    """One sweep: replay subproblems, alone and with their neighbours, in random order.

    Parameters
    ----------
    engine : Engine
    of : int array, optional
        Observations whose subproblems are replayed, each once, and the neighbours that these observations
        have; all subproblems, unless given.
    most : int, optional
        How many observations a replay may have; where it would have more there is none. So a sweep of n
        subproblems observes 2·n·most again, at most.
    progress : callable
        Called before each subproblem, and in the end, with how many are done, and of how many.
    """
    first = first_members(engine.state) if of is None else one_of_each(engine, of)
    engine.need([engine.subproblem_of(x) for x in first])
    generator = np.random.default_rng(int(new_seed(engine.state)))
    for done, x in enumerate(generator.permutation(first)):
        progress(done, len(first))
        s = engine.subproblem_of(x)
        if size_of(engine.state, s) > 1 and may_replay(engine, [s], most):
            replay(engine, [s], generator)
            s = engine.subproblem_of(x)
        at = int(x) if of is not None else int(generator.choice(partitions(engine.state, s)[0]))
        other = neighbour(engine, s, at)
        if other >= 0 and may_replay(engine, [s, other], most):
            replay(engine, [s, other], generator)
    progress(len(first), len(first))


def one_of_each(engine: Any, of: Integers) -> Integers:
    """Of some observations the first in each subproblem."""
    found: dict[int, int] = {}
    for x in of.tolist():
        found.setdefault(engine.subproblem_of(x), x)
    return np.array(list(found.values()), np.int64)


def may_replay(engine: Any, subproblems: list[int], most: int | None) -> bool:
    """Whether subproblems have no more observations than a replay may have."""
    return most is None or sum(size_of(engine.state, s) for s in subproblems) <= most


@kernel
def size_of(state, s):
    """How many observations a subproblem has."""
    sub, n = state.subproblems[s], 0
    for j in range(sub.columns):
        n += state.blocks[state.cells[sub.cells + j]].size
    return n


def replay(engine: Any, subproblems: list[int], generator: np.random.Generator) -> None:
    """Run the observations of one or two subproblems again, and keep the best partitions of old and new."""
    old = [partitions(engine.state, s) for s in subproblems]
    members = np.concatenate([observations for observations, _, _ in old])
    order = generator.permutation(len(members))
    labels, scores = run_again(engine, members[order], generator)
    labels[:, order] = labels.copy()
    if len(old) == 1:
        improve(engine, subproblems, members, old[0][1:], (labels, scores))
        return
    border = len(old[0][0])
    crosses = np.array([np.isin(row[:border], row[border:]).any() for row in labels], bool)
    if crosses.any():
        together = product([part[1:] for part in old], engine.particles)
        improve(engine, subproblems, members, together, (labels[crosses], scores[crosses]))


def run_again(
    engine: Any, members: Integers, generator: np.random.Generator, constraints: Any = None
) -> tuple[Integers, Floats]:
    """The best partitions of ``members`` that a fresh sampler finds in this order, and their scores.

    They conform to ``constraints`` among the observations of the engine; to its own, unless others are given.
    """
    _, _, settings, log_alpha, _, _ = dismantle(engine.state)
    quiet = Settings(*settings.tolist())._replace(rejuvenation=0, learn_alpha=0)
    seed = int(generator.integers(2**31))
    fresh = engine.like(quiet, log_alpha, seed)
    fresh.replayed = members
    fresh.constraints = constraints_among(engine.constraints if constraints is None else constraints, members)
    fresh.run(fresh.store(engine.stored(members)))
    engine.count_in(fresh)
    found = [partitions(fresh.state, fresh.subproblem_of(x)) for x in first_members(fresh.state)]
    labels, scores = product([part[1:] for part in found], engine.particles)
    order = np.concatenate([observations for observations, _, _ in found])
    labels[:, order] = labels.copy()
    return labels, scores


def improve(
    engine: Any,
    subproblems: list[int],
    members: Integers,
    old: tuple[Integers, Floats],
    new: tuple[Integers, Floats],
) -> None:
    """Replace subproblems by the m best of old and new partitions, where new ones matter.

    For one subproblem any new partition among the m best does; to join two, those that cross the border must
    hold more than 1/m of the weight, or the best of all be one of them.
    """
    labels, scores, best = best_of([old, new], engine.particles, engine.longest_odds)
    weight = np.exp(scores[best] - scores[best[0]])
    share = weight[best >= len(old[0])].sum() / weight.sum()
    enough = 0.0 if len(subproblems) == 1 else 1.0 / engine.particles
    if share > enough or best[0] >= len(old[0]):
        install(engine, subproblems, members, labels[best], scores[best])


def neighbour(engine: Any, s: int, x: int) -> int:
    """The candidate other than ``s`` with the best cluster for observation ``x``; −1 if there is none."""
    engine.weigh(x)
    return int(best_other(engine.state, engine.family, s, x))


@kernel
def best_other(state, family, s, x):
    """Given the gains of ``x``, the candidate other than ``s`` with the largest one; −1 if there is none."""
    find_bounds(state)
    best, decided = -1, False
    while not decided:
        best = -1
        for q in range(state.n_candidates):
            other = state.candidates[q]
            if other != s and (best < 0 or state.bound[other] > state.bound[best]):
                best = other
        decided = best < 0 or not state.late[best]
        if not decided:
            score_late(state, family, x, best)
    return best
