"""Scoring by a black box: log p(c) of member sets, asked for many at once.

A black box knows nothing but who is together. Its observations have numbers, by which the
:class:`~partita.models.scoring.evaluator.Evaluator` remembers what was said of each member set; of clusters in use
the log p(c) is noted beside them, so it is never asked for again. With a surrogate the rows of statistics are the
surrogate's, and keep up with the clusters here.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from partita._core.typing import Floats, Integers
from partita.models.black_box import BlackBox
from partita.models.scoring.contract import Clusters, Scorer, gains_from
from partita.models.scoring.evaluator import Evaluator


@dataclass(frozen=True)
class Batch:
    """Observations of a black box, from outside or as they are stored."""

    data: Floats  # as the surrogate has encoded them
    observations: Sequence[Any] = ()  # what the black box sees, where they have no numbers yet
    numbers: Integers | None = None  # the evaluator's names for them

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, k: int | slice) -> Batch:
        """Observation ``k`` of a batch from outside, or several."""
        observations = self.observations[k] if isinstance(k, slice) else [self.observations[k]]
        return Batch(self.data[k], observations)


class Asker:
    """Gets a scorer its answers: from the evaluator, when they are needed."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator = evaluator

    def joined(self, sets: list[Integers], ids: Integers, data: Floats, who: str, remember: bool) -> Floats:
        """log p(c) of an observation with each of the clusters ``ids``."""
        return self.evaluator.log_marginals(sets, who, remember)

    def left(self, sets: list[Integers], ids: Integers, x: int, before: Floats, who: str) -> Floats:
        """log p(c) of clusters that ``x`` has left; ``before`` they were such with it."""
        return self.evaluator.log_marginals(sets, who)


