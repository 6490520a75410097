"""Checks of what users give: errors that name the parameter, the row or the item, and what would do."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita._core.typing import Floats

MOST_WORKERS = 1024


def check_finite(X: Floats) -> None:
    """Raise ValueError for the first entry that is NaN or infinite."""
    finite = np.isfinite(X)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        what = "NaN" if np.isnan(X[row, column]) else "infinite (inf)"
        raise ValueError(f"row {row}, column {column} is {what}; drop the row or fill the value in")


def is_positive(value: Any) -> bool:
    """Whether ``value`` is a number above zero, and finite."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return number and bool(0.0 < value < math.inf)


def log_of(name: str, value: Any, or_else: str = "") -> float:
    """The logarithm of a positive number; ``or_else`` says what else would do."""
    if not is_positive(value):
        raise ValueError(f"{name} must be a positive number{or_else}, got {value!r}")
    return math.log(value)


def choice(name: str, value: Any, choices: dict[str, int]) -> int:
    """The code of one of several choices."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")
    return choices[value]


def whole(name: str, value: Any, minimum: int, maximum: int | None = None) -> int:
    """``value`` as an int of at least ``minimum``, and at most ``maximum`` if there is one."""
    fits = isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= minimum
    if not fits or (maximum is not None and value > maximum):
        most = "" if maximum is None else f" and at most {maximum}"
        raise ValueError(f"{name} must be a whole number of at least {minimum}{most}, got {value!r}")
    return int(value)


def positive(name: str, value: Any, minimum: float = 0.0) -> Floats:
    """``value`` as floats, or a ValueError that names the parameter."""
    array = np.asarray(value, dtype=np.float64)
    if not (np.isfinite(array).all() and (array > minimum).all()):
        raise ValueError(f"{name} must be finite and above {minimum:g}, got {value!r}")
    return array


def positive_number(name: str, value: Any, minimum: float = 0.0) -> float:
    """``value`` as a float, or a ValueError that names the parameter."""
    if np.ndim(value) != 0:
        raise ValueError(f"{name} must be a single number, got {value!r}")
    return float(positive(name, value, minimum))


def per_feature(name: str, value: Any, n_features: int) -> Floats:
    """``value`` as one number a feature."""
    array = np.asarray(value, dtype=np.float64)
    if array.ndim > 1 or (array.ndim == 1 and len(array) != n_features):
        raise ValueError(f"{name} has shape {array.shape}, but the data have {n_features} columns")
    return np.broadcast_to(array, (n_features,)).astype(np.float64)


def label_codes(name: str, labels: ArrayLike) -> NDArray[np.intp]:
    """Labels as integers 0..K-1; ValueError if they are not one for each item, or some are missing."""
    array = np.asarray(labels)
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, one label an item; its shape is {array.shape}")
    if array.size == 0:
        raise ValueError(f"{name} is empty")
    may_lack = array.dtype.kind in "fcO"
    missing = [k for k, x in enumerate(array.tolist()) if x is None or x != x] if may_lack else []
    if missing:
        raise ValueError(f"{name}: item {missing[0]} is missing; drop the items without a label")
    try:
        return np.unique(array, return_inverse=True)[1]
    except TypeError as error:
        raise ValueError(f"{name} cannot be sorted; make its labels all integers or all strings") from error


def workers(n_jobs: int | None) -> int:
    """How many workers ``n_jobs`` asks for, as in scikit-learn: one unless given, and for −1 one a core."""
    if n_jobs is None:
        return 1
    if n_jobs == -1:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        return whole("n_jobs", n_jobs, 1, MOST_WORKERS)
    except ValueError as error:
        raise ValueError(f"{error}; -1 is one for each core") from None
