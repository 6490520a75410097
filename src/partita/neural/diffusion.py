"""A diffusion model of sets of points as a likelihood for :class:`partita.BlackBox`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import blake2b
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from partita._typing import Floats
from partita.neural.flow import (
    Frame,
    Grid,
    Sets,
    denoising_loss,
    estimated_trace,
    exact_trace,
    flowed,
    log_density,
    log_volume,
    radau,
    unwhitened,
    whitened,
)
from partita.neural.set_network import SetNetwork, Shape
from partita.neural.set_sources import Circles, Moments, Source, Subsets
from partita.neural.training import Plan, Progress, train
from partita.neural.weights import about, arrays_of, halved, load, save

SIMULATED: dict[str, Callable[[], Source]] = {"circles": Circles}
FORMAT = "partita set diffusion 1"


class Config(NamedTuple):
    """All there is to a model but its weights.

    Attributes
    ----------
    shape : Shape
        Of the network.
    moments : Moments
        Of the points.
    first, last : float
        Logarithms of the smallest and the largest noise, in units of ``moments.scale``.
    steps : int
        Of the integration.
    probes : int
        Of the trace; 0 for the exact one.
    source : dict
        What it was trained on.
    """

    shape: Shape
    moments: Moments
    first: float
    last: float
    steps: int
    probes: int
    source: dict[str, Any]


class SetDiffusion:
    """log p(c) of sets of points, learnt from sets of points.

    Parameters
    ----------
    network : SetNetwork
    config : Config
    """

    lookahead = 32

    def __init__(self, network: Any, config: Config) -> None:
        self.network, self.config = eqx.nn.inference_mode(network), config
        within = np.asarray(config.moments.within)
        self.frame = Frame(within, 1.0 - within, config.first, config.last)

    @property
    def resolution(self) -> float:
        """The noise with which points are seen, in their own units; the smallest of all coordinates."""
        return math.exp(self.config.first) * min(self.config.moments.scale)

    def __repr__(self) -> str:
        digest = blake2b(digest_size=6)
        for name, array in sorted(arrays_of(self.network).items()):
            digest.update(name.encode() + np.asarray(array, np.float32).tobytes())
        kind = self.config.source.get("source")
        return f"SetDiffusion({kind!r}, steps={self.config.steps}, probes={self.config.probes}, weights={digest.hexdigest()})"

    # ------------------------------------------------------------------ files

    @classmethod
    def pretrained(cls, name: str = "circles") -> Self:
        """A model that comes with the package; ValueError names those there are."""
        folder = resources.files("partita.neural") / "pretrained"
        there = sorted(item.name for item in folder.iterdir()) if folder.is_dir() else []
        known = [item.removesuffix(".safetensors") for item in there if item.endswith(".safetensors")]
        if name not in known:
            raise ValueError(f"there is no pretrained model {name!r}; there is {', '.join(known) or 'none'}")
        with resources.as_file(folder / f"{name}.safetensors") as path:
            return cls.load(path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """A model from a file that :meth:`save` has written."""
        found = about(Path(path))
        if found.get("format") != FORMAT:
            raise ValueError(f"{path} holds no set diffusion, but {found.get('format', 'something else')!r}")
        config = Config(**found["config"])
        config = config._replace(
            shape=Shape(**config.shape), moments=Moments(*map(tuple, config.moments.values()))
        )
        network = SetNetwork(config.shape, jax.random.key(0))
        return cls(load(Path(path), network), config)

    def save(self, path: str | Path) -> None:
        """Write weights, in 16 bits, and configuration."""
        config = self.config._asdict()
        config |= {"shape": self.config.shape._asdict(), "moments": self.config.moments._asdict()}
        save(Path(path), halved(arrays_of(self.network)), {"format": FORMAT, "config": config})

    # --------------------------------------------------------------- training

    @classmethod
    def train(
        cls,
        sets: Any,
        labels: Any = None,
        *,
        folder: str | Path | None = None,
        steps: int = 20_000,
        batch: int = 1024,
        rate: float = 2e-3,
        resolution: float = 0.03,
        largest: int = 64,
        shape: dict[str, Any] | None = None,
        integration: int = 12,
        seed: int = 0,
        every: int = 500,
        progress: Progress = lambda step, figures: None,
    ) -> Self:
        source = source_of(sets, labels, largest)
        moments = source.moments
        within = math.sqrt(min(moments.within))
        config = Config(
            Shape(dimension=len(moments.location), **(shape or {})),
            moments,
            math.log(resolution * within),
            math.log(10.0),
            integration,
            0,
            source.about(),
        )
        one, two = jax.random.split(jax.random.key(seed))
        network = SetNetwork(config.shape, one)
        model = cls(network, config)
        loss = partial(model._loss, source, batch)
        key = jax.random.key(2**31 - 1)
        validation = eqx.filter_jit(
            lambda network: jnp.mean(jax.lax.map(lambda k: loss(network, None, k), jax.random.split(key, 16)))
        )
        plan = Plan(
            steps,
            rate,
            warmup=min(500, steps // 10 + 1),
            floor=0.005,
            average=0.9995 if steps > 20_000 else 0.999,
            seed=seed,
        )
        trained = train(
            network,
            loss,
            lambda step: None,
            plan,
            folder=None if folder is None else Path(folder),
            config={
                "shape": config.shape._asdict(),
                "source": config.source,
                "batch": batch,
                "first": config.first,
            },
            validate=lambda network: {"validation": float(validation(network))},
            every=every,
            progress=progress,
        )
        return cls(trained.module, config)

    def _loss(self, source: Source, batch: int, network: Any, _: Any, key: Any) -> Any:
        """The mean of the variational bound's integrand over sets of all sizes."""
        location, scale = (jnp.asarray(row) for row in self.config.moments[:2])
        parts = []
        for smallest, largest, number in divisions(source.largest, batch):
            key, *keys = jax.random.split(key, 6)
            size = jnp.exp(
                jax.random.uniform(
                    keys[0], (number,), minval=math.log(smallest), maxval=math.log(largest + 1.0)
                )
            )
            size = jnp.clip(jnp.floor(size).astype(jnp.int32), smallest, largest)
            points = jax.vmap(lambda k, n, room=largest: source.draw(k, n, room))(
                jax.random.split(keys[1], number), size
            )
            mask = jnp.arange(largest) < size[:, None]
            points = jnp.where(mask[:, :, None], (points - location) / scale, 0.0)
            strata = (jnp.arange(number) + jax.random.uniform(keys[2], (number,))) / number
            u = self.frame.first + strata * (self.frame.last - self.frame.first)
            losses = jax.vmap(partial(denoising_loss, network, self.frame))(
                points, mask, u, jax.random.split(keys[3], number)
            )
            parts.append(losses)
        return jnp.mean(jnp.concatenate(parts))

    # ---------------------------------------------------------------- scoring

    def __call__(self, clusters: Sequence[Any]) -> Floats:
        """log p(c) of clusters."""
        return self.log_density(clusters)

    def log_density(
        self, clusters: Sequence[Any], steps: int | None = None, probes: int | None = None
    ) -> Floats:
        sets = [self._validated(k, cluster) for k, cluster in enumerate(clusters)]
        steps = self.config.steps if steps is None else steps
        probes = self.config.probes if probes is None else probes
        grid = radau(self.frame.first, self.frame.last, steps)
        rooms = np.array([room_for(len(points)) for points in sets], np.intp)
        result = np.empty(len(sets))
        for room in np.unique(rooms):
            where = np.flatnonzero(rooms == room)
            chunk = chunk_of(int(room))
            pending = []
            for begin in range(0, len(where), chunk):
                chosen = where[begin : begin + chunk]
                pending.append(
                    (chosen, self._chunk([sets[k] for k in chosen], int(room), chunk, grid, probes))
                )
            for chosen, values in pending:
                result[chosen] = np.asarray(values, np.float64)[: len(chosen)]
        volumes = -float(np.log(self.config.moments.scale).sum())
        added = [log_volume(self.frame, len(points)) + volumes * len(points) for points in sets]
        return result + np.array(added)

    def _validated(self, k: int, cluster: Any) -> Floats:
        points = np.asarray(cluster, np.float64)
        d = self.config.shape.dimension
        if points.ndim != 2 or points.shape[1] != d or not len(points) or not np.isfinite(points).all():
            raise ValueError(f"set {k}")
        points = points[np.lexsort(points.T[::-1])]
        return (points - self.config.moments.location) / np.asarray(self.config.moments.scale)

    def _chunk(self, sets: list[Floats], room: int, chunk: int, grid: Grid, probes: int) -> Any:
        points = np.zeros((chunk, room, self.config.shape.dimension), np.float32)
        mask = np.zeros((chunk, room), bool)
        mask[:, 0] = True
        for k, rows in enumerate(sets):
            points[k, : len(rows)] = whitened(self.frame, rows)
            mask[k, : len(rows)] = True
        batch = Sets(points, mask, mask.sum(axis=1).astype(np.float32))
        signs = None
        if probes:
            signs = np.ones((chunk, probes, *points.shape[1:]), np.float32)
            for k, rows in enumerate(sets):
                seed = int.from_bytes(blake2b(rows.tobytes(), digest_size=8).digest(), "little")
                drawn = np.random.default_rng(seed).integers(0, 2, (probes, *rows.shape))
                signs[k, :, : len(rows)] = 2.0 * drawn - 1.0
        return scored(self.network, self.frame, grid, batch, signs)

    def sample(
        self, n_points: int, n_sets: int = 1, random_state: int | np.random.Generator | None = None
    ) -> Floats:
        """Draw sets, shape (n_sets, n_points, d), by following the flow from noise."""
        rng = np.random.default_rng(random_state)
        noise = rng.normal(size=(n_sets, n_points, self.config.shape.dimension)).astype(np.float32)
        mask = np.ones((n_sets, n_points), bool)
        nodes = np.linspace(self.frame.first, self.frame.last, 4 * self.config.steps + 1).astype(np.float32)
        batch = Sets(noise, mask, np.full(n_sets, n_points, np.float32))
        points = np.asarray(drawn(self.network, self.frame, nodes, batch), np.float64)
        location, scale = (np.asarray(row) for row in self.config.moments[:2])
        return np.stack([unwhitened(self.frame, rows) for rows in points]) * scale + location


