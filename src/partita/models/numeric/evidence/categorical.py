"""Categories and binary features."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.special import digamma, gammaln
from sklearn.base import clone

from partita._core.typing import Array, Floats, Integers
from partita.models.numeric.evidence.base import Learner

STRENGTHS = (10.0, 1.0, 0.1)  # pseudo-counts of a column, to start from: the fewer, the purer the clusters


class Counts(NamedTuple):
    """Clusters of categories."""

    sizes: Integers  # (distinct, 1): the distinct sizes
    times: Integers  # (distinct,): how many clusters have each
    levels: Integers  # (r,): of each level present in each cluster,
    counts: Integers  # (r,): how often it is


class CategoricalLearner(Learner):
    """Vector: log strength (d). A column's pseudo-counts are its strength times its frequencies in the data,
    smoothed by one observation spread evenly."""

    def __init__(self, model: Any, X: Floats, rows: Array) -> None:
        given = 1 if model.n_categories is None else model._levels(X.shape[1])
        self.n_levels = [int(k) for k in np.maximum(given, np.floor(X.max(axis=0)).clip(0.0) + 1.0)]
        if max(self.n_levels) > 100 * (len(X) + 10):
            column = int(np.argmax(self.n_levels))
            raise ValueError(
                f"column {column} has codes up to {self.n_levels[column] - 1} in {len(X)} rows; encode the "
                "data as 0, 1, 2, …"
            )
        self._learn(clone(model).set_params(n_categories=self.n_levels, concentration=1.0).encode(X), rows)

    def _learn(self, codes: Floats, rows: Array) -> None:
        """Frequencies and numbers of the levels, from valid codes."""
        d = codes.shape[1]
        self.first = np.cumsum([0, *self.n_levels])[:-1]
        self.column = np.repeat(np.arange(d), self.n_levels)  # of each level
        levels = codes.astype(np.int64) + self.first
        counts = np.bincount(levels.ravel(), minlength=len(self.column))
        self.frequency = (counts + 1.0 / np.array(self.n_levels)[self.column]) / (len(codes) + 1.0)
        self.levels = levels[rows]
        super().__init__(np.zeros(d), np.full(d, 3.0), np.full(d, math.log(1e-3)), np.full(d, math.log(1e4)))

    def starts(self) -> list[Floats]:
        return [np.full(len(self.first), math.log(strength)) for strength in STRENGTHS]

    def parameters(self, found: Floats) -> dict[str, Any]:
        pseudo_counts = np.split(np.exp(found)[self.column] * self.frequency, self.first[1:])
        return {"n_categories": self.n_levels, "concentration": pseudo_counts}

    def summary(self, labels: Integers) -> Counts:
        sizes, times = np.unique(np.bincount(labels), return_counts=True)
        width = len(self.column)
        cells, counts = np.unique(labels[:, None] * width + self.levels, return_counts=True)
        return Counts(sizes[:, None], times, cells % width, counts)

    def log_evidence(self, vector: Floats, clusters: Counts) -> tuple[float, Floats]:
        """log p(c) = log Γ(s)/Γ(s + n) + Σ_level log Γ(s f + count)/Γ(s f), for each column."""
        (sizes, times, levels, counts), strength = clusters, np.exp(vector)
        column = self.column[levels]
        prior = strength[column] * self.frequency[levels]
        value = (gammaln(prior + counts) - gammaln(prior)).sum()
        value -= (times @ (gammaln(strength + sizes) - gammaln(strength))).sum()
        slopes = prior * (digamma(prior + counts) - digamma(prior))
        by_log_strength: Array = np.bincount(column, weights=slopes, minlength=len(strength))
        by_log_strength -= strength * (times @ (digamma(strength + sizes) - digamma(strength)))
        return float(value), by_log_strength


class BernoulliLearner(CategoricalLearner):
    """Categories of two levels, zero and one."""

    def __init__(self, model: Any, X: Floats, rows: Array) -> None:
        self.n_levels = [2] * X.shape[1]
        self._learn(model.encode(X), rows)

    def parameters(self, found: Floats) -> dict[str, Any]:
        zero, one = (np.exp(found)[:, None] * self.frequency.reshape(-1, 2)).T
        return {"a": one, "b": zero}
