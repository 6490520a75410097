"""The parts that texts are compared by, and the usual ones: three letters in a row.

Parts are numbers: of three letters these themselves, 21 bits each, of others their code. So they are the same in every
process, and nothing has to be kept of them but what each counts in its text.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from partita._core.hashing import code_of
from partita._core.kernel import inner, kernel
from partita._core.sorting import sort_range
from partita._core.typing import Floats, Integers

STEP = (
    2.0**-24
)  # of what parts count, so that sums of products are exact, whatever the order that parts come in
BITS = 21  # of a letter


class Parts(NamedTuple):
    """The parts of texts: of each text a range of these arrays, ascending, the squares of what they count sum to 1."""

    grams: Integers
    weights: Floats
    first: Integers
    last: Integers


def named(vectors: Iterable[Mapping[str, float]]) -> Parts:
    """The parts of texts that are given one by one, with names."""
    grams, weights, last = [], [], [0]
    for vector in vectors:
        found = sorted(
            (code_of(name.encode("utf-8", "surrogatepass")), weight) for name, weight in vector.items()
        )
        grams += [gram for gram, _ in found]
        weights += [weight for _, weight in found]
        last.append(len(grams))
    ends = np.array(last, np.int64)
    return Parts(np.array(grams, np.int64), in_steps(np.array(weights, np.float64)), ends[:-1], ends[1:])


def in_steps(weights: Floats) -> Floats:
    """What parts count, in whole steps."""
    found: Floats = np.round(weights / STEP) * STEP
    return found


class Rarity(NamedTuple):
    """What trigrams count for being rare: those of some texts, ascending, and all others."""

    known: Integers
    weights: Floats
    others: float


class Trigrams(NamedTuple):
    """The different trigrams of texts, ascending in each, and how often each is there."""

    grams: Integers
    times: Integers
    last: Integers  # where those of each text end


def trigrams_of(texts: Sequence[str], longest: int) -> Trigrams:
    """Three letters in a row, of each word with a space before and after it, of the first letters of texts."""
    texts = [text if len(text) <= longest else text[:longest] for text in texts]
    ends = np.fromiter(map(len, texts), np.int64, len(texts)).cumsum()
    letters = np.frombuffer(bytearray("".join(texts).encode("utf-32-le", "surrogatepass")), np.int32)
    room = len(letters) + len(texts)
    found = Trigrams(np.empty(room, np.int64), np.empty(room, np.int64), np.empty(len(texts), np.int64))
    n = write_trigrams(letters, ends, *found)
    return Trigrams(found.grams[:n], found.times[:n], found.last)


def weighed(texts: Sequence[str], longest: int, rarity: Rarity, often: Floats) -> Parts:
    """Texts by their trigrams: what each counts for being rare, times what it counts for being there so often."""
    grams, times, last = trigrams_of(texts, longest)
    weights = np.empty(len(grams))
    write_weights(grams, times, last, *rarity, often, weights)
    first = np.zeros_like(last)
    first[1:] = last[:-1]
    return Parts(grams, in_steps(weights), first, last)


def letters_of(gram: int) -> str:
    """The letters of a trigram, without those that are none."""
    codes = (gram >> (BITS * k) & ((1 << BITS) - 1) for k in (2, 1, 0))
    return "".join(chr(code) for code in codes if code)


# ---------------------------------------------------------------------- kernels


@kernel
def write_trigrams(letters, ends, grams, times, last):
    """Write the trigrams of texts, of which each ends at one of ``ends``; returns how many there are."""
    n, first, space = np.int64(0), np.int64(0), np.int64(32)
    for text in range(ends.shape[0]):
        start, at = n, first
        while at <= ends[text]:
            stop = at
            while stop < ends[text] and letters[stop] != space:
                stop += 1
            before, here = space, np.int64(letters[at]) if at < stop else space
            if at == stop:  # nothing between two spaces
                grams[n] = gram_of(space, space, np.int64(0))
                n += 1
            for k in range(at, stop):
                after = np.int64(letters[k + 1]) if k + 1 < stop else space
                grams[n] = gram_of(before, here, after)
                before, here = here, after
                n += 1
            at = stop + 1
        sort_range(grams, start, n)
        n = counted(grams, times, start, n)
        last[text], first = n, ends[text]
    return n


@inner
def gram_of(before, here, after):
    """Three letters as one number."""
    return (before << (2 * BITS)) + (here << BITS) + after


@inner
def counted(values, times, first, last):
    """Keep one of each value of a sorted range, and write how often it was there; returns where the range ends now."""
    at = first
    for k in range(first, last):
        if k > first and values[k] == values[at - 1]:
            times[at - 1] += 1
        else:
            values[at], times[at] = values[k], 1
            at += 1
    return at


@inner
def place_of(known, value):
    """Where a value is in a sorted array; −1 if it is not."""
    low, high = np.int64(0), np.int64(known.shape[0])
    while low < high:
        middle = (low + high) // 2
        if known[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low if low < known.shape[0] and known[low] == value else np.int64(-1)


@kernel
def write_weights(grams, times, last, known, rarity, others, often, weights):
    """Write what the trigrams of texts count. The sum of squares is rounded once, as by ``math.fsum``: what is lost in
    each step is added up as well (Neumaier 1974)."""
    first = np.int64(0)
    for text in range(last.shape[0]):
        total, lost = 0.0, 0.0
        for k in range(first, last[text]):
            at = place_of(known, grams[k])
            weights[k] = often[times[k]] * (rarity[at] if at >= 0 else others)
            square = weights[k] * weights[k]
            larger = total + square
            part = larger - total
            lost += (total - (larger - part)) + (square - part)
            total = larger
        length = math.sqrt(total + lost)
        for k in range(first, last[text]):
            weights[k] /= length
        first = last[text]
