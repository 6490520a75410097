"""Reading the state without changing it: the arrays a :class:`~partita.posterior.Posterior` is made of."""

from __future__ import annotations

import math

import numpy as np

from partita._core.kernel import kernel
from partita._core.typing import Array
from partita.posterior import Posterior
from partita.smc.state.state import State, n_present


@kernel
def number_subproblems(state):
    """The subproblems in order of their first observation."""
    order = np.empty(state.n_subproblems, np.int64)
    seen = np.zeros(state.n_subproblems, np.bool_)
    count = 0
    for x in range(state.n_observations):
        block = state.observations[x].block
        if block < 0:
            continue  # it has been removed
        s = state.blocks[block].subproblem
        if not seen[s]:
            seen[s] = True
            order[count] = s
            count += 1
    return order[:count]


@kernel
def extents(state, order):
    """Where each subproblem's blocks, rows and cells start."""
    starts = np.zeros((3, order.shape[0] + 1), np.int64)
    for k in range(order.shape[0]):
        sub = state.subproblems[order[k]]
        starts[0, k + 1] = starts[0, k] + sub.columns
        starts[1, k + 1] = starts[1, k] + sub.rows
        starts[2, k + 1] = starts[2, k] + np.int64(sub.rows) * sub.columns
    return starts


@kernel
def gather(state, order, starts):
    """Blocks of observations, cells, log-weights and scores of the rows, subproblem after subproblem."""
    number = np.empty(state.n_blocks, np.int64)
    n_rows, n_cells = starts[1, order.shape[0]], starts[2, order.shape[0]]
    cells, weights, scores = np.empty(n_cells, np.int64), np.empty(n_rows), np.zeros(n_rows)
    row = cell = 0
    for k in range(order.shape[0]):
        sub = state.subproblems[order[k]]
        for j in range(sub.columns):
            number[state.cells[sub.cells + j]] = starts[0, k] + j
        at = sub.cells + sub.columns + sub.clusters
        for _ in range(sub.rows):
            state.tick += 1
            weights[row] = state.weights[sub.weights + row - starts[1, k]]
            for _ in range(sub.columns):
                c = state.cells[at]
                cells[cell] = c
                if state.seen[c] != state.tick:
                    state.seen[c] = state.tick
                    scores[row] += state.log_alpha + state.clusters[c].score
                at, cell = at + 1, cell + 1
            row += 1
    block = np.empty(n_present(state), np.int64)
    count = 0
    for x in range(state.n_observations):
        if state.observations[x].block >= 0:
            block[count] = number[state.observations[x].block]
            count += 1
    return block, cells, weights, scores, math.exp(state.log_alpha)


def posterior_of(state: State) -> Posterior:
    """The posterior of the observations present, as it stands; later ones do not change it."""
    order = number_subproblems(state)
    starts: Array = extents(state, order)
    block, cells, weights, scores, alpha = gather(state, order, starts)
    return Posterior(
        observation_block=block,
        blocks_start=starts[0],
        rows_start=starts[1],
        cells_start=starts[2],
        cells=cells,
        log_weights=weights,
        row_scores=scores,
        alpha=alpha,
    )
