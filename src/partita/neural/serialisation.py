"""Fragments of entities as JSON text, the same for the same set, whatever the order of its parts.

A set is ``[{"name":["A","B"],"award":["C"]},{"name":["A"]}]``: compact, names first, the other attributes in
alphabetical order, values and fragments in the order of their texts.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from partita.models.attributes import as_text, is_missing

Fragment = tuple[tuple[str, tuple[str, ...]], ...]  # attributes in order, each with its values in order
FIRST = "name"


def canonical(fragment: Mapping[str, Any]) -> Fragment:
    """A fragment in its one order; ValueError if a value is neither text nor a number nor a date."""
    pairs = []
    for attribute in sorted(fragment, key=lambda attribute: (attribute != FIRST, attribute)):
        given = fragment[attribute]
        values = given if isinstance(given, list | tuple) else [given]
        texts = sorted(sound(as_text(value)) for value in values if not is_missing(value))
        if texts and attribute:
            pairs.append((sound(attribute), tuple(texts)))
    return tuple(pairs)


def sound(text: str) -> str:
    """A text that UTF-8 can hold: halves of surrogate pairs are replaced."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def to_json(fragments: Sequence[Fragment]) -> str:
    """The JSON text of a set of canonical fragments."""
    items = [dict(fragment) for fragment in sorted(fragments)]
    return json.dumps(items, ensure_ascii=False, separators=(",", ":"))


def log_orders(fragments: Sequence[Fragment]) -> float:
    """The logarithm of the number of orders that fragments may have come in."""
    repeats = Counter(fragments).values()
    return math.lgamma(len(fragments) + 1) - sum(math.lgamma(n + 1) for n in repeats)
