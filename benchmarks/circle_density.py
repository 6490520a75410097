"""The true log-density of points on a circle of known radius, seen with a little noise: an oracle.

Centres are uniform on [−box, box]², points uniform on the circumference, noise normal with standard deviation
``noise``. Given the centre points are independent, so p(c) is an integral over the centre alone. Squares of
centres are divided until they are as small as the integrand's features; those are dropped whose largest
conceivable value is e⁻¹⁸ of the best found. Midpoints one deviation apart integrate a Gaussian to 10⁻⁸.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numba
import numpy as np

LEAST = -18.0  # logarithm of what is small enough to drop, relative to the largest


def log_densities(
    sets: Sequence[np.ndarray], noise: float, radius: float = 0.6, box: float = 5.0
) -> np.ndarray:
    """log p of each set, an array of shape (n, 2)."""
    return np.array([one(np.asarray(points, np.float64), noise, radius, box) for points in sets])


def draw(
    rng: np.random.Generator, size: int, noise: float, radius: float = 0.6, box: float = 5.0
) -> np.ndarray:
    """A set from the same distribution."""
    angle = rng.uniform(0.0, 2.0 * np.pi, size)
    circle = rng.uniform(-box, box, 2) + radius * np.column_stack([np.cos(angle), np.sin(angle)])
    return circle + noise * rng.normal(size=(size, 2))


@numba.njit
def one(points, noise, radius, box):
    """log p of one set."""
    mode = most_likely(radius, noise)
    side = box / 8.0
    middle = -box + side * (np.arange(16) + 0.5)
    x, y = np.repeat(middle, 16), middle.repeat(16).reshape(16, 16).T.copy().reshape(256)
    best = -np.inf
    while True:
        for k in range(len(x)):
            best = max(best, likelihood(points, x[k], y[k], 0.0, mode, radius, noise))
        if side <= noise / math.sqrt(len(points)):
            break
        kept = [
            k
            for k in range(len(x))
            if likelihood(points, x[k], y[k], side * math.sqrt(0.5), mode, radius, noise) > best + LEAST
        ]
        corners = np.array([(-0.25, -0.25), (-0.25, 0.25), (0.25, -0.25), (0.25, 0.25)]) * side
        finer_x, finer_y = np.empty(4 * len(kept)), np.empty(4 * len(kept))
        for j in range(len(kept)):
            for corner in range(4):
                finer_x[4 * j + corner] = x[kept[j]] + corners[corner, 0]
                finer_y[4 * j + corner] = y[kept[j]] + corners[corner, 1]
        x, y, side = finer_x, finer_y, 0.5 * side
    total = 0.0
    for k in range(len(x)):
        total += math.exp(likelihood(points, x[k], y[k], 0.0, mode, radius, noise) - best)
    return best + math.log(total) + 2.0 * math.log(side / (2.0 * box))


@numba.njit
def likelihood(points, x, y, slack, mode, radius, noise):
    """log p of points given the centre, or its largest value if they may be moved by ``slack``."""
    total = 0.0
    for i in range(len(points)):
        distance = math.hypot(points[i, 0] - x, points[i, 1] - y)
        total += ring(distance + min(max(mode - distance, -slack), slack), radius, noise)
    return total


@numba.njit
def ring(distance, radius, noise):
    """log p of a point at a distance from the centre."""
    inside = -((distance - radius) ** 2) / (2.0 * noise**2)
    return inside - math.log(2.0 * math.pi * noise**2) + log_bessel(distance * radius / noise**2)


@numba.njit
def log_bessel(x):
    """log I₀(x) − x (Abramowitz and Stegun, 9.8.1 and 9.8.2), to 2·10⁻⁷."""
    if x < 3.75:
        t, value = (x / 3.75) ** 2, 0.0
        for term in (0.0045813, 0.0360768, 0.2659732, 1.2067492, 3.0899424, 3.5156229, 1.0):
            value = value * t + term
        return math.log(value) - x
    t, value = 3.75 / x, 0.0
    for term in (
        0.00392377,
        -0.01647633,
        0.02635537,
        -0.02057706,
        0.00916281,
        -0.00157565,
        0.00225319,
        0.01328592,
        0.39894228,
    ):
        value = value * t + term
    return math.log(value) - 0.5 * math.log(x)


@numba.njit
def most_likely(radius, noise):
    """The distance at which a point has the largest density."""
    best = 0.0
    for k in range(801):
        if ring(k * radius / 400.0, radius, noise) > ring(best, radius, noise):
            best = k * radius / 400.0
    return best
