"""Refinement: other partitions of a subproblem's observations; the m best of old and new stay.

Under exact weights a score is all there is to know of a partition, so new ones may come from anywhere, and
the m best of old and new are never a worse approximation. Here they come from *replays*: the observations of
a subproblem run through an empty sampler again, in a random order. With those of its *neighbour*, the
subproblem that one of them would fall in otherwise, this also mends clusters divided between the two: such a
pair is joined where partitions that cross it hold more than 1/m of the weight, as in the merge step.

A sweep replays all subproblems alone, and then with their neighbours. Replays change nothing, so those of a compiled
model are run by kernels, several at the same time if wanted (:mod:`.replay`), and what they have found is installed
afterwards, in order: a replay is found out of date where a subproblem has changed meanwhile, and is run again. So the
result does not depend on how many worked on it.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from partita._core.kernel import kernel
from partita._core.progress import Watcher, unwatched
from partita._core.typing import Floats, Integers
from partita.models.records.tables import beside
from partita.smc.moves.install import install
from partita.smc.moves.replay import (
    CONSTRAINED,
    MISSING,
    NO_STAGE,
    NOTHING,
    best_other,
    look_alone,
    look_beside,
    size_of,
)
from partita.smc.moves.rows import best_of, product
from partita.smc.reading.particles import first_members, partitions
from partita.smc.state.access import candidates_met
from partita.smc.state.constraints import constraints_among
from partita.smc.state.state import Settings, assemble, dismantle, doubled, new_seed, shared_of

EVERY = 2**62  # observations of a replay, where there is no limit
TOGETHER = 256  # subproblems that are looked at between two reports of progress


def refine(
    engine: Any,
    of: Integers | None = None,
    most: int | None = None,
    progress: Watcher = unwatched,
    workers: int = 1,
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
        Called now and then, and in the end, with how many subproblems are done, and of how many.
    workers : int
        How many threads replay at the same time.
    """
    first = first_members(engine.state) if of is None else one_of_each(engine, of)
    engine.need([engine.subproblem_of(x) for x in first])
    seed = int(new_seed(engine.state))
    order = placed(np.random.default_rng(seed).permutation(first))
    sweep = Sweep(engine, seed, EVERY if most is None else most, of is None, workers)
    total = len(order)
    for done in range(0, total, TOGETHER):
        progress(done // 2, total)
        sweep.alone(order[done : done + TOGETHER])
    for done in range(0, total, TOGETHER):
        progress((total + done) // 2, total)
        sweep.beside(order[done : done + TOGETHER])
    progress(total, total)


def look_again(engine: Any, of: Integers, most: int) -> None:
    """Replay a little of what observations have touched, for a compiled model, in their order.

    Their subproblems are replayed alone, up to ``most`` observations in all, then with the neighbours that these
    observations have, up to as many. What has no room any more stays as it is.
    """
    firsts = one_of_each(engine, of)
    engine.need([engine.subproblem_of(x) for x in firsts])
    sweep = Sweep(engine, int(new_seed(engine.state)), most, False, 1)
    sweep.alone_in_turn(placed(firsts))
    sweep.beside_in_turn(placed(firsts))


def one_of_each(engine: Any, of: Integers) -> Integers:
    """Of some observations the first in each subproblem."""
    found: dict[int, int] = {}
    for x in of.tolist():
        found.setdefault(engine.subproblem_of(x), x)
    return np.array(list(found.values()), np.int64)


def placed(order: Integers) -> Integers:
    """Observations, and beside each its place in the order."""
    return np.column_stack([order, np.arange(len(order))])


class Finding(NamedTuple):
    """How looking at an observation's subproblem, and a neighbour of it, has ended."""

    at: int  # where among those looked at
    x: int
    place: int  # in the sweep
    status: int
    slots: list[int]
    stamps: list[int]  # when the slots were last written
    members: Integers
    labels: Integers
    scores: Floats


class Looker:
    """Somebody who replays: with a stage, and a view of the state that has working memory of its own.

    Parameters
    ----------
    engine, stage : Engine
    """

    def __init__(self, engine: Any, stage: Any) -> None:
        self.engine, self.stage = engine, stage
        self.state, self.family = engine.state, engine.family

    def stand_aside(self) -> None:
        """View the state, as it is now, while others do."""
        parts, counts, settings, log_alpha, random, _ = dismantle(self.engine.state)
        self.state = assemble(
            parts, counts, settings, log_alpha, np.uint64(random), *shared_of(self.engine.state)
        )
        self.family = self.engine.family
        if hasattr(self.family, "tables"):
            self.family = self.family._replace(tables=beside(self.family.tables))

    def look(self, kernel: Any, firsts: Integers, *options: Any) -> list[Finding]:
        """What the kernel finds of the subproblems of observations, one after the other."""
        found, at = [], 0
        while (finding := self.first(kernel, firsts, at, *options)) is not None:
            found.append(finding)
            at = finding.at + 1
        return found

    def first(self, kernel: Any, firsts: Integers, at: int, *options: Any) -> Finding | None:
        """What it finds first, of the observations from ``at`` on."""
        stage, family = self.stage, self.family
        if hasattr(family, "tables"):
            family = family._replace(tables=stage.family.tables)
        width = self.engine.widths[0]
        while True:
            status, at, *slots, members, best = kernel(
                self.state, self.family, stage.state, family, width, firsts, *options, at
            )
            slots = [s for s in slots if s >= 0]
            if status == NOTHING:
                return None
            if status != NO_STAGE:
                if status == MISSING:
                    slots = candidates_met(self.state).tolist()
                x, place = firsts[at].tolist()
                return Finding(int(at), x, place, status, slots, self.stamps(slots), members, *best)
            stage.state = doubled(stage.state, size_in(self.state, slots))

    def report(self) -> None:
        """Count what has been done on the stage for the engine."""
        self.engine.count_in(self.stage)
        shared_of(self.stage.state)[3][:] = 0

    def stamps(self, slots: list[int]) -> list[int]:
        """When slots were last written."""
        return [int(stamp_of(self.state, s)) for s in slots]


def stages_of(engine: Any, n: int) -> list[Any]:
    """So many stages for a compiled model, kept from one sweep to the next; none for another."""
    if engine.family is None:
        return []
    settings = Settings(*dismantle(engine.state)[2].tolist())._replace(rejuvenation=0, learn_alpha=0)
    engine.stages += [engine.like(settings, 0.0, 0) for _ in range(n - len(engine.stages))]
    return list(engine.stages[:n])


class Sweep:
    """A sweep of refinement under way.

    Parameters
    ----------
    engine : Engine
    seed : int
    most : int
        Observations, at most, of a replay.
    drawn : bool
        Whether the neighbour is that of any observation of a subproblem, or of the one it was named by.
    workers : int
    """

    def __init__(self, engine: Any, seed: int, most: int, drawn: bool, workers: int) -> None:
        self.engine, self.seed, self.most, self.drawn = engine, seed, most, drawn
        self.lookers = [Looker(engine, stage) for stage in stages_of(engine, workers)]

        self._alone = look_alone, self._alone_by_hand, (np.uint64(seed), most)
        self._beside = look_beside, self._beside_by_hand, (drawn, np.uint64(seed + 1), most)

    def alone(self, firsts: Integers) -> None:
        """Replay the subproblems of observations."""
        self._improve(firsts, *self._alone)

    def beside(self, firsts: Integers) -> None:
        """Replay the subproblems of observations, each with its neighbour."""
        self._improve(firsts, *self._beside)

    def alone_in_turn(self, firsts: Integers) -> None:
        """Replay the subproblems of observations in their order, ``most`` observations in all."""
        self._improve_in_turn(firsts, *self._alone)

    def beside_in_turn(self, firsts: Integers) -> None:
        """Replay the subproblems of observations in their order, each with its neighbour, ``most`` in all."""
        self._improve_in_turn(firsts, *self._beside)

    def _improve(self, firsts: Integers, kernel: Any, by_hand: Any, options: Any) -> None:
        """Look at the subproblems of observations and install what is found, until nothing is out of date."""
        if not self.lookers:
            for x, place in firsts.tolist():
                by_hand(x, place)
            return
        while len(firsts):
            again = []
            for found in self._look_at_all(kernel, firsts, *options, EVERY):
                if self.lookers[0].stamps(found.slots) != found.stamps:
                    again.append((found.x, found.place))
                else:
                    self._settle(found, by_hand)
            firsts = np.array(again, np.int64)

    def _improve_in_turn(self, firsts: Integers, kernel: Any, by_hand: Any, options: Any) -> None:
        """Look at the subproblems of observations and install what is found at once."""
        looker, totals = self.lookers[0], shared_of(self.engine.state)[3]
        at, enough = 0, int(totals[0]) + self.most
        while at < len(firsts):
            looker.state, looker.family = self.engine.state, self.engine.family
            found = looker.first(kernel, firsts, at, *options, enough - int(totals[0]))
            looker.report()
            if found is None:
                return
            self._settle(found, by_hand)
            at = found.at if found.status == MISSING else found.at + 1

    def _settle(self, found: Finding, by_hand: Any) -> None:
        """Do what a finding asks for."""
        if found.status == MISSING:
            self.engine.need(found.slots)
        elif found.status == CONSTRAINED:
            by_hand(found.x, found.place)
        else:
            install(self.engine, found.slots, found.members, found.labels, found.scores)
        self.lookers[0].state = self.engine.state

    def _look_at_all(self, kernel: Any, firsts: Integers, *options: Any) -> list[Finding]:
        """What is found, once all that is missing is there: before anything changes, as if it had always been."""
        found = self._look(kernel, firsts, *options)
        while missing := [finding for finding in found if finding.status == MISSING]:
            for finding in missing:
                self.engine.need(finding.slots)
            rest = np.array([(finding.x, finding.place) for finding in missing], np.int64)
            known = [finding for finding in found if finding.status != MISSING]
            found = sorted(known + self._look(kernel, rest, *options), key=lambda finding: finding.place)
        return found

    def _look(self, kernel: Any, firsts: Integers, *options: Any) -> list[Finding]:
        """What is found of some observations' subproblems, in their order; nothing changes meanwhile."""
        first, *others = self.lookers
        first.state, first.family = self.engine.state, self.engine.family
        if not others or len(firsts) == 1:
            found = first.look(kernel, firsts, *options)
        else:
            for looker in others:
                looker.stand_aside()
            parts = np.array_split(firsts, len(self.lookers))
            with ThreadPoolExecutor(len(self.lookers)) as pool:
                tasks = [
                    pool.submit(one.look, kernel, part, *options)
                    for one, part in zip(self.lookers, parts, strict=True)
                ]
                found = [finding for task in tasks for finding in task.result()]
        for looker in self.lookers:
            looker.report()
        return found

    def _generator(self, place: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, place])

    def _alone_by_hand(self, x: int, place: int) -> None:
        s = self.engine.subproblem_of(x)
        if 1 < size_in(self.engine.state, [s]) <= self.most:
            replay(self.engine, [s], self._generator(place))

    def _beside_by_hand(self, x: int, place: int) -> None:
        engine, generator = self.engine, self._generator(place)
        s = engine.subproblem_of(x)
        at = int(generator.choice(partitions(engine.state, s)[0])) if self.drawn else x
        other = neighbour(engine, s, at)
        if other >= 0 and size_in(engine.state, [s, other]) <= self.most:
            replay(engine, [s, other], generator)


def size_in(state: Any, subproblems: list[int]) -> int:
    """How many observations some subproblems have."""
    return sum(int(size_of(state, s)) for s in subproblems)


@kernel
def stamp_of(state, s):
    """When the slot was last written or freed."""
    return state.subproblems[s].stamp


# ---------------------------------------------------------------------- by hand: any model, and constraints


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
    return int(other_of(engine.state, engine.family, s, x))


@kernel
def other_of(state, family, s, x):
    """Given the gains of ``x``, the candidate other than ``s`` with the largest one; −1 if there is none."""
    return best_other(state, family, s, x)
