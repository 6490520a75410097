"""The sampler's state: a posterior over partitions, as a product over subproblems, on flat arrays.

A *subproblem* is a set of observations that shares no cluster with the rest, and at most m partitions of
it, the *particles*. Observations that are together in every particle of their subproblem form one *block*,
so a particle is a partition of blocks, whatever their sizes: a matrix of (particles × blocks) cluster ids
holds them all. A *cluster* is a distinct set of blocks with its statistics, shared by the particles that
contain it. Blocks only ever join as particles agree, so settled observations cost a few bytes each and no
step touches them, and the matrix shrinks again when uncertainty resolves.

Invariants:

- every observation is in one block, every block in one column of one subproblem's matrix;
- in each row equal ids mean the same cluster, and an id stands for the same blocks in every row;
- rows of a subproblem are distinct partitions, in descending order of weight; no two columns are equal;
- ``weights`` are normalised per subproblem; under exact weights they are the normalised scores
  Σ_c [log α + lgamma(|c|) + log p(c)] of the rows (paper, eq. 3 of the appendix).

Cluster 0 is the empty one: to open a new cluster is to join cluster 0.

Kernels see the state as one Numba struct, settings included. They never grow its arrays: a step that finds
no room says so before it has changed anything, and Python takes the struct apart, makes room and puts it
together again, which is also how a state is saved and loaded.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types
from numba.experimental import structref

from partita._core.kernel import inner, kernel
from partita._core.sorting import descending
from partita._core.typing import Array
from partita.smc.state.constraints import CONSTRAINTS, no_constraints
from partita.smc.state.index import INDEX, new_index
from partita.smc.state.names import NAMES, no_names

OBSERVATION = np.dtype([("block", "i8"), ("next", "i8"), ("previous", "i8")])
BLOCK = np.dtype([("head", "i8"), ("size", "i8"), ("subproblem", "i8"), ("column", "i8")])
CLUSTER = np.dtype([("score", "f8"), ("size", "i8")])
SUBPROBLEM = np.dtype(
    [
        ("cells", "i8"),
        ("weights", "i8"),
        ("rows", "i8"),
        ("columns", "i8"),
        ("clusters", "i8"),
        ("stamp", "i8"),  # when its slot was last written or freed, in numbers of such changes
        ("absent", "i8"),  # not 0: its members' data and its clusters' statistics have yet to be fetched
    ]
)

ARRAYS = {
    "data": types.float64[:, ::1],  # observations × width: as the model has encoded them
    "observations": numba.from_dtype(OBSERVATION)[::1],  # block, and neighbours in its circular list
    "blocks": numba.from_dtype(BLOCK)[::1],  # one member, size, place in its subproblem
    "clusters": numba.from_dtype(CLUSTER)[::1],  # lgamma(|c|) + log p(c), and |c|
    "statistics": types.float64[:, ::1],  # clusters × width: what the model keeps of each
    "subproblems": numba.from_dtype(SUBPROBLEM)[
        ::1
    ],  # extents, and offsets into the next two; rows = 0: free
    "cells": types.int64[::1],  # of each subproblem: its blocks, its clusters, its (rows × columns) ids
    "weights": types.float64[::1],  # of each subproblem: its rows' normalised log-weights
}
COUNTS = (  # how much of the arrays is in use; the free entries of each kind form a list through them
    "n_observations",
    "n_blocks",
    "n_clusters",
    "n_subproblems",
    "free_block",  # the next one is in its ``head``
    "free_cluster",  # the next one is in its ``size``
    "free_subproblem",  # the next one is in its ``cells``
    "end_cells",
    "end_weights",
    "live_cells",
    "live_weights",
    "next_alpha",  # number of observations at which α is learnt next
    "n_removed",  # observations that have been taken out for good, and keep their numbers
    "n_changes",  # slots written or freed so far
)


TOTALS = (  # what steps have done since the sampler was made or loaded, all observations together
    "steps",  # observations placed, those that were taken out and placed again included
    "candidates",  # subproblems met
    "scored",  # clusters scored
    "pooled",  # putative particles pooled
    "kept",  # particles retained
    "merged",  # subproblems joined with another
    "split",  # subproblems split off
)


LONGEST = 2**53  # odds: beyond it, a float is no whole number any more


class Settings(NamedTuple):
    """What decides how a state develops."""

    particles: int  # of each subproblem
    resampling: int = 0  # its code in ``sampler.RESAMPLING``
    merging: int = 0  # its code in ``sampler.MERGING``
    exact: int = 1  # exact weights, or marginal ones
    splitting: int = 1
    rejuvenation: int = 0
    learn_alpha: int = 0
    longest_odds: int = 0  # of a subproblem's best partition against one that is kept; 0: any


FIELDS = [
    *ARRAYS.items(),
    *((name, types.int64) for name in COUNTS),
    *((name, types.int64) for name in Settings._fields),
    ("log_alpha", types.float64),
    ("random", types.uint64),  # state of the random number generator
    ("index", INDEX),  # from keys to observations, where candidates are in use
    ("constraints", CONSTRAINTS),  # which observations must be together, or apart
    ("names", NAMES),  # of the clusters in the best clustering, where somebody follows it
    ("totals", types.int64[::1]),  # what has happened so far, by the names of ``TOTALS``
    # Working memory, which carries nothing from one step to the next:
    ("tick", types.int64),  # the last mark used in ``seen``
    ("gain", types.float64[::1]),  # per cluster: log|c| + log p(x | c)
    ("seen", types.int64[::1]),  # per cluster: mark of the last visit
    ("child", types.int64[::1]),  # per cluster: what c ∪ {x} has become
    ("candidates", types.int64[::1]),  # the subproblems that x is scored against, in order of their slots
    ("n_candidates", types.int64),
    ("met", types.int64[::1]),  # per subproblem: mark of the last look-up that found it
    ("met_at", types.int64[::1]),  # per subproblem: its place in the order in which they were found
    ("bound", types.float64[::1]),  # per candidate's slot: the largest gain of its clusters, or more
    ("late", types.boolean[::1]),  # per candidate's slot: whether its clusters have yet to be scored
    ("hulls", types.float64[:, ::1]),  # per subproblem: what a family's ceiling needs; none until one asks
    ("enclosed", types.boolean[::1]),  # per subproblem: whether it has its hull
    ("share", types.float64[::1]),  # per candidate's slot: of the retained weight
    ("dropped", types.boolean[::1]),  # per candidate's slot: whether it holds too little of it
    ("n_scored", types.int64),  # clusters scored in this step
    ("created", types.int64[:, ::1]),  # clusters made in this step, and the cluster each extends
    ("n_created", types.int64),
    ("written", types.int64[::1]),  # the slots that this step has written
    ("n_written", types.int64),
    ("joined", types.int64[:, ::1]),  # members, one each, of blocks that this step has joined
    ("n_joined", types.int64),
    ("needed", types.int64[::1]),  # room that a step needs: cells, weights, clusters, subproblems, blocks
]


@structref.register
class StateType(types.StructRef):  # type: ignore[misc]
    """Numba's type of a :class:`State`."""

    def preprocess_fields(self, fields):
        """Fields are declared with their final types."""
        return fields


