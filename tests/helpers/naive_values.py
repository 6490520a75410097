"""Attributes with one true value, and numbers: log p(c) by the formulas, once more in plain Python."""

import itertools
import math

import numpy as np

from partita.models.records.kinds.value import COMPARED


def naive_distance(u, v):
    """Optimal string alignment."""
    d = {(i, 0): i for i in range(len(u) + 1)} | {(0, j): j for j in range(len(v) + 1)}
    for i, j in itertools.product(range(1, len(u) + 1), range(1, len(v) + 1)):
        d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + (u[i - 1] != v[j - 1]))
        if i > 1 and j > 1 and u[i - 1] == v[j - 2] and u[i - 2] == v[j - 1]:
            d[i, j] = min(d[i, j], d[i - 2, j - 2] + 1)
    return d[len(u), len(v)]


def naive_values(attribute, said):
    """log Σ_y f(y) Π_v K(v | y)."""
    beta, tau, rho = attribute.distortion, attribute.typo, attribute.further
    letters = max(len(set("".join(attribute.corpus.counts))), 10)

    def frequency(value):
        return math.exp(attribute.value_base(value)[1])

    def mention(v, y):
        other = beta * (1 - tau) * frequency(v)
        if v == y:
            return 1 - beta + other
        v, y = v[:COMPARED], y[:COMPARED]
        d = max(naive_distance(v, y), 1)
        if d > 1 + len(y) // 3:
            return other
        typo = (1 - rho) * rho ** (d - 1)
        for k in range(d):
            typo /= letters * (2 * (len(y) + k) + 1)
        return beta * tau * typo + other

    if not said:
        return 0.0
    terms = [math.log(frequency(y)) + sum(math.log(mention(v, y)) for v in said) for y in set(said)]
    return float(np.logaddexp.reduce(terms))


def naive_numbers(attribute, said):
    """Draws one after the other: repeats by the urn, new ones by Student's t."""
    mean, precision, shape, rate, step = attribute.settings
    total, distinct = 0.0, []
    for n, x in enumerate(said):
        repeats = said[:n].count(x)
        if repeats:
            total += math.log(repeats / (n + attribute.theta))
            continue
        total += math.log(attribute.theta / (n + attribute.theta)) + step
        squared = rate / shape * (precision + 1) / precision
        freedom = 2 * shape
        total += math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)
        total -= 0.5 * math.log(freedom * math.pi * squared)
        total -= (freedom + 1) / 2 * math.log1p((x - mean) ** 2 / (freedom * squared))
        rate += precision * (x - mean) ** 2 / (2 * (precision + 1))
        mean = (precision * mean + x) / (precision + 1)
        precision, shape = precision + 1, shape + 0.5
        distinct.append(x)
    return total
