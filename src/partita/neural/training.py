"""The training loop of both networks: Adam, averaged weights, checkpoints from which it goes on exactly."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
import optax

from partita.neural.weights import about, arrays_of, load, save

Progress = Callable[[int, dict[str, float]], None]
CHECKPOINT, CURVES = "checkpoint.safetensors", "curves.json"
AHEAD = 8  # batches that are made before they are needed


class Plan(NamedTuple):
    """How long and how fast to learn."""

    steps: int
    rate: float  # the highest learning rate, after the warm-up
    warmup: int  # steps
    floor: float = 0.1  # the last learning rate, as a share of the highest
    average: float = 0.999  # how much of the averaged weights stays at each step
    weight_decay: float = 0.0
    clip: float = 1.0  # the largest norm of a gradient
    seed: int = 0


class Trained(NamedTuple):
    """The averaged network, as it was best, and what was measured on the way."""

    module: Any
    curves: list[dict[str, float]]


class Learning(NamedTuple):
    """Everything that a step changes."""

    module: Any
    averaged: Any
    best: Any  # the averaged network where ``held_out`` was least, or the last one
    optimiser: Any


def optimiser_of(plan: Plan) -> Any:
    """AdamW, at a learning rate of one."""
    adam = optax.adamw(1.0, b2=0.98, weight_decay=plan.weight_decay)
    return optax.chain(optax.clip_by_global_norm(plan.clip), adam)


def rate_of(plan: Plan, step: int) -> float:
    """The learning rate of a step: a warm-up, then a cosine's decay."""
    warmup = min(plan.warmup, max(plan.steps - 1, 1))
    if step < warmup:
        return plan.rate * step / warmup
    share = min((step - warmup) / max(plan.steps - warmup, 1), 1.0)
    return plan.rate * (plan.floor + (1.0 - plan.floor) * 0.5 * (1.0 + math.cos(math.pi * share)))


def train(
    module: Any,
    loss: Callable[[Any, Any, Any], Any],
    batch: Callable[[int], Any],
    plan: Plan,
    *,
    folder: Path | None = None,
    config: dict[str, Any] | None = None,
    validate: Callable[[Any], dict[str, float]] | None = None,
    every: int = 500,
    progress: Progress = lambda step, figures: None,
) -> Trained:
    """Minimise a loss, going on from the folder's checkpoint if there is one.

    Parameters
    ----------
    module : Equinox module
    loss : callable
        From the module, a batch and a random key to a number; it is compiled for every shape of a batch.
    batch : callable
        From the number of a step to its batch, always the same one, so that training can go on.
    plan : Plan
    folder : path, optional
        For checkpoints and curves; nothing is kept unless given.
    config : dict, optional
        What the checkpoint must have been made with; ValueError if it was not.
    validate : callable, optional
        From the averaged module to figures for the curves. If one is called ``held_out``, the network that
        had the least of it is returned, which is not the last one where there are few data.
    every : int
        Steps between checkpoints.
    progress : callable
        Told the number of steps done, and the last figures.
    """
    optimiser = optimiser_of(plan)
    learning = Learning(module, module, module, optimiser.init(eqx.filter(module, eqx.is_inexact_array)))
    kept = json.loads(json.dumps({"plan": plan._asdict(), "config": config or {}}))
    done, curves = 0, list[dict[str, float]]()
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / CHECKPOINT).exists():
            done, curves, learning = resumed(folder, kept, learning)
    advance = step_of(loss, optimiser)
    key, began = jax.random.key(plan.seed), time.perf_counter() - (curves[-1]["seconds"] if curves else 0.0)
    losses: list[Any] = []
    safe = done, curves, learning  # from which training may go on as if it had not been interrupted
    try:
        for step, data in ahead(batch, done, plan.steps):
            rate = np.float32(rate_of(plan, step))  # not compiled in: a program serves any number of steps
            share = np.float32(min(plan.average, (1 + step) / (10 + step)))  # the beginning is soon forgotten
            learning, value = advance(learning, data, jax.random.fold_in(key, step), rate, share)
            losses.append(value)
            if (step + 1) % every and step + 1 < plan.steps:
                safe = step + 1, curves, learning
                if (step + 1) % 20 == 0:
                    progress(step + 1, curves[-1] if curves else {})
                continue
            figures = {"step": step + 1, "loss": mean_of(losses, step)}
            figures["seconds"] = time.perf_counter() - began
            if validate is not None:
                figures |= validate(eqx.nn.inference_mode(learning.averaged))
            learning = with_best(learning, figures, curves)
            losses, curves = [], [*curves, figures]
            safe = step + 1, curves, learning
            if folder is not None:
                keep(folder, kept, *safe)
            progress(step + 1, figures)
    except KeyboardInterrupt:
        if folder is not None and safe[0] > done:
            keep(folder, kept, *safe)
        raise
    return Trained(eqx.nn.inference_mode(learning.best), curves)


