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
learnt (:mod:`partita.smc.black_box.foresight`). Without one, p(c ∪ {x, y}) ≈ p(c ∪ {x})·p(c ∪ {y}) / p(c), x being the
latest member; where even that is unknown, a rehearsal only looks at what observations need as things stand.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from scipy.special import gammaln

from partita._core.typing import Floats, Integers
from partita.models.scoring.evaluator import Sets, ascending, key_of
from partita.smc.black_box.engine import BlackBoxEngine
from partita.smc.black_box.surrogate import tables
from partita.smc.state.index import branched
from partita.smc.state.state import assemble, dismantle, shared_of
from partita.smc.steps.step import options

EMPTY = np.zeros(1, np.int64)  # the empty cluster


class Unforeseen(Exception):
    """There is nothing to guess from."""


class Rehearsal(BlackBoxEngine):
    """A copy of an engine that guesses what its black box would say.

    Parameters
    ----------
    engine : BlackBoxEngine
        It is about to place an observation, and stays as it is.
    """

    def __init__(self, engine: BlackBoxEngine) -> None:
        parts, counts, settings, log_alpha, random, _ = dismantle(engine.state)
        copies, (index, bonds) = tuple(part.copy() for part in parts), shared_of(engine.state)
        state = assemble(copies, counts, settings, log_alpha, np.uint64(random), branched(index), bonds)
        own = {"_state": state, "surrogate": copy.copy(engine.surrogate), "_placing": (-1, -1)}
        self.__dict__ = engine.__dict__ | own
        self.present_one = engine._placing[0]
        self.wanted: dict[bytes, Integers] = {}
        self.guessed: dict[bytes, float] = {}
        self.order = np.argsort(self.numbers)  # in a replay they come in another one

    def wanted_until(self, end: int) -> Sets:
        """The sets that are not remembered and are needed until there are ``end`` observations, it seems."""
        with np.errstate(all="ignore"):  # −inf is a guess like any other
            try:
                self._go_on(min(end, len(self.numbers)))
            except Unforeseen:
                if self._placing[0] == self.n_observations:
                    self._look(range(self.n_observations + 1, min(end, len(self.numbers))))
            except Exception:
                pass  # it will fail when its turn comes, and be named
        return self.wanted

    def _go_on(self, end: int) -> None:
        """Place the present observation and those that follow, until there are ``end``."""
        if self.present_one < self.n_observations:  # it has been taken out, to come in again
            self._put_in(self.present_one, "rehearsal")
            self.look_back(self.rounds_left)
        while self.n_observations < end:
            self.run(self.n_observations + 1)

    def _look(self, observations: range) -> None:
        """Want what some observations would need if they were next."""
        for x in observations:
            self._placing = x, options(self.state, x)
            try:
                self.log_marginals_with(self.stored(x), "rehearsal")
            except Unforeseen:
                continue

    # ------------------------------------------------------------------ guesses

    def _log_marginals_joined(
        self, sets: list[Integers], ids: Integers, row: Floats, who: str, remember: bool
    ) -> Floats:
        keys, members, values = self._known(sets)
        unknown = np.isnan(values)
        if unknown.any():
            if self.surrogate is None:
                guesses = values.copy()
                for k in np.flatnonzero(unknown).tolist():  # first x alone: most often nothing is known of it
                    guesses[k] = self._as_if_independent(members[k], sets[0][0])
            else:
                fit = self._fit(ids, row, who)
                alone = tables(self.state)[2][0] if unknown[0] else values[0]
                guesses = alone + np.append(0.0, self._before(ids) + fit)
            self._guess(keys, values, guesses, unknown)
        return values

    def _log_marginals_left(
        self, sets: list[Integers], ids: Integers, x: int, before: Floats, who: str
    ) -> Floats:
        keys, _, values = self._known(sets)
        unknown = np.isnan(values)
        if unknown.any():
            if self.surrogate is None:
                raise Unforeseen
            fit = self._fit(ids, self.stored(x).data, who)
            alone = self._known([self.numbers[x : x + 1]])[2][0]
            guesses = before - fit - (tables(self.state)[2][0] if np.isnan(alone) else alone)
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

    def _before(self, ids: Integers) -> Floats:
        """log p(c) of clusters in the state."""
        clusters = tables(self.state)[1]
        return clusters["score"][ids] - gammaln(clusters["size"][ids])

    def _fit(self, ids: Integers, row: Floats, who: str) -> Floats:
        """By the surrogate, log p(x | c) − log p(x); leaves its log p(x) in the gain of the empty cluster."""
        assert self.surrogate is not None
        self.surrogate.gains(self.state, np.append(EMPTY, ids), row, who)
        _, clusters, gain, _ = tables(self.state)
        return self.foresight.trust * (gain[ids] - np.log(clusters["size"][ids]) - gain[0])

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
