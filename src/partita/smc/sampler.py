"""The estimators: split SMC, and the two samplers that are configurations of it."""

from __future__ import annotations

from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import NotFittedError

from partita._estimator import Clusterer, choice, log_of, whole
from partita._progress import steps
from partita._typing import Floats, Integers
from partita.models.base import Model, n_features_of
from partita.posterior import Posterior
from partita.smc import storage
from partita.smc.black_box import engine_for
from partita.smc.engine import Engine
from partita.smc.predict import predictive
from partita.smc.refine import refine
from partita.smc.state import Settings

RESAMPLING = {"greedy": 0, "multinomial": 1, "stratified": 2, "optimal": 3}
MERGING = {"k-best": 0, "multinomial": 1}
WEIGHTS = {"marginal": 0, "exact": 1}
ENOUGH = 10  # rows to fit a prior to


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
        Greedy is deterministic and the most accurate; the others are unbiased.
    weights : {"exact", "marginal"}, optional
        Exact weights are the scores of the particles, and need greedy resampling, for which they are the
        default. Marginal weights are the paper's.
    merging : {"k-best", "multinomial"}
        How subproblems are joined: the heaviest combinations, exactly, or the paper's draw.
    random_state : int, RandomState or None
        Seeds what is random: rejuvenation, refinement, and the schemes that draw.

    Attributes
    ----------
    labels_ : array of shape (n,)
        Clusters of the best particle, numbered in order of first appearance.
    posterior_ : Posterior
        The whole posterior; see its methods for the questions it answers.
    model_ : Model
    alpha_ : float
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
        random_state: Any = None,
    ) -> None:
        self.model = model
        self.alpha = alpha
        self.n_particles = n_particles
        self.rejuvenation = rejuvenation
        self.resampling = resampling
        self.weights = weights
        self.merging = merging
        self.random_state = random_state

    # ------------------------------------------------------------------ learning

    def fit(self, X: Any, y: Any = None, *, progress: bool = False) -> Self:
        """Forget everything and observe the rows of ``X`` in order.

        Parameters
        ----------
        X : array of shape (n, d)
        y : ignored
        progress : bool
            Show a progress bar.
        """
        return self._observe(X, reset=True, progress=progress)

    def partial_fit(self, X: Any, y: Any = None, *, progress: bool = False) -> Self:
        """Observe the rows of ``X`` in order, after all that came before.

        Any batching of the same rows gives the same result. Parameters of the sampler that have been changed
        meanwhile count from the next :meth:`fit` on. A call that raises has changed nothing; one that was
        interrupted has observed none of the rows or some of the first, as ``len(labels_)`` tells.
        Parameters as in :meth:`fit`.
        """
        first = not hasattr(self, "_engine")
        if first and self.model is None and np.ndim(X) == 2 and 0 < len(X) < ENOUGH:
            raise ValueError(
                f"{len(X)} rows are too few to fit a prior to, as model=None asks for: give a model, or "
                f"begin with {ENOUGH} rows or more"
            )
        return self._observe(X, reset=first, progress=progress)

    def refine(self, sweeps: int = 1, *, progress: bool = False) -> Self:
        """Improve the posterior in hindsight; never makes it a worse approximation.

        Each sweep runs every subproblem's observations again in random orders, alone and together with its
        nearest neighbour, and keeps the best partitions of old and new. Needs exact weights.

        Parameters
        ----------
        sweeps : int
        progress : bool
            Show a progress bar.
        """
        engine = self._fitted()
        sweeps = whole("sweeps", sweeps, 0)
        if not engine.exact:
            raise ValueError("refine needs exact weights, and so greedy resampling")
        with engine.changing(long=True):
            for _ in steps(range(sweeps), "refining", progress):
                refine(engine)
        return self

    def _observe(self, X: Any, reset: bool, progress: bool) -> Self:
        settings = self._settings()
        log_alpha = self._log_alpha()
        with self._same_attributes_if_it_fails():
            X = self._validated(X, reset)
            engine = self._start(X, settings, log_alpha) if reset else self._engine
            encoded = engine.encode(X)
            with engine.changing():
                end = engine.store(encoded)
                for stop in steps(checkpoints(end - len(X), end), "clustering", progress):
                    engine.run(stop)
            self.model_, self._engine = engine.model, engine
        return self

    def _start(self, X: Any, settings: Settings, log_alpha: float) -> Engine:
        model = self._own_model(X)
        width = model.encoded_width(X)
        return engine_for(model, settings, n_features_of(X), width, log_alpha, self._seed())

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

    def predict_proba(self, X: Any) -> Floats:
        """Where would each row of ``X`` go, as one more observation? Changes nothing.

        Returns
        -------
        array of shape (n, K + 1)
            Column k < K: the probability that the row's cluster is cluster k of ``labels_``; a cluster that
            exists in other particles only counts for the labels of its members, in proportion. The last
            column: the probability of a new cluster.
        """
        engine = self._fitted()
        encoded = engine.encode(self._validated(X, reset=False))
        return predictive(engine, encoded, self.labels_)

    def predict(self, X: Any) -> Integers:
        """The most probable cluster of each row of ``X``; −1 stands for a new one."""
        probabilities = self.predict_proba(X)
        best = probabilities.argmax(axis=1)
        return np.where(best == probabilities.shape[1] - 1, -1, best)

    # ------------------------------------------------------------------ keeping

    def save(self, path: str | PathLike[str]) -> None:
        """Write the sampler to a file, from which :meth:`load` goes on as if it had never stopped.

        The file is written beside its final place and moved there when complete.
        """
        storage.save(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str], model: Model | None = None) -> Self:
        """Read a sampler that :meth:`save` has written.

        Parameters
        ----------
        path : path
        model : Model, optional
            Needed for a model of your own; the built-in ones are stored in the file.
        """
        return storage.load(cls, path, model)

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
        )
        if settings.exact and settings.resampling:
            raise ValueError(f'weights="exact" needs resampling="greedy", got {self.resampling!r}')
        if settings.rejuvenation and not settings.exact:
            raise ValueError("rejuvenation needs exact weights, and so greedy resampling")
        return settings

    def _log_alpha(self) -> float:
        automatic = isinstance(self.alpha, str) and self.alpha == "auto"
        return 0.0 if automatic else log_of("alpha", self.alpha, ' or "auto"')


class SMC(SplitSMC):
    """Sequential Monte Carlo without splitting (Fearnhead 2004): one subproblem holds everything.

    Parameters and attributes as for :class:`SplitSMC`.
    """

    _splitting = False


class Greedy(SplitSMC):
    """Assign each observation to its best cluster, for good: split SMC with a single particle.

    Parameters and attributes as for :class:`SplitSMC`.
    """

    n_particles: ClassVar[int] = 1  # type: ignore[misc]
    resampling: ClassVar[str] = "greedy"  # type: ignore[misc]
    weights: ClassVar[None] = None  # type: ignore[misc]
    merging: ClassVar[str] = "k-best"  # type: ignore[misc]

    def __init__(
        self,
        model: Model | None = None,
        alpha: float | str = "auto",
        *,
        rejuvenation: int = 0,
        random_state: Any = None,
    ) -> None:
        self.model = model
        self.alpha = alpha
        self.rejuvenation = rejuvenation
        self.random_state = random_state


def checkpoints(first: int, end: int) -> list[int]:
    """Where to stop for the progress bar: about a hundred places, the last of them the end."""
    stride = max((end - first) // 100, 1)
    return [*range(first + stride, end, stride), end]
