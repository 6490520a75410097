"""A state together with what scores its clusters: the sampler below the estimator's surface.

An engine is composed of a state, a scorer (:mod:`partita.models.scoring`) and the loop that suits the scorer
(:mod:`partita.smc.loops`): compiled, or with the scorer called for each observation. Knowledge bases, refinement and
files use what is public here.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from partita._core.typing import Floats, Integers
from partita.models.base import CompiledModel, Model
from partita.models.scoring.black_box import BlackBoxScorer
from partita.models.scoring.compiled import CompiledScorer
from partita.models.scoring.contract import Scorer
from partita.models.scoring.scorers import scorer_for
from partita.posterior import Posterior
from partita.smc.black_box.lookahead import Foresight, LookingAhead
from partita.smc.black_box.proposals import propose
from partita.smc.loops.compiled import CompiledLoop
from partita.smc.loops.python import PythonLoop
from partita.smc.moves.concentration import learn_alpha
from partita.smc.moves.install import scores_of_sets
from partita.smc.moves.reobserve import choose, leave_out
from partita.smc.reading.best import best_clustering
from partita.smc.reading.snapshot import posterior_of
from partita.smc.state import access
from partita.smc.state.clusters import StateClusters
from partita.smc.state.constraints import new_constraints, parts_of
from partita.smc.state.index import filled_index, new_index, store_keys
from partita.smc.state.keys import EVERYTHING, Keys, key_function
from partita.smc.state.names import follow_with, next_name, no_names, stop_following
from partita.smc.state.rebuild import rebuild_rows
from partita.smc.state.state import TOTALS, Settings, assemble, dismantle, grown, new_state, shared_of
from partita.smc.steps.candidates import kept_keys


class Diagnostics(NamedTuple):
    """What a sampler has done since ``fit`` began anew, or it was loaded; refinement counts.

    Attributes
    ----------
    steps : int
        Observations placed; those that were taken out and placed again count once more.
    candidates : int
        Subproblems that they were scored against, added up.
    scored : int
        Clusters that they were scored against.
    pooled : int
        Putative particles that the update has pooled.
    kept : int
        Particles that resampling has retained.
    merged : int
        Subproblems that were joined with another.
    split : int
        Subproblems that were split off.
    evaluations : int
        Clusters that a black box was asked for, in calls that failed as well; 0 for other models.
    """

    steps: int
    candidates: int
    scored: int
    pooled: int
    kept: int
    merged: int
    split: int
    evaluations: int

    def __str__(self) -> str:
        each = max(self.steps, 1)
        lines = [f"steps: {self.steps:,}"]
        lines += [
            f"{name}: {value:,} ({value / each:.3g} a step)"
            for name, value in self._asdict().items()
            if name != "steps" and (name != "evaluations" or value)
        ]
        return "\n".join(lines)


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
    keys : "auto" or callable, optional
        What an observation finds others by, as in :class:`~partita.SplitSMC`; it meets all if it is None.
    scorer : Scorer, optional
        One made before, for an engine that replays observations of another.
    """

    def __init__(
        self,
        model: Model,
        settings: Settings,
        n_features: int,
        n_encoded: int,
        log_alpha: float,
        seed: int,
        keys: Any = None,
        scorer: Scorer | None = None,
    ) -> None:
        self.model = model
        self.size, self.belief = model.expected_size or 0.0, model.size_belief
        self.rejuvenation, self.learns_alpha = settings.rejuvenation, bool(settings.learn_alpha)
        self.exact, self.draws = bool(settings.exact), bool(settings.resampling or settings.merging)
        self.particles, self.longest_odds = settings.particles, settings.longest_odds
        self.widths = n_features, n_encoded
        self.scorer = scorer_for(model, n_features, n_encoded) if scorer is None else scorer
        self.finds_by, self._keys_of = keys, key_function(keys, model)
        indexed = self._keys_of is not None
        self._state: Any = new_state(n_encoded, self.scorer.width, settings, log_alpha, seed, indexed)
        self._unread = np.zeros(0, bool)  # which of the first observations are stored without their data
        self._kept: list[Any] | None = None  # observations that cannot be told from what the state holds
        if isinstance(model, CompiledModel) and not model.reads_rows:
            self._kept = []
        self.fetch: Callable[[Integers], list[Any]]  # gives observations that are left out when loading,
        self.tell: Callable[
            [Integers], list[Any]
        ]  # and those of which only the data are there, as they are held
        self.first_row = 0  # of the present batch
        self.rounds_left = 0  # of the rejuvenation that is under way
        self.replayed: Integers | None = None  # what this engine's observations are elsewhere, in a replay
        self.stages: list[Engine] = []  # where refinement replays observations
        self.follows = False  # whether names are kept of the best clustering's clusters
        self.at_once = 1  # for how many rows to predict a black box is asked in one call
        self._posterior: Posterior | None = None
        self.lock = threading.RLock()  # kernels share working memory, even those that only read
        self.loop = self._loop()
        self.scorer.start(StateClusters(self._state))

    def _loop(self) -> Any:
        """The loop that suits the scorer; a black box's scorer is told how to look ahead."""
        if isinstance(self.scorer, BlackBoxScorer):
            box = self.scorer.model
            wanted = self.particles if box.n_proposals is None else int(box.n_proposals)
            self.proposals = partial(propose, n=wanted)
            self.at_once = int(box.reach)
            known = getattr(self.scorer.asker, "foresight", None) or Foresight(self.at_once)
            self.scorer.asker = LookingAhead(self, known)
        return PythonLoop(self) if self.family is None else CompiledLoop(self)

    @property
    def family(self) -> Any:
        """What kernels read of the model; None if it is not compiled."""
        return self.scorer.family

    @property
    def compiled(self) -> CompiledScorer | None:
        """The scorer that the state's rows of statistics are of, the surrogate's if there is one, if compiled."""
        rows = self.scorer.surrogate or self.scorer
        return rows if isinstance(rows, CompiledScorer) else None

    def like(self, settings: Settings, log_alpha: float, seed: int) -> Engine:
        """An empty engine for the same model and observations."""
        fresh = self.scorer.fresh()
        if isinstance(fresh, BlackBoxScorer) and isinstance(self.scorer, BlackBoxScorer):
            fresh.asker = self.scorer.asker  # what it has learnt about looking ahead
        return Engine(self.model, settings, *self.widths, log_alpha, seed, scorer=fresh)

    # ------------------------------------------------------------------ copies

    def __getstate__(self) -> dict[str, Any]:
        """For ``copy.deepcopy`` and the like: the compiled struct, taken apart."""
        parts, counts, settings, log_alpha, random, _ = dismantle(self.state)
        copies = tuple(part.copy() for part in parts)
        _, constraints, _, totals = shared_of(self._state)
        shared = kept_keys(self._state), parts_of(constraints), totals.copy()
        own = {
            "_kept": None if self._kept is None else list(self._kept),
            "_state": (copies, counts, settings, log_alpha, random, *shared),
            "scorer": (type(self.scorer), self.scorer.__getstate__()),
            "_posterior": None,
            "stages": [],
        }
        contents = self.__dict__ | own
        del contents["lock"], contents["loop"]
        return contents

    def __setstate__(self, contents: dict[str, Any]) -> None:
        parts, counts, settings, log_alpha, random, (indexed, *keys), constraints, totals = contents["_state"]
        copies = tuple(part.copy() for part in parts)  # aligned, as kernels need them
        index = filled_index(*keys) if indexed else new_index(0)
        shared = index, new_constraints(*(part.copy() for part in constraints)), no_names(), totals.copy()
        state = assemble(copies, counts, settings, log_alpha, np.uint64(random), *shared)
        kind, kept = contents["scorer"]
        scorer = kind.__new__(kind)
        scorer.__setstate__(kept)
        self.__dict__ = (
            {"lock": threading.RLock()} | self.__dict__ | contents | {"_state": state, "scorer": scorer}
        )
        self.loop = self._loop()

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

    # ------------------------------------------------------------------ the state

    @property
    def state(self) -> Any:
        """The state, with every observation in it, whenever a call may have been interrupted."""
        self.loop.settle()
        return self._state

    @state.setter
    def state(self, value: Any) -> None:
        self._state = value
        self.loop.reset()

    @property
    def posterior(self) -> Posterior:
        """The posterior as it stands; later observations do not change it."""
        with self.lock:
            if self._posterior is None:
                self._posterior = posterior_of(self.state)
            return self._posterior

    @property
    def diagnostics(self) -> Diagnostics:
        """What has been done so far."""
        with self.lock:  # for a step may be going on in another thread
            totals = dict(zip(TOTALS, shared_of(self.state)[3].tolist(), strict=True))
        asked = self.scorer.evaluator.evaluations if isinstance(self.scorer, BlackBoxScorer) else 0
        return Diagnostics(**totals, evaluations=asked)

    def count_in(self, other: Engine) -> None:
        """Count what an engine has done that has replayed observations of this one."""
        totals = shared_of(self.state)[3]
        totals += shared_of(other.state)[3]

    @property
    def n_observations(self) -> int:
        """How many observations have been made, with those that are removed."""
        return int(access.progress(self.state)[0])

    @property
    def present(self) -> Integers:
        """The numbers of the observations that have not been removed."""
        with self.lock:
            return access.present(self.state)

    @property
    def alpha(self) -> float:
        """The concentration."""
        with self.lock:
            return math.exp(access.progress(self.state)[3])

    @property
    def constraints(self) -> Any:
        """Which observations must be together, or apart."""
        return shared_of(self.state)[1]

    @constraints.setter
    def constraints(self, constraints: Any) -> None:
        access.replace_constraints(self.state, constraints)

    def subproblem_of(self, x: int) -> int:
        """The slot of the subproblem that observation ``x`` is in."""
        return int(access.subproblem_of(self.state, x))

    # ------------------------------------------------------------------ observations

    @property
    def observations(self) -> list[Any] | None:
        """The observations themselves, where a file needs them beside their numbers."""
        if self._kept is None and not isinstance(self.scorer, BlackBoxScorer):
            return None
        return [self.observation(x) for x in self.present.tolist()]

    def observation(self, x: int) -> Any:
        """An observation as the model takes it, where it is kept."""
        if isinstance(self.scorer, BlackBoxScorer):
            return self.scorer.observation(x)
        self.fetch_all([x])
        return self._kept[x]  # type: ignore[index]

    def fetch_all(self, xs: Sequence[int]) -> None:
        """Have observations that :meth:`observation` will be asked for, all that were left out in one call."""
        if self._kept is not None and (left_out := [x for x in xs if self._kept[x] is None]):
            members = np.array(left_out, np.int64)
            for x, observation in zip(left_out, self.tell(members), strict=True):
                self._kept[x] = observation

    def encode(self, X: Any) -> Any:
        """The rows of ``X`` as the state holds them; ValueError for one that the model has no place for."""
        with self.lock:  # a vocabulary grows, and tables have working memory
            return self.scorer.encode(X)

    def stored(self, x: Any) -> Any:
        """One or several stored observations as :meth:`encode` has returned them."""
        return self.scorer.stored(StateClusters(self.state).data, x)

    def keys(self, X: Any) -> Keys:
        """The keys by which the rows of ``X`` find candidates; TypeError for one that can be no key."""
        return EVERYTHING if self._keys_of is None else self._keys_of(X)

    def store(self, encoded: Any, keys: Keys = EVERYTHING) -> int:
        """Store observations and their keys without looking at them yet; returns the number stored in all."""
        self.first_row = self.n_observations
        if self._keys_of is not None:
            store_keys(shared_of(self.state)[0], self.first_row, *keys)
        n, data = self.first_row + len(encoded), self.scorer.data_of(encoded)
        if not access.append(self.state, data):
            self.state = grown(self.state, n)
            access.append(self.state, data)
        self.scorer.store(encoded, self.first_row)
        return n

    def keep(self, X: Any, first: int | None = None) -> None:
        """Hold on to the observations just stored, or those from number ``first`` on, where a file will need them."""
        if self._kept is not None:
            del self._kept[self.first_row if first is None else first :]  # of a call that has failed
            self._kept += self.model.held(X)

    def expect(
        self, n: int, fetch: Callable[[Integers], list[Any]], tell: Callable[[Integers], list[Any]]
    ) -> None:
        """The first n observations, all in the state, are fetched when a subproblem needs them.

        ``tell`` gives them as they are held, where their data were recalled.
        """
        access.leave_absent(self.state)
        self.fetch, self.tell, self._unread = fetch, tell, np.ones(n, bool)
        if isinstance(self.scorer, BlackBoxScorer):
            self.scorer.numbers, self.scorer.evaluator.following = np.arange(n), n
        else:
            self._kept = [None] * n

    def need(self, slots: Any) -> None:
        """Have the data and statistics of some subproblems there, where they were left out when loading."""
        absent = access.are_absent(self.state, np.asarray(slots, np.int64))
        if not len(absent):
            return
        members = best_clustering(self.state, absent)[0]
        members = members[self._unread[members]]
        if len(members):
            observations = self.fetch(members)
            self.recall(members, self.encode(observations))
            if isinstance(self.scorer, BlackBoxScorer):
                numbers = self.scorer.numbers[members].tolist()
                self.scorer.evaluator.observations |= dict(zip(numbers, observations, strict=True))
            else:
                for x, observation in zip(members.tolist(), self.model.held(observations), strict=True):
                    self._kept[x] = observation  # type: ignore[index]
        if self.compiled is not None:
            rebuild_rows(self.state, self.compiled.family, absent)

    def recall(self, members: Integers, encoded: Any) -> None:
        """Have the data of observations that were left out when loading."""
        self.scorer.refresh()
        StateClusters(self.state).data[members] = self.scorer.data_of(encoded)
        self._unread[members] = False

    @property
    def read(self) -> Integers:
        """The observations present whose data are there."""
        present = self.present
        return present[~np.isin(present, np.flatnonzero(self._unread))]

    def called(self, x: int) -> str:
        """How an error calls the observation: by its row in the batch, or as what it is replayed for."""
        return f"row {x - self.first_row}" if self.replayed is None else f"observation {self.replayed[x]}"

    # ------------------------------------------------------------------ changing

    def run(self, end: int) -> None:
        """Observe the stored data up to ``end``, with the rejuvenation and the learning of α due between."""
        while (n := self.n_observations) < end:
            self.loop.observe(n + 1 if self.rejuvenation else self.due(end))
            self.look_back(self.rejuvenation)

    def due(self, end: int) -> int:
        """How far to observe, up to ``end``, before α may be due to be learnt."""
        n, removed, next_alpha, _ = access.progress(self.state)
        return int(min(end, max(next_alpha + removed, n + 1))) if self.learns_alpha else end

    def look_back(self, rounds: int) -> None:
        """What is due between observations: so many rounds of rejuvenation, and the learning of α."""
        for self.rounds_left in reversed(range(rounds)):
            self.observe_again(choose(self.state))
        if self.learns_alpha:
            learn_alpha(self.state, self.size, self.belief)

    def follow(self, end: int, names: Integers, following: int) -> tuple[bool, int]:
        """Observe stored data up to ``end`` or until the best clustering of earlier ones is another.

        Parameters
        ----------
        end : int
        names : int64 array
            Of each observation: the name of its cluster in the best clustering. Those of new ones are written.
        following : int
            The name of the next new cluster.

        Returns
        -------
        bool
            Whether the names still fit; else the last observation observed has changed more than its own.
        int
            The name of the next new cluster.
        """
        kept = shared_of(self.state)[2]
        most = following + end - self.n_observations
        if len(self._marks) < most:
            self._marks = np.zeros(2 * most, np.int64)
        follow_with(kept, names, self._marks, following)
        self.follows = True
        try:
            fits = self.loop.observe(end)
        finally:
            stop_following(kept)
            self.follows = False
        return fits, int(next_name(kept))

    _marks: Integers = np.zeros(0, np.int64)  # working memory of :meth:`follow`

    def learn_alpha(self) -> None:
        """Learn the concentration, if that is due."""
        learn_alpha(self.state, self.size, self.belief)

    def weigh(self, x: int) -> None:
        """Find the candidates for observation ``x``, and the gains that it would have in their clusters."""
        self.loop.weigh(x)

    def observe_again(self, x: int) -> None:
        """Take ``x`` out of its subproblem and let it come in anew; it may cross into another."""
        self.loop.observe_again(x)

    def remove(self, x: int) -> None:
        """Take ``x`` out for good; its number is not used again."""
        self.need([self.subproblem_of(x)])
        self.loop.take_out(x)
        leave_out(self.state, x)
        if self._kept is not None:
            self._kept[x] = None

    def forget(self, x: int) -> None:
        """Let go of what a removed observation says; a black box can then not be asked for it again."""
        if isinstance(self.scorer, BlackBoxScorer):
            self.scorer.evaluator.forget(self.scorer.numbers[x : x + 1])

    def fill_all(self, ids: Integers, members: list[Integers]) -> None:
        """Compute the statistics and scores of clusters from their members."""
        self.loop.fill(ids, members)

    def scores(self, clusters: list[Integers]) -> Floats:
        """lgamma(|c|) + log p(c) of sets of observations, which need not be in any particle."""
        return scores_of_sets(self, clusters)
