"""The merge loop below :class:`~partita.offline.agglomerative.Agglomerative`.

With a compiled model the loop is a kernel; with others it runs here, one vectorised call of the model a
merge. Both start from singletons, and write merges as pairs of ids, the one that stays first, with their
gains.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaln

from partita._core.kernel import inner, kernel
from partita._core.typing import Floats, Integers
from partita.models.base import CompiledModel, Model
from partita.models.scoring.families import join, log_marginal
from partita.models.scoring.partition import new_partition
from partita.models.scoring.scored import ScoredPartition
from partita.offline import pairs as pairs_of
from partita.offline.pairs import (
    Pairs,
    best_candidate,
    best_pair,
    candidates,
    n_pairs,
    no_pairs,
    scan,
    settle,
    unite,
)
from partita.offline.sweeps import build, new_rows


@inner
def score_of(rows, c, size):
    """lgamma(|c|) + log p(c)."""
    d = rows.data.shape[1]
    return math.lgamma(size) + log_marginal(rows.family, rows.statistics, c, size, d)


@inner
def gain_of(rows, partition, score, log_alpha, i, j):
    """Log-ratio of the posterior with two clusters merged to that with them apart; uses the last row."""
    size_i, size_j, spare = partition.size[i], partition.size[j], np.int64(rows.statistics.shape[0] - 1)
    join(rows.family, rows.statistics, spare, i, j, size_i, size_j, rows.data.shape[1])
    return score_of(rows, spare, size_i + size_j) - (score[i] + score[j]) - log_alpha


@inner
def absorb(rows, partition, score, i, j):
    """Merge cluster ``j`` into cluster ``i``."""
    join(rows.family, rows.statistics, i, i, j, partition.size[i], partition.size[j], rows.data.shape[1])
    unite(partition, i, j)
    score[i] = score_of(rows, i, partition.size[i])


@kernel
def start_scores(rows, partition, score):
    """Score all singletons."""
    for c in range(1, partition.n_clusters[0] + 1):
        score[c] = score_of(rows, c, partition.size[c])


@kernel
def start_pairs(rows, partition, score, log_alpha, pairs):
    """Evaluate all pairs of singletons."""
    for i in range(1, partition.n_clusters[0] + 1):
        for j in range(1, i):
            gain = gain_of(rows, partition, score, log_alpha, j, i)
            pairs.gain[i, j] = gain
            pairs.gain[j, i] = gain
    for i in range(1, partition.n_clusters[0] + 1):
        scan(pairs, partition, i)


@kernel
def merge_best(rows, partition, score, log_alpha, pairs, merged, gains):
    """Merge the best pair again and again, as often as there is room to write; returns how often."""
    for t in range(gains.shape[0]):
        i, j = best_pair(pairs, partition)
        if i == 0:
            return t
        merged[t, 0], merged[t, 1], gains[t] = i, j, pairs.best[i]
        absorb(rows, partition, score, i, j)
        for k in range(partition.n_clusters[0]):
            other = partition.ids[k + 1]
            if other != i:
                gain = gain_of(rows, partition, score, log_alpha, i, other)
                pairs.gain[i, other] = gain
                pairs.gain[other, i] = gain
        settle(pairs, partition, i, j)
    return gains.shape[0]


@kernel
def merge_best_of_batch(rows, partition, score, log_alpha, uniforms, idle, patience, merged, gains):
    """One iteration for each batch of uniform numbers; returns the number of merges.

    ``idle[0]`` counts the iterations since the last merge, and is ``patience`` where there is no more to do.
    """
    count, wanted = 0, uniforms.shape[1]
    tried, gain = np.empty((wanted, 2), np.int64), np.empty(wanted)
    for t in range(uniforms.shape[0]):
        if idle[0] >= patience:
            break
        number = candidates(partition, uniforms[t], tried)
        for k in range(number):
            gain[k] = gain_of(rows, partition, score, log_alpha, tried[k, 0], tried[k, 1])
        best = best_candidate(tried, gain, number)
        if best >= 0:
            merged[count, 0], merged[count, 1], gains[count] = tried[best, 0], tried[best, 1], gain[best]
            absorb(rows, partition, score, tried[best, 0], tried[best, 1])
            count += 1
            idle[0] = 0
        else:
            idle[0] = patience if number == n_pairs(partition) else idle[0] + 1
    return count


class CompiledAgglomeration:
    """Merging under a compiled model."""

    def __init__(self, model: CompiledModel, X: Floats, log_alpha: float) -> None:
        n = len(X)
        self.partition, self.log_alpha = new_partition(np.arange(n)), log_alpha
        self.rows, self.score = new_rows(model, X, n + 2), np.zeros(n + 1)
        build(self.rows, self.partition)
        start_scores(self.rows, self.partition, self.score)
        self._state = (self.rows, self.partition, self.score, log_alpha)

    def all_pairs(self) -> Pairs:
        """The gains of all pairs."""
        pairs = no_pairs(len(self.partition.label))
        start_pairs(*self._state, pairs)
        return pairs

    def merge_best(self, pairs: Pairs, most: int) -> tuple[Integers, Floats]:
        """Merge the best pair, at most so many times: the merges and their gains."""
        merged, gains = np.empty((most, 2), np.int64), np.empty(most)
        count = merge_best(*self._state, pairs, merged, gains)
        return merged[:count], gains[:count]

    def merge_best_of_batch(self, uniforms: Floats, idle: Integers, patience: int) -> tuple[Integers, Floats]:
        """One iteration for each batch of uniform numbers: the merges and their gains."""
        merged, gains = np.empty((len(uniforms), 2), np.int64), np.empty(len(uniforms))
        count = merge_best_of_batch(*self._state, uniforms, idle, patience, merged, gains)
        return merged[:count], gains[:count]


class GeneralAgglomeration:
    """Merging under a model that is not compiled."""

    def __init__(self, model: Model, X: Floats, log_alpha: float) -> None:
        self.partition, self.log_alpha = new_partition(np.arange(len(X))), log_alpha
        self.scored = ScoredPartition(model, X, self.partition)
        self.score = np.concatenate([[0.0], self.scored.log_likelihood()])

    def _gains(self, first: Integers, second: Integers) -> Floats:
        """Log-ratios of the posterior with two clusters merged to that with them apart."""
        size = self.partition.size[first] + self.partition.size[second]
        union = gammaln(size) + self.scored.unions(first, second)
        result: Floats = union - (self.score[first] + self.score[second]) - self.log_alpha
        return result

    def _absorb(self, i: int, j: int) -> None:
        """Merge cluster ``j`` into cluster ``i``."""
        union = self.scored.unions(np.array([i]), np.array([j]))[0]
        self.scored.unite(i, j, union)
        pairs_of.unite_clusters(self.partition, i, j)
        self.score[i] = math.lgamma(self.partition.size[i]) + union

    def _evaluate(self, pairs: Pairs, i: int, others: Integers) -> None:
        """Fill in the gains of cluster ``i`` with others."""
        if len(others):
            pairs.gain[i, others] = pairs.gain[others, i] = self._gains(np.full(len(others), i), others)

    def all_pairs(self) -> Pairs:
        """The gains of all pairs."""
        n = len(self.partition.label)
        pairs = no_pairs(n)
        for i in range(1, n + 1):
            self._evaluate(pairs, i, np.arange(i + 1, n + 1))
        pairs_of.scan_all(pairs, self.partition)
        return pairs

    def merge_best(self, pairs: Pairs, most: int) -> tuple[Integers, Floats]:
        """Merge the best pair, at most so many times: the merges and their gains."""
        merged, gains = np.empty((most, 2), np.int64), np.empty(most)
        for t in range(most):
            i, j = pairs_of.find_best(pairs, self.partition)
            if i == 0:
                return merged[:t], gains[:t]
            merged[t], gains[t] = (i, j), pairs.best[i]
            self._absorb(i, j)
            used = self.partition.used[1:]
            self._evaluate(pairs, i, used[used != i])
            pairs_of.settle_pairs(pairs, self.partition, i, j)
        return merged, gains

    def merge_best_of_batch(self, uniforms: Floats, idle: Integers, patience: int) -> tuple[Integers, Floats]:
        """One iteration for each batch of uniform numbers: the merges and their gains."""
        merged, gains = np.empty((len(uniforms), 2), np.int64), np.empty(len(uniforms))
        tried, count = np.empty((uniforms.shape[1], 2), np.int64), 0
        for batch in uniforms:
            if idle[0] >= patience:
                break
            number, everything = pairs_of.draw_candidates(self.partition, batch, tried)
            gain = self._gains(tried[:number, 0], tried[:number, 1]) if number else np.empty(0)
            best = pairs_of.find_best_candidate(tried, gain, number)
            if best >= 0:
                merged[count], gains[count] = tried[best], gain[best]
                self._absorb(*tried[best].tolist())
                count, idle[0] = count + 1, 0
            else:
                idle[0] = patience if everything else idle[0] + 1
        return merged[:count], gains[:count]


def agglomeration(model: Model, X: Floats, log_alpha: float) -> CompiledAgglomeration | GeneralAgglomeration:
    """The fastest merge loop for this model, before the first merge."""
    if isinstance(model, CompiledModel):
        return CompiledAgglomeration(model, X, log_alpha)
    return GeneralAgglomeration(model, X, log_alpha)
