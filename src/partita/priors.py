"""The prior over partitions."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from partita._core.concentration import expected_clusters
from partita._core.typing import Floats, Integers


@dataclass(frozen=True)
class DirichletProcess:
    """Partitions under a Dirichlet process: Ewens' sampling formula (paper, eq. 3).

    Parameters
    ----------
    alpha : float
        Concentration: the larger, the more clusters.

    Examples
    --------
    >>> import partita as pt
    >>> prior = pt.DirichletProcess(alpha=2.0)
    >>> round(prior.expected_clusters(100), 2)
    8.39
    >>> prior.sample(8, random_state=0)
    array([0, 0, 0, 0, 1, 2, 1, 1])
    """

    alpha: float

    def __post_init__(self) -> None:
        number = isinstance(self.alpha, int | float | np.number) and not isinstance(self.alpha, bool)
        if not (number and 0.0 < self.alpha < math.inf):
            raise ValueError(f"alpha must be a positive number, got {self.alpha!r}")

    def log_density(self, sizes: Iterable[int]) -> float:
        """Log-probability of a partition into clusters of these sizes.

        Examples
        --------
        >>> import math, partita as pt
        >>> prior = pt.DirichletProcess(1.0)
        >>> round(math.exp(prior.log_density([2])), 6)  # two observations together
        0.5
        """
        counts = [int(size) for size in sizes]
        inside = len(counts) * math.log(self.alpha) + sum(map(math.lgamma, counts))
        return inside + math.lgamma(self.alpha) - math.lgamma(self.alpha + sum(counts))

    def expected_clusters(self, n_observations: int) -> float:
        """Mean of the number of clusters of so many observations."""
        return float(expected_clusters(self.alpha, n_observations))

    def sample(self, n_observations: int, random_state: int | np.random.Generator | None = None) -> Integers:
        """Labels of a partition drawn at random, 0..K−1 in order of first appearance.

        An observation joins the cluster of one of the i before it, each with probability 1/(α + i), or opens
        a new one.
        """
        rng = np.random.default_rng(random_state)
        places = rng.random(n_observations) * (self.alpha + np.arange(n_observations))
        labels, count = np.empty(n_observations, np.int64), 0
        for x, place in enumerate(places):
            if place < x:
                labels[x] = labels[int(place)]
            else:
                labels[x], count = count, count + 1
        return labels

    def weights(self, n_sticks: int, random_state: int | np.random.Generator | None = None) -> Floats:
        """Shares of the first clusters in random order of size, by breaking a stick; scaled to sum to one."""
        rng = np.random.default_rng(random_state)
        broken = rng.beta(1.0, self.alpha, size=n_sticks)
        left = np.concatenate([[1.0], np.cumprod(1.0 - broken[:-1])])
        shares: Floats = broken * left / np.dot(broken, left)
        return shares
