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
unrelated string pays for itself; and p(c) is a closed form in counts, the same for every order. A category
has no composed values, an ``Ngram`` no urns.

Features of all kinds are numbered through from 1, and a cluster is a table of counts of them (``tables.py``).
Some come in pairs: next to the count of a word in all of a cluster's distinct values is that in common
values, next to that of letters in all its distinct words that in common words. An observation is a range of
``items``: its values, sorted by attribute.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from partita._kernel import inner
from partita._typing import Floats, Integers
from partita.models.numbers import NUMBER, numbers_gain
from partita.models.tables import (
    CAPACITY,
    COUNT,
    LOG_SIZE,
    SIZE,
    START,
    USED,
    add,
    copy_table,
    count_of,
    place,
)
from partita.models.values import TRUE_VALUE, values_gain

# Kinds of features; those in pairs are followed by their second.
VALUE, COMPOSED, WORD, RARE, IN_COMMON, LETTER, CONTEXT, OF_COMMON, TOTAL = range(9)
VALUES, WORDS, COMMON_WORDS, SPELLED, N_COMPOSED, PRESENT = range(6)  # totals of an attribute
URNS = 0  # how an attribute is modelled: as above, or by ``values.py`` or ``numbers.py``
MODES = URNS, TRUE_VALUE, NUMBER
MENTIONS = 1  # the feature that counts attributes mentioned, in all


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
    presence: Floats  # of each attribute b·f, where f is how often it is mentioned; then b·Σf and b
    tables: Any


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


@inner
def forget_added(tables):
    """Begin with nothing that the observation has added itself."""
    tables.mark += 1


@inner
def added_before(tables, feature):
    """How often the observation itself has added ``feature`` before; once more from now on."""
    mask = tables.added.shape[0] - 1
    at = place(feature, mask)
    keys, marks, mark = tables.added, tables.added_mark, tables.mark
    while marks[at] == mark and keys[at] >> 32 != feature:
        at = (at + 1) & mask
    if marks[at] != mark:
        marks[at] = mark
        keys[at] = np.int64(feature) << 32
    keys[at] += 1
    return (keys[at] & COUNT) - 1


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
    words, tokens, groups = tables.words, tables.tokens, tables.groups
    first, last, parts = family.first, family.last, family.parts
    forget_added(tables)
    n_words, n_tokens, n_groups = 0, 0, 0
    before = -1
    for k in range(start, end):
        v = family.items[k]
        if family.owner[v] != before:
            before = family.owner[v]
            groups[n_groups, 0], groups[n_groups, 1], groups[n_groups, 3] = before, k, n_words
            n_groups += 1
        groups[n_groups - 1, 2] = k + 1
        for p in range(first[v], last[v]):
            w = parts[p]
            words[n_words, 0], words[n_words, 1] = w, n_tokens
            added_before(tables, w)
            for t in range(first[w], last[w], 2):
                tokens[n_tokens, 0], tokens[n_tokens, 1] = parts[t], parts[t + 1]
                added_before(tables, parts[t])
                added_before(tables, parts[t + 1])
                n_tokens += 1
            words[n_words, 2] = n_tokens
            n_words += 1
    for k in range(n_words):
        words[k, 3] = repeats(tables, words[k, 0])
    for k in range(n_tokens):
        tokens[k, 2] = repeats(tables, tokens[k, 0]) + 2 * repeats(tables, tokens[k, 1])


@inner
def repeats(tables, feature):
    """Whether the observation has ``feature`` more than once."""
    mask = tables.added.shape[0] - 1
    at = place(feature, mask)
    while tables.added[at] >> 32 != feature:
        at = (at + 1) & mask
    return (tables.added[at] & COUNT) > 1


@inner
def spell(family, start, capacity, first, last, twin):
    """log-probability of a word's letters under those of the cluster, all (twin 0) or of common words (1)."""
    tables, base = family.tables, family.base
    pool, tokens = tables.pool, tables.tokens
    total, product = 0.0, 1.0
    for t in range(first, last):
        context, letter, repeated = tokens[t, 0], tokens[t, 1], tokens[t, 2]
        n_context = count_of(pool, start, capacity, context + twin)
        n = count_of(pool, start, capacity, letter + twin) if n_context > 0 else 0
        if repeated & 1:
            n_context += added_before(tables, context + twin)
        if repeated & 2:
            n += added_before(tables, letter + twin)
        product *= (base[letter] + n) / (base[context] + n_context)
        if product < 1e-200:
            total += math.log(product)
            product = 1.0
    return total + math.log(product)


