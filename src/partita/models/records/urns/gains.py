"""log p(x | c) of an observation under many clusters: what it would add to the urns of each."""

from __future__ import annotations

import math

import numpy as np

from partita._core.kernel import inner, shared
from partita._core.lent import lent
from partita.models.records.tables import CAPACITY, LOG_SIZE, START, count_of
from partita.models.records.urns.family import CONTEXT, CONTEXT_BEFORE, LETTER, LETTER_BEFORE


@inner
def text_gain(pool, tokens, base, start, capacity, first, last):
    """log-probability of the letters of a text."""
    total, product = 0.0, 1.0  # one logarithm for many letters
    for t in range(first, last):
        context, letter = tokens[t, CONTEXT], tokens[t, LETTER]
        n_context, n_letter = count_of(pool, start, capacity, context), np.int64(0)
        if n_context > 0:  # no letter is there without its context, and in most clusters not even that is
            n_letter = count_of(pool, start, capacity, letter)
        n_letter += tokens[t, LETTER_BEFORE]
        n_context += tokens[t, CONTEXT_BEFORE]
        product *= (base[letter] + n_letter) / (base[context] + n_context)
        if not 1e-200 < product < 1e200:
            total += math.log(product)
            product = 1.0
    return total + math.log(product)


@shared
def gains(family, statistics, ids, first, last, data, x, out):
    """log|c| + log p(x|c) of each of many clusters."""
    tokens, starts, base = lent(family.tokens), lent(family.starts), lent(family.base)
    pool = lent(family.tables.pool)
    first_text, last_text = int(data[x, 0]), int(data[x, 1])
    for k in range(first, last):
        c = ids[k]
        start, capacity = np.int64(statistics[c, START]), np.int64(statistics[c, CAPACITY])
        total = 0.0
        for text in range(first_text, last_text):
            total += text_gain(pool, tokens, base, start, capacity, starts[text], starts[text + 1])
        out[c] = total + statistics[c, LOG_SIZE]
