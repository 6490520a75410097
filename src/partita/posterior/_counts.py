"""What follows from the particles' numbers of clusters: that of the whole, and the concentration."""

import math

import numpy as np
from numpy.typing import ArrayLike

from partita._kernel import kernel
from partita._typing import Floats, Integers

#: Probabilities below this are dropped from the ends of the distribution of the number of clusters.
NEGLIGIBLE = 1e-300


def distribution_of_sum(values: Integers, weights: Floats, start: Integers) -> tuple[int, Floats]:
    """Least value and probabilities of a sum of independent integers, one from each weighted group.

    Group s has values[start[s]:start[s+1]], with the weights there. The groups' distributions, end to end in
    one array, are convolved two by two until a single one is left.
    """
    if len(values) == 0:
        return 0, np.ones(1)
    low, high = np.minimum.reduceat(values, start[:-1]), np.maximum.reduceat(values, start[:-1])
    least, varies = int(low.sum()), high > low
    begin = np.concatenate(([0], np.cumsum(np.where(varies, high - low + 1, 0))))
    place = values + np.repeat(begin[:-1] - low, np.diff(start))
    in_group = np.repeat(varies, np.diff(start))
    probabilities: Floats = np.bincount(place[in_group], weights[in_group], minlength=begin[-1])
    begin = begin[np.append(True, varies)]
    if len(begin) == 1:
        return least, np.ones(1)
    while True:
        if len(begin) % 2 == 0:  # an odd one out is convolved with the constant 0
            probabilities, begin = np.append(probabilities, 1.0), np.append(begin, begin[-1] + 1)
        result, ends = np.empty(len(probabilities)), np.zeros(len(begin) // 2 + 1, np.int64)
        least += convolve_neighbours(probabilities, begin, result, ends)
        probabilities, begin = result[: ends[-1]], ends
        if len(begin) == 2:
            return least, probabilities.copy()


@kernel  # type: ignore[untyped-decorator]
def convolve_neighbours(terms: Floats, begin: Integers, result: Floats, ends: Integers) -> int:
    """Convolve each two neighbours directly, trim what is negligible, and count what falls off lower ends."""
    trimmed = 0
    for pair in range(ends.shape[0] - 1):
        first, middle, last = begin[2 * pair], begin[2 * pair + 1], begin[2 * pair + 2]
        low, high = ends[pair], ends[pair] + last - first - 1
        for i in range(low, high):
            result[i] = 0.0
        for i in range(first, middle):
            place = low + i - first - middle
            for j in range(middle, last):
                result[place + j] += terms[i] * terms[j]
        while result[low] < NEGLIGIBLE:
            low += 1
        while result[high - 1] < NEGLIGIBLE:
            high -= 1
        fallen = low - ends[pair]
        for i in range(low, high):
            result[i - fallen] = result[i]
        ends[pair + 1] = high - fallen
        trimmed += fallen
    return trimmed


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
