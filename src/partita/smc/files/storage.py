"""Saving and loading: one file, versioned and checksummed, read without executing anything.

    magic (7 bytes) | version (1 byte) | length of header (8 bytes) | header: JSON | arrays | SHA-256

The header names the sampler's class, parameters and model, and each array's shape; the arrays are those of
:mod:`partita.smc.files.packing`, one after the other. A file that fails any check is refused before a sampler is
made. The checksum tells of accidents; that a file made with intent does no harm is up to the other checks.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from partita._core.typing import Array
from partita.models.base import CompiledModel, Model, copied, plain
from partita.models.black_box import BlackBox
from partita.models.registry import MODELS
from partita.models.registry import found as found_model
from partita.models.scoring.black_box import BlackBoxScorer
from partita.smc.engine import Engine
from partita.smc.files import observations
from partita.smc.files.packing import (
    DIMENSIONS,
    PACKED,
    check,
    live_slots,
    pack,
    require,
    unpack,
    with_room,
    without_rows,
)
from partita.smc.state.access import used_clusters
from partita.smc.state.clusters import StateClusters
from partita.smc.state.constraints import constraints_among, constraints_from, pairs_of
from partita.smc.state.keys import EVERYTHING
from partita.smc.state.rebuild import rebuild_rows
from partita.smc.state.state import ARRAYS, COUNTS, LONGEST, Settings, dismantle
from partita.smc.steps.candidates import candidates_of_row

MAGIC = b"PARTITA"
VERSION = 4
SINCE = ("key_counts", "keys")  # arrays that version 1 lacks: it knew no candidates
TRIED = 16  # clusters that a black box is asked for again, to see whether it is the same one
LIMITS = {  # of the settings, in their order
    "particles": (1, 2**31),
    "resampling": (0, 3),
    "merging": (0, 1),
    "exact": (0, 1),
    "splitting": (0, 1),
    "rejuvenation": (0, 2**31),
    "learn_alpha": (0, 1),
    "longest_odds": (0, LONGEST),
}


FUNCTION = "function"  # what a file has in place of a user's function, which it cannot hold


class FileError(ValueError):
    """A file that is not a saved sampler, or is damaged."""


# ---------------------------------------------------------------------- writing


def save(sampler: Any, path: str | PathLike[str]) -> None:
    """Write a fitted sampler to ``path``."""
    engine, model = sampler._fitted(), sampler.model_
    _, counts, settings, log_alpha, random, _ = dismantle(engine.state)
    arrays, known = pack(engine.state), engine.observations
    if has_tables(engine):
        arrays = without_rows(arrays)
    parameters = {name: value for name, value in sampler.get_params(deep=False).items() if name != "model"}
    parameters.pop("candidates", None)
    if "keys" in parameters:  # files have it under the name it had at first
        keys = parameters.pop("keys")
        parameters["candidates"] = FUNCTION if callable(keys) else keys
    if not isinstance(parameters["random_state"], int | np.integer | None):
        parameters["random_state"] = None  # a generator's state is in ``random`` by now
    header = {
        "sampler": type(sampler).__name__,
        "parameters": plain(parameters),
        "model": type(model).__name__,
        "built_in": is_built_in(model),
        "model_parameters": _parameters(model),
        "learnt_model": sampler.model is None,
        "n_features": engine.widths[0],
        "feature_names": [str(name) for name in getattr(sampler, "feature_names_in_", [])],
        "next_alpha": int(counts[COUNTS.index("next_alpha")]),
        "settings": settings.tolist(),
        "candidates": FUNCTION if callable(engine.finds_by) else engine.finds_by,
        "bonds": pairs_of(constraints_among(engine.constraints, engine.present)),
        "log_alpha": float(log_alpha).hex(),
        "random": int(random),
        "arrays": {name: list(array.shape) for name, array in arrays.items()},
    }
    if known is not None:
        header["observations"] = observations.to_json(known)
    text = json.dumps(header).encode()
    contents = [np.ascontiguousarray(arrays[name], dtype).tobytes() for name, dtype in PACKED.items()]
    body = b"".join([MAGIC, bytes([VERSION]), len(text).to_bytes(8, "little"), text, *contents])
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"cannot save {target}: there is no folder {target.parent}")
    partial = target.with_name(f"{target.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            file.write(body + hashlib.sha256(body).digest())
            file.flush()
            os.fsync(file.fileno())
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def _parameters(model: Any) -> Any:
    """What a model given to :func:`load` must be like; None where nothing is known of its hyperparameters."""
    if isinstance(model, BlackBox):
        surrogate = None if model.surrogate is None else type(model.surrogate).__name__
        return plain(
            {
                "temperature": model.temperature,
                "offset": model.offset,
                "n_proposals": model.n_proposals,
                "surrogate": [surrogate, _parameters(model.surrogate)],
            }
        )
    return model.to_json() if isinstance(model, CompiledModel) else None


def is_built_in(model: Any) -> bool:
    """Whether a model can be made anew from its name and parameters."""
    return type(model) is MODELS.get(type(model).__name__)


# ---------------------------------------------------------------------- reading


def load(kind: Any, path: str | PathLike[str], model: Model | None, keys: Any) -> Any:
    """Read a sampler of class ``kind`` from ``path``."""
    header, arrays = read(Path(path))
    try:
        return _sampler(kind, header, arrays, model, keys, path)
    except FileError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise FileError(f"{path} is damaged: {error}") from error


def read(path: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """The header and the arrays of a file whose frame is in order."""
    raw = path.read_bytes()
    if not raw.startswith(MAGIC):
        raise FileError(f"{path} is not a saved Partita sampler")
    start = len(MAGIC) + 9
    if len(raw) < start + 32 or hashlib.sha256(raw[:-32]).digest() != raw[-32:]:
        raise FileError(f"{path} is damaged: it is truncated, or its checksum does not match")
    version = raw[len(MAGIC)]
    if not 1 <= version <= VERSION:
        raise FileError(f"{path} has format version {version}; this Partita reads versions 1 to {VERSION}")
    at = start + int.from_bytes(raw[start - 8 : start], "little")
    try:
        header = json.loads(raw[start:at])
        if version == 1:
            header = header | {"candidates": None}
            header["arrays"] = header["arrays"] | {name: [0] for name in SINCE}
        if version < 3:
            header = header | {"bonds": [[], []]}
        if version < 4:
            header = header | {"settings": [*header["settings"], 0]}
        shapes = {name: tuple(_whole(length) for length in header["arrays"][name]) for name in PACKED}
    except (LookupError, TypeError, ValueError, RecursionError) as error:
        raise FileError(f"{path} is damaged: its header cannot be read") from error
    arrays = {}
    for name, dtype in PACKED.items():
        end = at + dtype.itemsize * math.prod(shapes[name])
        if len(shapes[name]) != DIMENSIONS[name] or end > len(raw) - 32:
            raise FileError(f"{path} is damaged: the shape of {name} is not that of what follows")
        arrays[name] = np.frombuffer(raw[at:end], dtype).reshape(shapes[name]).copy()
        at = end
    if at != len(raw) - 32:
        raise FileError(f"{path} is damaged: something follows the last array, {name}")
    return header, arrays


def _whole(value: Any, low: int = 0, high: int = 2**62) -> int:
    """``value`` if it is an integer from low to high."""
    if type(value) is not int or not low <= value <= high:
        raise ValueError(f"{value!r} is no whole number from {low} to {high}")
    return value


def _sampler(
    kind: Any, header: dict[str, Any], arrays: dict[str, Array], model: Any, keys: Any, path: Any
) -> Any:
    """The sampler that a file describes, or an error of any kind."""
    if header["sampler"] != kind.__name__:
        raise FileError(f"{path} holds a {header['sampler']}: load it with {header['sampler']}.load")
    model = _model(header, model, path)
    parameters, stored = dict(header["parameters"]), header["candidates"]
    require(stored in (None, "auto", FUNCTION), "candidates")
    check_given(keys, stored, parameters, path)
    if "candidates" in parameters:
        kept = parameters.pop("candidates")
        parameters["keys"] = keys if kept == FUNCTION else kept  # it may have been set since the last fit
    sampler = kind(model=None if header["learnt_model"] is True else model, **parameters)
    n_features, names = _whole(header["n_features"], 1), header["feature_names"]
    if model.reads_rows:
        sampler.n_features_in_ = n_features
    if names:
        require(len(names) == n_features and all(isinstance(name, str) for name in names), "feature_names")
        sampler.feature_names_in_ = np.array(names, dtype=object)
    sampler.model_ = copied(model)  # with a cache or vocabulary of its own
    sampler._engine = _engine(
        header, arrays, sampler.model_, n_features, keys if stored == FUNCTION else stored, path
    )
    return sampler


def _engine(
    header: dict[str, Any], arrays: dict[str, Array], model: Any, n_features: int, keys: Any, path: Any
) -> Engine:
    """The engine that a file describes, or an error of any kind."""
    settings = _settings(header)
    require(keys is None or settings.splitting, "candidates")
    require((keys is not None) == (len(arrays["key_counts"]) > 0), "key_counts")
    require(arrays["shapes"][:, 1] <= settings.particles, "shapes")
    log_alpha = float.fromhex(header["log_alpha"])
    require(math.isfinite(log_alpha), "log_alpha")
    check(arrays)
    model.check(n_features)
    found = _observations(header, model, n_features, len(arrays["data"]))
    width = _encoded_width(model, n_features, found, arrays["data"])
    engine = Engine(model, settings, n_features, width, log_alpha, 0, keys)
    empty = dict(zip(ARRAYS, dismantle(engine.state)[0], strict=True))["statistics"][0]
    if has_tables(engine):
        arrays = with_room(arrays, width, len(empty))
    if len(empty) != arrays["statistics"].shape[1]:
        raise FileError(f"{path} does not fit the model: it has other statistics")
    next_alpha = _whole(header["next_alpha"])
    random = _whole(header["random"], high=2**64 - 1)
    constraints = _constraints(header["bonds"], len(arrays["data"]))
    engine.state = unpack(arrays, empty, next_alpha, settings, log_alpha, random, constraints)
    if found is not None:
        _restore(engine, found, path)
    if not isinstance(engine.scorer, BlackBoxScorer):
        _check_data(engine, path)
    return engine


def _constraints(kept: Any, n: int) -> Any:
    """The constraints among n observations, or an error of any kind."""
    together, apart = ([(_whole(x, high=n - 1), _whole(y, high=n - 1)) for x, y in pairs] for pairs in kept)
    return constraints_from(together, [([x], [y]) for x, y in apart])


def _settings(header: dict[str, Any]) -> Settings:
    """The settings, each within its limits."""
    require(len(header["settings"]) == len(LIMITS), "settings")
    settings = Settings(
        *(_whole(value, *limits) for value, limits in zip(header["settings"], LIMITS.values(), strict=True))
    )
    require(not (settings.exact and settings.resampling), "settings")
    return settings


def _model(header: dict[str, Any], given: Any, path: Any) -> Any:
    """The model of a file: the one given, if it may be the same, or a built-in one made anew."""
    name, parameters = header["model"], header["model_parameters"]
    if given is None:
        if header["built_in"] is not True:
            raise FileError(
                f"{path} was made with a model of your own: pass it, load(path, model={name}(...))"
            )
        kind = found_model(MODELS, name)
        if kind is None:
            raise FileError(
                f"{path} was made with the model {name}, which is not known: import the module that registers it, or "
                "name that in PARTITA_IMPORT"
            )
        return kind.from_json(parameters)
    if type(given).__name__ != name or is_built_in(given) != header["built_in"]:
        raise FileError(f"{path} was made with another model {name}, not {type(given).__name__}")
    if parameters is not None and _parameters(given) != parameters:
        raise FileError(f"{path} was made with other hyperparameters than those of the model given")
    return given


def _observations(header: dict[str, Any], model: Model, n_features: int, n: int) -> Any:
    """The observations themselves, where the model needs more than their numbers; None where it does not."""
    if not isinstance(model, BlackBox) and (model.reads_rows or not isinstance(model, CompiledModel)):
        return None
    found = observations.from_json(header["observations"], n)
    if not model.reads_rows:
        return model.validate(found)
    require(isinstance(found, np.ndarray) and found.shape == (n, n_features), "observations")
    return found


def _encoded_width(model: Model, n_features: int, found: Any, data: Array) -> int:
    """How many numbers the model makes of an observation; that of the file must be the same."""
    if found is not None:
        return model.encoded_width(found)
    if isinstance(model, CompiledModel):
        require(_width_of_a_row(model, n_features) in (None, data.shape[1]), "data")
    return data.shape[1]


def _width_of_a_row(model: CompiledModel, n_features: int) -> int | None:
    """How many numbers the model makes of a row of zeros; None where zeros are no observation of it."""
    try:
        with np.errstate(all="ignore"):
            return model.encode(np.zeros((1, n_features))).shape[1]
    except ValueError:
        return None


def _restore(engine: Engine, found: Any, path: Any) -> None:
    """Give an engine its observations, which must be those whose numbers the file holds, if it holds any."""
    encoded, data = engine.encode(found), StateClusters(engine.state).data
    numbers = engine.scorer.data_of(encoded)
    if engine.compiled is not None and has_tables(engine):
        data[:] = numbers
        rebuild_rows(engine.state, engine.compiled.family, live_slots(engine.state))
    require(np.array_equal(numbers, data), "observations")
    engine.keep(found)
    if isinstance(engine.scorer, BlackBoxScorer):
        engine.scorer.store(encoded, 0)
        if not agrees(engine, engine.scorer):
            raise FileError(f"{path} was made with another score than that of the model given")


def agrees(engine: Engine, scorer: BlackBoxScorer) -> bool:
    """Whether a black box still says of the smallest clusters what the state keeps of them."""
    candidates_of_row(engine.state, *EVERYTHING, 0)
    clusters = StateClusters(engine.state)
    ids = used_clusters(engine.state)[1:]
    ids = ids[np.argsort(clusters.sizes[ids], kind="stable")[:TRIED]]
    sets = [scorer.numbers[held] for held in clusters.members(ids)]
    found = scorer.evaluator.log_marginals(sets, "clusters")
    return np.allclose(found, clusters.log_p(ids), rtol=1e-6, atol=1e-6)


def has_tables(engine: Engine) -> bool:
    """Whether the state's rows of statistics point into tables, which files do not hold."""
    return engine.compiled is not None and engine.compiled.has_tables


def check_given(given: Any, stored: Any, parameters: dict[str, Any], path: Any) -> None:
    """Raise FileError unless ``load`` was given a function for the keys if and only if it needs one."""
    if FUNCTION in (stored, parameters.get("candidates")):
        if not callable(given):
            raise FileError(f"{path} was made with a function for its keys: pass it, load(path, keys=...)")
    elif given is not None and given != stored:
        raise FileError(f"{path} was made with keys={stored!r}, not {given!r}")


def _check_data(engine: Engine, path: Any) -> None:
    """The observations must be possible under the model, and a user's model the one it was."""
    clusters = StateClusters(engine.state)
    if isinstance(engine.model, CompiledModel):
        engine.model.check_encoded(clusters.data)
        return
    statistics = clusters.statistics[1:]
    found = engine.model.log_marginal(statistics[:, :-1], clusters.sizes[1:].astype(np.float64))
    if not np.allclose(found, statistics[:, -1], rtol=1e-9, atol=1e-9):
        raise FileError(f"{path} was made with other hyperparameters than those of the model given")
