"""A Markov chain over partitions: the loop below :class:`~partita.offline.gibbs.Gibbs`.

One sweep draws every observation's cluster anew, in random order, given all others. With compiled models a sweep is
one kernel (:mod:`partita.offline.sweeps`); with others the same sweep runs here, a few vectorised calls of the model
an observation. Both use the same random numbers in the same way.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaln

from partita._core.typing import Floats, Integers
from partita.models.base import CompiledModel, Model
from partita.models.scoring.partition import new_partition, put_in, take_out
from partita.models.scoring.scored import ScoredPartition
from partita.offline.sweeps import NEGLIGIBLE, exact_sweep, log_density, metropolis_sweep, rows_of


class CompiledChain:
    """A chain whose model, and surrogate if any, are compiled."""

    def __init__(
        self,
        model: CompiledModel,
        surrogate: CompiledModel | None,
        X: Floats,
        labels: Integers,
        log_alpha: float,
    ) -> None:
        self.partition, self.log_alpha = new_partition(labels), log_alpha
        self.rows = rows_of(model, X, self.partition)
        self.surrogate = None if surrogate is None else rows_of(surrogate, X, self.partition)

    def sweep(self, order: Integers, uniforms: Floats) -> None:
        """Update every observation once, in this order."""
        if self.surrogate is None:
            exact_sweep(self.rows, self.partition, self.log_alpha, order, uniforms)
        else:
            metropolis_sweep(self.rows, self.surrogate, self.partition, self.log_alpha, order, uniforms)

    def score(self) -> float:
        """Σ_c [log α + lgamma(|c|) + log p(c)]."""
        return float(log_density(self.rows, self.partition, self.log_alpha))


class GeneralChain:
    """A chain of which not all models are compiled."""

    def __init__(
        self, model: Model, surrogate: Model | None, X: Floats, labels: Integers, log_alpha: float
    ) -> None:
        self.partition, self.log_alpha = new_partition(labels), log_alpha
        self.target = ScoredPartition(model, X, self.partition)
        self.surrogate = None if surrogate is None else ScoredPartition(surrogate, X, self.partition)

    def sweep(self, order: Integers, uniforms: Floats) -> None:
        """Update every observation once, in this order."""
        for x, u in zip(order.tolist(), uniforms.tolist(), strict=True):
            if self.surrogate is None:
                self._draw(x, u[0])
            else:
                self._propose(self.surrogate, x, u[0], u[1])

    def _draw(self, x: int, u: float) -> None:
        """Draw the cluster of ``x`` from its conditional distribution (Neal 2000, algorithm 3)."""
        self.target.shrink(take_out(self.partition, x), x)
        used = self.partition.used
        c = put_in(self.partition, x, int(used[draw(self._weights(self.target, x, used), u)]))
        self.target.grow(c, x)

    def _propose(self, surrogate: ScoredPartition, x: int, u: float, v: float) -> None:
        """Propose the cluster of ``x`` from the surrogate's conditional distribution, accept by the model.

        The model is asked for nothing but the old and the new cluster, with ``x`` and without.
        """
        origin = take_out(self.partition, x)
        surrogate.shrink(origin, x)
        used = self.partition.used
        proposal = self._weights(surrogate, x, used)
        old = origin if self.partition.size[origin] else 0
        k = draw(proposal, u)
        new = int(used[k])
        moves = new != old
        if moves:
            self.target.shrink(origin, x)
            target = self._weights(self.target, x, np.array([old, new]))
            ratio = target[1] - target[0] - (proposal[k] - proposal[self.partition.place[old]])
            if not math.log1p(-v) < ratio:
                new = old
        c = put_in(self.partition, x, new)
        surrogate.grow(c, x)
        if moves:
            self.target.grow(c, x)

    def _weights(self, scored: ScoredPartition, x: int, ids: Integers) -> Floats:
        """Log-weights of putting ``x`` into each of many clusters (paper, eq. 1)."""
        return scored.gains(x, ids) + np.where(ids == 0, self.log_alpha, 0.0)

    def score(self) -> float:
        """Σ_c [log α + lgamma(|c|) + log p(c)]."""
        sizes = self.partition.size[self.partition.used[1:]]
        return float((self.log_alpha + gammaln(sizes) + self.target.log_likelihood()).sum())


def draw(log_weights: Floats, u: float) -> int:
    """An index with probability proportional to its weight, by a uniform number."""
    away = log_weights - log_weights.max()
    ends = np.cumsum(np.where(away > NEGLIGIBLE, np.exp(away), 0.0))
    # Rounding must not draw beyond the last that has any weight.
    return min(int(np.searchsorted(ends, u * ends[-1], side="right")), int(np.searchsorted(ends, ends[-1])))


def chain(
    model: Model, surrogate: Model | None, X: Floats, labels: Integers, log_alpha: float
) -> CompiledChain | GeneralChain:
    """The fastest chain for these models, at the partition with these labels."""
    if isinstance(model, CompiledModel) and (surrogate is None or isinstance(surrogate, CompiledModel)):
        return CompiledChain(model, surrogate, X, labels, log_alpha)
    return GeneralChain(model, surrogate, X, labels, log_alpha)
