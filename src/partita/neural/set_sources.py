"""Where :class:`SetDiffusion` has its sets from: simulated while it learns, or subsets of given ones.

A source is drawn from inside the compiled loss, from a random key alone, so that training needs no data
loader and goes on exactly where it stopped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from partita._core.typing import Floats


class Moments(NamedTuple):
    """Location and scale of each coordinate, and the share of its variance that is within sets."""

    location: tuple[float, ...]
    scale: tuple[float, ...]
    within: tuple[float, ...]


class Source(Protocol):
    """Sets of points of any size up to a largest one."""

    largest: int
    moments: Moments

    def about(self) -> dict[str, Any]:
        """What identifies the source."""
        ...

    def draw(self, key: Any, size: Any, room: int) -> Any:
        """Points of one set, shape (room, d), of which the first ``size`` count."""
        ...


class Circles:
    """Points on circles of one radius with centres uniform on a square, like ``partita.datasets.circles``."""

    def __init__(self, radius: float = 0.6, box: float = 5.0, largest: int = 64) -> None:
        self.radius, self.box, self.largest = radius, box, largest
        within, between = radius**2 / 2.0, box**2 / 3.0
        scale = math.sqrt(within + between)
        self.moments = Moments((0.0, 0.0), (scale, scale), (within / scale**2,) * 2)

    def about(self) -> dict[str, Any]:
        return {"source": "circles", "radius": self.radius, "box": self.box, "largest": self.largest}

    def draw(self, key: Any, size: Any, room: int) -> Any:
        one, two = jax.random.split(key)
        centre = jax.random.uniform(one, (2,), minval=-self.box, maxval=self.box)
        angle = jax.random.uniform(two, (room, 1), maxval=2.0 * jnp.pi)
        return centre + self.radius * jnp.concatenate([jnp.cos(angle), jnp.sin(angle)], axis=1)


class Subsets:
    """Random subsets of given sets: of a size, those of sets that are at least as large, each set alike."""

    def __init__(self, sets: Sequence[Floats], largest: int) -> None:
        ordered = sorted(sets, key=len, reverse=True)
        self.largest = min(largest, len(ordered[0]))
        self.moments = moments_of(ordered)
        sizes = np.array([len(points) for points in ordered])
        self._points = jnp.asarray(np.concatenate(ordered), jnp.float32)
        self._begins = jnp.asarray(np.concatenate([[0], np.cumsum(sizes)[:-1]]))
        self._sizes = jnp.asarray(sizes)
        self._numbers = jnp.asarray([np.sum(sizes >= size) for size in range(self.largest + 1)])
        self._longest = int(sizes[0])
        self._digest = blake2b(np.concatenate(ordered).tobytes() + sizes.tobytes(), digest_size=8).hexdigest()

    def about(self) -> dict[str, Any]:
        return {"source": "sets", "digest": self._digest, "largest": self.largest}

    def draw(self, key: Any, size: Any, room: int) -> Any:
        one, two = jax.random.split(key)
        chosen = jax.random.randint(one, (), 0, self._numbers[size])
        rank = jax.random.uniform(two, (self._longest,))
        absent = jnp.arange(self._longest) >= self._sizes[chosen]
        members = jnp.argsort(jnp.where(absent, 2.0, rank))[: min(room, self._longest)]
        points = self._points[self._begins[chosen] + jnp.minimum(members, self._sizes[chosen] - 1)]
        return jnp.pad(points, ((0, room - len(points)), (0, 0)))


def moments_of(sets: Sequence[Floats]) -> Moments:
    """Location, scale and share of the variance within sets, of sets that are given.

    The variance within is that of all sets with two points or more, pooled; where there are none, half.
    """
    points = np.concatenate(sets)
    location, scale = points.mean(axis=0), points.std(axis=0)
    scale = np.where(scale > 0.0, scale, 1.0)
    freedom = sum(len(x) - 1 for x in sets)
    squares = np.sum([((x - x.mean(axis=0)) ** 2).sum(axis=0) for x in sets], axis=0)
    share = squares / freedom / scale**2 if freedom else np.full(len(scale), 0.5)
    within = np.clip(share, 1e-4, 0.99)
    return Moments(*(tuple(float(number) for number in row) for row in (location, scale, within)))
