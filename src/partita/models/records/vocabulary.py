"""What the vocabularies of texts and of records share: arrays that grow, keys of candidates, numbered values."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from partita._core.collecting import uncollected
from partita._core.hashing import code_of
from partita._core.typing import Array, Floats, Integers

KEPT = 4096  # values of an attribute whose keys are remembered from one call to the next


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
        self.known_keys: list[dict[str, list[int]]] = [{} for _ in attributes]

    def keys(self, observations: Iterable[Iterable[tuple[int, str]]]) -> tuple[Integers, Integers]:
        """Keys of observations, one after the other, and where each observation's begin."""
        starts: list[int] = [0]
        keys = array("q")
        with uncollected():
            for pairs in observations:
                keys.extend(sorted({key for a, value in pairs for key in self._keys(a, value)}))
                starts.append(len(keys))
        for known in self.known_keys:
            if len(known) > KEPT:
                known.clear()
        return np.array(starts, np.int64), np.array(keys, np.int64)

    def _keys(self, a: int, value: str) -> list[int]:
        known = self.known_keys[a].get(value)
        if known is None:
            texts = {f"{a}={value}"}
            for word in self.attributes[a].words(value):
                texts |= {f"{a}:{word}", f"{a}~{word[:4]}"}
            known = [code_of(text.encode("utf-8", "surrogatepass")) for text in texts]
            self.known_keys[a][value] = known
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
        items: list[int] = []
        with uncollected():
            for pairs in observations:
                features = {(a, self.value(a, value)) for a, value in pairs}
                items += [feature for _, feature in sorted(features)]
                ends.append(self.items.n + len(items))
        self.items.extend(items)
        return np.column_stack([ends[:-1], ends[1:]]).astype(np.float64)

    def said(self, encoded: Floats) -> tuple[Integers, Integers]:
        """What observations say, as features one observation's after the other's, and how many each says."""
        starts, ends = encoded.astype(np.int64).T
        lengths = ends - starts
        at = np.repeat(starts - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())
        return lengths, self.items.used[at]

    def store(self, lengths: Integers, features: Integers) -> Floats:
        """Store observations, given as :meth:`said` returns them; returns where each begins and ends."""
        ends = self.items.n + np.cumsum(lengths)
        self.items.extend(features)
        return np.column_stack([ends - lengths, ends]).astype(np.float64)
