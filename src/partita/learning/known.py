"""What is known of a sample before its clusters are learnt from: labels of some rows, answers about some pairs.

Rows that are known to be of one entity form a *group*. Groups with different labels are apart, and so are those
of which an answer says that they differ. A sampler is held to all of that with as few constraints as it takes:
those that its clustering breaks are added until it breaks none, which are far fewer than all pairs of labels.
"""

from __future__ import annotations

import operator
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from partita._core.checks import label_codes
from partita._core.typing import Integers

UNKNOWN = -1  # the label, or the group, of a row of which nothing is known


class Known:
    """Which rows are of one entity, and which are not.

    Parameters
    ----------
    group : int array
        Of each row; ``UNKNOWN`` if nothing is known of it.
    label : mapping from group to int
        Of those that have one.
    apart : set of pairs of groups
        Each both ways round.
    rows : list of int
        Those of which something is known: those of pairs first, in order, then those of labels, cluster by cluster.
    """

    def __init__(
        self, group: Integers, label: dict[int, int], apart: set[tuple[int, int]], rows: list[int]
    ) -> None:
        self.group, self.label, self.apart, self.rows = group, label, apart, rows

    @property
    def is_complete(self) -> bool:
        """Whether every row has a label."""
        return len(self.group) > 0 and all(group in self.label for group in self.group.tolist())

    @property
    def labels(self) -> Integers:
        """Of each row its label; ``UNKNOWN`` if it has none."""
        return np.array([self.label.get(group, UNKNOWN) for group in self.group.tolist()], np.int64)

    def among(self, rows: list[int]) -> Known:
        """What is known of some rows, by their places in the list."""
        group = self.group[rows]
        return Known(group, self.label, self.apart, np.flatnonzero(group != UNKNOWN).tolist())

    def are_apart(self, first: int, second: int) -> bool:
        """Whether two groups are of different entities."""
        mine, other = self.label.get(first, UNKNOWN), self.label.get(second, UNKNOWN)
        return (first, second) in self.apart or (UNKNOWN not in (mine, other) and mine != other)

    def broken(self, found: Integers) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """Pairs of rows that clusters divide though they are of one entity; and pairs that they wrongly join."""
        together: list[tuple[int, int]] = []
        last: dict[int, int] = {}  # row of each group
        inside: dict[int, dict[int, int]] = {}  # of each cluster: its groups, with a row of each
        for row in sorted(self.rows):
            group = int(self.group[row])
            if group in last and found[last[group]] != found[row]:
                together.append((last[group], row))
            last[group] = row
            inside.setdefault(int(found[row]), {}).setdefault(group, row)
        apart = [
            (groups[first], groups[second])
            for groups in inside.values()
            for first, second in combinations(groups, 2)
            if self.are_apart(first, second)
        ]
        return together, apart

    def clusters(self, sampler: Any, progress: Any = False) -> Integers:
        """The clusters of a sampler that is refined, and constrained until they are as is known.

        ``progress`` is that of :meth:`SplitSMC.refine`.
        """
        together, apart = [], []
        rounds = (0, 1, 1) if self.rows else (1,)  # once more, for what constraints have joined or divided
        for sweeps in rounds:
            sampler.refine(sweeps, progress=progress)
            while any(more := self.broken(sampler.labels_)):
                together += more[0]
                apart += more[1]
                sampler.constrain(together, apart)
        found: Integers = sampler.labels_
        return found


