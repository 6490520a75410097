"""Step 3, merge: join the subproblems among which x is undecided (paper, section 3.4).

In: the retained particles. Out: the rows of the joined subproblem, each a retained (subproblem, row, cluster)
together with one row of every other subproblem in the merge, with weight w̃(s, i, c)·Π_j w(j, ·). With a
single subproblem there is nothing to join, and the rows are the retained particles themselves.

``k_best`` finds the m heaviest of this Cartesian product exactly: all lists are sorted, so from a
combination only those one place further along one list can be next, and a heap of such successors yields
them in order, O(m·q·log m) for q subproblems. ``multinomial`` is the paper's cheaper draw: m retained
particles, each with independently drawn rows of the other subproblems, duplicates merged.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from partita._core.kernel import inner, shared
from partita._core.sorting import descending, push, sift_down
from partita._core.typing import Array
from partita.smc.state.state import uniform


class Joint(NamedTuple):
    """Rows of the joined subproblem: where each comes from, what x joins there, and its log-weight."""

    subproblems: Array  # (q,): the subproblems joined
    source: Array  # (rows, q): which row of each
    cluster: Array  # (rows,): the cluster that x joins
    weight: Array  # (rows,)


@inner
def involved(retained):
    """The subproblems of the retained particles, and for each particle the place of its own."""
    n = retained.weight.shape[0]
    found, place = np.empty(n, np.int64), np.empty(n, np.int64)
    count = 0
    for k in range(n):
        q = 0
        while q < count and found[q] != retained.where[k, 0]:
            q += 1
        if q == count:
            found[count] = retained.where[k, 0]
            count += 1
        place[k] = q
    return found[:count], place


@inner
def alone(retained, subproblems):
    """Nothing to join: the rows are the retained particles of the one subproblem."""
    n = retained.weight.shape[0]
    source, cluster = np.empty((n, 1), np.int64), np.empty(n, np.int64)
    for k in range(n):
        source[k, 0], cluster[k] = retained.where[k, 1], retained.where[k, 2]
    return Joint(subproblems, source, cluster, retained.weight)


@inner
def sorted_lists(state, retained, subproblems, place):
    """For each subproblem its retained particles and their log-weights, then its rows' log-weights.

    Returns the entries and values of list 2q (retained) and 2q + 1 (rows), and where each list starts.
    """
    n = subproblems.shape[0]
    first = np.zeros(2 * n + 1, np.int64)
    size = retained.weight.shape[0]
    for q in range(n):
        size += state.subproblems[subproblems[q]].rows
    entries, values = np.empty(size, np.int64), np.empty(size)
    at = 0
    for q in range(n):
        for k in range(retained.weight.shape[0]):
            if place[k] == q:
                entries[at], values[at] = k, retained.weight[k]
                at += 1
        first[2 * q + 1] = at
        sub = state.subproblems[subproblems[q]]
        for i in range(sub.rows):
            entries[at], values[at] = i, state.weights[sub.weights + i]
            at += 1
        first[2 * q + 2] = at
    return first, entries, values


@shared
def k_best(state, retained):
    """The m heaviest combinations of a retained particle and rows of the other subproblems."""
    subproblems, place = involved(retained)
    m, n = state.particles, subproblems.shape[0]
    if n == 1:
        return alone(retained, subproblems)
    first, entries, values = sorted_lists(state, retained, subproblems, place)
    # A combination is an index into one list of each subproblem: of retained particles for its owner, of
    # rows for the others. Column n is the owner, column n + 1 the list in which it last moved on.
    combinations = np.zeros((n * (m + 1), n + 2), np.int64)
    keys, heap = np.zeros(n * (m + 1)), np.empty(n * (m + 1), np.int64)
    count = waiting = np.int64(0)
    for owner in range(n):
        combinations[count, n] = owner
        for q in range(n):
            keys[count] -= values[first[2 * q + (q != owner)]]
        push(heap, keys, waiting, count)
        count, waiting = count + 1, waiting + 1
    source, cluster, weight = np.empty((m, n), np.int64), np.empty(m, np.int64), np.empty(m)
    rows = 0
    while rows < m and waiting > 0:
        top = heap[0]
        waiting -= 1
        heap[0] = heap[waiting]
        sift_down(heap, keys, waiting)
        owner = combinations[top, n]
        weight[rows] = -keys[top]
        for q in range(n):
            source[rows, q] = combinations[top, q]
        chosen = entries[first[2 * owner] + combinations[top, owner]]
        source[rows, owner], cluster[rows] = retained.where[chosen, 1], retained.where[chosen, 2]
        rows += 1
        for q in range(combinations[top, n + 1], n):  # not before the last, so each is reached once
            at = first[2 * q + (q != owner)] + combinations[top, q]
            if at + 1 < first[2 * q + (q != owner) + 1]:
                for j in range(n + 1):
                    combinations[count, j] = combinations[top, j]
                combinations[count, q] += 1
                combinations[count, n + 1] = q
                keys[count] = keys[top] + values[at] - values[at + 1]
                push(heap, keys, waiting, count)
                count, waiting = count + 1, waiting + 1
    return Joint(subproblems, source[:rows], cluster[:rows], weight[:rows])


@inner
def pick(state, log_weights, first, count):
    """An index drawn with probability exp(log_weights[first + index])."""
    point, total = uniform(state), 0.0
    for k in range(count - 1):
        total += math.exp(log_weights[first + k])
        if point < total:
            return k
    return count - 1


@inner
def multinomial(state, retained):
    """m independent draws of a retained particle and of rows of the other subproblems."""
    subproblems, place = involved(retained)
    m, n = state.particles, subproblems.shape[0]
    if n == 1:
        return alone(retained, subproblems)
    drawn, counts = np.empty((m, n + 1), np.int64), np.zeros(m)
    rows = 0
    for _ in range(m):
        chosen = pick(state, retained.weight, 0, retained.weight.shape[0])
        drawn[rows, n] = retained.where[chosen, 2]
        for q in range(n):
            sub = state.subproblems[subproblems[q]]
            if place[chosen] == q:
                drawn[rows, q] = retained.where[chosen, 1]
            else:
                drawn[rows, q] = pick(state, state.weights, sub.weights, sub.rows)
        same = 0  # the first row equal to the new one, at worst itself
        while (drawn[same] != drawn[rows]).any():
            same += 1
        counts[same] += 1.0
        rows += same == rows
    order = descending(counts, rows)
    source, cluster, weight = np.empty((rows, n), np.int64), np.empty(rows, np.int64), np.empty(rows)
    for k in range(rows):
        for q in range(n):
            source[k, q] = drawn[order[k], q]
        cluster[k], weight[k] = drawn[order[k], n], math.log(counts[order[k]] / m)
    return Joint(subproblems, source, cluster, weight)
