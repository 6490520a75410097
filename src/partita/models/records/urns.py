"""Compiled likelihood of texts and records: nested urns over values, words and letters.

What a cluster says of one attribute is a set of *values*. A value is drawn from an urn (Blackwell and
MacQueen 1973): with probability n_v / (N + θ) it is one that the cluster has seen n_v times among N, else it
is new to the cluster. A new value is either one of the *common* ones, with its frequency in the corpus, or
*composed* of words. Words come from a second urn of the cluster, in which the words of its distinct values
are: m_w / (M + φ) for one that is there, else φ / (M + φ) times the base of the word. A word's base again is
its frequency if it is common; a *rare* one is spelled, letter by letter, by an n-gram model of the cluster's
own letters, Dirichlet with strength s centred on the corpus:

    Π (s·q(letter | context) + n(context, letter)) / (s + n(context)).

Composed values are given the words of the common ones, rare words the letters of the common ones. So a repeat
is cheap, a variant that shares words or patterns of letters is likely, the more so the rarer they are, an
unrelated string pays for itself; and p(c) is a closed form in counts, the same for every order. (A new draw
that happens to equal an old one is left out, so probabilities sum to a little less than one.) A category has
no composed values, an ``Ngram`` no urns.

Features of all kinds are numbered through from 1, and a cluster is a table of counts of them (``tables.py``).
Some come in pairs: next to the count of a word in all of a cluster's distinct values is that in common
values, next to that of letters in its distinct rare words that in common ones. An observation is a range of
``items``: its values, sorted by attribute.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import typeof_impl

from partita._core.kernel import borrowed, inner, shared
from partita._core.typing import Floats, Integers
from partita.models.records.numbers import NUMBER, numbers_gain
from partita.models.records.tables import (
    CAPACITY,
    COUNT,
    LOG_SIZE,
    SIZE,
    START,
    TABLES,
    USED,
    WIDTH,
    add,
    copy_table,
    count_of,
    place,
)
from partita.models.records.values import log_sum, values_gain
from partita.models.scoring.families import Kernels

# Kinds of features; those in pairs are followed by their second.
VALUE, COMPOSED, WORD, RARE, IN_COMMON, LETTER, CONTEXT, OF_COMMON, TOTAL = range(9)
VALUES, WORDS, COMMON_WORDS, SPELLED, N_COMPOSED, PRESENT = range(6)  # totals of an attribute
URNS = 0  # how an attribute is modelled: as above, or by ``values.py`` or ``numbers.py``
MENTIONS = np.int64(1)  # the feature that counts attributes mentioned, in all


class UrnFamily(NamedTuple):
    """What the kernels need to know of a text or record model, its vocabulary and its tables."""

    items: Integers  # values of the observations, one observation after the other
    kind: Integers  # of each feature
    owner: Integers  # of each feature: its attribute
    base: Floats  # of values and words: a log-probability; of contexts s, of letters s·q; a NUMBER
    first: Integers  # of each value or word: where its parts begin
    last: Integers  # and end
    parts: Integers  # of a value its words; of a word contexts and letters, in turn; see ``Vocabulary.value``
    theta: Floats  # of each attribute: of its urn of values; negative without one
    phi: Floats  # of its urn of words
    totals: Integers  # of each attribute: the features that count its values, words, …
    mode: Integers  # of each attribute: one of URNS, TRUE_VALUE, NUMBER
    settings: Floats  # of each attribute: what its mode needs to know
    presence: Floats  # of each type a row: b·f of each attribute, b·Σf, b and the type's log-probability
    tables: Any


INTEGERS, FLOATS = types.int64[::1], types.float64[::1]
OF_FIELDS = {
    "items": INTEGERS,
    "kind": INTEGERS,
    "owner": INTEGERS,
    "base": FLOATS,
    "first": INTEGERS,
    "last": INTEGERS,
    "parts": INTEGERS,
    "theta": FLOATS,
    "phi": FLOATS,
    "totals": types.int64[:, ::1],
    "mode": INTEGERS,
    "settings": types.float64[:, ::1],
    "presence": types.float64[:, ::1],
    "tables": TABLES,
}
URN_FAMILY = types.NamedTuple([OF_FIELDS[name] for name in UrnFamily._fields], UrnFamily)


@typeof_impl.register(UrnFamily)
def _type_of_family(value, context):
    """The same for all, so that a call need not look at every field: that takes longer than most calls."""
    return URN_FAMILY


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


@inner
def repeats(added, feature):
    """Whether the observation has ``feature`` more than once."""
    return added_before(added, feature) > 1


@inner
def added_so_far(added, feature):
    """How often the observation itself has added ``feature`` before."""
    counts, marks, mark = added.counts, added.marks, added.mark
    at = place_of(added, feature)
    return counts[at] & COUNT if marks[at] == mark else np.int64(0)


@inner
def count_of_pair(pool, start, capacity, feature, in_rare, in_common):
    """The counts of a context or letter in rare words and in common ones, if it may be in such.

    A letter is in no words that its context is not in, and of most words not even contexts are there.
    """
    n_rare = count_of(pool, start, capacity, feature) if in_rare else np.int64(0)
    n_common = count_of(pool, start, capacity, feature + 1) if in_common else np.int64(0)
    return n_rare, n_common


@inner
def own_counts(added, feature, repeated, rare):
    """The counts of a context or letter in the observation so far; from now on there is one more."""
    if not repeated:
        return np.int64(0), np.int64(0)
    if rare:
        return added_before(added, feature), added_so_far(added, feature + 1)
    return added_so_far(added, feature), added_before(added, feature + 1)


@inner
def new_word(added, pool, tokens, base, start, capacity, rare, in_common, first, last):
    """log-probability of the letters of a word that is new to the cluster.

    Those of a common word are given; what counts is how much better they make the rare ones. The cluster may
    have letters ``in_common`` words.
    """
    total, product = 0.0, 1.0
    for t in range(first, last):
        context, letter, repeated = tokens[t, 0], tokens[t, 1], tokens[t, 2]
        c_rare, c_common = count_of_pair(pool, start, capacity, context, True, in_common)
        n_rare, n_common = count_of_pair(pool, start, capacity, letter, c_rare > 0, c_common > 0)
        if repeated:
            own_rare, own_common = own_counts(added, context, repeated & 1, rare)
            c_rare, c_common = c_rare + own_rare, c_common + own_common
            own_rare, own_common = own_counts(added, letter, repeated & 2, rare)
            n_rare, n_common = n_rare + own_rare, n_common + own_common
        product *= (base[letter] + n_rare + n_common) / (base[context] + c_rare + c_common)
        if not rare:
            product *= (base[context] + c_common) / (base[letter] + n_common)
        if not 1e-200 < product < 1e200:
            total += math.log(product)
            product = 1.0
    return total + math.log(product)


@inner
def note(added, tokens, first, last):
    """Add the letters of a common word, where they come again in the observation."""
    for t in range(first, last):
        if tokens[t, 2] & 1:
            added_before(added, tokens[t, 0] + 1)
        if tokens[t, 2] & 2:
            added_before(added, tokens[t, 1] + 1)


@inner
def words_gain(
    added, pool, words, tokens, base, kind, start, capacity, phi, first, last,
    common, in_common, spelled, n_words, n_common,
):  # fmt: skip
    """log-probability of the words of a value that is new to the cluster.

    Those of a common value are given; what counts is how much better they make the composed ones.
    """
    total, product = 0.0, 1.0
    for i in range(first, last):
        w = words[i, 0]
        n = np.int64(0)
        if phi > 0.0:
            n = count_of(pool, start, capacity, w)
            if words[i, 3]:
                n += added_before(added, w)
            product *= (n if n > 0 else phi) / (n_words + phi)
            n_words += 1
            total += 0.0 if n > 0 else base[w]
            if common:
                n_given = count_of(pool, start, capacity, w + 1)
                if words[i, 3]:
                    n_given += added_before(added, w + 1)
                product *= (n_common + phi) / (n_given if n_given > 0 else phi)
                n_common += 1
                total -= 0.0 if n_given > 0 else base[w]
        if n == 0:
            rare = kind[w] == RARE
            spelled += rare
            if spelled > 0:
                total += new_word(
                    added, pool, tokens, base, start, capacity, rare, in_common, words[i, 1], words[i, 2]
                )
            else:
                note(added, tokens, words[i, 1], words[i, 2])
        if not 1e-200 < product < 1e200:
            total += math.log(product)
            product = 1.0
    return total + math.log(product), spelled


@inner
def group_gain(
    added, pool, items, words, tokens, groups, kind, base, firsts, lasts, theta, phi, totals,
    start, capacity, g, n_values,
):  # fmt: skip
    """log-probability of what the observation says of one attribute, of which there are ``n_values`` so far.

    Arrays come as arguments of their own: to take one from a struct counts references again.
    """
    a, word = groups[g, 0], groups[g, 3]
    strength = theta[a]
    total = 0.0
    n_words = n_common = spelled = composed = np.int64(-1)
    in_common = False
    several = groups[g, 2] - groups[g, 1] > 1
    for k in range(groups[g, 1], groups[g, 2]):
        v = items[k]
        length = lasts[v] - firsts[v]
        first, word = word, word + length
        if strength > 0.0:
            n = count_of(pool, start, capacity, v)
            total += math.log((n if n > 0 else strength) / (n_values + strength))
            n_values += 1
            if n > 0:
                continue
        total += base[v]
        if length == 0:
            continue
        if composed < 0:
            n_words = count_of(pool, start, capacity, totals[a, WORDS])
            n_common = count_of(pool, start, capacity, totals[a, COMMON_WORDS])
            spelled = count_of(pool, start, capacity, totals[a, SPELLED])
            composed = count_of(pool, start, capacity, totals[a, N_COMPOSED])
            in_common = n_words > spelled  # not all of its words are rare, and there once
        common = kind[v] == VALUE
        composed += not common
        if common and composed == 0 and not several:
            continue
        gain, spelled = words_gain(
            added, pool, words, tokens, base, kind, start, capacity, phi[a], first, word,
            common, in_common, spelled, n_words, n_common,
        )  # fmt: skip
        total += gain
        n_words += length
        n_common += length if common else 0
    return total


@inner
def gather(tables, pool, kind, owner, mode, start, capacity, more):
    """List a cluster's values of attributes without urns of words, in ``tables.found``; returns how many.

    There is room for ``more`` in ``tables.chosen``.
    """
    tables.found = grown_to(tables.found, capacity)
    tables.chosen = grown_to(tables.chosen, capacity + more)
    found, n = borrowed(tables.found), np.int64(0)
    for k in range(start, start + capacity):
        feature, count = pool[k] >> 32, pool[k] & COUNT
        if count > 0 and kind[feature] == VALUE and mode[owner[feature]] != URNS:
            found[n, 0], found[n, 1] = feature, count
            n += 1
    return n


@inner
def choose(found, chosen, owner, items, first, last, n_found, a):
    """List what was found of one attribute, without and with an observation; returns how much it is."""
    n = np.int64(0)
    for i in range(n_found):
        if owner[found[i, 0]] == a:
            chosen[n, 0], chosen[n, 1], chosen[n, 2] = found[i, 0], found[i, 1], found[i, 1]
            n += 1
    for k in range(first, last):
        i = 0
        while i < n and chosen[i, 0] != items[k]:
            i += 1
        if i == n:
            chosen[n, 0], chosen[n, 1], chosen[n, 2] = items[k], 0, 0
            n += 1
        chosen[i, 2] += 1
    return n


@inner
def chosen_gain(family, a, n):
    """log p of what ``tables.chosen`` has of an attribute, with the observation over without it."""
    chosen, base, settings = borrowed(family.tables.chosen), borrowed(family.base), borrowed(family.settings)
    if family.mode[a] == NUMBER:
        return numbers_gain(chosen, base, settings, family.theta[a], a, n)
    firsts, parts, near = borrowed(family.first), borrowed(family.parts), borrowed(family.tables.near)
    return values_gain(chosen, base, settings, firsts, parts, near, a, n)


@inner
def log_found(family, n_found):
    """log p of all that was found."""
    total, owner = 0.0, borrowed(family.owner)
    found, chosen = borrowed(family.tables.found), borrowed(family.tables.chosen)
    for i in range(n_found):
        if found[i, 1] == 0:
            continue  # done already
        a, n = owner[found[i, 0]], np.int64(0)
        for j in range(i, n_found):
            if owner[found[j, 0]] == a:
                chosen[n, 0], chosen[n, 1], chosen[n, 2] = found[j, 0], 0, found[j, 1]
                found[j, 1] = 0
                n += 1
        total += chosen_gain(family, a, n)
    return total


@inner
def rising(x, n):
    """log x(x + 1)…(x + n − 1)."""
    return math.lgamma(x + n) - math.lgamma(x)


@inner
def presence_gain(pool, groups, totals, presence, statistics, c, start, capacity, size, n_groups):
    """log-probability of mentioning just the attributes that the observation mentions.

    An entity is of one of several types. It mentions each attribute at a rate of its own, Gamma(b·f, b) with
    the type's f, and the numbers of mentions are Poisson: evidence of what kind of thing it is.
    """
    n = totals.shape[0]
    rate = presence[0, n + 1]
    if rate == 0.0:
        return 0.0
    shrink, share = math.log1p(1.0 / (rate + size)), 1.0 / (rate + size + 1.0)
    gain = -count_of(pool, start, capacity, MENTIONS) * shrink
    for g in range(n_groups):
        groups[g, 4] = count_of(pool, start, capacity, totals[groups[g, 0], PRESENT])
    top, total = -np.inf, 0.0
    for k in range(presence.shape[0]):
        term, product = statistics[c, WIDTH + k] - presence[k, n] * shrink, 1.0
        for g in range(n_groups):
            product *= (presence[k, groups[g, 0]] + groups[g, 4]) * share
            if product < 1e-200:
                term += math.log(product)
                product = 1.0
        term += math.log(product)
        if presence.shape[0] == 1:
            return gain + term
        top, total = log_sum(top, total, term)
    return gain + top + math.log(total)


@inner
def weigh_types(pool, kind, owner, totals, presence, statistics, c, size):
    """Write the log-probabilities of the types given a cluster; returns what presence adds to log p(c)."""
    n, types = totals.shape[0], presence.shape[0]
    rate = presence[0, n + 1]
    if rate == 0.0:
        return 0.0
    start, capacity = np.int64(statistics[c, START]), np.int64(statistics[c, CAPACITY])
    for k in range(types):
        statistics[c, WIDTH + k] = presence[k, n + 2] - presence[k, n] * math.log1p(size / rate)
    for i in range(start, start + capacity):
        feature, count = pool[i] >> 32, pool[i] & COUNT
        if count == 0 or kind[feature] != TOTAL or feature == MENTIONS:
            continue
        a = owner[feature]
        if feature == totals[a, PRESENT]:
            for k in range(types):
                statistics[c, WIDTH + k] += rising(presence[k, a], count)
    top, total = -np.inf, 0.0
    for k in range(types):
        top, total = log_sum(top, total, statistics[c, WIDTH + k])
    result = top + math.log(total)
    for k in range(types):
        statistics[c, WIDTH + k] -= result
    return result - count_of(pool, start, capacity, MENTIONS) * math.log(rate + size)


@inner
def gains(family, statistics, ids, first, last, data, x, out):
    """log|c| + log p(x|c) of each of many clusters."""
    tables = family.tables
    n_groups = prepare(family, int(data[x, 0]), int(data[x, 1]))
    pool, groups, empty = borrowed(tables.pool), borrowed(tables.groups), borrowed(tables.empty)
    words, tokens, items = borrowed(tables.words), borrowed(tables.tokens), borrowed(family.items)
    kind, base, firsts = borrowed(family.kind), borrowed(family.base), borrowed(family.first)
    lasts, theta, phi = borrowed(family.last), borrowed(family.theta), borrowed(family.phi)
    totals, presence = borrowed(family.totals), borrowed(family.presence)
    owner, mode = borrowed(family.owner), borrowed(family.mode)
    for k in range(first - 1, last):
        c = ids[max(k, first)]
        start, capacity, size = np.int64(0), np.int64(0), 0.0
        if k >= first:  # before the first cluster comes the empty one, for the attributes that others lack
            start, capacity = np.int64(statistics[c, START]), np.int64(statistics[c, CAPACITY])
            size = statistics[c, SIZE]
        row = c if k >= first else 0
        total = presence_gain(
            pool, groups, totals, presence, statistics, row, start, capacity, size, n_groups
        )
        added = forget_added(tables)
        n_found = np.int64(-1)
        for g in range(n_groups):
            n_values = count_of(pool, start, capacity, totals[groups[g, 0], VALUES])
            if n_values == 0 and k >= first:
                total += empty[g]
                continue
            if mode[groups[g, 0]] == URNS:
                gain = group_gain(
                    added, pool, items, words, tokens, groups, kind, base, firsts, lasts, theta, phi, totals,
                    start, capacity, g, n_values,
                )  # fmt: skip
            else:
                if n_found < 0:
                    more = np.int64(data[x, 1] - data[x, 0])
                    n_found = gather(tables, pool, kind, owner, mode, start, capacity, more)
                found, chosen = borrowed(tables.found), borrowed(tables.chosen)
                n = choose(found, chosen, owner, items, groups[g, 1], groups[g, 2], n_found, groups[g, 0])
                gain = chosen_gain(family, groups[g, 0], n)
            total += gain
            if k < first:
                empty[g] = gain
        if k >= first:
            out[c] = total + statistics[c, LOG_SIZE]


@inner
def begin(family, statistics, d):
    """Row of the empty cluster: nothing in it."""
    for k in range(statistics.shape[1]):
        statistics[0, k] = 0.0
    for k in range(family.presence.shape[0]):
        statistics[0, WIDTH + k] = family.presence[k, family.totals.shape[0] + 2]


@inner
def count_word(pool, kind, firsts, lasts, parts, totals, phi, start, capacity, a, w, common, by):
    """Add a word to a table, or take it out; returns the number of new entries."""
    used = add(pool, start, capacity, totals[a, WORDS], by)
    if common:
        used += add(pool, start, capacity, totals[a, COMMON_WORDS], by)
        used += add(pool, start, capacity, w + 1, by)
    if phi[a] > 0.0:
        used += add(pool, start, capacity, w, by)
        if count_of(pool, start, capacity, w) != (by > 0):
            return used
    rare = kind[w] == RARE
    if rare:
        used += add(pool, start, capacity, totals[a, SPELLED], by)
    for t in range(firsts[w], lasts[w]):
        used += add(pool, start, capacity, parts[t] if rare else parts[t] + 1, by)
    return used


@inner
def count_value(pool, kind, firsts, lasts, parts, totals, theta, phi, start, capacity, a, v, n, by):
    """Add a value n times to a table, or take it out; returns the number of new entries."""
    used = add(pool, start, capacity, totals[a, VALUES], n * by)
    if theta[a] > 0.0:
        used += add(pool, start, capacity, v, n * by)
        if count_of(pool, start, capacity, v) != (n if by > 0 else 0):
            return used
    common = kind[v] == VALUE
    if not common:
        used += add(pool, start, capacity, totals[a, N_COMPOSED], by)
    for p in range(firsts[v], lasts[v]):
        used += count_word(
            pool, kind, firsts, lasts, parts, totals, phi, start, capacity, a, parts[p], common, by
        )
    return used


@inner
def most_features(items, firsts, lasts, parts, first, last):
    """No more entries than this are new to a table when an observation is added."""
    count = np.int64(1)
    for k in range(first, last):
        count += 4
        for p in range(firsts[items[k]], lasts[items[k]]):
            count += 5 + lasts[parts[p]] - firsts[parts[p]]
    return count


@shared
def shift(family, statistics, child, parent, size, data, x, by):
    """Row of ``child``, of so many members: that of ``parent`` with ``x`` added or taken out."""
    items, kind, owner = borrowed(family.items), borrowed(family.kind), borrowed(family.owner)
    firsts, lasts, parts = borrowed(family.first), borrowed(family.last), borrowed(family.parts)
    totals, theta, phi = borrowed(family.totals), borrowed(family.theta), borrowed(family.phi)
    first, last = int(data[x, 0]), int(data[x, 1])
    extra = most_features(items, firsts, lasts, parts, first, last) if by > 0 else np.int64(0)
    copy_table(family.tables, statistics, child, parent, extra)
    pool = borrowed(family.tables.pool)
    start, capacity = np.int64(statistics[child, START]), np.int64(statistics[child, CAPACITY])
    used, once, before = np.int64(0), np.int64(1), -1
    for k in range(first, last):
        a = owner[items[k]]
        used += count_value(
            pool, kind, firsts, lasts, parts, totals, theta, phi, start, capacity, a, items[k], once, by
        )
        if a != before:
            before = a
            used += add(pool, start, capacity, MENTIONS, by)
            used += add(pool, start, capacity, totals[a, PRESENT], by)
    statistics[child, USED] += used
    statistics[child, SIZE], statistics[child, LOG_SIZE] = size, math.log(max(size, 1))
    presence = borrowed(family.presence)
    if presence.shape[0] > 1:
        weigh_types(pool, kind, owner, totals, presence, statistics, child, size)


@inner
def extend(family, statistics, child, parent, size, data, x):
    """Row of the cluster with ``x`` added."""
    shift(family, statistics, child, parent, size + 1, data, x, np.int64(1))


@inner
def reduce(family, statistics, child, parent, size, data, x):
    """Row of the cluster with ``x`` taken out: counts are whole, so nothing is lost."""
    shift(family, statistics, child, parent, size - 1, data, x, np.int64(-1))
    return True


@inner
def join(family, statistics, child, first, second, size_first, size_second, d):
    """Row of the union of two clusters."""
    if child == second:
        first, second = second, first
    kind, owner, firsts, lasts, parts = family.kind, family.owner, family.first, family.last, family.parts
    totals, theta, phi = family.totals, family.theta, family.phi
    copy_table(family.tables, statistics, child, first, np.int64(statistics[second, USED]))
    pool = borrowed(family.tables.pool)
    start, capacity = np.int64(statistics[child, START]), np.int64(statistics[child, CAPACITY])
    used, more = np.int64(0), np.int64(1)
    low = np.int64(statistics[second, START])
    for k in range(low, low + np.int64(statistics[second, CAPACITY])):
        feature, n = pool[k] >> 32, pool[k] & COUNT
        if n == 0:
            continue
        a = owner[feature]
        if theta[a] < 0.0 or feature == MENTIONS or feature == totals[a, PRESENT]:
            used += add(pool, start, capacity, feature, n)
        elif kind[feature] == VALUE or kind[feature] == COMPOSED:
            used += count_value(
                pool, kind, firsts, lasts, parts, totals, theta, phi, start, capacity, a, feature, n, more
            )
    statistics[child, USED] += used
    size = size_first + size_second
    statistics[child, SIZE], statistics[child, LOG_SIZE] = size, math.log(size)
    if family.presence.shape[0] > 1:
        weigh_types(pool, kind, owner, totals, family.presence, statistics, child, size)


@inner
def log_urn(base, strength, n):
    """What n draws of one thing from an urn, of which the first was new, add to log p(c)."""
    return math.log(strength) + base + math.lgamma(n)


@inner
def log_total(family, a, feature, n):
    """What the total number of draws from an attribute's urns adds to log p(c)."""
    theta, phi = family.theta[a], family.phi[a]
    if feature == family.totals[a, VALUES] and theta > 0.0 and family.mode[a] == URNS:
        return -rising(theta, n)
    if feature == family.totals[a, WORDS] and phi > 0.0:
        return -rising(phi, n)
    if feature == family.totals[a, COMMON_WORDS] and phi > 0.0:
        return rising(phi, n)
    return 0.0


