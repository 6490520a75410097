"""What is known of an attribute's values before any is observed: how often each occurs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

START, END, UNKNOWN = "\x02", "\x03", "\ufffd"
LONGEST = 1000  # letters of a text that are looked at; beyond them only equality counts


class Corpus:
    """Counts of an attribute's values.

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
    def total(self) -> float:
        """Of all values."""
        return sum(self.counts.values())
