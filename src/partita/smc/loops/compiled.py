"""The loop over observations for a compiled model: kernels do all of it, Python only makes room."""

from __future__ import annotations

from typing import Any
from weakref import proxy

from partita._core.typing import Integers
from partita.smc.moves.reobserve import put_back, take_out
from partita.smc.state.access import candidates_met
from partita.smc.state.clusters import StateClusters
from partita.smc.state.state import grown
from partita.smc.steps.step import ABSENT, CHANGED, DONE, stream, stream_at_random, weigh


class CompiledLoop:
    """What an engine does for a compiled model."""

    def __init__(self, engine: Any) -> None:
        # The engine owns the loop, and goes with all that it holds as soon as nobody needs it.
        self.engine: Any = proxy(engine)
        self._out: int | None = None  # an observation that is taken out, to be put back

    def settle(self) -> None:
        """Have every observation in the state, whenever a call may have been interrupted."""
        engine = self.engine
        if self._out is not None:
            while not put_back(engine._state, engine.family, self._out):
                engine._state = grown(engine._state)
            self._out = None

    def reset(self) -> None:
        """The state is another one, in which nothing is taken out."""
        self._out = None

    def observe(self, end: int) -> bool:
        """Observe what is stored up to ``end``, or until names no longer fit; returns whether they do."""
        engine = self.engine
        kernel = stream_at_random if engine.draws else stream
        while (status := kernel(engine.state, engine.family, end)) not in (DONE, CHANGED):
            self._make_ready(status)
        return bool(status == DONE)

    def weigh(self, x: int) -> None:
        """Find the candidates for observation ``x``, and the gains that it would have in their clusters."""
        while (status := weigh(self.engine.state, self.engine.family, x)) != DONE:
            self._make_ready(status)

    def _make_ready(self, status: int) -> None:
        """Do what a stream that has stopped is waiting for."""
        engine = self.engine
        if status == ABSENT:
            engine.need(candidates_met(engine.state))
        else:
            engine.state = grown(engine.state)

    def observe_again(self, x: int) -> None:
        """Take ``x`` out of its subproblem and let it come in anew."""
        engine = self.engine
        self._out = x
        while not take_out(engine._state, engine.family, x):
            engine._state = grown(engine._state)
        self.settle()

    def take_out(self, x: int) -> None:
        """Take ``x`` out of the state."""
        engine = self.engine
        while not take_out(engine.state, engine.family, x):
            engine.state = grown(engine.state)

    def fill(self, ids: Integers, members: list[Integers]) -> None:
        """Compute the statistics, sizes and scores of clusters from their members."""
        clusters = StateClusters(self.engine.state)
        scores = self.engine.scorer.scores(clusters, ids, members)
        clusters.sizes[ids] = [len(its_members) for its_members in members]
        clusters.clusters["score"][ids] = scores
