"""What follows from the particles' numbers of clusters: that of the whole, and the concentration."""

import math

import numpy as np
from numpy.typing import ArrayLike

from partita._core.typing import Floats, Integers

#: Probabilities below this are dropped from the ends of the distribution of the number of clusters.
NEGLIGIBLE = 1e-300


def distribution_of_sum(values: Integers, weights: Floats, start: Integers) -> tuple[int, Floats]:
    """Least value and probabilities of a sum of independent integers, one from each weighted group.

    Group s has values[start[s]:start[s+1]], with the weights there. The groups' distributions are convolved
    directly, for accuracy to the tails: two by two, all those of a width at once, the narrowest first.
    """
    if len(values) == 0:
        return 0, np.ones(1)
    low, high = np.minimum.reduceat(values, start[:-1]), np.maximum.reduceat(values, start[:-1])
    least, widths = int(low.sum()), high - low + 1
    begin = np.cumsum(widths) - widths
    flat = np.bincount(values + np.repeat(begin - low, np.diff(start)), weights)
    waiting = {  # by width, the distributions of that width as columns
        width: [flat[np.arange(width)[:, None] + begin[widths == width]]]
        for width in np.unique(widths[widths > 1]).tolist()
    }
    result = np.ones((1, 1))
    while waiting:
        terms = np.hstack(waiting.pop(min(waiting)))
        half, odd = divmod(terms.shape[1], 2)
        if odd:
            lost, result = trim(convolve(result, terms[:, -1:]))
            least += lost
        if half:
            lost, terms = trim(convolve(terms[:, :half], terms[:, half : 2 * half]))
            least += lost * half
            waiting.setdefault(len(terms), []).append(terms)
    return least, result[:, 0].copy()


def convolve(one: Floats, other: Floats) -> Floats:
    """Columns convolved with columns."""
    width, n_columns = one.shape
    if width > n_columns:
        columns = [np.convolve(a, b) for a, b in zip(one.T, other.T, strict=True)]
        return np.stack(columns, axis=1)
    result = np.zeros((width + len(other) - 1, n_columns))
    for i in range(width):
        result[i : i + len(other)] += one[i] * other
    return result


def trim(terms: Floats) -> tuple[int, Floats]:
    """Drop from both ends what is negligible in all columns; count the rows lost from the lower."""
    rows = np.flatnonzero((terms >= NEGLIGIBLE).any(axis=1))
    return int(rows[0]), terms[rows[0] : rows[-1] + 1]


def grid_and_prior(grid: ArrayLike, prior: ArrayLike | None) -> tuple[Floats, Floats]:
    """Concentrations and their prior weights as arrays, checked."""
    values = np.array(grid, dtype=np.float64)
    if values.ndim != 1 or values.size == 0 or not (np.isfinite(values) & (values > 0)).all():
        raise ValueError("grid must be a non-empty 1-D array of positive, finite concentrations")
    weights = np.ones_like(values) if prior is None else np.asarray(prior, dtype=np.float64)
    if weights.shape != values.shape:
        raise ValueError(f"prior must have shape {values.shape} like grid, got {weights.shape}")
    if not (np.isfinite(weights) & (weights >= 0)).all() or not weights.any():
        raise ValueError("prior must be finite and non-negative, and positive somewhere")
    return values, weights


def log_evidence(ratio: float, counts: Integers, log_weights: Floats, start: Integers) -> float:
    """log Π_s Σ_i w_{s,i} (α′/α)^{K_{s,i}}, where `ratio` is log α′/α and the counts are K."""
    if len(counts) == 0:
        return 0.0
    tilted = log_weights + ratio * counts
    largest = np.maximum.reduceat(tilted, start[:-1])
    sums = np.add.reduceat(np.exp(tilted - np.repeat(largest, np.diff(start))), start[:-1])
    return float(largest.sum() + np.log(sums).sum())


def concentration(
    values: Floats,
    prior: Floats,
    alpha: float,
    n: int,
    counts: Integers,
    log_weights: Floats,
    start: Integers,
) -> Floats:
    """Posterior of the concentration over its possible values, where the weights were made under `alpha`."""
    logs = np.full(len(values), -np.inf)
    for g in np.flatnonzero(prior):
        logs[g] = math.lgamma(values[g]) - math.lgamma(values[g] + n)
        logs[g] += log_evidence(math.log(values[g]) - math.log(alpha), counts, log_weights, start)
    result: Floats = prior * np.exp(logs - logs.max())
    result /= result.sum()
    return result
