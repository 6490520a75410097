"""Which clusters a black box will be asked for next: a rehearsal of the observations to come.

An observation changes the clusters that it may join, so what the next one needs is only known when it has
been placed, and to place it takes an answer of the black box. A *rehearsal* goes on with guesses instead: on
a copy of the state it lets the observations that follow come in, with log p(c) as remembered where it is
known and guessed where it is not. What it had to guess is what to ask for, and a single call asks for all of
it. The real steps then find in the cache what they need, as long as the guesses put observations where the
answers put them; where they did not, something is missing, and a further call begins with a rehearsal from
there. It is the surrogate's part to guess well, and never to decide: the result is that of one observation at
a time, bit for bit.

With a surrogate, log p(x | c) ≈ log p(x) + b·[log p′(x | c) − log p′(x)] under its likelihood p′, where b is
learnt (:mod:`partita.smc.black_box.lookahead`). Without one, p(c ∪ {x, y}) ≈ p(c ∪ {x})·p(c ∪ {y}) / p(c), x being the
latest member; where even that is unknown, a rehearsal only looks at what observations need as things stand.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from partita._core.typing import Floats, Integers
from partita.models.scoring.black_box import Asker
from partita.models.scoring.evaluator import Sets, ascending, key_of
from partita.smc.loops.python import PythonLoop
from partita.smc.state.clusters import StateClusters
from partita.smc.state.index import branched
from partita.smc.state.names import no_names
from partita.smc.state.state import assemble, dismantle, shared_of
from partita.smc.steps.step import options


class Unforeseen(Exception):
    """There is nothing to guess from."""


class Rehearsal:
    """Lets observations come in on a copy of an engine, with guesses for what its black box would say.

    Parameters
    ----------
    engine : Engine
        It is about to place an observation, and stays as it is.
    """

    def __init__(self, engine: Any) -> None:
        self.present_one = engine.loop.placing[0]
        self.engine = branch(engine)
        self.guesser = self.engine.scorer.asker = Guesser(self.engine, engine.scorer.asker.foresight)

    def wanted_until(self, end: int) -> Sets:
        """The sets that are not remembered and are needed until there are ``end`` observations, it seems."""
        engine, last = self.engine, min(end, len(self.engine.scorer.numbers))
        with np.errstate(all="ignore"):  # −inf is a guess like any other
            try:
                self._go_on(last)
            except Unforeseen:
                if engine.loop.placing[0] == engine.n_observations:
                    self._look(range(engine.n_observations + 1, last))
            except Exception:
                pass  # it will fail when its turn comes, and be named
        return self.guesser.wanted

    def _go_on(self, end: int) -> None:
        """Place the present observation and those that follow, until there are ``end``."""
        engine = self.engine
        if self.present_one < engine.n_observations:  # it has been taken out, to come in again
            engine.loop.put_in(self.present_one, "rehearsal")
            engine.look_back(engine.rounds_left)
        while engine.n_observations < end:
            engine.run(engine.n_observations + 1)

    def _look(self, observations: range) -> None:
        """Want what some observations would need if they were next."""
        loop = self.engine.loop
        for x in observations:
            loop.placing = x, options(self.engine.state, x)
            try:
                loop.weigh_stored(x, "rehearsal")
            except Unforeseen:
                continue


def branch(engine: Any) -> Any:
    """A copy of an engine with a state of its own, which shares what does not change."""
    parts, counts, settings, log_alpha, random, _ = dismantle(engine.state)
    copies, (index, constraints, _, totals) = tuple(part.copy() for part in parts), shared_of(engine.state)
    shared = branched(index), constraints, no_names(), totals.copy()
    other = object.__new__(type(engine))
    state = assemble(copies, counts, settings, log_alpha, np.uint64(random), *shared)
    own = {"_state": state, "scorer": copy.copy(engine.scorer), "follows": False}
    other.__dict__ = engine.__dict__ | own
    other.loop = PythonLoop(other)
    return other


class Guesser(Asker):
    """Answers as remembered, and where nothing is, with a guess; notes what it had to guess.

    Parameters
    ----------
    engine : Engine
        A copy, on which observations come in.
    foresight : Foresight
        How far to trust the surrogate.
    """

    def __init__(self, engine: Any, foresight: Any) -> None:
        super().__init__(engine.scorer.evaluator)
        self.engine, self.foresight = engine, foresight
        self.wanted: dict[bytes, Integers] = {}
        self.guessed: dict[bytes, float] = {}
        self.numbers: Integers = engine.scorer.numbers
        self.order = np.argsort(self.numbers)  # in a replay they come in another one

    def joined(self, sets: list[Integers], ids: Integers, data: Floats, who: str, remember: bool) -> Floats:
        keys, members, values = self._known(sets)
        unknown = np.isnan(values)
        if unknown.any():
            if self.engine.scorer.surrogate is None:
                guesses = values.copy()
                for k in np.flatnonzero(unknown).tolist():  # first x alone: most often nothing is known of it
                    guesses[k] = self._as_if_independent(members[k], sets[0][0])
            else:
                clusters, others = StateClusters(self.engine.state), ids[1:]
                fit = self._fit(clusters, others, data, who)
                alone = clusters.gain[0] if unknown[0] else values[0]
                guesses = alone + np.append(0.0, clusters.log_p(others) + fit)
            self._guess(keys, values, guesses, unknown)
        return values

    def left(self, sets: list[Integers], ids: Integers, x: int, before: Floats, who: str) -> Floats:
        keys, _, values = self._known(sets)
        unknown = np.isnan(values)
        if unknown.any():
            if self.engine.scorer.surrogate is None:
                raise Unforeseen
            clusters = StateClusters(self.engine.state)
            fit = self._fit(clusters, ids, clusters.data[x], who)
            alone = self._known([self.numbers[x : x + 1]])[2][0]
            guesses = before - fit - (clusters.gain[0] if np.isnan(alone) else alone)
            self._guess(keys, values, guesses, unknown)
        return values

    def _known(self, sets: list[Integers]) -> tuple[list[bytes], list[Integers], Floats]:
        """Keys and members of sets, and log p(c) as remembered or guessed before; NaN where neither."""
        members = ascending(sets)
        keys = [key_of(numbers) for numbers in members]
        values = np.empty(len(sets))
        for k, key in enumerate(keys):
            value = self.evaluator.cache.get(key)
            if value is None:
                self.wanted[key] = members[k]
                value = self.guessed.get(key, np.nan)
            values[k] = value
        return keys, members, values

    def _guess(self, keys: list[bytes], values: Floats, guesses: Floats, unknown: Any) -> None:
        """Fill guesses in."""
        values[unknown] = np.where(guesses[unknown] < np.inf, guesses[unknown], -np.inf)
        for k in np.flatnonzero(unknown).tolist():
            self.guessed[keys[k]] = float(values[k])

    def _fit(self, clusters: StateClusters, ids: Integers, row: Floats, who: str) -> Floats:
        """log p(x | c) − log p(x), as the surrogate's gains would have it."""
        both, gain = np.append(0, ids), clusters.gain
        gain[both] = self.engine.scorer.surrogate.gains(clusters, both, row, who)
        return self.foresight.trust * (gain[ids] - np.log(clusters.sizes[ids]) - gain[0])

    def _as_if_independent(self, members: Integers, y: int) -> float:
        """log p(c) as if the latest member and ``y`` were independent given the others."""
        value = self._recalled(members)
        if not np.isnan(value):
            return value
        others = members[members != y]
        if not len(others):
            raise Unforeseen
        latest = np.argmax(self.order[np.searchsorted(self.numbers, others, sorter=self.order)])
        rest = np.delete(others, latest)
        given = self._recalled(others) - (self._recalled(rest) if len(rest) else 0.0)
        if np.isnan(given):
            raise Unforeseen
        return given + self._as_if_independent(members[members != others[latest]], y)

    def _recalled(self, members: Integers) -> float:
        """log p(c) as it is remembered, or has been guessed; NaN if neither."""
        key = key_of(members)
        value = self.evaluator.cache.get(key)
        return self.guessed.get(key, np.nan) if value is None else value