@inner
def note(tables, first, last, twin):
    """Add a word's letters, where they come again in the observation."""
    tokens = tables.tokens
    for t in range(first, last):
        if tokens[t, 2] & 1:
            added_before(tables, tokens[t, 0] + twin)
        if tokens[t, 2] & 2:
            added_before(tables, tokens[t, 1] + twin)


@inner
def new_word(family, start, capacity, i, spelled):
    """log-probability of the letters of a word that is new to the cluster, which has some spelled ones."""
    tables = family.tables
    first, last = tables.words[i, 1], tables.words[i, 2]
    if family.kind[tables.words[i, 0]] == RARE:
        return spell(family, start, capacity, first, last, 0)
    if spelled > 0:
        given = spell(family, start, capacity, first, last, 0)
        return given - spell(family, start, capacity, first, last, 1)
    note(tables, first, last, 0)
    note(tables, first, last, 1)
    return 0.0


@inner
def group_gain(family, start, capacity, g):
    """log-probability of what the observation says of one attribute."""
    tables, items, base, kind = family.tables, family.items, family.base, family.kind
    pool, words = tables.pool, tables.words
    a, word = tables.groups[g, 0], tables.groups[g, 3]
    theta, phi = family.theta[a], family.phi[a]
    n_values = count_of(pool, start, capacity, family.totals[a, VALUES])
    n_words = count_of(pool, start, capacity, family.totals[a, WORDS])
    n_common = count_of(pool, start, capacity, family.totals[a, COMMON_WORDS])
    spelled = count_of(pool, start, capacity, family.totals[a, SPELLED])
    composed = count_of(pool, start, capacity, family.totals[a, N_COMPOSED])
    total = 0.0
    several = tables.groups[g, 2] - tables.groups[g, 1] > 1
    for k in range(tables.groups[g, 1], tables.groups[g, 2]):
        v = items[k]
        first, word = word, word + family.last[v] - family.first[v]
        if theta > 0.0:
            n = count_of(pool, start, capacity, v)
            total -= math.log(n_values + theta)
            n_values += 1
            if n > 0:
                total += math.log(n)
                continue
            total += math.log(theta)
        total += base[v]
        common = kind[v] == VALUE
        composed += not common
        if common and composed == 0 and not several:
            continue
        for i in range(first, word):
            w = words[i, 0]
            n = n_in_common = np.int64(0)
            if phi > 0.0:
                n = count_of(pool, start, capacity, w)
                if words[i, 3]:
                    n += added_before(tables, w)
                total -= math.log(n_words + phi)
                n_words += 1
                if common:
                    total += math.log(n_common + phi)
                    n_common += 1
                    n_in_common = count_of(pool, start, capacity, w + 1)
                    if words[i, 3]:
                        n_in_common += added_before(tables, w + 1)
                    total -= math.log(n_in_common) if n_in_common > 0 else math.log(phi) + base[w]
                total += math.log(n) if n > 0 else math.log(phi) + base[w]
            if n == 0:
                total += new_word(family, start, capacity, i, spelled)
                spelled += kind[w] == RARE
    return total


@inner
def gather(family, start, capacity):
    """List a cluster's values of attributes without urns of words, in ``tables.found``; returns how many."""
    tables, kind, owner = family.tables, family.kind, family.owner
    tables.found = grown_to(tables.found, capacity)
    pool, found, n = tables.pool, tables.found, 0
    for k in range(start, start + capacity):
        feature, count = pool[k] >> 32, pool[k] & COUNT
        if count > 0 and kind[feature] == VALUE and family.mode[owner[feature]] != URNS:
            found[n, 0], found[n, 1] = feature, count
            n += 1
    return n


@inner
def chosen_gain(family, a, n):
    """log p of what ``tables.chosen`` has of such an attribute, with the observation over without it."""
    return values_gain(family, a, n) if family.mode[a] == TRUE_VALUE else numbers_gain(family, a, n)


@inner
def found_gain(family, n_found, g):
    """log-probability of what the observation says of such an attribute, given what was found."""
    tables, groups = family.tables, family.tables.groups
    a, n = groups[g, 0], 0
    tables.chosen = grown_to(tables.chosen, n_found + groups[g, 2] - groups[g, 1])
    found, chosen = tables.found, tables.chosen
    for i in range(n_found):
        if family.owner[found[i, 0]] == a:
            chosen[n, 0], chosen[n, 1], chosen[n, 2] = found[i, 0], found[i, 1], found[i, 1]
            n += 1
    for k in range(groups[g, 1], groups[g, 2]):
        i = 0
        while i < n and chosen[i, 0] != family.items[k]:
            i += 1
        if i == n:
            chosen[n, 0], chosen[n, 1], chosen[n, 2] = family.items[k], 0, 0
            n += 1
        chosen[i, 2] += 1
    return chosen_gain(family, a, n)


