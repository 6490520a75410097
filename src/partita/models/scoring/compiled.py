"""Scoring by a compiled model: rows of statistics that the kernels of its family keep up to date.

The samplers' own loops are compiled and call the family directly; what stands here is for the loops that run in
Python, beside a model that is not compiled, and for whoever needs log p(c).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import gammaln

from partita._core.kernel import kernel
from partita._core.typing import Floats, Integers
from partita.models.base import CompiledModel
from partita.models.scoring.contract import Clusters, Scorer
from partita.models.scoring.families import begin, extend, gains, join, log_marginal, reduce


class Tables(NamedTuple):
    """Tables that a family owns, as plain arrays; the rest of it is in the model."""

    pool: Integers
    sums: Floats
    free: Integers


class CompiledScorer(Scorer):
    """A compiled model.

    A family may own *tables*, a struct into which its rows of statistics point and that kernels change in place
    (:mod:`partita.models.records.tables`). They belong to one set of clusters, so a copy of the scorer has copies.

    Parameters
    ----------
    model : CompiledModel
    n_features : int
        Width of the data before they are encoded; 1 where they are not rows of numbers.
    """

    model: CompiledModel

    def __init__(self, model: CompiledModel, n_features: int) -> None:
        self.model, self.n_features = model, n_features
        self.family, self.width = model.family(n_features), model.width(n_features)

    @property
    def has_tables(self) -> bool:
        """Whether the family owns tables."""
        return hasattr(self.family, "tables")

    def fresh(self) -> Self:
        return type(self)(self.model, self.n_features)

    def __getstate__(self) -> dict[str, Any]:
        if not self.has_tables:
            return self.__dict__.copy()
        return self.__dict__ | {"family": Tables(*self.model.kept_tables(self.family))}

    def __setstate__(self, contents: dict[str, Any]) -> None:
        self.__dict__ = contents.copy()
        if isinstance(self.family, Tables):
            self.family = self.model.with_tables(self.model.family(self.n_features), *self.family)

    # ------------------------------------------------------------------ observations

    def encode(self, X: Any) -> Floats:
        encoded: Floats = self.model.encode(X)
        self.refresh()
        self.check(encoded)
        return encoded

    def refresh(self) -> None:
        self.family = self.model.after_encoding(self.family)

    def check(self, encoded: Floats, what: str = "model") -> None:
        if self.model.always_possible:
            return
        bad = first_impossible(self.family, self.width, self.n_features, encoded)
        if bad >= 0:
            raise ValueError(
                f"row {bad}: its density under the model is not finite; rescale the data or fit the model's "
                "prior to them"
            )

    # ------------------------------------------------------------------ clusters

    def start(self, clusters: Clusters) -> None:
        write_empty(self.family, clusters.statistics, self.n_features)

    def fill_rows(self, clusters: Clusters, ids: Integers, members: list[Integers], who: str) -> None:
        self.scores(clusters, ids, members)

    def fill(self, clusters: Clusters, ids: Integers, members: list[Integers], who: str) -> Floats:
        sizes = np.array([len(its_members) for its_members in members])
        return self.scores(clusters, ids, members) - gammaln(sizes)

    def scores(self, clusters: Clusters, ids: Integers, members: list[Integers]) -> Floats:
        """Write the rows of clusters from their members; returns lgamma(|c|) + log p(c), a gain at a time."""
        if not len(ids):
            return np.empty(0)
        ends = np.cumsum([len(its_members) for its_members in members])
        joined = np.concatenate(members)
        return write_rows(self.family, clusters.statistics, np.asarray(ids), ends, joined, clusters.data)

    def log_likelihood(self, clusters: Clusters, ids: Integers, who: str) -> Floats:
        sizes = np.ascontiguousarray(clusters.sizes[ids], np.int64)
        return read_log_p(self.family, clusters.statistics, np.asarray(ids), sizes, clusters.data.shape[1])

    def gains(self, clusters: Clusters, ids: Integers, row: Floats, who: str) -> Floats:
        return read_gains(self.family, clusters.statistics, ids, np.ascontiguousarray(row[None]))[0]

    def grow(self, clusters: Clusters, children: Integers, parents: Integers, x: int, who: str) -> None:
        sizes = np.ascontiguousarray(clusters.sizes[children], np.int64)
        extend_rows(self.family, clusters.statistics, children, parents, sizes, clusters.data, x)

    def shrink(self, clusters: Clusters, ids: Integers, x: int, who: str) -> None:
        sizes = np.ascontiguousarray(clusters.sizes[ids], np.int64)
        lost = reduce_rows(self.family, clusters.statistics, np.asarray(ids), sizes, clusters.data, x)
        if len(lost):
            self.fill_rows(clusters, lost, clusters.members(lost), who)

    def unions(self, clusters: Clusters, first: Integers, second: Integers, who: str) -> Floats:
        """The last row of statistics must be free to work on."""
        sizes = np.ascontiguousarray(clusters.sizes, np.int64)
        pair = np.asarray(first, np.int64), np.asarray(second, np.int64)
        return join_rows(self.family, clusters.statistics, *pair, sizes, clusters.data.shape[1])

    def unite(self, clusters: Clusters, first: int, second: int, log_p: float) -> None:
        sizes = np.ascontiguousarray(clusters.sizes, np.int64)
        join_row(self.family, clusters.statistics, first, second, sizes, clusters.data.shape[1])


# ---------------------------------------------------------------------- kernels


@kernel
def first_impossible(family, width, n_features, data):
    """The first observation whose density under the prior is not finite; −1 if there is none."""
    statistics, gain, empty = np.zeros((1, width)), np.empty(1), np.zeros(1, np.int64)
    begin(family, statistics, n_features)
    for x in range(data.shape[0]):
        gains(family, statistics, empty, np.int64(0), np.int64(1), data, x, gain)
        if not math.isfinite(gain[0]):
            return x
    return -1


@kernel
def write_empty(family, statistics, n_features):
    """The family's ``begin``."""
    begin(family, statistics, n_features)