@eqx.filter_jit
def scored(network: Any, frame: Frame, grid: Grid, batch: Sets, signs: Any) -> Any:
    """log p of a chunk of sets, in the coordinates of the frame."""
    with jax.default_matmul_precision("highest"):
        frame = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), frame)
        if signs is None:
            return jax.vmap(lambda sets: log_density(network, frame, grid, sets, exact_trace))(batch)

        def one(sets: Sets, signs: Any) -> Any:
            return log_density(network, frame, grid, sets, partial(estimated_trace, probes=signs))

        return jax.vmap(one)(batch, signs)


@eqx.filter_jit
def drawn(network: Any, frame: Frame, nodes: Any, batch: Sets) -> Any:
    """Noise made into points."""
    with jax.default_matmul_precision("highest"):
        frame = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), frame)
        return jax.vmap(lambda sets: flowed(network, frame, nodes, sets))(batch)


def source_of(sets: Any, labels: Any, largest: int) -> Source:
    if isinstance(sets, str):
        if sets not in SIMULATED:
            raise ValueError(f"there is no simulator {sets!r}; there is {', '.join(SIMULATED)}")
        return SIMULATED[sets]()
    if labels is not None:
        sets = [np.asarray(sets)[np.asarray(labels) == label] for label in np.unique(labels)]
    return Subsets([np.asarray(points, np.float64) for points in sets], largest)


def divisions(largest: int, batch: int) -> list[tuple[int, int, int]]:
    """Ranges of sizes that are padded alike, and how many sets of each a step sees."""
    parts, smallest, room = [], 1, 4
    while smallest <= largest:
        top = min(room, largest)
        parts.append((smallest, top, max(batch, 1)))
        smallest, room, batch = top + 1, room * 4, batch // 2
    return parts


def room_for(size: int) -> int:
    """The padded size: the next power of two."""
    return 1 << (size - 1).bit_length()


def chunk_of(room: int) -> int:
    """How many sets are scored at once."""
    if jax.default_backend() == "cpu":
        return int(np.clip(256 // room, 4, 64))
    return int(np.clip(65536 // room, 64, 4096))
