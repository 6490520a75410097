"""The sampler's state: a posterior over partitions, as a product over subproblems, on flat arrays.

A *subproblem* is a set of observations that shares no cluster with the rest, and at most m partitions of
it, the *particles*. Observations that are together in every particle of their subproblem form one *block*,
so a particle is a partition of blocks, whatever their sizes: a matrix of (particles × blocks) cluster ids
holds them all. A *cluster* is a distinct set of blocks with its statistics, shared by the particles that
contain it. Blocks only ever join as particles agree, so settled observations cost a few bytes each and no
step touches them, and the matrix shrinks again when uncertainty resolves.

Invariants, checked by :func:`partita.smc.storage.validate`:

- every observation is in one block, every block in one column of one subproblem's matrix;
- in each row equal ids mean the same cluster, and an id stands for the same blocks in every row;
- rows of a subproblem are distinct partitions, in descending order of weight; no two columns are equal;
- ``weights`` are normalised per subproblem; under exact weights they are the normalised scores
  Σ_c [log α + lgamma(|c|) + log p(c)] of the rows (paper, eq. 3 of the appendix).

Cluster 0 is the empty one: to open a new cluster is to join cluster 0.

The state is a Numba struct, so that kernels take one argument, and can grow its arrays. It holds the
sampler's settings too. Fields marked *working* carry nothing from one step to the next.
"""

from __future__ import annotations

import numba
import numpy as np
from numba import types
from numba.experimental import structref

from partita._kernel import kernel

OBSERVATION = np.dtype([("block", "i8"), ("next", "i8"), ("previous", "i8")])
BLOCK = np.dtype([("head", "i8"), ("size", "i8"), ("subproblem", "i8"), ("column", "i8")])
CLUSTER = np.dtype([("score", "f8"), ("size", "i8"), ("live", "i8")])
SUBPROBLEM = np.dtype(
    [("cells", "i8"), ("weights", "i8"), ("rows", "i8"), ("columns", "i8"), ("clusters", "i8")]
)

_integers = types.int64[::1]

ARRAYS = {
    "data": types.float64[:, ::1],  # observations × width: as the model has encoded them
    "observations": numba.from_dtype(OBSERVATION)[::1],  # block, and neighbours in its circular list
    "blocks": numba.from_dtype(BLOCK)[::1],  # one member, size, place in its subproblem
    "clusters": numba.from_dtype(CLUSTER)[::1],  # lgamma(|c|) + log p(c), |c|, whether the id is in use
    "statistics": types.float64[:, ::1],  # clusters × width: what the model keeps of each
    "subproblems": numba.from_dtype(SUBPROBLEM)[::1],  # extents, and offsets into the next two; rows = 0: free
    "cells": _integers,  # of each subproblem: its blocks, its clusters, its (rows × columns) cluster ids
    "weights": types.float64[::1],  # of each subproblem: its rows' normalised log-weights
    "free_blocks": _integers,
    "free_clusters": _integers,
    "free_subproblems": _integers,
}
COUNTS = (  # how much of the arrays is in use, and where the stream stands
    "n_observations",
    "n_blocks",
    "n_clusters",
    "n_subproblems",
    "n_free_blocks",
    "n_free_clusters",
    "n_free_subproblems",
    "end_cells",
    "end_weights",
    "live_cells",
    "live_weights",
    "next_alpha",  # number of observations at which α is learnt next
)
SETTINGS = ("particles", "resampling", "merging", "exact", "splitting", "rejuvenation", "learn_alpha")
FIELDS = [
    *ARRAYS.items(),
    *((name, types.int64) for name in COUNTS),
    *((name, types.int64) for name in SETTINGS),
    ("log_alpha", types.float64),
    ("random", types.uint64),  # state of the random number generator
    ("tick", types.int64),  # working: the last mark used in ``seen``
    ("gain", types.float64[::1]),  # working, per cluster: log|c| + log p(x | c)
    ("seen", types.int64[::1]),  # working, per cluster: mark of the last visit
    ("child", _integers),  # working, per cluster: what c ∪ {x} has become
    ("bound", types.float64[::1]),  # working, per subproblem: the largest gain of its clusters
    ("created", types.int64[:, ::1]),  # working: clusters made in this step, and the cluster each extends
    ("n_created", types.int64),
]


@structref.register
class StateType(types.StructRef):  # type: ignore[misc]
    """Numba's type of a :class:`State`."""

    def preprocess_fields(self, fields):  # type: ignore[no-untyped-def]
        """Fields are declared with their final types."""
        return fields


class State(structref.StructRefProxy):  # type: ignore[misc]
    """Everything the sampler knows, as kernels see it; ``FIELDS`` says what is in it."""


structref.define_boxing(StateType, State)
STATE = StateType(FIELDS)


