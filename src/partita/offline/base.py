"""What the offline estimators share: a best clustering, and the way to it."""

from __future__ import annotations

import math
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import NotFittedError

from partita._core.checks import is_positive, log_of
from partita._core.concentration import alpha_for
from partita._core.typing import Floats, Integers
from partita._estimator import Clusterer
from partita.models.base import Model
from partita.models.scoring.partition import Partition, in_order


class History(NamedTuple):
    """The clusterings that an offline method went through.

    Attributes
    ----------
    time : array of shape (t,)
        Seconds since the start.
    score : array of shape (t,)
        Log-density of each clustering, as :meth:`Gibbs.log_density` counts it.
    n_clusters : array of shape (t,)
    labels : array of shape (t, n), or None
        The clusterings themselves, if ``keep_labels`` was set; numbered in order of first appearance.
    """

    time: Floats
    score: Floats
    n_clusters: Integers
    labels: Integers | None

    @property
    def best_score(self) -> Floats:
        """The highest score up to each moment."""
        return np.maximum.accumulate(self.score)

    @property
    def leader(self) -> Integers:
        """Which moment had the best clustering up to each moment: ``labels[leader]`` are the best so far."""
        moments = np.arange(len(self.score))
        improved = np.concatenate([[True], self.score[1:] > self.best_score[:-1]])
        return np.maximum.accumulate(np.where(improved, moments, 0))


class Recorder:
    """Keeps the best clustering, and what a :class:`History` needs."""

    def __init__(self, keep_labels: bool, max_time: float | None) -> None:
        self.start, self.max_time = perf_counter(), max_time
        self.moments: list[tuple[float, float, int]] = []
        self.kept: list[Integers] | None = [] if keep_labels else None
        self.best_score, self.best_label = -math.inf, np.zeros(0, np.int64)
        self.since_best = 0

    def record(self, score: float, partition: Partition) -> None:
        """Note where the method has come to."""
        self.moments.append((perf_counter() - self.start, score, int(partition.n_clusters[0])))
        self.since_best += 1
        if score > self.best_score:
            self.best_score, self.best_label, self.since_best = score, partition.label.copy(), 0
        if self.kept is not None:
            self.kept.append(in_order(partition.label))

    def has_used(self, share: float) -> bool:
        """Whether so much of ``max_time`` has passed by now."""
        return self.max_time is not None and perf_counter() - self.start >= share * self.max_time

    @property
    def out_of_time(self) -> bool:
        """Whether ``max_time`` seconds had passed at the last moment noted, so that who reads the history can tell."""
        return self.max_time is not None and self.moments[-1][0] >= self.max_time

    def history(self) -> History:
        """All that was noted."""
        time, score, count = (np.array(column) for column in zip(*self.moments, strict=True))
        return History(time, score, count, None if self.kept is None else np.array(self.kept))


class Offline(Clusterer):
    """Base of the estimators that see all data at once."""

    alpha_: float
    labels_: Integers
    history_: History
    model_: Model
    _log_density: float

    def log_density(self) -> float:
        """Score of ``labels_``: ``Σ_c [log α + lgamma(|c|) + log p(c)]`` (paper, eq. 3)."""
        if not hasattr(self, "_log_density"):
            raise NotFittedError(f"This {type(self).__name__} is not fitted yet: call fit with data first")
        return self._log_density

    def _finish(self, model: Model, recorder: Recorder, log_alpha: float) -> None:
        self.alpha_ = math.exp(log_alpha)
        self.model_, self.history_ = model, recorder.history()
        self.labels_, self._log_density = in_order(recorder.best_label), float(recorder.best_score)


def is_automatic(alpha: Any) -> bool:
    """Whether the concentration is to be learnt."""
    return isinstance(alpha, str) and alpha == "auto"


def log_alpha_of(alpha: Any) -> float:
    """The logarithm of the concentration, or where to begin to learn it; ValueError if it makes no sense."""
    return 0.0 if is_automatic(alpha) else log_of("alpha", alpha, ' or "auto"')


def learnt_log_alpha(n_clusters: float, n: int) -> float:
    """The logarithm of the concentration that suits so many clusters of n observations, on average.

    Empirical Bayes, with the weak prior that the samplers have.
    """
    return math.log(alpha_for(float(n_clusters), n))


def check_max_time(max_time: Any) -> None:
    """Raise ValueError unless it is None or a positive number."""
    if max_time is not None and not is_positive(max_time):
        raise ValueError(f"max_time must be a positive number of seconds or None, got {max_time!r}")
