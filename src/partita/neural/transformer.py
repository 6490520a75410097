"""A decoder-only transformer: pre-norm with RMSNorm, rotary positions, SwiGLU, tied embeddings.

One set of weights, two ways through it. :func:`forward` reads whole sequences, to train. :func:`read_block`
reads one block of each sequence given the keys and values of the blocks before it, to score.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

CHUNK = 8  # pages to look at in one go


class Size(NamedTuple):
    """How large a network is."""

    n_tokens: int
    width: int = 256
    layers: int = 10
    heads: int = 8
    hidden: int = 768  # of the feed-forward part


class Layer(eqx.Module):
    """One layer's weights; :class:`Transformer` has all layers' along a first axis."""

    norm_attention: Any
    queries_keys_values: Any
    mix: Any
    norm_hidden: Any
    gate: Any
    up: Any
    down: Any

    def __init__(self, size: Size, key: Any) -> None:
        d, h = size.width, size.hidden
        keys = jax.random.split(key, 5)
        deep = 1.0 / math.sqrt(2 * size.layers)  # what adds to the residual stream begins small

        def draw(key: Any, inputs: int, outputs: int, scale: float = 1.0) -> Any:
            return scale / math.sqrt(inputs) * jax.random.normal(key, (inputs, outputs))

        self.norm_attention = jnp.ones(d)
        self.queries_keys_values = draw(keys[0], d, 3 * d)
        self.mix = draw(keys[1], d, d, deep)
        self.norm_hidden = jnp.ones(d)
        self.gate = draw(keys[2], d, h)
        self.up = draw(keys[3], d, h)
        self.down = draw(keys[4], h, d, deep)


class Transformer(eqx.Module):
    """The network's weights."""

    embedding: Any
    layers: Layer
    norm: Any
    size: Size = eqx.field(static=True)

    def __init__(self, size: Size, key: Any) -> None:
        first, rest = jax.random.split(key)
        self.embedding = 0.02 * jax.random.normal(first, (size.n_tokens, size.width))
        self.layers = jax.vmap(lambda key: Layer(size, key))(jax.random.split(rest, size.layers))
        self.norm = jnp.ones(size.width)
        self.size = size


def normed(x: Any, scale: Any) -> Any:
    """RMSNorm, in 32 bits."""
    wide = x.astype(jnp.float32)
    wide = wide * jax.lax.rsqrt(jnp.mean(wide**2, axis=-1, keepdims=True) + 1e-6)
    return (wide * scale).astype(x.dtype)


def rotated(x: Any, position: Any) -> Any:
    """Rotary positions: x is (…, positions, heads, width of a head), position (…, positions)."""
    half = x.shape[-1] // 2
    frequency = 10_000.0 ** (-jnp.arange(half) / half)
    angle = position[..., None, None].astype(jnp.float32) * frequency
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    a, b = x[..., :half].astype(jnp.float32), x[..., half:].astype(jnp.float32)
    return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1).astype(x.dtype)


