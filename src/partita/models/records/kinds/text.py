"""Texts, which come in variants, and dates, which are texts of a year, a month and a day."""

from __future__ import annotations

import datetime
import re
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

from partita.models.records.corpus import LONGEST, Letters
from partita.models.records.folding import folded
from partita.models.records.fragments import as_text
from partita.models.records.kinds.attribute import Attribute, check_letters
from partita.models.records.kinds.learning import best_strength, concentration
from partita.models.registry import register

EIGHT = re.compile(r"(\d{4})(\d{2})(\d{2})")
PARTS = re.compile(r"\d+")
DATE = re.compile(r"\d{1,4}(?:[-/. ]\d{1,4}){0,2}(?:[T ]\d\d:\d\d.*)?")


@register
@dataclass(frozen=True)
class Text(Attribute):
    """Names and other short texts, which come in variants.

    Parameters
    ----------
    theta : float
        Concentration of the entity's urn of whole values: the larger, the more variants.
    phi : float
        Concentration of its urn of words.
    strength : float
        How slowly the entity's letters move away from the corpus: the prior counts of a context.
    letters : int
        Order of the n-grams of letters.
    split : bool
        Whether texts are divided into words, or spelled as a whole.
    corpus : Corpus
        How often each value occurs.
    """

    phi: float = 1.0  # type: ignore[misc]
    strength: float = 1.0
    letters: int = 3
    split: bool = True

    kind: ClassVar[str] = "text"
    learnt: ClassVar[tuple[str, ...]] = ("theta", "phi", "strength")

    def check(self, name: str) -> None:
        super().check(name)
        check_letters(name, self.letters)

    @property
    def order(self) -> int:  # type: ignore[override]
        return self.letters

    @cached_property
    def _letters(self) -> Letters:
        return self.corpus.letters(self.letters, self.split)

    def words(self, value: str) -> list[str]:
        return value[:LONGEST].split(" ") if self.split else [value[:LONGEST]]

    def value_base(self, value: str) -> tuple[bool, float]:
        if not self.split:
            return False, 0.0
        values = self.corpus.values
        if values.common(value):
            return True, values.log(value)
        return False, values.log(value) + self.corpus.log_length(len(self.words(value)))

    def word_base(self, word: str) -> tuple[bool, float]:
        if not self.split:
            return False, 0.0
        words = self.corpus.words
        return words.common(word), words.log(word)

    def context_weight(self, context: str) -> float:
        return self.strength

    def letter_weight(self, context: str, letter: str) -> float:
        return self.strength * self._letters.probability(context, letter)

    def learnt_from(self, clusters: list[Counter[str]]) -> Self:
        """Concentrations and strength; a text spelled as a whole keeps its own.

        Where nothing but letters is compared, maximum likelihood is led by the few that always agree.
        """
        if not self.split:
            return self
        words = [[word for value in cluster for word in self.words(value)] for cluster in clusters]
        phi = concentration([len(own) for own in words], sum(len(set(own)) for own in words))
        return replace(super().learnt_from(clusters), phi=phi, strength=best_strength(self, words))


@register
@dataclass(frozen=True)
class Date(Text):
    """Dates, of which parts may be wrong, swapped or missing: a text of the words year, month and day.

    Reads dates of Python, ISO 8601 (whole or in part), eight digits, and day, month and year in any order
    with any separator. What is none of these is read as text.
    """

    kind: ClassVar[str] = "date"

    def parse(self, raw: Any) -> str:
        if isinstance(raw, datetime.date):
            return f"{raw.year:04d} {raw.month:02d} {raw.day:02d}"
        text = as_text(raw).strip()
        return date_parts(text) or folded(text)


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
