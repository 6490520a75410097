"""Diffusion of sets, and log p(c) of a set along its probability flow.

Points x are blurred with normal noise, y = x + s·ε, from the smallest s (the resolution of the density) to
one so large that nothing else is left. u = log s runs linearly; −2u is the log-SNR of Kingma et al.
("Variational diffusion models", 2021).

If points were x_i ~ N(μ, W) about means μ ~ N(0, B), then y would be normal, with variance W + s² about the
mean of the set, and W + nB + s² in its direction. All is computed in the coordinates z that are standard
normal under that model, at each u (:class:`Frame`). There a normal set stands still, and others follow

    dz/du = a(u)·v(z, u),    v = E[cos φ·ε − sin φ·x/√W | z],    tan φ = s/√W,    a = sin φ·cos φ,

with W + nB for W in the direction of the mean: v-prediction (Salimans and Ho, 2022). The network says v. That
needs no scaling, since v has variance one at each u, and the more normal the data, the less there is to say.

Along the flow d log p(z)/du = −tr ∂(a·v)/∂z. z runs from node to node of an even grid in u by steps of Runge
and Kutta's, and the trace at the nodes is integrated (:func:`gregory`). There are three ways to take it:
:func:`exact_trace` uses that points affect each other through a few numbers only; :func:`full_trace` takes
all derivatives, for tiny sets and for tests; :func:`estimated_trace` has random probes (Skilling and
Hutchinson's).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from partita._core.typing import Floats

MOST_NODES = 512
ENDS = np.array([-5 / 8, 1 / 6, -1 / 24])
RUNGE_KUTTA = [(0.0, 1 / 6), (0.5, 1 / 3), (0.5, 1 / 3), (1.0, 1 / 6)]  # how far to go, and what it weighs


class Frame(NamedTuple):
    """The coordinates: a normal model of sets, and the range of the noise.

    Attributes
    ----------
    within, between : arrays of shape (d,)
        Variances of points about their set's mean, and of these means.
    first, last : float
        u = log s where p(c) is evaluated, and where all is noise.
    """

    within: Any
    between: Any
    first: Any
    last: Any

    def time(self, u: Any) -> Any:
        """u in [0, 1]."""
        return (u - self.first) / (self.last - self.first)

    def spreads(self, size: Any) -> tuple[Any, Any]:
        """Standard deviations of points about the mean, and in the direction of the mean."""
        return jnp.sqrt(self.within), jnp.sqrt(self.within + size * self.between)

    def speeds(self, u: Any, size: Any) -> tuple[Any, Any]:
        """a(u) within the set, and in the direction of its mean."""
        s = jnp.exp(u)
        inner, outer = self.spreads(size)
        return s * inner / (inner**2 + s**2), s * outer / (outer**2 + s**2)

    def gain(self, u: Any) -> Any:
        """How much a deviation of the size of the noise must be enlarged to have size one."""
        return jnp.sqrt(1.0 + self.within * jnp.exp(-2.0 * u))


class Sets(NamedTuple):
    """Points of a set in the coordinates of the frame, padded.

    Attributes
    ----------
    points : array of shape (n, d)
        Zeros where there is none.
    mask : boolean array of shape (n,)
    size : float
        How many there are.
    """

    points: Any
    mask: Any
    size: Any


class Grid(NamedTuple):
    """Nodes in u from end to end, and their weights in an integral.

    There is room for :data:`MOST_NODES`, of which the first ``number`` are used: a finer grid needs no other
    program.
    """

    nodes: Any
    weights: Any
    number: Any


def gregory(first: float, last: float, steps: int) -> Grid:
    """Equal steps in u, with Gregory's weights: the trapezoid's, corrected at the ends by second differences.

    The integrand is level at both ends, where the trapezoid's error comes from, so that few steps do.
    """
    if not isinstance(steps, int | np.integer) or not 2 <= steps < MOST_NODES:
        raise ValueError(f"steps must be a whole number from 2 to {MOST_NODES - 1}, got {steps!r}")
    weights = np.ones(steps + 1)
    weights[:3] += ENDS
    weights[-3:] += ENDS[::-1]
    weights *= (last - first) / steps
    nodes, room = np.linspace(first, last, steps + 1), (0, MOST_NODES - steps - 1)
    padded = [np.pad(row, room).astype(np.float32) for row in (nodes, weights)]
    return Grid(padded[0], padded[1], np.int32(steps + 1))


def divided(z: Any, sets: Sets) -> tuple[Any, Any]:
    """Points less their mean, and the mean enlarged to variance one."""
    mean = z.sum(axis=0) / sets.size
    return jnp.where(sets.mask[:, None], z - mean, 0.0), mean * jnp.sqrt(sets.size)


def joined(within: Any, mean: Any, sets: Sets) -> Any:
    """The inverse of :func:`divided`."""
    return jnp.where(sets.mask[:, None], within + mean / jnp.sqrt(sets.size), 0.0)


def prediction(network: Any, frame: Frame, sets: Sets, z: Any, u: Any, key: Any = None) -> Any:
    """What the network says v is, within the set and of its mean."""
    one, two = (None, None) if key is None else jax.random.split(key)
    within, mean = divided(z, sets)
    time = frame.time(u)
    shared = network.summary(within, mean, sets.mask, sets.size, time, one)
    v = network.noise(within, mean, shared, frame.gain(u), sets.size, time, two)
    return divided(jnp.where(sets.mask[:, None], v, 0.0), sets)


def velocity(network: Any, frame: Frame, sets: Sets, z: Any, u: Any) -> Any:
    """dz/du."""
    within, mean = prediction(network, frame, sets, z, u)
    inner, outer = frame.speeds(u, sets.size)
    return joined(inner * within, outer * mean, sets)


def full_trace(network: Any, frame: Frame, sets: Sets, z: Any, u: Any) -> Any:
    """tr ∂(dz/du)/∂z, by as many derivatives as there are coordinates."""
    push = jax.linearize(lambda z: velocity(network, frame, sets, z, u), z)[1]
    units = jnp.eye(z.size, dtype=z.dtype).reshape(z.size, *z.shape)
    diagonal = jax.vmap(lambda unit: jnp.sum(unit * push(unit)))(units)
    return jnp.sum(jnp.where(jnp.repeat(sets.mask, z.shape[1]), diagonal, 0.0))


def estimated_trace(network: Any, frame: Frame, sets: Sets, z: Any, u: Any, probes: Any) -> Any:
    """The same, estimated by probes of shape (k, n, d) with independent signs."""
    push = jax.linearize(lambda z: velocity(network, frame, sets, z, u), z)[1]
    return jnp.mean(jax.vmap(lambda probe: jnp.sum(probe * push(probe)))(probes))


def exact_trace(network: Any, frame: Frame, sets: Sets, z: Any, u: Any) -> Any:
    """The same, by as many derivatives as points have coordinates and shared numbers.

    With v_i = G(w_i, m, h), where w_i = z_i − z̄, m = √n·z̄ and h is the summary, ∂v_i/∂z_j is
    G₁(δ_ij − 1/n) + G₂/√n + G₃·∂h/∂z_j. The first two concern one point at a time: a derivative of all points
    at once has them all. The last is a product through ``len(h)`` numbers.
    """
    d, size = z.shape[1], sets.size
    time = frame.time(u)
    within, mean = divided(z, sets)
    there = sets.mask[:, None]

    def summary(z: Any) -> Any:
        return network.summary(*divided(z, sets), sets.mask, size, time)

    def noise(within: Any, mean: Any, shared: Any) -> Any:
        return jnp.where(there, network.noise(within, mean, shared, frame.gain(u), size, time), 0.0)

    shared, push_summary = jax.linearize(summary, z)
    push_noise = jax.linearize(noise, within, mean, shared)[1]
    still = jnp.zeros_like(within), jnp.zeros_like(mean), jnp.zeros_like(shared)
    axes, units = jnp.eye(d), jnp.eye(len(shared))
    every = jnp.where(there, axes[:, None, :], 0.0)  # all points moved along an axis, for each axis

    own = jax.vmap(lambda tangent: push_noise(tangent, still[1], still[2]))(every)  # G₁
    by_mean = jax.vmap(lambda axis: push_noise(still[0], axis, still[2]))(axes)  # G₂
    by_shared = jax.vmap(lambda unit: push_noise(still[0], still[1], unit))(units)  # G₃
    moved = jax.vmap(push_summary)(jnp.concatenate([by_shared * frame.speeds(u, size)[0], every]))
    through, shifts = moved[: len(shared)], moved[len(shared) :]

    inner, outer = frame.speeds(u, size)
    diagonal = jnp.einsum("kik->k", own) * (1.0 - 1.0 / size) + jnp.einsum("kik->k", by_mean) / jnp.sqrt(size)
    along = jnp.einsum("kik->k", by_mean) / jnp.sqrt(size) + jnp.einsum("ka,aik->k", shifts, by_shared) / size
    return jnp.sum(inner * diagonal) + jnp.trace(through) + jnp.sum((outer - inner) * along)


def advanced(network: Any, frame: Frame, sets: Sets, z: Any, u: Any, to: Any) -> Any:
    """z a step of Runge and Kutta's later."""
    h = to - u

    def stage(state: tuple[Any, Any], numbers: Any) -> tuple[tuple[Any, Any], None]:
        slope, total = state
        ahead, weight = numbers
        slope = velocity(network, frame, sets, z + ahead * h * slope, u + ahead * h)
        return (slope, total + weight * slope), None

    still = jnp.zeros_like(z)
    return z + h * jax.lax.scan(stage, (still, still), jnp.asarray(RUNGE_KUTTA))[0][1]


