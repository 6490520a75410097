"""How fast: CPU time of the paper's run, cost of an observation as m and n grow, and of importing.

python -m benchmarks.speed [--quick]
"""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

import numpy as np

import partita as pt
from benchmarks.common import cpu_seconds, keep, paper_data, paper_sampler, show
from partita._core.kernel import kernel
from partita.smc.steps.candidates import find_candidates
from partita.smc.steps.update import score

RESEARCH_CODE = {"split 100": 50.0, "SMC 100": 22.0, "greedy": 6.0}  # CPU-seconds, ../shared/reference


@kernel
def score_only(state, family, x, times):
    """Score one observation again and again."""
    for _ in range(times):
        find_candidates(state, x)
        score(state, family, state.data, x)


def scoring_seconds(sampler: Any) -> float:
    """CPU time of scoring one observation against the clusters as they stand."""
    engine = sampler._engine
    x = engine.n_observations - 1
    score_only(engine.state, engine.family, x, 1)
    times = 20
    return (
        min(cpu_seconds(lambda: score_only(engine.state, engine.family, x, times))[0] for _ in range(5))
        / times
    )


def paper_run(n_orders: int) -> dict[str, Any]:
    """The paper's Gaussian data with warm kernels: CPU-seconds, log-density and F1 over the orders."""
    X, truth, orders, name = paper_data()
    settings = {
        "split 1000": (pt.SplitSMC, {"n_particles": 1000}),
        "split 100": (pt.SplitSMC, {"n_particles": 100}),
        "split 10": (pt.SplitSMC, {"n_particles": 10}),
        "SMC 100": (pt.SMC, {"n_particles": 100}),
        "greedy": (pt.Greedy, {}),
    }
    results, rows = {}, []
    for label, (kind, parameters) in settings.items():
        paper_sampler(kind, **parameters).fit(X[orders[0]])
        seconds, scores, f1 = [], [], []
        for order in orders[: 3 if "1000" in label else n_orders]:
            spent, sampler = cpu_seconds(
                lambda o=order, k=kind, p=parameters: paper_sampler(k, **p).fit(X[o])
            )
            seconds.append(spent)
            scores.append(sampler.posterior_.log_density())
            f1.append(pt.bcubed(truth[order], sampler.labels_).f1)
        results[label] = {
            "cpu_seconds": float(np.median(seconds)),
            "log_density": float(np.mean(scores)),
            "log_density_std": float(np.std(scores)),
            "f1": float(np.mean(f1)),
        }
        reference = RESEARCH_CODE.get(label)
        rows.append(
            [
                label,
                f"{np.median(seconds):.4f}",
                f"{reference / np.median(seconds):.0f}×" if reference else "",
                f"{np.mean(scores):.2f} ({np.std(scores):.2f})",
                f"{np.mean(f1):.3f}",
            ]
        )
    show(
        f"{name}, 700 points, warm kernels, median of {n_orders} orders (split 1000: of 3)",
        ["sampler", "CPU s", "research code / ours", "log-density (std)", "F1"],
        rows,
    )
    return results


def refinement(n_orders: int) -> list[dict[str, float]]:
    """Beyond the paper: m = 20 and a few sweeps of ``refine``."""
    X, _, orders, name = paper_data()
    results, rows = [], []
    for sweeps in (1, 3, 6):
        seconds, scores = [], []
        for order in orders[:n_orders]:
            sampler = paper_sampler(n_particles=20, random_state=0)
            spent, _ = cpu_seconds(lambda s=sampler, o=order, k=sweeps: s.fit(X[o]).refine(k))
            seconds.append(spent)
            scores.append(sampler.posterior_.log_density())
        within = int(np.sum(np.array(scores) > -1421.07 - 1.0))
        mean, spread, median = float(np.mean(scores)), float(np.std(scores)), float(np.median(seconds))
        results.append(
            {"sweeps": sweeps, "log_density": mean, "std": spread, "cpu_seconds": median, "within_1": within}
        )
        rows.append([sweeps, f"{mean:.2f} ({spread:.2f})", f"{within} of {n_orders}", f"{median:.2f}"])
    show(
        f"{name}, m = 20 and refine(sweeps), {n_orders} orders",
        ["sweeps", "log-density (std)", "within 1 of −1421.07", "CPU s"],
        rows,
    )
    return results


