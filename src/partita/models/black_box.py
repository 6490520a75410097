"""Any function from clusters to log-likelihoods as a model: batched, cached, with a surrogate to aim it.

A black box knows nothing but member sets, p(x | c) = p(c ∪ {x}) / p(c) (paper, appendix C.1). The
:class:`~partita.models.scoring.evaluator.Evaluator` asks it for many clusters in one call and remembers the answers.
The samplers keep log p(c) of every cluster they hold themselves, so what the cache forgets costs an
evaluation and nothing else.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np

from partita._core.checks import positive_number, whole
from partita._core.typing import Floats, Integers
from partita.models import registry
from partita.models.base import Model
from partita.models.scoring.evaluator import CacheInfo, Evaluator, Score


class BlackBox(Model):
    """A likelihood that is any function of a cluster's observations, such as a neural network.

    Parameters
    ----------
    score : callable
        From a list of clusters, each a list of observations, to their log-likelihoods log p(c), one number a
        cluster; −inf for what is impossible. It must depend on each cluster's observations alone. For all
        clusters that an observation may join it is called once, or less often with a ``lookahead``.
    surrogate : Model, optional
        A cheaper model of the same observations, which says what is worth asking: the ``n_proposals`` best
        assignments under its likelihood are scored, and the observation as a cluster of its own. Without one
        every cluster is scored.
    n_proposals : int, optional
        m′ of the paper: a new observation costs at most m′ + 1 evaluations, if nothing is asked for ahead.
        ``n_particles`` by default.
    cache_size : int
        How many log-likelihoods to remember, some 180 bytes each. Too few cost time, never accuracy.
    temperature, offset : float
        The log-likelihood of a cluster is score/temperature + offset. :meth:`fit_prior` finds them; an offset
        of log k is the same as an ``alpha`` k times as large.
    surrogate_weight : float
        How much the surrogate has a say itself: so many times its log p(c) is added. Two likelihoods that err
        in different places are together better than either; :meth:`fit_prior` finds the weight, too.
    lookahead : int, optional
        For how many observations of a batch to ask in one call, at most. From 2 on, a call also asks for what
        the observations that follow will need, as far as it can be foreseen: a fraction of the calls, some
        evaluations more, and the same result. It pays where a call for many clusters takes little longer than
        one for a few, as on a GPU; 16 is a good value. None stands for the function's own attribute
        ``lookahead``, if it has one, and otherwise for 1.

    Notes
    -----
    Observations may be anything: an array's rows, or the items of a sequence. With a surrogate they must be
    what it takes, and the function sees them as it has validated them. They are kept, since the function may
    be asked again; a sampler that holds objects can be saved if JSON can (strings, numbers, lists, dicts with
    strings for keys).

    Only the samplers (:class:`SplitSMC`, :class:`SMC`, :class:`Greedy`) use the surrogate given here.
    :class:`Gibbs` has a parameter for one. The same is true of ``lookahead``.

    Where the function fails in a call that asks ahead, it is called again for what is needed now: a cluster
    that it cannot score is an error when an observation needs it, and too large a batch is none.

    Examples
    --------
    Words that are spelt with the same few letters, by a likelihood made up on the spot:

    >>> import math, partita as pt
    >>> def log_likelihood(words):
    ...     letters = set().union(*words)
    ...     return -3.0 * len(letters) - math.log(len(letters)) * sum(map(len, words))
    >>> def score(clusters):
    ...     return [log_likelihood(words) for words in clusters]
    >>> sampler = pt.SplitSMC(pt.BlackBox(score), alpha=1.0, n_particles=10)
    >>> sampler.fit_predict(["tea", "zoo", "ate", "eat", "oz"])
    array([0, 1, 0, 0, 1])
    >>> info = sampler.model_.cache_info()
    >>> info.calls, info.evaluations <= 5 * 11
    (5, True)

    With a surrogate, for numbers:

    >>> import numpy as np
    >>> def spread(clusters):
    ...     return [-2.0 - 1.5 * len(c) - 5.0 * len(c) * np.var(c) for c in clusters]
    >>> model = pt.BlackBox(spread, surrogate=pt.Gaussian(rate=0.1), n_proposals=2)
    >>> sampler = pt.SplitSMC(model, alpha=1.0).fit(np.array([[0.0], [0.2], [7.0], [0.1], [7.1]]))
    >>> sampler.labels_
    array([0, 0, 1, 0, 1])
    >>> sampler.model_.cache_info().evaluations <= 5 * 3
    True

    The same in fewer calls:

    >>> model = pt.BlackBox(spread, surrogate=pt.Gaussian(rate=0.1), n_proposals=2, lookahead=16)
    >>> sampler = pt.SplitSMC(model, alpha=1.0).fit(np.array([[0.0], [0.2], [7.0], [0.1], [7.1]]))
    >>> sampler.labels_
    array([0, 0, 1, 0, 1])
    >>> sampler.model_.cache_info().calls
    1
    """

    def __init__(
        self,
        score: Score,
        surrogate: Model | None = None,
        n_proposals: int | None = None,
        cache_size: int = 100_000,
        temperature: float = 1.0,
        offset: float = 0.0,
        lookahead: int | None = None,
        surrogate_weight: float = 0.0,
    ) -> None:
        self.score = score
        self.surrogate = surrogate
        self.n_proposals = n_proposals
        self.cache_size = cache_size
        self.temperature = temperature
        self.offset = offset
        self.lookahead = lookahead
        self.surrogate_weight = surrogate_weight

    def __copy__(self) -> Self:
        """A black box of its own: it shares the function, but neither cache nor counts."""
        parameters = self.get_params(deep=False)
        return type(self)(**parameters | {"surrogate": copy.copy(self.surrogate)})

    @property
    def reads_rows(self) -> bool:  # type: ignore[override]
        """Whether observations must be rows of numbers."""
        return False if self.surrogate is None else getattr(self.surrogate, "reads_rows", True)

    @property
    def expected_size(self) -> float | None:
        return None if self.surrogate is None else self.surrogate.expected_size

    @property
    def size_belief(self) -> float:
        belief: float = super().size_belief if self.surrogate is None else self.surrogate.size_belief
        return belief

    def validate(self, X: Any) -> list[Any]:
        return observations_of(X) if self.surrogate is None else self.surrogate.validate(X)

    def check(self, n_features: int) -> None:
        if not callable(self.score):
            raise TypeError(
                f"score must be a function of a list of clusters, got {type(self.score).__name__}"
            )
        if self.surrogate is not None:
            if not isinstance(self.surrogate, Model) or isinstance(self.surrogate, BlackBox):
                raise TypeError(
                    f"surrogate must be a partita model that is no black box itself, got "
                    f"{type(self.surrogate).__name__}"
                )
            self.surrogate.check(n_features)
        if self.n_proposals is not None:
            whole("n_proposals", self.n_proposals, 1)
        whole("cache_size", self.cache_size, 0)
        positive_number("temperature", self.temperature)
        if np.ndim(self.offset) != 0 or not math.isfinite(self.offset):
            raise ValueError(f"offset must be a finite number, got {self.offset!r}")
        weight = self.surrogate_weight
        if np.ndim(weight) != 0 or not 0.0 <= weight < math.inf:
            raise ValueError(f"surrogate_weight must be a number of at least 0, got {weight!r}")
        if weight and self.surrogate is None:
            raise ValueError(f"surrogate_weight is {weight!r}, but there is no surrogate")
        whole("lookahead", self.reach, 1)

    def encode(self, X: Any) -> Floats:
        """What the surrogate needs of the observations."""
        return np.empty((len(X), 0)) if self.surrogate is None else self.surrogate.encode(X)

    def encoded_width(self, X: Any) -> int:
        return 0 if self.surrogate is None else self.surrogate.encoded_width(X)

    def keys(self, X: Any) -> tuple[Integers, Integers]:
        """Those of the surrogate."""
        return super().keys(X) if self.surrogate is None else self.surrogate.keys(X)

    @property
    def reach(self) -> int:
        """For how many observations to ask at once: ``lookahead``, or what the function says of itself."""
        own = self.lookahead
        return getattr(self.score, "lookahead", 1) if own is None else own

    def evaluator(self) -> Evaluator:
        """Begin with an empty cache, for other observations than before."""
        settings = int(self.cache_size), float(self.temperature), float(self.offset)
        self._evaluator = Evaluator(self.score, *settings, self._weighted if self.surrogate_weight else None)
        return self._evaluator

    def _weighted(self, clusters: list[list[Any]]) -> Floats:
        """The surrogate's log p(c), times its weight."""
        from partita.models.scoring.scored import log_p_of  # which is made of models

        assert self.surrogate is not None
        return self.surrogate_weight * log_p_of(self.surrogate, clusters)

    def cache_info(self) -> CacheInfo:
        """What the function has been asked for since the last ``fit``, and what is remembered."""
        used = getattr(self, "_evaluator", None)
        return CacheInfo(0, 0, 0, 0, 0, self.cache_size) if used is None else used.info()

    def fit_prior(
        self,
        X: Any,
        labels: Any = None,
        *,
        alpha: float | str = 1.0,
        n_alternatives: int = 10,
        random_state: int = 0,
        pool: bool = False,
    ) -> Self:
        """Calibrate: the temperature and offset under which labelled data are clustered as their labels say.

        They maximise the conditional likelihood of the labels (paper, "Model calibration"): that of each
        observation's true cluster among some others and one of its own, given the true clusters of those
        before it. All are scored in one call.

        Parameters
        ----------
        X : observations
            A labelled sample; it costs up to 2 ``n_alternatives`` + 1 evaluations an observation. Its order
            counts: let it be that of a stream, or a random one.
        labels : array of shape (n,)
            True clusters.
        alpha : float or "auto"
            The concentration that the result is to be used with, or the one that suits the labels. What matters
            is alpha·exp(offset).
        n_alternatives : int
            With how many clusters to confront an observation: the surrogate's best, and as many drawn at
            random, which stand for all others; without a surrogate all are drawn.
        random_state : int
        pool : bool
            Whether to find a ``surrogate_weight`` as well; it stays 0 unless asked for.

        Returns
        -------
        BlackBox
            A new one; this one is left as it is. The surrogate stays as it is.

        Examples
        --------
        A score that is twice as sure as it should be:

        >>> import numpy as np, partita as pt
        >>> rng = np.random.default_rng(0)
        >>> label = pt.DirichletProcess(15.0).sample(600, random_state=0)
        >>> X = 3.0 * rng.normal(size=600)[label] + rng.normal(size=600)
        >>> def score(clusters):  # normal with known variance, and a normal prior on the mean
        ...     n, total = np.array([(len(c), sum(c)) for c in clusters]).T
        ...     squares = np.array([np.dot(c, c) for c in clusters])
        ...     return squares * -1.0 + 9.0 * total**2 / (1.0 + 9.0 * n) - np.log1p(9.0 * n)
        >>> model = pt.BlackBox(score).fit_prior(X, label)
        >>> bool(1.6 < model.temperature < 2.5)
        True
        """
        options = {
            "alpha": alpha,
            "n_alternatives": n_alternatives,
            "random_state": random_state,
            "pool": pool,
        }
        fitted: Self = registry.taught(self, X, labels, **options)
        return fitted


def observations_of(X: Any) -> list[Any]:
    """The items of a sequence or the rows of an array; TypeError or ValueError where there are none."""
    if isinstance(X, str | bytes | Mapping | set | frozenset):
        raise TypeError(f"X must be a sequence of observations, got a single {type(X).__name__}")
    if isinstance(X, np.ndarray) or (hasattr(X, "__array__") and not isinstance(X, Sequence)):
        X = np.array(X)  # a copy, which nobody changes later
        X.setflags(write=False)
        if X.ndim == 0:
            raise TypeError("X must be a sequence of observations, got a single number")
    elif not isinstance(X, Iterable):
        raise TypeError(f"X must be a sequence of observations, got {type(X).__name__}")
    observations = list(X)
    if not observations:
        raise ValueError("X has no observations, 0 sample(s) where at least 1 is needed")
    return observations
