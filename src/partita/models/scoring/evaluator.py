"""Asking a black box: many clusters in one call, each once, and what is remembered of the answers.

Answers are remembered by member set, in a bounded cache. Observations have numbers in order of arrival, and
members are always handed over in that order: a score cannot depend on when it was asked for.

A call may also ask for clusters that are not needed yet, *ahead* of time. Whatever becomes of those does not
count now: an answer that makes no sense is forgotten, and where the function fails it is called again without
them. So an error comes when its cluster is needed, and names whom it is needed for.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from partita._core.typing import Floats, Integers

Score = Callable[[list[list[Any]]], Any]
Sets = Mapping[bytes, Integers]  # member sets by their keys


class CacheInfo(NamedTuple):
    """What a black box has been asked for since the last ``fit``.

    Attributes
    ----------
    hits, misses : int
        Log-likelihoods that were found in the cache when they were needed, and that were not.
    evaluations : int
        Clusters that were handed to the function.
    calls : int
        How often it was called.
    entries, cache_size : int
        Log-likelihoods in the cache, and how many there may be.
    ahead, ahead_used : int
        Clusters that were handed to it before they were needed, and how many of them have been needed since.
    """

    hits: int
    misses: int
    evaluations: int
    calls: int
    entries: int
    cache_size: int
    ahead: int = 0
    ahead_used: int = 0


class Evaluator:
    """Asks a black box for log p(c) of many clusters at once, and remembers.

    Parameters
    ----------
    score : callable
    cache_size : int
    temperature, offset : float
        As in :class:`~partita.BlackBox`.
    beside : callable, optional
        What is added to the function's answers: from clusters to one number each, like the function.
    """

    def __init__(
        self,
        score: Score,
        cache_size: int,
        temperature: float = 1.0,
        offset: float = 0.0,
        beside: Score | None = None,
    ) -> None:
        self.score, self.cache_size, self.beside = score, cache_size, beside
        self.temperature, self.offset = temperature, offset
        self.observations: dict[int, Any] = {}  # by their numbers, which are never used twice
        self.following = 0
        self.cache: OrderedDict[bytes, float] = OrderedDict()  # by member set; used last comes last
        self.unused: set[bytes] = set()  # in the cache and asked for ahead, but not needed so far
        self.hits = self.misses = self.evaluations = self.calls = self.ahead = self.ahead_used = 0

    def info(self) -> CacheInfo:
        """Counts, and the size of the cache."""
        counts = self.hits, self.misses, self.evaluations, self.calls
        return CacheInfo(*counts, len(self.cache), self.cache_size, self.ahead, self.ahead_used)

    def add(self, observations: Iterable[Any], after: int | None = None) -> Integers:
        """Numbers for further observations; those added since ``after`` are forgotten, if it is given.

        Numbers are given in ascending order and never again: what is remembered of observations that a failed
        call has added is not taken for what is true of others.
        """
        if after is not None:
            for number in range(after + 1, self.following):
                self.observations.pop(number, None)
        first = self.following
        for observation in observations:
            self.observations[self.following] = observation
            self.following += 1
        return np.arange(first, self.following)

    def forget(self, numbers: Integers) -> None:
        """Drop observations."""
        for number in numbers.tolist():
            del self.observations[number]

    def log_marginals(
        self,
        sets: Sequence[Integers],
        who: str | Sequence[str],
        remember: bool = True,
        ahead: Callable[[], Sets] | None = None,
    ) -> Floats:
        """log p(c) of clusters given by the numbers of their members, in any order, with one call at most.

        Parameters
        ----------
        sets : sequence of arrays
            None of them empty.
        who : str or sequence of str
            How an error calls what the clusters are tried for: all together, or each.
        remember : bool
            Whether to put new ones into the cache.
        ahead : callable, optional
            Tells what else to ask for, should there be a call: other sets by their keys.
        """
        members = ascending(sets)
        keys = [key_of(numbers) for numbers in members]
        result = np.empty(len(sets))
        missing: dict[bytes, list[int]] = {}
        for k, key in enumerate(keys):
            known = self.cache.get(key)
            if known is None:
                missing.setdefault(key, []).append(k)
            else:
                self.cache.move_to_end(key)
                result[k] = known
                if key in self.unused:
                    self.unused.remove(key)
                    self.ahead_used += 1
        if missing:
            chosen = [places[0] for places in missing.values()]
            names = who if isinstance(who, str) else [who[k] for k in chosen]
            others = {} if ahead is None else self._others(ahead(), missing)
            values, early = self._ask([members[k] for k in chosen], names, list(others.values()))
            for (key, places), value in zip(missing.items(), values.tolist(), strict=True):
                result[places] = value
                if remember:
                    self.cache[key] = value
            for key, value in zip(others, early.tolist(), strict=True):
                if value < np.inf:
                    self.cache[key] = value
                    self.unused.add(key)
            while len(self.cache) > self.cache_size:
                self.unused.discard(self.cache.popitem(last=False)[0])
        self.misses += len(missing)
        self.hits += len(sets) - len(missing)
        return result

    def _others(self, ahead: Sets, missing: Mapping[bytes, Any]) -> dict[bytes, Integers]:
        """What to ask for beside what is missing, as far as there is room in the cache."""
        room = max(self.cache_size - len(missing), 0)
        return dict(islice(((key, numbers) for key, numbers in ahead.items() if key not in missing), room))

    def _ask(
        self, members: list[Integers], who: str | Sequence[str], others: list[Integers]
    ) -> tuple[Floats, Floats]:
        """log p(c) of clusters, and of others that nothing depends on yet; of these, anything."""
        whole = who if isinstance(who, str) else f"{who[0]} to {who[-1]}"
        n, values = len(members), None
        if others:
            self.ahead += len(others)
            try:
                values = self._call([*members, *others], whole)
            except Exception:  # perhaps it is for those others, or for their number
                values = None
        if values is None:
            values = np.append(self._call(members, whole), np.full(len(others), np.nan))
        bad = np.flatnonzero(~(values[:n] < np.inf))
        if len(bad):
            name = who if isinstance(who, str) else who[bad[0]]
            raise ValueError(
                f"{name}: score returned {values[bad[0]]} for a cluster of {len(members[bad[0]])}; "
                "logarithms must be below infinity"
            )
        return values[:n], values[n:]

    def _call(self, members: list[Integers], who: str) -> Floats:
        """log p(c), or what else the function says where that makes no sense, or an error."""
        clusters = [[self.observations[number] for number in numbers.tolist()] for numbers in members]
        self.calls += 1
        self.evaluations += len(clusters)
        try:
            answer = self.score(clusters)
        except Exception as error:
            error.add_note(f"{who}: score failed for {len(clusters)} clusters")
            raise
        try:
            values = np.asarray(answer, np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{who}: score must return one number a cluster: {error}") from error
        if values.shape != (len(clusters),):
            raise ValueError(
                f"{who}: score must return one number a cluster, shape ({len(clusters)},), "
                f"got shape {values.shape}"
            )
        values = values / self.temperature + self.offset
        return values if self.beside is None else values + self.beside(clusters)


def key_of(members: Integers) -> bytes:
    """What a member set is remembered by; its numbers must ascend."""
    return blake2b(members.tobytes(), digest_size=16).digest()


def ascending(sets: Sequence[Integers]) -> list[Integers]:
    """Each of many sets in ascending order."""
    if not len(sets):
        return []
    ends = np.cumsum([len(numbers) for numbers in sets])
    numbers = np.concatenate(sets)
    numbers = numbers[np.lexsort((numbers, np.repeat(np.arange(len(sets)), np.diff(ends, prepend=0))))]
    return [numbers[start:end] for start, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)]
