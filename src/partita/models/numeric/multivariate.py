"""Normal clusters with full covariance.

The kernels see observations whitened by the prior, so that the prior mean is 0 and the prior scale matrix a
multiple of the identity.

A row holds [constant, (ν + d)/2, mean (d), scatter (d(d+1)/2), location (d), Cholesky factor (d(d+1)/2), the
share of the scatter that removals have left since the row was built], matrices as their lower triangles, by
rows. With A = (κ+1)/κ · Λ the predictive is the multivariate t
(Murphy 2007): log|c| + log p(x|c) = constant − (ν + d)/2 · log(1 + (x − location)ᵀ A⁻¹ (x − location)).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from partita._core.checks import per_feature, positive, positive_number
from partita._core.kernel import inner
from partita._core.typing import Array, Floats, Integers
from partita.models.base import CompiledModel
from partita.models.numeric.evidence.multivariate import MultivariateLearner
from partita.models.numeric.grid import grid_keys, reach
from partita.models.registry import register
from partita.models.scoring.families import Kernels

FARTHEST = 1e150  # squares of what is farther away overflow as clusters grow and shrink


class MultivariateFamily(NamedTuple):
    """What the kernels need to know of a :class:`MultivariateGaussian`."""

    freedom: float  # and the scale: the prior covariance is standardised to scale/freedom = 1
    precision: float
    jacobian: float  # −log|whitening|


@inner
def gains(family, statistics, ids, first, last, data, x, out):
    """log|c| + log p(x|c) of each of many clusters."""
    d = data.shape[1]
    location = 2 + d + d * (d + 1) // 2
    factor = location + d
    solved = np.empty(d)
    for n in range(first, last):
        c = ids[n]
        quadratic = 0.0
        for i in range(d):  # forward substitution with the factor
            at = factor + i * (i + 1) // 2
            z = data[x, i] - statistics[c, location + i]
            for j in range(i):
                z -= statistics[c, at + j] * solved[j]
            z /= statistics[c, at + i]
            solved[i] = z
            quadratic += z * z
        out[c] = statistics[c, 0] - statistics[c, 1] * math.log1p(quadratic)


@inner
def enclose(family, statistics, ids, first, last, hulls, s, d):
    """Hull of many clusters: [highest constant, least (ν + d)/2, largest trace of A, box of locations]."""
    location = 2 + d + d * (d + 1) // 2
    factor = location + d
    hulls[s, 0], hulls[s, 1], hulls[s, 2] = -np.inf, np.inf, 0.0
    for n in range(first, last):
        c = ids[n]
        hulls[s, 0] = max(hulls[s, 0], statistics[c, 0])
        hulls[s, 1] = min(hulls[s, 1], statistics[c, 1])
        trace = 0.0
        for k in range(factor, factor + d * (d + 1) // 2):
            trace += statistics[c, k] * statistics[c, k]
        hulls[s, 2] = max(hulls[s, 2], trace)
        for k in range(d):
            value = statistics[c, location + k]
            hulls[s, 3 + k] = value if n == first else min(hulls[s, 3 + k], value)
            hulls[s, 3 + d + k] = value if n == first else max(hulls[s, 3 + d + k], value)


@inner
def ceiling(family, hulls, s, data, x):
    """The gain of a cluster at the nearest place of the hull; no eigenvalue of A is above its trace."""
    d = data.shape[1]
    squared = 0.0
    for k in range(d):
        z = max(hulls[s, 3 + k] - data[x, k], data[x, k] - hulls[s, 3 + d + k], 0.0)
        squared += z * z
    return hulls[s, 0] - hulls[s, 1] * math.log1p(squared / hulls[s, 2])


@inner
def prepare(family, statistics, c, size, d):
    """Fill in the predictive's terms from the mean and scatter of ``size`` members."""
    freedom, precision = family.freedom + size, family.precision
    posterior_precision = precision + size
    ratio = (posterior_precision + 1.0) / posterior_precision
    scatter = 2 + d
    location = scatter + d * (d + 1) // 2
    factor = location + d
    shrink = precision * size / posterior_precision
    log_determinant = 0.0
    for i in range(d):
        statistics[c, location + i] = size / posterior_precision * statistics[c, 2 + i]
        row = i * (i + 1) // 2
        for j in range(i + 1):
            value = statistics[c, scatter + row + j]
            value += shrink * statistics[c, 2 + i] * statistics[c, 2 + j]
            if i == j:
                value += family.freedom
            value *= ratio
            other = j * (j + 1) // 2
            for k in range(j):
                value -= statistics[c, factor + row + k] * statistics[c, factor + other + k]
            if i == j:
                # Exactly, no pivot is below the prior's share of it; rounding may say otherwise.
                value = math.sqrt(max(value, family.freedom * ratio))
                log_determinant += 2.0 * math.log(value)
            else:
                value /= statistics[c, factor + other + j]
            statistics[c, factor + row + j] = value
    tail = freedom - d + 1.0
    statistics[c, 1] = 0.5 * (tail + d)
    statistics[c, 0] = (
        family.jacobian
        + math.log(max(size, 1))
        + math.lgamma(0.5 * (tail + d))
        - math.lgamma(0.5 * tail)
        - 0.5 * (d * math.log(math.pi) + log_determinant)
    )


