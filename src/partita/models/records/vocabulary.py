"""What the vocabularies of texts and of records share: arrays that grow, keys of candidates, numbered values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from partita._core.hashing import code_of
from partita._core.typing import Array, Floats, Integers


class Growing:
    """An array that is appended to."""

    def __init__(self, dtype: Any, size: int = 0) -> None:
        self.array, self.n = np.zeros(max(size, 64), dtype), size

    def append(self, value: Any) -> None:
        if self.n == len(self.array):
            self.array = np.concatenate([self.array, np.zeros_like(self.array)])
        self.array[self.n] = value
        self.n += 1

    def extend(self, values: Sequence[Any] | Array) -> None:
        need = self.n + len(values)
        if need > len(self.array):
            self.array = np.concatenate([self.array, np.zeros(max(need, len(self.array)), self.array.dtype)])
        self.array[self.n : need] = values
        self.n = need

    @property
    def used(self) -> Array:
        return self.array[: self.n]


class Keyed:
    """Values of attributes as keys, by which candidates are found."""

    def __init__(self, attributes: list[Any]) -> None:
        self.attributes = attributes
        self.key_cache: dict[tuple[int, str], tuple[int, ...]] = {}

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
            for word in self.attributes[a].words(value):
                texts |= {f"{a}:{word}", f"{a}~{word[:4]}"}
            known = tuple(code_of(text.encode("utf-8", "surrogatepass")) for text in texts)
            self.key_cache[a, value] = known
        return known


class Numbered(Keyed):
    """Values of attributes as numbered features too, in observations."""

    def __init__(self, attributes: list[Any]) -> None:
        super().__init__(attributes)
        self.items = Growing(np.int64)

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
