"""The arrays of a posterior, checked, and what several questions derive from them."""

import math
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from partita._core.typing import Array, Floats, Integers
from partita.posterior.losses import Census, Layout, grouped, take_census

from ._labels import appearance


class Particles:
    """The parameters of `partita.posterior.Posterior`. All else is derived once, when first needed."""

    def __init__(
        self,
        observation_block: ArrayLike,
        blocks_start: ArrayLike,
        rows_start: ArrayLike,
        cells_start: ArrayLike,
        cells: ArrayLike,
        log_weights: ArrayLike,
        row_scores: ArrayLike,
        alpha: float,
    ) -> None:
        self.observation_block: Integers = flat(observation_block, np.int64)
        self.blocks_start: Integers = flat(blocks_start, np.int64)
        self.rows_start: Integers = flat(rows_start, np.int64)
        self.cells_start: Integers = flat(cells_start, np.int64)
        self.cells: Integers = dense(flat(cells, np.int64))
        self.log_weights: Floats = flat(log_weights, np.float64)
        self.row_scores: Floats = flat(row_scores, np.float64)
        self.alpha = float(alpha)
        self.check()

    def check(self) -> None:
        """Refuse arrays that do not fit together, before a kernel reads past an end."""
        starts = (self.blocks_start, self.rows_start, self.cells_start)
        if len({len(start) for start in starts}) != 1 or any(list(start[:1]) != [0] for start in starts):
            raise ValueError("blocks_start, rows_start and cells_start must have S+1 entries, the first 0")
        blocks, rows = np.diff(self.blocks_start), np.diff(self.rows_start)
        if np.any(blocks < 1) or np.any(rows < 1):
            raise ValueError("every subproblem must have at least one block and one particle")
        if np.any(np.diff(self.cells_start) != blocks * rows) or len(self.cells) != self.cells_start[-1]:
            raise ValueError("cells must hold particles × blocks entries for every subproblem")
        if not len(self.log_weights) == len(self.row_scores) == self.rows_start[-1]:
            raise ValueError("log_weights and row_scores must have one entry per particle")
        n_blocks = self.blocks_start[-1]
        inside = (self.observation_block >= 0) & (self.observation_block < n_blocks)
        if not inside.all() or np.any(self.block_size == 0):
            raise ValueError(f"observation_block must name blocks 0..{n_blocks - 1}, each at least once")
        if not 0.0 < self.alpha < math.inf:
            raise ValueError(f"alpha must be positive and finite, got {self.alpha}")

    @cached_property
    def block_size(self) -> Integers:
        """(B,) observations in the block."""
        return np.bincount(self.observation_block, minlength=self.blocks_start[-1])

    @cached_property
    def weights(self) -> Floats:
        """(R,) the particles' probabilities, which sum to one in every subproblem."""
        weights: Floats = np.exp(self.log_weights)
        if len(weights):
            sums = np.add.reduceat(weights, self.rows_start[:-1])
            weights /= np.repeat(sums, np.diff(self.rows_start))
        return weights

    @cached_property
    def layout(self) -> Layout:
        return Layout(
            self.blocks_start, self.rows_start, self.cells_start, self.cells, self.weights, self.block_size
        )

    @cached_property
    def census(self) -> Census:
        """The clusters that occur, with their probabilities."""
        return take_census(self.layout)

    @cached_property
    def block_subproblem(self) -> Integers:
        """(B,) the block's subproblem."""
        return np.repeat(np.arange(len(self.rows_start) - 1), np.diff(self.blocks_start))

    @cached_property
    def order(self) -> Integers:
        """(B,) the blocks as they first appear."""
        return appearance(self.observation_block, len(self.block_size))

    @cached_property
    def order_by_subproblem(self) -> Integers:
        """(B,) the same, subproblem after subproblem."""
        subproblem = self.block_subproblem[self.order]
        return grouped(self.order, subproblem, len(self.rows_start) - 1)[0]

    @cached_property
    def members(self) -> tuple[Integers, Integers]:
        """Observations sorted by subproblem, and where each subproblem's begin."""
        subproblem = self.block_subproblem[self.observation_block]
        return grouped(np.arange(len(subproblem)), subproblem, len(self.rows_start) - 1)


def flat(values: ArrayLike, dtype: Any) -> Array:
    """A one-dimensional array the kernels can take; copied only where it is not one already."""
    result = np.require(values, dtype, ["C_CONTIGUOUS", "WRITEABLE"])
    if result.ndim != 1:
        raise ValueError(f"expected a one-dimensional array, got shape {result.shape}")
    return result


def dense(ids: Integers) -> Integers:
    """The cluster ids, or others where these are sparse, for tables as long as the largest of them."""
    if len(ids) and ids.min() < 0:
        raise ValueError("cells must hold non-negative cluster ids")
    if ids.max(initial=0) <= 4 * len(ids):
        return ids
    return np.unique(ids, return_inverse=True)[1]
