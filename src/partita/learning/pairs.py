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

    @property
    def n(self) -> int:
        """The number of records."""
        return len(self.starts) - 1


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


@kernel
def sum_evidence(sample, evidence, first, second, limit, least, moments):
    """Sums over pairs of records: of those alike in an attribute a, how many speak of b,
    and Σ e_b, Σ e_b² and Σ e_a·e_b of what they say.

    Alike is a level of at least ``least``. What an attribute says is the mean over the values of the two records.
    Pairs of which all say more than ``limit`` are left out: they may be no strangers.
    """
    n_attributes = moments.shape[1]
    found, said = np.empty(n_attributes, np.int64), np.empty(n_attributes)
    alike = np.empty(n_attributes, np.int64)
    for k in range(first.shape[0]):
        i, i_end = sample.starts[first[k]], sample.starts[first[k] + 1]
        j, j_end = sample.starts[second[k]], sample.starts[second[k] + 1]
        n, every = 0, 0.0
        while i < i_end and j < j_end:
            a = sample.attribute[i]
            if a < sample.attribute[j]:
                i += 1
            elif a > sample.attribute[j]:
                j += 1
            else:
                i_last, j_last, total, best = i, j, 0.0, 0
                while i_last < i_end and sample.attribute[i_last] == a:
                    i_last += 1
                while j_last < j_end and sample.attribute[j_last] == a:
                    j_last += 1
                for p in range(i, i_last):
                    at = sample.offset[a] + sample.value[p] * sample.distinct[a]
                    for q in range(j, j_last):
                        total += evidence[at + sample.value[q]]
                        best = max(best, sample.levels[at + sample.value[q]])
                found[n], said[n], alike[n] = a, total / ((i_last - i) * (j_last - j)), best
                every += said[n]
                n += 1
                i, j = i_last, j_last
        if every > limit:
            continue
        for p in range(n):
            if alike[p] >= least:
                for q in range(n):
                    moments[0, found[p], found[q]] += 1.0
                    moments[1, found[p], found[q]] += said[q]
                    moments[2, found[p], found[q]] += said[q] * said[q]
                    moments[3, found[p], found[q]] += said[p] * said[q]


@kernel
def agreements(sample, least, counts):
    """Of each attribute: how many pairs of records speak of it, and how many are alike to at least a level."""
    for x in range(sample.starts.shape[0] - 1):
        for y in range(x):
            i, i_end = sample.starts[x], sample.starts[x + 1]
            j, j_end = sample.starts[y], sample.starts[y + 1]
            while i < i_end and j < j_end:
                a = sample.attribute[i]
                if a < sample.attribute[j]:
                    i += 1
                elif a > sample.attribute[j]:
                    j += 1
                else:
                    best, i, j = best_level(sample, a, i, i_end, j, j_end)
                    counts[a, 0] += 1.0
                    counts[a, 1] += best >= least


@inner
def best_level(sample, a, i, i_end, j, j_end):
    """How alike the values of an attribute are that two records have; and where those of the next begin."""
    best, q = np.int64(0), j
    while i < i_end and sample.attribute[i] == a:
        q, at = j, sample.offset[a] + sample.value[i] * sample.distinct[a]
        while q < j_end and sample.attribute[q] == a:
            best = max(best, np.int64(sample.levels[at + sample.value[q]]))
            q += 1
        i += 1
    return best, i, q


@kernel
def count_akin(sample, least, information, enough):
    """How many pairs of records agree in as many attributes as they differ in, and in enough that says something.

    Attributes count by how many pairs differ in them, 1 − exp(−information): a constant one for nothing.
    """
    found = 0
    for x in range(sample.starts.shape[0] - 1):
        for y in range(x):
            i, i_end = sample.starts[x], sample.starts[x + 1]
            j, j_end = sample.starts[y], sample.starts[y + 1]
            balance, known = 0.0, 0.0
            while i < i_end and j < j_end:
                a = sample.attribute[i]
                if a < sample.attribute[j]:
                    i += 1
                elif a > sample.attribute[j]:
                    j += 1
                else:
                    best, i, j = best_level(sample, a, i, i_end, j, j_end)
                    differ = 1.0 - math.exp(-information[a])
                    if best >= least:
                        balance, known = balance + differ, known + information[a]
                    else:
                        balance -= differ
            found += balance >= 0.0 and known >= enough
    return found
