"""Calibration of a black box: a temperature and an offset from labelled data (paper, "Model calibration").

With log p′(c) = b·log p(c) + offset, b = 1/temperature, the posterior density of a clustering

    Σ_c [log α + lgamma(|c|) + b·log p(c) + offset]

is linear in b and the offset,

so the log-probability of the true clustering among a few alternatives is that of a logistic regression, and
concave in both. The alternatives are those that a sampler has: the cluster of each observation, given the
true clusters of those before it, or one of its own. So small clusters and new ones count as in a stream, and

    Σ_x log p(cluster of x | clusters of those before x)

is a composite likelihood (Besag 1975), greatest where it should be if the labels are a draw from such a
posterior. Not all clusters are looked at, but some that might have been whichever were the truth: the best
under the surrogate, which does not know where the observation belongs; where the truth is not among them the
observation says nothing. Without a surrogate they are the truth and others drawn at random: a set with r of K
clusters is K/r times as likely to be drawn if the truth is one of the r, which is added to their weights.

A weak normal prior, b ~ N(1, 10²) and offset ~ N(0, 100²), holds where the labels leave a direction open.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp

from partita._estimator import check_finite, log_of, whole
from partita._labels import label_codes
from partita._typing import Floats, Integers
from partita.models.base import n_features_of
from partita.models.black_box import BlackBox

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


def calibrated(
    model: B,
    X: Any,
    labels: Any,
    alpha: float,
    n_alternatives: int,
    random_state: int,
    known: Callable[[list[list[Any]]], Floats] | None = None,
) -> B:
    """The black box with the temperature and offset under which the labels are most likely.

    ``known`` is the part of the clusters' log-likelihoods that no temperature applies to, if there is one.
    """
    if labels is None:
        raise ValueError("a black box is calibrated with labelled data: fit_prior(X, labels)")
    log_alpha, n_alternatives = log_of("alpha", alpha), whole("n_alternatives", n_alternatives, 1)
    codes = label_codes("labels", labels)
    X = _validated(model, X)
    if len(codes) != len(X):
        raise ValueError(
            f"there are {len(codes)} labels, but X has {len(X)} observations; give one label each"
        )
    if len(X) < 2:
        raise ValueError("one observation alone says nothing about clusters; give more of them")
    raw = copy.copy(model).set_params(temperature=1.0, offset=0.0)
    raw.check(n_features_of(X))
    rng, sets = np.random.default_rng(random_state), Sets()
    options = _best(raw, X, codes, n_alternatives) if raw.surrogate is not None else None
    choices = _choices(codes, options, n_alternatives, rng, sets)
    evaluator = raw.evaluator()
    numbers = evaluator.add(X)
    asked = [numbers[list(s)] for s in sets.place]
    log_marginal = evaluator.log_marginals(asked, [f"row {s[0]}" for s in sets.place])
    fixed = np.zeros(len(asked)) if known is None else known([[X[i] for i in s] for s in sets.place])
    b, offset = maximise(choices, log_marginal, log_alpha, fixed)
    return copy.copy(model).set_params(temperature=1.0 / b, offset=offset)


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
    from partita.offline.partition import new_partition, put_in, take_out  # made of models, like the sampler
    from partita.offline.summaries import summaries_of

    assert model.surrogate is not None
    partition = new_partition(codes)
    summaries = summaries_of(model.surrogate, X, partition)
    for x in range(len(X)):
        summaries.shrink(take_out(partition, x), x)
    found = []
    slot_of: dict[int, int] = {}
    label_of: dict[int, int] = {}
    for x, own in enumerate(codes.tolist()):
        slots = partition.used[1:].copy()
        gains = summaries.gains(x, np.append(0, slots))[1:]
        found.append([label_of[slot] for slot in slots[np.argsort(-gains, kind="stable")[:r]].tolist()])
        slot = int(put_in(partition, x, slot_of.get(own, 0)))
        summaries.grow(slot, x)
        slot_of[own], label_of[slot] = slot, own
    return found


def _choices(
    codes: Integers, options: list[list[int]] | None, r: int, rng: np.random.Generator, sets: Sets
) -> list[Choice]:
    """Each observation's cluster given those before it."""
    choices = []
    members: dict[int, list[int]] = {}
    for x, own in enumerate(codes.tolist()):
        new = own not in members
        if options is None:
            drawn = rng.permutation([k for k in members if k != own])
            clusters = ([] if new else [own]) + drawn[: r - (not new)].tolist()
            correction = math.log(len(members) / len(clusters)) if clusters else 0.0
        else:
            clusters, correction = options[x], 0.0
        if new or own in clusters:
            alone = (0.0, [(1, sets([x]))], 1)
            joined = [
                (
                    math.log(len(members[k])) + correction,
                    [(1, sets([*members[k], x])), (-1, sets(members[k]))],
                    0,
                )
                for k in sorted(clusters, key=lambda k: k != own)
            ]
            ordered = [alone, *joined] if new else [joined[0], alone, *joined[1:]]
            choices.append(Choice(*map(list, zip(*ordered, strict=True))))
        members.setdefault(own, []).append(x)
    return choices


def maximise(
    choices: list[Choice], log_marginal: Floats, log_alpha: float, known: Floats
) -> tuple[float, float]:
    """b = 1/temperature and the offset under which the first of each set of alternatives is most likely."""
    width = max(len(choice.fixed) for choice in choices)
    fixed = np.full((len(choices), width), -np.inf)
    slope, counts = np.zeros_like(fixed), np.zeros_like(fixed)
    for row, choice in enumerate(choices):
        for k, signs in enumerate(choice.signs):
            total = sum(sign * log_marginal[place] for sign, place in signs)
            if math.isfinite(total):
                weight = choice.fixed[k] + sum(sign * known[place] for sign, place in signs)
                fixed[row, k], slope[row, k], counts[row, k] = weight, total, choice.clusters[k]
    fixed = fixed + log_alpha * counts
    possible = np.isfinite(fixed[:, 0])
    if not possible.any():
        raise ValueError("the labels are impossible under the model")
    fixed, slope, counts = fixed[possible], slope[possible], counts[possible]
    scale = max(float(np.abs(slope - slope[:, :1]).mean()), 1e-12)  # so that both directions are alike

    def loss(parameters: Floats) -> tuple[float, Floats]:
        b, offset = parameters[0] / scale, parameters[1]
        weights = fixed + b * slope + offset * counts
        total = logsumexp(weights, axis=1)
        share = np.exp(weights - total[:, None])
        away = np.array([(b - 1.0) / WIDTHS[0] ** 2, offset / WIDTHS[1] ** 2])
        value = (total - weights[:, 0]).sum() + 0.5 * ((b - 1.0) * away[0] + offset * away[1])
        gradient = np.array([((share * part).sum(axis=1) - part[:, 0]).sum() for part in (slope, counts)])
        gradient += away
        gradient[0] /= scale
        return float(value), gradient

    start = np.array([min(scale, 1.0), 0.0])
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[(1e-9 * scale, None), (None, None)])
    return float(found.x[0] / scale), float(found.x[1])
