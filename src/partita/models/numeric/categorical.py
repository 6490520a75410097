"""Categories, independent columns, Dirichlet priors.

An observation is d level codes; the levels of all columns are numbered through. A row holds [counts of all
levels, log-probabilities of all levels, log|c|], so that scoring is d + 1 look-ups:
log p(x|c) = Σ_d log (β_{d,x} + n_{d,x}) / (Σ_k β_{d,k} + n).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from partita._core.checks import positive
from partita._core.kernel import inner
from partita._core.typing import Floats, Integers
from partita.models.base import CompiledModel
from partita.models.numeric.evidence.categorical import CategoricalLearner
from partita.models.registry import register
from partita.models.scoring.families import Kernels


class CategoricalFamily(NamedTuple):
    """What the kernels need to know of a :class:`Categorical`."""

    first: Integers  # (d + 1,): the first level of each column, and the number of levels
    pseudo_counts: Floats  # of all levels


@inner
def gains(family, statistics, ids, first, last, data, x, out):
    """log|c| + log p(x|c) of each of many clusters."""
    levels, starts = family.pseudo_counts.shape[0], family.first
    for n in range(first, last):
        total = statistics[ids[n], 2 * levels]
        for k in range(data.shape[1]):
            total += statistics[ids[n], levels + starts[k] + int(data[x, k])]
        out[ids[n]] = total


@inner
def prepare(family, statistics, c, size):
    """Fill in the log-probabilities from the counts."""
    levels = family.pseudo_counts.shape[0]
    statistics[c, 2 * levels] = math.log(max(size, 1))
    for k in range(family.first.shape[0] - 1):
        total = 0.0 + size
        for level in range(family.first[k], family.first[k + 1]):
            total += family.pseudo_counts[level]
        log_total = math.log(total)
        for level in range(family.first[k], family.first[k + 1]):
            weight = family.pseudo_counts[level] + statistics[c, level]
            statistics[c, levels + level] = math.log(weight) - log_total


@inner
def begin(family, statistics, d):
    """Row of the empty cluster."""
    prepare(family, statistics, np.int64(0), np.int64(0))


@inner
def shift(family, statistics, child, parent, size, data, x, by):
    """Row of ``child``, of so many members: that of ``parent`` with the counts of ``x`` moved by ``by``."""
    for level in range(family.pseudo_counts.shape[0]):
        statistics[child, level] = statistics[parent, level]
    for k in range(data.shape[1]):
        statistics[child, family.first[k] + int(data[x, k])] += by
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
    for level in range(family.pseudo_counts.shape[0]):
        statistics[child, level] = statistics[first, level] + statistics[second, level]
    prepare(family, statistics, child, size_first + size_second)


@inner
def log_marginal(family, statistics, c, size, d):
    """log p(c) of the cluster's row: a Dirichlet–multinomial for each column."""
    result = 0.0
    for k in range(d):
        total = 0.0
        for level in range(family.first[k], family.first[k + 1]):
            prior = family.pseudo_counts[level]
            total += prior
            if statistics[c, level] > 0.0:
                result += math.lgamma(prior + statistics[c, level]) - math.lgamma(prior)
        result += math.lgamma(total) - math.lgamma(total + size)
    return result


@register
class Categorical(CompiledModel):
    """Categories: each column is drawn from the cluster's own distribution, with a Dirichlet prior.

    Parameters
    ----------
    n_categories : int or list of int, optional
        How many levels the columns have; observations are codes 0 … n − 1. Needed, unless ``fit_prior`` finds it.
        :class:`sklearn.preprocessing.OrdinalEncoder` makes codes of texts.
    concentration : float or list of arrays
        Dirichlet pseudo-counts: one number for every level of every column, or for each column an array of
        its levels'. Small ones make clusters pure.

    Examples
    --------
    >>> import numpy as np, partita as pt
    >>> X = np.array([[0, 1, 1], [0, 1, 1], [2, 0, 0], [2, 0, 0], [0, 1, 1]])
    >>> pt.SplitSMC(pt.Categorical(n_categories=3, concentration=0.1), alpha=1.0).fit_predict(X)
    array([0, 0, 1, 1, 0])
    """

    family_class = CategoricalFamily
    kernels = Kernels(begin, gains, extend, reduce, join, log_marginal)
    learner = CategoricalLearner

    def __init__(self, n_categories: Any = None, concentration: Any = 1.0) -> None:
        self.n_categories = n_categories
        self.concentration = concentration

    def _levels(self, n_features: int) -> list[int]:
        if self.n_categories is None:
            raise ValueError("Categorical needs n_categories; give it, or let fit_prior(X) find it")
        levels = np.asarray(self.n_categories)
        if levels.ndim > 1 or (levels.ndim == 1 and len(levels) != n_features):
            raise ValueError(f"n_categories has shape {levels.shape}, but the data have {n_features} columns")
        if not np.issubdtype(levels.dtype, np.integer) or (levels < 1).any():
            raise ValueError(f"n_categories must be whole and at least 1, got {self.n_categories!r}")
        return [int(k) for k in np.broadcast_to(levels, (n_features,))]

    def _pseudo_counts(self, n_features: int) -> list[Floats]:
        levels = self._levels(n_features)
        if np.isscalar(self.concentration) or getattr(self.concentration, "shape", None) == ():
            return [np.full(k, float(positive("concentration", self.concentration))) for k in levels]
        counts = [
            np.atleast_1d(positive(f"concentration of column {j}", c))
            for j, c in enumerate(self.concentration)
        ]
        if [len(c) for c in counts] != levels:
            raise ValueError(
                f"concentration has {[len(c) for c in counts]} levels a column, n_categories says {levels}"
            )
        return counts

    def check(self, n_features: int) -> None:
        self._pseudo_counts(n_features)

    def encode(self, X: Floats) -> Floats:
        levels = self._levels(X.shape[1])
        bad = np.argwhere((np.floor(X) != X) | (X < 0) | (np.array(levels) <= X))
        if len(bad):
            row, column = bad[0]
            raise ValueError(
                f"row {row}, column {column}: {X[row, column]:g} is not a category code from 0 "
                f"to {levels[column] - 1}; encode the data or raise n_categories"
            )
        return np.ascontiguousarray(X)

    def check_encoded(self, data: Floats) -> None:
        self.encode(data)

    def family(self, n_features: int) -> CategoricalFamily:
        first = np.cumsum([0, *self._levels(n_features)], dtype=np.int64)
        return CategoricalFamily(first, np.concatenate(self._pseudo_counts(n_features)))

    def width(self, n_features: int) -> int:
        return 2 * sum(self._levels(n_features)) + 1