def mean_of(losses: list[Any], step: int) -> float:
    """The mean of the last losses; ValueError if it is no number."""
    mean = float(np.mean(jax.device_get(losses)))
    if not math.isfinite(mean):
        raise ValueError(f"step {step + 1}: the loss is {mean}; try a smaller learning rate")
    return mean


def with_best(learning: Learning, figures: dict[str, float], before: list[dict[str, float]]) -> Learning:
    """The averaged network as the best, if it has less of ``held_out`` than all before, or there is none."""
    least = min((earlier["held_out"] for earlier in before if "held_out" in earlier), default=math.inf)
    better = figures.get("held_out", -math.inf) < least
    return learning._replace(best=learning.averaged) if better else learning


def step_of(loss: Any, optimiser: Any) -> Any:
    """One compiled step."""

    @eqx.filter_jit
    def advance(learning: Learning, data: Any, key: Any, rate: Any, share: Any) -> tuple[Learning, Any]:
        value, gradient = eqx.filter_value_and_grad(loss)(learning.module, data, key)
        updates, state = optimiser.update(
            gradient, learning.optimiser, eqx.filter(learning.module, eqx.is_inexact_array)
        )
        module = eqx.apply_updates(learning.module, jax.tree.map(lambda update: rate * update, updates))
        averaged = jax.tree.map(
            lambda old, new: share * old + (1.0 - share) * new if eqx.is_inexact_array(old) else old,
            learning.averaged,
            module,
        )
        return Learning(module, averaged, learning.best, state), value

    return advance


def ahead(batch: Callable[[int], Any], first: int, last: int) -> Iterator[tuple[int, Any]]:
    """Steps and their batches, made while the step before is being computed."""
    pool = ThreadPoolExecutor(4)
    try:
        queue = [pool.submit(batch, step) for step in range(first, min(first + AHEAD, last))]
        for step in range(first, last):
            data = queue.pop(0).result()
            if step + AHEAD < last:
                queue.append(pool.submit(batch, step + AHEAD))
            yield step, data
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def keep(
    folder: Path, kept: dict[str, Any], step: int, curves: list[dict[str, float]], learning: Learning
) -> None:
    """Write the checkpoint, and the curves beside it for people to read."""
    arrays = jax.device_get(arrays_of(learning._asdict()))
    save(folder / CHECKPOINT, arrays, kept | {"step": step, "curves": curves})
    (folder / CURVES).write_text(json.dumps(curves, indent=1), encoding="utf-8")


def resumed(
    folder: Path, kept: dict[str, Any], learning: Learning
) -> tuple[int, list[dict[str, float]], Learning]:
    """The step, curves and weights of a checkpoint; ValueError if it is of another training."""
    path = folder / CHECKPOINT
    found = about(path)
    for name in kept:
        if found.get(name) != kept[name]:
            raise ValueError(
                f"{path} is of a training with another {name}: choose another folder, or delete it"
            )
    return int(found["step"]), list(found["curves"]), Learning(**load(path, learning._asdict()))
