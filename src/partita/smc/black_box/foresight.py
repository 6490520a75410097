"""How far it pays to look ahead, and how far to trust a surrogate there.

Both are learnt on the way, from how it went so far. No result depends on them, only what is asked for early.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import gammaln

from partita._core.typing import Floats, Integers
from partita.smc.black_box.surrogate import tables

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
        _, clusters, gain, _ = tables(state)
        said = gain[ids] - np.log(clusters["size"][ids]) - gain[0]
        best = int(np.argmax(said))
        numbers = said[best], after[0], after[1 + best]
        if np.isfinite(numbers).all():
            c = ids[best]
            found = after[1 + best] - after[0] - (clusters["score"][c] - gammaln(clusters["size"][c]))
            self.confirmed += said[best] * found
            self.claimed += said[best] ** 2

    @property
    def trust(self) -> float:
        """How many nats for each of the surrogate's the black box finds an observation to fit a cluster."""
        return max(self.confirmed / self.claimed, 0.0)