@inner
def begin(family, statistics, d):
    """Row of the empty cluster."""
    statistics[0, 2 + 2 * d + d * (d + 1)] = 1.0
    prepare(family, statistics, np.int64(0), np.int64(0), d)


@inner
def extend(family, statistics, child, parent, size, data, x):
    """Row of the cluster with ``x`` added."""
    d = data.shape[1]
    scatter = 2 + d
    weight = size / (size + 1.0)
    for i in range(d):
        row = scatter + i * (i + 1) // 2
        step = data[x, i] - statistics[parent, 2 + i]
        for j in range(i + 1):
            statistics[child, row + j] = statistics[parent, row + j] + weight * step * (
                data[x, j] - statistics[parent, 2 + j]
            )
    for i in range(d):
        mean = statistics[parent, 2 + i]
        statistics[child, 2 + i] = mean + (data[x, i] - mean) / (size + 1)
    share = 2 + 2 * d + d * (d + 1)
    statistics[child, share] = statistics[parent, share]
    prepare(family, statistics, child, size + 1, d)


@inner
def reduce(family, statistics, child, parent, size, data, x):
    """Row of the cluster with ``x`` taken out; false where removals have cancelled more than a digit."""
    d = data.shape[1]
    scatter = 2 + d
    factor, share = scatter + d * (d + 1) // 2 + d, 2 + 2 * d + d * (d + 1)
    if size <= 2:
        return False
    weight = (size - 1.0) / size
    rest, solved = np.empty(d), np.empty(d)
    leverage = 0.0
    for i in range(d):
        mean = statistics[parent, 2 + i]
        rest[i] = mean + (mean - data[x, i]) / (size - 1)
        at = factor + i * (i + 1) // 2
        z = data[x, i] - rest[i]
        for j in range(i):
            z -= statistics[parent, at + j] * solved[j]
        solved[i] = z / statistics[parent, at + i]
        leverage += solved[i] * solved[i]
    posterior_precision = family.precision + size
    left = 1.0 - weight * leverage * (posterior_precision + 1.0) / posterior_precision
    left *= statistics[parent, share]
    if not left >= 0.1:  # nor where it overflows
        return False
    statistics[child, share] = left
    for i in range(d):
        at = scatter + i * (i + 1) // 2
        for j in range(i + 1):
            statistics[child, at + j] = statistics[parent, at + j] - weight * (data[x, i] - rest[i]) * (
                data[x, j] - rest[j]
            )
    for i in range(d):
        statistics[child, 2 + i] = rest[i]
    prepare(family, statistics, child, size - 1, d)
    return True


@inner
def join(family, statistics, child, first, second, size_first, size_second, d):
    """Row of the union of two clusters."""
    size = size_first + size_second
    scatter, share = 2 + d, 2 + 2 * d + d * (d + 1)
    step = np.empty(d)
    for i in range(d):
        step[i] = statistics[second, 2 + i] - statistics[first, 2 + i]
    for i in range(d):
        row = scatter + i * (i + 1) // 2
        for j in range(i + 1):
            inside = statistics[first, row + j] + statistics[second, row + j]
            statistics[child, row + j] = inside + step[i] * step[j] * (size_first * size_second / size)
    for i in range(d):
        statistics[child, 2 + i] = statistics[first, 2 + i] + step[i] * size_second / size
    statistics[child, share] = min(statistics[first, share], statistics[second, share])
    prepare(family, statistics, child, size, d)


