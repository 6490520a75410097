"""Hyperparameters from data, so that no user must guess them.

With labels there is one climb (``evidence``). Without, the sampler is tried with many hyperparameters on a
sample of the data, in random orders, with α learnt along the stream. First from spreads of all sizes and of
two kinds, free to differ or much alike, alternating with fits to the clusters found; then step by step around
the best. It is for the sampler to cluster well with them, so what is judged is what it makes of the data, by

    ⅓ joint + ⅔ prequential + log hyperprior,

    joint        Σ_c [log α + lgamma(|c|) + log p(c)] + lgamma(α) − lgamma(α + n) + log hyperprior of α
    prequential  Σ_t log p(x_t | x_1 … x_{t−1}), from the particles (Dawid 1984)

Both are log-densities of the data, the first together with the labels. Where clusters lie apart they agree.
Where clusters overlap neither will do. The first charges for all the doubt about the labels, log K for each
point in a thicket of K clusters, and prefers one wide cluster to many (as the integrated completed likelihood
does: Biernacki, Celeux and Govaert 2000). The second charges for none, and as clusters without soft borders
are too narrow to make a good density, prefers more of them and smaller ones. So a third of the doubt is
charged for. The share is not derived but was chosen where the truth is known: on S1 to S4, Birch 1 and
generated lattices, a half merges too much and a sixth too little.

The hyperprior of α is uniform in α/(1 + α), the probability that two observations lie in different clusters.
Else "every point is a cluster of its own" would cost nothing, and as it explains any data as well as "there
is one cluster" does, it would win where there is nothing to find.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from sklearn.base import clone
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from partita._core.checks import label_codes
from partita._core.typing import Array, Floats, Integers
from partita.models.base import CompiledModel
from partita.models.numeric.evidence.base import Learner
from partita.models.records.arrow import for_an_estimator
from partita.models.registry import learn
from partita.smc.engine import Engine
from partita.smc.reading.predict import log_prequential
from partita.smc.reading.snapshot import posterior_of
from partita.smc.state.state import Settings

M = TypeVar("M", bound=CompiledModel)

SAMPLE = 1000  # rows to cluster, at most
DOUBT = 1.0 / 3.0  # share of the joint density in what is judged
PARTICLES = 5
ROUNDS, ORDERS = 2, 2  # from each start: rounds at most, and orders of the data to cluster in each
FINAL_ROUNDS, FINAL_ORDERS = 8, 3  # the same around the best
STRIDE, LEAST_STRIDE = 1.0, 0.25  # of the steps around it, in logarithms
TOLERANCE = 0.1  # nats: what counts as a gain


class Trial(NamedTuple):
    """Hyperparameters, how well the sampler does with them, and the clusters that it finds."""

    hyperparameters: Any
    height: float
    labels: Integers


@learn.register(CompiledModel)
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
    >>> from partita.models.numeric.gaussian import Gaussian
    >>> centres = np.arange(0.0, 3000.0, 100.0).repeat(10)[:, None]
    >>> X = centres + np.random.default_rng(0).normal(size=(300, 1))
    >>> model = fit_prior(Gaussian(), X, labels=centres[:, 0])
    >>> np.sqrt(model.rate / model.shape).round(1)
    array([1.])
    """
    X = checked(X)
    if model.learner is None:
        raise TypeError(f"{type(model).__name__} has no fit_prior; set its hyperparameters instead")
    codes = None if labels is None else label_codes("labels", labels)
    if codes is not None and len(codes) != len(X):
        raise ValueError(f"there are {len(codes)} labels, but X has {len(X)} rows; give one label a row")
    rows = np.arange(len(X))
    if codes is None and len(X) > SAMPLE:
        rows = np.random.default_rng(0).choice(len(X), SAMPLE, replace=False)
    with threadpool_limits(limits=1, user_api="blas"):  # on small matrices threads cost and gain nothing
        learner = model.learner(model, X, rows)
        if codes is None:
            found = search(model, learner, X[rows])
        else:
            starts = learner.starts()
            found, _ = learner.maximise(codes, starts[len(starts) // 2])
    fitted = with_parameters(model, learner, found)
    fitted.check(X.shape[1])
    return fitted


def search(model: CompiledModel, learner: Learner, X: Floats) -> Any:
    """Hyperparameters with which the sampler does best, without labels."""
    rng = np.random.default_rng(0)
    orders = [rng.permutation(len(X)) for _ in range(FINAL_ORDERS)]
    X = learner.blurred(X)

    def attempt(hyperparameters: Any, n_orders: int) -> Trial:
        now = with_parameters(model, learner, hyperparameters)
        height, labels = cluster(now, X, orders[:n_orders])
        return Trial(hyperparameters, height + learner.log_hyperprior(hyperparameters), labels)

    fits = [alternate(learner, attempt(start, ORDERS), attempt) for start in learner.starts()]
    best = max(fits, key=lambda trial: trial.height)
    return explore(learner, attempt(best.hyperparameters, FINAL_ORDERS), attempt).hyperparameters


def alternate(learner: Learner, trial: Trial, attempt: Callable[[Any, int], Trial]) -> Trial:
    """Fit hyperparameters to the clusters found with them, and cluster again, for as long as it gains."""
    for _ in range(ROUNDS):
        found, _ = learner.maximise(trial.labels, trial.hyperparameters)
        following = attempt(found, ORDERS)
        if not following.height > trial.height + TOLERANCE:
            break
        trial = following
    return trial


def explore(learner: Learner, trial: Trial, attempt: Callable[[Any, int], Trial]) -> Trial:
    """Go to the best place one stride away, or halve the stride where there is none."""
    stride = STRIDE
    for _ in range(FINAL_ROUNDS):
        steps = [sign * stride * direction for direction in learner.directions for sign in (1.0, -1.0)]
        around = [attempt(learner.moved(trial.hyperparameters, step), FINAL_ORDERS) for step in steps]
        following = max(around, key=lambda other: other.height)
        if following.height > trial.height + TOLERANCE:
            trial = following
        elif stride <= LEAST_STRIDE:
            break
        else:
            stride /= 2.0
    return trial


def with_parameters(model: M, learner: Learner, hyperparameters: Any) -> M:
    """A new model with these hyperparameters."""
    fitted: M = clone(model).set_params(**learner.parameters(hyperparameters))
    return fitted


def cluster(model: CompiledModel, X: Any, orders: Sequence[Array]) -> tuple[float, Integers]:
    """How well the sampler does, ⅓ joint + ⅔ prequential on average over orders, and its best clusters."""
    encoded, n = model.encode(X), len(X)
    n_features = X.shape[1] if isinstance(X, np.ndarray) else 1  # of texts
    heights, labels = [], np.zeros(n, np.int64)
    settings = Settings(PARTICLES, learn_alpha=1)
    for order in orders:
        engine = Engine(model, settings, n_features, encoded.shape[1], 0.0, 0)
        prequential = log_prequential(engine, encoded[order])
        posterior, alpha = posterior_of(engine.state), engine.alpha
        joint = (
            posterior.log_density() + math.lgamma(alpha) - math.lgamma(alpha + n) - 2.0 * math.log1p(alpha)
        )
        heights.append(DOUBT * joint + (1.0 - DOUBT) * prequential)
        if heights[-1] == max(heights):
            labels[order] = posterior.labels()
    return float(np.mean(heights)), labels


def checked(X: Any) -> Floats:
    """``X`` as a table of finite floats, or a ValueError that says where it is none."""
    table = np.asarray(for_an_estimator(X))
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
