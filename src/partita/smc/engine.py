"""A state together with the model that fills it: the sampler below the estimator's surface.

For the compiled families the loop over observations is :func:`~partita.smc.steps.step.stream`. For a user's own
model the same loop runs here, with the model's ``log_marginal`` called once an observation; every other step
is the compiled one.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from partita._core.kernel import kernel
from partita._core.typing import Array, Floats, Integers
from partita.models.base import CompiledModel, Model
from partita.models.scoring.encoding import check_possible, log_marginals
from partita.models.scoring.families import begin
from partita.posterior import Posterior
from partita.smc.moves.concentration import learn_alpha
from partita.smc.moves.install import fill
from partita.smc.moves.remove import detach, reattach, room_to_remove
from partita.smc.reading.follow import UNNAMED, best_clustering
from partita.smc.reading.particles import subproblem_of
from partita.smc.reading.snapshot import posterior_of
from partita.smc.state.constraints import new_bonds, parts_of
from partita.smc.state.index import filled_index, new_index, store_keys
from partita.smc.state.keys import EVERYTHING, Keys, key_function
from partita.smc.state.state import Settings, assemble, dismantle, grown, n_present, new_state, shared_of
from partita.smc.state.tabled import attached, detached, rebuild_rows
from partita.smc.steps.candidates import candidates_of, candidates_of_row, count_in, kept_keys
from partita.smc.steps.step import (
    ABSENT,
    DONE,
    choose,
    keep_bonds,
    leave_out,
    options,
    place,
    put_back,
    stream,
    stream_at_random,
    take_out,
)


@kernel
def start(state, family, n_features):
    """Write the statistics of the empty cluster."""
    begin(family, state.statistics, n_features)


@kernel
def append(state, encoded):
    """Store observations without looking at them yet; false if there is no room."""
    n = state.n_observations
    if n + encoded.shape[0] > state.data.shape[0]:
        return False
    for x in range(encoded.shape[0]):
        for k in range(encoded.shape[1]):
            state.data[n + x, k] = encoded[x, k]
    return True


@kernel
def progress(state):
    """The number of observations, how many of them are removed, when α is due to be learnt, and log α."""
    return state.n_observations, state.n_removed, state.next_alpha, state.log_alpha


@kernel
def present(state):
    """The observations that have not been removed."""
    found = np.empty(n_present(state), np.int64)
    count = 0
    for x in range(state.n_observations):
        if state.observations[x].block >= 0:
            found[count] = x
            count += 1
    return found


@kernel
def candidates_met(state):
    """The candidates that were found last."""
    return state.candidates[: state.n_candidates].copy()


@kernel
def are_absent(state, slots):
    """Those of some subproblems that have yet to be fetched."""
    found = np.empty(slots.shape[0], np.int64)
    count = 0
    for s in slots:
        if state.subproblems[s].absent:
            found[count] = s
            count += 1
    return found[:count]


@kernel
def leave_absent(state):
    """Note that all subproblems have yet to be fetched."""
    for s in range(state.n_subproblems):
        state.subproblems[s].absent = state.subproblems[s].rows > 0


@kernel
def replace_bonds(state, bonds):
    """Let other bonds count from now on."""
    state.bonds = bonds


@kernel
def views(state):
    """The arrays that a user's model reads and fills in."""
    return state.statistics, state.clusters, state.gain, state.data, state.created[: state.n_created]


@kernel
def used_clusters(state):
    """Ids of the candidates' clusters, in no particular order, the empty one first."""
    size = 1
    for q in range(state.n_candidates):
        size += state.subproblems[state.candidates[q]].clusters
    found = np.zeros(size, np.int64)
    count = 1
    for q in range(state.n_candidates):
        sub = state.subproblems[state.candidates[q]]
        for k in range(sub.clusters):
            found[count] = state.cells[sub.cells + sub.columns + k]
            count += 1
    return found


@kernel
def count_observation(state):
    """For a user's model: one observation more is in."""
    count_in(state)


