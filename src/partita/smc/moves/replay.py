"""Replays of a compiled model: the observations of one or two subproblems again, in another order, on a stage.

A *stage* is an engine beside the one that is refined, for the same model, with statistics of its own: it is emptied
before each replay, and nothing of the state changes. What comes of a replay counts where partitions that it finds
are among the m best of old and new: the kernels look at one subproblem after the other and stop where that is so, for
Python to install them, or where something is missing. A stage draws its random numbers from a seed and the place of
an observation in the sweep, so that a replay comes out the same wherever and whenever it is run: after loading, too,
when observations have other numbers.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from partita._core.hashing import mix, mixed
from partita._core.kernel import inner, kernel, shared
from partita._core.sorting import descending
from partita.models.scoring.families import begin, clear_tables
from partita.smc.reading.particles import partitions
from partita.smc.state.constraints import place_of
from partita.smc.state.state import uniform
from partita.smc.steps.step import DONE, stream, weigh
from partita.smc.steps.update import find_bounds, score_late

NOTHING, BETTER, NO_STAGE, MISSING, CONSTRAINED = range(5)  # how looking at subproblems ends


class Rows(NamedTuple):
    """Partitions of some observations: their labels in each, and the scores, best first."""

    labels: Any  # (rows, members)
    scores: Any


@inner
def empty(stage, family, state, d, seed):
    """Forget all that is on the stage."""
    for c in range(stage.n_clusters):
        for k in range(stage.statistics.shape[1]):
            stage.statistics[c, k] = 0.0
    clear_tables(family)
    begin(family, stage.statistics, d)
    stage.n_observations, stage.n_blocks, stage.n_clusters, stage.n_subproblems = 0, 0, 1, 0
    stage.free_block = stage.free_cluster = stage.free_subproblem = -1
    stage.end_cells = stage.end_weights = stage.live_cells = stage.live_weights = 0
    stage.log_alpha, stage.random = state.log_alpha, seed
    for s in range(stage.enclosed.shape[0]):
        stage.enclosed[s] = False


@inner
def shuffled(stage, n):
    """The numbers below n in a random order."""
    order = np.empty(n, np.int64)
    for k in range(n):
        order[k] = k
    for k in range(n - 1, 0, -1):
        other = int(uniform(stage) * (k + 1))
        order[k], order[other] = order[other], order[k]
    return order


@inner
def put_on(stage, state, members, order):
    """Store observations of the state on the stage, in an order; false if there is no room."""
    n = members.shape[0]
    if stage.data.shape[0] < n or stage.observations.shape[0] < n:
        return False
    for k in range(n):
        for j in range(state.data.shape[1]):
            stage.data[k, j] = state.data[members[order[k]], j]
    return True


@inner
def canonical(state, ids):
    """Rows of ids of the state's clusters renumbered 0, 1, … in order of first appearance."""
    labels = np.empty(ids.shape, np.int64)
    for i in range(ids.shape[0]):
        state.tick += 1
        count = np.int64(0)
        for k in range(ids.shape[1]):
            c = ids[i, k]
            if state.seen[c] != state.tick:
                state.seen[c], state.child[c] = state.tick, count
                count += 1
            labels[i, k] = state.child[c]
    return labels


