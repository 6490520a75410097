"""Which observations share a cluster, how probably."""

import numpy as np
from numpy.typing import ArrayLike

from partita._core.kernel import kernel
from partita._core.typing import Floats, Integers
from partita.posterior.losses import Layout

from ._particles import Particles


def together(particles: Particles, i: ArrayLike, j: ArrayLike) -> Floats:
    """Probability that observations i and j share a cluster; i and j broadcast."""
    n, block = len(particles.observation_block), particles.observation_block
    one, other = np.broadcast_arrays(observation_numbers(i, n), observation_numbers(j, n))
    result = np.zeros(one.size)
    add_weights(
        particles.layout, particles.block_subproblem, block[one.ravel()], block[other.ravel()], result
    )
    return np.minimum(result, 1.0).reshape(one.shape)


def observation_numbers(numbers: ArrayLike, n: int) -> Integers:
    """Numbers of n observations as an array, checked."""
    result = np.asarray(numbers)
    if result.size == 0:
        return result.astype(np.int64)
    if result.dtype.kind not in "iu":
        raise TypeError(f"observations are numbered by integers, got {result.dtype}")
    outside = (result < 0) | (result >= n)
    if outside.any():
        first = result[outside].flat[0]
        raise IndexError(f"observation {first} is out of range: the posterior holds {n}, numbered from 0")
    return result.astype(np.int64)


@kernel
def add_weights(
    layout: Layout, block_subproblem: Integers, one: Integers, other: Integers, result: Floats
) -> None:
    """Probability that the blocks one[i] and other[i] share a cluster; `result` starts as zeros."""
    for i in range(one.shape[0]):
        a, b = one[i], other[i]
        s = block_subproblem[a]
        if a == b:
            result[i] = 1.0
        elif s == block_subproblem[b]:
            width = layout.blocks_start[s + 1] - layout.blocks_start[s]
            cell = layout.cells_start[s] + a - layout.blocks_start[s]
            total = 0.0
            for row in range(layout.rows_start[s], layout.rows_start[s + 1]):
                if layout.cells[cell] == layout.cells[cell + b - a]:
                    total += layout.weights[row]
                cell += width
            result[i] = total
