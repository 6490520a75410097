"""Comparing probabilities with the truth: of all pairs said to share a cluster with probability 0.7, do 70 % do?"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita._core.checks import label_codes

if TYPE_CHECKING:
    from partita.posterior import Posterior


class Calibration(NamedTuple):
    """Predicted probabilities against what happened, in bins of equal width.

    Attributes
    ----------
    expected_calibration_error : float
        Mean distance between ``bin_probability`` and ``bin_frequency``, weighted by ``bin_count``.
    bin_probability : array of shape (n_bins,)
        Mean prediction in each bin; not a number where it is empty.
    bin_frequency : array of shape (n_bins,)
        How often it was so in each bin; not a number where it is empty.
    bin_count : array of shape (n_bins,)
        Predictions in each bin.
    brier : float
        Mean squared distance between prediction and outcome, whatever the bins.
    """

    expected_calibration_error: float
    bin_probability: NDArray[np.float64]
    bin_frequency: NDArray[np.float64]
    bin_count: NDArray[np.intp]
    brier: float


def calibration(together: ArrayLike, same: ArrayLike, n_bins: int = 10) -> Calibration:
    """Compare predicted probabilities with what happened.

    Parameters
    ----------
    together : array-like of shape (n_pairs,)
        Predicted probability that each pair shares a cluster.
    same : array-like of bool, shape (n_pairs,)
        Whether it does.
    n_bins : int
        Number of bins, of equal width, that divide [0, 1]; a probability of 1 falls in the last.

    Returns
    -------
    Calibration

    Examples
    --------
    >>> report = calibration([0.1, 0.1, 0.9, 0.9], [False, False, True, False], n_bins=2)
    >>> report.bin_frequency
    array([0. , 0.5])
    >>> round(report.expected_calibration_error, 12), round(report.brier, 12)
    (0.25, 0.21)
    """
    probability = np.asarray(together, dtype=float)
    outcome = np.asarray(same)
    _require_pairs(probability, outcome)
    if n_bins < 1:
        raise ValueError(f"n_bins must be at least 1, got {n_bins}")
    probability = np.clip(probability, 0.0, 1.0)

    bins = np.minimum((probability * n_bins).astype(np.intp), n_bins - 1)
    count = np.bincount(bins, minlength=n_bins)
    total_probability = np.bincount(bins, weights=probability, minlength=n_bins)
    total_same = np.bincount(bins, weights=outcome, minlength=n_bins)
    occupied = np.where(count > 0, count, np.nan)  # so that an empty bin has no mean, and no warning
    return Calibration(
        expected_calibration_error=float(np.abs(total_probability - total_same).sum() / probability.size),
        bin_probability=total_probability / occupied,
        bin_frequency=total_same / occupied,
        bin_count=count,
        brier=float(np.mean((probability - outcome) ** 2)),
    )


def pairs_for_calibration(
    posterior: Posterior, n_pairs: int = 100_000, random_state: int | np.random.Generator | None = 0
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Choose pairs of observations worth asking a posterior about.

    Of all pairs, nearly all lie in different subproblems, where the posterior says 0 and is almost always
    right: pairs drawn uniformly would make any posterior look calibrated. So only pairs inside a
    subproblem are taken: every one if there are at most `n_pairs`, otherwise `n_pairs` different ones,
    each equally likely. True pairs that the posterior has put into different subproblems are therefore
    not seen here; they lower the recall.

    Parameters
    ----------
    posterior : Posterior
        Anything whose `subproblems` have `observations`, arrays of indices.
    n_pairs : int
        Most pairs to return.
    random_state : int, numpy.random.Generator or None
        Source of randomness, used only when there are more than `n_pairs` pairs.

    Returns
    -------
    i, j : ndarray of shape (at most n_pairs,)
        The two observations of each pair.

    Examples
    --------
    >>> import numpy as np, partita as pt
    >>> X = np.array([[0.0], [0.4], [70.0], [1.1]])
    >>> posterior = pt.SplitSMC(pt.Gaussian(rate=0.1), alpha=1.0, n_particles=5).fit(X).posterior_
    >>> i, j = pairs_for_calibration(posterior)
    >>> list(zip(i.tolist(), j.tolist()))
    [(0, 1), (0, 3), (1, 3)]
    """
    if n_pairs < 1:
        raise ValueError(f"n_pairs must be at least 1, got {n_pairs}")
    members = [np.asarray(subproblem.observations) for subproblem in posterior.subproblems]
    sizes = np.array([observations.size for observations in members], dtype=np.int64)
    last_pair = np.cumsum(sizes * (sizes - 1) // 2)
    total = int(last_pair[-1]) if sizes.size else 0
    if total == 0:
        raise ValueError("no subproblem holds two observations, so there is no pair to ask about")

    # Pairs are numbered through all subproblems; within one, (0,1), (0,2), (1,2), (0,3), …
    if total <= n_pairs:
        number = np.arange(total)
    else:
        number = np.random.default_rng(random_state).choice(total, size=n_pairs, replace=False)
    subproblem = np.searchsorted(last_pair, number, side="right")
    rank = number - (last_pair - sizes * (sizes - 1) // 2)[subproblem]
    second = ((1.0 + np.sqrt(1.0 + 8.0 * rank)) / 2.0).astype(np.int64)
    second -= second * (second - 1) // 2 > rank  # the square root may round up,
    second += second * (second + 1) // 2 <= rank  # or down
    first = rank - second * (second - 1) // 2
    start = (np.cumsum(sizes) - sizes)[subproblem]
    observations = np.concatenate(members)
    return observations[start + first], observations[start + second]


def calibration_of(
    posterior: Posterior,
    labels_true: ArrayLike,
    n_pairs: int = 100_000,
    random_state: int | np.random.Generator | None = 0,
    n_bins: int = 10,
) -> Calibration:
    """Check a posterior's probabilities of sharing a cluster against the truth.

    The pairs asked about are those of `pairs_for_calibration`: inside subproblems only, where the
    posterior has something to be unsure of. To ask about all pairs give `calibration` their probabilities,
    ``posterior.together(i, j)`` with ``i, j = np.triu_indices(n, 1)``.

    Parameters
    ----------
    posterior : Posterior
    labels_true : array-like of shape (n,)
        True cluster of each observation, in the order in which they were seen.
    n_pairs : int
        Most pairs to ask about.
    random_state : int, numpy.random.Generator or None
        Source of randomness, used only when there are more pairs.
    n_bins : int
        Number of bins.

    Returns
    -------
    Calibration

    Examples
    --------
    >>> import partita as pt
    >>> X, truth = pt.datasets.gaussian_mixture(100, random_state=0)
    >>> posterior = pt.SplitSMC(pt.Gaussian(precision=2e-4), alpha=20.0).fit(X).posterior_
    >>> report = calibration_of(posterior, truth, n_bins=5)
    >>> report.bin_count.shape
    (5,)
    """
    labels = label_codes("labels_true", labels_true)
    n_observations = np.size(posterior.labels())
    if labels.size != n_observations:
        raise ValueError(f"labels_true has {labels.size} items, the posterior {n_observations} observations")
    i, j = pairs_for_calibration(posterior, n_pairs, random_state)
    return calibration(posterior.together(i, j), labels[i] == labels[j], n_bins)


def _require_pairs(probability: NDArray[np.float64], outcome: NDArray[np.generic]) -> None:
    """Raise unless these are probabilities and as many yes-or-no outcomes."""
    if probability.ndim != 1 or probability.shape != outcome.shape:
        raise ValueError(
            f"together and same must be one-dimensional and of one length; "
            f"their shapes are {probability.shape} and {outcome.shape}"
        )
    if probability.size == 0:
        raise ValueError("together is empty")
    if not np.all((probability > -1e-6) & (probability < 1 + 1e-6)):  # sums of weights may round
        raise ValueError("together must hold probabilities between 0 and 1")
    if outcome.dtype != np.bool_:
        raise ValueError(f"same must be boolean, its dtype is {outcome.dtype}; try same.astype(bool)")
