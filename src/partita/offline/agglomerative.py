"""Agglomerative clustering: full, and by batches of pairs drawn at random."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np

from partita._core.checks import whole
from partita._core.progress import steps
from partita._core.typing import Floats, Integers
from partita.models.base import Model
from partita.offline.agglomeration import CompiledAgglomeration, GeneralAgglomeration, agglomeration
from partita.offline.base import (
    Offline,
    Recorder,
    check_max_time,
    is_automatic,
    learnt_log_alpha,
    log_alpha_of,
)

MOMENTS = 100  # to record in a history, about
DRAWN = 100_000  # pairs to draw at once, at most
ROUNDS = 10  # of clustering and learning the concentration, at most
STAYS = 0.01  # in its logarithm: what counts as no change

Merges = tuple[Integers, Floats]


class Agglomerative(Offline):
    """Merge the pair of clusters that gains most, from singletons, until no merge gains.

    The gain is the log-ratio of the posterior density with the two merged to that with them apart under a
    Dirichlet-process mixture (Banfield and Raftery 1993; paper, section 4 and appendix "Offline Algorithms").

    Parameters
    ----------
    model : Model, optional
        How likely a cluster is. None stands for a :class:`Gaussian` whose prior is fitted to the data.
    alpha : float or "auto"
        Concentration of the Dirichlet process: the larger, the more clusters. "auto" learns it by empirical Bayes,
        clustering and learning in turn until it stays, which takes a few times as long.
    batch_size : int, optional
        The paper's approximation: each iteration evaluates so many pairs, drawn at random, and merges the
        best of them. By default all pairs are evaluated once and their gains kept, which takes memory for n²
        numbers, and each merge evaluates only the pairs with the new cluster.
    patience : int
        With ``batch_size``: stop after so many iterations in a row without a merge. It stops earlier where
        all pairs have been tried at once.
    max_time : float, optional
        Stop when so many seconds have passed; the first evaluation of all pairs is not interrupted.
    keep_labels : bool
        Keep the clustering at each moment of ``history_``.
    random_state : int, RandomState or None
        Seeds the batches.

    Attributes
    ----------
    labels_ : array of shape (n,)
        Clusters, numbered in order of first appearance.
    history_ : History
        Time, score and number of clusters at the start, and about every hundredth of the way.
    children_ : array of shape (n_merges, 2)
        The nodes of each merge, as in :class:`sklearn.cluster.AgglomerativeClustering`: values below n are
        observations, n + k is what the k-th merge has made.
    gains_ : array of shape (n_merges,)
        By how much each merge has raised the log-density.
    model_ : Model
    alpha_ : float
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np, partita as pt
    >>> X = np.array([[0.0], [0.2], [7.0], [0.1], [7.1]])
    >>> agglomerative = pt.Agglomerative(pt.Gaussian(rate=0.1), alpha=1.0).fit(X)
    >>> agglomerative.labels_
    array([0, 0, 1, 0, 1])
    >>> agglomerative.children_
    array([[2, 4],
           [1, 3],
           [0, 6]])
    """

    children_: Integers
    gains_: Floats

    def __init__(
        self,
        model: Model | None = None,
        alpha: float | str = 1.0,
        *,
        batch_size: int | None = None,
        patience: int = 100,
        max_time: float | None = None,
        keep_labels: bool = False,
        random_state: Any = None,
    ) -> None:
        self.model = model
        self.alpha = alpha
        self.batch_size = batch_size
        self.patience = patience
        self.max_time = max_time
        self.keep_labels = keep_labels
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, progress: bool = False) -> Self:
        """Cluster the rows of ``X``.

        A call that raises or is interrupted has changed nothing.

        Parameters
        ----------
        X : array of shape (n, d)
        y : ignored
        progress : bool
            Show a progress bar.
        """
        log_alpha, patience = log_alpha_of(self.alpha), whole("patience", self.patience, 1)
        batch_size = None if self.batch_size is None else whole("batch_size", self.batch_size, 1)
        check_max_time(self.max_time)
        with self._same_attributes_if_it_fails():
            X = self._validated(X, reset=True)
            model = self._own_model(X)
            seed = self._seed()
            for _ in range(ROUNDS if is_automatic(self.alpha) else 1):
                recorder, merged, gains = self._merge(
                    model, X, log_alpha, batch_size, patience, seed, progress
                )
                before = log_alpha
                if is_automatic(self.alpha):
                    log_alpha = learnt_log_alpha(len(X) - len(gains), len(X))
                if abs(log_alpha - before) < STAYS:
                    break
            self._finish(model, recorder, before)
            self.children_, self.gains_ = as_tree(merged, len(X)), gains
        return self

    def _merge(
        self,
        model: Model,
        X: Any,
        log_alpha: float,
        batch_size: int | None,
        patience: int,
        seed: int,
        progress: bool,
    ) -> tuple[Recorder, Integers, Floats]:
        """Merge until no merge gains, or time is out: what was recorded, the merges and their gains."""
        recorder = Recorder(self.keep_labels, self.max_time)
        work = agglomeration(model, X, log_alpha)
        recorder.record(density(work), work.partition)
        n_pairs = max(len(X) * (len(X) - 1) // 2, 1)
        rounds = full(work) if batch_size is None else batched(work, min(batch_size, n_pairs), patience, seed)
        merged, gains = [np.empty((0, 2), np.int64)], [np.empty(0)]
        for some, their_gains in steps(rounds, "merging", progress):
            merged.append(some)
            gains.append(their_gains)
            recorder.record(density(work), work.partition)
            if recorder.out_of_time:
                break
        return recorder, np.concatenate(merged), np.concatenate(gains)


def density(work: CompiledAgglomeration | GeneralAgglomeration) -> float:
    """Σ_c [log α + lgamma(|c|) + log p(c)]."""
    used = work.partition.used[1:]
    return float(len(used) * work.log_alpha + work.score[used].sum())


def full(work: CompiledAgglomeration | GeneralAgglomeration) -> Iterator[Merges]:
    """Merge the best of all pairs until none gains, some merges at a time."""
    most = max(len(work.partition.label) // MOMENTS, 1)
    pairs = work.all_pairs()
    some = work.merge_best(pairs, most)
    while len(some[0]):
        yield some
        some = work.merge_best(pairs, most)


def batched(
    work: CompiledAgglomeration | GeneralAgglomeration, batch_size: int, patience: int, seed: int
) -> Iterator[Merges]:
    """Merge the best of a random batch of pairs until none has gained for a while, some batches at a time."""
    rng, idle = np.random.default_rng(seed), np.zeros(1, np.int64)
    iterations = max(min(len(work.partition.label) // MOMENTS, DRAWN // batch_size), 1)
    while idle[0] < patience:
        yield work.merge_best_of_batch(rng.random((iterations, batch_size, 2)), idle, patience)


def as_tree(merged: Integers, n: int) -> Integers:
    """Merges of clusters, given by their ids, as merges of a tree's nodes."""
    node, children = np.arange(-1, n), np.empty_like(merged)
    for k, (first, second) in enumerate(merged):
        children[k] = node[first], node[second]
        node[first] = n + k
    return children
