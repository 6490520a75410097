"""The clusters of a state, as a scorer sees them (:class:`partita.models.scoring.contract.Clusters`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import gammaln

from partita._core.kernel import inner, kernel
from partita._core.typing import Array, Floats, Integers
from partita.smc.state.access import arrays_of


class StateClusters:
    """Clusters of a state, for as long as its arrays are not replaced.

    Parameters
    ----------
    state : State
    detached : (blocks, matrix), optional
        The rows of a subproblem that an observation has just left, where members are to be read off those; else
        they are read off the candidates.
    """

    def __init__(self, state: Any, detached: tuple[Integers, Integers] | None = None) -> None:
        self.state, self.detached = state, detached
        self.statistics, self.clusters, self.gain, self.data = arrays_of(state)

    @property
    def sizes(self) -> Any:
        """Of all clusters, to be written as well."""
        return self.clusters["size"]

    def members(self, ids: Integers) -> list[Integers]:
        """The members of clusters."""
        found = (
            members_of(self.state, ids)
            if self.detached is None
            else members_in(self.state, *self.detached, ids)
        )
        return pieces(found)

    def log_p(self, ids: Integers) -> Floats:
        """log p(c), from the scores that the state keeps."""
        found: Floats = self.clusters["score"][ids] - gammaln(np.maximum(self.sizes[ids], 1))
        return found

    def note(self, ids: Integers, log_p: Floats) -> None:
        """Write the scores lgamma(|c|) + log p(c)."""
        self.clusters["score"][ids] = gammaln(self.sizes[ids]) + log_p


@inner
def write_members(state, blocks, first, cells, at, rows, columns, wanted, place, row, end, members):
    """Append to each wanted cluster's members those of its blocks, in the first row that has it.

    ``blocks[first:]`` are the blocks of the columns, ``cells[at:]`` the rows of a matrix.
    """
    for i in range(rows):
        if wanted == 0:
            return
        for j in range(columns):
            k = place[cells[at + i * columns + j]]
            if k < 0 or row[k] not in (-1, i):
                continue
            if row[k] < 0:
                row[k] = i
                wanted -= 1
            block = state.blocks[blocks[first + j]]
            x = block.head
            for _ in range(block.size):
                members[end[k]] = x
                end[k] += 1
                x = state.observations[x].next


@inner
def places_of(state, ids):
    """The place of each cluster among ``ids``, −1 for others, and where the members of each begin."""
    n = ids.shape[0]
    place, start = np.full(state.n_clusters, -1), np.zeros(n + 1, np.int64)
    for k in range(n):
        place[ids[k]] = k
        start[k + 1] = start[k] + state.clusters[ids[k]].size
    return place, start


@kernel
def members_of(state, ids):
    """The members of clusters of the candidates, one cluster after the other, and where each begins."""
    place, start = places_of(state, ids)
    row, end = np.full(ids.shape[0], -1), start[:-1].copy()
    members = np.empty(start[-1], np.int64)
    for q in range(state.n_candidates):
        sub = state.subproblems[state.candidates[q]]
        wanted, at = 0, sub.cells + sub.columns
        for k in range(at, at + sub.clusters):
            wanted += place[state.cells[k]] >= 0
        shape = (sub.rows, sub.columns, wanted)
        matrix = at + sub.clusters
        write_members(state, state.cells, sub.cells, state.cells, matrix, *shape, place, row, end, members)
    return members, start


@kernel
def members_in(state, blocks, matrix, ids):
    """The same for clusters of rows that are given."""
    place, start = places_of(state, ids)
    row, end = np.full(ids.shape[0], -1), start[:-1].copy()
    members, cells = np.empty(start[-1], np.int64), np.empty(matrix.size, np.int64)
    rows, columns = matrix.shape
    for i in range(rows):
        for j in range(columns):
            cells[i * columns + j] = matrix[i, j]
    zero = np.int64(0)
    write_members(state, blocks, zero, cells, zero, rows, columns, ids.shape[0], place, row, end, members)
    return members, start


def pieces(found: tuple[Array, Array]) -> list[Integers]:
    """The members of each cluster by themselves."""
    members, start = found
    return [members[start[k] : start[k + 1]] for k in range(len(start) - 1)]
