"""What the benchmarks share: data, clocks, tables and where results are kept."""

from __future__ import annotations

import json
import platform
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

import partita as pt

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results" / "benchmarks"
POINTS = ROOT.parent / "shared" / "data" / "points"
PAPER = {"shape": 2.0, "rate": 0.5, "mean": 0.0, "precision": 2e-4}
console = Console(width=110)


def paper_data() -> tuple[np.ndarray, np.ndarray, np.ndarray, str]:
    """The paper's Gaussian data in 20 orders; a generated set of the same kind where it is not at hand."""
    if (POINTS / "gauss700.csv").exists():
        table = np.loadtxt(POINTS / "gauss700.csv", delimiter=",", skiprows=1)
        return table[:, :2], table[:, 2].astype(int), np.load(POINTS / "gauss700_orders.npy"), "gauss700"
    X, labels = pt.datasets.gaussian_mixture(700, random_state=0)
    orders = np.array([np.random.default_rng(k).permutation(700) for k in range(20)])
    return X, labels, orders, "generated like gauss700"


def point_set(name: str) -> tuple[np.ndarray, np.ndarray]:
    """A classic point set and its true labels, in a random order that is always the same."""
    found = [path for path in (POINTS / f"{name}.csv", POINTS / f"{name}.csv.gz") if path.exists()]
    if not found:
        raise SystemExit(
            f"{name}.csv is not in {POINTS}; this benchmark needs the data sets of ../shared/data"
        )
    table = np.loadtxt(found[0], delimiter=",", skiprows=1)
    table = np.random.default_rng(0).permutation(table)
    return table[:, :2], table[:, 2].astype(int)


def paper_sampler(kind: Any = pt.SplitSMC, **parameters: Any) -> Any:
    """A sampler with the paper's model of its Gaussian data."""
    return kind(pt.Gaussian(**PAPER), alpha=20.0, **parameters)


def cpu_seconds(function: Callable[[], Any]) -> tuple[float, Any]:
    """CPU time of one call, and what it returned."""
    start = time.process_time()
    result = function()
    return time.process_time() - start, result


class Cost(NamedTuple):
    """What a call took."""

    cpu_seconds: float  # of this process and its children, in user and system mode
    wall_seconds: float
    mebibytes: float  # resident in this process at its peak, all of it


def measured(function: Callable[[], Any]) -> tuple[Cost, Any]:
    """What one call took, and what it returned."""
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    cpu, wall = cpu_of_all(), time.perf_counter()
    result = function()
    return Cost(cpu_of_all() - cpu, time.perf_counter() - wall, resident("VmHWM")), result


def cpu_of_all() -> float:
    """CPU time of this process and its children so far."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def resident(field: str) -> float:
    """MiB of this process in memory, now (VmRSS) or at its peak (VmHWM)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024.0


def show(title: str, columns: list[str], rows: list[list[Any]]) -> None:
    """Print a table."""
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(*(str(cell) for cell in row))
    console.print(table)


def keep(name: str, results: dict[str, Any]) -> None:
    """Write the results to results/benchmarks, with the command and the machine that made them."""
    about = {
        "command": f"python -m benchmarks.{name}",
        "python": platform.python_version(),
        "machine": platform.machine(),
    }
    path = RESULTS / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(about | results, indent=1) + "\n")
    console.print(f"kept in {path.relative_to(ROOT)}")
