"""Normal clusters with independent dimensions."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.special import digamma, gammaln

from partita._core.typing import Array, Floats, Integers
from partita.models.numeric.evidence.base import (
    FRACTIONS,
    PRECISION,
    TAIL,
    TAILS,
    TYPICAL,
    Learner,
    Units,
    moments,
)


class Moments(NamedTuple):
    """Clusters of a :class:`~partita.models.numeric.gaussian.Gaussian`, one a row."""

    sizes: Floats  # (C, 1)
    means: Floats  # (C, d)
    squares: Floats  # (C, d): squared deviations about the mean


class GaussianLearner(Learner):
    """Vector: log shape, log precision, mean (d), log variance (d), where variance = rate/shape."""

    def __init__(self, model: Any, X: Floats, rows: Array) -> None:
        self.units = Units(X, rows)
        d = self.n_features = self.units.data.shape[1]
        super().__init__(
            centre=np.r_[math.log(2.0), TYPICAL, np.zeros(d), np.full(d, TYPICAL)],
            width=np.r_[1.5, 3.0, np.ones(d), np.full(d, 3.0)],
            low=np.r_[TAIL[0] - math.log(2.0), PRECISION[0], np.full(d, -10.0), np.log(self.units.floor)],
            high=np.r_[TAIL[1] - math.log(2.0), PRECISION[1], np.full(d, 10.0), np.full(d, math.log(10.0))],
        )

    @property
    def directions(self) -> list[Floats]:
        """Stiffness; size, with the spread of the centres as it is; and that spread."""
        d = self.n_features
        stiffness, precision = np.eye(2 + 2 * d)[:2]
        return [stiffness, np.r_[0.0, 1.0, np.zeros(d), np.ones(d)], precision]

    def blurred(self, X: Floats) -> Floats:
        return self.units.blurred(X)

    def starts(self) -> list[Floats]:
        d = self.n_features
        logs = [(math.log(0.5 * tail), math.log(f**2)) for f in FRACTIONS for tail in TAILS]
        starts = [np.r_[log_shape, log, np.zeros(d), np.full(d, log)] for log_shape, log in logs]
        return [np.clip(start, self.low, self.high) for start in starts]

    def parameters(self, found: Floats) -> dict[str, Any]:
        units, d = self.units, self.n_features
        shape, precision = (float(number) for number in np.exp(found[:2]))
        mean, variance = np.zeros(len(units.mean)), np.full(len(units.mean), math.exp(TYPICAL))
        mean[units.varies], variance[units.varies] = found[2 : 2 + d], np.exp(found[2 + d :])
        return {
            "shape": shape,
            "rate": shape * variance * units.scale**2,
            "mean": units.mean + units.scale * mean,
            "precision": precision,
        }

    def summary(self, labels: Integers) -> Moments:
        sizes, means = moments(labels, self.units.data)
        _, variances = moments(labels, (self.units.data - means[labels]) ** 2)
        return Moments(sizes, means, sizes * (variances + self.units.floor))

    def log_evidence(self, vector: Floats, clusters: Moments) -> tuple[float, Floats]:
        """Murphy 2007, section 3: with b = rate + ½ (squares + κn/(κ+n) (mean − μ₀)²) and a = shape + n/2,
        log p(c) = log Γ(a)/Γ(shape) + shape log rate − a log b + ½ log κ/(κ+n) − n/2 log 2π, a dimension."""
        (n, means, squares), d = clusters, self.n_features
        shape, precision = np.exp(vector[:2])
        rate = shape * np.exp(vector[2 + d :])
        a, weight = shape + 0.5 * n, n / (precision + n)
        deviations = means - vector[2 : 2 + d]
        b = rate + 0.5 * (squares + precision * weight * deviations**2)
        log_rate, log_b, ratio = np.log(rate), np.log(b), a / b
        value = (
            d * (gammaln(a) - gammaln(shape)).sum()
            + len(n) * shape * log_rate.sum()
            - (a * log_b).sum()
            + 0.5 * d * (np.log(precision / (precision + n)) - n * math.log(2.0 * math.pi)).sum()
        )
        by_log_variance = len(n) * shape - rate * ratio.sum(axis=0)
        by_log_shape = by_log_variance.sum() + shape * (
            d * (digamma(a) - digamma(shape)).sum() + len(n) * log_rate.sum() - log_b.sum()
        )
        by_log_precision = 0.5 * (weight * (1.0 - precision * weight * ratio * deviations**2)).sum()
        by_mean = (precision * weight * ratio * deviations).sum(axis=0)
        return float(value), np.r_[by_log_shape, by_log_precision, by_mean, by_log_variance]