@inner
def log_found(family, n_found):
    """log p of all that was found."""
    tables, owner, total = family.tables, family.owner, 0.0
    tables.chosen = grown_to(tables.chosen, n_found)
    found, chosen = tables.found, tables.chosen
    for i in range(n_found):
        if found[i, 1] == 0:
            continue  # done already
        a, n = owner[found[i, 0]], 0
        for j in range(i, n_found):
            if owner[found[j, 0]] == a:
                chosen[n, 0], chosen[n, 1], chosen[n, 2] = found[j, 0], 0, found[j, 1]
                found[j, 1] = 0
                n += 1
        total += chosen_gain(family, a, n)
    return total


@inner
def presence_gain(family, start, capacity, size, n_groups):
    """log-probability of mentioning just the attributes that the observation mentions.

    An entity mentions each attribute at a rate of its own, Gamma(b·f, b), and the numbers of mentions are
    Poisson: evidence of what kind of thing it is.
    """
    pool, presence, n = family.tables.pool, family.presence, family.theta.shape[0]
    total, rate = presence[n], presence[n + 1]
    if rate == 0.0:
        return 0.0
    mentions = count_of(pool, start, capacity, MENTIONS)
    gain = -(total + mentions) * math.log1p(1.0 / (rate + size))
    product = 1.0
    for g in range(n_groups):
        a = family.tables.groups[g, 0]
        present = count_of(pool, start, capacity, family.totals[a, PRESENT])
        product *= (presence[a] + present) / (rate + size + 1.0)
        if product < 1e-200:
            gain += math.log(product)
            product = 1.0
    return gain + math.log(product)


@inner
def gains(family, statistics, ids, first, last, data, x, out):
    """log|c| + log p(x|c) of each of many clusters."""
    tables = family.tables
    n_groups = prepare(family, int(data[x, 0]), int(data[x, 1]))
    groups, empty = tables.groups, tables.empty
    forget_added(tables)
    mode = family.mode
    for g in range(n_groups):
        if mode[groups[g, 0]] == URNS:
            empty[g] = group_gain(family, np.int64(0), np.int64(0), g)
        else:
            empty[g] = found_gain(family, np.int64(0), g)
    for k in range(first, last):
        c = ids[k]
        start, capacity = np.int64(statistics[c, START]), np.int64(statistics[c, CAPACITY])
        total = statistics[c, LOG_SIZE]
        total += presence_gain(family, start, capacity, statistics[c, SIZE], n_groups)
        forget_added(tables)
        n_found = np.int64(-1)
        for g in range(n_groups):
            if count_of(tables.pool, start, capacity, family.totals[groups[g, 0], VALUES]) == 0:
                total += empty[g]
            elif mode[groups[g, 0]] == URNS:
                total += group_gain(family, start, capacity, g)
            else:
                if n_found < 0:
                    n_found = gather(family, start, capacity)
                total += found_gain(family, n_found, g)
        out[c] = total


@inner
def begin(family, statistics, d):
    """Row of the empty cluster: nothing in it."""
    for k in range(statistics.shape[1]):
        statistics[0, k] = 0.0


@inner
def count_word(family, start, capacity, w, common, by):
    """Add a word to a table, or take it out; returns the number of new entries."""
    pool, totals, parts, a = family.tables.pool, family.totals, family.parts, family.owner[w]
    used = add(pool, start, capacity, totals[a, WORDS], by)
    if common:
        used += add(pool, start, capacity, totals[a, COMMON_WORDS], by)
        used += add(pool, start, capacity, w + 1, by)
    if family.phi[a] > 0.0:
        used += add(pool, start, capacity, w, by)
        if count_of(pool, start, capacity, w) != (by > 0):
            return used
    rare = family.kind[w] == RARE
    if rare:
        used += add(pool, start, capacity, totals[a, SPELLED], by)
    for t in range(family.first[w], family.last[w]):
        used += add(pool, start, capacity, parts[t], by)
        if not rare:
            used += add(pool, start, capacity, parts[t] + 1, by)
    return used


@inner
def count_value(family, start, capacity, v, n, by):
    """Add a value n times to a table, or take it out; returns the number of new entries."""
    pool, totals, a = family.tables.pool, family.totals, family.owner[v]
    used = add(pool, start, capacity, totals[a, VALUES], n * by)
    if family.theta[a] > 0.0:
        used += add(pool, start, capacity, v, n * by)
        if count_of(pool, start, capacity, v) != (n if by > 0 else 0):
            return used
    common = family.kind[v] == VALUE
    if not common:
        used += add(pool, start, capacity, totals[a, N_COMPOSED], by)
    for p in range(family.first[v], family.last[v]):
        used += count_word(family, start, capacity, family.parts[p], common, by)
    return used


