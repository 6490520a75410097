"""The values that fragments say, as the store has them: compared and ready, under numbers.

What a value is compared by takes a hundred times as long to find as to read. It hangs on the model alone, so it is kept
from the first fragment that says the value until the model is learnt anew, or until nobody says it and it is erased.
A live model numbers values in the order in which it meets them, those that it was only asked about included; the store
numbers those that fragments say.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from partita._core.typing import Array, Floats, Integers
from partita.models.records.comparisons.family import LEVELS, NOBODY
from partita.models.records.comparisons.vocabulary import Values
from partita.models.records.record import Record
from partita.models.records.vocabulary import Growing

TOGETHER = 4096  # values, at most, of a piece
NUMBERS = np.dtype("<i4")  # of values, as fragments have them
UNKNOWN = -1  # the number of a value that the store does not have
FORMS = {"owner": "<i4", "rank": "<i8", "number": "<f8", "log_u": "<f8", "lengths": "<i4"} | {
    "grams": "<i8",
    "weights": "<f8",
}


class Piece(NamedTuple):
    """Values with numbers that follow each other."""

    first: int
    body: bytes


class KnownValues:
    """Which values of a live model the store has, and under which numbers.

    Parameters
    ----------
    model : Record
        Ready to encode.
    """

    def __init__(self, model: Record) -> None:
        self._model = model
        self._numbers = Growing(np.int64)  # of the model's features
        self.next_number = 0  # of a value that nobody has said yet
        self._unsaved: list[Integers] = []  # features that were given numbers

    def number(self, encoded: Floats) -> list[bytes]:
        """Of each encoded fragment the numbers of what it says, as a row of the store has them; new ones are given."""
        lengths, features = self._model.features(encoded)
        self._reach(int(features.max(initial=0)))
        known = self._numbers.used
        new = np.unique(features[known[features] == UNKNOWN])
        if len(new):
            known[new] = np.arange(self.next_number, self.next_number + len(new))
            self.next_number += len(new)
            self._unsaved.append(new)
        said = known[features].astype(NUMBERS)
        return [said[a:b].tobytes() for a, b in pairwise([0, *np.cumsum(lengths).tolist()])]

    def _reach(self, feature: int) -> None:
        """Have a number for each feature up to one."""
        self._numbers.extend(np.full(max(feature + 1 - self._numbers.n, 0), UNKNOWN))

    # ------------------------------------------------------------------ for the store

    def unsaved(self) -> Iterator[Piece]:
        """What was given numbers since :meth:`saved`."""
        features = np.concatenate([np.empty(0, np.int64), *self._unsaved])
        first = self.next_number - len(features)
        for start in range(0, len(features), TOGETHER):
            values = self._model.values_of(features[start : start + TOGETHER])
            yield Piece(first + start, packed(values))

    def saved(self) -> None:
        """All of it is in the store."""
        self._unsaved = []

    def take_in(self, pieces: Iterable[Piece], next_number: int) -> None:
        """Know what the store has."""
        found = [(piece.first, unpacked(piece.body)) for piece in pieces]
        if found:
            numbers = np.concatenate([first + np.arange(len(values.owner)) for first, values in found])
            values = joined([values for _, values in found])
            here = values.owner != NOBODY  # not erased, and those that are have no parts
            columns = {
                name: getattr(values, name)[here] for name in ("owner", "rank", "number", "log_u", "lengths")
            }
            features = self._model.take_in_values(values._replace(**columns))
            self._reach(int(features.max(initial=0)))
            self._numbers.used[features] = numbers[here]
        self.next_number = next_number

    def recall(self, said: Sequence[bytes]) -> Floats:
        """Fragments, encoded, from the numbers of what they say; ValueError for one that nobody has."""
        numbers = np.frombuffer(b"".join(said), NUMBERS).astype(np.int64)
        features = np.full(self.next_number + 1, UNKNOWN)
        known = np.flatnonzero(self._numbers.used != UNKNOWN)
        features[self._numbers.used[known]] = known
        if len(numbers) and not (numbers.min() >= 0 and numbers.max() < self.next_number):
            raise ValueError("a fragment says what there is no value of")
        found = features[numbers]
        if (found == UNKNOWN).any():
            raise ValueError("a fragment says a value that was erased")
        return self._model.recalled(np.array([len(one) // NUMBERS.itemsize for one in said], np.int64), found)

    def unsaid(self, numbers: Integers, encoded: Floats) -> Integers:
        """Those of some numbers that no encoded fragment says; they are forgotten."""
        _, features = self._model.features(encoded)
        self._reach(int(features.max(initial=0)))
        gone = np.setdiff1d(numbers, self._numbers.used[features])
        self._numbers.used[np.isin(self._numbers.used, gone)] = UNKNOWN
        return gone


# ---------------------------------------------------------------------- as bytes


def packed(values: Values) -> bytes:
    """Values as a store keeps them."""
    columns = [np.ascontiguousarray(getattr(values, name), form).tobytes() for name, form in FORMS.items()]
    return zlib.compress(b"".join([len(values.owner).to_bytes(8, "little"), *columns]), 1)


def unpacked(body: bytes) -> Values:
    """What :func:`packed` has packed; ValueError if it makes no sense."""
    try:
        contents = zlib.decompress(body)
    except zlib.error as error:
        raise ValueError(f"values cannot be read: {error}") from None
    n, at, found = int.from_bytes(contents[:8], "little"), 8, dict[str, Array]()
    for name, form in FORMS.items():
        count = {"log_u": n * LEVELS, "grams": -1, "weights": -1}.get(name, n)
        if count < 0:
            count = int(found["lengths"].sum())
        found[name] = np.frombuffer(contents, form, count, at)
        at += found[name].nbytes
    found["log_u"] = found["log_u"].reshape(n, LEVELS)
    return Values(**found)


def joined(values: Sequence[Values]) -> Values:
    """Values of several pieces."""
    return Values(*(np.concatenate(columns) for columns in zip(*values, strict=True)))


def without(values: Values, gone: Array) -> Values:
    """Values, some of which nothing is left of but their places."""
    stay = ~gone
    parts = np.repeat(stay, values.lengths)
    return Values(
        np.where(gone, NOBODY, values.owner),
        values.rank * stay,
        values.number * stay,
        values.log_u * stay[:, None],
        values.lengths * stay,
        values.grams[parts],
        values.weights[parts],
    )
