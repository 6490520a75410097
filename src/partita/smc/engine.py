"""A state together with the model that fills it: the sampler below the estimator's surface.

For the compiled families the loop over observations is :func:`~partita.smc.step.stream`. For a user's own
model the same loop runs here, with the model's ``log_marginal`` called once an observation; every other step
is the compiled one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from partita._kernel import kernel
from partita._typing import Array, Floats
from partita.models.base import CompiledModel, Model
from partita.models.families import begin, log_predictive
from partita.smc.concentration import learn_alpha
from partita.smc.refine import detach, reattach
from partita.smc.resample import GREEDY
from partita.smc.state import SETTINGS, create, reserve_observations
from partita.smc.step import (
    choose,
    observe,
    observe_randomly,
    rejuvenate,
    reobserve,
    stream,
    stream_randomly,
)


@kernel
def start(state, family, n_features):
    """Write the statistics of the empty cluster."""
    begin(family, state.statistics, n_features)


@kernel
def first_impossible(state, family, data):
    """The first observation whose density under the prior is not finite; −1 if there is none."""
    for x in range(data.shape[0]):
        if not np.isfinite(log_predictive(family, state.statistics, 0, data, x)):
            return x
    return -1


@kernel
def append(state, encoded):
    """Store observations without looking at them yet; returns the number stored in all."""
    n = state.n_observations
    reserve_observations(state, n + encoded.shape[0])
    for x in range(encoded.shape[0]):
        for k in range(encoded.shape[1]):
            state.data[n + x, k] = encoded[x, k]
    return n + encoded.shape[0]


@kernel
def size_of(state):
    """The number of observations."""
    return state.n_observations


@kernel
def begin_observation(state):
    """For a user's model: the next observation."""
    state.n_observations += 1
    return state.n_observations - 1


@kernel
def views(state):
    """The arrays that a user's model reads and fills in."""
    return state.statistics, state.clusters, state.gain, state.data, state.created[: state.n_created]


@kernel
def used_clusters(state):
    """Ids of the clusters in use, the empty one first."""
    found = np.empty(state.n_clusters, np.int64)
    count = 0
    for c in range(state.n_clusters):
        if state.clusters[c].live:
            found[count] = c
            count += 1
    return found[:count]


@kernel
def next_alpha(state):
    """The number of observations at which α is due to be learnt."""
    return state.next_alpha


class Engine:
    """Streams encoded observations of one model into one state.

    Parameters
    ----------
    model : Model
    settings : tuple of int
        In the order of ``state.SETTINGS``.
    n_features, n_encoded : int
        Width of the data, before and after the model has encoded them.
    log_alpha : float
    seed : int
    """

    def __init__(
        self,
        model: Model,
        settings: tuple[int, ...],
        n_features: int,
        n_encoded: int,
        log_alpha: float,
        seed: int,
    ) -> None:
        self.model = model
        chosen = dict(zip(SETTINGS, settings, strict=True))
        self.rejuvenation, self.learns_alpha = chosen["rejuvenation"], bool(chosen["learn_alpha"])
        self.draws = chosen["resampling"] != GREEDY or chosen["merging"] != 0
        self.family: Any = None  # a user's model has none
        width = n_encoded + 1  # of a user's model: the totals, and log p(c)
        if isinstance(model, CompiledModel):
            self.family, width = model.family(n_features), model.width(n_features)
        self.state: Any = create(n_encoded, width, log_alpha, np.uint64(seed), settings)
        if self.family is not None:
            start(self.state, self.family, n_features)

    @property
    def n_observations(self) -> int:
        """How many observations the state holds."""
        return int(size_of(self.state))

    def check(self, encoded: Floats) -> None:
        """Raise ValueError for an observation that is impossible under the prior."""
        bad = -1 if self.family is None else first_impossible(self.state, self.family, encoded)
        if bad >= 0:
            raise ValueError(
                f"row {bad}: its density under the model is not finite; rescale the data or fit the model's "
                "prior to them"
            )

    def store(self, encoded: Floats) -> int:
        """Store observations without looking at them yet; returns the number stored in all."""
        return int(append(self.state, encoded))

    def run(self, end: int) -> None:
        """Observe the stored data up to ``end``, with the rejuvenation and the learning of α due between."""
        while (n := self.n_observations) < end:
            stop = n + 1 if self.rejuvenation else end
            if self.learns_alpha:
                stop = min(stop, int(next_alpha(self.state)))
            self._stream(stop)
            if self.rejuvenation:
                self.rejuvenate(self.rejuvenation)
            if self.learns_alpha:
                learn_alpha(self.state)

    def _stream(self, end: int) -> None:
        if self.family is None:
            for _ in range(self.n_observations, end):
                self._observe(begin_observation(self.state))
        elif self.draws:
            stream_randomly(self.state, self.family, end)
        else:
            stream(self.state, self.family, end)

    def rejuvenate(self, times: int) -> None:
        """Let some observations of the subproblem that changed last come in anew."""
        if self.family is not None:
            rejuvenate(self.state, self.family, times)
        else:
            for _ in range(times):
                self.observe_again(choose(self.state))

    def observe_again(self, x: int) -> None:
        """Take ``x`` out of its subproblem and let it come in anew; it may cross into another."""
        if self.family is not None:
            reobserve(self.state, self.family, x)
        else:
            self._take_out(x)
            self._observe(x)

    def log_marginals_with(self, encoded: Floats, row: int) -> tuple[Array, Floats]:
        """A user's model: the clusters in use, and log p(c ∪ {x}) of each."""
        statistics, clusters, _, _, _ = views(self.state)
        used = used_clusters(self.state)
        after = np.asarray(
            self.model.log_marginal(statistics[used, :-1] + encoded, clusters["size"][used] + 1.0), np.float64
        )
        if after.shape != used.shape or not (after < np.inf).all() or after[0] == -np.inf:
            raise ValueError(
                f"row {row}: {type(self.model).__name__}.log_marginal must return one finite log-likelihood "
                f"for each of {len(used)} clusters"
            )
        return used, after

    def set_gains(self, used: Array, after: Floats) -> None:
        """A user's model: each cluster's gain log|c| + log p(x|c)."""
        statistics, clusters, gain, _, _ = views(self.state)
        gain[used] = np.log(np.maximum(clusters["size"][used], 1)) + after - statistics[used, -1]

    def _observe(self, x: int) -> None:
        _, _, _, data, _ = views(self.state)
        used, after = self.log_marginals_with(data[x], x)
        self.set_gains(used, after)
        (observe_randomly if self.draws else observe)(self.state, x)
        statistics, _, _, data, created = views(self.state)
        child, parent = created[:, 0], created[:, 1]
        statistics[child, :-1] = statistics[parent, :-1] + data[x]
        statistics[child, -1] = after[np.searchsorted(used, parent)]

    def _take_out(self, x: int) -> None:
        s, blocks, matrix, weight, shrinking = detach(self.state, x)
        statistics, clusters, _, data, _ = views(self.state)
        size = clusters["size"][shrinking] - 1
        totals = statistics[shrinking, :-1] - data[x]
        after = np.asarray(self.model.log_marginal(totals, size.astype(float)), np.float64)
        clusters["score"][shrinking] += after - statistics[shrinking, -1] - np.log(size)
        clusters["size"][shrinking] = size
        statistics[shrinking, :-1], statistics[shrinking, -1] = totals, after
        reattach(self.state, s, blocks, matrix, weight)