@kernel
def write_rows(family, statistics, ids, ends, members, data):
    """Rows of clusters from their members, one cluster's after the other's; returns lgamma(|c|) + log p(c)."""
    scores, gain, of = np.zeros(ids.shape[0]), np.empty(statistics.shape[0]), np.empty(1, np.int64)
    start = np.int64(0)
    for k in range(ids.shape[0]):
        of[0] = 0
        for at in range(start, ends[k]):
            gains(family, statistics, of, np.int64(0), np.int64(1), data, members[at], gain)
            scores[k] += gain[of[0]]
            extend(family, statistics, ids[k], of[0], at - start, data, members[at])
            of[0] = ids[k]
        start = ends[k]
    return scores


@kernel
def read_log_p(family, statistics, ids, sizes, d):
    """The family's ``log_marginal`` of many clusters."""
    found = np.empty(ids.shape[0])
    for k in range(ids.shape[0]):
        found[k] = log_marginal(family, statistics, ids[k], sizes[k], d)
    return found


@kernel
def read_gains(family, statistics, ids, rows):
    """The family's ``gains`` of rows of data, one row each."""
    out, found = np.empty(statistics.shape[0]), np.empty((rows.shape[0], ids.shape[0]))
    for x in range(rows.shape[0]):
        gains(family, statistics, ids, np.int64(0), np.int64(ids.shape[0]), rows, np.int64(x), out)
        for k in range(ids.shape[0]):
            found[x, k] = out[ids[k]]
    return found


@kernel
def extend_rows(family, statistics, children, parents, sizes, data, x):
    """The family's ``extend`` of many clusters; the sizes are the children's."""
    for k in range(children.shape[0]):
        extend(family, statistics, children[k], parents[k], sizes[k] - 1, data, x)


@kernel
def reduce_rows(family, statistics, ids, sizes, data, x):
    """The family's ``reduce`` of many clusters, which have ``sizes`` now; returns those to be built anew."""
    lost, count = np.empty(ids.shape[0], np.int64), 0
    for k in range(ids.shape[0]):
        if sizes[k] > 0 and not reduce(family, statistics, ids[k], ids[k], sizes[k] + 1, data, x):
            lost[count] = ids[k]
            count += 1
    return lost[:count]


@kernel
def join_rows(family, statistics, first, second, sizes, d):
    """log p(c) of the unions of pairs."""
    found, spare = np.empty(first.shape[0]), np.int64(statistics.shape[0] - 1)
    for k in range(first.shape[0]):
        a, b = first[k], second[k]
        join(family, statistics, spare, a, b, sizes[a], sizes[b], d)
        found[k] = log_marginal(family, statistics, spare, sizes[a] + sizes[b], d)
    return found


@kernel
def join_row(family, statistics, first, second, sizes, d):
    """Let one cluster join another."""
    join(family, statistics, first, first, second, sizes[first], sizes[second], d)
