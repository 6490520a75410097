"""Edges: pairs of observations that may be of one cluster, with the log-odds that they are.

The log-odds of two observations are those of the two alone, log p({x, y}) − log p({x}) − log p({y}) − log α.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import local
from typing import Any, NamedTuple

import numpy as np

from partita._core.kernel import inner, kernel
from partita._core.typing import Floats, Integers
from partita.models.scoring.families import begin, extend, gains
from partita.smc.blocks.near import Near, Own, own_of
from partita.smc.state.index import longer

LEAST = -3.0  # log-odds: a pair of which nothing more is known than that it is more improbable is let go
CLOSEST = 20  # earlier observations that one is compared with, at most: those that share most with it
STRIDE = 2000  # observations whose pairs a thread scores at a time


class Edges(NamedTuple):
    """Pairs (first < second), in ascending order, and their log-odds."""

    first: Integers
    second: Integers
    odds: Floats


def edges(engine: Any, data: Floats, near: Near, log_alpha: float, workers: int) -> Edges:
    """The pairs that share a key and have log-odds of at least ``LEAST``.

    Parameters
    ----------
    engine : Engine
        Of a compiled model; it is left as it is.
    data : array
        The observations, encoded.
    near : Near
    log_alpha : float
    workers : int
        How many threads.
    """
    own, n, keys = local(), len(data), own_of(near, 0, len(data))

    def some(start: int) -> Edges:
        if not hasattr(own, "family"):
            own.family, own.shared = with_own_tables(engine), np.zeros(n, np.int32)
        pairs = closest_pairs(near, keys, start, min(start + STRIDE, n), own.shared)
        return scored(own.family, engine, data, *pairs, log_alpha)

    with ThreadPoolExecutor(workers) as pool:
        parts = list(pool.map(some, range(0, n, STRIDE)))
    return Edges(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def pairs_among(near: Near, start: int, stop: int, workers: int) -> tuple[Integers, Integers]:
    """The pairs that the observations from ``start`` to ``stop`` are to be scored in, found by so many threads."""
    own, keys = local(), own_of(near, start, stop)

    def some(first: int) -> tuple[Integers, Integers]:
        if not hasattr(own, "shared"):
            own.shared = np.zeros(stop, np.int32)
        return closest_pairs(near, keys, first, min(first + STRIDE, stop), own.shared)

    with ThreadPoolExecutor(workers) as pool:
        parts = list(pool.map(some, range(start, stop, STRIDE)))
    first, second = (np.concatenate(part) for part in zip(*parts, strict=True))
    return first, second


def odds_of(
    engine: Any, data: Floats, first: Integers, second: Integers, log_alpha: float, workers: int
) -> Floats:
    """The log-odds of pairs, found by so many threads; an engine as for :func:`edges`."""
    own, odds = local(), np.empty(len(first))

    def some(start: int) -> None:
        if not hasattr(own, "family"):
            own.family, own.statistics = with_own_tables(engine), np.zeros((2, engine.scorer.width))
        part = slice(start, start + STRIDE * CLOSEST)
        pairs = first[part], second[part]
        write_odds(own.family, own.statistics, engine.widths[0], data, *pairs, log_alpha, odds[part])

    with ThreadPoolExecutor(workers) as pool:
        for _ in pool.map(some, range(0, len(first), STRIDE * CLOSEST)):
            pass
    return odds


def with_own_tables(engine: Any) -> Any:
    """The family of an engine's model, as it is after encoding, with tables of its own if it needs any."""
    family = engine.family
    if hasattr(family, "tables"):
        family = family._replace(tables=engine.scorer.fresh().family.tables)
    return family


def closest_pairs(near: Near, own: Own, start: int, stop: int, shared: Any) -> tuple[Integers, Integers]:
    """The pairs that the observations from ``start`` to ``stop`` are to be scored in, each with an earlier one.

    ``own`` has their keys; ``shared`` is working memory, 0 for each observation before ``stop``.
    """
    room = CLOSEST * (stop - start)
    first, second = np.empty(room, np.int64), np.empty(room, np.int64)
    n = pairs_from(near, own, start, stop, shared, first, second)
    return first[:n], second[:n]


def scored(
    family: Any, engine: Any, data: Floats, first: Integers, second: Integers, log_alpha: float
) -> Edges:
    """Those of the pairs that are edges."""
    statistics, odds = np.zeros((2, engine.scorer.width)), np.empty(len(first))
    write_odds(family, statistics, engine.widths[0], data, first, second, log_alpha, odds)
    kept = odds >= LEAST
    return Edges(first[kept], second[kept], odds[kept])


@kernel
def write_odds(family, statistics, d, data, first, second, log_alpha, odds):
    """Write the log-odds of pairs; those of one second observation follow one another."""
    begin(family, statistics, d)
    gain, ids, x = np.empty(2), np.arange(2), np.int64(-1)
    for k in range(first.shape[0]):
        if second[k] != x:
            x = second[k]
            extend(family, statistics, np.int64(1), np.int64(0), np.int64(0), data, x)
        gains(family, statistics, ids, np.int64(0), np.int64(2), data, first[k], gain)
        odds[k] = gain[1] - gain[0] - log_alpha


@kernel
def pairs_from(near, own, start, stop, shared, first, second):
    """Write the pairs of some observations, for which there is room; returns how many there are.

    ``shared`` is working memory, 0 for each observation.
    """
    met, best, count = np.empty(1024, np.int64), np.empty(CLOSEST, np.int64), 0
    for x in range(start, stop):
        met, n_met = meet(near, own, x, shared, met)
        n = closest(met, n_met, shared, best)
        for k in range(n_met):
            shared[met[k]] = 0
        for k in range(n):
            first[count], second[count] = best[k], x
            count += 1
    return count


@inner
def meet(near, own, x, shared, met):
    """Add up what the keys are worth that earlier observations share with ``x``; lists these, and says how many."""
    n = 0
    for k in range(own.starts[x - own.first], own.starts[x - own.first + 1]):
        key = own.keys[k]
        p, worth = near.starts[key], near.worth[key]
        while near.holders[p] < x:  # x itself is among them
            y = near.holders[p]
            if shared[y] == 0:
                if n == met.shape[0]:
                    met = longer(met, 2 * n)
                met[n] = y
                n += 1
            shared[y] += worth
            p += 1
    return met, n


@inner
def closest(met, n, shared, best):
    """Write those that share most, in descending order, of equal ones the first; returns how many."""
    count = 0
    for k in range(n):
        y, at = met[k], count
        while at > 0 and (
            shared[best[at - 1]] < shared[y] or (shared[best[at - 1]] == shared[y] and best[at - 1] > y)
        ):
            at -= 1
        if at == best.shape[0]:
            continue
        count = min(count + 1, best.shape[0])
        for j in range(count - 1, at, -1):
            best[j] = best[j - 1]
        best[at] = y
    return count
