"""A surrogate beside a black box: what it keeps of the clusters, and which of them it proposes.

The state's rows of statistics are the surrogate's, and its data are what the surrogate has made of the
observations; weights and scores are the black box's. The surrogate's gains only choose which clusters the
black box is asked for: those in the m′ best assignments to existing clusters (paper, appendix C.1). That a
new observation may be alone is not the surrogate's to decide, as α is not made for its likelihood.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from partita._core.kernel import inner, kernel
from partita._core.typing import Array, Floats, Integers
from partita.models.base import CompiledModel, Model
from partita.models.scoring.encoding import check_possible, log_marginals
from partita.models.scoring.families import begin, gains
from partita.smc.moves import install
from partita.smc.moves.remove import shrink
from partita.smc.state.tabled import attached, detached
from partita.smc.steps.step import extend_created


class Surrogate(Protocol):
    """What a black box's engine asks of its surrogate; all but ``gains`` keep the statistics up to date."""

    width: int  # of a cluster's row of statistics

    def start(self, state: Any) -> None:
        """Write the row of the empty cluster."""

    def check(self, encoded: Floats) -> None:
        """ValueError for the first row that the surrogate has no place for."""

    def gains(self, state: Any, used: Integers, encoded: Floats, who: str) -> None:
        """log|c| + log p(x | c) of the clusters ``used``, into the state's ``gain``."""

    def extend(self, state: Any, created: Integers, x: int, who: str) -> None:
        """``x`` has made the clusters ``created``, each with its parent."""

    def shrink(self, state: Any, detached: Any, x: int, who: str) -> None:
        """``x`` has left clusters."""

    def fill(self, state: Any, c: int, members: Integers, who: str) -> None:
        """Cluster ``c`` is new and has these members."""


def surrogate_of(model: Model, n_features: int, n_encoded: int) -> Surrogate:
    """What keeps the statistics of a surrogate."""
    if isinstance(model, CompiledModel):
        return CompiledSurrogate(model, n_features)
    return AdditiveSurrogate(model, n_encoded)


class CompiledSurrogate:
    """A compiled model as the surrogate: the rows are its family's."""

    def __init__(self, model: CompiledModel, n_features: int) -> None:
        self.model, self.n_features = model, n_features
        self.family, self.width = model.family(n_features), model.width(n_features)

    def __getstate__(self) -> dict[str, Any]:
        """For copies, which own their tables, if there are any."""
        return self.__dict__ | {"family": detached(self.family)}

    def __setstate__(self, contents: dict[str, Any]) -> None:
        family = attached(contents["family"], contents["model"], contents["n_features"])
        self.__dict__ = contents | {"family": family}

    def start(self, state: Any) -> None:
        write_empty(state, self.family, self.n_features)

    def check(self, encoded: Floats) -> None:
        self.family = self.model.after_encoding(self.family)
        check_possible(self.model, self.family, self.n_features, encoded)

    def gains(self, state: Any, used: Integers, encoded: Floats, who: str) -> None:
        write_gains(state, self.family, used, np.ascontiguousarray(encoded[None]))

    def extend(self, state: Any, created: Integers, x: int, who: str) -> None:
        write_created(state, self.family, x)

    def shrink(self, state: Any, detached: Any, x: int, who: str) -> None:
        _, blocks, matrix, _, shrinking = detached
        write_shrunk(state, self.family, blocks, matrix, shrinking, x)

    def fill(self, state: Any, c: int, members: Integers, who: str) -> None:
        install.fill(state, self.family, np.array([c]), np.array([len(members)]), members)


class AdditiveSurrogate:
    """A user's model as the surrogate: the rows are its totals, and its log p(c)."""

    def __init__(self, model: Model, n_encoded: int) -> None:
        self.model, self.width = model, n_encoded + 1

    def start(self, state: Any) -> None:
        """The row of the empty cluster is zero already."""

    def check(self, encoded: Floats) -> None:
        alone = log_marginals(self.model, encoded, np.ones(len(encoded)), "rows")
        if (alone == -np.inf).any():
            row = int(np.argmax(alone == -np.inf))
            raise ValueError(f"row {row}: impossible under the surrogate, even as a cluster of its own")

    def gains(self, state: Any, used: Integers, encoded: Floats, who: str) -> None:
        statistics, clusters, gain, _ = tables(state)
        size = clusters["size"][used]
        after = log_marginals(self.model, statistics[used, :-1] + encoded, size + 1.0, who)
        gain[used] = after - statistics[used, -1] + np.log(np.maximum(size, 1))

    def extend(self, state: Any, created: Integers, x: int, who: str) -> None:
        statistics, _, _, data = tables(state)
        self._write(state, created[:, 0], statistics[created[:, 1], :-1] + data[x], who)

    def shrink(self, state: Any, detached: Any, x: int, who: str) -> None:
        statistics, clusters, _, data = tables(state)
        shrinking = detached[-1]
        clusters["size"][shrinking] -= 1
        self._write(state, shrinking, statistics[shrinking, :-1] - data[x], who)

    def fill(self, state: Any, c: int, members: Integers, who: str) -> None:
        _, clusters, _, data = tables(state)
        clusters["size"][c] = len(members)
        self._write(state, np.array([c]), data[members].sum(axis=0)[None], who)

    def _write(self, state: Any, ids: Integers, totals: Floats, who: str) -> None:
        statistics, clusters, _, _ = tables(state)
        sizes = clusters["size"][ids].astype(np.float64)
        after = log_marginals(self.model, totals, sizes, who)
        if (after == -np.inf).any():
            raise ValueError(f"{who}: {type(self.model).__name__}, the surrogate, depends on the order")
        statistics[ids, :-1], statistics[ids, -1] = totals, after


