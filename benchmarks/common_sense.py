"""What everybody knows: copies belong together, strangers do not, families are several people.

python -m benchmarks.common_sense [--seeds 0 1 2 3] [--only TEXT] [--all] [--sweeps 0] [--jobs 1]

Generated people (:mod:`benchmarks.scenarios`), clustered as :mod:`benchmarks.entity_resolution` does. A cell
has the share of people whose rows are together, and of those who are with nobody else, both of which must
reach what the scenario asks for. ``--all`` runs copies of every size, which takes an hour or more.
Without it a run takes a quarter of an hour.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from typing import Any

from benchmarks.common import console, keep, show
from benchmarks.entity_resolution import cluster
from benchmarks.scenarios import ALL, CASES, COPY_CASES, LARGE, SOME_COPIES, Verdict, judge, names_of


def run(name: str, seed: int, sweeps: int = 0) -> Verdict:
    """Cluster one scenario, refined with so many sweeps, and judge what comes."""
    scenario = ALL[name](seed)
    sampler = cluster(scenario.records)
    if sweeps:
        sampler.refine(sweeps)
    return judge(scenario, sampler.labels_)


def run_all(names: list[str], seeds: list[int], sweeps: int, jobs: int) -> dict[str, dict[str, Any]]:
    """The verdicts of scenarios, seed by seed, from so many processes."""
    asked = [(name, seed, sweeps) for name in names for seed in seeds]
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        verdicts = pool.starmap(run, asked, chunksize=1)
    results: dict[str, dict[str, Any]] = {}
    for (name, seed, _), verdict in zip(asked, verdicts, strict=True):
        results.setdefault(name, {})[str(seed)] = verdict._asdict()
    return results


def cell(verdict: dict[str, Any]) -> str:
    """A verdict in a table."""
    mark = "ok" if verdict["holds"] else "FAIL"
    return f"{mark} {verdict['whole']:.2f} {verdict['pure']:.2f}"


def show_all(results: dict[str, dict[str, Any]], seeds: list[int]) -> None:
    """Print all verdicts, scenario by scenario and seed by seed, and how many hold."""
    rows = [[name, *(cell(of[str(seed)]) for seed in seeds)] for name, of in results.items()]
    held = [sum(of[str(seed)]["holds"] for of in results.values()) for seed in seeds]
    columns = ["scenario", *(f"{seed} {names_of(seed)}" for seed in seeds)]
    show(
        "people whole, people apart",
        columns,
        [*rows, ["hold", *(f"{n} of {len(results)}" for n in held)]],
    )


def options(given: list[str] | None = None) -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3])
    parser.add_argument("--only", default="", help="scenarios whose name has this text")
    parser.add_argument("--all", action="store_true", help="copies of every size")
    parser.add_argument("--sweeps", type=int, default=0, help="of refinement")
    parser.add_argument("--jobs", type=int, default=1, help="scenarios at a time")
    return parser.parse_args(given)


def main() -> None:
    """Run what the command line asks for; a choice of scenarios is not kept."""
    chosen = options()
    cases = CASES | LARGE | (COPY_CASES if chosen.all else SOME_COPIES)
    began = time.perf_counter()
    names = [name for name in cases if chosen.only in name]
    results = run_all(names, chosen.seeds, chosen.sweeps, chosen.jobs)
    show_all(results, chosen.seeds)
    console.print(f"{time.perf_counter() - began:.0f} seconds")
    if not chosen.only:
        keep("common_sense", {"seeds": chosen.seeds, "sweeps": chosen.sweeps, "scenarios": results})


if __name__ == "__main__":
    main()
