"""Clusters of a sample of records by all its pairs: what learning the prior of records goes by.

Everything here is dense: each attribute has a matrix of how alike its distinct values are, another of what that is
worth, and a record meets all others, under a Dirichlet process. The potential of a cluster is a cheaper one than that of
:mod:`partita.models.records.comparisons.family`, (2/n)^p times the sum over its pairs, which also joins more readily:
fragments of an entity that stay apart would teach that strangers agree.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from partita._core.kernel import inner, kernel
from partita._core.typing import Integers
from partita.models.records.comparisons.family import LEVELS
from partita.models.records.comparisons.similarity import level


POWER = 0.65  # of the size of a cluster in the potential that learning goes by


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


# ---------------------------------------------------------------------- clustering


@inner
def across(sample, evidence, x, y, sums, row):
    """Add the evidence of two records to a row of ``sums``, by attribute."""
    i, i_end = sample.starts[x], sample.starts[x + 1]
    j, j_end = sample.starts[y], sample.starts[y + 1]
    while i < i_end and j < j_end:
        a = sample.attribute[i]
        if a < sample.attribute[j]:
            i += 1
        elif a > sample.attribute[j]:
            j += 1
        else:
            at = sample.offset[a] + sample.value[i] * sample.distinct[a]
            q = j
            while q < j_end and sample.attribute[q] == a:
                sums[row, a] += evidence[at + sample.value[q]]
                q += 1
            i += 1


@inner
def potential(total, n):
    """(2/n)^p times a sum over pairs."""
    return total * (2.0 / n) ** POWER if n > 1 else 0.0


@inner
def count_items(sample, x, counts, c, by):
    """Add a record's items to the counts of a cluster, or take them out."""
    for k in range(sample.starts[x], sample.starts[x + 1]):
        counts[c, sample.attribute[k]] += by


@kernel
def improve(sample, evidence, kinds, weights, log_alpha, labels, orders):
    """Move each record to its best cluster, and let clusters join, once for each of ``orders``; changes ``labels``.

    ``kinds`` is what two records say by mentioning the attributes that they do.
    """
    n, n_attributes = labels.shape[0], weights.shape[0]
    sums, counts = np.zeros((n + 1, n_attributes)), np.zeros((n + 1, n_attributes), np.int64)
    alike, sizes = np.zeros(n + 1), np.zeros(n + 1, np.int64)
    shared, shared_alike = np.zeros((n + 1, n_attributes)), np.zeros(n + 1)
    for x in range(n):
        for y in range(x):
            if labels[x] == labels[y]:
                across(sample, evidence, x, y, sums, labels[x])
                alike[labels[x]] += kinds[x, y]
        sizes[labels[x]] += 1
        count_items(sample, x, counts, labels[x], 1)
    for r in range(orders.shape[0]):
        for k in range(n):
            place(sample, evidence, kinds, weights, log_alpha, labels, sums, counts, alike, sizes, shared, shared_alike,
                  orders[r, k])  # fmt: skip
        for k in range(n):
            c = labels[orders[r, k]]
            while unite(sample, evidence, kinds, weights, log_alpha, labels, sums, counts, alike, sizes, shared,
                        shared_alike, c):  # fmt: skip
                pass
    total = np.zeros(n_attributes + 1)
    for c in range(n + 1):
        if sizes[c] > 0:
            for a in range(n_attributes):
                total[a] += potential(sums[c, a], counts[c, a])
            total[n_attributes] += potential(alike[c], sizes[c])
    return total


@inner
def clear(sizes, shared, shared_alike):
    """Forget the evidence of all clusters."""
    for c in range(sizes.shape[0]):
        if sizes[c] > 0:
            shared_alike[c] = 0.0
            for a in range(shared.shape[1]):
                shared[c, a] = 0.0


