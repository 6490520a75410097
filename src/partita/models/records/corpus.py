"""What is known of an attribute's values before any is observed: frequencies of values, words and letters.

At each level what occurs twice or more is *common*, with its share of all occurrences as its probability; the
share of what occurs once is left for the rest (Good 1953).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property

START, END, UNKNOWN = "\x02", "\x03", "\ufffd"
UNSEEN = 1.0  # occurrence of something that has not been seen: a few values are not all there are
LONGEST = 1000  # letters of a text that are looked at; beyond them only equality counts


class Letters:
    """An interpolated n-gram model of letters: each order backs off to the next lower one.

    q_n(letter | context) = (count + k·q_{n−1}(letter | shorter context)) / (total + k), where k is the number
    of different letters seen after the context (Witten and Bell 1991).
    """

    def __init__(self, words: Iterable[str], order: int) -> None:
        self.count: Counter[str] = Counter()  # of each context with its letter, contexts of all lengths
        self.total: Counter[str] = Counter()
        self.kinds: Counter[str] = Counter()
        for word in words:
            text = START * (order - 1) + word + END
            for at in range(order - 1, len(text)):
                for length in range(order):
                    self.count[text[at - length : at + 1]] += 1
        for gram, n in self.count.items():
            self.total[gram[:-1]] += n
            self.kinds[gram[:-1]] += 1

    def probability(self, context: str, letter: str) -> float:
        """q(letter | context)."""
        below = self.probability(context[1:], letter) if context else 1e-3
        kinds = self.kinds.get(context, 0) + (not context)
        if kinds == 0:
            return below
        return (self.count.get(context + letter, 0) + kinds * below) / (self.total.get(context, 0) + kinds)


class Frequencies:
    """Probabilities of things that have been counted, and of all others together."""

    def __init__(self, counts: Mapping[str, float]) -> None:
        self.counts, self.total = counts, sum(counts.values())
        once = sum(n for n in counts.values() if n < 2)
        self.rest = (max(once, 1.0) + UNSEEN) / (self.total + 1.0 + UNSEEN)

    def common(self, thing: str) -> bool:
        """Whether a thing has a probability of its own."""
        return self.counts.get(thing, 0) >= 2

    def log(self, thing: str) -> float:
        """The log-probability of a common thing, or of all that are not."""
        if not self.common(thing):
            return math.log(self.rest)
        return math.log((1.0 - self.rest) * self.counts[thing] / self.total)


class Corpus:
    """Counts of an attribute's values, and all that follows from them.

    Parameters
    ----------
    counts : mapping from value to number
        In how many clusters, or how often, each value occurs.
    """

    def __init__(self, counts: Mapping[str, float] | None = None) -> None:
        self.counts: dict[str, float] = dict(counts or {})

    def __deepcopy__(self, memo: object) -> Corpus:
        return self  # nothing ever changes it

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Corpus) and self.counts == other.counts

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Corpus({len(self.counts)} values)"

    @cached_property
    def values(self) -> Frequencies:
        """Of whole values."""
        return Frequencies(self.counts)

    @cached_property
    def words(self) -> Frequencies:
        """Of words: the number of values that have one, each as often as it occurs."""
        counts: Counter[str] = Counter()
        for value, n in self.counts.items():
            for word in set(value[:LONGEST].split(" ")):
                counts[word] += n  # type: ignore[assignment]
        return Frequencies(counts)

    @cached_property
    def lengths(self) -> Counter[int]:
        """How many distinct values have so many words."""
        return Counter(value[:LONGEST].count(" ") + 1 for value in self.counts)

    def log_length(self, n_words: int) -> float:
        """The log-probability that a value has so many words."""
        seen = self.lengths.get(n_words, 0)
        return math.log((seen + 2.0 ** -min(n_words, 60)) / (len(self.counts) + 1.0))

    def letters(self, order: int, of_words: bool) -> Letters:
        """A model of the letters of the distinct words, or of the distinct values."""
        return Letters(self.words.counts if of_words else (v[:LONGEST] for v in self.counts), order)
