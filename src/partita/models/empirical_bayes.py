"""Hyperparameters from data, so that no user must guess them.

With labels there is one climb (``evidence``). Without, clustering and climbing alternate: coordinate ascent
of the joint log density of clusters, concentration α and hyperparameters,

    Σ_c [log α + lgamma(|c|) + log p(c)] + lgamma(α) − lgamma(α + n) + log hyperprior,

over a sample of the data. Clustering is the sampler's, with a few particles and in fresh random orders: the
best of several orders gains more than many particles do. It can only find clusters of about the size that the
hyperparameters of the time expect, so the ascent begins from several sizes, and the best is taken further.

The hyperprior of α is uniform in α/(1 + α), the probability that two observations lie in different clusters,
and ends at α = n. Else "every point is a cluster of its own" would cost nothing, and as it explains any data
as well as "there is one cluster" does, it would win where there is nothing to find.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from scipy.optimize import minimize_scalar
from sklearn.base import clone
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from partita._typing import Array, Floats, Integers
from partita.models.base import CompiledModel
from partita.models.evidence import LEARNERS
from partita.models.evidence.base import Learner
from partita.priors import DirichletProcess

M = TypeVar("M", bound=CompiledModel)

SAMPLE = 1000  # rows to cluster, at most
PARTICLES = 5
ROUNDS, ORDERS = 4, 2  # from each start: rounds at most, and orders of the data to cluster in each
FINAL_ROUNDS, FINAL_ORDERS = 8, 6  # the same for the best
TOLERANCE = 0.1  # nats: a round that gains less is the last


class Fit(NamedTuple):
    """Where an ascent has come to."""

    hyperparameters: Any
    log_alpha: float
    log_density: float


def fit_prior(model: M, X: Any, labels: Any = None) -> M:
    """A new model of the same class with hyperparameters learnt from data.

    Parameters
    ----------
    model : CompiledModel
        Says which hyperparameters there are; their values are not used, except ``n_categories``.
    X : array of shape (n, d)
    labels : array of shape (n,), optional
        True clusters.

    Returns
    -------
    model
        The given one is left as it is.

    Examples
    --------
    >>> import numpy as np
    >>> from partita.models.gaussian import Gaussian
    >>> centres = np.arange(0.0, 3000.0, 100.0).repeat(10)[:, None]
    >>> X = centres + np.random.default_rng(0).normal(size=(300, 1))
    >>> model = fit_prior(Gaussian(), X, labels=centres[:, 0])
    >>> np.sqrt(model.rate / model.shape).round(1)
    array([1.])
    """
    X = checked(X)
    learner_of: Any = next((LEARNERS[c] for c in type(model).__mro__ if c in LEARNERS), None)
    if learner_of is None:
        raise TypeError(f"{type(model).__name__} has no fit_prior; set its hyperparameters instead")
    codes = None if labels is None else numbered(labels, len(X))
    rows = np.arange(len(X))
    if codes is None and len(X) > SAMPLE:
        rows = np.random.default_rng(0).choice(len(X), SAMPLE, replace=False)
    with threadpool_limits(limits=1, user_api="blas"):  # on small matrices threads cost and gain nothing
        learner = learner_of(model, X, rows)
        if codes is None:
            found = search(model, learner, X[rows])
        else:
            starts = learner.starts()
            found, _ = learner.maximise(codes, starts[len(starts) // 2])
    fitted = with_parameters(model, learner, found)
    fitted.check(X.shape[1])
    return fitted


def search(model: CompiledModel, learner: Learner, X: Floats) -> Any:
    """Hyperparameters of highest joint density, without labels."""
    rng = np.random.default_rng(0)

    def ascend(fit: Fit, rounds: int, orders: int) -> Fit:
        for _ in range(rounds):
            now = with_parameters(model, learner, fit.hyperparameters)
            labels = cluster(now, X, fit.log_alpha, [rng.permutation(len(X)) for _ in range(orders)])
            hyperparameters, height = learner.maximise(labels, fit.hyperparameters)
            log_alpha, log_prior = concentration(labels)
            if not height + log_prior > fit.log_density + TOLERANCE:
                break
            fit = Fit(hyperparameters, log_alpha, height + log_prior)
        return fit

    fits = [ascend(Fit(start, 0.0, -math.inf), ROUNDS, ORDERS) for start in learner.starts()]
    best = max(fits, key=lambda fit: fit.log_density)
    return ascend(best, FINAL_ROUNDS, FINAL_ORDERS).hyperparameters


def with_parameters(model: M, learner: Learner, hyperparameters: Any) -> M:
    """A new model with these hyperparameters."""
    fitted: M = clone(model).set_params(**learner.parameters(hyperparameters))
    return fitted


def cluster(model: CompiledModel, X: Floats, log_alpha: float, orders: Sequence[Array]) -> Integers:
    """The sampler's best clustering, over several orders of the data."""
    from partita.smc.engine import Engine  # the sampler is made of models, not the other way round
    from partita.smc.snapshot import posterior_of
    from partita.smc.state import Settings

    encoded = model.encode(X)
    best, labels = -math.inf, np.zeros(len(X), np.int64)
    settings = Settings(PARTICLES)  # all as by default, α fixed
    for order in orders:
        engine = Engine(model, settings, X.shape[1], encoded.shape[1], log_alpha, 0)
        engine.run(engine.store(encoded[order]))
        posterior = posterior_of(engine.state)
        if posterior.log_density() > best:
            best = posterior.log_density()
            labels[order] = posterior.labels()
    return labels


def concentration(labels: Integers) -> tuple[float, float]:
    """The best log α for these clusters, and their log prior with it (Ewens; paper, eq. 3)."""
    sizes = np.bincount(labels)

    def cost(log_alpha: float) -> float:
        alpha = math.exp(log_alpha)
        return 2.0 * math.log1p(alpha) - DirichletProcess(alpha).log_density(sizes)

    found = minimize_scalar(cost, bounds=(math.log(1e-3), math.log(len(labels) + 1e-3)), method="bounded")
    return float(found.x), -float(found.fun)


def checked(X: Any) -> Floats:
    """``X`` as a table of finite floats, or a ValueError that says where it is none."""
    table = np.asarray(X)
    if table.ndim != 2 or table.size == 0:
        raise ValueError(f"X must have rows and columns, its shape is {table.shape}; try X.reshape(-1, 1)")
    try:
        floats = table.astype(np.float64)
    except (TypeError, ValueError):
        for (row, column), value in np.ndenumerate(table):
            try:
                float(value)
            except (TypeError, ValueError):
                raise ValueError(f"row {row}, column {column}: {value!r} is not a number") from None
        raise
    for row, column in np.argwhere(~np.isfinite(floats)):
        raise ValueError(
            f"row {row}, column {column} is {floats[row, column]}; drop the row or fill the value in"
        )
    return floats


def numbered(labels: Any, n: int) -> Integers:
    """Labels as numbers 0 … C − 1."""
    array = np.asarray(labels)
    if array.shape != (n,):
        raise ValueError(f"labels has shape {array.shape}, but X has {n} rows; give one label a row")
    codes: Integers = np.unique(array, return_inverse=True)[1]
    return codes
