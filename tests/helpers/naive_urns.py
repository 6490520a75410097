"""log p(c) of texts once more, letter by letter, in plain Python and without the library's code.

Every factor of p(c) is a product over draws in the order given, each with the counts of those before it.
"""

import math
from collections import Counter

from tests.helpers import oracle

FIRST, LAST = "\x02", "\x03"


def spelling(words, order, weight):
    """Letters of words in turn, those of each context from an urn; ``weight(letter, context)`` is s·q."""
    total, letters, contexts = 0.0, Counter(), Counter()
    for word in words:
        text = FIRST * (order - 1) + word + LAST
        for at in range(order - 1, len(text)):
            context, letter = text[at - order + 1 : at], text[at]
            own, whole = weight(letter, context)
            total += math.log((own + letters[context, letter]) / (whole + contexts[context]))
            letters[context, letter] += 1
            contexts[context] += 1
    return total


def ngram(texts, model):
    """log p(c) under ``pt.Ngram``, of texts that are folded already."""
    counts = model.counts or {}
    alphabet = {gram[-1] for gram in counts} | {LAST, "\ufffd"}
    if counts:
        texts = ["".join(letter if letter in alphabet else "\ufffd" for letter in text) for text in texts]

    def weight(letter, context):
        seen = sum(n for gram, n in counts.items() if gram[:-1] == context)
        size = len(alphabet) if counts else 100
        return model.concentration * (1 + counts.get(context + letter, 0)), model.concentration * (
            size + seen
        )

    return spelling(texts, model.n, weight)


class Scores(oracle.Scores):
    """Of clusters of texts, which are no rows of numbers."""

    def __init__(self, model, X, alpha):
        self.X, self.alpha, self.known = X, alpha, {frozenset(): 0.0}
        self.model = model

    def marginal(self, cluster):
        if cluster not in self.known:
            self.known[cluster] = ngram([self.X[x] for x in sorted(cluster)], self.model)
        return self.known[cluster]
