"""What a model is to the samplers.

A model says how likely a *set* of observations is, p(c), with the parameters of the cluster integrated out.
It depends on the set alone, never on the order, or refinement and removal would break.

To write your own, subclass :class:`Model` and give two vectorised methods: additive statistics of each
observation, and log p(c) from the summed statistics and the sizes of many clusters. The built-in models are
:class:`CompiledModel` instead: they bring compiled kernels, so that the loop over a
stream's observations never leaves machine code.
"""

from __future__ import annotations

import copy
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, clone

from partita._core.typing import Array, Floats, Integers
from partita.models import registry


class Model(BaseEstimator):  # type: ignore[misc]
    """Base class of cluster likelihoods, and the way to write your own.

    Examples
    --------
    Counts that are Poisson within a cluster, with a Gamma prior on the rate:

    >>> import numpy as np, partita as pt
    >>> from scipy.special import gammaln
    >>> class Poisson(pt.Model):
    ...     def __init__(self, shape=1.0, rate=1.0):
    ...         self.shape, self.rate = shape, rate
    ...     def statistics(self, X):  # additive: the count, and the log of its factorial
    ...         return np.column_stack([X[:, 0], gammaln(X[:, 0] + 1.0)])
    ...     def log_marginal(self, totals, sizes):
    ...         shape, rate = self.shape + totals[:, 0], self.rate + sizes
    ...         return (gammaln(shape) - gammaln(self.shape) - totals[:, 1]
    ...                 + self.shape * np.log(self.rate) - shape * np.log(rate))
    >>> X = np.array([[1], [50], [2], [48], [0], [53]])
    >>> pt.SplitSMC(Poisson(1.0, 0.05), alpha=1.0).fit_predict(X)
    array([0, 1, 0, 1, 0, 1])
    """

    reads_rows: ClassVar[bool] = True  # else observations are what ``validate`` takes: texts, records, …

    @property
    def expected_size(self) -> float | None:
        """How many observations a cluster has, on average, where the model knows: ``alpha="auto"`` stays near it."""
        return None

    @property
    def size_belief(self) -> float:
        """How far ``alpha="auto"`` believes ``expected_size``: 0 not at all, 1 whatever clusters are found."""
        return 0.75

    def validate(self, X: Any) -> list[Any]:
        """Observations that are not rows of numbers, each as it should be; ValueError names the row."""
        raise TypeError(f"{type(self).__name__} must define validate(X)")

    def statistics(self, X: Array) -> Floats:
        """Additive statistics of the observations ``X``, shape (n, d): an array of shape (n, k), of finite numbers.

        The number of observations is not among them: :meth:`log_marginal` is told it.
        """
        raise TypeError(f"{type(self).__name__} must define statistics(X)")

    def log_marginal(self, totals: Floats, sizes: Floats) -> Floats:
        """log p(c) of r clusters, shape (r,), from their summed statistics, shape (r, k), and sizes, shape (r,).

        −inf stands for what is impossible. A factor that each observation brings alone, such as 1/x! of a count, is the
        same in every clustering: without it scores are other ones, and no probability.
        """
        raise TypeError(f"{type(self).__name__} must define log_marginal(totals, sizes)")

    def check(self, n_features: int) -> None:
        """Raise ValueError if the hyperparameters make no sense for data of this width."""

    def keys(self, X: Any) -> tuple[Integers, Integers]:
        """What earlier observations are found by, for ``keys="auto"``.

        Two observations that may well be of one cluster should share a key, two that cannot should not. The
        keys of a row depend on that row alone.

        Returns
        -------
        starts : int64 array of shape (n + 1,)
            Where the keys of each row start, and where those of the last one end.
        keys : int64 array
            The keys, as 64-bit codes, of one row after the other.
        """
        raise ValueError(
            f"{type(self).__name__} has no keys of its own: give a function from an observation to its keys, "
            "keys=..., or define keys(X)"
        )

    def log_likelihood(self, clusters: Any) -> Floats:
        """log p(c) of clusters, with the parameters of each integrated out.

        Parameters
        ----------
        clusters : list of clusters
            Each a list of observations, or an array of rows; none may be empty.

        Returns
        -------
        array of shape (n,)
            −inf for what is impossible under the model; ValueError for an observation whose density is not finite
            even as a cluster of its own.

        Examples
        --------
        How much better two points are explained by one cluster than by two:

        >>> import partita as pt
        >>> together, first, second = pt.Gaussian().log_likelihood([[[0.0], [0.2]], [[0.0]], [[0.2]]])
        >>> round(float(together - first - second), 2)
        2.03
        """
        from partita.models.scoring.scored import log_likelihood  # which is made of models

        return log_likelihood(self, clusters)

    def encoded_width(self, X: Any) -> int:
        """How many numbers :meth:`encode` makes of an observation like the first one."""
        return self.encode(X[:1]).shape[1]

    def encode(self, X: Any) -> Floats:
        """Validated observations as the sampler stores them."""
        encoded = np.ascontiguousarray(self.statistics(X), dtype=np.float64)
        if encoded.ndim != 2 or len(encoded) != len(X):
            raise ValueError(
                f"{type(self).__name__}.statistics must return shape ({len(X)}, k), got {encoded.shape}"
            )
        bad = np.flatnonzero(~np.isfinite(encoded).all(axis=1))
        if len(bad):
            raise ValueError(f"row {bad[0]}: {type(self).__name__}.statistics is not finite")
        return encoded


