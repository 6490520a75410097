"""log p(x | c) of an observation under many clusters: what it would add to the urns of each.

Arrays come as arguments of their own. Taken out of a struct or a tuple, each counts references again, at every call:
bundled, these functions took 10 to 20 % longer on records.
"""

from __future__ import annotations

import math

import numpy as np

from partita._core.kernel import borrowed, inner, shared
from partita.models.records.kinds.value import log_sum
from partita.models.records.tables import CAPACITY, LOG_SIZE, SIZE, START, WIDTH, count_of
from partita.models.records.urns.family import (
    COMMON_WORDS,
    MENTIONS,
    N_COMPOSED,
    PRESENT,
    RARE,
    SPELLED,
    URNS,
    VALUE,
    VALUES,
    WORDS,
)
from partita.models.records.urns.observation import (
    added_before,
    forget_added,
    own_counts,
    prepare,
)
from partita.models.records.urns.values import choose, chosen_gain, gather


@inner
def count_of_pair(pool, start, capacity, feature, in_rare, in_common):
    """The counts of a context or letter in rare words and in common ones, if it may be in such.

    A letter is in no words that its context is not in, and of most words not even contexts are there.
    """
    n_rare = count_of(pool, start, capacity, feature) if in_rare else np.int64(0)
    n_common = count_of(pool, start, capacity, feature + 1) if in_common else np.int64(0)
    return n_rare, n_common


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
    """log-probability of what the observation says of one attribute, of which there are ``n_values`` so far."""
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


@shared
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
