"""Observations of a black box as JSON, for files: numbers as they are, objects where JSON can hold them."""

from __future__ import annotations

from typing import Any

import numpy as np

PLAIN = (str, int, float, bool, type(None))
NUMBERS = "biuf"  # kinds of arrays that are numbers


def to_json(observations: list[Any]) -> dict[str, Any]:
    """Rows of numbers by their type, others as they are; ValueError for those that JSON would change."""
    first = observations[0]
    if isinstance(first, np.ndarray | np.generic) and first.dtype.kind in NUMBERS:
        alike = [
            isinstance(x, np.ndarray | np.generic) and (x.dtype, x.shape) == (first.dtype, first.shape)
            for x in observations
        ]
        if all(alike):
            return {"type": first.dtype.str, "values": np.stack(observations).tolist()}
    for row, observation in enumerate(observations):
        if not is_plain(observation):
            raise ValueError(
                f"row {row}: cannot save {type(observation).__name__} {observation!r:.60}; only strings, "
                "numbers, lists and dicts with strings for keys can be saved, and rows of one array"
            )
    return {"type": "json", "values": observations}


def is_plain(value: Any) -> bool:
    """Whether a value comes back from JSON as it was."""
    if isinstance(value, list):
        return all(is_plain(item) for item in value)
    if isinstance(value, dict):
        return all(isinstance(key, str) and is_plain(item) for key, item in value.items())
    return isinstance(value, PLAIN)


def from_json(kept: Any, n: int) -> Any:
    """The n observations: an array if they were rows of one, else a list."""
    values = kept["values"]
    if not isinstance(values, list) or len(values) != n:
        raise ValueError("observations make no sense")
    if kept["type"] == "json":
        return values
    kind = np.dtype(kept["type"])
    if kind.kind not in NUMBERS:
        raise ValueError("observations make no sense")
    return np.array(values, kind)
