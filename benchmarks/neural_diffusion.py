"""How good the set diffusion of circles is: against the true density and a fine integration, and how fast.

python -m benchmarks.neural_diffusion [--weights FILE] [--sets N] [--sizes N ...] [--parts NAME ...] [--plain]

Also trains one on the Gaussian toy, where the truth has a closed form (--toy STEPS).
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from benchmarks.circle_density import draw, log_densities
from partita.neural.diffusion import SetDiffusion

SIZES = (1, 2, 3, 4, 6, 10, 16, 25, 40, 60)
STEPS = (6, 8, 10, 12, 16, 24)
FINE = 64


def sets_of(
    model: SetDiffusion, sizes: Sequence[int], number: int, noisy: bool
) -> tuple[list[np.ndarray], float]:
    """Held-out sets of each size, and the resolution of the model."""
    noise = model.resolution
    rng = np.random.default_rng(12345)
    sets = [draw(rng, size, noise if noisy else 0.0) for size in sizes for _ in range(number)]
    return sets, noise


def by_size(values: np.ndarray, number: int) -> np.ndarray:
    """A row for each size."""
    return values.reshape(-1, number)


def accuracy(model: SetDiffusion, sizes: Sequence[int], number: int) -> list[dict[str, Any]]:
    """Oracle minus model for each size: of points with the noise of the resolution, and on circles."""
    gaps = []
    for noisy in (True, False):
        sets, noise = sets_of(model, sizes, number, noisy)
        gaps.append(by_size(log_densities(sets, noise) - model.log_density(sets, steps=FINE), number))
    return [
        {
            "size": size,
            "nats_a_point": float(gaps[0][k].mean() / size),
            "nats_a_set": float(gaps[0][k].mean()),
            "deviation": float(gaps[0][k].std()),
            "on_circle": float(gaps[1][k].mean()),
            "on_circle_deviation": float(gaps[1][k].std()),
        }
        for k, size in enumerate(sizes)
    ]


def integration(model: SetDiffusion, sizes: Sequence[int], number: int) -> list[dict[str, Any]]:
    """Largest and mean error of coarse integrations of points on circles, in nats a set, for each size."""
    sets, _ = sets_of(model, sizes, number, False)
    fine = by_size(model.log_density(sets, steps=FINE), number)
    rows = []
    for steps in STEPS:
        error = np.abs(by_size(model.log_density(sets, steps=steps), number) - fine)
        rows.append(
            {"steps": steps, **{f"n={n}": float(e.mean()) for n, e in zip(sizes, error, strict=True)}}
        )
        rows[-1]["largest"] = float(error.max())
    return rows


def probing(model: SetDiffusion, sizes: Sequence[int], number: int) -> list[dict[str, Any]]:
    """Root mean square error of estimated traces, in nats a set, for each size."""
    sets, _ = sets_of(model, sizes, number, False)
    exact = by_size(model.log_density(sets), number)
    rows = []
    for probes in (1, 8):
        error = by_size(model.log_density(sets, probes=probes), number) - exact
        rms = np.sqrt(np.mean(error**2, axis=1))
        rows.append({"probes": probes, **{f"n={n}": float(e) for n, e in zip(sizes, rms, strict=True)}})
    return rows


def speed(model: SetDiffusion, sizes: Sequence[int], number: int) -> list[dict[str, Any]]:
    """Milliseconds a set, for each size, with compiled programs."""
    rng = np.random.default_rng(1)
    rows = []
    for size in sizes:
        sets = [draw(rng, size, 0.0) for _ in range(number)]
        model(sets)
        wall, cpu = time.perf_counter(), time.process_time()
        model(sets)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        rows.append({"size": size, "ms_a_set": 1000 * wall / number, "cpu_ms_a_set": 1000 * cpu / number})
    return rows


def toy(steps: int, number: int = 64) -> list[dict[str, Any]]:
    """Train on x_i ~ N(μ, 0.3²), μ ~ N(0, 1), and compare with the closed form."""
    rng = np.random.default_rng(0)
    sets = [rng.normal(size=2) + 0.3 * rng.normal(size=(24, 2)) for _ in range(5000)]
    shape = {"width": 32, "blocks": 2, "layers": 2, "shared": 4}
    model = SetDiffusion.train(sets, steps=steps, batch=128, rate=1e-3, **shape)
    rows = []
    for size in (1, 2, 5, 12, 24):
        held = [rng.normal(size=2) + 0.3 * rng.normal(size=(size, 2)) for _ in range(number)]
        gap = np.array([normal_density(points, 0.09, 1.0) for points in held]) - model(held)
        rows.append(
            {
                "size": size,
                "nats_a_point": float(gap.mean() / size),
                "deviation_a_point": float(gap.std() / size),
            }
        )
    return rows


def normal_density(points: np.ndarray, within: float, between: float) -> float:
    """log p of points about a mean that is normal."""
    n, d = points.shape
    mean = points.mean(axis=0)
    outer = within + n * between
    squares = ((points - mean) ** 2).sum() / within + n * (mean**2).sum() / outer
    return float(
        -0.5 * (squares + d * ((n - 1) * math.log(within) + math.log(outer) + n * math.log(2 * math.pi)))
    )


def table(title: str, rows: list[dict[str, Any]]) -> None:
    """Print rows below their names."""
    print(f"\n{title}\n" + " ".join(f"{name:>10}" for name in rows[0]))
    for row in rows:
        print(" ".join(f"{value:10.4g}" for value in row.values()), flush=True)


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--weights", type=Path)
    parser.add_argument("--sets", type=int, default=32)
    parser.add_argument("--toy", type=int, default=300, help="steps; 0 for none")
    parser.add_argument("--plain", action="store_true", help="keep nothing")
    parser.add_argument("--parts", nargs="*", default=["accuracy", "integration", "speed", "probing"])
    parser.add_argument("--sizes", nargs="*", type=int, default=SIZES)
    options = parser.parse_args()
    model = SetDiffusion.load(options.weights) if options.weights else SetDiffusion.pretrained("circles")
    results: dict[str, Any] = {"model": repr(model), "backend": jax.default_backend()}
    parts = {
        "accuracy": ("oracle minus model, in nats", accuracy),
        "integration": (f"error against {FINE} steps, in nats a set", integration),
        "speed": ("time", speed),
        "probing": ("error of estimated traces", probing),
    }
    for name in options.parts:
        title, measure = parts[name]
        results[name] = measure(model, options.sizes, options.sets)
        table(title, results[name])
    if options.toy:
        results["toy"] = toy(options.toy)
        table("Gaussian toy, true minus model", results["toy"])
    if not options.plain:
        from benchmarks.common import keep

        keep("neural_diffusion", results)


if __name__ == "__main__":
    main()