class State(structref.StructRefProxy):  # type: ignore[misc]
    """Everything the sampler knows, as kernels see it; ``FIELDS`` says what is in it."""


structref.define_boxing(StateType, State)
STATE = StateType(FIELDS)


@kernel
def assemble(parts, counts, settings, log_alpha, random, index, constraints, names, totals):
    """A state from its parts: the arrays, the counts and the settings in the order of their names above."""
    state = structref.new(STATE)
    state.data, state.observations, state.blocks, state.clusters = parts[0], parts[1], parts[2], parts[3]
    state.statistics, state.subproblems, state.cells, state.weights = parts[4], parts[5], parts[6], parts[7]
    state.n_observations, state.n_blocks = counts[0], counts[1]
    state.n_clusters, state.n_subproblems = counts[2], counts[3]
    state.free_block, state.free_cluster, state.free_subproblem = counts[4], counts[5], counts[6]
    state.end_cells, state.end_weights = counts[7], counts[8]
    state.live_cells, state.live_weights, state.next_alpha = counts[9], counts[10], counts[11]
    state.n_removed, state.n_changes = counts[12], counts[13]
    state.particles, state.resampling, state.merging = settings[0], settings[1], settings[2]
    state.exact, state.splitting = settings[3], settings[4]
    state.rejuvenation, state.learn_alpha, state.longest_odds = settings[5], settings[6], settings[7]
    state.log_alpha, state.random, state.index, state.constraints = log_alpha, random, index, constraints
    state.names, state.totals = names, totals
    state.tick, state.n_created, state.n_scored = 0, 0, 0
    n = state.clusters.shape[0]
    state.gain, state.seen, state.child = np.empty(n), np.zeros(n, np.int64), np.empty(n, np.int64)
    n = state.subproblems.shape[0]
    state.candidates, state.n_candidates, state.met = np.empty(n, np.int64), 0, np.zeros(n, np.int64)
    state.met_at = np.empty(n, np.int64)
    state.bound, state.share, state.dropped = np.empty(n), np.empty(n), np.empty(n, np.bool_)
    state.late, state.enclosed = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    state.hulls = np.empty((0, 0))
    state.created = np.empty((state.particles, 2), np.int64)
    state.written, state.n_written = np.empty(n, np.int64), 0
    state.joined, state.n_joined = np.empty((state.blocks.shape[0], 2), np.int64), 0
    state.needed = np.zeros(5, np.int64)
    return state


