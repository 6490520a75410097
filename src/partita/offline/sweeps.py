"""Compiled sweeps of Gibbs sampling: a family's rows of statistics beside a partition."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from partita._core.kernel import inner, kernel
from partita._core.typing import Floats
from partita.models.base import CompiledModel, n_features_of
from partita.models.scoring.compiled import CompiledScorer
from partita.models.scoring.families import begin, extend, gains, log_marginal, reduce
from partita.models.scoring.partition import Partition, enter, leave

NEGLIGIBLE = -40.0  # nats below the heaviest: less than a double's rounding


class Rows(NamedTuple):
    """A compiled model's summaries of clusters, one row an id, and the observations."""

    family: Any
    statistics: Floats
    data: Floats
    gain: Floats  # per cluster: log|c| + log p(x | c), for the observation under consideration


def new_rows(model: CompiledModel, X: Any, n_rows: int) -> Rows:
    """Room for the summaries of so many clusters, the empty one included, which is filled in."""
    n_features = n_features_of(X)
    scorer = CompiledScorer(model, n_features)
    data = scorer.encode(X)
    rows = Rows(scorer.family, np.zeros((n_rows, scorer.width)), data, np.zeros(n_rows))
    start(rows)
    return rows


def rows_of(model: CompiledModel, X: Any, partition: Partition) -> Rows:
    """The summaries of the clusters of a partition."""
    rows = new_rows(model, X, len(partition.size))
    build(rows, partition)
    return rows


@kernel
def start(rows):
    """Fill in the row of the empty cluster."""
    begin(rows.family, rows.statistics, rows.data.shape[1])


@kernel
def build(rows, partition):
    """Fill in the rows of all clusters."""
    for k in range(partition.n_clusters[0]):
        rebuild(rows, partition, partition.ids[k + 1])


@inner
def rebuild(rows, partition, c):
    """Row of cluster ``c`` from its members."""
    parent, y = np.int64(0), partition.head[c]
    for size in range(partition.size[c]):
        extend(rows.family, rows.statistics, c, parent, size, rows.data, y)
        parent = c
        y = partition.after[y]


@inner
def shrink(rows, partition, c, x):
    """Row of cluster ``c``, which ``x`` has left."""
    size = partition.size[c]
    if size > 0 and not reduce(rows.family, rows.statistics, c, c, size + 1, rows.data, x):
        rebuild(rows, partition, c)


@inner
def grow(rows, partition, c, x):
    """Row of cluster ``c``, which ``x`` has entered."""
    size = partition.size[c] - 1
    parent = c if size > 0 else np.int64(0)
    extend(rows.family, rows.statistics, c, parent, size, rows.data, x)


@inner
def weigh(rows, ids, count, log_alpha, x):
    """Log-weights of putting ``x`` into each of ``count`` clusters (paper, eq. 1), into ``gain``."""
    gains(rows.family, rows.statistics, ids, np.int64(0), count, rows.data, x, rows.gain)
    for k in range(count):
        if ids[k] == 0:
            rows.gain[0] += log_alpha


@inner
def draw(gain, ids, count, u):
    """One of the clusters, with probability proportional to exp(gain), by a uniform number."""
    top, total = -np.inf, 0.0
    for k in range(count):
        if gain[ids[k]] > top:
            top = gain[ids[k]]
    for k in range(count):
        if gain[ids[k]] - top > NEGLIGIBLE:
            total += math.exp(gain[ids[k]] - top)
    rest, chosen = u * total, np.int64(0)
    for k in range(count):
        if gain[ids[k]] - top > NEGLIGIBLE:
            chosen = ids[k]
            rest -= math.exp(gain[chosen] - top)
            if rest < 0.0:
                break
    return chosen


@kernel
def exact_sweep(rows, partition, log_alpha, order, uniforms):
    """Draw every observation's cluster anew given all others (Neal 2000, algorithm 3)."""
    for t in range(order.shape[0]):
        x = order[t]
        shrink(rows, partition, leave(partition, x), x)
        count = partition.n_clusters[0] + 1
        weigh(rows, partition.ids, count, log_alpha, x)
        c = enter(partition, x, draw(rows.gain, partition.ids, count, uniforms[t, 0]))
        grow(rows, partition, c, x)


@kernel
def metropolis_sweep(rows, surrogate, partition, log_alpha, order, uniforms):
    """Propose every observation's cluster from the surrogate's conditional, accept by the model."""
    pair = np.zeros(2, np.int64)
    for t in range(order.shape[0]):
        x = order[t]
        origin = leave(partition, x)
        shrink(surrogate, partition, origin, x)
        count = partition.n_clusters[0] + 1
        weigh(surrogate, partition.ids, count, log_alpha, x)
        pair[0] = origin if partition.size[origin] > 0 else 0
        pair[1] = draw(surrogate.gain, partition.ids, count, uniforms[t, 0])
        moves = pair[0] != pair[1]
        if moves:  # else the model's rows stay as they are
            shrink(rows, partition, origin, x)
            weigh(rows, pair, np.int64(2), log_alpha, x)
            ratio = rows.gain[pair[1]] - rows.gain[pair[0]]
            ratio -= surrogate.gain[pair[1]] - surrogate.gain[pair[0]]
            if not math.log(1.0 - uniforms[t, 1]) < ratio:
                pair[1] = pair[0]
        c = enter(partition, x, pair[1])
        grow(surrogate, partition, c, x)
        if moves:
            grow(rows, partition, c, x)


@kernel
def log_density(rows, partition, log_alpha):
    """Σ_c [log α + lgamma(|c|) + log p(c)] (paper, eq. 3)."""
    total, d = 0.0, rows.data.shape[1]
    for k in range(partition.n_clusters[0]):
        c = partition.ids[k + 1]
        size = partition.size[c]
        total += log_alpha + math.lgamma(size) + log_marginal(rows.family, rows.statistics, c, size, d)
    return total
