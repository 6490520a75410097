"""Values, words and letters as the numbered features that kernels count."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from partita._core.hashing import code_of
from partita._core.typing import Array, Floats, Integers
from partita.models.records.corpus import END, LONGEST, START
from partita.models.records.tables import new_tables
from partita.models.records.urns import family as urns


class Growing:
    """An array that is appended to."""

    def __init__(self, dtype: Any, size: int = 0) -> None:
        self.array, self.n = np.zeros(max(size, 64), dtype), size

    def append(self, value: Any) -> None:
        if self.n == len(self.array):
            self.array = np.concatenate([self.array, np.zeros_like(self.array)])
        self.array[self.n] = value
        self.n += 1

    def extend(self, values: Sequence[Any]) -> None:
        need = self.n + len(values)
        if need > len(self.array):
            self.array = np.concatenate([self.array, np.zeros(max(need, len(self.array)), self.array.dtype)])
        self.array[self.n : need] = values
        self.n = need

    @property
    def used(self) -> Array:
        return self.array[: self.n]


class Numbered:
    """Values of attributes as numbered features, in observations and as keys."""

    def __init__(self, attributes: list[Any]) -> None:
        self.attributes = attributes
        self.items = Growing(np.int64)
        self.key_cache: dict[tuple[int, str], tuple[int, ...]] = {}

    def value(self, a: int, value: Any) -> int:
        """The feature of a value of attribute ``a``."""
        raise NotImplementedError

    def encode(self, observations: Iterable[Iterable[tuple[int, str]]]) -> Floats:
        """Store observations, given as attributes and values; returns where each begins and ends."""
        ends = [self.items.n]
        for pairs in observations:
            features = {(a, self.value(a, value)) for a, value in pairs}
            self.items.extend([feature for _, feature in sorted(features)])
            ends.append(self.items.n)
        return np.column_stack([ends[:-1], ends[1:]]).astype(np.float64)

    def keys(self, observations: Iterable[Iterable[tuple[int, str]]]) -> tuple[Integers, Integers]:
        """Keys of observations, one after the other, and where each observation's begin."""
        starts: list[int] = [0]
        keys: list[int] = []
        for pairs in observations:
            keys += sorted({key for a, value in pairs for key in self._keys(a, value)})
            starts.append(len(keys))
        return np.array(starts, np.int64), np.array(keys, np.int64)

    def _keys(self, a: int, value: str) -> tuple[int, ...]:
        known = self.key_cache.get((a, value))
        if known is None:
            texts = {f"{a}={value}"}
            words = self.attributes[a].words(value)
            for word in words if len(words) > 1 else value[:LONGEST].split(" "):
                texts |= {f"{a}:{word}", f"{a}~{word[:4]}"}
            known = tuple(code_of(text.encode("utf-8", "surrogatepass")) for text in texts)
            self.key_cache[a, value] = known
        return known


class Vocabulary(Numbered):
    """Features of all attributes, numbered through from 1."""

    def __init__(self, attributes: list[Any]) -> None:
        super().__init__(attributes)
        self.kind, self.owner = Growing(np.int64, 1), Growing(np.int64, 1)
        self.base = Growing(np.float64, 1)
        self.first, self.last = Growing(np.int64, 1), Growing(np.int64, 1)
        self.parts = Growing(np.int64)
        self.ids: list[dict[Any, int]] = [{} for _ in attributes]
        self.letters: list[dict[str, int]] = [{} for _ in attributes]
        self.totals = np.array(
            [[self._new(urns.TOTAL, a, 0.0) for _ in range(5)] for a in range(len(attributes))], np.int64
        ).reshape(-1, 5)
        self.theta = np.array([attribute.theta for attribute in attributes], np.float64)
        self.phi = np.array([attribute.phi for attribute in attributes], np.float64)

    def _new(self, kind: int, owner: int, base: float, parts: Sequence[int] = ()) -> int:
        self.kind.append(kind)
        self.owner.append(owner)
        self.base.append(base)
        self.first.append(self.parts.n)
        self.parts.extend(parts)
        self.last.append(self.parts.n)
        return self.kind.n - 1

    def value(self, a: int, value: Any) -> int:
        """The feature of a value of attribute ``a``.

        Its parts are its words.
        """
        known = self.ids[a].get(value)
        if known is not None:
            return known
        attribute = self.attributes[a]
        words = [self._word(a, word) for word in attribute.words(value)]
        common, base = attribute.value_base(value)
        self.ids[a][value] = feature = self._new(urns.VALUE if common else urns.COMPOSED, a, base, words)
        return feature

    def _word(self, a: int, word: str) -> int:
        known = self.ids[a].get((word,))
        if known is not None:
            return known
        attribute = self.attributes[a]
        common, base = attribute.word_base(word)
        kind, parts = (urns.WORD if common else urns.RARE), self._spelt(a, word, attribute.order)
        self.ids[a][(word,)] = feature = self._new(kind, a, base, parts)
        self._new(urns.IN_COMMON, a, 0.0)
        return feature

    def _spelt(self, a: int, word: str, order: int) -> list[int]:
        """Contexts and letters of a word, in turn."""
        text = START * (order - 1) + word + END
        parts: list[int] = []
        for at in range(order - 1, len(text)):
            parts += self._letter(a, text[at - order + 1 : at], text[at])
        return parts

    def _letter(self, a: int, context: str, letter: str) -> tuple[int, int]:
        ids, attribute = self.letters[a], self.attributes[a]
        before = ids.get(context)
        if before is None:
            ids[context] = before = self._new(urns.CONTEXT, a, attribute.context_weight(context))
            self._new(urns.OF_COMMON, a, 0.0)
        after = ids.get(context + letter)
        if after is None:
            weight = attribute.letter_weight(context, letter)
            ids[context + letter] = after = self._new(urns.LETTER, a, weight)
            self._new(urns.OF_COMMON, a, 0.0)
        return before, after

    def family(self, tables: Any = None) -> urns.UrnFamily:
        """The vocabulary as the kernels read it, with tables of its own unless they are given."""
        return urns.UrnFamily(
            items=self.items.used,
            kind=self.kind.used,
            owner=self.owner.used,
            base=self.base.used,
            first=self.first.used,
            last=self.last.used,
            parts=self.parts.used,
            theta=self.theta,
            phi=self.phi,
            totals=self.totals,
            tables=new_tables(False) if tables is None else tables,
        )
