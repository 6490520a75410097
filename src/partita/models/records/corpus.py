"""What is known of an attribute's values before any is observed: how often each occurs.

What occurs twice or more is *common*, with its share of all occurrences as its probability; the share of what occurs
once is left for the rest (Good 1953).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property

START, END, UNKNOWN = "\x02", "\x03", "\ufffd"
UNSEEN = 1.0  # occurrence of something that has not been seen: a few values are not all there are
LONGEST = 1000  # letters of a text that are looked at; beyond them only equality counts


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
