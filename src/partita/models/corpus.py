"""What is known of an attribute's values before any is observed: frequencies of values, words and letters."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

START, END = "\x02", "\x03"


class Letters:
    """An interpolated n-gram model of letters: each order backs off to the next lower one.

    q_n(letter | context) = (count + k·q_{n−1}(letter | shorter context)) / (total + k), where k is the number
    of different letters seen after the context (Witten and Bell 1991).
    """

    def __init__(self, words: Iterable[str], order: int) -> None:
        self.order = order
        self.count: Counter[str] = Counter()  # of each context with its letter, contexts of all lengths
        self.total: Counter[str] = Counter()
        self.kinds: Counter[str] = Counter()
        for word in words:
            text = START * (order - 1) + word + END
            for at in range(order - 1, len(text)):
                for length in range(order):
                    gram = text[at - length : at + 1]
                    self.count[gram] += 1
        for gram, n in self.count.items():
            self.total[gram[:-1]] += n
            self.kinds[gram[:-1]] += 1

    def probability(self, context: str, letter: str) -> float:
        """q(letter | context)."""
        below = self.probability(context[1:], letter) if context else 1.0 / 1000.0
        kinds = self.kinds.get(context, 0) + (not context)
        if kinds == 0:
            return below
        return (self.count.get(context + letter, 0) + kinds * below) / (self.total.get(context, 0) + kinds)