@inner
def combined(first, second, m):
    """The m best combinations of a row of each of two lists, best first, side by side.

    Row i of one with row j of the other can only be among them if (i + 1)(j + 1) ≤ m, for all rows above both are
    as good.
    """
    n_first, n_second = first.scores.shape[0], second.scores.shape[0]
    values, pairs = np.empty(n_first * n_second), np.empty((n_first * n_second, 2), np.int64)
    count = 0
    for i in range(n_first):
        for j in range(min(n_second, m // (i + 1))):
            values[count] = first.scores[i] + second.scores[j]
            pairs[count, 0], pairs[count, 1] = i, j
            count += 1
    order = descending(values, count)
    n, border = min(count, m), first.labels.shape[1]
    labels, scores = np.empty((n, border + second.labels.shape[1]), np.int64), np.empty(n)
    for k in range(n):
        i, j = pairs[order[k], 0], pairs[order[k], 1]
        scores[k] = values[order[k]]
        for at in range(border):
            labels[k, at] = first.labels[i, at]
        for at in range(second.labels.shape[1]):
            labels[k, border + at] = second.labels[j, at]
    return Rows(labels, scores)


@shared
def found_on(stage, order, m):
    """The m best partitions of all observations on the stage, in the order that they have in the state."""
    best = Rows(np.empty((1, 0), np.int64), np.zeros(1))
    place, n = np.empty(order.shape[0], np.int64), 0
    for s in range(stage.n_subproblems):
        if stage.subproblems[s].rows > 0:
            members, ids, scores = partitions(stage, s)
            for k in range(members.shape[0]):
                place[n + k] = order[members[k]]
            n += members.shape[0]
            best = combined(best, Rows(ids, scores), m)
    ids = np.empty(best.labels.shape, np.int64)
    for i in range(ids.shape[0]):
        for k in range(n):
            ids[i, place[k]] = best.labels[i, k]
    return Rows(canonical(stage, ids), best.scores)


@inner
def rerun(stage, family, state, members, d, seed):
    """Run observations again in a random order; returns whether there was room, and the best partitions found."""
    empty(stage, family, state, d, seed)
    order = shuffled(stage, members.shape[0])
    nothing = Rows(np.empty((0, 0), np.int64), np.empty(0))
    if not put_on(stage, state, members, order):
        return False, nothing
    before = stage.totals.copy()
    if stream(stage, family, members.shape[0]) != DONE:
        for k in range(before.shape[0]):  # it is run again, where there is more room, and counts once
            stage.totals[k] = before[k]
        return False, nothing
    return True, found_on(stage, order, stage.particles)


@inner
def hash_of(labels, i):
    """A hash of a row."""
    code = np.uint64(0)
    for k in range(labels.shape[1]):
        code = mix(code, labels[i, k])
    return code


@inner
def is_known(labels, codes, row, code, n):
    """Whether one of the first n rows is like ``row``."""
    for i in range(n):
        if codes[i] == code:
            same = True
            for k in range(labels.shape[1]):
                same = same and labels[i, k] == row[k]
            if same:
                return True
    return False


@inner
def crosses(row, border):
    """Whether a partition has a cluster on both sides of a border."""
    before = np.zeros(row.shape[0], np.bool_)  # by label
    for k in range(border):
        before[row[k]] = True
    return before[row[border:]].any()


@shared
def best_of(state, old, new, border):
    """The m best of old and new partitions, and whether the new ones matter.

    For one subproblem, without a border, any new partition among the m best does; to join two, those that cross it
    must hold more than 1/m of the weight, or the best of all be one of them.
    """
    n_old, n = old.scores.shape[0], old.scores.shape[0] + new.scores.shape[0]
    labels, scores = np.empty((n, old.labels.shape[1]), np.int64), np.empty(n)
    codes = np.empty(n, np.uint64)
    count = 0
    for i in range(n):
        source, at = (old, i) if i < n_old else (new, i - n_old)
        if i >= n_old and border > 0 and not crosses(source.labels[at], border):
            continue
        code = hash_of(source.labels, at)
        if is_known(labels, codes, source.labels[at], code, count):
            continue
        for k in range(labels.shape[1]):
            labels[count, k] = source.labels[at, k]
        scores[count], codes[count] = source.scores[at], code
        count += 1
    if count == n_old:  # those are distinct
        return False, old
    order = descending(scores, count)
    size = min(count, state.particles)
    if state.longest_odds > 0:
        least = scores[order[0]] - math.log(state.longest_odds)
        while scores[order[size - 1]] < least:
            size -= 1
    kept, values = np.empty((size, labels.shape[1]), np.int64), np.empty(size)
    of_new = of_all = 0.0
    for k in range(size):
        values[k] = scores[order[k]]
        for at in range(labels.shape[1]):
            kept[k, at] = labels[order[k], at]
        weight = math.exp(values[k] - values[0])
        of_all += weight
        of_new += weight if order[k] >= n_old else 0.0
    enough = of_all / state.particles if border > 0 else 0.0
    return of_new > enough or order[0] >= n_old, Rows(kept, values)


@inner
def has_constraints(state, members):
    """Whether one of some observations has constraints."""
    if state.constraints.observations.shape[0] > 0:
        for x in members:
            if place_of(state.constraints, x) >= 0:
                return True
    return False


@kernel
def size_of(state, s):
    """How many observations a subproblem has."""
    sub, n = state.subproblems[s], 0
    for j in range(sub.columns):
        n += state.blocks[state.cells[sub.cells + j]].size
    return n


@inner
def nothing_found():
    """No observations, and no partitions of them."""
    return np.empty(0, np.int64), Rows(np.empty((0, 0), np.int64), np.empty(0))


@kernel
def look_alone(state, family, stage, stage_family, d, firsts, seed, most, enough, at):
    """Replay the subproblems of observations ``firsts[at:]`` until partitions are found that matter.

    Beside each observation is its place in the sweep. No replay has more than ``most`` observations, and all of them
    on this stage no more than ``enough``. Returns how that ended, at which, the subproblem, its observations, and
    their best partitions.
    """
    while at < firsts.shape[0]:
        s = state.blocks[state.observations[firsts[at, 0]].block].subproblem
        n = size_of(state, s)
        if 1 < n <= most and n <= enough - stage.totals[0]:
            members, ids, scores = partitions(state, s)
            if has_constraints(state, members):
                return CONSTRAINED, at, s, *nothing_found()
            done, new = rerun(stage, stage_family, state, members, d, mixed(seed, firsts[at, 1]))
            if not done:
                return NO_STAGE, at, s, *nothing_found()
            matters, best = best_of(state, Rows(canonical(state, ids), scores), new, 0)
            if matters:
                return BETTER, at, s, members, best
        at += 1
    return NOTHING, at, np.int64(-1), *nothing_found()


@inner
def best_other(state, family, s, x):
    """Given the gains of ``x``, the candidate other than ``s`` with the largest one; −1 if there is none."""
    find_bounds(state)
    while True:
        best = np.int64(-1)
        for q in range(state.n_candidates):
            other = state.candidates[q]
            if other != s and (best < 0 or state.bound[other] > state.bound[best]):
                best = other
        if best < 0 or not state.late[best]:
            return best
        score_late(state, family, x, best)


@inner
def is_hopeless(state, other):
    """Whether there is no neighbour; or the odds for being new, and not of a cluster of it, are too long."""
    if other < 0:
        return True
    new = state.log_alpha + state.gain[0]
    return state.longest_odds > 0 and state.bound[other] < new - math.log(state.longest_odds)


@inner
def any_of(state, s, draw):
    """One of the observations of a subproblem, as a number from 0 to 1 chooses."""
    left = int(draw * size_of(state, s))
    sub = state.subproblems[s]
    for j in range(sub.columns):
        block = state.blocks[state.cells[sub.cells + j]]
        if left < block.size:
            x = block.head
            for _ in range(left):
                x = state.observations[x].next
            return x
        left -= block.size
    return np.int64(-1)


@kernel
def look_beside(state, family, stage, stage_family, d, firsts, drawn, seed, most, enough, at):
    """Replay the subproblems of observations ``firsts[at:]``, each with its neighbour, until that matters.

    The neighbour is where an observation would fall otherwise: the one in ``firsts``, or one that is ``drawn``.
    ``most`` and ``enough`` as in :func:`look_alone`. Returns how that ended, at which, the two subproblems, their
    observations, and their best partitions.
    """
    while at < firsts.shape[0]:
        x, own = firsts[at, 0], mixed(seed, firsts[at, 1])
        s = state.blocks[state.observations[x].block].subproblem
        if drawn:
            x = any_of(state, s, np.float64(own >> np.uint64(11)) / 9007199254740992.0)
        if weigh(state, family, x) != DONE:
            return MISSING, at, s, np.int64(-1), *nothing_found()
        other = best_other(state, family, s, x)
        n = np.int64(0) if is_hopeless(state, other) else size_of(state, s) + size_of(state, other)
        if 0 < n <= most and n <= enough - stage.totals[0]:
            border, second = size_of(state, s), partitions(state, other)
            first = partitions(state, s)
            members = np.append(first[0], second[0])
            if has_constraints(state, members):
                return CONSTRAINED, at, s, other, *nothing_found()
            done, new = rerun(stage, stage_family, state, members, d, mixed(own, np.int64(1)))
            if not done:
                return NO_STAGE, at, s, other, *nothing_found()
            both = combined(Rows(first[1], first[2]), Rows(second[1], second[2]), state.particles)
            old = Rows(canonical(state, both.labels), both.scores)
            matters, best = best_of(state, old, new, border)
            if matters:
                return BETTER, at, s, other, members, best
        at += 1
    return NOTHING, at, np.int64(-1), np.int64(-1), *nothing_found()
