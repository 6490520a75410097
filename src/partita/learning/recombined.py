"""How alike strangers would be if words were put together at random: names of people, a first and a last one each.

Each word of a value is taken from the same place of another value with as many words. People who share a name are as
alike as that, and those nearly the same are not. In long texts words go together, so there it says nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from partita._core.typing import Floats
from partita.models.records.comparisons.family import BOUNDS, LEVELS

SHORT = 3.0  # words of a value at most, on average
MOST = 1000  # values that are looked at


def likeness_of_recombined(attribute: Any, values: Iterable[str]) -> tuple[Floats, float]:
    """How often a value is so alike to one put together, by degree but equality; and for which share of pairs it holds.

    That is for those whose values both have several words, like others, and for none if values are long.
    """
    every = sorted(values)
    if len(every) > MOST:
        every = [every[k] for k in np.linspace(0, len(every) - 1, MOST).astype(int)]
    words = [value.split(" ") for value in every]
    nothing = np.zeros(LEVELS - 1), 0.0
    if not words or np.mean([len(own) for own in words]) > SHORT:
        return nothing
    taken, made = recombined(words)
    parts: dict[str, int] = {}
    both = vectors(attribute, taken, parts), vectors(attribute, made, parts)
    first, second = (csr_array(of, shape=(len(taken), len(parts))) for of in both)
    levels = np.searchsorted(BOUNDS, (first @ second.T).toarray(), side="left")
    different = np.array(taken)[:, None] != np.array(made)[None, :]
    counts = np.bincount(levels[different], minlength=LEVELS - 1)[: LEVELS - 1]
    if not counts.any():
        return nothing
    return counts / counts.sum(), (len(taken) / len(words)) ** 2


def recombined(words: list[list[str]]) -> tuple[list[str], list[str]]:
    """Values of several words each, and as many that are put together of theirs, each word in its place."""
    generator = np.random.default_rng(0)
    by_length: dict[int, list[list[str]]] = defaultdict(list)
    for own in words:
        by_length[len(own)].append(own)
    taken: list[str] = []
    made: list[str] = []
    for length, alike in sorted(by_length.items()):
        if length > 1 and len(alike) > 1:
            drawn = [[alike[k][place] for k in generator.permutation(len(alike))] for place in range(length)]
            taken += [" ".join(own) for own in alike]
            made += [" ".join(own) for own in zip(*drawn, strict=True)]
    return taken, made


def vectors(attribute: Any, values: list[str], parts: dict[str, int]) -> tuple[list[float], Any]:
    """The parts of values, numbered in ``parts``, as a sparse matrix is made of them."""
    rows, columns, weights = [], [], []
    for row, value in enumerate(values):
        for part, weight in attribute.vector(value).items():
            rows.append(row)
            columns.append(parts.setdefault(part, len(parts)))
            weights.append(weight)
    return weights, (rows, columns)
