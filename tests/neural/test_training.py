"""The training loop, with a network of one weight."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from partita.neural.training import Plan, train

PLAN = Plan(steps=20, rate=0.1, warmup=2)


class Line(eqx.Module):
    slope: jax.Array


def loss(module, batch, key):
    return jnp.mean((module.slope * batch - 2.0 * batch) ** 2) + 0.01 * jax.random.normal(key)


def batch(step):
    return np.random.default_rng(step).normal(size=5).astype(np.float32)


def trained(folder=None, **options):
    found = train(
        Line(jnp.array(0.0)), loss, options.pop("batch", batch), PLAN, folder=folder, every=8, **options
    )
    return float(found.module.slope), [figures["step"] for figures in found.curves]


def interrupted_at(last):
    def batches(step):
        if step == last:
            raise KeyboardInterrupt
        return batch(step)

    return batches


def held_out(module):
    return {"held_out": float((module.slope - 0.5) ** 2)}


@pytest.mark.parametrize("at", [3, 7, 8, 13, 15, 19])
def test_wherever_it_is_interrupted_it_goes_on_exactly(tmp_path, at):
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path, validate=held_out, batch=interrupted_at(at))
    asked = []

    def rest(step):
        asked.append(step)
        return batch(step)

    assert trained(tmp_path, validate=held_out, batch=rest) == trained(validate=held_out)
    assert min(asked) == at  # nothing is done twice


def test_interrupted_while_it_is_measured_it_measures_again(tmp_path):
    def interrupted(module):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path, validate=interrupted)
    assert trained(tmp_path, validate=held_out) == trained(validate=held_out)


def test_seconds_go_on(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path, batch=interrupted_at(10))
    found = train(Line(jnp.array(0.0)), loss, batch, PLAN, folder=tmp_path, every=8)
    seconds = [figures["seconds"] for figures in found.curves]
    assert seconds == sorted(seconds)
    assert [figures["step"] for figures in found.curves] == [8, 16, 20]