@kernel
def create(n_encoded, width, log_alpha, seed, settings):
    """An empty state, for observations of ``n_encoded`` numbers and clusters of ``width``."""
    state = structref.new(STATE)
    state.data = np.empty((16, n_encoded))
    state.observations = np.empty(16, OBSERVATION)
    state.blocks = np.empty(16, BLOCK)
    state.clusters = np.empty(16, CLUSTER)
    state.statistics = np.zeros((16, width))
    state.subproblems = np.empty(16, SUBPROBLEM)
    state.cells = np.empty(256, np.int64)
    state.weights = np.empty(64)
    state.free_blocks = np.empty(16, np.int64)
    state.free_clusters = np.empty(16, np.int64)
    state.free_subproblems = np.empty(16, np.int64)
    state.n_observations = state.n_blocks = state.n_subproblems = 0
    state.n_free_blocks = state.n_free_clusters = state.n_free_subproblems = 0
    state.end_cells = state.end_weights = state.live_cells = state.live_weights = 0
    state.n_clusters = 1  # the empty cluster
    state.clusters[0].score, state.clusters[0].size, state.clusters[0].live = 0.0, 0, 1
    state.next_alpha = 2
    state.particles, state.resampling, state.merging = settings[0], settings[1], settings[2]
    state.exact, state.splitting = settings[3], settings[4]
    state.rejuvenation, state.learn_alpha = settings[5], settings[6]
    state.log_alpha, state.random = log_alpha, np.uint64(seed)
    state.tick, state.n_created = 0, 0
    state.gain, state.seen, state.child = np.empty(16), np.zeros(16, np.int64), np.empty(16, np.int64)
    state.bound = np.empty(16)
    state.created = np.empty((state.particles + 1, 2), np.int64)
    return state


@kernel
def uniform(state):
    """One uniform number in [0, 1): SplitMix64 (Steele, Lea and Flood 2014)."""
    state.random += np.uint64(0x9E3779B97F4A7C15)
    z = state.random
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return np.float64(z >> np.uint64(11)) / 9007199254740992.0


@kernel
def marks(state, n):
    """The first of n consecutive numbers never used before, to mark what has been visited."""
    state.tick += n
    return state.tick - n + 1


@kernel
def descending(values, n):
    """The order that sorts the first ``n`` values from high to low, equal ones as they stand: merge sort."""
    order, other = np.empty(n, np.int64), np.empty(n, np.int64)
    for k in range(n):
        order[k] = k
    width = 1
    while width < n:
        for start in range(0, n, 2 * width):
            middle, end = min(start + width, n), min(start + 2 * width, n)
            a, b = start, middle
            for k in range(start, end):
                if b >= end or (a < middle and values[order[a]] >= values[order[b]]):
                    other[k] = order[a]
                    a += 1
                else:
                    other[k] = order[b]
                    b += 1
        order, other = other, order
        width *= 2
    return order


@kernel
def take_cluster(state):
    """An unused cluster id."""
    if state.n_free_clusters > 0:
        state.n_free_clusters -= 1
        c = state.free_clusters[state.n_free_clusters]
    else:
        c = state.n_clusters
        state.n_clusters += 1
    state.clusters[c].live = 1
    return c


@kernel
def give_cluster(state, c):
    """Forget a cluster that no particle holds."""
    state.clusters[c].live = 0
    state.free_clusters[state.n_free_clusters] = c
    state.n_free_clusters += 1


@kernel
def singleton_block(state, x):
    """Put observation ``x`` into a block of its own."""
    if state.n_free_blocks > 0:
        state.n_free_blocks -= 1
        block = state.free_blocks[state.n_free_blocks]
    else:
        block = state.n_blocks
        state.n_blocks += 1
    state.blocks[block].head = x
    state.blocks[block].size = 1
    state.observations[x].block = block
    state.observations[x].next = x
    state.observations[x].previous = x
    return block


@kernel
def give_block(state, block):
    """Forget a block without members."""
    state.free_blocks[state.n_free_blocks] = block
    state.n_free_blocks += 1


@kernel
def join_blocks(state, a, b):
    """Join two blocks; the smaller one is relabelled, so an observation is at most log₂ n times."""
    blocks, observations = state.blocks, state.observations
    if blocks[a].size < blocks[b].size:
        a, b = b, a
    head_a, head_b = blocks[a].head, blocks[b].head
    x = head_b
    for _ in range(blocks[b].size):
        observations[x].block = a
        x = observations[x].next
    tail_a, tail_b = observations[head_a].previous, observations[head_b].previous
    observations[tail_a].next = head_b
    observations[head_b].previous = tail_a
    observations[tail_b].next = head_a
    observations[head_a].previous = tail_b
    blocks[a].size += blocks[b].size
    give_block(state, b)
    return a


