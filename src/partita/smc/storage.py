"""Saving and loading: one file, versioned and checksummed, read without executing anything.

    magic (8 bytes) | length of header (8 bytes) | header: JSON | arrays, one after the other | SHA-256

The header names the sampler's class, parameters and model, and each array's type and shape. The arrays are
those of the state, cut to what is in use. A file that fails any check is refused before a sampler is made.
"""

from __future__ import annotations

import hashlib
import json
import os
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from partita._typing import Array
from partita.models.base import CompiledModel, Model
from partita.models.bernoulli import Bernoulli
from partita.models.categorical import Categorical
from partita.models.gaussian import Gaussian
from partita.models.multivariate import MultivariateGaussian
from partita.smc.engine import Engine
from partita.smc.state import (
    ARRAYS,
    BLOCK,
    CLUSTER,
    COUNTS,
    OBSERVATION,
    SUBPROBLEM,
    assemble,
    compact,
    dismantle,
)

MAGIC = b"PARTITA\x01"
VERSION = 1
DTYPES = {
    "data": np.dtype("<f8"),
    "observations": OBSERVATION,
    "blocks": BLOCK,
    "clusters": CLUSTER,
    "statistics": np.dtype("<f8"),
    "subproblems": SUBPROBLEM,
    "cells": np.dtype("<i8"),
    "weights": np.dtype("<f8"),
}
MODELS = {model.__name__: model for model in (Gaussian, MultivariateGaussian, Categorical, Bernoulli)}


class FileError(ValueError):
    """A file that is not a saved sampler, or is damaged."""


def trimmed(state: Any) -> tuple[dict[str, Array], dict[str, int], Array, float, int]:
    """The state's arrays, cut to what is in use, and its counts, settings, log α and random state."""
    compact(state)
    parts, counts, settings, log_alpha, random, _ = dismantle(state)
    count = dict(zip(COUNTS, counts.tolist(), strict=True))
    used = {
        "data": "n_observations",
        "observations": "n_observations",
        "blocks": "n_blocks",
        "clusters": "n_clusters",
        "statistics": "n_clusters",
        "subproblems": "n_subproblems",
        "cells": "end_cells",
        "weights": "end_weights",
    }
    arrays = {name: part[: count[used[name]]] for name, part in zip(ARRAYS, parts, strict=True)}
    return arrays, count, settings, float(log_alpha), int(random)


