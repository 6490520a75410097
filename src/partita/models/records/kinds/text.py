"""Texts, which come in variants, and dates, which are texts of a year, a month and a day."""

from __future__ import annotations

import datetime
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from partita.models.records.comparisons.family import ALIKE
from partita.models.records.comparisons.parts import Parts, Rarity, letters_of, trigrams_of, weighed
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
# What a trigram counts that is so often in a text:
OFTEN = np.array([0.0, *(1.0 + math.log(times) for times in range(1, LONGEST + 2))])


def trigrams(value: str) -> Counter[str]:
    """Three letters in a row, of each word with a space before and after it.

    >>> sorted(trigrams("ada l"))
    [' ad', ' l ', 'ada', 'da ']
    """
    padded = [f" {word} " for word in value[:LONGEST].split(" ")]
    return Counter([word[k : k + 3] for word in padded for k in range(max(len(word) - 2, 1))])


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
    def _rarity(self) -> Rarity:
        """What each trigram of the corpus counts, by in how many of its values it is, and what any other does."""
        values = list(self.corpus.counts)
        if len(values) > COUNTED:
            values = [values[k] for k in np.linspace(0, len(values) - 1, COUNTED).astype(int)]
        known, holders = np.unique(trigrams_of(values, LONGEST).grams, return_counts=True)
        n = len(values)
        of_holders = {own: 1.0 + math.log((1.0 + n) / (1.0 + own)) for own in {0, *holders.tolist()}}
        weights = np.array([of_holders[own] for own in holders.tolist()], np.float64)
        return Rarity(known, weights, of_holders[0])

    @cached_property
    def _rarity_by_name(self) -> dict[str, float]:
        known, weights, _ = self._rarity
        return dict(zip(map(letters_of, known.tolist()), weights.tolist(), strict=True))

    def vector(self, value: str) -> dict[str, float]:
        rarity, others = self._rarity_by_name, self._rarity.others
        weights = {
            part: (1.0 + math.log(times)) * rarity.get(part, others)
            for part, times in trigrams(value).items()
        }
        length = math.sqrt(math.fsum(weight * weight for weight in weights.values()))
        return {part: weight / length for part, weight in weights.items()}

    def parts(self, values: Sequence[str]) -> Parts:
        if type(self).vector is not Text.vector:  # of a kind made of this one
            return super().parts(values)
        return weighed(values, LONGEST, self._rarity, OFTEN)


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
