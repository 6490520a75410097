"""Keys: what an observation is found by (DESIGN, section 5).

A key is a str, an int, bytes, or a tuple of these: a word of a name, a grid cell, a phonetic code. The index
holds 64-bit codes of them, the same in every process and on every machine. Should two keys have the same
code, observations meet that need not, which costs time and changes no likelihood.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from partita._core.hashing import code_of
from partita._core.typing import Integers
from partita.models.base import Model

Keys = tuple[Integers, Integers]  # where the codes of each row start and the last one's end, and the codes
EVERYTHING: Keys = (np.zeros(0, np.int64), np.zeros(0, np.int64))  # no keys in use: meet them all


def key_function(keys: Any, model: Model) -> Callable[[Any], Keys] | None:
    """From rows to keys, as the parameter ``keys`` asks for; None if it does not."""
    if keys is None:
        return None
    if isinstance(keys, str) and keys == "auto":
        return partial(codes_of_model, model)
    if not callable(keys):
        raise ValueError(
            f'keys must be None, "auto" or a function from an observation to its keys, got {keys!r}'
        )
    return partial(codes_of_rows, keys)


def codes_of_rows(function: Callable[[Any], Any], X: Any) -> Keys:
    """The codes of the keys that a user's function gives each row."""
    counts, codes = np.zeros(len(X) + 1, np.int64), []
    for row, x in enumerate(X):
        found = function(x)
        if isinstance(found, str | bytes) or not hasattr(found, "__iter__"):
            raise TypeError(f"row {row}: keys must return several keys, a list of them say, got {found!r}")
        try:
            own = sorted({code(key) for key in found})
        except TypeError as error:
            raise TypeError(f"row {row}: {error}") from error
        codes += own
        counts[row + 1] = len(own)
    return np.cumsum(counts), np.array(codes, np.int64)


def code(key: Any) -> int:
    """The 64-bit code of one key."""
    return code_of(spelt(key))


def spelt(key: Any) -> bytes:
    """A key as bytes, no two alike; TypeError for what can be no key."""
    if isinstance(key, str):
        text = key.encode("utf-8", "surrogatepass")
        return b"s%d:%b" % (len(text), text)
    if isinstance(key, bytes):
        return b"b%d:%b" % (len(key), key)
    if isinstance(key, int | np.integer) and not isinstance(key, bool):
        return b"i%d:" % int(key)
    if isinstance(key, tuple):
        return b"t%d:%b" % (len(key), b"".join(map(spelt, key)))
    raise TypeError(f"{key!r} can be no key; keys are str, int, bytes, or tuples of these")


def codes_of_model(model: Model, X: Any) -> Keys:
    """The keys that a model gives each row."""
    starts, keys = (np.asarray(part) for part in model.keys(X))
    fits = (
        starts.shape == (len(X) + 1,)
        and keys.ndim == 1
        and starts.dtype == keys.dtype == np.int64
        and starts[0] == 0
        and starts[-1] == len(keys)
        and bool((np.diff(starts) >= 0).all())
    )
    if not fits:
        raise ValueError(
            f"{type(model).__name__}.keys must return where the keys of each row start and the last one's "
            f"end, int64 of shape ({len(X) + 1},), and all keys one after the other, int64"
        )
    return ordered(starts, keys)


def ordered(starts: Integers, keys: Integers) -> Keys:
    """The distinct keys of each row in ascending order."""
    ascends = np.ones(len(keys) + 1, bool)
    ascends[1:-1] = keys[1:] > keys[:-1]
    ascends[starts] = True
    if ascends.all():
        return starts, keys
    row = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    order = np.lexsort((keys, row))
    row, keys = row[order], keys[order]
    first = np.ones(len(keys), bool)
    first[1:] = (keys[1:] != keys[:-1]) | (row[1:] != row[:-1])
    counts = np.bincount(row[first], minlength=len(starts) - 1)
    return np.append(0, np.cumsum(counts)), keys[first]
