"""Binary features, independent columns, Beta priors.

A row holds [log|c| + log-probability of all zeros, counts of ones (d), log-odds (d)]; scoring sums over the
ones of x: log p(x|c) = Σ_d log (b_d + n − n_d)/(a_d + b_d + n) + Σ_{d: x_d = 1} log-odds_d.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from partita._core.checks import per_feature, positive
from partita._core.kernel import inner
from partita._core.typing import Floats
from partita.models.base import CompiledModel
from partita.models.numeric.evidence.categorical import BernoulliLearner
from partita.models.registry import register
from partita.models.scoring.families import Kernels


class BernoulliFamily(NamedTuple):
    """What the kernels need to know of a :class:`Bernoulli`: one pseudo-count a feature."""

    a: Floats
    b: Floats


@inner
def gains(family, statistics, ids, first, last, data, x, out):
    """log|c| + log p(x|c) of each of many clusters."""
    d = data.shape[1]
    for n in range(first, last):
        total = statistics[ids[n], 0]
        for k in range(d):
            if data[x, k] != 0.0:
                total += statistics[ids[n], 1 + d + k]
        out[ids[n]] = total


@inner
def prepare(family, statistics, c, size):
    """Fill in the log-odds from the counts of ones."""
    d = family.a.shape[0]
    zeros = math.log(max(size, 1))
    for k in range(d):
        one = family.a[k] + statistics[c, 1 + k]
        zero = family.b[k] + size - statistics[c, 1 + k]
        log_zero = math.log(zero)
        zeros += log_zero - math.log(one + zero)
        statistics[c, 1 + d + k] = math.log(one) - log_zero
    statistics[c, 0] = zeros


@inner
def begin(family, statistics, d):
    """Row of the empty cluster."""
    prepare(family, statistics, np.int64(0), np.int64(0))


@inner
def shift(family, statistics, child, parent, size, data, x, by):
    """Row of ``child``, of so many members: that of ``parent`` with the ones of ``x`` counted ``by`` more."""
    for k in range(data.shape[1]):
        statistics[child, 1 + k] = statistics[parent, 1 + k] + by * data[x, k]
    prepare(family, statistics, child, size)


@inner
def extend(family, statistics, child, parent, size, data, x):
    """Row of the cluster with ``x`` added."""
    shift(family, statistics, child, parent, size + 1, data, x, 1.0)


@inner
def reduce(family, statistics, child, parent, size, data, x):
    """Row of the cluster with ``x`` taken out: counts are whole, so nothing is lost."""
    shift(family, statistics, child, parent, size - 1, data, x, -1.0)
    return True


@inner
def join(family, statistics, child, first, second, size_first, size_second, d):
    """Row of the union of two clusters."""
    for k in range(d):
        statistics[child, 1 + k] = statistics[first, 1 + k] + statistics[second, 1 + k]
    prepare(family, statistics, child, size_first + size_second)


@inner
def log_marginal(family, statistics, c, size, d):
    """log p(c) of the cluster's row: a ratio of Beta functions for each column."""
    result = 0.0
    for k in range(d):
        a, b, ones = family.a[k], family.b[k], statistics[c, 1 + k]
        result += math.lgamma(a + ones) - math.lgamma(a) + math.lgamma(b + size - ones) - math.lgamma(b)
        result += math.lgamma(a + b) - math.lgamma(a + b + size)
    return result


@register
class Bernoulli(CompiledModel):
    """Binary features: each column is 1 with the cluster's own probability, with a Beta(a, b) prior.

    Parameters
    ----------
    a, b : float or array of shape (d,)
        Pseudo-counts of ones and of zeros. Small ones make clusters pure.

    Examples
    --------
    >>> import numpy as np, partita as pt
    >>> X = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1]])
    >>> pt.SplitSMC(pt.Bernoulli(a=0.2, b=0.2), alpha=1.0).fit_predict(X)
    array([0, 1, 0, 1])
    """

    family_class = BernoulliFamily
    kernels = Kernels(begin, gains, extend, reduce, join, log_marginal)
    learner = BernoulliLearner

    def __init__(self, a: Any = 1.0, b: Any = 1.0) -> None:
        self.a = a
        self.b = b

    def check(self, n_features: int) -> None:
        positive("a", per_feature("a", self.a, n_features))
        positive("b", per_feature("b", self.b, n_features))

    def encode(self, X: Floats) -> Floats:
        bad = np.argwhere((X != 0) & (X != 1))
        if len(bad):
            row, column = bad[0]
            raise ValueError(f"row {row}, column {column}: {X[row, column]:g} is neither 0 nor 1")
        return np.ascontiguousarray(X)

    def check_encoded(self, data: Floats) -> None:
        self.encode(data)

    def family(self, n_features: int) -> BernoulliFamily:
        return BernoulliFamily(per_feature("a", self.a, n_features), per_feature("b", self.b, n_features))

    def width(self, n_features: int) -> int:
        return 1 + 2 * n_features