@kernel
def dismantle(state):
    """The parts of a state as :func:`assemble` takes them, and the room it needs."""
    counts, settings = np.empty(14, np.int64), np.empty(8, np.int64)
    counts[0], counts[1] = state.n_observations, state.n_blocks
    counts[2], counts[3] = state.n_clusters, state.n_subproblems
    counts[4], counts[5], counts[6] = state.free_block, state.free_cluster, state.free_subproblem
    counts[7], counts[8] = state.end_cells, state.end_weights
    counts[9], counts[10], counts[11] = state.live_cells, state.live_weights, state.next_alpha
    counts[12], counts[13] = state.n_removed, state.n_changes
    settings[0], settings[1], settings[2] = state.particles, state.resampling, state.merging
    settings[3], settings[4] = state.exact, state.splitting
    settings[5], settings[6], settings[7] = state.rejuvenation, state.learn_alpha, state.longest_odds
    kept = (state.data, state.observations, state.blocks, state.clusters)
    parts = (*kept, state.statistics, state.subproblems, state.cells, state.weights)
    return parts, counts, settings, state.log_alpha, state.random, state.needed


@kernel
def shared_of(state):
    """The index, the constraints, the names and the totals, which are shared and not copied."""
    return state.index, state.constraints, state.names, state.totals


@inner
def n_present(state):
    """The number of observations that have not been removed."""
    return state.n_observations - state.n_removed


def unshared() -> tuple[Any, Any, Any]:
    """Constraints, names and totals to begin with."""
    return no_constraints(), no_names(), np.zeros(len(TOTALS), np.int64)


def new_state(
    n_encoded: int, width: int, settings: Settings, log_alpha: float, seed: int, indexed: bool = False
) -> Any:
    """An empty state, for observations of ``n_encoded`` numbers and clusters of ``width``."""
    counts = dict.fromkeys(COUNTS, 0) | {
        "n_clusters": 1,  # the empty cluster
        "free_block": -1,
        "free_cluster": -1,
        "free_subproblem": -1,
        "next_alpha": 10,
    }
    parts = (
        np.empty((16, n_encoded)),
        np.zeros(16, OBSERVATION),
        np.zeros(16, BLOCK),
        np.zeros(16, CLUSTER),
        np.zeros((16, width)),
        np.zeros(16, SUBPROBLEM),
        np.zeros(256, np.int64),
        np.zeros(64),
    )
    numbers = np.array(list(counts.values()), np.int64)
    index = new_index(int(indexed))
    options = np.array(settings, np.int64)
    return assemble(parts, numbers, options, float(log_alpha), np.uint64(seed), index, *unshared())


def _longer(array: Array, size: int) -> Array:
    """The array itself where it is long enough, else a copy with room to spare."""
    if len(array) >= size:
        return array
    result = np.zeros((max(size, len(array) * 3 // 2), *array.shape[1:]), array.dtype)
    result[: len(array)] = array
    return result


def grown(state: Any, n_observations: int = 0) -> Any:
    """The state with the room that its last step found missing, and for so many observations."""
    compact(state)
    parts, counts, settings, log_alpha, random, needed = dismantle(state)
    data, observations, blocks, clusters, statistics, subproblems, cells, weights = parts
    count = dict(zip(COUNTS, counts.tolist(), strict=True))
    n_clusters = count["n_clusters"] + needed[2]
    parts = (
        _longer(data, n_observations),
        _longer(observations, n_observations),
        _longer(blocks, count["n_blocks"] + needed[4]),
        _longer(clusters, n_clusters),
        _longer(statistics, n_clusters),
        _longer(subproblems, count["n_subproblems"] + needed[3]),
        # Twice what is live, so that the next compaction frees at least as much as it moves.
        _longer(cells, 2 * (count["live_cells"] + needed[0])),
        _longer(weights, 2 * (count["live_weights"] + needed[1])),
    )
    return assemble(parts, counts, settings, log_alpha, np.uint64(random), *shared_of(state))


def doubled(state: Any, n_observations: int) -> Any:
    """The state with twice the room, and some for so many observations."""
    parts, counts, settings, log_alpha, random, _ = dismantle(state)
    parts = tuple(_longer(part, max(2 * len(part), n_observations)) for part in parts)
    return assemble(parts, counts, settings, log_alpha, np.uint64(random), *shared_of(state))


@inner
def has_room(state, cells, weights, clusters, subproblems, blocks):
    """Whether so many more entries fit; notes the need."""
    needed = state.needed
    needed[0], needed[1], needed[2], needed[3], needed[4] = cells, weights, clusters, subproblems, blocks
    return (
        state.end_cells + cells <= state.cells.shape[0]
        and state.end_weights + weights <= state.weights.shape[0]
        and state.n_clusters + clusters <= state.clusters.shape[0]
        and state.n_subproblems + subproblems <= state.subproblems.shape[0]
        and state.n_blocks + blocks <= state.blocks.shape[0]
    )


@kernel
def compact(state):
    """Move all subproblems to the front of ``cells`` and ``weights``, in their present order."""
    n, cells, weights = state.n_subproblems, state.cells, state.weights
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


@inner
def uniform(state):
    """One uniform number in [0, 1): SplitMix64 (Steele, Lea and Flood 2014)."""
    state.random += np.uint64(0x9E3779B97F4A7C15)
    z = state.random
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return np.float64(z >> np.uint64(11)) / 9007199254740992.0


@kernel
def new_seed(state):
    """A seed for a generator."""
    return int(uniform(state) * 2147483648.0)
