"""How alike two values are, and what that is worth."""

from __future__ import annotations

import math

import numpy as np

from partita._core.kernel import inner, kernel
from partita.models.records.comparisons.family import ALIKE, BOUNDS, LINKED, NEAR
from partita.models.records.comparisons.parts import place_of
from partita.models.records.tables import place

FIRST, SECOND, THIRD, FOURTH, FIFTH, SIXTH = (float(bound) for bound in BOUNDS)


@inner
def level_of(similarity):
    """The level of a similarity between 0 and 1 that is no equality."""
    low = (similarity > FIRST) + (similarity > SECOND) + (similarity > THIRD)
    return np.int64(low + (similarity > FOURTH) + (similarity > FIFTH) + (similarity > SIXTH))


@inner
def cosine(grams, weights, v, v_end, w, w_end):
    """The cosine of the angle between two lists of weighted parts."""
    total = 0.0
    while v < v_end and w < w_end:
        first, second = grams[v], grams[w]
        if first == second:
            total += weights[v] * weights[w]
        v += first <= second  # without a branch, for which comes first is anybody's guess
        w += second <= first
    return total


@inner
def level(family, a, v, w):
    """How alike two different values of an attribute are."""
    measure = family.measure[a]
    if measure == ALIKE:
        first, last = family.first, family.last
        grams, weights = family.grams, family.weights
        return level_of(cosine(grams, weights, first[v], last[v], first[w], last[w]))
    if measure == NEAR:
        return level_of(1.0 - abs(family.number[v] - family.number[w]) / family.scale[a])
    return np.int64(0)


@inner
def affinity_of(family, log_u, a, at, v, w):
    """exp(q·e) of two values of an attribute that are so alike, e being the log-likelihood ratio; e where q is 0."""
    said = family.log_m[a, at] - max(log_u[v, at], log_u[w, at])
    return said if family.sharpness == LINKED else math.exp(family.sharpness * said)


@inner
def remembered(near, v, w):
    """Where in ``near`` two different values are remembered, or are to be."""
    key = (np.int64(min(v, w)) << 32) + np.int64(max(v, w))
    slot = 2 * place(key, np.int64(near.shape[0] // 2 - 1))
    return key, slot, near[slot] == key


@kernel
def level_counts(others, n, own, counts):
    """Count at which levels texts, a row each, are alike to n others, of which each part lists those that have it."""
    totals, met, seen = np.zeros(n), np.empty(n, np.int64), np.full(n, -1)
    for text in range(counts.shape[0]):
        n_met = 0
        for k in range(own.first[text], own.last[text]):
            part = place_of(others.known, own.grams[k])
            if part < 0:
                continue
            for at in range(others.starts[part], others.starts[part + 1]):
                i = others.texts[at]
                if seen[i] != text:
                    met[n_met], seen[i] = i, text
                    n_met += 1
                totals[i] += others.weights[at] * own.weights[k]
        counts[text, 0] += n - n_met
        for k in range(n_met):
            counts[text, level_of(totals[met[k]])] += 1.0
            totals[met[k]] = 0.0


@kernel
def nearness_counts(numbers, own, scale, counts):
    """Count at which levels numbers, a row each, are alike to others."""
    for row in range(own.shape[0]):
        for k in range(numbers.shape[0]):
            counts[row, level_of(1.0 - abs(numbers[k] - own[row]) / scale)] += 1.0
