"""One observation's way through the four steps, and the compiled loop over a stream of them.

    score → update → resample → merge → split → extend

:func:`observe` is the step itself, for any model: it needs each cluster's ``gain`` and leaves in ``created``
the clusters it has made, whose statistics the model then fills in. :func:`stream` does all of it for the
compiled families.
"""

from __future__ import annotations

import numpy as np

from partita._kernel import kernel
from partita.models.families import extend
from partita.smc.merge import k_best, multinomial
from partita.smc.refine import remove
from partita.smc.resample import greedy, random
from partita.smc.split import child_of, settle, split, write_rows
from partita.smc.state import marks, reserve, singleton_block, uniform
from partita.smc.update import find_bounds, find_home, score


@kernel
def observe(state, x):
    """Let observation ``x`` join the state, given the gains."""
    find_bounds(state)
    home = find_home(state)
    if home < 0:
        start_subproblem(state, x)
        return
    retained = greedy(state, home)
    if state.splitting and all_alone(retained):
        start_subproblem(state, x)
    else:
        join(state, x, k_best(state, retained))


@kernel
def observe_randomly(state, x):
    """:func:`observe` with the resampling and merging that draw at random."""
    find_bounds(state)
    home = find_home(state)
    if home < 0:
        start_subproblem(state, x)
        return
    retained = random(state, home)
    if state.splitting and all_alone(retained):
        start_subproblem(state, x)
    elif state.merging:
        join(state, x, multinomial(state, retained))
    else:
        join(state, x, k_best(state, retained))


@kernel
def all_alone(retained):
    """Whether x is a new cluster in every retained particle."""
    for k in range(retained.count[0]):
        if retained.cluster[k] != 0:
            return False
    return True


@kernel
def start_subproblem(state, x):
    """Make ``x`` a subproblem of its own: no other one changes."""
    reserve(state, 3, 1, 1, 1)
    state.n_created = 0
    blocks, matrix = np.empty(1, np.int64), np.empty((1, 1), np.int64)
    blocks[0] = singleton_block(state, x)
    matrix[0, 0] = child_of(state, 0, marks(state, 1))
    settle(state, blocks, matrix, np.zeros(1))


@kernel
def join(state, x, joint):
    """Write the rows that the merge has chosen, with ``x`` in them, and split them."""
    columns, clusters, rows = 1, 0, joint.cluster.shape[0]
    for s in joint.subproblems:
        columns += state.subproblems[s].columns
        clusters += state.subproblems[s].clusters
    reserve(state, columns * (rows + 1) + clusters + rows, rows * columns, rows, columns)
    state.n_created = 0
    blocks, matrix = write_rows(state, x, joint)
    split(state, joint.subproblems, blocks, matrix, joint.weight)


@kernel
def extend_created(state, family, x):
    """Fill in the statistics of the clusters that the step has created."""
    for k in range(state.n_created):
        child, parent = state.created[k, 0], state.created[k, 1]
        size = state.clusters[child].size - 1
        extend(family, state.statistics, child, parent, size, state.data, x)


@kernel
def stream(state, family, end):
    """Observe all data up to ``end``."""
    while state.n_observations < end:
        x = state.n_observations
        score(state, family, x)
        state.n_observations += 1
        observe(state, x)
        extend_created(state, family, x)


@kernel
def stream_randomly(state, family, end):
    """:func:`stream` with the resampling and merging that draw at random."""
    while state.n_observations < end:
        x = state.n_observations
        score(state, family, x)
        state.n_observations += 1
        observe_randomly(state, x)
        extend_created(state, family, x)


@kernel
def choose(state):
    """An observation of the subproblem that changed last: the next member in turn of a random block."""
    sub = state.subproblems[state.blocks[state.observations[state.n_observations - 1].block].subproblem]
    block = state.cells[sub.cells + int(uniform(state) * sub.columns)]
    x = state.blocks[block].head
    state.blocks[block].head = state.observations[x].next
    return x


@kernel
def reobserve(state, family, x):
    """Take observation ``x`` out of its subproblem and let it come in anew; it may cross into another."""
    remove(state, family, x)
    score(state, family, x)
    observe(state, x)
    extend_created(state, family, x)


@kernel
def rejuvenate(state, family, times):
    """Let some observations of the subproblem that changed last come in anew."""
    for _ in range(times):
        reobserve(state, family, choose(state))
