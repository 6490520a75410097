"""Is evidence worth what it says? The slope of truth on evidence, where the truth is known.

A log-likelihood ratio e is honest if a unit of it changes the log-odds of the truth by one: if truth, regressed on e,
has slope 1. Below 1 a model is too sure, above 1 it could be surer. Three levels, since evidence that is honest of one
observation may add up to too much:

- *observations*: the cluster of x among the true clusters C of all others and a new one, P(c) ∝ exp(b·e_c) with
  e_c = log|c| + log p(x | c), and e = log α + log p(x) for the new one;
- *merges*: whether two halves of true clusters are of the same one,
- *pairs*: whether two observations are, of which each true cluster gives two, logit P = a + b·e with
  e = log p(A∪B) − log p(A) − log p(B) + lgamma(|A|+|B|) − lgamma(|A|) − lgamma(|B|) − log α.

All pairs of halves, or of observations, are looked at: to choose those that are alike would choose by the evidence. A
weak normal prior, b ~ N(1, 10²), holds where evidence decides every case and any slope would do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, gammaln, logsumexp

from partita._core.checks import label_codes, log_of, whole
from partita._core.typing import Array, Floats, Integers
from partita.learning.known import whole_clusters
from partita.models.base import copied, n_features_of, taken
from partita.models.scoring.partition import new_partition, put_in, take_out
from partita.models.scoring.scored import ScoredPartition

if TYPE_CHECKING:
    from partita.models.base import Model

WIDTH = 10.0  # standard deviation of the prior of a slope
STEEPEST = 50.0
CLUSTERS = 150  # of which the halves are compared, each with each
IMPOSSIBLE = -1e9  # evidence


class Slope(NamedTuple):
    """A slope of truth on evidence, its standard error, and from how many cases it is."""

    slope: float
    error: float
    cases: int


class EvidenceSlopes(NamedTuple):
    """The slope at each level; None where the labels have no case, or only of one kind."""

    observations: Slope | None
    merges: Slope | None
    pairs: Slope | None


def evidence_slopes(
    model: Model,
    X: Any,
    labels_true: Any,
    alpha: float,
    *,
    n_records: int = 1000,
    random_state: int = 0,
) -> EvidenceSlopes:
    """The slope of truth on a model's evidence; 1 is honest, below 1 too sure.

    Parameters
    ----------
    model : Model
        Fitted.
    X : observations, as the model takes them
    labels_true : array-like of shape (n,)
        Their true clusters.
    alpha : float
        The concentration, as ``sampler.alpha_``.
    n_records : int
        How many are looked at, in whole clusters.
    random_state : int

    Examples
    --------
    >>> import numpy as np, partita as pt
    >>> rng = np.random.default_rng(0)
    >>> labels = np.repeat(np.arange(40), 5)
    >>> X = rng.normal(0.0, 10.0, (40, 2))[labels] + rng.normal(size=(200, 2))
    >>> honest = pt.Gaussian(shape=50.0, rate=50.0, mean=0.0, precision=0.01)
    >>> slopes = pt.metrics.evidence_slopes(honest, X, labels, alpha=10.0)
    >>> bool(abs(slopes.observations.slope - 1.0) < 3 * slopes.observations.error)
    True
    """
    codes = label_codes("labels_true", labels_true)
    X, log_alpha = model.validate(X) if not model.reads_rows else np.asarray(X, float), log_of("alpha", alpha)
    if len(codes) != len(X):
        raise ValueError(f"labels_true has {len(codes)} items, X {len(X)} observations; they must match")
    rng = np.random.default_rng(random_state)
    rows = whole_clusters(codes, whole("n_records", n_records, 2), rng)
    X, codes = taken(X, rows), np.unique(codes[rows], return_inverse=True)[1]
    own = copied(model)
    own.check(n_features_of(X))
    members = [rng.permutation(np.flatnonzero(codes == c)) for c in range(codes.max() + 1)]
    several = [held for held in members if len(held) > 1][:CLUSTERS]
    halves = [part for held in several for part in (held[: len(held) // 2], held[len(held) // 2 :])]
    pairs = [part for held in several for part in (held[:1], held[1:2])]
    return EvidenceSlopes(
        choice_slope(choices(own, X, codes, log_alpha)),
        merge_slope(own, X, halves, log_alpha),
        merge_slope(own, X, pairs, log_alpha),
    )


def choices(model: Model, X: Any, codes: Integers, log_alpha: float) -> Floats:
    """Each observation's evidence for its own cluster, first, and for all others, given the others' true clusters."""
    partition = new_partition(codes)
    scored = ScoredPartition(model, X, partition)
    evidence = np.full((len(X), codes.max() + 2), IMPOSSIBLE)
    for x in range(len(X)):
        left = int(take_out(partition, x))
        scored.shrink(left, x)
        slots = partition.used.copy()  # the first stands for a new cluster
        gains = np.maximum(np.nan_to_num(scored.gains(x, slots), neginf=IMPOSSIBLE), IMPOSSIBLE)
        gains[0] += log_alpha
        alone = partition.size[left] == 0
        true = 0 if alone else int(np.flatnonzero(slots == left)[0])
        evidence[x, : len(slots)] = np.append(gains[true], np.delete(gains, true))
        scored.grow(int(put_in(partition, x, 0 if alone else left)), x)
    return evidence


def merge_slope(model: Model, X: Any, parts: list[Integers], log_alpha: float) -> Slope | None:
    """The slope for all pairs of parts, of which each two in a row are of one cluster; None if it is only one."""
    if len(parts) < 4:
        return None
    sizes = np.array([len(part) for part in parts])
    scored = ScoredPartition(
        model, taken(X, np.concatenate(parts)), new_partition(np.repeat(np.arange(len(parts)), sizes))
    )
    first, second = np.triu_indices(len(parts), 1)
    score = scored.clusters.log_p(np.arange(len(parts)) + 1) + gammaln(sizes)
    both = scored.unions(first + 1, second + 1) + gammaln(sizes[first] + sizes[second])
    evidence = np.nan_to_num(both - score[first] - score[second] - log_alpha, neginf=IMPOSSIBLE)
    return slope_of_truth(evidence, first // 2 == second // 2)


# ---------------------------------------------------------------------- regression


def choice_slope(evidence: Floats) -> Slope | None:
    """b of P(k) ∝ exp(b·e_k), where the first of each row is true (conditional logit)."""
    if evidence.shape[1] < 2 or not len(evidence):
        return None

    def loss(b: float) -> float:
        return float(
            (logsumexp(b * evidence, axis=1) - b * evidence[:, 0]).sum() + 0.5 * ((b - 1) / WIDTH) ** 2
        )

    b = float(minimize_scalar(loss, bounds=(1e-6, STEEPEST), method="bounded").x)
    share = np.exp(b * evidence - logsumexp(b * evidence, axis=1, keepdims=True))
    mean = (share * evidence).sum(axis=1, keepdims=True)
    curvature = (share * (evidence - mean) ** 2).sum() + WIDTH**-2
    return Slope(b, float(curvature**-0.5), len(evidence))


def slope_of_truth(evidence: Any, same: Array) -> Slope:
    """b of logit P(same) = a + b·evidence (logistic regression).

    >>> slope_of_truth([-3.0, -1.0, 0.0, 0.5, 1.0, 4.0], [False, False, True, False, True, True]).cases
    6
    """
    e, same = np.asarray(evidence, float), np.asarray(same, bool)
    scale = max(float(np.abs(e).mean()), 1e-12)  # so that both parameters are alike
    design = np.column_stack([np.ones(len(e)), e / scale])
    centre, precision = np.array([0.0, scale]), np.array([1.0, scale**-2]) / WIDTH**2

    def loss(parameters: Floats) -> tuple[float, Floats]:
        logit, away = design @ parameters, parameters - centre
        value = np.logaddexp(0.0, logit).sum() - logit[same].sum() + 0.5 * (precision * away**2).sum()
        return float(value), design.T @ (expit(logit) - same) + precision * away

    found = minimize(loss, np.zeros(2), jac=True, method="L-BFGS-B").x
    p = expit(design @ found)
    curvature = (design.T * (p * (1.0 - p))) @ design + np.diag(precision)
    return Slope(float(found[1] / scale), float(np.sqrt(np.linalg.inv(curvature)[1, 1]) / scale), len(e))
