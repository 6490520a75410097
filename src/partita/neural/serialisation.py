"""Fragments of entities as JSON text, the same for the same set, whatever the order of its parts.

A set is ``[{"name":["A","B"],"award":["C"]},{"name":["A"]}]``: compact, names first, the other attributes in
alphabetical order, values and fragments in the order of their texts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from partita.models.records.fragments import as_text, is_missing

Fragment = tuple[tuple[str, tuple[str, ...]], ...]  # attributes in order, each with its values in order
FIRST = "name"


def canonical(fragment: Mapping[str, Any]) -> Fragment:
    """A fragment in its one order; ValueError names an attribute that is neither text, number nor date."""
    if not isinstance(fragment, Mapping):
        raise ValueError(f"it must map attributes to values, got {type(fragment).__name__}")
    for attribute in fragment:
        if not isinstance(attribute, str):
            raise ValueError(f"attribute {attribute!r} has no text for a name")
    pairs = []
    for attribute in sorted(fragment, key=lambda attribute: (attribute != FIRST, attribute)):
        if (texts := texts_of(attribute, fragment[attribute])) and attribute:
            pairs.append((sound(attribute), texts))
    return tuple(pairs)


def texts_of(attribute: str, given: Any) -> tuple[str, ...]:
    """The values of an attribute that say something, in order."""
    values = given if isinstance(given, list | tuple) else [given]
    try:
        return tuple(sorted(sound(as_text(value)) for value in values if not is_missing(value)))
    except ValueError as error:
        raise ValueError(f"attribute {attribute!r}: {error}") from error


def sound(text: str) -> str:
    """A text that UTF-8 can hold: halves of surrogate pairs are replaced."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def log_orders(fragments: Sequence[Fragment]) -> float:
    """The logarithm of the number of orders that fragments may have come in."""
    repeats = Counter(fragments).values()
    return math.lgamma(len(fragments) + 1) - sum(math.lgamma(n + 1) for n in repeats)
