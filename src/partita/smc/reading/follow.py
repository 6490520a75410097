"""Following the best clustering as it changes, one observation at a time.

A caller that names clusters keeps in ``entity`` the name of each observation's cluster in the best
clustering, which is the first row of every subproblem. Nearly always a new observation joins one of these
clusters or begins another, and all others stay as they are: that is told without a look at settled
observations, from the blocks of the subproblems just written alone, and the compiled stream goes on. Where
more has changed, it stops and leaves it to the caller to name what has come out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from partita._core.kernel import glue, inner, kernel
from partita._core.typing import Floats, Integers
from partita.smc.state.state import State

UNNAMED: Integers = np.empty(0, np.int64)  # for those who do not care what clusters are called


@inner
def is_joined_across(state, x, entity):
    """Whether blocks of different clusters have just been joined."""
    for k in range(state.n_joined):
        a, b = state.joined[k, 0], state.joined[k, 1]
        if a != x and b != x and entity[a] != entity[b]:
            return True
    return False


@inner
def is_as_before(state, x, entity, marks):
    """Whether all observations but ``x`` are in the best clusters they were in.

    Leaves the name of each cluster of the subproblems just written in ``child``, where ``seen`` is the tick.
    """
    seen, child, cells = state.seen, state.child, state.cells
    state.tick += 1
    if is_joined_across(state, x, entity):
        return False
    for k in range(state.n_written):
        sub = state.subproblems[state.written[k]]
        at = sub.cells + sub.columns + sub.clusters
        for j in range(sub.columns):
            block, c = state.blocks[cells[sub.cells + j]], cells[at + j]
            y = block.head if block.head != x else state.observations[x].next
            if y == x:
                continue
            e = entity[y]
            if seen[c] == state.tick:
                if child[c] != e:
                    return False
            else:
                if marks[e] == x + 1:
                    return False
                seen[c], child[c], marks[e] = state.tick, e, x + 1
    return True


@glue
def follow(state, x, entity, marks, next_entity):
    """Name the cluster of ``x``, where all else is as before; returns whether it is, and the next name."""
    entity[x] = -1
    if not is_as_before(state, x, entity, marks):
        return False, next_entity
    block = state.blocks[state.observations[x].block]
    sub = state.subproblems[block.subproblem]
    c = state.cells[sub.cells + sub.columns + sub.clusters + block.column]
    if state.seen[c] == state.tick:
        entity[x] = state.child[c]
        return True, next_entity
    entity[x] = next_entity
    return True, next_entity + 1


@kernel
def follow_one(state, x, entity, marks, next_entity):
    """:func:`follow`, for a model that is not compiled."""
    return follow(state, x, entity, marks, next_entity)


@kernel
def just_written(state):
    """The subproblems that the last step has written."""
    return state.written[: state.n_written].copy()


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
