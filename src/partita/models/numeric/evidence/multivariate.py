"""Normal clusters with full covariance."""

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

STEPS = 5  # of EM, at most


def cholesky(matrix: Floats) -> Floats:
    """Lower factor."""
    factor: Floats = np.linalg.cholesky(matrix).astype(np.float64, copy=False)
    return factor


class Ellipse(NamedTuple):
    """Hyperparameters of a :class:`~partita.models.numeric.multivariate.MultivariateGaussian`, in whitened units."""

    vector: Floats  # log precision, log(freedom − d + 1), log t
    mean: Floats
    factor: Floats  # of the typical covariance scale/freedom = t · factor factorᵀ


class Blobs(NamedTuple):
    """Clusters: sizes, means and matrices of squared deviations about them, in whitened units."""

    sizes: Floats  # (C, 1)
    means: Floats  # (C, d)
    scatters: Floats  # (C, d, d)


class Axes(NamedTuple):
    """The same in units of the typical covariance, each cluster along the eigenvectors of its scatter."""

    sizes: Floats  # (C, 1)
    eigenvalues: Floats  # (C, d)
    squares: Floats  # (C, d): squared deviations of its mean from the prior's
    log_volume: float  # log|factor| of the units


class MultivariateLearner(Learner):
    """Three numbers climb; the mean and the shape of the typical covariance follow by EM."""

    def __init__(self, model: Any, X: Floats, rows: Array) -> None:
        self.units = Units(X, rows)
        n, d = self.units.data.shape
        bulk = np.clip(self.units.data, -3.0, 3.0)
        correlation = (bulk.T @ bulk + d * np.eye(d)) / (n + d)  # never singular
        self.whitener: Floats = cholesky(correlation)
        self.data: Array = np.linalg.solve(self.whitener, self.units.data.T).T
        half = np.linalg.solve(self.whitener, np.diag(np.sqrt(self.units.floor)))
        self.floor: Floats = half @ half.T
        super().__init__(
            centre=np.array([TYPICAL, math.log(3.0), 0.0]),
            width=np.array([3.0, 1.5, 1.0]),
            low=np.array([PRECISION[0], TAIL[0], -5.0]),
            high=np.array([PRECISION[1], TAIL[1], 5.0]),
        )

    @property
    def directions(self) -> list[Floats]:
        """Stiffness; size, with the spread of the centres as it is; and that spread."""
        return [np.array([0.0, 1.0, 0.0]), np.array([1.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0])]

    def moved(self, found: Ellipse, step: Floats) -> Ellipse:
        return found._replace(vector=super().moved(found.vector, step))

    def log_hyperprior(self, found: Ellipse) -> float:
        return super().log_hyperprior(found.vector)

    def blurred(self, X: Floats) -> Floats:
        return self.units.blurred(X)

    def starts(self) -> list[Ellipse]:
        d = self.data.shape[1]
        return [
            Ellipse(np.array([math.log(f**2), math.log(tail), 0.0]), np.zeros(d), f * np.eye(d))
            for f in FRACTIONS
            for tail in TAILS
        ]

    def parameters(self, found: Ellipse) -> dict[str, Any]:
        units, d = self.units, self.data.shape[1]
        precision, tail, t = (float(number) for number in np.exp(found.vector))
        freedom = tail + len(units.mean) - 1.0  # of all columns; that of the d which vary is smaller
        mean = np.zeros(len(units.mean))
        scale = freedom * math.exp(TYPICAL) * np.eye(len(units.mean))
        factor = self.whitener @ found.factor
        mean[units.varies] = self.whitener @ found.mean
        scale[np.ix_(units.varies, units.varies)] = (tail + d - 1.0) * t * (factor @ factor.T)
        return {
            "freedom": freedom,
            "scale": scale * np.outer(units.scale, units.scale),
            "mean": units.mean + units.scale * mean,
            "precision": precision,
        }

    def maximise(self, labels: Integers, start: Ellipse) -> tuple[Ellipse, float]:
        clusters = self.summary(labels)
        pooled = self.pooled(clusters)
        mean, factor = clusters.means.mean(axis=0), cholesky(pooled)
        best, height = self.fit_numbers(clusters, start.vector, mean, factor)
        for _ in range(STEPS):
            mean, factor = self.expected(clusters, best, pooled)
            found, new_height = self.fit_numbers(clusters, best.vector, mean, factor)
            if not new_height > height + 0.01:
                break
            best, height = found, new_height
        return best, height

    def fit_numbers(
        self, clusters: Blobs, vector: Floats, mean: Floats, factor: Floats
    ) -> tuple[Ellipse, float]:
        """The best three numbers with this mean and this factor."""
        start = np.array([vector[0], vector[1], 0.0])
        vector, height = self.climb(self.along_axes(clusters, mean, factor), start)
        return Ellipse(vector, mean, factor), height

    def summary(self, labels: Integers) -> Blobs:
        sizes, means = moments(labels, self.data)
        deviations = self.data - means[labels]
        scatters = np.empty((*means.shape, means.shape[1]))
        for i, j in np.ndindex(scatters.shape[1:]):
            if i >= j:
                products = deviations[:, i] * deviations[:, j]
                scatters[:, i, j] = scatters[:, j, i] = np.bincount(labels, weights=products)
        return Blobs(sizes, means, scatters + sizes[:, :, None] * self.floor)

    def pooled(self, clusters: Blobs) -> Floats:
        """Covariance within clusters, as if d more points had been seen, round and of the same spread."""
        scatter, d = clusters.scatters.sum(axis=0), len(self.floor)
        freedom = len(self.data) - len(clusters.sizes)
        spread = (np.trace(scatter) / max(d, 1) + math.exp(TYPICAL)) / (freedom + 1)
        pooled: Floats = (scatter + d * spread * np.eye(d)) / (freedom + d)
        return pooled

    def expected(self, clusters: Blobs, now: Ellipse, pooled: Floats) -> tuple[Floats, Floats]:
        """A step of EM: the mean and the factor that go best with the clusters' expected Σ⁻¹ and Σ⁻¹μ. One
        more cluster, at the mean of the data and with the pooled covariance, bounds them from above, and a
        small part of that covariance from below."""
        n, means, scatters = clusters
        precision, tail, t = np.exp(now.vector)
        freedom, deviations = tail + len(pooled) - 1.0, means - now.mean
        outer = (precision * n / (precision + n) * deviations)[:, :, None] * deviations[:, None, :]
        posterior = freedom * t * (now.factor @ now.factor.T) + scatters + outer
        inverses = (freedom + n)[:, :, None] * np.linalg.inv(posterior)
        centres = (precision * now.mean + n * means) / (precision + n)
        covariance = np.linalg.inv(inverses.sum(axis=0) + np.linalg.inv(pooled))
        mean = covariance @ (inverses @ centres[:, :, None]).sum(axis=0)[:, 0]
        return mean, cholesky((len(n) + 1) * covariance + pooled / (len(self.data) + 1))

    def along_axes(self, clusters: Blobs, mean: Floats, factor: Floats) -> Axes:
        """Each cluster along its own axes, in units of ``factor``."""
        unit = np.linalg.inv(factor)
        squares = (clusters.means - mean) @ unit.T
        eigenvalues, axes = np.linalg.eigh(unit @ clusters.scatters @ unit.T)
        squares = (squares[:, None, :] @ axes)[:, 0]
        log_volume = float(np.log(np.diag(factor)).sum())
        return Axes(clusters.sizes, np.maximum(eigenvalues, 0.0), squares**2, log_volume)

    def log_evidence(self, vector: Floats, clusters: Axes) -> tuple[float, Floats]:
        """Murphy 2007, section 9. With Λ = s·I + Σᵢ λᵢ eᵢeᵢᵀ + κn/(κ+n) δδᵀ the determinant lemma gives
        log|Λ| = Σᵢ log(s + λᵢ) + log(1 + κn/(κ+n) Σᵢ δᵢ²/(s + λᵢ))."""
        n, eigenvalues, squares, log_volume = clusters
        count, d = eigenvalues.shape
        precision, tail, t = np.exp(vector)
        freedom = tail + d - 1.0
        s, weight, a = freedom * t, n / (precision + n), 0.5 * (freedom + n)
        inverse = 1.0 / (s + eigenvalues)
        distance = (squares * inverse).sum(axis=1, keepdims=True)
        inflation = 1.0 + precision * weight * distance
        log_determinant = np.log(inflation) - np.log(inverse).sum(axis=1, keepdims=True)
        steps = 0.5 * np.arange(d)
        value = (
            (gammaln(a - steps) - gammaln(0.5 * freedom - steps)).sum()
            + 0.5 * count * freedom * d * math.log(s)
            - (a * log_determinant).sum()
            + 0.5 * d * (np.log(precision / (precision + n)) - n * math.log(math.pi)).sum()
            - n.sum() * log_volume
        )
        trace = inverse.sum(axis=1, keepdims=True)
        trace -= precision * weight * (squares * inverse**2).sum(axis=1, keepdims=True) / inflation
        by_log_s = 0.5 * count * freedom * d - s * (a * trace).sum()
        by_freedom = (digamma(a - steps) - digamma(0.5 * freedom - steps)).sum()
        by_freedom = 0.5 * (by_freedom + count * d * math.log(s) - log_determinant.sum()) + by_log_s / freedom
        by_log_precision = (weight * (0.5 * d - a * precision * weight * distance / inflation)).sum()
        return float(value), np.array([by_log_precision, tail * by_freedom, by_log_s])