@inner
def features_of(family, v):
    """No value adds more entries to a table than this."""
    count = 4
    for p in range(family.first[v], family.last[v]):
        w = family.parts[p]
        count += 5 + 2 * (family.last[w] - family.first[w])
    return count


@inner
def shift(family, statistics, child, parent, size, data, x, by):
    """Row of ``child``, of so many members: that of ``parent`` with ``x`` added or taken out."""
    tables, items = family.tables, family.items
    first, last = int(data[x, 0]), int(data[x, 1])
    extra = np.int64(0)
    if by > 0:
        extra += 1
        for k in range(first, last):
            extra += features_of(family, items[k])
    copy_table(tables, statistics, child, parent, extra)
    start, capacity = np.int64(statistics[child, START]), np.int64(statistics[child, CAPACITY])
    used, before = np.int64(0), -1
    for k in range(first, last):
        used += count_value(family, start, capacity, items[k], np.int64(1), by)
        a = family.owner[items[k]]
        if a != before:
            before = a
            used += add(tables.pool, start, capacity, MENTIONS, by)
            used += add(tables.pool, start, capacity, family.totals[a, PRESENT], by)
    statistics[child, USED] += used
    statistics[child, SIZE], statistics[child, LOG_SIZE] = size, math.log(max(size, 1))


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
    tables, kind = family.tables, family.kind
    extra = np.int64(statistics[second, USED])
    copy_table(tables, statistics, child, first, extra)
    start, capacity = np.int64(statistics[child, START]), np.int64(statistics[child, CAPACITY])
    used = np.int64(0)
    low = np.int64(statistics[second, START])
    for k in range(low, low + np.int64(statistics[second, CAPACITY])):
        feature, n = tables.pool[k] >> 32, tables.pool[k] & COUNT
        if n == 0:
            continue
        a = family.owner[feature]
        if family.theta[a] < 0.0 or feature == MENTIONS or feature == family.totals[a, PRESENT]:
            used += add(tables.pool, start, capacity, feature, n)
        elif kind[feature] == VALUE or kind[feature] == COMPOSED:
            used += count_value(family, start, capacity, feature, n, np.int64(1))
    statistics[child, USED] += used
    size = size_first + size_second
    statistics[child, SIZE], statistics[child, LOG_SIZE] = size, math.log(size)


@inner
def rising(x, n):
    """log x(x + 1)…(x + n − 1)."""
    return math.lgamma(x + n) - math.lgamma(x)


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
    if feature == family.totals[a, PRESENT] and family.presence[a] > 0.0:
        return rising(family.presence[a], n)
    return 0.0


@inner
def log_presence(family, mentions, size):
    """What the numbers of members and of mentions add to log p(c)."""
    n = family.theta.shape[0]
    total, rate = family.presence[n], family.presence[n + 1]
    if rate == 0.0:
        return 0.0
    return total * math.log(rate) - (total + mentions) * math.log(rate + size)


@inner
def log_marginal(family, statistics, c, size, d):
    """log p(c) of the cluster's row."""
    kind, owner, base, pool = family.kind, family.owner, family.base, family.tables.pool
    start, capacity = np.int64(statistics[c, START]), np.int64(statistics[c, CAPACITY])
    total = log_presence(family, count_of(pool, start, capacity, MENTIONS), size)
    total += log_found(family, gather(family, start, capacity))
    for k in range(start, start + capacity):
        feature, n = pool[k] >> 32, pool[k] & COUNT
        if n == 0 or feature == MENTIONS:
            continue
        what, a = kind[feature], owner[feature]
        if what == VALUE or what == COMPOSED:
            if family.mode[a] == URNS:
                total += log_urn(base[feature], family.theta[a], n)
        elif what == WORD or what == RARE:
            total += log_urn(base[feature], family.phi[a], n)
        elif what == IN_COMMON:
            total -= log_urn(base[feature - 1], family.phi[a], n)
        elif what == LETTER:
            total += rising(base[feature], n)
        elif what == CONTEXT:
            total -= rising(base[feature], n)
        elif what == OF_COMMON:
            sign = -1.0 if kind[feature - 1] == LETTER else 1.0
            total += sign * rising(base[feature - 1], n)
        else:
            total += log_total(family, a, feature, n)
    return total
