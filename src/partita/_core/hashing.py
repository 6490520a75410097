"""Codes of keys: 64-bit hashes that are the same in every process and on every machine."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np

from partita._core.kernel import inner
from partita._core.typing import Array


def code_of(contents: bytes) -> int:
    """The 64-bit code of some bytes."""
    return int.from_bytes(blake2b(contents, digest_size=8).digest(), "little", signed=True)


@inner
def hash_table(count):
    """An empty table of a power of two entries, at least twice ``count``."""
    size = 4
    while size < 2 * count:
        size *= 2
    table = np.empty(size, np.int64)
    for k in range(size):
        table[k] = -1
    return table


@inner
def mix(hash, value):
    """Mix one more id into a hash; equality is always checked as well."""
    return (hash ^ np.uint64(value)) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x632BE59BD9B4E019)


def scramble(values: Array) -> Array:
    """A 64-bit code of each value, as good as random (SplitMix64)."""
    z: Array = values.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x632BE59BD9B4E019)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@inner
def mixed(code, value):
    """Mix one more number into a code (the finaliser of SplitMix64)."""
    z = code * np.uint64(0x9E3779B97F4A7C15) + np.uint64(value)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
