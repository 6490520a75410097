"""The network of :class:`SetDiffusion`: what noise there is in each point of a set, given all of them.

By de Finetti, points of an exchangeable set are independent given something that they share: of a circle, its
centre. So the best guess of a point without its noise depends on the other points only through what they say
of that. The network is made alike. A transformer without positions reads all points (:meth:`summary`) and
says in a few numbers what they share, the same in whatever order they come; each point is then denoised by
itself, given these numbers (:meth:`noise`). Thanks to them the divergence that log p(c) needs takes a few
derivatives, however many points there are, and is exact (see :mod:`partita.neural.flow`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp


class Shape(NamedTuple):
    """How large a network is.

    Attributes
    ----------
    dimension : int
        Of a point.
    width, blocks, heads : int
        Of the transformer.
    shared : int
        How many numbers say what the points of a set share.
    layers : int
        Of the network that denoises each point.
    dropout : float
        Share of a layer's outputs that is left out in training.
    """

    dimension: int
    width: int = 64
    blocks: int = 3
    heads: int = 4
    shared: int = 8
    layers: int = 3
    dropout: float = 0.0


class Modulated(eqx.Module):
    """RMSNorm with scale and shift, and a gate for what follows it, all three given by time and size."""

    controls: eqx.nn.Linear

    def __init__(self, width: int, key: Any) -> None:
        self.controls = eqx.nn.Linear(width, 3 * width, key=key)

    def __call__(self, x: Any, control: Any) -> tuple[Any, Any]:
        scale, shift, gate = jnp.split(self.controls(control), 3)
        normed = x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6)
        return normed * (1.0 + scale) + shift, 1.0 + gate


class Attention(eqx.Module):
    """Self-attention among the points that are there."""

    modulated: Modulated
    inwards: eqx.nn.Linear
    outwards: eqx.nn.Linear
    dropout: eqx.nn.Dropout
    heads: int = eqx.field(static=True)

    def __init__(self, shape: Shape, key: Any) -> None:
        one, two, three = jax.random.split(key, 3)
        self.modulated = Modulated(shape.width, one)
        self.inwards = eqx.nn.Linear(shape.width, 3 * shape.width, use_bias=False, key=two)
        self.outwards = shrunk(eqx.nn.Linear(shape.width, shape.width, use_bias=False, key=three), shape)
        self.dropout = eqx.nn.Dropout(shape.dropout)
        self.heads = shape.heads

    def __call__(self, x: Any, mask: Any, control: Any, key: Any) -> Any:
        n, width = x.shape
        normed, gate = self.modulated(x, control)
        split = (normed @ self.inwards.weight.T).reshape(n, 3, self.heads, width // self.heads)
        query, keys, values = split[:, 0], split[:, 1], split[:, 2]
        logits = jnp.einsum("ihd,jhd->hij", query, keys) / math.sqrt(width // self.heads)
        weights = jax.nn.softmax(jnp.where(mask, logits, -1e9), axis=-1)
        mixed = jnp.einsum("hij,jhd->ihd", weights, values).reshape(n, width)
        return x + gate * self.dropout(mixed @ self.outwards.weight.T, key=key)


class Feedforward(eqx.Module):
    """Two layers with a gated GELU between them, for each point by itself."""

    modulated: Modulated
    inwards: eqx.nn.Linear
    outwards: eqx.nn.Linear
    dropout: eqx.nn.Dropout

    def __init__(self, shape: Shape, key: Any) -> None:
        one, two, three = jax.random.split(key, 3)
        self.modulated = Modulated(shape.width, one)
        self.inwards = eqx.nn.Linear(shape.width, 4 * shape.width, use_bias=False, key=two)
        self.outwards = shrunk(eqx.nn.Linear(2 * shape.width, shape.width, use_bias=False, key=three), shape)
        self.dropout = eqx.nn.Dropout(shape.dropout)

    def __call__(self, x: Any, control: Any, key: Any) -> Any:
        normed, gate = self.modulated(x, control)
        left, right = jnp.split(normed @ self.inwards.weight.T, 2, axis=-1)
        return x + gate * self.dropout((jax.nn.gelu(left) * right) @ self.outwards.weight.T, key=key)


class Block(eqx.Module):
    """Attention, then two layers."""

    attention: Attention
    feedforward: Feedforward

    def __init__(self, shape: Shape, key: Any) -> None:
        one, two = jax.random.split(key)
        self.attention, self.feedforward = Attention(shape, one), Feedforward(shape, two)

    def __call__(self, x: Any, mask: Any, control: Any, key: Any) -> Any:
        one, two = (None, None) if key is None else jax.random.split(key)
        return self.feedforward(self.attention(x, mask, control, one), control, two)


class Control(eqx.Module):
    """What the network is told of time and size, in numbers that modulate every layer."""

    first: eqx.nn.Linear
    second: eqx.nn.Linear

    def __init__(self, shape: Shape, key: Any) -> None:
        one, two = jax.random.split(key)
        self.first = eqx.nn.Linear(18, shape.width, key=one)
        self.second = eqx.nn.Linear(shape.width, shape.width, key=two)

    def __call__(self, time: Any, size: Any) -> Any:
        """From the time in [0, 1] and the number of points."""
        waves = 0.5 * jnp.pi * time * jnp.arange(1.0, 7.0)
        large = jnp.log(size)
        told = [jnp.sin(waves), jnp.cos(waves), jnp.stack([time, large / 4.0, 1.0 / size, 1.0 / size**0.5])]
        few = jnp.stack([jnp.exp(-((size - 1.0) ** 2)), jnp.exp(-((size - 2.0) ** 2))])
        return jax.nn.gelu(self.second(jax.nn.gelu(self.first(jnp.concatenate([*told, few])))))


class SetNetwork(eqx.Module):
    """From noisy points, standardised, to what their denoising lacks if they were normal."""

    control: Control
    reading: eqx.nn.Linear
    blocks: Block  # stacked
    telling: eqx.nn.Linear
    listening: eqx.nn.Linear
    layers: Feedforward  # stacked
    fine: eqx.nn.Linear
    coarse: eqx.nn.Linear

    def __init__(self, shape: Shape, key: Any) -> None:
        keys = iter(jax.random.split(key, 8))
        d, width = shape.dimension, shape.width
        self.control = Control(shape, next(keys))
        self.reading = eqx.nn.Linear(2 * d, width, key=next(keys))
        self.blocks = stacked(Block, shape, shape.blocks, next(keys))
        self.telling = eqx.nn.Linear(width, shape.shared, key=next(keys))
        self.listening = eqx.nn.Linear(2 * d + shape.shared, width, key=next(keys))
        self.layers = stacked(Feedforward, shape, shape.layers, next(keys))
        self.fine, self.coarse = (nothing(eqx.nn.Linear(width, d, key=next(keys))) for _ in range(2))

    def summary(self, within: Any, mean: Any, mask: Any, size: Any, time: Any, key: Any = None) -> Any:
        """What the points share.

        Parameters
        ----------
        within : array of shape (n, d)
            Points less their mean, with variance near one.
        mean : array of shape (d,)
            Their mean, with variance near one.
        mask : boolean array of shape (n,)
            Which points are there; the others are padding.
        size : number of points that are there
        time : float
            From 0, almost without noise, to 1.
        key : random key, optional
            For dropout.
        """
        control = self.control(time, size)
        x = jax.vmap(self.reading)(beside(within, mean))
        x = through(self.blocks, x, key, lambda block, x, key: block(x, mask, control, key))
        x = jnp.where(mask[:, None], x, 0.0).sum(axis=0) / size
        return self.telling(x)

    def noise(
        self, within: Any, mean: Any, shared: Any, gain: Any, size: Any, time: Any, key: Any = None
    ) -> Any:
        """The correction of each point, shape (n, d), given what they share."""
        control = self.control(time, size)
        x = jax.vmap(self.listening)(beside(within, jnp.concatenate([mean, shared])))
        x = through(self.layers, x, key, lambda layer, x, key: layer(x, control, key))
        return jax.vmap(self.coarse)(x) + gain * jax.vmap(self.fine)(x)


def beside(points: Any, common: Any) -> Any:
    """Each point with the numbers that are common to all."""
    return jnp.concatenate([points, jnp.broadcast_to(common, (len(points), len(common)))], axis=-1)


def stacked(kind: Any, shape: Shape, number: int, key: Any) -> Any:
    """Layers of one kind in one module, whose arrays have one more axis."""
    return eqx.filter_vmap(lambda key: kind(shape, key))(jax.random.split(key, number))


def through(layers: Any, x: Any, key: Any, apply: Callable[[Any, Any, Any], Any]) -> Any:
    """x after layers that are stacked: one program for all of them."""
    arrays, rest = eqx.partition(layers, eqx.is_array)
    number = len(jax.tree.leaves(arrays)[0])
    keys = None if key is None else jax.random.split(key, number)

    def step(x: Any, layer: Any) -> tuple[Any, None]:
        arrays, key = layer
        return apply(eqx.combine(arrays, rest), x, key), None

    return jax.lax.scan(step, x, (arrays, keys))[0]


def shrunk(linear: eqx.nn.Linear, shape: Shape) -> eqx.nn.Linear:
    """A layer that adds little at first, so that many of them do not add up."""
    return eqx.tree_at(lambda layer: layer.weight, linear, linear.weight / math.sqrt(2.0 * shape.blocks))


def nothing(linear: eqx.nn.Linear) -> eqx.nn.Linear:
    """A layer that says nothing at first."""
    return jax.tree.map(jnp.zeros_like, linear)