@inner
def log_marginal(family, statistics, c, size, d):
    """log p(c) of the cluster's row."""
    kind, owner, base, pool = family.kind, family.owner, family.base, family.tables.pool
    start, capacity = np.int64(statistics[c, START]), np.int64(statistics[c, CAPACITY])
    total = weigh_types(pool, kind, owner, family.totals, family.presence, statistics, c, size)
    found = gather(family.tables, pool, kind, owner, family.mode, start, capacity, np.int64(0))
    total += log_found(family, found)
    for k in range(start, start + capacity):
        feature, n = pool[k] >> 32, pool[k] & COUNT
        if n == 0 or feature == MENTIONS:
            continue
        what, a = kind[feature], owner[feature]
        if what == VALUE or what == COMPOSED:  # noqa: SIM109
            if family.mode[a] == URNS:
                total += log_urn(base[feature], family.theta[a], n)
        elif what == WORD or what == RARE:  # noqa: SIM109
            total += log_urn(base[feature], family.phi[a], n)
        elif what == IN_COMMON:
            total -= log_urn(base[feature - 1], family.phi[a], n)
        elif what == LETTER or what == CONTEXT:  # noqa: SIM109
            given = count_of(pool, start, capacity, feature + 1)
            sign = 1.0 if what == LETTER else -1.0
            total += sign * rising(base[feature] + given, n)
        elif what == OF_COMMON:
            continue
        else:
            total += log_total(family, a, feature, n)
    return total


KERNELS = Kernels(begin, gains, extend, reduce, join, log_marginal)
