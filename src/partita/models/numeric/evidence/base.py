"""What learners share: the climb, and units for real numbers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from scipy.optimize import minimize

from partita._core.typing import Array, Floats, Integers

FRACTIONS = (1.0, 0.5, 0.3, 0.1, 0.03, 0.01)  # spreads to start from: within clusters / of all the data
TAILS = (3.0, 30.0)  # degrees of freedom to start from: how alike the clusters' spreads are
TYPICAL = math.log(0.1**2)  # a cluster's log variance, and log precision, if the data say nothing
PRECISION = (math.log(1e-20), math.log(1e3))  # bounds of its logarithm
TAIL = (math.log(1.0), math.log(2e3))  # of the log degrees of freedom of Student's t: Cauchy to almost normal


class Learner(ABC):
    """A vector of hyperparameters, a normal hyperprior within bounds, and the climb to its best value.

    Parameters
    ----------
    centre, width : arrays
        The hyperprior's mode and standard deviations.
    low, high : arrays
        Bounds.
    """

    def __init__(self, centre: Floats, width: Floats, low: Floats, high: Floats) -> None:
        self.centre, self.width, self.low, self.high = centre, width, low, np.maximum(low, high)

    @property
    def directions(self) -> list[Floats]:
        """Ways to move the vector in that change how clusters come out: all of it, up or down."""
        return [np.ones(len(self.centre))]

    def moved(self, found: Any, step: Floats) -> Any:
        """Hyperparameters a step away, within bounds."""
        return np.clip(found + step, self.low, self.high)

    def log_hyperprior(self, found: Any) -> float:
        """Its logarithm, up to a constant."""
        return -0.5 * float(np.sum(((found - self.centre) / self.width) ** 2))

    def blurred(self, X: Floats) -> Floats:
        """The data to cluster: values spread over the steps that they are known to."""
        return X

    @abstractmethod
    def starts(self) -> list[Any]:
        """Hyperparameters to start from, of ever smaller clusters."""

    @abstractmethod
    def parameters(self, found: Any) -> dict[str, Any]:
        """The model's parameters."""

    @abstractmethod
    def summary(self, labels: Integers) -> Any:
        """Sufficient statistics of clusters numbered 0 … C − 1."""

    @abstractmethod
    def log_evidence(self, vector: Floats, clusters: Any) -> tuple[float, Floats]:
        """Σ_c log p(c) from a summary, and its gradient."""

    def maximise(self, labels: Integers, start: Any) -> tuple[Any, float]:
        """The best hyperparameters for these clusters, and their log evidence + log hyperprior."""
        return self.climb(self.summary(labels), start)

    def climb(self, clusters: Any, start: Floats) -> tuple[Floats, float]:
        """The vector of highest log evidence + log hyperprior uphill from ``start``, and that height."""

        def depth(vector: Floats) -> tuple[float, Floats]:
            value, gradient = self.log_evidence(vector, clusters)
            z = (vector - self.centre) / self.width
            return 0.5 * float(z @ z) - value, z / self.width - gradient

        found = minimize(
            depth,
            np.clip(start, self.low, self.high),
            jac=True,
            method="L-BFGS-B",
            bounds=np.column_stack([self.low, self.high]),
            options={"ftol": 1e-11, "gtol": 1e-6},
        )
        return found.x, -float(found.fun)


class Units:
    """Columns in units of their own spread, insensitive to outliers; those that never vary are left out."""

    def __init__(self, X: Floats, rows: Array) -> None:
        low, self.mean, high = np.percentile(X, [16.0, 50.0, 84.0], axis=0)  # a normal's σ to either side
        spread = 0.5 * high - 0.5 * low
        self.varies = X.min(axis=0) < X.max(axis=0)
        for column in np.flatnonzero(self.varies & (spread == 0.0)):
            spread[column] = (X[:, column] - self.mean[column]).std()
        self.scale: Floats = np.where(self.varies, spread, 1.0)
        for column in np.flatnonzero((self.scale < 1e-150) | (self.scale > 1e150)):
            raise ValueError(f"column {column} has a spread of {self.scale[column]:g}; rescale it")
        data = ((X[rows] - self.mean) / self.scale)[:, self.varies]
        self.data: Floats = np.clip(data, -1e6, 1e6)  # farther outliers would make matrices singular
        steps = [np.diff(np.unique(column)).min(initial=2.0) for column in self.data.T]
        self.floor: Floats = np.maximum(np.square(steps) / 12.0, 1e-20)  # of the variance within clusters

    def blurred(self, X: Floats) -> Floats:
        """The data as given, less the farthest outliers, each value spread evenly over its step."""
        noise = np.random.default_rng(0).uniform(-1.0, 1.0, self.data.shape) * np.sqrt(3.0 * self.floor)
        blurred = X.copy()
        blurred[:, self.varies] = self.mean[self.varies] + self.scale[self.varies] * (self.data + noise)
        return blurred


def moments(labels: Integers, data: Floats) -> tuple[Floats, Floats]:
    """Sizes (C, 1) and means (C, d) of clusters numbered 0 … C − 1."""
    sizes = np.bincount(labels).astype(np.float64)[:, None]
    sums = np.empty((len(sizes), data.shape[1]))
    for column in range(data.shape[1]):
        sums[:, column] = np.bincount(labels, weights=data[:, column])
    return sizes, sums / sizes
