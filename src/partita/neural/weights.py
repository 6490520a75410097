"""Weights of networks in files: safetensors, with the configuration as JSON in the header."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, TypeVar

import equinox as eqx
import jax
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as serialised

from partita._core.typing import Array

M = TypeVar("M")


def arrays_of(module: Any) -> dict[str, Any]:
    """The arrays of a module, by their places in it."""
    leaves = jax.tree_util.tree_flatten_with_path(eqx.filter(module, eqx.is_array))[0]
    return {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in leaves}


def save(path: Path, arrays: dict[str, Any], about: dict[str, Any]) -> None:
    """Write arrays, and what else there is to know, in one step."""
    partial = path.with_name(path.name + ".partial")
    contents = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    # Not by save_file, whose files nobody else may read.
    partial.write_bytes(serialised(contents, metadata={"about": json.dumps(about)}))
    partial.replace(path)


def halved(arrays: dict[str, Any]) -> dict[str, Array]:
    """Arrays of 32-bit floats in 16 bits."""
    return {name: np.asarray(array, np.float16) for name, array in arrays.items()}


def rounded(leaf: Any) -> Any:
    """Weights as they are after a file of 16 bits."""
    return leaf.astype(jax.numpy.float16).astype(leaf.dtype) if eqx.is_inexact_array(leaf) else leaf


def fingerprint(about: dict[str, Any], arrays: dict[str, Any]) -> str:
    """A hash of weights, in 16 bits, and of what is known beside them."""
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for name, array in sorted(halved(arrays).items()):
        digest.update(name.encode() + array.tobytes())
    return digest.hexdigest()[:16]


def about(path: Path, kind: str | None = None) -> dict[str, Any]:
    """What a file says of its arrays; ValueError if it is none of ours, or of another kind."""
    try:
        with safe_open(path, "numpy") as file:
            found = json.loads(file.metadata()["about"])
    except (SafetensorError, LookupError, TypeError, ValueError) as error:
        raise ValueError(f"{path} holds no weights: {error}") from error
    if not isinstance(found, dict):
        raise ValueError(f"{path} holds no weights: its header is no object")
    if kind is not None and found.get("kind") != kind:
        raise ValueError(f"{path} holds no {kind!r}, but {found.get('kind', 'something else')!r}")
    return found


def load(path: Path, module: M) -> M:
    """The module with the arrays of a file; ValueError names one that is missing or has another shape.

    The module's own arrays may be mere shapes (:func:`equinox.filter_eval_shape`).
    """
    with safe_open(path, "numpy") as file:
        there = set(file.keys())

        def read(place: Any, leaf: Any) -> Any:
            name = jax.tree_util.keystr(place, simple=True, separator=".")
            if name not in there:
                raise ValueError(f"{path} has no array {name}")
            array = file.get_tensor(name)
            if array.shape != leaf.shape:
                raise ValueError(f"{path}: {name} has shape {array.shape}, not {leaf.shape}")
            return jax.numpy.asarray(array, leaf.dtype)

        arrays, rest = eqx.partition(module, lambda leaf: hasattr(leaf, "shape"))
        found: M = eqx.combine(jax.tree_util.tree_map_with_path(read, arrays), rest)
        return found