@kernel
def tables(state):
    """The statistics, clusters, gains and data of a state."""
    return state.statistics, state.clusters, state.gain, state.data


@kernel
def write_empty(state, family, n_features):
    """The family's ``begin``, for Python."""
    begin(family, state.statistics, n_features)


@kernel
def write_gains(state, family, ids, row):
    """The family's ``gains`` of one row, for Python."""
    gains(family, state.statistics, ids, np.int64(0), np.int64(ids.shape[0]), row, np.int64(0), state.gain)


@kernel
def write_created(state, family, x):
    """:func:`~partita.smc.steps.step.extend_created`, for Python."""
    extend_created(state, family, x)


@kernel
def write_shrunk(state, family, blocks, matrix, shrinking, x):
    """:func:`~partita.smc.moves.remove.shrink` of many clusters; their scores become the surrogate's."""
    for c in shrinking:
        shrink(state, family, blocks, matrix, c, x)


@inner
def sink(value, cluster, n):
    """Restore the order of a heap of the n best, the least first, after its first entry has been replaced."""
    k = 0
    while 2 * k + 1 < n:
        least = 2 * k + 1
        if least + 1 < n and value[least + 1] < value[least]:
            least += 1
        if value[k] <= value[least]:
            break
        value[k], value[least] = value[least], value[k]
        cluster[k], cluster[least] = cluster[least], cluster[k]
        k = least


@inner
def bounds(state):
    """The largest gain in each candidate, in their order, and which of them has the largest of all."""
    bound, first = np.full(state.n_candidates, -np.inf), 0
    for q in range(state.n_candidates):
        sub = state.subproblems[state.candidates[q]]
        at = sub.cells + sub.columns
        for k in range(at, at + sub.clusters):
            bound[q] = max(bound[q], state.gain[state.cells[k]])
        if bound[q] > bound[first]:
            first = q
    return bound, first


@kernel
def propose(state, n):
    """Given the gains, the candidates' clusters, each once, that the n best w(s, i)·|c|·p(x|c) are of."""
    cells, gain, seen = state.cells, state.gain, state.seen
    bound, first = bounds(state)
    total = 0
    for q in range(state.n_candidates):
        sub = state.subproblems[state.candidates[q]]
        total += sub.rows * sub.columns
    n = min(n, total)
    value, cluster = np.full(n, -np.inf), np.full(n, -1)
    for k in range(state.n_candidates):
        q = first if k == 0 else (k - 1 if k <= first else k)  # the most promising one first
        sub = state.subproblems[state.candidates[q]]
        at = sub.cells + sub.columns + sub.clusters
        for i in range(sub.rows):
            weight = state.weights[sub.weights + i]
            if weight + bound[q] <= value[0]:
                break  # rows are in descending order of weight
            state.tick += 1
            for j in range(at + i * sub.columns, at + (i + 1) * sub.columns):
                c = cells[j]
                if seen[c] != state.tick:
                    seen[c] = state.tick
                    if weight + gain[c] > value[0]:
                        value[0], cluster[0] = weight + gain[c], c
                        sink(value, cluster, n)
    count = 0
    state.tick += 1
    for k in range(n):
        c = cluster[k]
        if c >= 0 and seen[c] != state.tick:
            seen[c] = state.tick
            cluster[count] = c
            count += 1
    return cluster[:count]


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


@kernel
def members_of(state, ids):
    """The members of clusters of the candidates, one cluster after the other, and where each begins."""
    n = ids.shape[0]
    place, row = np.full(state.n_clusters, -1), np.full(n, -1)
    start, end = np.zeros(n + 1, np.int64), np.zeros(n, np.int64)
    for k in range(n):
        place[ids[k]] = k
        end[k] = start[k]
        start[k + 1] = start[k] + state.clusters[ids[k]].size
    members = np.empty(start[n], np.int64)
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
def members_left(state, blocks, matrix, ids):
    """:func:`members_of` for clusters that have just lost a member and count it still."""
    n = ids.shape[0]
    place, row = np.full(state.n_clusters, -1), np.full(n, -1)
    start, end = np.zeros(n + 1, np.int64), np.zeros(n, np.int64)
    for k in range(n):
        place[ids[k]] = k
        end[k] = start[k]
        start[k + 1] = start[k] + state.clusters[ids[k]].size - 1
    members, cells = np.empty(start[n], np.int64), np.empty(matrix.size, np.int64)
    rows, columns = matrix.shape
    for i in range(rows):
        for j in range(columns):
            cells[i * columns + j] = matrix[i, j]
    zero = np.int64(0)
    write_members(state, blocks, zero, cells, zero, rows, columns, n, place, row, end, members)
    return members, start


def pieces(found: tuple[Array, Array]) -> list[Integers]:
    """The members of each cluster by themselves."""
    members, start = found
    return [members[start[k] : start[k + 1]] for k in range(len(start) - 1)]
