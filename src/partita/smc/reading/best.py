"""The best clustering: the first row of every subproblem, and how sure each observation is of its cluster in it."""

from __future__ import annotations

from typing import Any

import numpy as np

from partita._core.kernel import inner, kernel
from partita._core.typing import Floats, Integers
from partita.smc.state.state import State


@kernel
def best_clusters(state, slots):
    """The observations of some subproblems, block after block, their clusters in the best clustering, and how
    sure each is of it: the mean probability, over the other members, of being together with them."""
    n = 0
    for s in slots:
        sub = state.subproblems[s]
        for j in range(sub.columns):
            n += state.blocks[state.cells[sub.cells + j]].size
    members, clusters, sure = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n)
    count = 0
    for s in slots:
        sub = state.subproblems[s]
        at = sub.cells + sub.columns + sub.clusters
        for j in range(sub.columns):
            block = state.blocks[state.cells[sub.cells + j]]
            certainty = mean_together(state, s, j) if sub.rows > 1 else 1.0
            x = block.head
            for _ in range(block.size):
                members[count], clusters[count], sure[count] = x, state.cells[at + j], certainty
                count += 1
                x = state.observations[x].next
    return members, clusters, sure


@inner
def mean_together(state, s, column):
    """The mean probability that a member of a block is together with the others of its best cluster."""
    sub, cells = state.subproblems[s], state.cells
    at = sub.cells + sub.columns + sub.clusters
    others = state.clusters[cells[at + column]].size - 1
    if others == 0:
        return 1.0
    total = 0.0
    for i in range(sub.rows):
        row, held = at + i * sub.columns, -1
        for j in range(sub.columns):
            if cells[at + j] == cells[at + column] and cells[row + j] == cells[row + column]:
                held += state.blocks[cells[sub.cells + j]].size
        total += np.exp(state.weights[sub.weights + i]) * held
    return min(total / others, 1.0)


def best_clustering(state: State, slots: Any) -> tuple[Integers, Integers, Floats]:
    """:func:`best_clusters`, the observations in ascending order."""
    members, clusters, sure = best_clusters(state, np.asarray(slots, np.int64))
    order = np.argsort(members, kind="stable")
    return members[order], clusters[order], sure[order]
