"""The attributes of a record, and how what they say of an entity is modelled (DESIGN, section 3).

Each kind reads a raw value (``parse``) and tells the vocabulary what the kernels of ``urns.py`` need: which
words it consists of, how likely the value, a word, a letter is by itself. Hyperparameters are those of the
urns; :meth:`Record.fit_prior` learns them, and the corpus of values, from data.
"""

from __future__ import annotations

import datetime
import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from partita._core.checks import positive_number
from partita.models.records.corpus import END, LONGEST, START, UNSEEN, Corpus, Letters
from partita.models.records.folding import folded
from partita.models.records.fragments import as_text
from partita.models.records.numbers import NUMBER, as_number, centre_and_deviation, resolution_of
from partita.models.records.values import TRUE_VALUE


@dataclass(frozen=True)
class Attribute:
    """What all kinds share."""

    theta: float = 1.0
    corpus: Corpus = field(default_factory=Corpus, repr=False)

    kind: ClassVar[str]
    phi: ClassVar[float] = -1.0
    order: ClassVar[int] = 1
    learnt: ClassVar[tuple[str, ...]] = ("theta",)

    def __deepcopy__(self, memo: object) -> Self:
        return self  # nothing ever changes it

    def check(self, name: str) -> None:
        """Raise ValueError if a hyperparameter makes no sense."""
        for parameter in self.learnt:
            positive_number(f"{parameter} of {name!r}", getattr(self, parameter))

    def with_corpus(self, counts: Mapping[str, float]) -> Self:
        """The same attribute, with these counts of its values."""
        return replace(self, corpus=Corpus(counts))

    def parse(self, raw: Any) -> str:
        """A raw value as the model compares it; ValueError if it cannot be one."""
        return folded(as_text(raw))

    def words(self, value: str) -> list[str]:
        """The words that a value is composed of."""
        return []

    def value_base(self, value: str) -> tuple[bool, float]:
        """Whether a value is common, and the log-probability of it, or of being none of the common ones."""
        raise TypeError(f"{type(self).__name__} must define value_base(value)")


@dataclass(frozen=True)
class Category(Attribute):
    """One of many values that are either the same or not: an occupation, a country, a genre.

    Parameters
    ----------
    theta : float
        Concentration of the entity's urn: near 0 all its fragments agree, the larger the more they vary.
    corpus : Corpus
        How often each value occurs; agreement on a rare one says more.
    """

    kind: ClassVar[str] = "category"

    def value_base(self, value: str) -> tuple[bool, float]:
        corpus = self.corpus.values
        count = corpus.counts.get(value, UNSEEN)
        return True, math.log((count + 0.5) / (corpus.total + UNSEEN + 0.5 * (len(corpus.counts) + 1)))


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