@inner
def meet(sample, evidence, kinds, labels, shared, shared_alike, x):
    """Sum the evidence of a record and the others, cluster by cluster."""
    for y in range(labels.shape[0]):
        if labels[y] >= 0 and labels[y] != labels[x]:
            across(sample, evidence, x, y, shared, labels[y])
            shared_alike[labels[y]] += kinds[x, y]


@inner
def place(sample, evidence, kinds, weights, log_alpha, labels, sums, counts, alike, sizes, shared, shared_alike, x):
    """Take a record out of its cluster and put it into the best."""
    n_attributes, c = weights.shape[0], labels[x]
    labels[x] = -1
    clear(sizes, shared, shared_alike)
    meet(sample, evidence, kinds, labels, shared, shared_alike, x)
    sizes[c] -= 1
    count_items(sample, x, counts, c, -1)
    alike[c] -= shared_alike[c]
    for a in range(n_attributes):
        sums[c, a] -= shared[c, a]
    best, chosen, free = log_alpha, np.int64(-1), np.int64(-1)
    for d in range(sizes.shape[0]):
        if sizes[d] == 0:
            free = d
            continue
        gain = math.log(sizes[d]) + potential(alike[d] + shared_alike[d], sizes[d] + 1) - potential(alike[d], sizes[d])
        before = -1
        for k in range(sample.starts[x], sample.starts[x + 1]):
            a = sample.attribute[k]
            if a == before:
                continue
            before, more, last = a, 0, k
            while last < sample.starts[x + 1] and sample.attribute[last] == a:
                more += 1
                last += 1
            if counts[d, a] > 0:
                after = potential(sums[d, a] + shared[d, a], counts[d, a] + more)
                gain += weights[a] * (after - potential(sums[d, a], counts[d, a]))
        if gain > best:
            best, chosen = gain, d
    if chosen < 0:
        chosen = c if sizes[c] == 0 else free
    labels[x] = chosen
    sizes[chosen] += 1
    count_items(sample, x, counts, chosen, 1)
    alike[chosen] += shared_alike[chosen]
    for a in range(n_attributes):
        sums[chosen, a] += shared[chosen, a]


@inner
def unite(sample, evidence, kinds, weights, log_alpha, labels, sums, counts, alike, sizes, shared, shared_alike, c):
    """Let a cluster join the one with which it gains most; false if there is none."""
    n_attributes = weights.shape[0]
    clear(sizes, shared, shared_alike)
    for x in range(labels.shape[0]):
        if labels[x] == c:
            meet(sample, evidence, kinds, labels, shared, shared_alike, x)
    best, chosen = 1e-9, np.int64(-1)
    for d in range(sizes.shape[0]):
        if sizes[d] == 0 or d == c:
            continue
        n, m = sizes[c], sizes[d]
        gain = math.lgamma(n + m) - math.lgamma(n) - math.lgamma(m) - log_alpha
        gain += potential(alike[c] + alike[d] + shared_alike[d], n + m)
        gain -= potential(alike[c], n) + potential(alike[d], m)
        for a in range(n_attributes):
            if counts[c, a] > 0 and counts[d, a] > 0:
                after = potential(sums[c, a] + sums[d, a] + shared[d, a], counts[c, a] + counts[d, a])
                gain += weights[a] * (after - potential(sums[c, a], counts[c, a]) - potential(sums[d, a], counts[d, a]))
        if gain > best:
            best, chosen = gain, d
    if chosen < 0:
        return False
    for x in range(labels.shape[0]):
        if labels[x] == chosen:
            labels[x] = c
    sizes[c] += sizes[chosen]
    alike[c] += alike[chosen] + shared_alike[chosen]
    sizes[chosen], alike[chosen] = 0, 0.0
    for a in range(n_attributes):
        sums[c, a] += sums[chosen, a] + shared[chosen, a]
        counts[c, a] += counts[chosen, a]
        sums[chosen, a], counts[chosen, a] = 0.0, 0
    return True