def log_density(network: Any, frame: Frame, grid: Grid, sets: Sets, trace: Any) -> Any:
    """log p of a set in the coordinates of the frame, at the smallest noise.

    Parameters
    ----------
    network : SetNetwork, or what has its two methods
    frame : Frame
    grid : Grid
        From ``frame.first`` to ``frame.last``.
    sets : Sets
        One set.
    trace : callable
        :func:`exact_trace`, or another with the same parameters.
    """

    def step(k: Any, state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        z, u, total = state
        to = grid.nodes[k]
        z = advanced(network, frame, sets, z, u, to)
        return z, to, total + grid.weights[k] * trace(network, frame, sets, z, to)

    begin = sets.points, jnp.asarray(frame.first, jnp.float32), jnp.zeros(())
    z, _, total = jax.lax.fori_loop(0, grid.number, step, begin)
    coordinates = sets.size * z.shape[-1]
    return total - 0.5 * jnp.sum(z * z) - 0.5 * coordinates * jnp.log(2.0 * jnp.pi)


def flowed(network: Any, frame: Frame, nodes: Any, sets: Sets) -> Any:
    """Noise carried back to points along the flow, from the last of ascending nodes to the first."""

    def step(z: Any, ends: tuple[Any, Any]) -> tuple[Any, None]:
        return advanced(network, frame, sets, z, *ends), None

    return jax.lax.scan(step, sets.points, (nodes[::-1][:-1], nodes[::-1][1:]))[0]


def whitened(frame: Frame, points: Floats) -> Floats:
    """Standardised points of one set in the coordinates of the frame, at the smallest noise."""
    inner, outer = (np.sqrt(spread) for spread in variances(frame, len(points)))
    mean = points.mean(axis=0)
    return (points - mean) / inner + mean / outer


def unwhitened(frame: Frame, points: Floats) -> Floats:
    """The inverse of :func:`whitened`."""
    inner, outer = (np.sqrt(spread) for spread in variances(frame, len(points)))
    mean = points.mean(axis=0)
    return (points - mean) * inner + mean * outer


def log_volume(frame: Frame, size: int) -> float:
    """What to add to log p in the coordinates of the frame to have that of standardised points."""
    inner, outer = variances(frame, size)
    return float(-0.5 * ((size - 1) * np.log(inner) + np.log(outer)).sum())


def variances(frame: Frame, size: int) -> tuple[Floats, Floats]:
    """Of standardised points at the smallest noise: about their mean, and in the direction of the mean."""
    within, noise = np.asarray(frame.within, np.float64), np.exp(2.0 * float(frame.first))
    return within + noise, within + size * np.asarray(frame.between, np.float64) + noise


def denoising_loss(network: Any, frame: Frame, points: Any, mask: Any, u: Any, key: Any) -> Any:
    """The share of one set in the variational bound, at one u: a coordinate's, in nats a unit of u.

    Parameters
    ----------
    points : array of shape (n, d)
        Standardised, without noise, zeros where there are none.
    """
    noise_key, dropout_key = jax.random.split(key)
    sets = Sets(points, mask, mask.sum().astype(points.dtype))
    noise = jnp.where(mask[:, None], jax.random.normal(noise_key, points.shape), 0.0)
    z, targets, weights = [], [], []
    for spread, x, e in zip(
        frame.spreads(sets.size), divided(points, sets), divided(noise, sets), strict=True
    ):
        x, tan = x / spread, jnp.exp(u) / spread
        cos = 1.0 / jnp.sqrt(1.0 + tan**2)
        z.append(cos * (x + tan * e))
        targets.append(cos * (e - tan * x))
        weights.append(cos**2)
    said = prediction(network, frame, sets, joined(z[0], z[1], sets), u, dropout_key)
    errors = [
        jnp.sum(weight * (target - v) ** 2) for weight, target, v in zip(weights, targets, said, strict=True)
    ]
    return (errors[0] + errors[1]) / (sets.size * points.shape[-1])
