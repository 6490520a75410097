"""A black box's clusters for the offline methods: member sets, and log p(c) of those in use."""

from __future__ import annotations

from typing import Any

import numpy as np

from partita._core.kernel import kernel
from partita._core.typing import Floats, Integers
from partita.models.black_box import BlackBox
from partita.offline.partition import Partition


@kernel
def members_of(partition, ids):
    """The members of clusters, one after the other."""
    n = 0
    for c in ids:
        n += partition.size[c]
    members, at = np.empty(n, np.int64), 0
    for c in ids:
        y = partition.head[c]
        for _ in range(partition.size[c]):
            members[at] = y
            at += 1
            y = partition.after[y]
    return members


class MemberSets:
    """A black box: nothing but who is together.

    A cluster that has lost a member is scored when it is next asked for, in one call with all else.
    """

    def __init__(self, model: BlackBox, X: Any, partition: Partition) -> None:
        self.partition, self.evaluator = partition, model.evaluator()
        self.numbers = self.evaluator.add(X)
        n = len(X)
        self.marginal, self.joined = np.zeros(n + 1), np.zeros(n + 1)
        self.known = np.zeros(n + 1, bool)
        self.known[0] = True
        rows = [f"row {x}" for x in range(n)]
        alone = self.evaluator.log_marginals([self.numbers[x : x + 1] for x in range(n)], rows)
        if (alone == -np.inf).any():
            row = int(np.argmax(alone == -np.inf))
            raise ValueError(f"row {row}: impossible under the model, even as a cluster of its own")
        if (self.log_marginals() == -np.inf).any():
            row = int(np.argmax(self.marginal[partition.label] == -np.inf))
            raise ValueError(f"row {row}: its cluster in init is impossible under the model")

    def _members(self, ids: Integers) -> list[Integers]:
        members: Integers = self.numbers[members_of(self.partition, ids)]
        return np.split(members, np.cumsum(self.partition.size[ids])[:-1])

    def _score(self, sets: list[Integers], who: str) -> Floats:
        """log p(c) of these sets, after all clusters in use that are not known; one call at most."""
        used = self.partition.used
        unknown = used[~self.known[used]]
        first = self._members(unknown) if len(unknown) else []
        found = self.evaluator.log_marginals([*first, *sets], who)
        self.marginal[unknown], self.known[unknown] = found[: len(unknown)], True
        return found[len(unknown) :]

    def log_marginals(self) -> Floats:
        self._score([], "clusters")
        return self.marginal[self.partition.used[1:]]

    def gains(self, x: int, ids: Integers) -> Floats:
        sizes, number = self.partition.size[ids], self.numbers[x]
        sets = [np.append(members, number) for members in self._members(ids)]
        after = self._score(sets, f"row {x}")
        self.joined[ids] = after
        # As a surrogate it may rule a cluster out that the model has: nothing is proposed to join it.
        before = self.marginal[ids]
        gain = np.full(len(ids), -np.inf)
        np.subtract(after, before, out=gain, where=before > -np.inf)
        return gain + np.log(np.maximum(sizes, 1))

    def shrink(self, c: int, x: int) -> None:
        self.known[c] = False

    def grow(self, c: int, x: int) -> None:
        self.marginal[c] = self.joined[c if self.partition.size[c] > 1 else 0]
        self.known[c] = True

    def unions(self, first: Integers, second: Integers) -> Floats:
        pairs = zip(self._members(first), self._members(second), strict=True)
        return self._score([np.concatenate(pair) for pair in pairs], "merging")

    def unite(self, first: int, second: int, log_marginal: float) -> None:
        self.marginal[first] = log_marginal
