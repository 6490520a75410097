"""How good is a clustering, and how honest are its probabilities?

`bcubed`, `pairwise`, `adjusted_rand_index` and `variation_of_information` compare a clustering with the
truth. Only the grouping counts: labels may be integers or strings, and renaming them changes nothing.
All four derive from one table, the number of items of each predicted cluster in each true one, whose
non-empty cells are found by sorting: O(n log n) time, O(n) memory.

`calibration` asks something else: of all pairs said to share a cluster with probability 0.7, do seventy
per cent do? `calibration_of` draws the pairs from a posterior and answers in one call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita._core.checks import label_codes

if TYPE_CHECKING:
    from partita.posterior import Posterior


class BCubed(NamedTuple):
    """B-cubed precision, recall and F1, each a mean over items."""

    precision: float
    recall: float
    f1: float


class Pairwise(NamedTuple):
    """Precision, recall and F1 over pairs of items."""

    precision: float
    recall: float
    f1: float


class Calibration(NamedTuple):
    """Predicted probabilities against what happened, in bins of equal width.

    `bin_probability` and `bin_frequency` are the mean prediction and the observed frequency of each bin
    (not a number where the bin is empty), `bin_count` the number of predictions in it. The expected
    calibration error is the mean distance between the two, weighted by `bin_count`; the Brier score is
    the mean squared distance between prediction and outcome, whatever the bins.
    """

    expected_calibration_error: float
    bin_probability: NDArray[np.float64]
    bin_frequency: NDArray[np.float64]
    bin_count: NDArray[np.intp]
    brier: float


def bcubed(labels_true: ArrayLike, labels_pred: ArrayLike) -> BCubed:
    """Compare two clusterings item by item.

    For an item in true cluster L and predicted cluster C, precision is |C ∩ L| / |C|, recall is
    |C ∩ L| / |L|, and F1 is their harmonic mean. Each is averaged over the items. Hence the F1 returned is
    *the mean of the items' F1*, as the paper reports it, and not the harmonic mean of the precision and
    recall returned beside it.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n,)
        Cluster of each item, in the truth and as predicted.

    References
    ----------
    A. Bagga and B. Baldwin, "Entity-based cross-document coreferencing using the vector space model",
    COLING-ACL 1998.

    Examples
    --------
    >>> bcubed([0, 0, 1, 1], ["a", "a", "a", "b"])
    BCubed(precision=0.6666666666666666, recall=0.75, f1=0.6666666666666666)
    """
    overlap, size_true, size_pred = _contingency(labels_true, labels_pred)
    # Items of one cell share their values: 2pr/(p + r) is 2|C ∩ L| / (|C| + |L|).
    share = overlap / overlap.sum()
    return BCubed(
        precision=float(share @ (overlap / size_pred)),
        recall=float(share @ (overlap / size_true)),
        f1=float(share @ (2 * overlap / (size_pred + size_true))),
    )


def pairwise(labels_true: ArrayLike, labels_pred: ArrayLike) -> Pairwise:
    """Compare two clusterings by the pairs of items that they put together.

    Precision is the share of the predicted pairs that are true, recall the share of the true pairs that
    are predicted, and F1 their harmonic mean. A clustering that puts no two items together makes no false
    claim, so its precision is 1; where the truth has no pair there is none to miss, so recall is 1. F1 is
    0 when both others are.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n,)
        Cluster of each item, in the truth and as predicted.

    Examples
    --------
    >>> pairwise([0, 0, 1, 1], [0, 0, 0, 1])
    Pairwise(precision=0.3333333333333333, recall=0.5, f1=0.4)
    >>> pairwise([0, 0, 1, 1], [0, 1, 2, 3]).precision
    1.0
    """
    both, true, pred, _ = _count_pairs(labels_true, labels_pred)
    precision = both / pred if pred else 1.0
    recall = both / true if true else 1.0
    f1 = 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0
    return Pairwise(precision, recall, f1)


def adjusted_rand_index(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    """Agreement over pairs of items, scaled so that chance gives 0 and identity 1 (Hubert and Arabie, 1985).

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n,)
        Cluster of each item, in the truth and as predicted.

    Examples
    --------
    >>> adjusted_rand_index([0, 0, 1, 1], [1, 1, 0, 0])
    1.0
    >>> adjusted_rand_index([0, 0, 1, 1], [0, 1, 0, 1])
    -0.5
    """
    both, true, pred, pairs = _count_pairs(labels_true, labels_pred)
    if both == true == pred:  # the same clustering: also the 0/0 of all together or all apart
        return 1.0
    # The usual (both - expected) / (mean - expected), expected = true·pred/pairs, multiplied by 2·pairs:
    # Python integers neither overflow nor round.
    return 2 * (both * pairs - true * pred) / ((true + pred) * pairs - 2 * true * pred)


def variation_of_information(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    """Distance between two clusterings in nats, H(true | pred) + H(pred | true): 0 to log n (Meilă, 2007).

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n,)
        Cluster of each item, in the truth and as predicted.

    Examples
    --------
    >>> variation_of_information([0, 0, 1, 1], [1, 1, 0, 0])
    0.0
    >>> round(variation_of_information([0, 0, 1, 1], [0, 0, 0, 0]), 6)  # log 2
    0.693147
    """
    overlap, size_true, size_pred = _contingency(labels_true, labels_pred)
    # As a sum of logarithms of ratios >= 1, it cannot come out negative by rounding.
    return float(overlap @ (np.log(size_true / overlap) + np.log(size_pred / overlap)) / overlap.sum())


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
    posterior has something to be unsure of. `labels_true` holds the true cluster of each observation, in
    the order they were seen; the other parameters are those of `pairs_for_calibration` and `calibration`.
    """
    labels = label_codes("labels_true", labels_true)
    n_observations = np.size(posterior.labels())
    if labels.size != n_observations:
        raise ValueError(f"labels_true has {labels.size} items, the posterior {n_observations} observations")
    i, j = pairs_for_calibration(posterior, n_pairs, random_state)
    return calibration(posterior.together(i, j), labels[i] == labels[j], n_bins)


def _contingency(
    labels_true: ArrayLike, labels_pred: ArrayLike
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Number of items of every non-empty cell of the two clusterings' table, and both its clusters' sizes."""
    true, pred = label_codes("labels_true", labels_true), label_codes("labels_pred", labels_pred)
    if true.size != pred.size:
        raise ValueError(f"labels_true has {true.size} items, labels_pred {pred.size}; they must match")
    sizes_true, sizes_pred = np.bincount(true), np.bincount(pred)
    cells, overlap = np.unique(true * sizes_pred.size + pred, return_counts=True)
    cell_true, cell_pred = np.divmod(cells, sizes_pred.size)
    return overlap, sizes_true[cell_true], sizes_pred[cell_pred]


def _count_pairs(labels_true: ArrayLike, labels_pred: ArrayLike) -> tuple[int, int, int, int]:
    """Pairs together in both clusterings, in the truth, in the prediction, and all pairs."""
    overlap, size_true, size_pred = _contingency(labels_true, labels_pred)
    n = int(overlap.sum())
    # A cluster of size s has s(s-1)/2 pairs; spread over its cells, each of its items brings (s-1)/2.
    both = int(overlap @ (overlap - 1)) // 2
    true = int(overlap @ (size_true - 1)) // 2
    pred = int(overlap @ (size_pred - 1)) // 2
    return both, true, pred, n * (n - 1) // 2


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
