"""Comparing a clustering with the truth.

Only the grouping counts: labels may be integers or strings, and renaming them changes nothing. All derive from
one table, the number of items of each predicted cluster in each true one, whose non-empty cells are found by
sorting: O(n log n) time, O(n) memory.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita._core.checks import label_codes


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


def bcubed(labels_true: ArrayLike, labels_pred: ArrayLike) -> BCubed:
    """Compare two clusterings item by item.

    For an item in true cluster L and predicted cluster C, precision is ``|C ∩ L| / |C|``, recall is
    ``|C ∩ L| / |L|``, and F1 is their harmonic mean. Each is averaged over the items. Hence the F1 returned is
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