def one_at_a_time() -> dict[str, float]:
    """``partial_fit`` of single points, m = 100: microseconds a call."""
    X, _, orders, _ = paper_data()
    sampler = paper_sampler(n_particles=100)
    micros = []
    for x in X[orders[0]]:
        start = time.perf_counter()
        sampler.partial_fit(x[None])
        micros.append(1e6 * (time.perf_counter() - start))
    result = {"median_us": float(np.median(micros)), "p99_us": float(np.quantile(micros, 0.99))}
    show(
        "partial_fit of one point at a time, m = 100",
        ["median µs", "99 % µs"],
        [[f"{v:.0f}" for v in result.values()]],
    )
    return result


def growth(sizes: tuple[int, ...], particles: tuple[int, ...], limit: float) -> list[dict[str, float]]:
    """Microseconds an observation at the end of a stream whose clusters grow with n, and of them scoring."""
    results, rows = [], []
    for n in sizes:
        X, _ = pt.datasets.gaussian_mixture(
            n,
            n_clusters=n // 7,
            concentration=n / 35,
            n_groups=max(n // 44, 1),
            precision=2e-4 * 700 / n,
            random_state=0,
        )
        for m in particles:
            sampler = pt.SplitSMC(pt.Gaussian(2.0, 0.5, 0.0, 2e-4 * 700 / n), alpha=n / 35, n_particles=m)
            start, seen, last = time.process_time(), 0, 0.0
            chunk = max(n // 20, 1)
            while seen < n and time.process_time() - start < limit:
                spent, _ = cpu_seconds(lambda rows=X[seen : seen + chunk], s=sampler: s.partial_fit(rows))
                last, seen = spent / len(X[seen : seen + chunk]), min(seen + chunk, n)
            scoring = scoring_seconds(sampler)
            results.append({"n": n, "m": m, "reached": seen, "us": 1e6 * last, "scoring_us": 1e6 * scoring})
            note = "" if seen == n else f"stopped at {seen:,} after {limit:.0f} s"
            rows.append([f"{n:,}", m, f"{1e6 * last:.1f}", f"{min(scoring / last, 1.0):.0%}", note])
    show(
        "one observation at the end of the stream, clusters growing with n (n/7 sticks, α = n/35)",
        ["n", "m", "µs", "of it scoring", ""],
        rows,
    )
    return results


def long_stream(n: int) -> list[dict[str, float]]:
    """One stream in 20 clusters: the cost of everything but scoring must not grow."""
    generator = np.random.default_rng(0)
    centres = generator.uniform(-20, 20, (20, 2))
    X = centres[generator.integers(20, size=n)] + generator.normal(0, 1, (n, 2))
    sampler = pt.SplitSMC(pt.Gaussian(2.0, 2.0, 0.0, 0.005), alpha=1.0, n_particles=100)
    results, rows = [], []
    window = n // 10
    for first in range(0, n, window):
        spent, _ = cpu_seconds(lambda a=first: sampler.partial_fit(X[a : a + window]))
        scoring = scoring_seconds(sampler)
        rest = spent / window - scoring
        n_clusters = len(np.unique(sampler.labels_))
        results.append({"n": first + window, "us": 1e6 * spent / window, "scoring_us": 1e6 * scoring})
        rows.append(
            [
                f"{first + window:,}",
                f"{1e6 * spent / window:.1f}",
                f"{1e6 * scoring:.1f}",
                f"{1e6 * rest:.1f}",
                n_clusters,
            ]
        )
    show(
        f"one stream of {n:,} points in 20 clusters, m = 100",
        ["observations", "µs each", "scoring", "all else", "clusters"],
        rows,
    )
    return results


def import_seconds() -> float:
    """Wall time of ``import partita`` in a new interpreter, median of 5, less an empty interpreter's."""

    def wall(code: str) -> float:
        times = []
        for _ in range(5):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            times.append(time.perf_counter() - start)
        return float(np.median(times))

    seconds = wall("import partita") - wall("pass")
    show("import partita", ["s"], [[f"{seconds:.3f}"]])
    return seconds


def main(quick: bool = False) -> None:
    """Run everything."""
    keep(
        "speed",
        {
            "import_seconds": import_seconds(),
            "paper": paper_run(3 if quick else 20),
            "refinement": refinement(3 if quick else 20),
            "one_at_a_time": one_at_a_time(),
            "growth": growth(
                (700, 7_000) if quick else (700, 7_000, 70_000), (1, 10, 100, 1000), 5.0 if quick else 60.0
            ),
            "long_stream": long_stream(20_000 if quick else 200_000),
        },
    )


if __name__ == "__main__":
    main("--quick" in sys.argv[1:])