class BlackBoxScorer(Scorer):
    """A black box, and its surrogate if there is one.

    Parameters
    ----------
    model : BlackBox
    surrogate : Scorer, optional
    evaluator : Evaluator, optional
        One that other scorers share, with what it remembers; else one that begins with nothing.
    """

    model: BlackBox

    def __init__(
        self, model: BlackBox, surrogate: Scorer | None = None, evaluator: Evaluator | None = None
    ) -> None:
        self.model, self.surrogate = model, surrogate
        self.evaluator = model.evaluator() if evaluator is None else evaluator
        self.asker = Asker(self.evaluator)
        self.width = 0 if surrogate is None else surrogate.width
        self.numbers: Integers = np.empty(0, np.int64)  # of the observations, for the evaluator
        self._weighed: tuple[Integers, Floats] = (np.empty(0, np.int64), np.empty(0))
        self._unknown: set[int] = (
            set()
        )  # clusters that have lost a member, to be asked for with what comes next

    def fresh(self) -> Self:
        surrogate = None if self.surrogate is None else self.surrogate.fresh()
        return type(self)(self.model, surrogate, self.evaluator)

    def __getstate__(self) -> dict[str, Any]:
        own = {"surrogate": copy.copy(self.surrogate), "_unknown": set(self._unknown)}
        return self.__dict__ | own

    # ------------------------------------------------------------------ observations

    def encode(self, X: Any) -> Batch:
        if self.surrogate is None:
            return Batch(np.empty((len(X), 0)), rows_of(X))
        data = self.surrogate.encode(X)
        if self.surrogate.family is None:  # a compiled one has done so
            self.surrogate.check(data, "surrogate")
        return Batch(data, rows_of(X))

    def data_of(self, encoded: Batch) -> Floats:
        return encoded.data

    def store(self, encoded: Batch, first: int) -> None:
        numbers = encoded.numbers
        if numbers is None:
            last = int(self.numbers[first - 1]) if first else -1
            numbers = self.evaluator.add(encoded.observations, after=last)
        self.numbers = np.concatenate([self.numbers[:first], numbers])

    def stored(self, data: Floats, x: Any) -> Batch:
        return Batch(data[x], numbers=self.numbers[x])

    def observation(self, x: int) -> Any:
        """What the black box sees of a stored observation."""
        return self.evaluator.observations[int(self.numbers[x])]

    def check(self, encoded: Batch, what: str = "model") -> None:
        """For stored observations: all are asked for, alone."""
        names = [f"row {x}" for x in range(len(self.numbers))]
        alone = self.evaluator.log_marginals([self.numbers[x : x + 1] for x in range(len(names))], names)
        if (alone == -np.inf).any():
            row = int(np.argmax(alone == -np.inf))
            raise ValueError(f"row {row}: impossible under the {what}, even as a cluster of its own")

    # ------------------------------------------------------------------ clusters

    def start(self, clusters: Clusters) -> None:
        if self.surrogate is not None:
            self.surrogate.start(clusters)

    def _sets(self, members: list[Integers]) -> list[Integers]:
        return [self.numbers[its_members] for its_members in members]

    def fill_rows(self, clusters: Clusters, ids: Integers, members: list[Integers], who: str) -> None:
        if self.surrogate is not None:
            self.surrogate.fill_rows(clusters, ids, members, who)

    def fill(self, clusters: Clusters, ids: Integers, members: list[Integers], who: str) -> Floats:
        self.fill_rows(clusters, ids, members, who)
        self._unknown -= set(np.asarray(ids).tolist())
        return self.evaluator.log_marginals(self._sets(members), who)

    def log_likelihood(self, clusters: Clusters, ids: Integers, who: str) -> Floats:
        self._with_unknown(clusters, [], who)
        return clusters.log_p(ids)

    def _with_unknown(self, clusters: Clusters, sets: list[Integers], who: str) -> Floats:
        """log p(c) of these sets, and of all clusters that are not known; one call at most."""
        if not self._unknown:
            return self.evaluator.log_marginals(sets, who) if sets else np.empty(0)
        unknown = np.array(sorted(self._unknown), np.int64)
        found = self.evaluator.log_marginals([*self._sets(clusters.members(unknown)), *sets], who)
        clusters.note(unknown, found[: len(unknown)])
        self._unknown.clear()
        return found[len(unknown) :]

    def gains(self, clusters: Clusters, ids: Integers, row: Batch, who: str) -> Floats:
        passing = row.numbers is None  # a row to predict, which is not to stay
        x = self.evaluator.add(row.observations) if row.numbers is None else np.atleast_1d(row.numbers)
        try:
            sets = self.joined_sets(clusters, ids, x)
            if self._unknown:
                after = self._with_unknown(clusters, sets, who)
            else:
                after = self.asker.joined(sets, ids, row.data, who, not passing)
        finally:
            if passing:
                self.evaluator.forget(x)
        return self.gains_given(clusters, ids, after)

    def gains_given(self, clusters: Clusters, ids: Integers, after: Floats) -> Floats:
        """Gains, where log p(c ∪ {x}) is known."""
        self._weighed = ids, after
        return gains_from(clusters.sizes[ids], clusters.log_p(ids), after)

    def joined_sets(self, clusters: Clusters, ids: Integers, x: Integers) -> list[Integers]:
        """Observation ``x``, by its number, with each of some clusters; alone with the empty one."""
        members = clusters.members(ids)
        numbers, ends = self.numbers[np.concatenate(members)], np.cumsum([len(held) for held in members])
        sets = np.split(np.insert(numbers, ends, x), (ends + np.arange(1, len(ends) + 1))[:-1])
        if (numbers == x).any():
            # Where x is asked about clusters that hold it, to find its neighbours, it counts once.
            sets = [np.unique(numbers) for numbers in sets]
        return sets

    def grow(self, clusters: Clusters, children: Integers, parents: Integers, x: int, who: str) -> None:
        if self.surrogate is not None:
            self.surrogate.grow(clusters, children, parents, x, who)
        ids, after = self._weighed
        of_cluster = np.empty(len(clusters.sizes))
        of_cluster[ids] = after
        clusters.note(children, of_cluster[parents])
        self._unknown -= set(np.asarray(children).tolist())

    def shrink(self, clusters: Clusters, ids: Integers, x: int, who: str) -> None:
        if self.surrogate is not None:
            self.surrogate.shrink(clusters, ids, x, who)
        self._unknown |= {c for c in np.asarray(ids).tolist() if clusters.sizes[c] > 0}
        self._unknown -= {c for c in np.asarray(ids).tolist() if clusters.sizes[c] == 0}

    def left(self, clusters: Clusters, ids: Integers, x: int, before: Floats, who: str) -> Floats:
        """log p(c) of clusters that ``x`` has just left, through the asker; ``before`` they were such with it."""
        after = self.asker.left(self._sets(clusters.members(ids)), ids, x, before, who)
        self._unknown -= set(ids.tolist())
        return after

    def unions(self, clusters: Clusters, first: Integers, second: Integers, who: str) -> Floats:
        pairs = zip(clusters.members(first), clusters.members(second), strict=True)
        return self._with_unknown(clusters, self._sets([np.concatenate(pair) for pair in pairs]), who)

    def unite(self, clusters: Clusters, first: int, second: int, log_p: float) -> None:
        clusters.note(np.array([first]), np.array([log_p]))


def rows_of(X: Any) -> list[Any]:
    """Validated observations one by one, those of an array as rows of a copy that nobody changes."""
    if not isinstance(X, np.ndarray):
        return list(X)
    X = X.copy()
    X.setflags(write=False)
    return list(X)
