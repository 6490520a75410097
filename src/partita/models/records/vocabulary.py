"""What the vocabularies of texts and of records share: arrays that grow, keys of candidates, numbered values."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from partita._core.collecting import uncollected
from partita._core.hashing import code_of
from partita._core.kernel import kernel
from partita._core.sorting import distinct_range, sort_range
from partita._core.typing import Array, Floats, Integers

KEPT = 4096  # values and words of an attribute whose keys are remembered from one call to the next


class Growing:
    """An array that is appended to."""

    def __init__(self, dtype: Any, size: int = 0) -> None:
        self.array, self.n = np.zeros(max(size, 64), dtype), size

    def append(self, value: Any) -> None:
        if self.n == len(self.array):
            self._lengthen(len(self.array))
        self.array[self.n] = value
        self.n += 1

    def extend(self, values: Sequence[Any] | Array) -> None:
        need = self.n + len(values)
        if need > len(self.array):
            self._lengthen(max(need, len(self.array)))
        self.array[self.n : need] = values
        self.n = need

    def _lengthen(self, by: int) -> None:
        """Have room for so many more, which is no memory yet."""
        longer = np.zeros(len(self.array) + by, self.array.dtype)
        longer[: self.n] = self.array[: self.n]
        self.array = longer

    @property
    def used(self) -> Array:
        return self.array[: self.n]


class Keyed:
    """Values of attributes as keys, by which candidates are found."""

    def __init__(self, attributes: list[Any]) -> None:
        self.attributes = attributes
        self.known_keys: list[dict[str, list[int]]] = [{} for _ in attributes]
        self.known_words: list[dict[str, tuple[int, int]]] = [{} for _ in attributes]

    def keys(self, observations: Iterable[Iterable[tuple[int, str]]]) -> tuple[Integers, Integers]:
        """Keys of observations, one after the other, and where each observation's begin."""
        numbers: dict[tuple[int, str], int] = {}  # of values, in this call
        items, ends, codes, last = array("q"), array("q"), array("q"), array("q")
        with uncollected():
            for pairs in observations:
                for pair in pairs:
                    number = numbers.get(pair)
                    if number is None:
                        number = numbers[pair] = len(last)
                        codes.extend(self._keys(*pair))
                        last.append(len(codes))
                    items.append(number)
                ends.append(len(items))
        remembered: list[dict[str, Any]] = [*self.known_keys, *self.known_words]
        for known in remembered:
            if len(known) > KEPT:
                known.clear()
        values = in_numpy(items)
        counts = np.diff(in_numpy(last), prepend=0)
        starts, keys = np.zeros(len(ends) + 1, np.int64), np.empty(int(counts[values].sum()), np.int64)
        n = write_keys(values, in_numpy(ends), in_numpy(codes), in_numpy(last), starts, keys)
        return starts, keys[:n]

    def _keys(self, a: int, value: str) -> list[int]:
        known = self.known_keys[a].get(value)
        if known is None:
            words, known = self.known_words[a], [code_of_text(f"{a}={value}")]
            for word in self.attributes[a].words(value):
                own = words.get(word)
                if own is None:
                    own = words[word] = code_of_text(f"{a}:{word}"), code_of_text(f"{a}~{word[:4]}")
                known += own
            self.known_keys[a][value] = known
        return known


def code_of_text(text: str) -> int:
    """The code of a text."""
    return code_of(text.encode("utf-8", "surrogatepass"))


def in_numpy(numbers: array[int]) -> Integers:
    """An array of Python as one of NumPy, of the same memory."""
    return np.frombuffer(numbers, np.int64) if len(numbers) else np.zeros(0, np.int64)


@kernel
def write_keys(values, ends, codes, last, starts, keys):
    """Write the different keys of observations, in ascending order, from those of their values; returns how many."""
    n, first = np.int64(0), np.int64(0)
    for x in range(ends.shape[0]):
        start = n
        for k in range(first, ends[x]):
            for at in range(last[values[k] - 1] if values[k] > 0 else 0, last[values[k]]):
                keys[n] = codes[at]
                n += 1
        sort_range(keys, start, n)
        n = distinct_range(keys, start, n)
        starts[x + 1], first = n, ends[x]
    return n


class Numbered(Keyed):
    """Values of attributes as numbered features too, in observations."""

    def __init__(self, attributes: list[Any]) -> None:
        super().__init__(attributes)
        self.items = Growing(np.int64)
        self.ids: list[dict[str, int]] = [{} for _ in attributes]  # features of values, all above 0

    def value(self, a: int, value: Any) -> int:
        """The feature of a value of attribute ``a``."""
        raise NotImplementedError

    def encode(self, observations: Iterable[Iterable[tuple[int, str]]]) -> Floats:
        """Store observations, given as attributes and values; returns where each begins and ends."""
        ends = [self.items.n]
        items: list[int] = []
        with uncollected():
            for pairs in observations:
                features = {(a, self.ids[a].get(value) or self.value(a, value)) for a, value in pairs}
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
