"""How the cost of an observation grows with the stream: candidates on, from 5,000 to 500,000 observations.

python -m benchmarks.scale [--quick]

A stream is a model, α and a function that draws the next rows; the number of clusters grows with n. What
leads up to each size is one batch, with all growing of arrays in it; then single calls of ``partial_fit`` are
timed, each with the processor's clock, as other processes are none of our cost. Least squares say how many
microseconds each doubling of n adds, and which power of n fits best: logarithmic growth is a power near 0.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import partita as pt
from benchmarks.common import ROOT, cpu_seconds, keep, show

SIZES = (5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000)
EACH = 5  # observations a cluster, on average
SINGLES = 2_000  # calls of a single row that are timed at each size


class Stream(NamedTuple):
    """Data of one kind."""

    model: pt.Model
    alpha: float
    rows: Callable[[int], Any]  # the next so many


def points(n: int) -> Stream:
    """Points around centres well apart: every fifth opens a new cluster, the others go back to any."""
    generator, seen = np.random.default_rng(0), 0
    side = int(np.ceil(np.sqrt(n / EACH))) + 100
    lattice = np.stack(np.meshgrid(np.arange(side), np.arange(side)), axis=-1).reshape(-1, 2)
    centres = generator.permutation(20.0 * (lattice - side / 2))

    def rows(count: int) -> np.ndarray:
        nonlocal seen
        time_of = seen + np.arange(count)
        newest = time_of // EACH
        own = np.where(time_of % EACH == 0, newest, (generator.random(count) * (newest + 1)).astype(int))
        seen += count
        return centres[own] + generator.normal(size=(count, 2))

    model = pt.Gaussian(shape=5.0, rate=5.0, mean=0.0, precision=1.0 / float(np.var(centres)))
    return Stream(model, n / EACH, rows)


STREAMS: dict[str, Callable[[int], Stream]] = {"points": points}


def cost(stream: Stream, sizes: tuple[int, ...], m: int) -> list[dict[str, float]]:
    """Microseconds an observation at each size, as the stream runs up to the last."""
    warm = pt.SplitSMC(stream.model, stream.alpha, m, candidates="auto")
    warm.partial_fit(stream.rows(50)).partial_fit(stream.rows(1))
    sampler = pt.SplitSMC(stream.model, stream.alpha, m, candidates="auto")
    seen, results = 0, []
    for size in sizes:
        batch, singles = stream.rows(size - seen - SINGLES), stream.rows(SINGLES)
        spent, _ = cpu_seconds(lambda rows=batch: sampler.partial_fit(rows))
        micros = []
        for x in range(SINGLES):
            taken, _ = cpu_seconds(lambda rows=singles[x : x + 1]: sampler.partial_fit(rows))
            micros.append(1e6 * taken)
        seen = size
        report = sampler.candidate_report(stream.rows(20), n=20)
        results.append(
            {
                "n": size,
                "clusters": int(sampler.labels_.max()) + 1,
                "batch_us": 1e6 * spent / len(batch),
                "median_us": float(np.median(micros)),
                "p99_us": float(np.quantile(micros, 0.99)),
                "worst_us": max(micros),
                "scored": float(report.scored.mean()),
                "reached": float(report.reached.mean()),
            }
        )
    return results


def growth(results: list[dict[str, float]], measure: str) -> dict[str, float]:
    """What a doubling of n adds, in microseconds, and the power of n that fits best."""
    log_n = np.log2([r["n"] for r in results])
    values = np.array([r[measure] for r in results])
    return {
        "us_per_doubling": float(np.polyfit(log_n, values, 1)[0]),
        "power": float(np.polyfit(log_n, np.log2(values), 1)[0]),
    }


def draw(results: dict[str, Any]) -> None:
    """Cost against the length of the stream."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    axes = figure.subplots()
    for name, stream in results.items():
        n = [r["n"] for r in stream["sizes"]]
        for measure, label in (
            ("p99_us", "one call each, 99 %"),
            ("median_us", "one call each, median"),
            ("batch_us", "in a batch, mean"),
        ):
            axes.plot(n, [r[measure] for r in stream["sizes"]], "o-", label=f"{name}: {label}")
    axes.set(xscale="log", xlabel="observations so far", ylabel="µs an observation", ylim=(0, None))
    axes.legend()
    path = ROOT / "benchmarks" / "results" / "scale.png"
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=150)


def main(quick: bool = False) -> None:
    """Run every stream."""
    sizes, m, results = SIZES[:3] if quick else SIZES, 20, {}
    for name, make in STREAMS.items():
        found = cost(make(sizes[-1]), sizes, m)
        grows = {measure: growth(found, measure) for measure in ("batch_us", "median_us", "p99_us")}
        results[name] = {"particles": m, "sizes": found, "growth": grows}
        show(
            f"{name}, m = {m}: microseconds an observation with candidates, as the stream goes on",
            ["n", "clusters", "batch", "single: median", "99 %", "worst", "scored", "reached"],
            [
                [
                    f"{r['n']:,}",
                    f"{r['clusters']:,}",
                    *(f"{r[k]:.1f}" for k in ("batch_us", "median_us", "p99_us")),
                    f"{r['worst_us']:,.0f}",
                    f"{r['scored']:.1f}",
                    f"{r['reached']:.2%}",
                ]
                for r in found
            ],
        )
        show(
            f"{name}: how it grows",
            ["", "µs a doubling", "power of n"],
            [[k, f"{v['us_per_doubling']:+.2f}", f"{v['power']:+.3f}"] for k, v in grows.items()],
        )
    draw(results)
    keep("scale", results)


if __name__ == "__main__":
    main("--quick" in sys.argv[1:])
