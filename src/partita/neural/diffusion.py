"""A diffusion model of sets of points as a likelihood for :class:`partita.BlackBox`.

The mathematics is in :mod:`partita.neural.flow`, the network in :mod:`partita.neural.set_network`. Here
clusters are checked, put into a canonical order and scored in compiled programs of a few shapes. A cluster's
score depends on nothing but its points, to the last bit: the shape is chosen by its own size, the number of
sets that are scored at once belongs to the shape, and random probes are seeded by the points.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property, partial
from hashlib import blake2b
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from partita._core.checks import positive_number, whole
from partita._core.typing import Floats
from partita.neural.flow import (
    Frame,
    Grid,
    Sets,
    estimated_trace,
    exact_trace,
    flowed,
    full_trace,
    gregory,
    log_density,
    log_volume,
    unwhitened,
    whitened,
)
from partita.neural.set_network import SetNetwork, Shape
from partita.neural.set_sources import Moments
from partita.neural.set_training import SIMULATED, frame_of, learnt, source_of
from partita.neural.training import Plan, Progress
from partita.neural.weights import about as read_about
from partita.neural.weights import arrays_of, fingerprint, halved, load, rounded, save

__all__ = ["SIMULATED", "Config", "SetDiffusion"]

KIND = "partita SetDiffusion 1"
STEPS = 10
LAST = 10.0  # the largest noise, in units of the scale of the data


class Config(NamedTuple):
    """All there is to a model but its weights.

    Attributes
    ----------
    shape : Shape
        Of the network.
    moments : Moments
        Of the points.
    resolution : float
        The smallest noise, as a share of the standard deviation of points about their set's mean.
    steps : int
        Of the integration.
    probes : int
        Of the trace; 0 for the exact one.
    source : dict
        What it was trained on.
    """

    shape: Shape
    moments: Moments
    resolution: float
    steps: int
    probes: int
    source: dict[str, Any]


class SetDiffusion:
    """log p(c) of sets of points, as a diffusion model has learnt it from sets of points.

    A function from clusters to log-likelihoods for :class:`partita.BlackBox`, like the paper's of circles: a
    variational diffusion model (Kingma et al., 2021) whose network is a transformer without positions, and
    whose log-likelihoods are integrals along the probability flow.

    Parameters
    ----------
    network : SetNetwork
        Or anything that has its two methods.
    config : Config

    Notes
    -----
    The density is that of points seen with a little noise, :attr:`resolution`, since points that lie exactly
    on a curve have none. It is invariant to the order of points exactly.

    Traces are exact by default, so that scores have no noise. Skilling and Hutchinson's estimate by random
    probes is there to compare (``probes``).

    A set of more points than the model was trained on is scored by what it has learnt of smaller ones.

    Examples
    --------
    Four points on a circle of radius 0.6, and four that lie on none:

    >>> from partita.neural import SetDiffusion
    >>> model = SetDiffusion.pretrained("circles")
    >>> on = [[0.6, 0.0], [0.0, 0.6], [-0.6, 0.0], [0.0, -0.6]]
    >>> off = [[0.6, 0.0], [0.0, 0.4], [-0.6, 0.0], [0.0, -0.6]]
    >>> scores = model([on, off, on[::-1]])
    >>> bool(scores[0] > scores[1] + 10.0), bool(scores[0] == scores[2])
    (True, True)

    To cluster with it, let a Gaussian model say what is worth asking:

    >>> import partita as pt
    >>> surrogate = pt.Gaussian(shape=100.0, rate=18.0, precision=0.02)
    >>> sampler = pt.SplitSMC(pt.BlackBox(model, surrogate=surrogate), alpha=1.0, n_particles=100)
    """

    lookahead = 32  # observations whose clusters a black box asks for at once

    def __init__(self, network: Any, config: Config) -> None:
        self.network, self.config = eqx.nn.inference_mode(network), config
        self.frame = frame_of(config.moments, config.resolution, LAST)

    def __repr__(self) -> str:
        trace = f"probes={self.config.probes}" if self.config.probes else "exact"
        source = self.config.source.get("source")
        return f"SetDiffusion({source!r}, weights={self.name}, steps={self.config.steps}, {trace})"

    @cached_property
    def name(self) -> str:
        """A hash of everything that decides its scores."""
        return fingerprint(self.about(), arrays_of(self.network))

    def about(self) -> dict[str, Any]:
        """What a file says beside the weights."""
        config = self.config._asdict()
        config |= {"shape": self.config.shape._asdict(), "moments": self.config.moments._asdict()}
        return {"kind": KIND, "config": config}

    @property
    def resolution(self) -> float:
        """The noise with which points are seen, in their own units (of several coordinates, the least)."""
        return math.exp(self.frame.first) * min(self.config.moments.scale)

    @classmethod
    def pretrained(cls, name: str = "circles") -> Self:
        """A model that comes with the package; ValueError names those there are.

        >>> SetDiffusion.pretrained("squares")
        Traceback (most recent call last):
        ValueError: there is no pretrained model 'squares'; there is circles
        """
        folder = resources.files("partita.neural") / "pretrained"
        there = sorted(item.name for item in folder.iterdir()) if folder.is_dir() else []
        known = [item.removesuffix(".safetensors") for item in there if item.endswith(".safetensors")]
        known = [item for item in known if is_set_diffusion(folder / f"{item}.safetensors")]
        if name not in known:
            raise ValueError(f"there is no pretrained model {name!r}; there is {', '.join(known) or 'none'}")
        with resources.as_file(folder / f"{name}.safetensors") as path:
            return cls.load(path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """A model from a file that :meth:`save` has written."""
        found = read_about(Path(path), KIND)
        try:
            shape, moments = Shape(**found["config"].pop("shape")), found["config"].pop("moments")
            moments = Moments(*(tuple(moments[name]) for name in Moments._fields))
            config = Config(shape=shape, moments=moments, **found["config"])
        except (AttributeError, LookupError, TypeError) as error:
            raise ValueError(f"{path} does not say what its weights are of: {error!r}") from error
        shape_of = eqx.filter_eval_shape(
            SetNetwork, config.shape, jax.random.key(0)
        )  # no need to draw weights
        return cls(load(Path(path), shape_of), config)

    def save(self, path: str | Path) -> None:
        """Write weights, in 16 bits, and configuration."""
        save(Path(path), halved(arrays_of(self.network)), self.about())

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
        width: int = 64,
        blocks: int = 3,
        heads: int = 4,
        shared: int = 8,
        layers: int = 3,
        dropout: float | None = None,
        seed: int = 0,
        every: int = 500,
        progress: Progress = lambda step, figures: None,
    ) -> Self:
        """Learn from sets of points, or from circles that are simulated on the way.

        Parameters
        ----------
        sets : list of arrays of shape (n, d), array of shape (n, d) with ``labels``, or "circles"
            Of given sets, random subsets of all sizes are learnt.
        labels : array of shape (n,), optional
            The set of each point.
        folder : path, optional
            For checkpoints, from which a training that was interrupted goes on exactly, and curves.
        steps : int
        batch : int
            Sets of one to four points that a step sees; half as many of 5 to 16, half again of 17 to 64, and
            so on.
        rate : float
            The highest learning rate.
        resolution : float
            The smallest noise, as a share of the standard deviation of points about their set's mean.
        largest : int
            The largest subset to learn.
        width, blocks, heads, shared, layers : int
            Size of the network; see :class:`partita.neural.set_network.Shape`.
        dropout : float, optional
            None for simulated sets, of which no two are alike; 0.05 for others unless given.
        seed : int
        every : int
            Steps between checkpoints.
        progress : callable
            Told the number of steps done, and the last figures.

        Returns
        -------
        SetDiffusion
            With weights that are exact in the 16 bits of a file.
        """
        for name, number in {
            "steps": steps, "batch": batch, "largest": largest, "every": every, "width": width,
            "blocks": blocks, "heads": heads, "shared": shared, "layers": layers,
        }.items():  # fmt: skip
            whole(name, number, 1)
        if width % heads:
            raise ValueError(f"width must be a multiple of heads, {heads}, got {width}")
        positive_number("resolution", resolution)
        positive_number("rate", rate)
        source = source_of(sets, labels, largest)
        if dropout is None:
            dropout = 0.0 if isinstance(sets, str) else 0.05
        shape = Shape(len(source.moments.location), width, blocks, heads, shared, layers, dropout)
        config = Config(shape, source.moments, resolution, STEPS, 0, source.about())
        average = 1.0 - 1.0 / min(max(steps / 20.0, 10.0), 2000.0)
        plan = Plan(steps, rate, warmup=min(500, steps // 10 + 1), floor=0.005, average=average, seed=seed)
        network = learnt(
            SetNetwork(shape, jax.random.key(seed)),
            frame_of(source.moments, resolution, LAST),
            source,
            plan,
            batch=batch,
            about={"shape": shape._asdict(), "resolution": resolution},
            folder=None if folder is None else Path(folder),
            every=every,
            progress=progress,
        )
        return cls(jax.tree.map(rounded, network), config)

    def __call__(self, clusters: Sequence[Any]) -> Floats:
        """log p(c) of clusters, each a list or an array of points."""
        return self.log_density(clusters)

    def log_density(
        self, clusters: Sequence[Any], steps: int | None = None, probes: int | None = None
    ) -> Floats:
        """log p(c) of clusters, with other steps or traces than usual.

        Parameters
        ----------
        clusters : list of arrays of shape (n, d), or of lists of points
        steps : int, optional
            Of the integration; the more, the more exact.
        probes : int, optional
            Random probes of the trace, which are drawn from the set itself; 0 for the exact trace.
        """
        steps = self.config.steps if steps is None else steps
        probes = self.config.probes if probes is None else probes
        whole("probes", probes, 0)
        grid = gregory(self.frame.first, self.frame.last, steps)
        sets = [self._canonical(k, cluster) for k, cluster in enumerate(clusters)]
        rooms = np.array([room_for(len(points)) for points in sets], np.intp)
        chosen = [
            (int(room), where[begin : begin + chunk_of(int(room))])
            for room in np.unique(rooms)
            for where in [np.flatnonzero(rooms == room)]
            for begin in range(0, len(where), chunk_of(int(room)))
        ]
        answers = [self._scored([sets[k] for k in where], room, grid, probes) for room, where in chosen]
        result = np.empty(len(sets))
        for (_, where), answer in zip(chosen, answers, strict=True):  # all are being computed by now
            result[where] = np.asarray(answer, np.float64)[: len(where)]
        per_point = -float(np.log(self.config.moments.scale).sum())
        result += [log_volume(self.frame, len(points)) + per_point * len(points) for points in sets]
        return np.where(np.isnan(result), -np.inf, result)  # so far away that numbers overflow

    def sample(
        self, n_points: int, n_sets: int = 1, random_state: int | np.random.Generator | None = None
    ) -> Floats:
        """Draw sets, shape (n_sets, n_points, d), by following the flow back from noise."""
        for name, number in (("n_points", n_points), ("n_sets", n_sets)):
            whole(name, number, 1)
        rng = np.random.default_rng(random_state)
        noise = rng.normal(size=(n_sets, n_points, self.config.shape.dimension)).astype(np.float32)
        nodes = np.linspace(self.frame.first, self.frame.last, 4 * self.config.steps + 1, dtype=np.float32)
        batch = Sets(noise, np.ones(noise.shape[:2], bool), np.full(n_sets, n_points, np.float32))
        points = np.asarray(drawn(self.network, self.frame, nodes, batch), np.float64)
        location, scale = (np.asarray(row) for row in self.config.moments[:2])
        return np.stack([unwhitened(self.frame, rows) for rows in points]) * scale + location

    def _canonical(self, k: int, cluster: Any) -> Floats:
        """Standardised points in ascending order; ValueError names the set and what is wrong with it."""
        try:
            points = np.asarray(cluster, np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"set {k} holds no points of numbers: {error}") from error
        d = self.config.shape.dimension
        if points.size == 0:
            raise ValueError(f"set {k} is empty; a cluster has at least one point")
        if points.ndim == 1 and d == 1:
            points = points[:, None]
        if points.ndim != 2:
            raise ValueError(f"set {k} has shape {points.shape}; it must have a row for each point")
        if points.shape[1] != d:
            raise ValueError(f"set {k} has points of {points.shape[1]} coordinates, the model is of {d}")
        bad = np.flatnonzero(~np.isfinite(points).all(axis=1))
        if len(bad):
            raise ValueError(f"set {k}, point {bad[0]}: {points[bad[0]].tolist()} is not finite")
        points = points[np.lexsort(points.T[::-1])]
        return (points - self.config.moments.location) / np.asarray(self.config.moments.scale)

    def _scored(self, sets: list[Floats], room: int, grid: Grid, probes: int) -> Any:
        """log p of sets of one padded size, in the coordinates of the frame. Zeros fill the chunk."""
        chunk, d = chunk_of(room), self.config.shape.dimension
        points, mask = np.zeros((chunk, room, d), np.float32), np.zeros((chunk, room), bool)
        mask[:, 0] = True
        for k, rows in enumerate(sets):
            with np.errstate(over="ignore"):  # so far away that log p is −∞
                points[k, : len(rows)] = whitened(self.frame, rows)
            mask[k, : len(rows)] = True
        batch = Sets(points, mask, mask.sum(axis=1).astype(np.float32))
        if probes:
            signs = np.stack([signs_of(rows, probes, room) for rows in sets])
            signs = np.pad(signs, [(0, chunk - len(sets)), (0, 0), (0, 0), (0, 0)])
            return scored(self.network, self.frame, grid, batch, estimated_trace, signs)
        trace = full_trace if room * d <= self.config.shape.shared else exact_trace
        return scored(self.network, self.frame, grid, batch, trace)


@eqx.filter_jit
def scored(network: Any, frame: Frame, grid: Grid, batch: Sets, trace: Any, signs: Any = None) -> Any:
    """log p of a chunk of sets, in the coordinates of the frame, computed in 32 bits wherever."""
    frame = jax.tree.map(lambda number: jnp.asarray(number, jnp.float32), frame)

    def one(sets: Sets, signs: Any) -> Any:
        way = trace if signs is None else partial(trace, probes=signs)
        return log_density(network, frame, grid, sets, way)

    with jax.default_matmul_precision("highest"):
        return jax.vmap(one)(batch, signs)


@eqx.filter_jit
def drawn(network: Any, frame: Frame, nodes: Any, batch: Sets) -> Any:
    """Noise made into points, in the coordinates of the frame."""
    frame = jax.tree.map(lambda number: jnp.asarray(number, jnp.float32), frame)
    with jax.default_matmul_precision("highest"):
        return jax.vmap(lambda sets: flowed(network, frame, nodes, sets))(batch)


def signs_of(points: Floats, probes: int, room: int) -> Floats:
    """Random signs that a set always has, shape (probes, room, d), zeros beyond its points."""
    seed = int.from_bytes(blake2b(points.tobytes(), digest_size=8).digest(), "little")
    signs = 2.0 * np.random.default_rng(seed).integers(0, 2, (probes, *points.shape)) - 1.0
    return np.pad(signs, [(0, 0), (0, room - len(points)), (0, 0)]).astype(np.float32)


def room_for(size: int) -> int:
    """The padded size: the next power of two, and 8 at least on an accelerator, for fewer programs."""
    least = 1 if jax.default_backend() == "cpu" else 8
    return max(1 << (size - 1).bit_length(), least)


def chunk_of(room: int) -> int:
    """How many sets of a padded size are scored at once."""
    if jax.default_backend() == "cpu":
        return min(max(64 // room, 4), 32)
    return min(max(4096 // room, 32), 512)


def is_set_diffusion(path: Any) -> bool:
    """Whether a file of the package is one of these models."""
    with resources.as_file(path) as file:
        return read_about(file).get("kind") == KIND
