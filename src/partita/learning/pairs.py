"""What pairs of records of a sample, and pairs of their values, have in common: what learning records counts.

Everything here is dense: each attribute has a matrix of how alike its distinct values are, and another of what that is
worth.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from partita._core.kernel import inner, kernel
from partita._core.typing import Integers
from partita.models.records.comparisons.family import LEVELS
from partita.models.records.comparisons.similarity import level


class Sample(NamedTuple):
    """Records as kernels read them: a range of items each, sorted by attribute."""

    starts: Integers  # of the records' items
    attribute: Integers  # of each item
    value: Integers  # of each item: the number of its value among those of the attribute
    distinct: Integers  # of each attribute: how many values it has
    offset: Integers  # of each attribute: where its matrices begin
    levels: Any  # of each attribute and pair of values


@kernel
def write_levels(family, features, attribute, out):
    """How alike the values of an attribute are, pair by pair."""
    n = features.shape[0]
    for i in range(n):
        out[i * n + i] = LEVELS - 1
        for j in range(i):
            found = level(family, attribute, features[i], features[j])
            out[i * n + j] = found
            out[j * n + i] = found


# ---------------------------------------------------------------------- counts


@kernel
def between_counts(sample, a, clusters, values, counts, holders):
    """Of each value of an attribute: in how many clusters it is, and how alike to it those of the others are.

    ``clusters`` and ``values`` list, sorted, what each cluster has, each value once.
    """
    n, offset = sample.distinct[a], sample.offset[a]
    for k in range(values.shape[0]):
        holders[values[k]] += 1.0
    for v in range(n):
        for w in range(n):
            counts[v, sample.levels[offset + v * n + w]] += holders[w]
    first = 0
    while first < values.shape[0]:
        last = first
        while last < values.shape[0] and clusters[last] == clusters[first]:
            last += 1
        for i in range(first, last):
            share = 1.0 / holders[values[i]]
            for j in range(first, last):
                counts[values[i], sample.levels[offset + values[i] * n + values[j]]] -= share
        first = last


@kernel
def within_counts(sample, a, records, values, ends, counts):
    """How alike values of one cluster are: each cluster's pairs count as much as its members less one.

    ``records`` and ``values`` list the items of the attribute, cluster by cluster, each ending at ``ends``.
    """
    n, offset = sample.distinct[a], sample.offset[a]
    first = 0
    for c in range(ends.shape[0]):
        size = ends[c] - first
        for i in range(first, ends[c]):
            for j in range(first, ends[c]):
                if records[i] != records[j]:
                    counts[sample.levels[offset + values[i] * n + values[j]]] += 1.0 / size
        first = ends[c]


@kernel
def write_evidence(sample, a, log_m, log_u, out):
    """What each pair of values of an attribute is worth."""
    n, offset = sample.distinct[a], sample.offset[a]
    for v in range(n):
        for w in range(n):
            at = sample.levels[offset + v * n + w]
            out[offset + v * n + w] = log_m[at] - max(log_u[v, at], log_u[w, at])


@inner
def meet(sample, x, y, both):
    """List the attributes that two records mention; returns how many.

    ``both`` gets of each its number, where the items of the first record begin and end, where those of the second do,
    and how alike the two are at best.
    """
    i, i_end = sample.starts[x], sample.starts[x + 1]
    j, j_end = sample.starts[y], sample.starts[y + 1]
    n = np.int64(0)
    while i < i_end and j < j_end:
        a = sample.attribute[i]
        if a < sample.attribute[j]:
            i += 1
        elif a > sample.attribute[j]:
            j += 1
        else:
            both[n, 0], both[n, 1], both[n, 3], both[n, 5] = a, i, j, 0
            while i < i_end and sample.attribute[i] == a:
                i += 1
            while j < j_end and sample.attribute[j] == a:
                j += 1
            both[n, 2], both[n, 4] = i, j
            for p in range(both[n, 1], i):
                at = sample.offset[a] + sample.value[p] * sample.distinct[a]
                for q in range(both[n, 3], j):
                    both[n, 5] = max(both[n, 5], sample.levels[at + sample.value[q]])
            n += 1
    return n


@kernel
def sum_evidence(sample, evidence, first, second, limit, least, enough, counts, sums):
    """Over pairs of records: of those alike in an attribute a, how many speak of b, and the sum of what b says.

    Alike is a level of at least ``least``, of which a says ``enough``. What an attribute says is the mean over the
    values of the two records. Pairs of which all say more than ``limit`` are left out: they may be no strangers.
    """
    both, said = np.empty((counts.shape[0], 6), np.int64), np.empty(counts.shape[0])
    for k in range(first.shape[0]):
        n, every = meet(sample, first[k], second[k], both), 0.0
        for p in range(n):
            a, total = both[p, 0], 0.0
            for i in range(both[p, 1], both[p, 2]):
                at = sample.offset[a] + sample.value[i] * sample.distinct[a]
                for j in range(both[p, 3], both[p, 4]):
                    total += evidence[at + sample.value[j]]
            said[p] = total / ((both[p, 2] - both[p, 1]) * (both[p, 4] - both[p, 3]))
            every += said[p]
        if every > limit:
            continue
        for p in range(n):
            if both[p, 5] >= least and said[p] >= enough[both[p, 0]]:
                for q in range(n):
                    counts[both[p, 0], both[q, 0]] += 1.0
                    sums[both[p, 0], both[q, 0]] += said[q]


@kernel
def count_levels(sample, counts):
    """Of each attribute and level: how many pairs of records are so alike."""
    both = np.empty((counts.shape[0], 6), np.int64)
    for x in range(sample.starts.shape[0] - 1):
        for y in range(x):
            for p in range(meet(sample, x, y, both)):
                counts[both[p, 0], both[p, 5]] += 1.0


@kernel
def count_levels_of_strangers(sample, least, information, enough, counts):
    """Of each attribute and level: how many pairs are so alike that do not agree in enough other attributes."""
    both = np.empty((counts.shape[0], 6), np.int64)
    for x in range(sample.starts.shape[0] - 1):
        for y in range(x):
            n, known = meet(sample, x, y, both), 0.0
            for p in range(n):
                if both[p, 5] >= least:
                    known += information[both[p, 0]]
            for p in range(n):
                own = information[both[p, 0]] if both[p, 5] >= least else 0.0
                if known - own < enough:
                    counts[both[p, 0], both[p, 5]] += 1.0


@kernel
def count_akin(sample, least, information, enough, evidence, step, counts, levels):
    """Count pairs of records that agree in enough, by the attribute that says most of it and by what all else says.

    They agree where they are alike to a level of at least ``least``, each attribute by its ``information``. What all
    other attributes say is counted in steps about 0. The first count is of all such pairs, the second of those that
    agree in as many attributes as they differ in. There attributes count by how many pairs differ in them,
    1 − exp(−information): a constant one for nothing. ``levels`` counts how alike such pairs are in all else.
    """
    both, middle = np.empty((information.shape[0], 6), np.int64), counts.shape[1] // 2
    differ = 1.0 - np.exp(-information)
    for x in range(sample.starts.shape[0] - 1):
        for y in range(x):
            balance, known, every, most, at_most = 0.0, 0.0, 0.0, np.int64(-1), np.int64(0)
            n = meet(sample, x, y, both)
            for p in range(n):
                a, at = both[p, 0], both[p, 5]
                every += evidence[a, at]
                if at < least:
                    balance -= differ[a]
                    continue
                balance += differ[a]
                known += information[a]
                if most < 0 or information[a] > information[most]:
                    most, at_most = a, at
            if most >= 0 and known >= enough:
                place = np.int64(round((every - evidence[most, at_most]) / step))
                place = min(max(place, -middle), middle) + middle
                counts[most, place, 0] += 1.0
                counts[most, place, 1] += balance >= 0.0
                for p in range(n):
                    if both[p, 0] != most:
                        levels[both[p, 0], both[p, 5]] += 1.0


@kernel
def count_given_others(sample, evidence, step, counts):
    """Of each attribute count pairs of records that mention it, and how alike these are in it, by what all others say.

    What others say is counted in steps about 0.
    """
    both, middle = np.empty((evidence.shape[0], 6), np.int64), counts.shape[1] // 2
    for x in range(sample.starts.shape[0] - 1):
        for y in range(x):
            n, every = meet(sample, x, y, both), 0.0
            for p in range(n):
                every += evidence[both[p, 0], both[p, 5]]
            for p in range(n):
                a, at = both[p, 0], both[p, 5]
                place = np.int64(round((every - evidence[a, at]) / step))
                place = min(max(place, -middle), middle) + middle
                counts[a, place, 0] += 1.0
                counts[a, place, 1] += at


# ---------------------------------------------------------------------- pairs of which much is said


class NearPairs(NamedTuple):
    """Pairs of records that more speaks for than a bound: an item for each attribute that both mention."""

    first: Integers
    second: Integers
    starts: Integers  # of the pairs' items, and where the last ends
    attribute: Integers  # of each item
    level: Integers  # how alike the two are in it, at best
    said: Any  # the most that it says of the two


@inner
def most_said(sample, evidence, at, both):
    """The most that the attribute at a place of ``both`` says of the two records, by how alike they are at best."""
    a, most = both[at, 0], -np.inf
    for i in range(both[at, 1], both[at, 2]):
        row = sample.offset[a] + sample.value[i] * sample.distinct[a]
        for j in range(both[at, 3], both[at, 4]):
            if sample.levels[row + sample.value[j]] == both[at, 5]:
                most = max(most, evidence[row + sample.value[j]])
    return most


@kernel
def count_near(sample, evidence, limit, n_attributes, stride, counts):
    """Count pairs of which all says more than ``limit``; and, of every so many of them, pairs and items."""
    both = np.empty((n_attributes, 6), np.int64)
    for x in range(sample.starts.shape[0] - 1):
        for y in range(x):
            n, every = meet(sample, x, y, both), 0.0
            for p in range(n):
                every += most_said(sample, evidence, p, both)
            if every > limit:
                if counts[0] % stride == 0:
                    counts[1] += 1
                    counts[2] += n
                counts[0] += 1


@kernel
def write_near(sample, evidence, limit, n_attributes, stride, near):
    """Write every so many of the pairs that :func:`count_near` counts."""
    both, said = np.empty((n_attributes, 6), np.int64), np.empty(n_attributes)
    seen, k, at = np.int64(0), np.int64(0), np.int64(0)
    for x in range(sample.starts.shape[0] - 1):
        for y in range(x):
            n, every = meet(sample, x, y, both), 0.0
            for p in range(n):
                said[p] = most_said(sample, evidence, p, both)
                every += said[p]
            if every > limit:
                if seen % stride == 0:
                    near.first[k], near.second[k] = x, y
                    for p in range(n):
                        near.attribute[at], near.level[at], near.said[at] = both[p, 0], both[p, 5], said[p]
                        at += 1
                    k += 1
                    near.starts[k] = at
                seen += 1


@kernel
def tell_apart(near, log_u, log_m, alike, shared, log_prior, kin, neighbours, of_kin, of_neighbours, spoken):
    """How probably each pair is of one entity, and of neighbours; and what such pairs have in common.

    Neighbours ``shared`` an attribute or not. If they do their values are ``alike`` to a degree like those of kin, else
    like those of any strangers: log_u of each item. ``log_prior`` is of kin, of neighbours and of other strangers.
    Counts are of how alike kin are, of how alike neighbours are in what they share, and of neighbours that speak of it.
    """
    for k in range(kin.shape[0]):
        one, two, none = log_prior[0], log_prior[1], log_prior[2]
        for i in range(near.starts[k], near.starts[k + 1]):
            a, at = near.attribute[i], near.level[i]
            u = math.exp(log_u[i])
            one += log_m[a, at] - log_u[i]
            two += math.log(shared[a] * alike[a, at] + (1.0 - shared[a]) * u) - log_u[i]
        top = max(one, two, none)
        one, two, none = math.exp(one - top), math.exp(two - top), math.exp(none - top)
        kin[k], neighbours[k] = one / (one + two + none), two / (one + two + none)
        for i in range(near.starts[k], near.starts[k + 1]):
            a, at = near.attribute[i], near.level[i]
            both = shared[a] * alike[a, at]
            of_kin[a, at] += kin[k]
            of_neighbours[a, at] += neighbours[k] * both / (both + (1.0 - shared[a]) * math.exp(log_u[i]))
            spoken[a] += neighbours[k]


@kernel
def sum_near(near, weights, enough, counts, sums):
    """The same as :func:`sum_evidence` of pairs that count with weights, whatever all says of them."""
    for k in range(weights.shape[0]):
        for i in range(near.starts[k], near.starts[k + 1]):
            if near.said[i] >= enough[near.attribute[i]]:
                for j in range(near.starts[k], near.starts[k + 1]):
                    counts[near.attribute[i], near.attribute[j]] += weights[k]
                    sums[near.attribute[i], near.attribute[j]] += weights[k] * near.said[j]
