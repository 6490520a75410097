"""Gibbs sampling: exact, and Metropolis-within-Gibbs with a surrogate."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from partita._core.checks import label_codes, whole
from partita._core.progress import steps
from partita._core.typing import Integers
from partita._estimator import own_copy
from partita.models.base import Model
from partita.models.black_box import BlackBox
from partita.models.scoring.partition import in_order
from partita.offline.base import (
    Offline,
    Recorder,
    check_max_time,
    is_automatic,
    learnt_log_alpha,
    log_alpha_of,
)
from partita.offline.chain import chain

LEARNING = 100  # sweeps in which the concentration is learnt
SETTLING = 20  # of these: while the chain leaves its start, the last sweep alone counts


class Gibbs(Offline):
    """Collapsed Gibbs sampling of a Dirichlet-process mixture (Neal 2000, algorithm 3).

    Each sweep draws every observation's cluster anew, in random order, given all others. The clustering with
    the highest posterior density at the end of any sweep is kept (paper, section 4 and appendix "Offline
    Algorithms").

    Parameters
    ----------
    model : Model, optional
        How likely a cluster is. None stands for a :class:`Gaussian` whose prior is fitted to the data.
    alpha : float or "auto"
        Concentration of the Dirichlet process: the larger, the more clusters. "auto" learns it by empirical Bayes
        during 100 sweeps, or ``max_sweeps`` or half of ``max_time`` if that is less, which are not recorded, and
        keeps to it from then on.
    surrogate : Model, optional
        A cheaper model, from whose conditional distribution clusters are proposed; the model then accepts or
        rejects, and is asked for two clusters only. It must not rule out what the model does not. The less it is
        like the model, the more often it is rejected: the draws are of the same posterior, but the chain takes more
        sweeps to come to it.
    init : array of shape (n,), optional
        Labels to start from. Every observation is a cluster of its own by default.
    max_sweeps : int
        Stop after so many sweeps.
    patience : int, optional
        Stop after so many sweeps in a row that found nothing better; the paper has 500.
    max_time : float, optional
        Stop after the sweep during which so many seconds have passed.
    keep_labels : bool
        Keep the clustering after every sweep in ``history_``: draws from the posterior, once the chain has
        come near it.
    random_state : int, RandomState or None

    Attributes
    ----------
    labels_ : array of shape (n,)
        The best clustering seen, numbered in order of first appearance.
    history_ : History
        At the start and after every sweep, arrays of shape (sweeps + 1,): ``time`` in seconds, ``score``, and
        ``n_clusters``; with ``keep_labels`` also ``labels``, of shape (sweeps + 1, n), else None.
    model_ : Model
    alpha_ : float
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np, partita as pt
    >>> X = np.array([[0.0], [0.2], [7.0], [0.1], [7.1]])
    >>> gibbs = pt.Gibbs(pt.Gaussian(rate=0.1), alpha=1.0, max_sweeps=50, random_state=0).fit(X)
    >>> gibbs.labels_
    array([0, 0, 1, 0, 1])
    >>> bool(gibbs.log_density() == gibbs.history_.score.max())
    True

    Draws, and what they say of a pair, beside what the posterior of :class:`SplitSMC` says:

    >>> chain = pt.Gibbs(pt.Gaussian(rate=0.1), alpha=1.0, keep_labels=True, random_state=0).fit(X)
    >>> draws = chain.history_.labels[100:]
    >>> sampler = pt.SplitSMC(pt.Gaussian(rate=0.1), alpha=1.0).fit(X)
    >>> bool(abs((draws[:, 0] == draws[:, 1]).mean() - sampler.posterior_.together(0, 1)) < 0.1)
    True
    """

    def __init__(
        self,
        model: Model | None = None,
        alpha: float | str = 1.0,
        *,
        surrogate: Model | None = None,
        init: Any = None,
        max_sweeps: int = 1000,
        patience: int | None = None,
        max_time: float | None = None,
        keep_labels: bool = False,
        random_state: Any = None,
    ) -> None:
        self.model = model
        self.alpha = alpha
        self.surrogate = surrogate
        self.init = init
        self.max_sweeps = max_sweeps
        self.patience = patience
        self.max_time = max_time
        self.keep_labels = keep_labels
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, progress: bool = False) -> Self:
        """Run the chain on the rows of ``X``.

        A call that raises or is interrupted has changed nothing.

        Parameters
        ----------
        X : array of shape (n, d)
        y : ignored
        progress : bool
            Show a progress bar.
        """
        log_alpha, max_sweeps = log_alpha_of(self.alpha), whole("max_sweeps", self.max_sweeps, 0)
        patience = max_sweeps if self.patience is None else whole("patience", self.patience, 1)
        check_max_time(self.max_time)
        with self._same_attributes_if_it_fails():
            X = self._validated(X, reset=True)
            labels = self._initial_labels(len(X))
            surrogate = None if self.surrogate is None else own_copy("surrogate", self.surrogate, X)
            model = self._own_model(X)
            recorder = Recorder(self.keep_labels, self.max_time)
            rng = np.random.default_rng(self._seed())
            walk = chain(model, surrogate, X, labels, log_alpha)
            if is_automatic(self.alpha):
                counts: list[int] = []
                while len(counts) < min(LEARNING, max_sweeps) and not recorder.has_used(0.5):
                    walk.sweep(rng.permutation(len(X)), rng.random((len(X), 2)))
                    counts.append(int(walk.partition.n_clusters[0]))
                    settled = counts[SETTLING:] or counts[-1:]  # one draw alone would leave α to chance
                    walk.log_alpha = learnt_log_alpha(sum(settled) / len(settled), len(X))
            recorder.record(walk.score(), walk.partition)
            for _ in steps(range(max_sweeps), "sampling", progress):
                walk.sweep(rng.permutation(len(X)), rng.random((len(X), 2)))
                recorder.record(walk.score(), walk.partition)
                if recorder.since_best >= patience or recorder.out_of_time:
                    break
            self._finish(model, recorder, walk.log_alpha)
        return self

    def _reader(self) -> Model | None:
        anything = isinstance(self.model, BlackBox) and self.model.surrogate is None
        return self.surrogate if anything and self.surrogate is not None else self.model

    def _initial_labels(self, n: int) -> Integers:
        if self.init is None:
            return np.arange(n)
        labels = label_codes("init", self.init)
        if len(labels) != n:
            raise ValueError(f"init has {len(labels)} labels, but X has {n} rows; give one label a row")
        return in_order(labels)
