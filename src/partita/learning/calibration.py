"""Calibration of a black box: a temperature and an offset from labelled data (paper, "Model calibration").

With log p′(c) = b·log p(c) + offset, b = 1/temperature, the posterior density of a clustering

    Σ_c [log α + lgamma(|c|) + b·log p(c) + offset]

is linear in b and the offset,

so the log-probability of the true clustering among a few alternatives is that of a logistic regression, and
concave in both, as it is in the weight of another likelihood beside (a logarithmic opinion pool). The
alternatives are those that a sampler has: the cluster of each observation, given the true clusters of those
before it, or one of its own. So small clusters and new ones count as in a stream, and

    Σ_x log p(cluster of x | clusters of those before x)

is a composite likelihood (Besag 1975), greatest where it should be if the labels are a draw from such a
posterior. Not all clusters are looked at. Half of the alternatives are the best under the surrogate, which
does not know where the observation belongs. Others are drawn at random from the K that are left, with the
truth among them if it is one of these: a set with r of them is K/r times as likely to be drawn if it is,
which is added to their weights (McFadden 1978). So a handful stands for all that an observation could join
by mistake.

A weak normal prior, b ~ N(1, 10²) and offset ~ N(0, 100²), holds where the labels leave a direction open.
"""

from __future__ import annotations

import copy
import math
from typing import Any, NamedTuple, TypeVar

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp

from partita._core.checks import check_finite, label_codes, log_of, whole
from partita._core.concentration import alpha_for
from partita._core.typing import Floats, Integers
from partita.models.base import n_features_of
from partita.models.black_box import BlackBox
from partita.models.registry import learn
from partita.models.scoring.partition import new_partition, put_in, take_out
from partita.models.scoring.scored import ScoredPartition, log_p_of

B = TypeVar("B", bound=BlackBox)

WIDTHS = (10.0, 100.0)  # standard deviations of the prior of b and of the offset


class Choice(NamedTuple):
    """One set of alternatives, the truth first."""

    fixed: list[float]  # of each: the part of its log-weight that does not change
    signs: list[list[tuple[int, int]]]  # of each: (±1, set) for the log p(c) in it
    clusters: list[int]  # of each: its number of clusters, up to a constant


class Sets:
    """Member sets to be scored, each once."""

    def __init__(self) -> None:
        self.place: dict[tuple[int, ...], int] = {}

    def __call__(self, members: Any) -> int:
        """Where a set stands among those to be scored."""
        return self.place.setdefault(tuple(sorted(members)), len(self.place))


class Questions(NamedTuple):
    """What a black box was asked for to calibrate it, and what it said."""

    choices: list[Choice]
    clusters: list[list[Any]]
    log_p: Floats  # of each cluster
    model: BlackBox

    def surrogate(self) -> Floats:
        """log p of each cluster under the surrogate."""
        assert self.model.surrogate is not None
        return log_p_of(self.model.surrogate, self.clusters)


@learn.register(BlackBox)
def calibrated(
    model: B,
    X: Any,
    labels: Any = None,
    *,
    alpha: float | str = 1.0,
    n_alternatives: int = 10,
    random_state: int = 0,
    pool: bool = False,
) -> B:
    """The black box with the temperature and offset under which the labels are most likely.

    With ``pool`` the weight of the surrogate is fitted, too.
    """
    automatic = isinstance(alpha, str) and alpha == "auto"
    log_alpha = 0.0 if automatic else log_of("alpha", alpha, ' or "auto"')
    if pool and model.surrogate is None:
        raise ValueError("pool finds the weight of a surrogate, and there is none")
    asked = questions(model, X, labels, n_alternatives, random_state)
    if automatic:
        codes = label_codes("labels", labels)
        log_alpha = math.log(alpha_for(codes.max() + 1.0, len(codes)))
    columns = [asked.log_p, asked.surrogate()] if pool else [asked.log_p]
    (b, *weights), offset = maximise(asked.choices, np.array(columns), log_alpha)
    found = {"temperature": 1.0 / b, "offset": offset, "surrogate_weight": weights[0] if pool else 0.0}
    return copy.copy(model).set_params(**found)


