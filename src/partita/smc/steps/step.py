"""One observation's way through the four steps, and the compiled loop over a stream of them.

    candidates → score → update → resample → merge → split → extend

with bonds, where there are any, deciding first where x may go.

:func:`observe` is the step itself, for any model: it needs the candidates and the ``gain`` of each of their
clusters, and leaves in ``created`` the clusters it has made, whose statistics the model then fills in.
:func:`stream` does all of it for the compiled families. Where an array is too short they stop with nothing
changed.
"""

from __future__ import annotations

import numpy as np

from partita._core.kernel import glue, inner, kernel
from partita.models.scoring.families import extend
from partita.smc.moves.remove import remove, room_to_remove
from partita.smc.reading.follow import follow
from partita.smc.state.constraints import confine, place_of, rule_out
from partita.smc.state.index import delete
from partita.smc.state.state import has_room, uniform
from partita.smc.steps.candidates import count_in, find_candidates
from partita.smc.steps.merge import Joint, k_best, multinomial
from partita.smc.steps.resample import GREEDY, at_random, greedy
from partita.smc.steps.split import split, write_rows
from partita.smc.steps.update import find_home, score, score_promising

DONE, NO_ROOM, CHANGED, ABSENT = range(4)  # how a stream ends


@glue
def is_alone(state, retained):
    """Whether x becomes a subproblem of its own: it is a new cluster in every retained particle."""
    for k in range(retained.weight.shape[0]):
        if retained.where[k, 2] != 0:
            return False
    return state.splitting != 0


@glue
def nothing_to_join():
    """The rows of a subproblem of x alone."""
    return Joint(np.empty(0, np.int64), np.empty((1, 0), np.int64), np.zeros(1, np.int64), np.zeros(1))


@glue
def join(state, x, joint):
    """Write the rows that the merge has chosen, with ``x`` in them, and split them; false if no room."""
    columns, clusters, rows = np.int64(1), np.int64(0), joint.cluster.shape[0]
    for s in joint.subproblems:
        columns += state.subproblems[s].columns
        clusters += state.subproblems[s].clusters
    cells = columns * (rows + 1) + clusters + rows
    if not has_room(state, cells, rows * columns, rows, columns, np.int64(1)):
        return False
    blocks, matrix = write_rows(state, x, joint)
    split(state, joint.subproblems, blocks, matrix, joint.weight)
    return True


@glue
def observe(state, family, x):
    """Let observation ``x`` join the state, given the gains; false if there is no room."""
    home = find_home(state, family, x)
    joint = nothing_to_join()
    if home >= 0:
        retained = greedy(state, home, family, x)
        if not is_alone(state, retained):
            joint = k_best(state, retained)
    return join(state, x, joint)


@glue
def observe_at_random(state, family, x):
    """:func:`observe` with the resampling or merging that draws at random."""
    random = state.random
    home = find_home(state, family, x)
    joint = nothing_to_join()
    if home >= 0:
        if state.resampling == GREEDY:
            retained = greedy(state, home, family, x)
        else:
            retained = at_random(state, home, family, x)
        if not is_alone(state, retained):
            joint = multinomial(state, retained) if state.merging else k_best(state, retained)
    done = join(state, x, joint)
    if not done:
        state.random = random
    return done


@inner
def is_absent(state):
    """Whether a candidate has yet to be fetched."""
    absent = 0
    for q in range(state.n_candidates):
        absent += state.subproblems[state.candidates[q]].absent
    return absent > 0


@glue
def weigh_options(state, family, x):
    """Find the gains of the candidates' clusters for ``x``."""
    if place_of(state.bonds, x) < 0:
        score_promising(state, family, x)
    else:  # scored at once, so that what is ruled out is not scored later
        companion = confine(state, x)
        score(state, family, state.data, x)
        rule_out(state, x, companion)


@glue
def extend_created(state, family, x):
    """Fill in the statistics of the clusters that the step has created."""
    for k in range(state.n_created):
        child, parent = state.created[k, 0], state.created[k, 1]
        size = state.clusters[child].size - 1
        extend(family, state.statistics, child, parent, size, state.data, x)


@kernel
def stream(state, family, end, entity, marks, next_entity, probe):
    """Observe data up to ``end``, or until the best clustering of earlier ones has changed.

    All that scores observations is in this one kernel, as compiling it takes longer than most uses do.

    Parameters
    ----------
    state, family
    end : int
        Number of observations to come to; they must be stored.
    entity : (≥ end,) int64 array, or ``follow.UNNAMED``
        Names of the clusters in the best clustering; those of the new observations are written. Without
        names, nobody asks whether it has changed.
    marks : int64 array
        One for each name, old or to come; 0 to begin with, and working memory from then on.
    next_entity : int
        The name for the next cluster.
    probe : int
        An observation that only has its options weighed, nothing else is done; −1 for none.

    Returns
    -------
    DONE, NO_ROOM (call again when there is), ABSENT (call again when the candidates have been fetched) or
    CHANGED (by the last observation), and the next name.
    """
    while state.n_observations < end or probe >= 0:
        x = probe if probe >= 0 else state.n_observations
        find_candidates(state, x)
        if is_absent(state):
            return ABSENT, next_entity
        weigh_options(state, family, x)
        if probe >= 0:
            return DONE, next_entity
        if not observe(state, family, x):
            return NO_ROOM, next_entity
        extend_created(state, family, x)
        count_in(state)
        if entity.shape[0] > 0:
            simple, next_entity = follow(state, x, entity, marks, next_entity)
            if not simple:
                return CHANGED, next_entity
    return DONE, next_entity


@kernel
def stream_at_random(state, family, end):
    """:func:`stream` with the resampling or merging that draws at random."""
    while state.n_observations < end:
        x = state.n_observations
        find_candidates(state, x)
        weigh_options(state, family, x)
        if not observe_at_random(state, family, x):
            return False
        extend_created(state, family, x)
        count_in(state)
    return True


@kernel
def options(state, x):
    """For a user's model: find the candidates for ``x``; returns what it must be with, −1 if anything."""
    find_candidates(state, x)
    return confine(state, x)


@kernel
def keep_bonds(state, x, companion):
    """For a user's model, which has set the gains: rule out the clusters that ``x`` must not join."""
    rule_out(state, x, companion)


@kernel
def place(state, x):
    """:func:`observe` for a user's model."""
    if state.resampling or state.merging:
        return observe_at_random(state, None, x)
    return observe(state, None, x)


@kernel
def choose(state):
    """An observation of the subproblem that changed last: the next member in turn of a random block."""
    sub = state.subproblems[state.blocks[state.observations[state.n_observations - 1].block].subproblem]
    block = state.blocks[state.cells[sub.cells + int(uniform(state) * sub.columns)]]
    x = block.head
    block.head = state.observations[x].next
    return x


@kernel
def take_out(state, family, x):
    """Take observation ``x`` out of its subproblem; false if there is no room."""
    if not room_to_remove(state, x):
        return False
    remove(state, family, x)
    return True


@kernel
def leave_out(state, x):
    """Count an observation that has been taken out as removed for good."""
    if state.index.on:
        delete(state.index, x)
    state.n_removed += 1


@kernel
def put_back(state, family, x):
    """Let an observation that has been taken out come in anew; false if there is no room."""
    if state.observations[x].block >= 0:
        return True  # it never was out, or is in again
    find_candidates(state, x)
    weigh_options(state, family, x)
    if state.resampling or state.merging:
        done = observe_at_random(state, family, x)
    else:
        done = observe(state, family, x)
    if done:
        extend_created(state, family, x)
    return done
