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

from partita._kernel import kernel
from partita._typing import Array
from partita.smc.state import descending, uniform
from partita.smc.update import sift_down, sift_up

K_BEST, MULTINOMIAL = range(2)


class Joint(NamedTuple):
    """Rows of the joined subproblem: where each comes from, what x joins there, and its log-weight."""

    subproblems: Array  # (q,): the subproblems joined
    source: Array  # (rows, q): which row of each
    cluster: Array  # (rows,): the cluster that x joins
    weight: Array  # (rows,)


@kernel
def involved(retained):
    """The subproblems of the retained particles, and the place of each particle's among them."""
    found = np.empty(retained.count[0], np.int64)
    place = np.empty(retained.count[0], np.int64)
    count = 0
    for k in range(retained.count[0]):
        q = 0
        while q < count and found[q] != retained.subproblem[k]:
            q += 1
        if q == count:
            found[count] = retained.subproblem[k]
            count += 1
        place[k] = q
    return found[:count], place


@kernel
def alone(retained, subproblems):
    """Nothing to join: the rows are the retained particles of the one subproblem."""
    n = retained.count[0]
    source = np.empty((n, 1), np.int64)
    for k in range(n):
        source[k, 0] = retained.row[k]
    return Joint(subproblems, source, retained.cluster, retained.weight)


@kernel
def lists(retained, place, n):
    """The retained particles of each of n subproblems, in order: where each list starts, and all entries."""
    first = np.zeros(n + 1, np.int64)
    entries = np.empty(retained.count[0], np.int64)
    at = 0
    for q in range(n):
        for k in range(retained.count[0]):
            if place[k] == q:
                entries[at] = k
                at += 1
        first[q + 1] = at
    return first, entries


@kernel
def combined(state, retained, subproblems, first, entries, owner, combination):
    """Log-weight of one combination: a retained particle of ``owner``, a row of every other subproblem."""
    total = 0.0
    for q in range(subproblems.shape[0]):
        if q == owner:
            total += retained.weight[entries[first[q] + combination[q]]]
        else:
            total += state.weights[state.subproblems[subproblems[q]].weights + combination[q]]
    return total


@kernel
def k_best(state, retained):
    """The m heaviest combinations of a retained particle and rows of the other subproblems."""
    subproblems, place = involved(retained)
    m, n = state.particles, subproblems.shape[0]
    if n == 1:
        return alone(retained, subproblems)
    first, entries = lists(retained, place, n)
    size = n * (m + 1)
    combinations = np.zeros((size, n), np.int64)
    owner, last = np.empty(size, np.int64), np.zeros(size, np.int64)
    keys, heap = np.empty(size), np.empty(size, np.int64)
    count = waiting = 0
    for q in range(n):
        owner[count] = q
        keys[count] = -combined(state, retained, subproblems, first, entries, q, combinations[count])
        heap[waiting] = count
        sift_up(heap, keys, waiting)
        count, waiting = count + 1, waiting + 1
    source, cluster, weight = np.empty((m, n), np.int64), np.empty(m, np.int64), np.empty(m)
    rows = 0
    while rows < m and waiting > 0:
        top = heap[0]
        waiting -= 1
        heap[0] = heap[waiting]
        sift_down(heap, keys, 0, waiting)
        own = owner[top]
        chosen = entries[first[own] + combinations[top, own]]
        for q in range(n):
            source[rows, q] = combinations[top, q]
        source[rows, own], cluster[rows] = retained.row[chosen], retained.cluster[chosen]
        weight[rows] = -keys[top]
        rows += 1
        # Successors move one index at or after the last one moved, so that each is reached once.
        for q in range(last[top], n):
            length = first[q + 1] - first[q] if q == own else state.subproblems[subproblems[q]].rows
            if combinations[top, q] + 1 < length:
                for r in range(n):
                    combinations[count, r] = combinations[top, r]
                combinations[count, q] += 1
                owner[count], last[count] = own, q
                keys[count] = -combined(
                    state, retained, subproblems, first, entries, own, combinations[count]
                )
                heap[waiting] = count
                sift_up(heap, keys, waiting)
                count, waiting = count + 1, waiting + 1
    return Joint(subproblems, source[:rows], cluster[:rows], weight[:rows])


@kernel
def pick(state, log_weights, first, count):
    """An index drawn with probability exp(log_weights[first + index])."""
    point, total = uniform(state), 0.0
    for k in range(count - 1):
        total += math.exp(log_weights[first + k])
        if point < total:
            return k
    return count - 1


@kernel
def multinomial(state, retained):
    """m independent draws of a retained particle and of rows of the other subproblems."""
    subproblems, place = involved(retained)
    m, n = state.particles, subproblems.shape[0]
    if n == 1:
        return alone(retained, subproblems)
    source, cluster, counts = np.empty((m, n), np.int64), np.empty(m, np.int64), np.zeros(m)
    rows = 0
    for _ in range(m):
        chosen = pick(state, retained.weight, 0, retained.count[0])
        cluster[rows] = retained.cluster[chosen]
        for q in range(n):
            if place[chosen] == q:
                source[rows, q] = retained.row[chosen]
            else:
                sub = state.subproblems[subproblems[q]]
                source[rows, q] = pick(state, state.weights, sub.weights, sub.rows)
        same = 0  # the first row equal to the new one, at worst itself
        while cluster[same] != cluster[rows] or differ(source, same, rows):
            same += 1
        counts[same] += 1.0
        if same == rows:
            rows += 1
    order = descending(counts, rows)
    for k in range(rows):
        counts[k] = math.log(counts[k] / m)
    return pick_rows(Joint(subproblems, source, cluster, counts), order)


@kernel
def differ(matrix, i, k):
    """Whether two rows differ."""
    for j in range(matrix.shape[1]):
        if matrix[i, j] != matrix[k, j]:
            return True
    return False


@kernel
def pick_rows(joint, order):
    """Some rows, in a given order."""
    rows, n = order.shape[0], joint.subproblems.shape[0]
    source, cluster, weight = np.empty((rows, n), np.int64), np.empty(rows, np.int64), np.empty(rows)
    for k in range(rows):
        for q in range(n):
            source[k, q] = joint.source[order[k], q]
        cluster[k], weight[k] = joint.cluster[order[k]], joint.weight[order[k]]
    return Joint(joint.subproblems, source, cluster, weight)
