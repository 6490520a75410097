"""Normal clusters with independent dimensions.

The kernels see observations standardised by the prior, so that the prior mean is 0 and the prior scale the
same in each dimension, and neither an offset nor the unit of measurement costs digits.

A row holds [constant, a + ½, location (d), 1/spread (d), mean (d), sum of squared deviations (d), the share
of them that removals have left since the row was built]; means and squared deviations are updated by
Welford's recurrences, so that data far from the origin lose no digits.
The predictive is Student's t (Murphy 2007, "Conjugate Bayesian analysis of the Gaussian distribution"):
log|c| + log p(x|c) = constant − (a + ½) Σ_d log(1 + (x_d − location_d)² / spread_d).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from partita._core.checks import per_feature, positive, positive_number
from partita._core.kernel import inner
from partita._core.typing import Floats, Integers
from partita.models.base import CompiledModel
from partita.models.numeric.evidence.gaussian import GaussianLearner
from partita.models.numeric.grid import grid_keys, reach
from partita.models.registry import register
from partita.models.scoring.families import Kernels


class GaussianFamily(NamedTuple):
    """What the kernels need to know of a :class:`Gaussian`."""

    shape: float  # and the rate: the prior variance is standardised to rate/shape = 1
    precision: float
    jacobian: float  # −Σ log scale


@inner
def gains(family, statistics, ids, first, last, data, x, out):
    """log|c| + log p(x|c) of each of many clusters."""
    d = data.shape[1]
    for n in range(first, last):
        c = ids[n]
        product, logs = 1.0, 0.0
        for k in range(d):
            z = data[x, k] - statistics[c, 2 + k]
            product *= 1.0 + z * z * statistics[c, 2 + d + k]
            if product > 1e100:  # one logarithm serves all dimensions, short of overflow
                logs += math.log(product)
                product = 1.0
        out[c] = statistics[c, 0] - statistics[c, 1] * (logs + math.log(product))


@inner
def enclose(family, statistics, ids, first, last, hulls, s, d):
    """Hull of many clusters: [highest constant, least a + ½, box of locations (2d), least 1/spread (d)]."""
    hulls[s, 0], hulls[s, 1] = -np.inf, np.inf
    for n in range(first, last):
        c = ids[n]
        hulls[s, 0] = max(hulls[s, 0], statistics[c, 0])
        hulls[s, 1] = min(hulls[s, 1], statistics[c, 1])
        for k in range(d):
            location, inverse = statistics[c, 2 + k], statistics[c, 2 + d + k]
            hulls[s, 2 + k] = location if n == first else min(hulls[s, 2 + k], location)
            hulls[s, 2 + d + k] = location if n == first else max(hulls[s, 2 + d + k], location)
            hulls[s, 2 + 2 * d + k] = inverse if n == first else min(hulls[s, 2 + 2 * d + k], inverse)


@inner
def ceiling(family, hulls, s, data, x):
    """The gain of a cluster at the nearest place of the hull, as wide, as high and as heavy-tailed as any."""
    d = data.shape[1]
    product, logs = 1.0, 0.0
    for k in range(d):
        z = max(hulls[s, 2 + k] - data[x, k], data[x, k] - hulls[s, 2 + d + k], 0.0)
        product *= 1.0 + z * z * hulls[s, 2 + 2 * d + k]
        if product > 1e100:
            logs += math.log(product)
            product = 1.0
    return hulls[s, 0] - hulls[s, 1] * (logs + math.log(product))


@inner
def prepare(family, statistics, c, size, d):
    """Fill in the predictive's terms from the means and squared deviations of ``size`` members."""
    shape, precision = family.shape, family.precision
    posterior_precision = precision + size
    a = shape + 0.5 * size
    constant = family.jacobian + d * (math.lgamma(a + 0.5) - math.lgamma(a) - 0.5 * math.log(math.pi))
    constant += math.log(max(size, 1))
    for k in range(d):
        mean, squares = statistics[c, 2 + 2 * d + k], statistics[c, 2 + 3 * d + k]
        b = shape + 0.5 * (squares + precision * size / posterior_precision * mean * mean)
        inverse = posterior_precision / (2.0 * b * (posterior_precision + 1.0))
        constant += 0.5 * math.log(inverse)
        statistics[c, 2 + k] = size / posterior_precision * mean
        statistics[c, 2 + d + k] = inverse
    statistics[c, 0] = constant
    statistics[c, 1] = a + 0.5


@inner
def begin(family, statistics, d):
    """Row of the empty cluster."""
    statistics[0, 2 + 4 * d] = 1.0
    prepare(family, statistics, np.int64(0), np.int64(0), d)


@inner
def extend(family, statistics, child, parent, size, data, x):
    """Row of the cluster with ``x`` added."""
    d = data.shape[1]
    means, squares = 2 + 2 * d, 2 + 3 * d
    for k in range(d):
        mean = statistics[parent, means + k]
        step = data[x, k] - mean
        mean += step / (size + 1)
        statistics[child, squares + k] = statistics[parent, squares + k] + step * (data[x, k] - mean)
        statistics[child, means + k] = mean
    statistics[child, 2 + 4 * d] = statistics[parent, 2 + 4 * d]
    prepare(family, statistics, child, size + 1, d)