@kernel
def free_subproblem(state, s):
    """Forget a subproblem's rows; its blocks and clusters are the caller's to keep or to forget."""
    sub = state.subproblems[s]
    state.live_cells -= sub.columns + sub.clusters + sub.rows * sub.columns
    state.live_weights -= sub.rows
    sub.rows = 0
    state.free_subproblems[state.n_free_subproblems] = s
    state.n_free_subproblems += 1


@kernel
def new_subproblem(state, n_rows, n_columns, n_clusters):
    """A subproblem with its place at the end of ``cells`` and ``weights``, to be filled in."""
    if state.n_free_subproblems > 0:
        state.n_free_subproblems -= 1
        s = state.free_subproblems[state.n_free_subproblems]
    else:
        s = state.n_subproblems
        state.n_subproblems += 1
    sub = state.subproblems[s]
    sub.rows, sub.columns, sub.clusters = n_rows, n_columns, n_clusters
    sub.cells, sub.weights = state.end_cells, state.end_weights
    size = n_columns + n_clusters + n_rows * n_columns
    state.live_cells += size
    state.live_weights += n_rows
    state.end_cells += size
    state.end_weights += n_rows
    return s


@kernel
def compact(state):
    """Move all subproblems to the front of ``cells`` and ``weights``, in their present order."""
    n = state.n_subproblems
    cells, weights = state.cells, state.weights
    keys = np.empty(n)
    for s in range(n):
        keys[s] = -state.subproblems[s].cells if state.subproblems[s].rows > 0 else -np.inf
    end_cells = end_weights = np.int64(0)
    for s in descending(keys, n):
        sub = state.subproblems[s]
        if sub.rows == 0:
            break
        size = sub.columns + sub.clusters + sub.rows * sub.columns
        for k in range(size):
            cells[end_cells + k] = cells[sub.cells + k]
        for k in range(sub.rows):
            weights[end_weights + k] = weights[sub.weights + k]
        sub.cells, sub.weights = end_cells, end_weights
        end_cells += size
        end_weights += sub.rows
    state.end_cells, state.end_weights = end_cells, end_weights


@kernel
def longer(array, used, size):
    """A copy of a vector with room for ``size`` entries."""
    result = np.empty(size, array.dtype)
    for k in range(used):
        result[k] = array[k]
    return result


@kernel
def taller(array, used, size):
    """A copy of a matrix with room for ``size`` rows."""
    result = np.empty((size, array.shape[1]), array.dtype)
    for k in range(used):
        for j in range(array.shape[1]):
            result[k, j] = array[k, j]
    return result


@kernel
def reserve_observations(state, n):
    """Make room for ``n`` observations in all."""
    if n > state.data.shape[0]:
        size = max(n, state.data.shape[0] * 3 // 2)
        state.data = taller(state.data, state.n_observations, size)
        state.observations = longer(state.observations, state.n_observations, size)


@kernel
def reserve_clusters(state, more):
    """Make room for so many more clusters."""
    if state.n_clusters + more > state.clusters.shape[0]:
        used = state.n_clusters
        size = (used + more) * 3 // 2
        state.clusters = longer(state.clusters, used, size)
        state.statistics = taller(state.statistics, used, size)
        state.free_clusters = longer(state.free_clusters, state.n_free_clusters, size)
        state.gain = longer(state.gain, used, size)
        state.child = longer(state.child, 0, size)
        state.seen = np.zeros(size, np.int64)


@kernel
def reserve(state, cells, weights, clusters, subproblems):
    """Make room for so many more cells, weights, clusters and subproblems, and one block.

    ``cells`` and ``weights`` are compacted when full, and grow when that would free less than it moves.
    """
    if state.end_cells + cells > state.cells.shape[0] or state.end_weights + weights > state.weights.shape[0]:
        compact(state)
        if state.live_cells + max(cells, state.live_cells) > state.cells.shape[0]:
            state.cells = longer(state.cells, state.end_cells, 2 * state.live_cells + 3 * cells)
        if state.live_weights + max(weights, state.live_weights) > state.weights.shape[0]:
            state.weights = longer(state.weights, state.end_weights, 2 * state.live_weights + 3 * weights)
    reserve_clusters(state, clusters)
    if state.n_subproblems + subproblems > state.subproblems.shape[0]:
        size = (state.n_subproblems + subproblems) * 3 // 2
        state.subproblems = longer(state.subproblems, state.n_subproblems, size)
        state.free_subproblems = longer(state.free_subproblems, state.n_free_subproblems, size)
        state.bound = longer(state.bound, 0, size)
    if state.n_blocks + 1 > state.blocks.shape[0]:
        size = (state.n_blocks + 1) * 3 // 2
        state.blocks = longer(state.blocks, state.n_blocks, size)
        state.free_blocks = longer(state.free_blocks, state.n_free_blocks, size)