class CompiledModel(Model):
    """A model with a compiled family: its kernels, its learner and its file format in one class.

    ``@register`` makes it known; docs/extending.md has a whole one. To define: ``family_class`` and ``kernels``,
    ``family``, ``width`` and ``encode``; ``check`` and ``learner`` as a rule.
    """

    family_class: ClassVar[type]  # a named tuple of hyperparameters, which chooses the kernels
    kernels: ClassVar[Any]  # see :class:`partita.models.scoring.families.Kernels`
    learner: ClassVar[Any] = (
        None  # see :class:`partita.models.numeric.evidence.base.Learner`; None: no fit_prior
    )
    always_possible: ClassVar[bool] = False  # whether every observation has a finite density under the prior

    @classmethod
    def _entries(cls) -> list[tuple[dict[Any, Any], Any]]:
        """Where ``register`` writes it: its family, and its name in files."""
        for name, has in (("family_class", "_fields"), ("kernels", "log_marginal")):
            if not hasattr(getattr(cls, name, None), has):
                what = "a NamedTuple class" if has == "_fields" else "partita.Kernels(…)"
                raise TypeError(f"{cls.__name__}.{name} must be {what}: see docs/extending.md")
        return [(registry.FAMILIES, cls.family_class), (registry.MODELS, cls.__name__)]

    def family(self, n_features: int) -> Any:
        """The hyperparameters as the kernels read them: an instance of ``family_class``.

        Where it has a field ``tables``, these are new and empty, and belong to whom the family is given.
        """
        raise TypeError(f"{type(self).__name__} must define family(n_features)")

    def after_encoding(self, family: Any) -> Any:
        """The same family, where :meth:`encode` may have learnt new words since it was made."""
        return family

    def width(self, n_features: int) -> int:
        """Length of a cluster's row of statistics."""
        raise TypeError(f"{type(self).__name__} must define width(n_features)")

    def to_json(self) -> dict[str, Any]:
        """What a file keeps of the model, as JSON gives it back: hyperparameters, and all that was learnt."""
        kept: dict[str, Any] = plain(self.get_params(deep=False))
        return kept

    @classmethod
    def from_json(cls, kept: dict[str, Any]) -> Any:
        """The model that :meth:`to_json` was called on; an error of any kind if it cannot be."""
        return cls(**kept)

    def kept_tables(self, family: Any) -> tuple[Integers, Floats, Integers]:
        """Of a family with tables: their contents, as plain arrays."""
        raise TypeError(
            f"{type(self).__name__} must define kept_tables(family) and with_tables(family, pool, sums, free)"
        )

    def with_tables(self, family: Any, pool: Integers, sums: Floats, free: Integers) -> Any:
        """The family with tables of such contents."""
        raise TypeError(
            f"{type(self).__name__} must define kept_tables(family) and with_tables(family, pool, sums, free)"
        )

    def held(self, X: Any) -> list[Any]:
        """What to hold on to of validated observations that are not rows of numbers."""
        return list(X)

    def check_encoded(self, data: Floats) -> None:
        """Raise ValueError for data that :meth:`encode` cannot have returned, though they are finite."""

    def fit_prior(self, X: Array, labels: Array | None = None) -> Any:
        """Hyperparameters by empirical Bayes.

        Parameters
        ----------
        X : array of shape (n, d)
            A sample of the data; a few hundred rows are enough.
        labels : array of shape (n,), optional
            True clusters. With them the hyperparameters maximise the evidence Σ_c log p(c). Without, the
            sampler clusters a sample with many hyperparameters, and those with which it does best win, by a
            mean of the joint density of data and clusters and the prequential density of the data
            (docs/how/beyond-the-paper.md has the formula).

        Returns
        -------
        model
            A new model of the same class; this one is left as it is.

        Examples
        --------
        >>> import numpy as np, partita as pt
        >>> rng = np.random.default_rng(0)
        >>> labels = np.repeat([0, 1, 2, 3], 25)
        >>> X = np.array([0.0, 20.0, 40.0, 60.0])[labels, None] + rng.normal(0.0, 2.0, (100, 1))
        >>> model = pt.Gaussian().fit_prior(X, labels)
        >>> bool(2.0 < model.rate[0] / model.shape < 6.0)  # about 4, the variance within clusters
        True
        """
        return registry.taught(self, X, labels)


def plain(value: Any) -> Any:
    """A parameter as JSON can hold it."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    return value


def n_features_of(X: Any) -> int:
    """The width of validated observations; 1 where they are not rows of numbers."""
    return X.shape[1] if isinstance(X, np.ndarray) else 1


def taken(X: Any, rows: Integers) -> Any:
    """Some of validated observations."""
    return X[rows] if isinstance(X, np.ndarray) else [X[row] for row in rows.tolist()]


def copied(model: Model) -> Model:
    """A copy of a model. The built-in ones are a few numbers; what a user's model holds may be large."""
    return clone(model) if isinstance(model, CompiledModel) else copy.copy(model)
