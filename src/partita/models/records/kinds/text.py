"""Texts, which come in variants, and dates, which are texts of a year, a month and a day."""

from __future__ import annotations

import datetime
import math
import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, ClassVar

import numpy as np

from partita.models.records.comparisons.family import ALIKE
from partita.models.records.corpus import LONGEST
from partita.models.records.folding import folded
from partita.models.records.fragments import as_text
from partita.models.records.kinds.attribute import Attribute
from partita.models.records.kinds.column import Column
from partita.models.registry import register

EIGHT = re.compile(r"(\d{4})(\d{2})(\d{2})")
PARTS = re.compile(r"\d+")
DATE = re.compile(r"\d{1,4}(?:[-/. ]\d{1,4}){0,2}(?:[T ]\d\d:\d\d.*)?")
DECIMAL = re.compile(r"(\d+)\.(\d+)")
COUNTED = 4000  # values of a corpus in which parts are counted


def trigrams(value: str) -> list[str]:
    """Three letters in a row, of each word with a space before and after it, as often as they occur.

    >>> trigrams("ada l")
    [' ad', 'ada', 'da ', ' l ']
    """
    padded = [f" {word} " for word in value[:LONGEST].split(" ")]
    return [word[k : k + 3] for word in padded for k in range(max(len(word) - 2, 1))]


@register
@dataclass(frozen=True)
class Text(Attribute):
    """Names and other texts, which come in variants: alike where they share rare letters in a row.

    Two texts are compared by the cosine of the angle between their trigrams, of which rare ones count more.

    Parameters
    ----------
    agreement, weight, corpus, references
        See :class:`Attribute`.
    """

    kind: ClassVar[str] = "text"
    measure: ClassVar[int] = ALIKE

    @cached_property
    def _holders(self) -> tuple[Counter[str], int]:
        """In how many distinct values of the corpus each trigram is, and how many values there are."""
        values = list(self.corpus.counts)
        if len(values) > COUNTED:
            values = [values[k] for k in np.linspace(0, len(values) - 1, COUNTED).astype(int)]
        return Counter(chain.from_iterable(set(trigrams(value)) for value in values)), len(values)

    @cached_property
    def _rarity(self) -> dict[str, float]:
        """What each trigram of the corpus counts; "" is one that it has not."""
        holders, n = self._holders
        return {part: 1.0 + math.log((1.0 + n) / (1.0 + own)) for part, own in {**holders, "": 0}.items()}

    def vector(self, value: str) -> dict[str, float]:
        rarity, parts = self._rarity, trigrams(value)
        other, times = rarity[""], dict.fromkeys(parts, 1)
        if len(times) == len(parts):  # as in most values, and log 1 is 0
            weights = [rarity.get(part, other) for part in parts]
        else:
            times = Counter(parts)
            weights = [(1.0 + math.log(n)) * rarity.get(part, other) for part, n in times.items()]
        length = math.sqrt(math.fsum([weight * weight for weight in weights]))
        return {part: weight / length for part, weight in zip(times, weights, strict=True)}


@register
@dataclass(frozen=True)
class Date(Text):
    """Dates, of which parts may be wrong, swapped or missing: a text of the words year, month and day.

    Reads dates of Python, ISO 8601 (whole or in part), eight digits, and day, month and year in any order
    with any separator. What is none of these is read as text.
    """

    kind: ClassVar[str] = "date"

    @classmethod
    def why(cls, column: Column) -> str:
        return column.mostly(
            "dates", lambda text: len(text) > 5 and date_parts(text) and not is_decimal(text)
        )

    def parse(self, raw: Any) -> str:
        if isinstance(raw, datetime.date):
            return f"{raw.year:04d} {raw.month:02d} {raw.day:02d}"
        text = as_text(raw).strip()
        return date_parts(text) or folded(text)


def is_decimal(text: str) -> bool:
    """Whether a text is a number with a fraction such as 5.1234, and no month and year such as 12.1999."""
    if not (found := DECIMAL.fullmatch(text)):
        return False
    return not any(1000 <= int(part) <= 2100 for part in found.groups() if len(part) == 4)


def date_parts(text: str) -> str:
    """Year first, then the other parts in the order given, two digits each; empty if it is no date."""
    if whole := EIGHT.fullmatch(text):
        parts = list(whole.groups())
    elif DATE.fullmatch(text):
        parts = PARTS.findall(re.split(r"[T ]\d\d:", text)[0])
    else:
        return ""
    years = [part for part in parts if len(part) == 4]
    others = [part for part in parts if len(part) != 4]
    if len(years) > 1 or any(not 1 <= int(part) <= 31 for part in others) or not years:
        return ""
    return " ".join(years + [f"{int(part):02d}" for part in others])
