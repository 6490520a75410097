"""Looking ahead: when a black box is asked, it is asked at once for what will be needed next.

How far it pays to look ahead, and how far to trust a surrogate there, is learnt on the way, from how it went so far.
No result depends on it, only what is asked for early. What will be needed a :mod:`~partita.smc.black_box.rehearsal`
shows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from partita._core.typing import Floats, Integers
from partita.models.scoring.black_box import Asker
from partita.models.scoring.evaluator import Sets
from partita.smc.state.clusters import StateClusters

FIRST = 8.0  # the mean length of runs to begin with
WEIGHT = 0.3  # of the last run in it
PRIOR = 10.0  # square nats of evidence that the surrogate is as sure as the black box


class Foresight:
    """What engines of one black box know about looking ahead.

    Parameters
    ----------
    most : int
        For how many observations to ask at once, at most.
    """

    def __init__(self, most: int) -> None:
        self.most, self.last, self.run = most, most, FIRST
        self.confirmed = self.claimed = PRIOR

    def reach(self, since: int | None, available: int) -> int:
        """For how many of the observations available to ask now, when ``since`` so many needed no call.

        None at first. Twice the mean length of such runs: about half of what is asked for early is needed,
        even where little can be foreseen.
        """
        if since is not None:
            length = 2 * since if since >= self.last else since  # it may have gone on, for all we know
            self.run += WEIGHT * (length - self.run)
        self.last = min(max(round(2.0 * self.run), 2), self.most, available)
        return self.last

    def compare(self, state: Any, ids: Integers, after: Floats) -> None:
        """Compare what surrogate and black box say of the best cluster that is proposed."""
        clusters = StateClusters(state)
        sizes, gain = clusters.sizes[ids], clusters.gain
        said = gain[ids] - np.log(sizes) - gain[0]
        best = int(np.argmax(said))
        numbers = said[best], after[0], after[1 + best]
        if np.isfinite(numbers).all():
            found = after[1 + best] - after[0] - clusters.log_p(ids)[best]
            self.confirmed += said[best] * found
            self.claimed += said[best] ** 2

    @property
    def trust(self) -> float:
        """How many nats for each of the surrogate's the black box finds an observation to fit a cluster."""
        return max(self.confirmed / self.claimed, 0.0)


class LookingAhead(Asker):
    """Asks for what an observation needs, and at once for what those that follow will.

    Parameters
    ----------
    engine : Engine
        Whose observations they are.
    foresight : Foresight
        Engines that replay observations of this one share it.
    """

    def __init__(self, engine: Any, foresight: Foresight) -> None:
        super().__init__(engine.scorer.evaluator)
        self.engine, self.foresight = engine, foresight
        self._asked_at: int | None = (
            None  # how many observations there were at the last call that looked ahead
        )

    def joined(self, sets: list[Integers], ids: Integers, data: Floats, who: str, remember: bool) -> Floats:
        if self.engine.loop.placing[0] < 0 or self.foresight.most == 1:
            return self.evaluator.log_marginals(sets, who, remember)
        after = self.evaluator.log_marginals(sets, who, ahead=self._ahead)
        if self.engine.scorer.surrogate is not None and len(ids) > 1:
            self.foresight.compare(self.engine.state, ids[1:], after)
        return after

    def _ahead(self) -> Sets:
        """What is needed to place the present observation, and will be for those that follow."""
        from partita.smc.black_box.rehearsal import Rehearsal  # which rehearses with an engine

        engine = self.engine
        n, stored = engine.n_observations, len(engine.scorer.numbers)
        is_new = engine.loop.placing[0] == n
        rounds = engine.rejuvenation if is_new else engine.rounds_left
        if n + is_new == stored and not rounds:
            return {}  # nothing follows
        since = None if self._asked_at is None else n - self._asked_at
        self._asked_at = n
        return Rehearsal(engine).wanted_until(n + self.foresight.reach(since, max(stored - n, 1)))
