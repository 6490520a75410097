"""Train the diffusion model that Partita ships, on an accelerator, in minutes.

python -m benchmarks.networks.train_diffusion circles --out FOLDER [--steps N | --seconds S]

Writes ``circles.safetensors`` and ``curves.json``, beside the checkpoint from which it goes on if it is
started again. With ``--seconds`` the number of steps is chosen after timing a few.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import jax

from partita.neural.diffusion import SetDiffusion
from partita.neural.set_training import SIMULATED
from partita.neural.training import Progress


def main() -> None:
    """Train, and keep weights and curves."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("source", choices=sorted(SIMULATED))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=30_000)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--resolution", type=float, default=0.03)
    parser.add_argument("--shape", type=json.loads, default={}, help='such as {"width": 64}')
    parser.add_argument("--seed", type=int, default=0)
    options = vars(parser.parse_args())
    options |= options.pop("shape")
    source, out, seconds = options.pop("source"), options.pop("out"), options.pop("seconds")
    out.mkdir(parents=True, exist_ok=True)
    print(f"{jax.default_backend()}, jax {jax.__version__}", flush=True)
    if seconds is not None:
        options["steps"] = max(int(seconds * speed(source, options)), 1)
    print(f"{options['steps']} steps", flush=True)
    options["every"] = max(options["steps"] // 20, 1)
    model = SetDiffusion.train(source, folder=out, progress=printed(), **options)
    model.save(out / f"{source}.safetensors")
    print(f"kept in {out}: {model}", flush=True)


def speed(source: str, options: dict[str, Any]) -> float:
    """Steps a second, after the first."""
    marks: list[float] = []
    few = options | {"steps": 400, "every": 200}

    def mark(step: int, _: Any) -> None:
        if step % 200 == 0:
            marks.append(time.perf_counter())

    SetDiffusion.train(source, progress=mark, **few)
    return 200 / (marks[1] - marks[0])


def printed() -> Progress:
    """Progress as lines, one for each checkpoint."""

    def report(step: int, figures: dict[str, float]) -> None:
        if step == figures.get("step"):
            print(" ".join(f"{name} {value:.5g}" for name, value in figures.items()), flush=True)

    return report


if __name__ == "__main__":
    main()