@inner
def reduce(family, statistics, child, parent, size, data, x):
    """Row of the cluster with ``x`` taken out; false where removals have cancelled more than a digit."""
    d = data.shape[1]
    means, squares = 2 + 2 * d, 2 + 3 * d
    left = 1.0
    for k in range(d):
        mean, before = statistics[parent, means + k], statistics[parent, squares + k]
        rest = mean + (mean - data[x, k]) / max(size - 1, 1)
        after = before - (data[x, k] - mean) * (data[x, k] - rest)
        if before > 0.0:
            left = min(left, after / before)
        statistics[child, means + k] = rest
        statistics[child, squares + k] = after
    left *= statistics[parent, 2 + 4 * d]
    statistics[child, 2 + 4 * d] = left
    if size <= 2 or left < 0.1:
        return False
    prepare(family, statistics, child, size - 1, d)
    return True


@inner
def join(family, statistics, child, first, second, size_first, size_second, d):
    """Row of the union of two clusters."""
    size = size_first + size_second
    means, squares, share = 2 + 2 * d, 2 + 3 * d, 2 + 4 * d
    for k in range(d):
        step = statistics[second, means + k] - statistics[first, means + k]
        inside = statistics[first, squares + k] + statistics[second, squares + k]
        statistics[child, squares + k] = inside + step * step * (size_first * size_second / size)
        statistics[child, means + k] = statistics[first, means + k] + step * size_second / size
    statistics[child, share] = min(statistics[first, share], statistics[second, share])
    prepare(family, statistics, child, size, d)


@inner
def log_marginal(family, statistics, c, size, d):
    """log p(c) of the cluster's row (Murphy 2007, eq. 95); the prepared 1/spread has the posterior rates."""
    shape, precision = family.shape, family.precision
    posterior_precision = precision + size
    a = shape + 0.5 * size
    log_rates = d * math.log(posterior_precision / (2.0 * (posterior_precision + 1.0)))
    for k in range(d):
        log_rates -= math.log(statistics[c, 2 + d + k])
    result = size * family.jacobian + d * (math.lgamma(a) - math.lgamma(shape) + shape * math.log(shape))
    result += 0.5 * d * (math.log(precision / posterior_precision) - size * math.log(2.0 * math.pi))
    return result - a * log_rates


@register
class Gaussian(CompiledModel):
    """Normal clusters with independent dimensions and a normal–inverse-gamma prior.

    Within a cluster x_d ~ N(μ_d, σ_d²), with 1/σ_d² ~ Gamma(shape, rate_d) and
    μ_d ~ N(mean_d, σ_d²/precision).

    Parameters
    ----------
    shape : float
        Shape of the prior of 1/σ²: the higher, the more alike are the clusters' spreads.
    rate : float or array of shape (d,)
        Its rate; a typical variance within a cluster is rate/shape.
    mean : float or array of shape (d,)
        Where cluster centres lie on average.
    precision : float
        How much less the points of a cluster vary than the centres: the ratio of the two variances.

    Examples
    --------
    >>> import numpy as np, partita as pt
    >>> X = np.array([[0.0], [0.1], [9.0], [9.2], [0.2]])
    >>> pt.SplitSMC(pt.Gaussian(shape=2.0, rate=0.1, precision=0.01), alpha=1.0).fit_predict(X)
    array([0, 0, 1, 1, 0])
    """

    family_class = GaussianFamily
    kernels = Kernels(begin, gains, extend, reduce, join, log_marginal, enclose, ceiling)
    learner = GaussianLearner

    def __init__(self, shape: float = 2.0, rate: Any = 0.5, mean: Any = 0.0, precision: float = 0.01) -> None:
        self.shape = shape
        self.rate = rate
        self.mean = mean
        self.precision = precision

    def check(self, n_features: int) -> None:
        positive_number("shape", self.shape)
        positive("rate", per_feature("rate", self.rate, n_features))
        positive_number("precision", self.precision)
        if not np.isfinite(per_feature("mean", self.mean, n_features)).all():
            raise ValueError(f"mean must be finite, got {self.mean!r}")

    def _scale(self, n_features: int) -> Floats:
        scale: Floats = np.sqrt(per_feature("rate", self.rate, n_features) / self.shape)
        return scale

    def encode(self, X: Floats) -> Floats:
        d = X.shape[1]
        return np.ascontiguousarray((X - per_feature("mean", self.mean, d)) / self._scale(d))

    def keys(self, X: Floats) -> tuple[Integers, Integers]:
        return grid_keys("Gaussian", self.encode(X), reach(2.0 * self.shape))

    def family(self, n_features: int) -> GaussianFamily:
        jacobian = -np.log(self._scale(n_features)).sum()
        return GaussianFamily(float(self.shape), float(self.precision), float(jacobian))

    def width(self, n_features: int) -> int:
        return 3 + 4 * n_features
