"""Texts as the numbered contexts and letters that kernels count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from partita._core.typing import Floats
from partita.models.records.corpus import END, START
from partita.models.records.tables import new_tables
from partita.models.records.urns.family import UrnFamily
from partita.models.records.vocabulary import Growing, Keyed


class SpeltTexts(Keyed):
    """Texts of observations letter by letter, with features numbered through from 1."""

    def __init__(self, spelling: Any) -> None:
        super().__init__([spelling])
        self.spelling = spelling
        self.base, self.sign = Growing(np.float64, 1), Growing(np.float64, 1)
        self.tokens, self.starts = Growing(np.int64), Growing(np.int64, 1)
        self.features: dict[str, int] = {}  # of contexts, and of contexts with a letter
        self.numbers: dict[str, int] = {}  # of texts, by which those of an observation are sorted
        self.ranges: dict[tuple[int, ...], tuple[int, int]] = {}  # of the texts of an observation

    def encode(self, observations: Iterable[Iterable[tuple[int, str]]]) -> Floats:
        """Store observations, given as pairs of 0 and a text; returns where the texts of each begin and end."""
        found = []
        for pairs in observations:
            texts = {self.numbers.setdefault(text, len(self.numbers)): text for _, text in pairs}
            key = tuple(sorted(texts))
            if key not in self.ranges:
                first = self.starts.n - 1
                self._store([texts[number] for number in key])
                self.ranges[key] = first, self.starts.n - 1
            found.append(self.ranges[key])
        return np.array(found, np.float64).reshape(-1, 2)

    def _store(self, texts: list[str]) -> None:
        before: Counter[int] = Counter()
        order = self.spelling.order
        for text in texts:
            spelt = START * (order - 1) + self.spelling.spelt(text) + END
            tokens: list[int] = []
            for at in range(order - 1, len(spelt)):
                context, letter = self._features(spelt[at - order + 1 : at], spelt[at])
                tokens += context, letter, before[context], before[letter]
                before[context] += 1
                before[letter] += 1
            self.tokens.extend(tokens)
            self.starts.append(self.tokens.n // 4)

    def _features(self, context: str, letter: str) -> tuple[int, int]:
        """Of a context, and of a letter after it."""
        before, after = self.features.get(context), self.features.get(context + letter)
        if before is None:
            before = self._new(context, self.spelling.context_weight(context), -1.0)
        if after is None:
            after = self._new(context + letter, self.spelling.letter_weight(context, letter), 1.0)
        return before, after

    def _new(self, name: str, base: float, sign: float) -> int:
        self.base.append(base)
        self.sign.append(sign)
        self.features[name] = self.base.n - 1
        return self.base.n - 1

    def family(self, tables: Any = None) -> UrnFamily:
        """The vocabulary as the kernels read it, with tables of its own unless they are given."""
        return UrnFamily(
            tokens=self.tokens.used.reshape(-1, 4),
            starts=self.starts.used,
            base=self.base.used,
            sign=self.sign.used,
            tables=new_tables(False) if tables is None else tables,
        )
