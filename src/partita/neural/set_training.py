"""How :class:`SetDiffusion` learns: the variational bound of sets of all sizes, in the common loop."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from partita._core.typing import Floats
from partita.neural.flow import Frame, denoising_loss
from partita.neural.set_sources import Circles, Moments, Source, Subsets
from partita.neural.training import Plan, Progress, train

SIMULATED: dict[str, Callable[[int], Source]] = {"circles": lambda largest: Circles(largest=largest)}
VALIDATION = 16  # batches


def learnt(
    network: Any,
    frame: Frame,
    source: Source,
    plan: Plan,
    *,
    batch: int,
    about: dict[str, Any],
    folder: Path | None,
    every: int,
    progress: Progress,
) -> Any:
    """The network, trained on sets of a source.

    Parameters
    ----------
    batch : int
        Of the smallest sets, how many a step sees; see :func:`divisions`.
    about : dict
        What else a checkpoint must agree in to be continued.
    """
    loss = partial(batch_loss, frame, source, batch)
    keys = jax.random.split(jax.random.key(2**31 - 1), VALIDATION)  # of no step
    validation = eqx.filter_jit(
        lambda network: jnp.mean(jax.lax.map(lambda key: loss(network, None, key), keys))
    )
    trained = train(
        network,
        loss,
        lambda step: None,
        plan,
        folder=folder,
        config=about | {"batch": batch, "source": source.about()},
        validate=lambda network: {"validation": float(validation(network))},
        every=every,
        progress=progress,
    )
    return trained.module


def batch_loss(frame: Frame, source: Source, batch: int, network: Any, _: Any, key: Any) -> Any:
    """The mean of the variational bound's integrand over sets of all sizes, drawn from the key."""
    parts = divisions(source.largest, batch)
    keys = jax.random.split(key, len(parts))
    losses = [part_loss(frame, source, part, network, key) for part, key in zip(parts, keys, strict=True)]
    return jnp.mean(jnp.concatenate(losses))


def part_loss(frame: Frame, source: Source, part: tuple[int, int, int], network: Any, key: Any) -> Any:
    """Losses of sets that are padded alike. Their u are spread evenly, as in Kingma et al. (2021)."""
    smallest, largest, number = part
    sizes_key, points_key, noise_key, u_key = jax.random.split(key, 4)
    low, high = math.log(smallest), math.log(largest + 1.0)
    size = jnp.exp(jax.random.uniform(sizes_key, (number,), minval=low, maxval=high))
    size = jnp.clip(jnp.floor(size).astype(jnp.int32), smallest, largest)
    points = jax.vmap(partial(source.draw, room=largest))(jax.random.split(points_key, number), size)
    mask = jnp.arange(largest) < size[:, None]
    location, scale = jnp.asarray(source.moments.location), jnp.asarray(source.moments.scale)
    points = jnp.where(mask[:, :, None], (points - location) / scale, 0.0)
    share = (jnp.arange(number) + jax.random.uniform(u_key, (number,))) / number
    u = frame.first + share * (frame.last - frame.first)
    keys = jax.random.split(noise_key, number)
    return jax.vmap(partial(denoising_loss, network, frame))(points, mask, u, keys)


def divisions(largest: int, batch: int) -> list[tuple[int, int, int]]:
    """Ranges of sizes that are padded alike, and how many sets of each a step sees.

    Sizes have probabilities near 1/n within a range. The larger, the fewer, for the same time.

    >>> divisions(64, 1024)
    [(1, 4, 1024), (5, 16, 512), (17, 64, 256)]
    """
    parts, smallest, room = [], 1, 4
    while smallest <= largest:
        parts.append((smallest, min(room, largest), max(batch, 1)))
        smallest, room, batch = room + 1, 4 * room, batch // 2
    return parts


def source_of(sets: Any, labels: Any, largest: int) -> Source:
    """The source that a name, or data, stand for; ValueError says what is wrong with it."""
    if isinstance(sets, str):
        if sets not in SIMULATED:
            raise ValueError(f"there is no simulator {sets!r}; there is {', '.join(SIMULATED)}")
        return SIMULATED[sets](largest)
    if labels is not None:
        X, labels = np.asarray(sets, np.float64), np.asarray(labels)
        if X.ndim != 2 or labels.shape != X.shape[:1]:
            raise ValueError(
                f"X has shape {X.shape} and labels {labels.shape}; there must be a label for each row"
            )
        sets = [X[labels == label] for label in np.unique(labels)]
    return Subsets(checked(sets), largest)


def checked(sets: Any) -> list[Floats]:
    """Sets as arrays; ValueError names one that is none."""
    arrays = [np.asarray(points, np.float64) for points in sets]
    if not arrays:
        raise ValueError("there are no sets to learn from")
    for k, points in enumerate(arrays):
        if points.ndim != 2 or 0 in points.shape:
            raise ValueError(f"set {k} has shape {points.shape}; it must have a row for each point")
        if points.shape[1] != arrays[0].shape[1]:
            raise ValueError(
                f"set {k} has points of {points.shape[1]} coordinates, set 0 of {arrays[0].shape[1]}"
            )
        if not np.isfinite(points).all():
            raise ValueError(f"set {k} has coordinates that are not finite")
    if max(map(len, arrays)) < 2:
        raise ValueError("no set has two points, so there is nothing to learn of what belongs together")
    return arrays


def frame_of(moments: Moments, resolution: float, last: float) -> Frame:
    """The coordinates for points of such moments."""
    within = np.asarray(moments.within)
    ends = math.log(resolution * math.sqrt(within.min())), math.log(last)
    return Frame(within, 1.0 - within, *map(np.asarray, ends))  # as arrays: programs serve other frames too