def known_of(n: int, labels: Any = None, pairs: Any = None) -> Known:
    """What labels and answers say of n rows, as in :meth:`partita.Record.fit_prior`; ValueError if it cannot be."""
    codes = label_codes_of(n, labels)
    answers = checked_answers(n, pairs)
    labelled = np.flatnonzero(codes != UNKNOWN)
    order = labelled[np.argsort(codes[labelled], kind="stable")]
    chained = [(i, j) for i, j in pairwise(order.tolist()) if codes[i] == codes[j]]
    group = joined(n, chained + [(i, j) for i, j, same in answers if same])
    at_random = np.concatenate(clusters_at_random(order, codes, np.random.default_rng(0)))
    rows = [row for i, j, _ in answers for row in (i, j)] + at_random.tolist()
    rows = list(dict.fromkeys(rows))
    known, label = np.full(n, UNKNOWN), dict[int, int]()
    known[rows] = group[rows]
    first: dict[int, int] = {}  # row of each group that has a label
    for row in labelled.tolist():
        other = first.setdefault(int(group[row]), row)
        if codes[other] != codes[row]:
            raise ValueError(
                f"rows {other} and {row} have different labels, but pairs say, directly or through other rows, that "
                "they are of one entity"
            )
        label[int(group[row])] = int(codes[row])
    apart: set[tuple[int, int]] = set()
    for i, j in ((i, j) for i, j, same in answers if not same):
        one, other = int(group[i]), int(group[j])
        if one == other:
            raise ValueError(
                f"rows {i} and {j} are different by pairs, but of one entity by other pairs or labels, directly or "
                "through other rows"
            )
        apart |= {(one, other), (other, one)}
    return Known(known, label, apart, rows)


def label_codes_of(n: int, labels: Any) -> Integers:
    """Labels as integers, ``UNKNOWN`` for a row whose label is −1, None or NaN."""
    codes = np.full(n, UNKNOWN)
    if labels is None:
        return codes
    given = labels if hasattr(labels, "dtype") else np.array(labels, object)  # for else NaN may become "nan"
    values = np.asarray(given).tolist()
    if len(values) != n:
        raise ValueError(f"labels has {len(values)} entries, but there are {n} fragments")
    rows = [row for row, value in enumerate(values) if not is_missing(value)]
    if rows:
        codes[rows] = label_codes("labels", [values[row] for row in rows])
    return codes


def is_missing(value: Any) -> bool:
    """Whether a label says that none is known."""
    return value is None or bool(value != value) or value == UNKNOWN


def checked_answers(n: int, pairs: Any) -> list[tuple[int, int, bool]]:
    """Answers, each whether two different rows are of one entity."""
    found = []
    for k, pair in enumerate([] if pairs is None else pairs):
        try:
            i, j, same = pair
            i, j = operator.index(i), operator.index(j)
        except (TypeError, ValueError):
            raise ValueError(f"pairs: item {k} is {pair!r}, not (row, row, True or False)") from None
        if not (0 <= i < n and 0 <= j < n and i != j):
            raise ValueError(f"pairs: item {k}, {pair!r}, has no two different rows out of {n}")
        if not isinstance(same, bool | np.bool_):
            raise ValueError(f"pairs: item {k}, {pair!r}, must say True or False of rows {i} and {j}")
        found.append((i, j, bool(same)))
    return found


def joined(n: int, edges: list[tuple[int, int]]) -> Integers:
    """Of each of n rows the number of its component."""
    first, second = np.array(edges, np.int64).reshape(-1, 2).T
    graph = coo_array((np.ones(len(edges)), (first, second)), shape=(n, n))
    found: Integers = connected_components(graph, directed=False)[1].astype(np.int64)
    return found


def clusters_at_random(order: Integers, codes: Integers, rng: np.random.Generator) -> list[Integers]:
    """The clusters of rows that are sorted by their codes, in random order."""
    clusters = np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)
    return [clusters[c] for c in rng.permutation(len(clusters)).tolist()]


def whole_clusters(codes: Integers, most: int, rng: np.random.Generator) -> Integers:
    """Rows of whole clusters drawn at random, ``most`` at most unless the first has more."""
    rows: list[int] = []
    for cluster in clusters_at_random(np.argsort(codes, kind="stable"), codes, rng):
        if not rows or len(rows) + len(cluster) <= most:
            rows += cluster.tolist()
    return np.array(sorted(rows))