def save(sampler: Any, path: str | PathLike[str]) -> None:
    """Write a fitted sampler to ``path``."""
    engine = sampler._fitted()
    arrays, count, settings, log_alpha, random = trimmed(engine.state)
    model = sampler.model_
    parameters = {name: value for name, value in sampler.get_params(deep=False).items() if name != "model"}
    if not isinstance(parameters["random_state"], int | np.integer | None):
        parameters["random_state"] = None  # a generator's state is in ``random`` by now
    header = {
        "version": VERSION,
        "sampler": type(sampler).__name__,
        "parameters": {name: _plain(value) for name, value in parameters.items()},
        "model": type(model).__name__,
        "model_parameters": {name: _plain(value) for name, value in model.get_params(deep=False).items()}
        if type(model).__name__ in MODELS
        else None,
        "learnt_model": sampler.model is None,
        "n_features": sampler.n_features_in_,
        "feature_names": [str(name) for name in getattr(sampler, "feature_names_in_", [])],
        "counts": count,
        "settings": settings.tolist(),
        "log_alpha": log_alpha.hex(),
        "random": random,
        "arrays": {name: list(array.shape) for name, array in arrays.items()},
    }
    text = json.dumps(header).encode()
    contents = [np.ascontiguousarray(array).tobytes() for array in arrays.values()]
    body = b"".join([MAGIC, len(text).to_bytes(8, "little"), text, *contents])
    target = Path(path)
    partial = target.with_name(f"{target.name}.{os.getpid()}.partial")
    try:
        partial.write_bytes(body + hashlib.sha256(body).digest())
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def _plain(value: Any) -> Any:
    """A parameter as JSON can hold it."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def load(kind: Any, path: str | PathLike[str], model: Model | None) -> Any:
    """Read a sampler of class ``kind`` from ``path``."""
    header, arrays = read(Path(path))
    if header["sampler"] != kind.__name__:
        raise FileError(f"{path} holds a {header['sampler']}: load it with {header['sampler']}.load")
    stored = header["model"]
    if model is None:
        if stored not in MODELS:
            raise FileError(
                f"{path} was made with a model of your own: pass it, load(path, model={stored}(...))"
            )
        model = MODELS[stored](**header["model_parameters"])
    elif type(model).__name__ != stored:
        raise FileError(f"{path} was made with model {stored}, not {type(model).__name__}")
    sampler = kind(model=None if header["learnt_model"] else model, **header["parameters"])
    sampler.n_features_in_ = header["n_features"]
    if header["feature_names"]:
        sampler.feature_names_in_ = np.array(header["feature_names"], dtype=object)
    settings = tuple(header["settings"])
    engine = Engine(model, settings, header["n_features"], arrays["data"].shape[1], 0.0, 0)
    width = dismantle(engine.state)[0][4].shape[1]
    if width != arrays["statistics"].shape[1]:
        raise FileError(
            f"{path} does not fit the model: {arrays['statistics'].shape[1]} statistics, not {width}"
        )
    if isinstance(model, CompiledModel) and not np.array_equal(
        dismantle(engine.state)[0][4][0], arrays["statistics"][0]
    ):
        raise FileError(f"{path} was made with other hyperparameters than those of the model given")
    validate(arrays, header["counts"], path)
    engine.state = assemble(
        tuple(arrays[name] for name in ARRAYS),
        np.array([header["counts"][name] for name in COUNTS], np.int64),
        np.array(settings, np.int64),
        float.fromhex(header["log_alpha"]),
        np.uint64(header["random"]),
    )
    sampler.model_, sampler._engine = model, engine
    return sampler


def read(path: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """The header and the arrays of a file, checked."""
    raw = path.read_bytes()
    if raw[: len(MAGIC) - 1] != MAGIC[:-1]:
        raise FileError(f"{path} is not a saved Partita sampler")
    if len(raw) < 48 or hashlib.sha256(raw[:-32]).digest() != raw[-32:]:
        raise FileError(f"{path} is damaged: it is truncated, or its checksum does not match")
    size = int.from_bytes(raw[8:16], "little")
    header = json.loads(raw[16 : 16 + size])
    if header["version"] != VERSION:
        raise FileError(
            f"{path} has format version {header['version']}; this Partita reads version {VERSION}"
        )
    arrays, at = {}, 16 + size
    for name, dtype in DTYPES.items():
        shape = tuple(header["arrays"][name])
        end = at + dtype.itemsize * int(np.prod(shape, dtype=np.int64))
        if end > len(raw) - 32:
            raise FileError(f"{path} is damaged: array {name} is too long")
        arrays[name] = np.frombuffer(raw[at:end], dtype).reshape(shape).copy()
        at = end
    return header, arrays


def validate(arrays: dict[str, Array], count: dict[str, int], path: Any = "the state") -> None:
    """Raise FileError unless the arrays are a state that kernels may follow.

    Checks the invariants that :mod:`partita.smc.state` lists, and with them every index.
    """

    def require(holds: Any, what: str) -> None:
        if not np.all(holds):
            raise FileError(f"{path} is damaged: {what}")

    observations, blocks, subproblems = arrays["observations"], arrays["blocks"], arrays["subproblems"]
    cells, weights, n_clusters = arrays["cells"], arrays["weights"], len(arrays["clusters"])
    n, n_blocks = len(observations), len(blocks)
    require(len(arrays["data"]) == n and len(arrays["statistics"]) == n_clusters, "lengths differ")
    for name, bound in (("block", n_blocks), ("next", n), ("previous", n)):
        require((observations[name] >= 0) & (observations[name] < bound), f"observations.{name}")
    require(observations["previous"][observations["next"]] == np.arange(n), "members are not in circles")
    require(observations["block"][observations["next"]] == observations["block"], "members leave their block")
    sizes = np.bincount(observations["block"], minlength=n_blocks)
    require(sizes[blocks["size"] > 0] == blocks["size"][blocks["size"] > 0], "sizes of blocks")
    require(sizes[blocks["size"] == 0] == 0, "members of a free block")
    used = np.flatnonzero(blocks["size"] > 0)
    require((blocks["head"][used] >= 0) & (blocks["head"][used] < n), "heads of blocks")
    require(observations["block"][blocks["head"][used]] == used, "heads of blocks")
    live = np.flatnonzero(subproblems["rows"] > 0)
    placed = np.zeros(n_blocks, bool)
    member_sizes = blocks["size"]
    total_cells = total_weights = 0
    for s in live:
        at, first, rows, columns, clusters = (int(v) for v in subproblems[s])
        end = at + columns + clusters + rows * columns
        require(columns > 0 and clusters > 0 and at >= 0 and end <= len(cells), "extent of a subproblem")
        require(first >= 0 and first + rows <= len(weights), "extent of a subproblem")
        own, ids = cells[at : at + columns], cells[at + columns : at + columns + clusters]
        matrix = cells[at + columns + clusters : end].reshape(rows, columns)
        require((own >= 0) & (own < n_blocks), "blocks of a subproblem")
        require(~placed[own], "a block stands in two places")
        placed[own] = True
        require(blocks["subproblem"][own] == s, "a block's subproblem")
        require(blocks["column"][own] == np.arange(columns), "a block's column")
        require((ids > 0) & (ids < n_clusters), "clusters of a subproblem")
        require(np.array_equal(np.unique(matrix), np.sort(ids)), "clusters of a subproblem")
        require(len(np.unique(matrix, axis=0)) == rows, "two particles are equal")
        require(len(np.unique(matrix, axis=1).T) == columns, "two columns are equal")
        _check_clusters(matrix, member_sizes[own], arrays["clusters"]["size"], require)
        weight = weights[first : first + rows]
        require(np.isfinite(weight) & (np.diff(weight, prepend=np.inf) <= 0), "weights")
        require(abs(np.exp(weight).sum() - 1.0) < 1e-6, "weights are not normalised")
        total_cells, total_weights = total_cells + end - at, total_weights + rows
    require(placed[used], "a block stands nowhere")
    require((count["live_cells"], count["live_weights"]) == (total_cells, total_weights), "counts")
    for name, key, field, free in (
        ("free_block", "blocks", "head", blocks["size"] == 0),
        ("free_subproblem", "subproblems", "cells", subproblems["rows"] == 0),
    ):
        _check_list(count[name], arrays[key][field], free, require)


def _check_clusters(matrix: Array, block_sizes: Array, cluster_sizes: Array, require: Any) -> None:
    """An id stands for the same columns in every row, and its size is theirs."""
    ids, inverse = np.unique(matrix, return_inverse=True)
    inverse = inverse.reshape(matrix.shape)
    held = np.zeros((len(ids), matrix.shape[1]), bool)
    first_row = np.full(len(ids), -1)
    for i in range(len(matrix) - 1, -1, -1):
        first_row[inverse[i]] = i
    for k, i in enumerate(first_row):
        held[k] = inverse[i] == k
    for row in inverse:
        present = np.unique(row)
        require((row[None, :] == present[:, None]) == held[present], "a cluster differs between particles")
    require(held @ block_sizes == cluster_sizes[ids], "size of a cluster")


def _check_list(head: int, following: Array, free: Array, require: Any) -> None:
    """The free entries form one list."""
    seen = 0
    while head >= 0:
        require(head < len(following) and free[head] and seen <= len(following), "list of free entries")
        head, seen = int(following[head]), seen + 1
    require(seen == int(np.count_nonzero(free)), "list of free entries")
