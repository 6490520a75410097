"""How much an agent is given at once: an entity of thousands of fragments must not flood it.

What is left out is counted under ``left_out``, by where it was; lists that go on page by page end with ``next``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

LARGEST = 40_000  # characters of an answer, about ten thousand tokens
LARGEST_ITEM = 8_000  # of one of a page
LONGEST = 600  # characters of a text
MOST = {"fragments": 50, "sources": 5, "matches": 5}  # of lists, by name
MOST_OTHERWISE = 12
MOST_FIELDS = 80
COUNTED = "left_out"


def size_of(document: Any) -> int:
    """The characters that a document takes."""
    return len(json.dumps(document, ensure_ascii=False))


def cut(document: dict[str, Any], largest: int = LARGEST) -> dict[str, Any]:
    """A document with no more than fits, and what was left out.

    >>> cut({"id": "E1", "sources": list("abcdefg")})
    {'id': 'E1', 'sources': ['a', 'b', 'c', 'd', 'e'], 'left_out': {'sources': 2}}
    """
    share = 1
    while True:
        left: Counter[str] = Counter()
        found: dict[str, Any] = cut_value(document, "", share, left)
        if left:
            found[COUNTED] = dict(left.most_common(MOST_FIELDS // share + 1))
        if size_of(found) <= largest or share > LONGEST:
            return found
        share *= 2


def cut_value(value: Any, path: str, share: int, left: Counter[str]) -> Any:
    """A value with a share of what it may have at most."""
    if isinstance(value, str):
        return shortened(value, LONGEST // share)
    if isinstance(value, list):
        most = max(MOST.get(path.rpartition(".")[2], MOST_OTHERWISE) // share, 1)
        if len(value) > most:
            left[path] += len(value) - most
        return [cut_value(one, path, share, left) for one in value[:most]]
    if isinstance(value, dict):
        names = list(value)[: MOST_FIELDS // share + 4]
        if len(value) > len(names):
            left[f"{path}.*".lstrip(".")] += len(value) - len(names)
        return {
            shortened(name, LONGEST // share): cut_value(
                value[name], f"{path}.{name}".lstrip("."), share, left
            )
            for name in names
        }
    return value


def shortened(text: str, longest: int) -> str:
    """A text that says how long it was, if it was too long."""
    return text if len(text) <= longest else f"{text[:longest]}… ({len(text):,} characters)"


def paged(
    items: Sequence[dict[str, Any]], offset: int, total: int | None = None
) -> tuple[list[dict[str, Any]], int | None]:
    """As many of a page's items as fit, each cut, and where the next page begins; None if there is none.

    ``total`` is how many there are in all, if that is more than these.
    """
    shown: list[dict[str, Any]] = []
    room = LARGEST
    for item in items:
        own = cut(item, LARGEST_ITEM)
        room -= size_of(own)
        if shown and room < 0:
            break
        shown.append(own)
    end = offset + len(shown)
    return shown, end if end < (offset + len(items) if total is None else total) else None
