"""The estimators: split SMC, and the two samplers that are configurations of it."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from itertools import chain
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state

from partita._core.checks import choice, log_of, whole, workers
from partita._core.progress import Watcher, steps, told, unwatched
from partita._core.typing import Floats, Integers
from partita._estimator import Clusterer
from partita.models.base import Model, n_features_of, taken
from partita.models.records.arrow import for_an_estimator
from partita.posterior import Posterior
from partita.smc.blocks.fit import fit_in_blocks
from partita.smc.engine import Diagnostics, Engine
from partita.smc.files import storage
from partita.smc.moves.constrain import constrain
from partita.smc.moves.refine import refine
from partita.smc.reading.predict import predictive
from partita.smc.reading.report import CandidateReport, candidate_report
from partita.smc.state.constraints import constraints_from, pairs_of
from partita.smc.state.state import LONGEST, Settings

RESAMPLING = {"greedy": 0, "multinomial": 1, "stratified": 2, "optimal": 3}
MERGING = {"k-best": 0, "multinomial": 1}
WEIGHTS = {"marginal": 0, "exact": 1}
ENOUGH = 10  # rows to fit a prior to
ODDS = 1000  # a value for longest_odds: records are clustered as well as without, in two thirds of the time
DEPRECATED = "deprecated"  # the value of a parameter under its old name, unless it is given


class SplitSMC(Clusterer):
    """Online Bayesian clustering by split sequential Monte Carlo.

    Keeps a posterior over clusterings under a Dirichlet-process mixture, as a product over subproblems, and
    updates it with every observation (Trojan et al. 2026, "Scalable Model-Based Clustering with Sequential
    Monte Carlo").

    Parameters
    ----------
    model : Model, optional
        How likely a cluster is. None stands for a :class:`Gaussian` whose prior is fitted to the data of the
        first call; give a model to make the result independent of how the data are batched.
    alpha : float or "auto"
        Concentration of the Dirichlet process: the larger, the more clusters. "auto" learns it along the
        stream by empirical Bayes.
    n_particles : int
        How many partitions to keep of each subproblem.
    rejuvenation : int
        How many observations of the subproblem just changed to take out and observe again after each new
        one. Costs about as many times more, and needs exact weights.
    resampling : {"greedy", "multinomial", "stratified", "optimal"}
        Greedy is deterministic and finds the best clusterings; the others draw, and are unbiased. Where clusters
        overlap so much that very many clusterings are plausible, "optimal" has the more honest probabilities.
    weights : {"exact", "marginal"}, optional
        Exact weights are the scores of the particles, and need greedy resampling, for which they are the
        default. Marginal weights are the paper's.
    merging : {"k-best", "multinomial"}
        How subproblems are joined: the heaviest combinations, exactly, or the paper's draw.
    keys : None, "auto" or callable
        What a new observation finds the earlier ones by that it may join. None: it meets all, and every cluster
        is scored exactly. A function takes one observation, a row of ``X``, and returns its *keys*, each a str,
        an int, bytes or a tuple of these: only clusters near observations that share a key are scored, so that
        the cost of an observation does not grow with the number of clusters, and an observation without a match
        begins a cluster of its own. "auto" takes the keys of the model; :class:`Gaussian` and
        :class:`MultivariateGaussian` have grid cells, for up to three columns. From the rarest key on,
        ``partita.smc.steps.candidates.BUDGET`` earlier observations are visited at most, so a key that many share
        costs up to a millisecond and no more. :meth:`candidate_report` says what is missed.
    longest_odds : int, optional
        Partitions of a subproblem that are so many times less likely than its best one are let go: what is settled
        then costs next to nothing, in time and memory, and the sampler of records is some times faster. None keeps
        ``n_particles`` of them whatever the odds. Needs exact weights. Knowledge bases take
        ``partita.smc.sampler.ODDS``.
    random_state : int, RandomState or None
        Seeds what is random: rejuvenation, refinement, and the schemes that draw.
    candidates : deprecated
        The old name of ``keys``, until version 0.3.

    Attributes
    ----------
    labels_ : array of shape (n,)
        Clusters of the best particle, numbered in order of first appearance.
    posterior_ : Posterior
        The whole posterior; see its methods for the questions it answers.
    model_ : Model
    alpha_ : float
    diagnostics_ : Diagnostics
        What the sampler has done: totals of candidates met, particles pooled and kept, subproblems merged and
        split.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np, partita as pt
    >>> X = np.array([[0.0], [0.2], [7.0], [0.1], [7.1]])
    >>> sampler = pt.SplitSMC(pt.Gaussian(rate=0.1), alpha=1.0, n_particles=10).fit(X)
    >>> sampler.labels_
    array([0, 0, 1, 0, 1])
    >>> bool(sampler.posterior_.together(0, 1) > 0.5)
    True
    """

    _splitting: ClassVar[bool] = True
    model_: Model
    _engine: Engine

    def __init__(
        self,
        model: Model | None = None,
        alpha: float | str = "auto",
        n_particles: int = 100,
        *,
        rejuvenation: int = 0,
        resampling: str = "greedy",
        weights: str | None = None,
        merging: str = "k-best",
        keys: Any = None,
        longest_odds: int | None = None,
        random_state: Any = None,
        candidates: Any = DEPRECATED,
    ) -> None:
        self.model = model
        self.alpha = alpha
        self.n_particles = n_particles
        self.rejuvenation = rejuvenation
        self.resampling = resampling
        self.weights = weights
        self.merging = merging
        self.keys = keys
        self.longest_odds = longest_odds
        self.random_state = random_state
        self.candidates = candidates

    # ------------------------------------------------------------------ learning

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        progress: bool | Callable[[int], object] = False,
        n_jobs: int | None = None,
    ) -> Self:
        """Forget everything and observe the rows of ``X`` in order.

        Parameters
        ----------
        X : array of shape (n, d)
        y : ignored
        progress : bool or callable
            Show a progress bar; or call this, now and then, with how many rows have been observed.
        n_jobs : int, optional
            How many threads share the work; −1 stands for one a core. Rows are then divided into blocks of those that
            may be of one cluster, by the pairs that share one of ``keys``, and each block is clustered by itself
            (docs/scale.md). The result is the same for any number, and another than without, when all rows are
            observed one after the other. For compiled models, exact weights and ``keys``.
        """
        if n_jobs is not None:
            return self._fit_in_blocks(X, progress, workers(n_jobs))
        return self._observe(X, reset=True, progress=progress)

    def partial_fit(self, X: Any, y: Any = None, *, progress: bool | Callable[[int], object] = False) -> Self:
        """Observe the rows of ``X`` in order, after all that came before.

        Any batching of the same rows gives the same result. Parameters of the sampler that have been changed
        meanwhile count from the next :meth:`fit` on. A call that raises has changed nothing; one that was
        interrupted has observed none of the rows or some of the first, as ``len(labels_)`` tells.
        Parameters as in :meth:`fit`.
        """
        first, X = not hasattr(self, "_engine"), for_an_estimator(X)
        if first and self.model is None and np.ndim(X) == 2 and 0 < len(X) < ENOUGH:
            raise ValueError(
                f"{len(X)} rows are too few to fit a prior to, as model=None asks for: give a model, or "
                f"begin with {ENOUGH} rows or more"
            )
        return self._observe(X, reset=first, progress=progress)

    def refine(
        self,
        sweeps: int = 1,
        *,
        of: Any = None,
        most: int | None = None,
        progress: bool | Watcher = False,
        n_jobs: int | None = None,
    ) -> Self:
        """Improve the posterior in hindsight; never makes it a worse approximation.

        Each sweep runs every subproblem's observations again in random orders, alone and together with its
        nearest neighbour, and keeps the best partitions of old and new. Needs exact weights.

        Parameters
        ----------
        sweeps : int
        of : sequence of int, optional
            Numbers of observations, such as those that have come last: only their subproblems are refined, each
            alone and with the neighbour that the observation has.
        most : int, optional
            How many observations to run again at a time: larger subproblems stay as they are, so that a sweep costs
            no more than 2·n·most steps for n observations.
        progress : bool or callable
            Show a progress bar; or call this, now and then, with how many subproblems of the sweep are done, and of
            how many.
        n_jobs : int, optional
            How many threads share the work, for a compiled model; −1 stands for one a core. The result is the same.
        """
        engine = self._fitted()
        sweeps = whole("sweeps", sweeps, 0)
        most, n_workers = None if most is None else whole("most", most, 1), workers(n_jobs)
        if not engine.exact:
            raise ValueError("refine needs exact weights, and so greedy resampling")
        places = None if of is None else engine.present[checked_rows("of", of, len(engine.present))]
        with engine.changing(long=True):
            for _ in steps(range(sweeps), "refining", progress is True):
                refine(engine, places, most, progress if callable(progress) else unwatched, n_workers)
        return self

    def constrain(self, together: Any = (), apart: Any = ()) -> Self:
        """Condition the posterior on what is known of some pairs: that they are together, or apart.

        Replaces what an earlier call has said, so ``constrain()`` takes everything back. The posterior is the
        one among the clusterings that conform, and later observations, :meth:`refine` and
        :meth:`remove` keep to it. Subproblems that it does not concern stay as they are.

        Parameters
        ----------
        together, apart : sequence of pairs (i, j)
            Numbers of observations that are of one cluster, or of two. ValueError if that is impossible.

        Examples
        --------
        >>> import numpy as np, partita as pt
        >>> X = np.array([[0.0], [0.2], [7.0], [0.1], [7.1]])
        >>> sampler = pt.SplitSMC(pt.Gaussian(rate=0.1), alpha=1.0, n_particles=10).fit(X)
        >>> sampler.constrain(apart=[(0, 1)]).labels_
        array([0, 1, 2, 1, 2])
        """
        engine = self._fitted()
        if not engine.exact:
            raise ValueError("constrain needs exact weights, and so greedy resampling")
        present = engine.present
        given = (("together", together), ("apart", apart))
        bound, cut = (present[checked_pairs(name, pairs, len(present))].tolist() for name, pairs in given)
        constraints = constraints_from(bound, [([x], [y]) for x, y in cut])
        changed = set(chain(*pairs_of(engine.constraints))) ^ set(chain(*pairs_of(constraints)))
        with engine.changing(long=True):
            constrain(engine, constraints, sorted(changed))
        return self

    def remove(self, i: int) -> Self:
        """Forget observation ``i``, as if it had never come; later ones move up by one, as in a list.

        Changes one subproblem. What other observations have learnt from it while it was there, by the
        clusters that were dropped meanwhile, :meth:`refine` can reconsider.
        """
        engine = self._fitted()
        present = engine.present
        if not 0 <= (i := operator.index(i)) < len(present):
            raise IndexError(f"there is no observation {i}: there are {len(present)}")
        if len(present) == 1:
            raise ValueError("the last observation cannot be removed: fit other data instead")
        with engine.changing(long=engine.family is None):
            engine.remove(int(present[i]))
        return self

    def _observe(self, X: Any, reset: bool, progress: bool | Callable[[int], object]) -> Self:
        settings = self._settings()
        log_alpha = self._log_alpha()
        with self._same_attributes_if_it_fails():
            X = self._validated(X, reset)
            engine = self._start(X, settings, log_alpha) if reset else self._engine
            encoded, keys = engine.encode(X), engine.keys(X)
            with engine.changing():
                end = engine.store(encoded, keys)
                engine.keep(X)
                for stop in steps(checkpoints(end - len(X), end), "clustering", progress):
                    engine.run(stop)
            self.model_, self._engine = engine.model, engine
        return self

    def _fit_in_blocks(self, X: Any, progress: bool | Callable[[int], object], n_workers: int) -> Self:
        settings, log_alpha = self._settings(), self._log_alpha()
        if not settings.exact or settings.merging or settings.rejuvenation or not settings.splitting:
            raise ValueError(
                "n_jobs needs split SMC with exact weights, the k best merged and no rejuvenation: leave these "
                "parameters as they are, or n_jobs out"
            )
        if self._keys() is None:
            raise ValueError(
                'n_jobs divides rows by the keys they share: give keys, such as keys="auto", or leave n_jobs out'
            )
        with self._same_attributes_if_it_fails():
            X = self._validated(X, True)
            engine = self._start(X, settings, log_alpha)
            if engine.family is None:
                raise ValueError("n_jobs is for compiled models: leave it out")
            with told(len(X), "clustering", progress) as tell:
                fit_in_blocks(engine, X, n_workers, lambda done, total: tell(done))
            self.model_, self._engine = engine.model, engine
        return self

    def _start(self, X: Any, settings: Settings, log_alpha: float) -> Engine:
        model = self._own_model(X)
        width, seed = model.encoded_width(X), self._seed()
        return Engine(model, settings, n_features_of(X), width, log_alpha, seed, self._keys())

    def _keys(self) -> Any:
        return renamed("keys", self.keys, self.candidates, stacklevel=6)  # whoever has called fit

    # ------------------------------------------------------------------ asking

    @property
    def posterior_(self) -> Posterior:
        """The posterior as it stands; later observations do not change it."""
        return self._fitted().posterior

    @property
    def labels_(self) -> Integers:
        """Clusters of the best particle, numbered in order of first appearance."""
        return self.posterior_.labels()

    @property
    def alpha_(self) -> float:
        """The concentration in use."""
        return self._fitted().alpha

    @property
    def diagnostics_(self) -> Diagnostics:
        """What the sampler has done since it was made or loaded; printing it gives a summary."""
        return self._fitted().diagnostics

    def predict_proba(self, X: Any) -> Floats:
        """Where would each row of ``X`` go, as one more observation? Changes nothing.

        Returns
        -------
        array of shape (n, K + 1)
            Column k < K: the probability that the row's cluster is cluster k of ``labels_``; a cluster that
            exists in other particles only counts for the labels of its members, in proportion. The last
            column: the probability of a new cluster. With ``keys`` a cluster that shares no key with
            the row has probability 0.
        """
        engine = self._fitted()
        X = self._validated(X, reset=False)
        return predictive(engine, engine.encode(X), self.labels_, engine.keys(X))

    def predict(self, X: Any) -> Integers:
        """The most probable cluster of each row of ``X``; −1 stands for a new one."""
        probabilities = self.predict_proba(X)
        best = probabilities.argmax(axis=1)
        return np.where(best == probabilities.shape[1] - 1, -1, best)

    def candidate_report(self, X: Any, n: int = 200, random_state: Any = 0) -> CandidateReport:
        """What do ``keys`` miss? Compares the candidates they lead to with scoring every cluster. Changes nothing.

        Takes as long as ``n`` rows of :meth:`predict_proba` without candidates.

        Parameters
        ----------
        X : array of shape (rows, d)
            Rows that have not been observed: one that has would find itself.
        n : int
            How many of them to look at; all if there are no more.
        random_state : int, RandomState or None
            Which of them; the sampler's own generator is left alone.

        Examples
        --------
        >>> import numpy as np, partita as pt
        >>> X = np.array([[10.0 * (k % 500) + 0.1 * (k % 7)] for k in range(2500)])
        >>> sampler = pt.SplitSMC(pt.Gaussian(rate=0.1, precision=1e-8), alpha=1.0, keys="auto")
        >>> print(sampler.fit(X[:2000]).candidate_report(X[2000:]))
        probability reached: 100.0 %
        best cluster missed: 0.0 % of 200 rows
        subproblems scored: 1.0 of 500
        """
        engine, n = self._fitted(), whole("n", n, 1)
        X = self._validated(X, reset=False)
        rows = check_random_state(random_state).permutation(len(X))[:n]
        rows.sort()
        return candidate_report(engine, rows, taken(X, rows), self.labels_)

    # ------------------------------------------------------------------ files

    def save(self, path: str | PathLike[str]) -> None:
        """Write the sampler to a file, from which :meth:`load` goes on as if it had never stopped.

        The file is written beside its final place and moved there when complete.
        """
        storage.save(self, path)

    @classmethod
    def load(
        cls,
        path: str | PathLike[str],
        model: Model | None = None,
        keys: Any = None,
        candidates: Any = DEPRECATED,
    ) -> Self:
        """Read a sampler that :meth:`save` has written.

        Parameters
        ----------
        path : path
        model : Model, optional
            Needed for a model of your own; the built-in ones are stored in the file.
        keys : callable, optional
            Needed where the sampler was made with a function for its keys: that function.
        candidates : deprecated
            The old name of ``keys``.
        """
        return storage.load(cls, path, model, renamed("keys", keys, candidates, stacklevel=3))

    # ------------------------------------------------------------------ checks

    def _fitted(self) -> Engine:
        if not hasattr(self, "_engine"):
            raise NotFittedError(
                f"This {type(self).__name__} is not fitted yet: call fit or partial_fit with data first"
            )
        return self._engine

    def _settings(self) -> Settings:
        weights = self.weights or ("exact" if self.resampling == "greedy" else "marginal")
        settings = Settings(
            particles=whole("n_particles", self.n_particles, 1),
            resampling=choice("resampling", self.resampling, RESAMPLING),
            merging=choice("merging", self.merging, MERGING),
            exact=choice("weights", weights, WEIGHTS),
            splitting=int(self._splitting),
            rejuvenation=whole("rejuvenation", self.rejuvenation, 0),
            learn_alpha=int(isinstance(self.alpha, str)),
            longest_odds=0
            if self.longest_odds is None
            else whole("longest_odds", self.longest_odds, 1, LONGEST),
        )
        if settings.exact and settings.resampling:
            raise ValueError(f'weights="exact" needs resampling="greedy", got {self.resampling!r}')
        if settings.rejuvenation and not settings.exact:
            raise ValueError("rejuvenation needs exact weights, and so greedy resampling")
        if settings.longest_odds and not settings.exact:
            raise ValueError("longest_odds needs exact weights, and so greedy resampling")
        return settings

    def _log_alpha(self) -> float:
        automatic = isinstance(self.alpha, str) and self.alpha == "auto"
        return 0.0 if automatic else log_of("alpha", self.alpha, ' or "auto"')


class SMC(SplitSMC):
    """Sequential Monte Carlo without splitting (Fearnhead 2004): one subproblem holds everything.

    Parameters and attributes as for :class:`SplitSMC`, without ``keys``: there is nothing to choose.
    """

    _splitting = False
    keys: ClassVar[None] = None  # type: ignore[misc]
    candidates: ClassVar[str] = DEPRECATED  # type: ignore[misc]

    def __init__(
        self,
        model: Model | None = None,
        alpha: float | str = "auto",
        n_particles: int = 100,
        *,
        rejuvenation: int = 0,
        resampling: str = "greedy",
        weights: str | None = None,
        merging: str = "k-best",
        longest_odds: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.model = model
        self.alpha = alpha
        self.n_particles = n_particles
        self.rejuvenation = rejuvenation
        self.resampling = resampling
        self.weights = weights
        self.merging = merging
        self.longest_odds = longest_odds
        self.random_state = random_state


class Greedy(SplitSMC):
    """Assign each observation to its best cluster, for good: split SMC with a single particle.

    Parameters and attributes as for :class:`SplitSMC`.
    """

    n_particles: ClassVar[int] = 1  # type: ignore[misc]
    resampling: ClassVar[str] = "greedy"  # type: ignore[misc]
    weights: ClassVar[None] = None  # type: ignore[misc]
    merging: ClassVar[str] = "k-best"  # type: ignore[misc]
    longest_odds: ClassVar[None] = None  # type: ignore[misc]

    def __init__(
        self,
        model: Model | None = None,
        alpha: float | str = "auto",
        *,
        rejuvenation: int = 0,
        keys: Any = None,
        random_state: Any = None,
        candidates: Any = DEPRECATED,
    ) -> None:
        self.model = model
        self.alpha = alpha
        self.rejuvenation = rejuvenation
        self.keys = keys
        self.random_state = random_state
        self.candidates = candidates


def renamed(name: str, value: Any, old: Any, stacklevel: int) -> Any:
    """The value of a parameter, given under its name or under ``candidates``, the old one of ``keys``."""
    if isinstance(old, str) and old == DEPRECATED:
        return value
    if value is not None:
        raise ValueError(f"give {name} or candidates, its old name, not both")
    warnings.warn(
        f"candidates is now called {name}, and will be gone in 0.3", DeprecationWarning, stacklevel=stacklevel
    )
    return old


def checkpoints(first: int, end: int) -> list[int]:
    """Where to stop for the progress bar: about a hundred places, the last of them the end."""
    stride = max((end - first) // 100, 1)
    return [*range(first + stride, end, stride), end]


def checked_rows(name: str, rows: Any, n: int) -> Integers:
    """Numbers of observations out of n."""
    found = np.asarray(list(rows) or np.empty(0, np.int64))
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise ValueError(f"{name} must be a sequence of observations' numbers")
    bad = found[(found < 0) | (found >= n)]
    if len(bad):
        raise ValueError(f"{name}: there is no observation {bad[0]}: there are {n}")
    return found.astype(np.int64)


def checked_pairs(name: str, pairs: Any, n: int) -> Integers:
    """Pairs of different observations out of n, shape (k, 2)."""
    found = np.asarray(list(pairs) or np.empty((0, 2), np.int64))
    if found.ndim != 2 or found.shape[1] != 2 or found.dtype.kind not in "iu":
        raise ValueError(f"{name} must be a sequence of pairs of observations' numbers")
    bad = np.flatnonzero((found < 0).any(axis=1) | (found >= n).any(axis=1) | (found[:, 0] == found[:, 1]))
    if len(bad):
        pair = tuple(found[bad[0]].tolist())
        raise ValueError(f"{name}: {pair} is no pair of different observations out of {n}")
    return found.astype(np.int64)
