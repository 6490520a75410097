"""Keys for points: cells of overlapping grids.

Two grids of cells 2h wide, shifted by h against one another, have all of their borders h apart. So two points
less than h apart in each dimension have, in each, at least one of the two grids without a border between
them, and share a cell of one of the 2^d products. Cells of two sizes serve points in a crowd: their nearest
neighbours have the smaller cells in common with them, which are rarer, and so are met first.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import stdtrit

from partita._core.hashing import mixed
from partita._core.kernel import kernel
from partita._core.typing import Floats, Integers

DIMENSIONS = 3  # at most: the number of cells doubles with each
SHARE = 0.99  # of the pairs of points of one cluster that lie within reach of one another, per dimension
FINER = 4.0  # how much smaller the smaller cells are
FAR = 2.0**62  # cells; beyond, all points share the last one


def reach(freedom: float) -> float:
    """How far apart, in one dimension, two points of a cluster are but for one pair in a hundred.

    Their difference is √2 times Student's t, in units of the prior's scale. A prior with less than two
    degrees of freedom leaves the spread all but open, and the keys suit clusters of a likely one.
    """
    return float(np.sqrt(2.0) * stdtrit(max(freedom, 2.0), 0.5 + 0.5 * SHARE))


def grid_keys(name: str, points: Floats, distance: float) -> tuple[Integers, Integers]:
    """Keys such that points less than ``distance`` apart in every dimension share one."""
    n, d = points.shape
    if d > DIMENSIONS:
        raise ValueError(
            f"{name} has keys of its own for up to {DIMENSIONS} columns, not {d}: give a function from an "
            "observation to its keys, keys=..."
        )
    keys = cells(points, distance)
    return np.arange(n + 1) * keys.shape[1], keys.ravel()


@kernel
def cells(points, distance):
    """A code of each cell that each point is in, in ascending order."""
    n, d = points.shape
    keys = np.empty((n, 2 << d), np.int64)
    for x in range(n):
        for cell in range(keys.shape[1]):
            width = 2.0 * distance if cell & 1 else 2.0 * distance / FINER
            code = np.uint64(cell)
            for k in range(d):
                at = points[x, k] / width + 0.5 * ((cell >> (k + 1)) & 1)
                code = mixed(code, np.int64(math.floor(min(max(at, -FAR), FAR))))
            key, k = np.int64(code), cell
            while k > 0 and keys[x, k - 1] > key:
                keys[x, k] = keys[x, k - 1]
                k -= 1
            keys[x, k] = key
    return keys
