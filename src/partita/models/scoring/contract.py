"""One contract for all that scores clusters, kept in three ways.

A *scorer* answers for a model: log p(c) of clusters, what one more observation would add to each, and what becomes
of a cluster's row of statistics as observations come and go. There are three:

- :mod:`~partita.models.scoring.compiled`: a family of kernels, on rows that they keep up to date;
- :mod:`~partita.models.scoring.additive`: a user's model, from sums of statistics;
- :mod:`~partita.models.scoring.black_box`: a function of member sets, asked for many at once.

Samplers hold one each, and so does whoever else needs log p(c): surrogates, offline methods, calibration,
explanations, ``Model.log_likelihood``. Where clusters are kept is theirs to decide: a scorer is handed them with
every call, as :class:`Clusters`. Clusters have ids, 0 is the empty one, and to open a new cluster is to join it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol, Self

import numpy as np

from partita._core.typing import Floats, Integers


class Clusters(Protocol):
    """Clusters by their ids: a sampler's state, or a partition."""

    @property
    def data(self) -> Floats:
        """Observations as the scorer has encoded them, one a row."""

    @property
    def statistics(self) -> Floats:
        """What the scorer keeps of each cluster, one row an id."""

    @property
    def sizes(self) -> Integers:
        """How many members each id has."""

    def members(self, ids: Integers) -> list[Integers]:
        """The members of some clusters."""

    def log_p(self, ids: Integers) -> Floats:
        """log p(c) as it was noted last, for a scorer whose rows do not tell."""

    def note(self, ids: Integers, log_p: Floats) -> None:
        """Note log p(c), for clusters whose sizes are right."""


class Scorer(ABC):
    """What a model says of clusters.

    Attributes
    ----------
    model : Model
    family : named tuple or None
        Hyperparameters as kernels read them; None if the model is not compiled.
    surrogate : Scorer or None
        A cheaper one beside, whose rows the clusters' ``statistics`` then are.
    width : int
        Length of a cluster's row of statistics.
    """

    model: Any
    family: Any = None
    surrogate: Scorer | None = None
    width: int

    def __getstate__(self) -> dict[str, Any]:
        """For copies: each has its own tables, if there are any; the model is shared."""
        return self.__dict__.copy()

    def __setstate__(self, contents: dict[str, Any]) -> None:
        self.__dict__ = contents.copy()

    # ------------------------------------------------------------------ observations

    def encode(self, X: Any) -> Any:
        """Validated observations as they are stored; ValueError for one that the model has no place for."""
        return self.model.encode(X)

    def data_of(self, encoded: Any) -> Floats:
        """The numbers among what :meth:`encode` has returned."""
        data: Floats = encoded
        return data

    def refresh(self) -> None:
        """The model may know of more observations than it has encoded."""
        return

    def store(self, encoded: Any, first: int) -> None:
        """Observations from number ``first`` on are these, in place of any that a failed call has left."""
        return  # most scorers need no more than their numbers

    def stored(self, data: Floats, x: Any) -> Any:
        """One or several stored observations as :meth:`encode` has returned them."""
        return data[x]

    # ------------------------------------------------------------------ clusters

    def start(self, clusters: Clusters) -> None:
        """Write the row of the empty cluster."""
        return  # unless a scorer says otherwise it is zero

    @abstractmethod
    def check(self, encoded: Any, what: str = "model") -> None:
        """ValueError for the first observation that is impossible even as a cluster of its own."""

    @abstractmethod
    def fill_rows(self, clusters: Clusters, ids: Integers, members: list[Integers], who: str) -> None:
        """Write the rows of clusters from their members; sizes are right."""

    def fill(self, clusters: Clusters, ids: Integers, members: list[Integers], who: str) -> Floats:
        """:meth:`fill_rows`; returns log p(c)."""
        self.fill_rows(clusters, ids, members, who)
        return self.log_likelihood(clusters, ids, who)

    @abstractmethod
    def log_likelihood(self, clusters: Clusters, ids: Integers, who: str) -> Floats:
        """log p(c) of clusters whose rows are written."""

    @abstractmethod
    def gains(self, clusters: Clusters, ids: Integers, row: Any, who: str) -> Floats:
        """log|c| + log p(x | c) of clusters that do not hold the observation; log p(x) for the empty one.

        ``row`` is a single observation as :meth:`stored` or :meth:`encode` gives it; errors name ``who`` it is.
        """

    @abstractmethod
    def grow(self, clusters: Clusters, children: Integers, parents: Integers, x: int, who: str) -> None:
        """``x`` has made each child of its parent, after the :meth:`gains` of all parents; sizes are right."""

    @abstractmethod
    def shrink(self, clusters: Clusters, ids: Integers, x: int, who: str) -> None:
        """``x`` has left clusters; sizes are right."""

    def left(self, clusters: Clusters, ids: Integers, x: int, before: Floats, who: str) -> Floats:
        """log p(c) of clusters just after :meth:`shrink`; ``before`` they were such with ``x``."""
        return self.log_likelihood(clusters, ids, who)

    @abstractmethod
    def unions(self, clusters: Clusters, first: Integers, second: Integers, who: str) -> Floats:
        """log p(c) of the unions of many pairs of clusters."""

    @abstractmethod
    def unite(self, clusters: Clusters, first: int, second: int, log_p: float) -> None:
        """Cluster ``second`` is about to join ``first``, whose log p(c) :meth:`unions` has given."""

    @abstractmethod
    def fresh(self) -> Self:
        """Another scorer of the same model, for other clusters of the same observations."""


def gains_from(sizes: Integers, before: Floats, after: Floats) -> Floats:
    """log|c| + log p(c ∪ {x}) − log p(c), and −inf for a cluster that is itself impossible.

    A surrogate may rule a cluster out that the model has: nothing is proposed to join it.
    """
    gain = np.full(len(sizes), -np.inf)
    np.subtract(np.log(np.maximum(sizes, 1)) + after, before, out=gain, where=before > -np.inf)
    return gain