@kernel
def detach_if_room(state, x):
    """For a user's model: :func:`~partita.smc.moves.remove.detach`, told apart by an empty matrix if no room."""
    if room_to_remove(state, x):
        return True, detach(state, x)
    nothing = np.empty(0, np.int64)
    return False, (np.int64(0), nothing, np.empty((0, 0), np.int64), np.empty(0), nothing)


@kernel
def reattach_rows(state, s, blocks, matrix, weight):
    """For a user's model: :func:`~partita.smc.moves.remove.reattach`."""
    reattach(state, s, blocks, matrix, weight)


class Engine:
    """Streams encoded observations of one model into one state.

    Parameters
    ----------
    model : Model
    settings : Settings
    n_features, n_encoded : int
        Width of the data, before and after the model has encoded them.
    log_alpha : float
    seed : int
    candidates : "auto" or callable, optional
        Which subproblems an observation meets, as in :class:`~partita.SplitSMC`; all if it is None.
    """

    def __init__(
        self,
        model: Model,
        settings: Settings,
        n_features: int,
        n_encoded: int,
        log_alpha: float,
        seed: int,
        candidates: Any = None,
    ) -> None:
        self.model = model
        self.rejuvenation, self.learns_alpha = settings.rejuvenation, bool(settings.learn_alpha)
        self.exact, self.draws = bool(settings.exact), bool(settings.resampling or settings.merging)
        self.particles, self.widths = settings.particles, (n_features, n_encoded)
        self.family, width = self._family()
        self.candidates, self._keys_of = candidates, key_function(candidates, model)
        indexed = self._keys_of is not None
        self._state: Any = new_state(n_encoded, width, settings, log_alpha, seed, indexed)
        self._kept: list[Any] | None = None  # observations that cannot be told from what the state holds
        if isinstance(model, CompiledModel) and not model.reads_rows:
            self._kept = []
        self.fetch: Callable[[Integers], list[Any]]  # gives observations that are left out when loading
        self._out: int | None = None  # an observation that is taken out, to be put back
        self.first_row = 0  # of the present batch
        self.rounds_left = 0  # of the rejuvenation that is under way
        self._placing = (-1, -1)  # the observation whose options are weighed, and one it must be with
        self.replayed: Integers | None = None  # what this engine's observations are elsewhere, in a replay
        self._posterior: Posterior | None = None
        self.lock = threading.RLock()  # kernels share working memory, even those that only read
        if self.family is not None:
            start(self.state, self.family, n_features)

    def _family(self) -> tuple[Any, int]:
        """The compiled family, and the length of a cluster's row of statistics."""
        n_features, n_encoded = self.widths
        if isinstance(self.model, CompiledModel):
            return self.model.family(n_features), self.model.width(n_features)
        return None, n_encoded + 1  # of a user's model: the totals, and log p(c)

    def __getstate__(self) -> dict[str, Any]:
        """For ``copy.deepcopy`` and the like: the compiled struct, taken apart."""
        parts, counts, settings, log_alpha, random, _ = dismantle(self.state)
        copies = tuple(part.copy() for part in parts)
        bonds = parts_of(shared_of(self._state)[1])
        state = copies, counts, settings, log_alpha, random, kept_keys(self._state), bonds
        own = {"_state": state, "_posterior": None, "family": detached(self.family)}
        contents = self.__dict__ | own
        del contents["lock"]
        return contents

    def __setstate__(self, contents: dict[str, Any]) -> None:
        parts, counts, settings, log_alpha, random, (indexed, *keys), bonds = contents["_state"]
        copies = tuple(part.copy() for part in parts)  # aligned, as kernels need them
        index = filled_index(*keys) if indexed else new_index(0)
        bonds = new_bonds(*(part.copy() for part in bonds))
        state = assemble(copies, counts, settings, log_alpha, np.uint64(random), index, bonds)
        family = attached(contents["family"], contents["model"], contents["widths"][0])
        own = {"_state": state, "family": family}
        self.__dict__ = {"lock": threading.RLock()} | self.__dict__ | contents | own

    @property
    def state(self) -> Any:
        """The state, with every observation in it, whenever a call may have been interrupted."""
        if self._out is not None:
            while not put_back(self._state, self.family, self._out):
                self._state = grown(self._state)
            self._out = None
        return self._state

    @state.setter
    def state(self, value: Any) -> None:
        self._state, self._out = value, None

    @contextmanager
    def changing(self, long: bool = False) -> Iterator[None]:
        """What happens inside happens as a whole or, if it fails or is interrupted, not at all.

        Streaming with a compiled model cannot fail, and an interruption finds it after some observation. What
        is ``long``, or calls a user's model, needs a copy of the state to go back to.
        """
        with self.lock:
            before = self.__getstate__() if long or self.family is None else None
            try:
                yield
            except BaseException:
                if before is not None:
                    self.__setstate__(before)
                raise
            finally:
                self._posterior = None

    @property
    def posterior(self) -> Posterior:
        """The posterior as it stands; later observations do not change it."""
        with self.lock:
            if self._posterior is None:
                self._posterior = posterior_of(self.state)
            return self._posterior

    @property
    def n_observations(self) -> int:
        """How many observations have been made, with those that are removed."""
        return int(progress(self.state)[0])

    @property
    def present(self) -> Integers:
        """The numbers of the observations that have not been removed."""
        return present(self.state)

    @property
    def bonds(self) -> Any:
        """Which observations must be together, or apart."""
        return shared_of(self.state)[1]

    @bonds.setter
    def bonds(self, bonds: Any) -> None:
        replace_bonds(self.state, bonds)

    @property
    def compiled(self) -> Any:
        """The family that the state's rows of statistics are of; None if it is not compiled."""
        return self.family

    @property
    def observations(self) -> list[Any] | None:
        """The observations themselves, where a file needs them beside their numbers."""
        return None if self._kept is None else [self._kept[x] for x in self.present.tolist()]

    @property
    def alpha(self) -> float:
        """The concentration."""
        return math.exp(progress(self.state)[3])

    def encode(self, X: Any) -> Any:
        """The rows of ``X`` as the state holds them; ValueError for one that the model has no place for."""
        with self.lock:  # a vocabulary grows, and tables have working memory
            encoded = self.model.encode(X)
            if encoded.shape[1] != self.widths[1]:
                raise ValueError(
                    f"{type(self.model).__name__}.statistics must always return {self.widths[1]} columns, as "
                    f"for the first row, got {encoded.shape[1]}"
                )
            if isinstance(self.model, CompiledModel):
                self.family = self.model.after_encoding(self.family)
                check_possible(self.model, self.family, self.widths[0], encoded)
            return encoded

    def stored(self, x: Any) -> Any:
        """One or several stored observations as :meth:`encode` has returned them."""
        return views(self.state)[3][x]

    def keys(self, X: Any) -> Keys:
        """The keys by which the rows of ``X`` find candidates; TypeError for one that can be no key."""
        return EVERYTHING if self._keys_of is None else self._keys_of(X)

    def store(self, encoded: Any, keys: Keys = EVERYTHING) -> int:
        """Store observations and their keys without looking at them yet; returns the number stored in all."""
        self.first_row = self.n_observations
        if self._keys_of is not None:
            store_keys(shared_of(self.state)[0], self.first_row, *keys)
        n = self.first_row + len(encoded)
        if not append(self.state, encoded):
            self.state = grown(self.state, n)
            append(self.state, encoded)
        return n

    def keep(self, X: Any) -> None:
        """Hold on to the observations just stored, where a file will need them."""
        if self._kept is not None:
            del self._kept[self.first_row :]  # of a call that has failed
            self._kept += X

    def run(self, end: int) -> None:
        """Observe the stored data up to ``end``, with the rejuvenation and the learning of α due between."""
        n, removed, next_alpha, _ = progress(self.state)
        while n < end:
            stop = n + 1 if self.rejuvenation else end
            if self.learns_alpha:
                stop = min(stop, max(next_alpha + removed, n + 1))
            self._stream(stop)
            self.look_back(self.rejuvenation)
            n, removed, next_alpha, _ = progress(self.state)

    def look_back(self, rounds: int) -> None:
        """What is due between observations: so many rounds of rejuvenation, and the learning of α."""
        for self.rounds_left in reversed(range(rounds)):
            self.observe_again(choose(self.state))
        if self.learns_alpha:
            learn_alpha(self.state)

    def _stream(self, end: int) -> None:
        if self.family is None:
            for x in range(self.n_observations, end):
                self._put_in(x, self._who(x))
                count_observation(self.state)
            return
        if self.draws:
            while not stream_at_random(self.state, self.family, end):
                self.state = grown(self.state)
            return
        while (status := stream(self.state, self.family, end, UNNAMED, UNNAMED, 0, -1)[0]) != DONE:
            self.make_ready(status)

    def weigh(self, x: int) -> None:
        """Find the candidates for observation ``x``, and the gains that it would have in their clusters."""
        if self.family is None:
            candidates_of(self.state, x)
            self.gains_for_others(x)
            return
        while (status := stream(self.state, self.family, 0, UNNAMED, UNNAMED, 0, x)[0]) != DONE:
            self.make_ready(status)

    def make_ready(self, status: int) -> None:
        """Do what a stream that has stopped is waiting for."""
        if status == ABSENT:
            self.need(candidates_met(self.state))
        else:
            self.state = grown(self.state)

    def need(self, slots: Any) -> None:
        """Have the data and statistics of some subproblems there, where they were left out when loading."""
        absent = are_absent(self.state, np.asarray(slots, np.int64))
        if not len(absent):
            return
        members = best_clustering(self.state, absent)[0]
        observations = self.fetch(members)
        views(self.state)[3][members] = self.encode(observations)
        for x, observation in zip(members.tolist(), observations, strict=True):
            self._kept[x] = observation  # type: ignore[index]
        rebuild_rows(self.state, self.family, absent)

    def _who(self, x: int) -> str:
        """How an error calls the observation: by its row in the batch, or as what it is replayed for."""
        return f"row {x - self.first_row}" if self.replayed is None else f"observation {self.replayed[x]}"

    def observe_again(self, x: int) -> None:
        """Take ``x`` out of its subproblem and let it come in anew; it may cross into another."""
        if self.family is None:
            self._take_out(x, f"observation {x}")
            self._put_in(x, f"observation {x}")
            return
        self._out = x
        while not take_out(self._state, self.family, x):
            self._state = grown(self._state)
        _ = self.state  # which puts it back

    def remove(self, x: int) -> None:
        """Take ``x`` out for good; its number is not used again."""
        self.need([subproblem_of(self.state, x)])
        if self.family is None:
            self._take_out(x, f"observation {x}")
        else:
            while not take_out(self.state, self.family, x):
                self.state = grown(self.state)
        leave_out(self.state, x)
        if self._kept is not None:
            self._kept[x] = None

    def like(self, settings: Settings, log_alpha: float, seed: int) -> Engine:
        """An empty engine for the same model."""
        return Engine(self.model, settings, *self.widths, log_alpha, seed)

    def fill_all(self, ids: Integers, members: list[Integers]) -> None:
        """Compute the statistics and scores of clusters from their members."""
        if self.family is not None:
            ends = np.cumsum([len(its_members) for its_members in members])
            fill(self.state, self.family, ids, ends, np.concatenate(members))
            return
        for c, its_members in zip(ids, members, strict=True):
            self._fill(c, its_members)

    def _fill(self, c: int, members: Integers) -> None:
        """A user's model: :meth:`fill_all` for one."""
        statistics, clusters, _, data, _ = views(self.state)
        statistics[c, :-1] = data[members].sum(axis=0)
        size = np.array([len(members)], np.float64)
        log_marginal = log_marginals(
            self.model, statistics[c : c + 1, :-1], size, f"observation {members[0]}"
        )
        if log_marginal[0] == -np.inf:
            raise ValueError(f"observation {members[0]}: {type(self.model).__name__} depends on the order")
        statistics[c, -1] = log_marginal[0]
        clusters["size"][c] = len(members)
        clusters["score"][c] = math.lgamma(len(members)) + statistics[c, -1]

    def weigh_rows(self, encoded: Any, keys: Keys) -> Iterator[int]:
        """A user's model: set the gains of rows that are not stored, and their candidates, one by one."""
        for k in range(len(encoded)):
            candidates_of_row(self.state, *keys, k)
            self.set_gains(*self.log_marginals_with(encoded[k], f"row {k}"))
            yield k

    def gains_for_others(self, x: int) -> None:
        """A user's model: set the gains that observation ``x`` would have in other subproblems."""
        self.set_gains(*self.log_marginals_with(self.stored(x), f"observation {x}"))

    def log_marginals_with(self, encoded: Any, who: str) -> tuple[Array, Floats]:
        """A user's model: the candidates' clusters, and log p(c ∪ {x}) of each."""
        statistics, clusters, _, _, _ = views(self.state)
        used = used_clusters(self.state)
        after = log_marginals(self.model, statistics[used, :-1] + encoded, clusters["size"][used] + 1.0, who)
        if after[0] == -np.inf:
            raise ValueError(f"{who}: impossible under the model, even as a cluster of its own")
        return used, after

    def set_gains(self, used: Array, after: Floats) -> None:
        """A user's model: each cluster's gain log|c| + log p(x|c)."""
        statistics, clusters, gain, _, _ = views(self.state)
        gain[used] = np.log(np.maximum(clusters["size"][used], 1)) + after - statistics[used, -1]

    def _put_in(self, x: int, who: str) -> None:
        self._placing = x, options(self.state, x)
        used, after = self.log_marginals_with(self.stored(x), who)
        self.set_gains(used, after)
        keep_bonds(self.state, *self._placing)
        while not place(self.state, x):
            self.state = grown(self.state)
            options(self.state, x)
            self.set_gains(used, after)
            keep_bonds(self.state, *self._placing)
        self._placing = -1, -1
        self._extend(x, used, after, who)

    def _extend(self, x: int, used: Array, after: Floats, who: str) -> None:
        """Fill in the statistics of the clusters that ``x`` has made."""
        statistics, _, _, data, created = views(self.state)
        child, parent = created[:, 0], created[:, 1]
        of_cluster = np.empty(len(statistics))
        of_cluster[used] = after
        statistics[child, :-1] = statistics[parent, :-1] + data[x]
        statistics[child, -1] = of_cluster[parent]

    def _take_out(self, x: int, who: str) -> None:
        done, detached = detach_if_room(self.state, x)
        if not done:
            self.state = grown(self.state)
            done, detached = detach_if_room(self.state, x)
        s, blocks, matrix, weight, shrinking = detached
        if len(shrinking):
            self._shrink(x, detached, who)
        reattach_rows(self.state, s, blocks, matrix, weight)

    def _shrink(self, x: int, detached: Any, who: str) -> None:
        """Compute the statistics and scores of the clusters that ``x`` has left."""
        shrinking = detached[-1]
        statistics, clusters, _, data, _ = views(self.state)
        size = clusters["size"][shrinking] - 1
        totals = statistics[shrinking, :-1] - data[x]
        after = log_marginals(self.model, totals, size.astype(float), who)
        clusters["score"][shrinking] += after - statistics[shrinking, -1] - np.log(size)
        clusters["size"][shrinking] = size
        statistics[shrinking, :-1], statistics[shrinking, -1] = totals, after
