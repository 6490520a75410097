"""One observation's way through the four steps, and the compiled loop over a stream of them.

    candidates → score → update → resample → merge → split → extend

with constraints, where there are any, deciding first where x may go, and last, where names are kept, a look at
whether they still fit.

:func:`observe` is the step itself, for any model: it needs the candidates and the ``gain`` of each of their
clusters, and leaves in ``created`` the clusters it has made, whose statistics the model then fills in. It returns
what happened. :func:`stream` does all of it for the compiled families. Where an array is too short they stop with
nothing changed.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from partita._core.kernel import glue, inner, kernel
from partita.models.scoring.families import extend
from partita.smc.state.constraints import confine, place_of, rule_out
from partita.smc.state.state import has_room
from partita.smc.steps.candidates import count_in, find_candidates
from partita.smc.steps.follow import follow
from partita.smc.steps.merge import Joint, k_best, multinomial
from partita.smc.steps.resample import GREEDY, at_random, drop_none, find_light, greedy
from partita.smc.steps.split import split, write_rows
from partita.smc.steps.update import find_home, score, score_promising, update

DONE, NO_ROOM, CHANGED, ABSENT = range(4)  # how a stream ends


class Step(NamedTuple):
    """What happened to an observation."""

    done: Any  # false: nothing, as there was no room
    pooled: Any  # putative particles
    kept: Any  # retained ones
    merged: Any  # subproblems joined with another
    split: Any  # subproblems split off


@inner
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


@inner
def room_to_join(state, joint):
    """Whether there is room for the rows that the merge has chosen."""
    columns, clusters, rows = np.int64(1), np.int64(0), joint.cluster.shape[0]
    for s in joint.subproblems:
        columns += state.subproblems[s].columns
        clusters += state.subproblems[s].clusters
    cells = columns * (rows + 1) + clusters + rows
    return has_room(state, cells, rows * columns, rows, columns, np.int64(1))


@inner
def likely(state, joint):
    """The rows against which the odds are not too long, compared with the best one, which is the first."""
    n = joint.weight.shape[0]
    if state.longest_odds > 0:
        least = joint.weight[0] - math.log(state.longest_odds)
        while joint.weight[n - 1] < least:
            n -= 1
    return Joint(joint.subproblems, joint.source[:n], joint.cluster[:n], joint.weight[:n])


@glue
def write(state, x, joint, pooled, kept):
    """Write the rows that the merge has chosen, with ``x`` in them, and split them."""
    joint = likely(state, joint)
    done = room_to_join(state, joint)
    if done:
        blocks, matrix = write_rows(state, x, joint)
        split(state, joint.subproblems, blocks, matrix, joint.weight)
    return Step(done, pooled, kept, max(joint.subproblems.shape[0] - 1, 0), max(state.n_written - 1, 0))


@glue
def observe(state, family, x):
    """Let observation ``x`` join the state, given the gains (paper, algorithm 1)."""
    home = find_home(state, family, x)
    joint, pooled, kept = nothing_to_join(), 1, 1
    if home >= 0:
        drop_none(state)
        decided, refill = False, True
        while refill:
            putative, pooled = update(state, family, x, home, state.particles)
            retained = greedy(putative)
            refill = not decided and find_light(state, retained)
            decided = True
        kept = retained.weight.shape[0]
        if not is_alone(state, retained):
            joint = k_best(state, retained)
    return write(state, x, joint, pooled, kept)


@inner
def everything(state):
    """No more putative particles than this are there."""
    size = 0
    for q in range(state.n_candidates):
        sub = state.subproblems[state.candidates[q]]
        size += sub.rows * (sub.columns + 1)
    return size


@glue
def observe_at_random(state, family, x):
    """:func:`observe` with the resampling or merging that draws at random."""
    random = state.random
    home = find_home(state, family, x)
    joint, pooled, kept = nothing_to_join(), 1, 1
    if home >= 0:
        drop_none(state)
        decided, refill = False, True
        while refill:
            size = state.particles if state.resampling == GREEDY else everything(state)
            putative, pooled = update(state, family, x, home, size)
            retained = greedy(putative) if state.resampling == GREEDY else at_random(state, putative)
            refill = state.resampling == GREEDY and not decided and find_light(state, retained)
            decided = True
        kept = retained.weight.shape[0]
        if not is_alone(state, retained):
            joint = multinomial(state, retained) if state.merging else k_best(state, retained)
    happened = write(state, x, joint, pooled, kept)
    if not happened.done:
        state.random = random
    return happened


@inner
def note(state, happened):
    """Add what happened to the totals, in the order of ``TOTALS``."""
    totals = state.totals
    totals[0] += 1
    totals[1] += state.n_candidates
    totals[2] += state.n_scored
    totals[3] += happened.pooled
    totals[4] += happened.kept
    totals[5] += happened.merged
    totals[6] += happened.split


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
    if place_of(state.constraints, x) < 0:
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
def stream(state, family, end):
    """Observe data up to ``end``, which must be stored.

    Returns
    -------
    DONE, NO_ROOM (call again when there is), ABSENT (call again when the candidates have been fetched) or, where
    names are kept, CHANGED: by the last observation the best clustering of earlier ones is another.
    """
    while state.n_observations < end:
        x = state.n_observations
        find_candidates(state, x)
        if is_absent(state):
            return ABSENT
        weigh_options(state, family, x)
        happened = observe(state, family, x)
        if not happened.done:
            return NO_ROOM
        extend_created(state, family, x)
        count_in(state)
        note(state, happened)
        if state.names.on and not follow(state, x):
            return CHANGED
    return DONE


@kernel
def stream_at_random(state, family, end):
    """:func:`stream` with the resampling or merging that draws at random: apart, so that most need not compile it.

    Nobody names its clusters, and nothing is left out when it is loaded.
    """
    while state.n_observations < end:
        x = state.n_observations
        find_candidates(state, x)
        weigh_options(state, family, x)
        happened = observe_at_random(state, family, x)
        if not happened.done:
            return NO_ROOM
        extend_created(state, family, x)
        count_in(state)
        note(state, happened)
    return DONE


@kernel
def weigh(state, family, x):
    """Find the candidates for observation ``x`` and the gains it would have, and leave it at that."""
    find_candidates(state, x)
    if is_absent(state):
        return ABSENT
    weigh_options(state, family, x)
    return DONE


@kernel
def options(state, x):
    """For a user's model: find the candidates for ``x``; returns what it must be with, −1 if anything."""
    find_candidates(state, x)
    return confine(state, x)


@kernel
def keep_constraints(state, x, companion):
    """For a user's model, which has set the gains: rule out the clusters that ``x`` must not join."""
    rule_out(state, x, companion)


@kernel
def place(state, x, scored):
    """:func:`observe` for a user's model, which has scored so many clusters; false if there is no room."""
    state.n_scored = scored
    happened = observe_at_random(state, None, x)  # which draws only where that is asked for
    if happened.done:
        note(state, happened)
    return happened.done
