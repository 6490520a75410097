"""Observations as the algorithms store them, refused where the model has no place for them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from partita._core.kernel import kernel
from partita._core.typing import Floats
from partita.models.base import CompiledModel, Model
from partita.models.scoring.families import begin, gains


@kernel
def first_impossible(family, width, n_features, data):
    """The first observation whose density under the prior is not finite; −1 if there is none."""
    statistics, gain, empty = np.zeros((1, width)), np.empty(1), np.zeros(1, np.int64)
    begin(family, statistics, n_features)
    for x in range(data.shape[0]):
        gains(family, statistics, empty, np.int64(0), np.int64(1), data, x, gain)
        if not math.isfinite(gain[0]):
            return x
    return -1


def check_possible(model: CompiledModel, family: Any, n_features: int, encoded: Floats) -> None:
    """Raise ValueError for the first row whose density under the prior is not finite."""
    if model.always_possible:
        return
    bad = first_impossible(family, model.width(n_features), n_features, encoded)
    if bad >= 0:
        raise ValueError(
            f"row {bad}: its density under the model is not finite; rescale the data or fit the model's "
            "prior to them"
        )


def log_marginals(model: Model, totals: Floats, sizes: Floats, who: str) -> Floats:
    """A user's model: log p(c) of many clusters; an error names ``who`` they are tried for."""
    result = np.asarray(model.log_marginal(totals, sizes), np.float64)
    name = f"{who}: {type(model).__name__}.log_marginal"
    if result.shape != sizes.shape:
        raise ValueError(f"{name} must return one number a cluster, {sizes.shape}, got {result.shape}")
    if not (result < np.inf).all():
        wrong = result[~(result < np.inf)][0]
        raise ValueError(f"{name} returned {wrong}; logarithms must be below infinity")
    return result