@inner
def log_marginal(family, statistics, c, size, d):
    """log p(c) of the cluster's row (Murphy 2007, eq. 266); the prepared factor has the posterior scale."""
    freedom, precision = family.freedom, family.precision
    posterior_precision = precision + size
    factor = 2 + 2 * d + d * (d + 1) // 2
    log_determinant = -d * math.log((posterior_precision + 1.0) / posterior_precision)
    gammas = 0.0
    for i in range(d):
        log_determinant += 2.0 * math.log(statistics[c, factor + i * (i + 1) // 2 + i])
        gammas += math.lgamma(0.5 * (freedom + size - i)) - math.lgamma(0.5 * (freedom - i))
    result = size * family.jacobian + gammas - 0.5 * (freedom + size) * log_determinant
    result += 0.5 * d * (freedom * math.log(freedom) - size * math.log(math.pi))
    return result + 0.5 * d * math.log(precision / posterior_precision)


@register
class MultivariateGaussian(CompiledModel):
    """Normal clusters with any covariance and a normal–inverse-Wishart prior.

    Within a cluster x ~ N(μ, Σ), with Σ ~ InverseWishart(freedom, scale) and μ ~ N(mean, Σ/precision).

    Parameters
    ----------
    freedom : float, optional
        Degrees of freedom ν, above d − 1; d + 2 by default. The higher, the more alike the covariances.
    scale : float or array of shape (d, d)
        Scale matrix; a number stands for that multiple of the identity. Covariances within clusters are
        about scale/(freedom − d − 1).
    mean : float or array of shape (d,)
        Where cluster centres lie on average.
    precision : float
        How much less the points of a cluster vary than the centres: the ratio of the two variances.

    Examples
    --------
    >>> import numpy as np, partita as pt
    >>> X = np.array([[0.0, 0.0], [1.0, 1.1], [9.0, 0.1], [2.0, 2.0], [10.0, 0.9]])
    >>> pt.SplitSMC(pt.MultivariateGaussian(precision=0.01), alpha=1.0).fit_predict(X)
    array([0, 0, 1, 0, 1])
    """

    family_class = MultivariateFamily
    kernels = Kernels(begin, gains, extend, reduce, join, log_marginal, enclose, ceiling)
    learner = MultivariateLearner

    def __init__(
        self, freedom: float | None = None, scale: Any = 1.0, mean: Any = 0.0, precision: float = 0.01
    ) -> None:
        self.freedom = freedom
        self.scale = scale
        self.mean = mean
        self.precision = precision

    def _freedom(self, n_features: int) -> float:
        return n_features + 2.0 if self.freedom is None else float(self.freedom)

    def _factor(self, n_features: int) -> Floats:
        """Cholesky factor of the prior's typical covariance, scale/freedom."""
        scale = np.asarray(self.scale, dtype=np.float64)
        matrix = scale * np.eye(n_features) if scale.ndim == 0 else scale
        if matrix.shape != (n_features, n_features):
            raise ValueError(f"scale has shape {matrix.shape}, but the data have {n_features} columns")
        if not (np.isfinite(matrix).all() and np.allclose(matrix, matrix.T)):
            raise ValueError("scale must be a finite, symmetric matrix")
        try:
            factor: Array = np.linalg.cholesky(matrix / self._freedom(n_features))
        except np.linalg.LinAlgError:
            raise ValueError("scale must be positive definite") from None
        return factor

    def check(self, n_features: int) -> None:
        positive("freedom", self._freedom(n_features), n_features - 1.0)
        positive_number("precision", self.precision)
        if not np.isfinite(per_feature("mean", self.mean, n_features)).all():
            raise ValueError(f"mean must be finite, got {self.mean!r}")
        self._factor(n_features)

    def encode(self, X: Floats) -> Floats:
        d = X.shape[1]
        factor, encoded = self._factor(d), X - per_feature("mean", self.mean, d)
        # Forward substitution, column by column: LAPACK's result for a row depends on the rows beside it.
        for i in range(d):
            for j in range(i):
                encoded[:, i] -= factor[i, j] * encoded[:, j]
            encoded[:, i] /= factor[i, i]
        far = np.flatnonzero(~(np.abs(encoded) < FARTHEST).all(axis=1))
        if len(far):
            raise ValueError(
                f"row {far[0]}: its density under the model is not finite in every cluster; rescale the data or fit "
                "the model's prior to them"
            )
        return np.ascontiguousarray(encoded)

    def keys(self, X: Floats) -> tuple[Integers, Integers]:
        # One dimension's variance is inverse-gamma, with d − 1 degrees of freedom fewer than the matrix.
        whole = self._freedom(X.shape[1])
        freedom = max(whole - X.shape[1] + 1.0, 2.0)
        return grid_keys("MultivariateGaussian", self.encode(X), reach(freedom) * math.sqrt(whole / freedom))

    def family(self, n_features: int) -> MultivariateFamily:
        jacobian = -np.log(np.diag(self._factor(n_features))).sum()
        return MultivariateFamily(self._freedom(n_features), float(self.precision), float(jacobian))

    def width(self, n_features: int) -> int:
        return 3 + 2 * n_features + n_features * (n_features + 1)
