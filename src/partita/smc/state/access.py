"""What Python reads of a state, and the little that it writes."""

from __future__ import annotations

import numpy as np

from partita._core.kernel import kernel
from partita.smc.state.state import n_present


@kernel
def arrays_of(state):
    """The statistics, clusters, gains and data."""
    return state.statistics, state.clusters, state.gain, state.data


@kernel
def append(state, encoded):
    """Store observations without looking at them yet; false if there is no room."""
    n = state.n_observations
    if n + encoded.shape[0] > state.data.shape[0]:
        return False
    for x in range(encoded.shape[0]):
        for k in range(encoded.shape[1]):
            state.data[n + x, k] = encoded[x, k]
    return True


@kernel
def progress(state):
    """The number of observations, how many of them are removed, when α is due to be learnt, and log α."""
    return state.n_observations, state.n_removed, state.next_alpha, state.log_alpha


@kernel
def present(state):
    """The observations that have not been removed."""
    found = np.empty(n_present(state), np.int64)
    count = 0
    for x in range(state.n_observations):
        if state.observations[x].block >= 0:
            found[count] = x
            count += 1
    return found


@kernel
def subproblem_of(state, x):
    """The subproblem of observation ``x``."""
    return state.blocks[state.observations[x].block].subproblem


@kernel
def replace_constraints(state, constraints):
    """Let other constraints count from now on."""
    state.constraints = constraints


@kernel
def created_clusters(state):
    """The clusters that the last step has made, and the cluster each extends."""
    return state.created[: state.n_created, 0].copy(), state.created[: state.n_created, 1].copy()


@kernel
def candidates_met(state):
    """The candidates that were found last."""
    return state.candidates[: state.n_candidates].copy()


@kernel
def used_clusters(state):
    """Ids of the candidates' clusters, in no particular order, the empty one first."""
    size = 1
    for q in range(state.n_candidates):
        size += state.subproblems[state.candidates[q]].clusters
    found = np.zeros(size, np.int64)
    count = 1
    for q in range(state.n_candidates):
        sub = state.subproblems[state.candidates[q]]
        for k in range(sub.clusters):
            found[count] = state.cells[sub.cells + sub.columns + k]
            count += 1
    return found


@kernel
def are_absent(state, slots):
    """Those of some subproblems that have yet to be fetched."""
    found = np.empty(slots.shape[0], np.int64)
    count = 0
    for s in slots:
        if state.subproblems[s].absent:
            found[count] = s
            count += 1
    return found[:count]


@kernel
def leave_absent(state):
    """Note that all subproblems have yet to be fetched."""
    for s in range(state.n_subproblems):
        state.subproblems[s].absent = state.subproblems[s].rows > 0


@kernel
def n_changes(state):
    """How many slots have been written or freed so far."""
    return state.n_changes


@kernel
def changed_since(state, stamp):
    """The slots of subproblems written after ``stamp``, and those that have been freed."""
    live, freed = np.empty(state.n_subproblems, np.int64), np.empty(state.n_subproblems, np.int64)
    n_live = n_freed = 0
    for s in range(state.n_subproblems):
        if state.subproblems[s].stamp > stamp:
            if state.subproblems[s].rows > 0:
                live[n_live] = s
                n_live += 1
            else:
                freed[n_freed] = s
                n_freed += 1
    return live[:n_live], freed[:n_freed]


@kernel
def just_written(state):
    """The subproblems that the last step has written."""
    return state.written[: state.n_written].copy()