@dataclass(frozen=True)
class Value(Attribute):
    """One true value per entity, seen through typos and other distortions: a surname, a postcode.

    Parameters
    ----------
    distortion : float
        How often a mention does not say the true value.
    typo : float
        The share of typos among distortions; the others name another value altogether.
    further : float
        The probability that a typo has one edit more.
    letters : int
        Order of the n-grams that spell values which the corpus does not have twice.
    corpus : Corpus
        How often each value occurs.
    """

    theta: ClassVar[float] = 1.0  # type: ignore[misc]
    distortion: float = 0.05
    typo: float = 0.8
    further: float = 0.2
    letters: int = 3

    kind: ClassVar[str] = "value"
    learnt: ClassVar[tuple[str, ...]] = ("distortion",)
    family_mode: ClassVar[int] = TRUE_VALUE

    def check(self, name: str) -> None:
        for parameter in ("distortion", "typo", "further"):
            if not positive_number(f"{parameter} of {name!r}", getattr(self, parameter)) < 1.0:
                raise ValueError(f"{parameter} of {name!r} must be below 1, got {getattr(self, parameter)!r}")
        check_letters(name, self.letters)

    def with_distortion(self, clusters: list[Counter[str]]) -> Self:
        """The same attribute with the share of distorted mentions that clusters of values show."""
        several = [cluster for cluster in clusters if sum(cluster.values()) > 1]
        distorted = sum(sum(cluster.values()) - max(cluster.values()) for cluster in several)
        mentions = sum(sum(cluster.values()) for cluster in several)
        return replace(self, distortion=(distorted + 1.0) / (mentions + 20.0))

    @property
    def settings(self) -> list[float]:
        """What the kernels need to know, in the order of ``values.py``."""
        beta, tau, rho = self.distortion, self.typo, self.further
        first_edit, other = math.log(beta * tau * (1.0 - rho)), math.log(beta * (1.0 - tau))
        n_letters = max(len({letter for value in self.corpus.counts for letter in value}), 10)
        return [first_edit, math.log(rho), other, float(n_letters), 0.0]

    def log_true(self, value: str) -> float:
        """The log-probability of saying the true value, if it is this one."""
        by_chance = self.distortion * (1.0 - self.typo) * math.exp(self.value_base(value)[1])
        return math.log(1.0 - self.distortion + by_chance)

    @cached_property
    def _letters(self) -> Letters:
        return self.corpus.letters(self.letters, False)

    def value_base(self, value: str) -> tuple[bool, float]:
        values, before = self.corpus.values, self.letters - 1
        total = values.log(value)
        if not values.common(value):
            text = START * before + value[:LONGEST] + END
            for at in range(before, len(text)):
                total += math.log(self._letters.probability(text[at - before : at], text[at]))
        return True, total


@dataclass(frozen=True)
class Number(Attribute):
    """Numbers: the same ones again, and others nearby.

    Parameters
    ----------
    theta : float
        Concentration of the entity's urn: near 0 all its fragments agree, the larger the more they vary.
    spread : float
        How far the different numbers of an entity lie apart, relative to those of the corpus.
    shape : float
        How alike entities are in that: half the degrees of freedom of the Student t.
    corpus : Corpus
        How often each number occurs.
    """

    spread: float = 0.1
    shape: float = 1.0

    kind: ClassVar[str] = "number"
    family_mode: ClassVar[int] = NUMBER

    def check(self, name: str) -> None:
        for parameter in ("theta", "spread", "shape"):
            positive_number(f"{parameter} of {name!r}", getattr(self, parameter))

    def parse(self, raw: Any) -> str:
        number = as_number(raw)
        return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)

    @cached_property
    def settings(self) -> list[float]:
        """What the kernels need to know, in the order of ``numbers.py``."""
        numbers = np.array([float(value) for value in self.corpus.counts])
        step = resolution_of(numbers)
        mean, deviation = 0.0, step
        if len(numbers):
            mean, deviation = centre_and_deviation(numbers, np.array(list(self.corpus.counts.values())))
        deviation = max(deviation, step)
        within = max(self.spread * deviation, step)  # what is written differs by so much at least
        return [mean, (within / deviation) ** 2, self.shape, self.shape * within**2, math.log(step)]

    def value_base(self, value: str) -> tuple[bool, float]:
        return True, float(value)


MOST_LETTERS = 10  # of an n-gram
EIGHT = re.compile(r"(\d{4})(\d{2})(\d{2})")
PARTS = re.compile(r"\d+")
DATE = re.compile(r"\d{1,4}(?:[-/. ]\d{1,4}){0,2}(?:[T ]\d\d:\d\d.*)?")


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


def check_letters(name: str, letters: Any) -> None:
    """Raise ValueError if n-grams of so many letters make no sense."""
    if not isinstance(letters, int) or isinstance(letters, bool) or not 1 <= letters <= MOST_LETTERS:
        raise ValueError(
            f"letters of {name!r} must be a whole number from 1 to {MOST_LETTERS}, got {letters!r}"
        )
