"""What there is to learn about each model's prior: a flat vector, its evidence, its hyperprior.

A *learner* is made from a model and the data. It stands between a vector of unconstrained hyperparameters
(mostly logarithms) and the model: ``starts`` lists vectors to start from, ``summary`` gathers the sufficient
statistics of the clusters, ``log_evidence`` is Σ_c log p(c) with its gradient, in closed form from a summary,
and ``parameters`` are the model's own.

Real data are standardised first and clusters are summarised by their means and squared deviations about
them, so that neither an offset nor the unit of measurement costs digits or changes the answer. The
hyperprior is normal and independent, in units of the data's own spread. It is weak, a factor of twenty
(e³) either way for the scales, and matters only where the data say nothing: all clusters single, one
cluster, n = 1. Column that never vary say nothing either, and are left out.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.special import digamma, gammaln

from partita._typing import Floats, Integers

FRACTIONS = (1.0, 0.5, 0.3, 0.1, 0.03, 0.01)  # starting spreads within clusters, as parts of the data's
TYPICAL = 2.0 * math.log(0.1)  # log-variance within clusters where the data say nothing


class Learner:
    """Base class: a normal hyperprior within bounds."""

    centre: Floats  # mode of the hyperprior
    width: Floats  # its standard deviations
    low: Floats  # bounds, beyond which digits are lost
    high: Floats

    def starts(self) -> list[Floats]:
        raise NotImplementedError

    def summary(self, labels: Integers) -> Any:
        raise NotImplementedError

    def log_evidence(self, vector: Floats, clusters: Any) -> tuple[float, Floats]:
        raise NotImplementedError

    def parameters(self, vector: Floats) -> dict[str, Any]:
        raise NotImplementedError

    def log_hyperprior(self, vector: Floats) -> tuple[float, Floats]:
        z = (vector - self.centre) / self.width
        return float(-0.5 * z @ z), -z / self.width


class Moments(NamedTuple):
    sizes: Floats  # (C, 1)
    means: Floats
    squares: Floats


class Standardised(Learner):
    def __init__(self, X, rows) -> None:
        self.mean = X.mean(axis=0)
        centred = X - self.mean
        self.mean = self.mean + centred.mean(axis=0)
        centred = X - self.mean
        peak = np.abs(centred).max(axis=0)
        self.active = peak > 1e-14 * np.abs(self.mean)
        peak = np.where(self.active, peak, 1.0)
        self.scale = np.where(self.active, np.sqrt(np.mean((centred / peak) ** 2, axis=0)), 1.0) * peak
        self.Z = (centred[rows] / self.scale)[:, self.active]
        gaps = [np.diff(np.unique(z)) for z in self.Z.T]
        self.resolution = np.array([g.min() if len(g) else 0.0 for g in gaps]) ** 2 / 12.0


def group_means(Z, labels):
    sizes = np.bincount(labels).astype(float)[:, None]
    means = (
        np.stack([np.bincount(labels, weights=z) for z in Z.T], axis=1) / sizes
        if Z.shape[1]
        else np.zeros((len(sizes), 0))
    )
    return sizes, means


class GaussianLearner(Standardised):
    def __init__(self, model, X, rows):
        super().__init__(X, rows)
        d = self.d = int(self.active.sum())
        self.centre = np.concatenate([[math.log(2.0), TYPICAL], np.zeros(d), np.full(d, TYPICAL)])
        self.width = np.concatenate([[1.5, 3.0], np.full(d, 1.0), np.full(d, 3.0)])
        self.low = np.concatenate(
            [[math.log(0.1), math.log(1e-8)], np.full(d, -10.0), np.log(np.maximum(self.resolution, 1e-12))]
        )
        self.high = np.concatenate(
            [[math.log(1e3), math.log(1e3)], np.full(d, 10.0), np.full(d, math.log(10.0))]
        )

    def starts(self):
        d = self.d
        return [
            np.clip(
                np.concatenate([[math.log(2.0), 2 * math.log(f)], np.zeros(d), np.full(d, 2 * math.log(f))]),
                self.low,
                self.high,
            )
            for f in FRACTIONS
        ]

    def summary(self, labels):
        sizes, means = group_means(self.Z, labels)
        dev = (self.Z - means[labels]) ** 2
        _, squares = group_means(dev, labels)
        return Moments(sizes, means, squares * sizes)

    def log_evidence(self, vector, clusters):
        n, means, squares = clusters
        d = self.d
        a, k = np.exp(vector[:2])
        m0, v = vector[2 : 2 + d], np.exp(vector[2 + d :])
        an, r = a + n / 2, k * n / (k + n)
        dev = means - m0
        b0 = a * v
        b = b0 + 0.5 * (squares + r * dev**2)
        logb, logb0 = np.log(b), np.log(b0)
        C = len(n)
        value = (
            d * (gammaln(an) - gammaln(a)).sum()
            + C * a * logb0.sum()
            - (an * logb).sum()
            + 0.5 * d * np.log(k / (k + n)).sum()
            - 0.5 * d * n.sum() * math.log(2 * math.pi)
        )
        ratio = an / b
        gb = C / v - ratio.sum(0)
        ga = d * (digamma(an) - digamma(a)).sum() + C * logb0.sum() - logb.sum() + (gb * v).sum()
        gk = 0.5 * d * (n / (k + n)).sum() / k - 0.5 * (ratio * dev**2 * (n / (k + n)) ** 2).sum()
        gm = (ratio * r * dev).sum(0)
        return float(value), np.concatenate([[a * ga, k * gk], gm, gb * b0])

    def parameters(self, vector):
        d = self.d
        shape, precision = map(float, np.exp(vector[:2]))
        mean, rate = self.mean.copy(), np.full(len(self.mean), math.exp(TYPICAL))
        mean[self.active] += self.scale[self.active] * vector[2 : 2 + d]
        rate[self.active] = np.exp(vector[2 + d :])
        return dict(shape=shape, precision=precision, mean=mean, rate=shape * rate * self.scale**2)
