"""An observation laid out for scoring: its words and letters in a row, and what it has said itself so far."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from partita._core.kernel import borrowed, inner
from partita.models.records.tables import COUNT, place


@inner
def grown_to(array, n):
    """The array itself where it is long enough, else one that is, with the same contents."""
    if array.shape[0] >= n:
        return array
    result = np.empty((2 * n, array.shape[1]), np.int64)
    for i in range(array.shape[0]):
        for j in range(array.shape[1]):
            result[i, j] = array[i, j]
    return result


class Added(NamedTuple):
    """A table of what the observation under consideration has added itself; forgotten with a new mark."""

    counts: Any
    marks: Any
    mark: Any


@inner
def forget_added(tables):
    """An empty table of what the observation has added itself."""
    tables.mark += 1
    return Added(borrowed(tables.added), borrowed(tables.added_mark), tables.mark)


@inner
def place_of(added, feature):
    """Where ``feature`` is in the table of what was added, or would be."""
    counts, marks, mark = added.counts, added.marks, added.mark
    mask = counts.shape[0] - 1
    at = place(feature, mask)
    while marks[at] == mark and counts[at] >> 32 != feature:
        at = (at + 1) & mask
    return at


@inner
def added_before(added, feature):
    """How often the observation itself has added ``feature`` before; once more from now on."""
    counts, marks, mark = added.counts, added.marks, added.mark
    at = place_of(added, feature)
    if marks[at] != mark:
        marks[at] = mark
        counts[at] = np.int64(feature) << 32
    counts[at] += 1
    return (counts[at] & COUNT) - 1


@inner
def added_so_far(added, feature):
    """How often the observation itself has added ``feature`` before."""
    counts, marks, mark = added.counts, added.marks, added.mark
    at = place_of(added, feature)
    return counts[at] & COUNT if marks[at] == mark else np.int64(0)


@inner
def repeats(added, feature):
    """Whether the observation has ``feature`` more than once."""
    return added_before(added, feature) > 1


@inner
def own_counts(added, feature, repeated, rare):
    """The counts of a context or letter in the observation so far; from now on there is one more."""
    if not repeated:
        return np.int64(0), np.int64(0)
    if rare:
        return added_before(added, feature), added_so_far(added, feature + 1)
    return added_so_far(added, feature), added_before(added, feature + 1)


@inner
def prepare(family, start, end):
    """Lay the words and letters of an observation's values out in a row; returns the number of groups.

    A group is what it says of one attribute. Of each word: feature, range of letters, and whether it occurs
    more than once in the observation, of each letter: context, feature, and the same of both.
    """
    tables = family.tables
    n_words, n_tokens, n_groups = 0, 0, 0
    before = -1
    for k in range(start, end):
        v = family.items[k]
        if family.owner[v] != before:
            before = family.owner[v]
            n_groups += 1
        for p in range(family.first[v], family.last[v]):
            n_words += 1
            w = family.parts[p]
            n_tokens += (family.last[w] - family.first[w]) // 2
    tables.words = grown_to(tables.words, n_words + 1)
    tables.tokens = grown_to(tables.tokens, n_tokens + 1)
    tables.groups = grown_to(tables.groups, n_groups + 1)
    if tables.empty.shape[0] < n_groups:
        tables.empty = np.empty(2 * n_groups)
    size = tables.added.shape[0]
    while size < 4 * (n_words + 2 * n_tokens):
        size *= 2
    if size > tables.added.shape[0]:
        tables.added, tables.added_mark = np.zeros(size, np.int64), np.zeros(size, np.int64)
    lay_out(family, start, end)
    return n_groups


@inner
def lay_out(family, start, end):
    """Fill in what :func:`prepare` has made room for."""
    tables = family.tables
    words, tokens, groups = borrowed(tables.words), borrowed(tables.tokens), borrowed(tables.groups)
    items, owner = borrowed(family.items), borrowed(family.owner)
    first, last, parts = borrowed(family.first), borrowed(family.last), borrowed(family.parts)
    added = forget_added(tables)
    n_words, n_tokens, n_groups = 0, 0, 0
    before = -1
    for k in range(start, end):
        v = items[k]
        if owner[v] != before:
            before = owner[v]
            groups[n_groups, 0], groups[n_groups, 1], groups[n_groups, 3] = before, k, n_words
            n_groups += 1
        groups[n_groups - 1, 2] = k + 1
        for p in range(first[v], last[v]):
            w = parts[p]
            words[n_words, 0], words[n_words, 1] = w, n_tokens
            added_before(added, w)
            for t in range(first[w], last[w], 2):
                tokens[n_tokens, 0], tokens[n_tokens, 1] = parts[t], parts[t + 1]
                added_before(added, parts[t])
                added_before(added, parts[t + 1])
                n_tokens += 1
            words[n_words, 2] = n_tokens
            n_words += 1
    for k in range(n_words):
        words[k, 3] = repeats(added, words[k, 0])
    for k in range(n_tokens):
        tokens[k, 2] = repeats(added, tokens[k, 0]) + 2 * repeats(added, tokens[k, 1])
