"""Keys for points: cells of overlapping grids.

Two grids of cells 2h wide, shifted by h against one another, have all of their borders h apart. So two points
less than h apart in each dimension have, in each, at least one of the two grids without a border between
them, and share a cell of one of the 2^d products. Cells of two sizes serve points in a crowd: their nearest
neighbours have the smaller cells in common with them, which are rarer, and so are met first.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from scipy.special import stdtrit

from partita._typing import Array, Floats, Integers

DIMENSIONS = 3  # at most: the number of cells doubles with each
SHARE = 0.99  # of the pairs of points of one cluster that lie within reach of one another, per dimension
FINER = 4.0  # how much smaller the smaller cells are


def reach(freedom: float) -> float:
    """How far apart, in one dimension, two points of a cluster are but for one pair in a hundred.

    Their difference is √2 times Student's t, in units of the prior's scale. A prior with less than two degrees
    of freedom leaves the spread all but open, and the keys suit clusters of a likely one.
    """
    return float(np.sqrt(2.0) * stdtrit(max(freedom, 2.0), 0.5 + 0.5 * SHARE))


def grid_keys(name: str, points: Floats, distance: float) -> tuple[Integers, Integers]:
    """Keys such that points less than ``distance`` apart in every dimension share one."""
    n, d = points.shape
    if d > DIMENSIONS:
        raise ValueError(
            f"{name} has keys of its own for up to {DIMENSIONS} columns, not {d}: give a function from an "
            "observation to its keys, candidates=..."
        )
    columns = []
    for size in (distance, distance / FINER):
        at = points / (2.0 * size)
        cells = [np.floor(np.clip(at + shift, -(2.0**62), 2.0**62)).astype(np.int64) for shift in (0.0, 0.5)]
        for grid, shifts in enumerate(product((0, 1), repeat=d)):
            code = np.full(n, 2 * grid + (size < distance), np.uint64)
            for k, shift in enumerate(shifts):
                code = mixed(code, cells[shift][:, k])
            columns.append(code.view(np.int64))
    keys = np.column_stack(columns)
    return np.arange(n + 1) * keys.shape[1], keys.ravel()


def mixed(code: Array, value: Array) -> Array:
    """Mix one more number into each code (the finaliser of SplitMix64)."""
    z: Array = code * np.uint64(0x9E3779B97F4A7C15) + value.view(np.uint64)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
