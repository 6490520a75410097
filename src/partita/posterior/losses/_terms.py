"""The losses, as numbers that the kernels read: no kernel knows which loss it works on."""

import math
from typing import NamedTuple

import numpy as np

from partita._core.typing import Floats

BINDER, VI, BCUBED, MAP = range(4)
CODES = {"map": MAP, "bcubed": BCUBED, "vi": VI, "binder": BINDER}

#: Gains below this share of the loss's scale are rounding, not progress.
TOLERANCE = 1e-13


class Loss(NamedTuple):
    """Which loss, and Binder's two costs."""

    code: int
    false_merge: float = 1.0
    false_split: float = 1.0


def named_loss(name: str, false_merge_cost: float, false_split_cost: float) -> Loss:
    """The loss of that name, its arguments checked."""
    if not isinstance(name, str) or name not in CODES:
        raise ValueError(f"loss must be one of {', '.join(map(repr, CODES))}; got {name!r}")
    for argument, cost in (("false_merge_cost", false_merge_cost), ("false_split_cost", false_split_cost)):
        if not 0.0 < cost < math.inf:
            raise ValueError(f"{argument} must be positive and finite, got {cost}")
        if cost != 1.0 and name != "binder":
            raise ValueError(f"{argument} belongs to loss='binder'; loss={name!r} has no costs")
    return Loss(CODES[name], float(false_merge_cost), float(false_split_cost))


class Terms(NamedTuple):
    """f(ĉ) = u·t(A) − v·Σ_c P(c)·t(I)·d(A+C), for sizes up to that of the whole."""

    value: Floats  # t(0), t(1), …: pairs k(k−1)/2, k log k, or k²
    discount: Floats  # d(0), d(1), …: 1/k for B-cubed, else 1
    size_cost: float  # u
    overlap_cost: float  # v
    dilutes: bool  # whether d is not 1


def tabulate(loss: Loss, n: int) -> Terms:
    """The terms of a loss for clusters of at most n observations."""
    k, ones = np.arange(n + 1, dtype=np.float64), np.ones(2 * n + 1)
    if loss.code == BINDER:
        pairs, both_costs = k * (k - 1.0) / 2.0, loss.false_merge + loss.false_split
        return Terms(pairs, ones, float(loss.false_merge), float(both_costs), False)
    if loss.code == VI:
        return Terms(k * np.log(np.maximum(k, 1.0)), ones, 1.0, 2.0, False)
    return Terms(k * k, ones / np.maximum(np.arange(2 * n + 1), 1), 0.0, 2.0, True)


def rounding(loss: Loss, n: int) -> float:
    """What a change per observation moved must exceed to count, among n observations."""
    if loss.code == BINDER:
        return TOLERANCE * n * (loss.false_merge + loss.false_split)
    return TOLERANCE * n * (1.0 + math.log(n)) if loss.code == VI else TOLERANCE * n
