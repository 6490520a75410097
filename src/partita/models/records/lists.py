"""Lists written as one text: "x; y", "a|b", "a ** b".

A comma divides no list here: "Smith, John" and "Paris, Texas" are one thing each. What does may stand in a text by
chance, so all of an attribute's values are looked at: enough of them have it, what it divides is short, and they are of
different lengths, for two parts in each are one thing of two parts. A semicolon is also what prose and codes have:
there, some of the items must occur elsewhere too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

MARKS = ("**", "||", "|", ";")  # in this order: the first is no empty item between two of another
IN_PROSE = (";",)
LEAST, SHARE = 3, 0.05  # of the values must have it, both
FILLED = 0.95  # of the items that it divides are not empty
LONGEST, WORDS = 80, 8  # characters and words of most items
MOST = 0.9
REPEATED = 0.2  # of the items occur in another value
ENTITY = re.compile(r"&#?\w+;")  # of HTML


def separator_of(values: Sequence[Any]) -> str:
    """What divides values into several; empty if nothing does.

    >>> separator_of(["red; blue", "green", "blue; green; red", "red", "blue; red"])
    '; '
    """
    texts = [value.strip() for value in values if isinstance(value, str)]
    if len(texts) < len(values):
        return ""
    for mark in MARKS:
        some = [text for text in texts if mark in text]
        if len(some) >= max(LEAST, SHARE * len(texts)) and divides(mark, texts, some):
            spaced = sum(f"{mark} " in text for text in some) > len(some) / 2
            before = sum(f" {mark}" in text for text in some) > len(some) / 2
            return " " * before + mark + " " * spaced
    return ""


def divides(mark: str, texts: list[str], some: list[str]) -> bool:
    """Whether a mark divides the texts that have it into items, and the rest are one each."""
    if any(ENTITY.search(text) for text in some):
        return False
    lists = [[item.strip() for item in text.split(mark)] for text in some]
    items = [item for given in lists for item in given]
    filled = [item for item in items if item]
    if len(filled) < FILLED * len(items) or (
        len(some) == len(texts) and len({len(given) for given in lists}) == 1
    ):
        return False
    short = sum(len(item) <= LONGEST and len(item.split()) <= WORDS for item in filled)
    if short < MOST * len(filled):
        return False
    if mark not in IN_PROSE:
        return True
    holders = Counter(item for text in texts for item in {item.strip() for item in text.split(mark)})
    return sum(holders[item] > 1 for item in filled) >= REPEATED * len(filled)