def questions(model: BlackBox, X: Any, labels: Any, n_alternatives: int, random_state: int) -> Questions:
    """Confront each observation with some clusters of those before it, and ask for log p of all."""
    if labels is None:
        raise ValueError("a black box is calibrated with labelled data: fit_prior(X, labels)")
    n_alternatives = whole("n_alternatives", n_alternatives, 1)
    codes = label_codes("labels", labels)
    X = _validated(model, X)
    if len(codes) != len(X):
        raise ValueError(
            f"there are {len(codes)} labels, but X has {len(X)} observations; give one label each"
        )
    if len(X) < 2:
        raise ValueError("one observation alone says nothing about clusters; give more of them")
    raw = copy.copy(model).set_params(temperature=1.0, offset=0.0, surrogate_weight=0.0)
    raw.check(n_features_of(X))
    sets, rng = Sets(), np.random.default_rng(random_state)
    best = [[]] * len(X) if raw.surrogate is None else _best(raw, X, codes, (n_alternatives + 1) // 2)
    choices = _choices(codes, best, n_alternatives, rng, sets)
    evaluator = raw.evaluator()
    numbers = evaluator.add(X)
    names = [f"row {s[0]}" for s in sets.place]
    log_p = evaluator.log_marginals([numbers[list(s)] for s in sets.place], names)
    return Questions(choices, [[X[i] for i in s] for s in sets.place], log_p, raw)


def _validated(model: BlackBox, X: Any) -> Any:
    """Observations as the model takes them."""
    if not model.reads_rows:
        return model.validate(X)
    X = np.array(X, np.float64)
    if X.ndim != 2:
        raise ValueError(f"X must have rows and columns, its shape is {X.shape}; try X.reshape(-1, 1)")
    check_finite(X)
    return X


def _best(model: BlackBox, X: Any, codes: Integers, r: int) -> list[list[int]]:
    """For each observation the r best clusters of those before it, under the surrogate."""
    assert model.surrogate is not None
    partition = new_partition(codes)
    scored = ScoredPartition(model.surrogate, X, partition)
    for x in range(len(X)):
        scored.shrink(take_out(partition, x), x)
    found = []
    slot_of: dict[int, int] = {}
    label_of: dict[int, int] = {}
    for x, own in enumerate(codes.tolist()):
        slots = partition.used[1:].copy()
        gains = scored.gains(x, np.append(0, slots))[1:]
        found.append([label_of[slot] for slot in slots[np.argsort(-gains, kind="stable")[:r]].tolist()])
        slot = int(put_in(partition, x, slot_of.get(own, 0)))
        scored.grow(slot, x)
        slot_of[own], label_of[slot] = slot, own
    return found


def _choices(
    codes: Integers, best: list[list[int]], r: int, rng: np.random.Generator, sets: Sets
) -> list[Choice]:
    """Each observation's cluster given those before it, among the best and others, r in all."""
    choices = []
    members: dict[int, list[int]] = {}
    for x, own in enumerate(codes.tolist()):
        known = set(best[x])
        left = [k for k in members if k not in known]
        n_drawn = min(r - len(known), len(left))
        first = [own] if own in left else []
        others = rng.permutation([k for k in left if k != own])[: max(n_drawn - len(first), 0)].tolist()
        if len(first) <= n_drawn:  # else there is no room for the truth
            stand_for = math.log(len(left) / n_drawn) if n_drawn else 0.0
            weights = dict.fromkeys(best[x], 0.0) | dict.fromkeys(first + others, stand_for)
            choices.append(_choice(x, own, members, weights, sets))
        members.setdefault(own, []).append(x)
    return choices


def _choice(x: int, own: int, members: dict[int, list[int]], weights: dict[int, float], sets: Sets) -> Choice:
    """A new cluster, or those that have weights."""
    alone = (0.0, [(1, sets([x]))], 1)
    joined = [
        (
            math.log(len(members[k])) + weights[k],
            [(1, sets([*members[k], x])), (-1, sets(members[k]))],
            0,
        )
        for k in sorted(weights, key=lambda k: k != own)
    ]
    ordered = [joined[0], alone, *joined[1:]] if own in members else [alone, *joined]
    return Choice(*map(list, zip(*ordered, strict=True)))


def maximise(
    choices: list[Choice], log_marginals: Floats, log_alpha: float, known: Floats | None = None
) -> tuple[list[float], float]:
    """The weights of some log p(c), one a row, and the offset under which the truth is most likely.

    The first weight is b = 1/temperature, and above 0; others are 0 at least. Of each set of alternatives the
    truth is the first. ``known`` is the part of log p(c) that has no weight, if there is one.
    """
    known = np.zeros(log_marginals.shape[1]) if known is None else known
    n = len(log_marginals)
    width = max(len(choice.fixed) for choice in choices)
    fixed = np.full((len(choices), width), -np.inf)
    slopes = np.zeros((n + 1, *fixed.shape))  # the last is how many clusters there are
    for row, choice in enumerate(choices):
        for k, signs in enumerate(choice.signs):
            totals: Floats = sum(sign * log_marginals[:, place] for sign, place in signs)  # type: ignore[assignment]
            if np.isfinite(totals).all():
                fixed[row, k] = choice.fixed[k] + sum(sign * known[place] for sign, place in signs)
                slopes[:, row, k] = *totals, choice.clusters[k]
    fixed = fixed + log_alpha * slopes[n]
    possible = np.isfinite(fixed[:, 0])
    if not possible.any():
        raise ValueError("the labels are impossible under the model")
    fixed, slopes = fixed[possible], slopes[:, possible]
    scales = np.maximum(np.abs(slopes - slopes[..., :1]).mean(axis=(1, 2)), 1e-12)  # so that all are alike
    scales[n] = 1.0
    centre, spread = np.array([1.0] + [0.0] * n), np.array([WIDTHS[0]] * n + [WIDTHS[1]])

    def loss(parameters: Floats) -> tuple[float, Floats]:
        weights = parameters / scales
        total = fixed + np.tensordot(weights, slopes, 1)
        most = logsumexp(total, axis=1)
        share = np.exp(total - most[:, None])
        away = (weights - centre) / spread**2
        value = (most - total[:, 0]).sum() + 0.5 * ((weights - centre) * away).sum()
        gradient = (share * slopes).sum(axis=(1, 2)) - slopes[..., 0].sum(axis=1) + away
        return float(value), gradient / scales

    start = np.minimum(scales, 1.0)
    start[1:] = 0.0
    bounds = [(1e-9 * scales[0], None), *[(0.0, None)] * (n - 1), (None, None)]
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x / scales
    return found[:n].tolist(), float(found[n])
