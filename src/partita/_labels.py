"""Labels that users give."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


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