def heads_of(layer: Layer, x: Any, position: Any, heads: int) -> tuple[Any, Any, Any]:
    """Queries, keys and values, (…, positions, heads, width of a head)."""
    inside = normed(x, layer.norm_attention) @ layer.queries_keys_values
    shape = (*x.shape[:-1], heads, x.shape[-1] // heads)
    q, k, v = (part.reshape(shape) for part in jnp.split(inside, 3, axis=-1))
    return rotated(q, position), rotated(k, position), v


def fed_forward(layer: Layer, x: Any) -> Any:
    """SwiGLU."""
    inside = normed(x, layer.norm_hidden)
    return (jax.nn.silu(inside @ layer.gate) * (inside @ layer.up)) @ layer.down


def dropped(x: Any, rate: float, key: Any) -> Any:
    """Dropout; nothing is dropped without a key."""
    if key is None or rate == 0.0:
        return x
    keep = jax.random.bernoulli(key, 1.0 - rate, x.shape)
    return jnp.where(keep, x / (1.0 - rate), 0.0).astype(x.dtype)


def forward(
    network: Transformer, tokens: Any, *, dropout: float = 0.0, key: Any = None, fast: bool = False
) -> Any:
    """The last layer's output for whole sequences, (rows, positions, width).

    ``fast`` computes in 16 bits, with the accelerator's own attention.
    """
    kind = jnp.bfloat16 if fast else jnp.float32
    layers = jax.tree.map(lambda array: array.astype(kind) if array.ndim > 2 else array, network.layers)
    position = jnp.broadcast_to(jnp.arange(tokens.shape[1]), tokens.shape)
    implementation = "cudnn" if fast and jax.default_backend() == "gpu" else "xla"

    def through(x: Any, inputs: Any) -> tuple[Any, None]:
        layer, key = inputs
        keys = (None, None) if key is None else jax.random.split(key)
        q, k, v = heads_of(layer, x, position, network.size.heads)
        seen = jax.nn.dot_product_attention(q, k, v, is_causal=True, implementation=implementation)
        x = x + dropped(seen.reshape(x.shape) @ layer.mix, dropout, keys[0])
        return x + dropped(fed_forward(layer, x), dropout, keys[1]), None

    x = math.sqrt(network.size.width) * network.embedding[tokens].astype(kind)
    keys = None if key is None else jax.random.split(key, network.size.layers)
    return normed(jax.lax.scan(through, x, (layers, keys))[0], network.norm)


def log_probabilities(network: Transformer, x: Any, target: Any, allowed: Any) -> Any:
    """log p of each target, given the outputs before them and which tokens are allowed there."""
    logits = (x @ network.embedding.astype(x.dtype).T).astype(jnp.float32)
    logits = jnp.where(allowed, logits, -jnp.inf)
    chosen = jnp.take_along_axis(logits, target[..., None], axis=-1)[..., 0]
    return chosen - jax.nn.logsumexp(logits, axis=-1)


def read_block(
    network: Transformer, pool: Any, tokens: Any, pages: Any, past: Any, written: Any
) -> tuple[Any, Any]:
    """One block of each sequence, given the blocks before it, of which some may be read along with it.

    Parameters
    ----------
    pool : (layers, pages, 2, heads, block, width of a head) array
        Keys and values of blocks that were read.
    tokens : (rows, block) array
    pages : (rows, window) array
        Where the last blocks of each sequence are, in order, up to the one to read; any page after that. The
        window is a multiple of CHUNK.
    past : (rows,) array
        How many positions there are before the block.
    written : (rows,) array
        Where the block's own keys and values are to be, no two at the same place.

    Returns
    -------
    The last layer's output, and the pool with the blocks' keys and values in it.
    """
    block, width = tokens.shape[1], network.size.width
    position = past[:, None] + jnp.arange(block)

    def through(carry: Any, inputs: Any) -> tuple[Any, None]:
        x, pool = carry
        layer, number = inputs
        q, *own = heads_of(layer, x, position, network.size.heads)
        pool = pool.at[number, written].set(jnp.stack(own, axis=1).swapaxes(2, 3))
        found = attended(q.swapaxes(1, 2), lambda some: pool[number, some], pages, past)
        x = x + found.swapaxes(1, 2).reshape(x.shape) @ layer.mix
        return (x + fed_forward(layer, x), pool), None

    x = math.sqrt(width) * network.embedding[tokens]
    numbers = jnp.arange(network.size.layers)
    (x, pool), _ = jax.lax.scan(through, (x, pool), (network.layers, numbers))
    return normed(x, network.norm), pool


def attended(q: Any, stored: Callable[[Any], Any], pages: Any, past: Any) -> Any:
    """What queries (rows, heads, block, width of a head) find on pages; see :func:`read_block`.

    Pages are read a few at a time, as many as the longest sequence has. Those after a sequence's end leave
    what was found as it is, to the last bit, so nothing depends on how long the others are.
    """
    rows, heads, block, width = q.shape
    first = jnp.maximum(past - (pages.shape[1] - 1) * block, 0)  # position that can be seen
    latest = (past - first)[:, None] + jnp.arange(block)  # key that each query can see
    q = q / math.sqrt(width)

    def look(number: Any, carry: Any) -> Any:
        most, total, found = carry
        some = jax.lax.dynamic_slice_in_dim(pages, number * CHUNK, CHUNK, axis=1)
        keys, values = jnp.moveaxis(stored(some), 1, 3).reshape(rows, 2, heads, -1, width).swapaxes(0, 1)
        seen = number * CHUNK * block + jnp.arange(CHUNK * block) <= latest[:, None, :, None]
        score = jnp.where(seen, jnp.einsum("rhqd,rhkd->rhqk", q, keys), -1e30)
        higher = jnp.maximum(most, score.max(axis=-1, keepdims=True))
        weight, fading = jnp.exp(score - higher), jnp.exp(most - higher)
        total = total * fading + weight.sum(axis=-1, keepdims=True)
        return higher, total, found * fading + jnp.einsum("rhqk,rhkd->rhqd", weight, values)

    nothing = jnp.zeros((rows, heads, block, 1))
    n_chunks = (jnp.max(past - first) // block) // CHUNK + 1
    _, total, found = jax.lax.fori_loop(0, n_chunks, look, (nothing - 1e30, nothing, jnp.zeros_like(q)))
    return found / total
