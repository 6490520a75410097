"""How little the answer hangs on what should not matter: useless columns, the order, and labels, which help.

python -m benchmarks.robustness [--sets …] [--orders 10] [--few 3] [--most 800] [--jobs 1] [--data DIR]

Whole clusters of each set of the tuning half, clustered as :mod:`benchmarks.entity_resolution` does and
refined. B-cubed F1 over ten orders and its standard deviation; then, over the first few of these orders, what
changes with one more column, and with a prior learnt from labels: those of half the clusters, and of all. The
difference is that to the same orders without. Where a figure misses what is asked for, it has a "!".
"""

from __future__ import annotations

import argparse
import multiprocessing
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import partita as pt
from benchmarks.common import console, keep, show
from benchmarks.entity_resolution import MANY, SWEEPS
from benchmarks.entity_sets import DATA, HALVES, load, some_clusters
from benchmarks.record_peers import Records

DEAREST = 0.02  # what a useless column may cost
STEADY = 0.01  # the most that F1 may vary over the orders
WORDS = 20  # different values of a random column
LABELLED = {"half the labels": 0.5, "all labels": 1.0}


# ---------------------------------------------------------------------- columns that say nothing new


def with_values(records: Records, column: str, values: Iterable[Any]) -> Records:
    """Records with one more column; None leaves a record as it is."""
    pairs = zip(records, values, strict=True)
    return [record if value is None else record | {column: value} for record, value in pairs]


def random_column(records: Records) -> Records:
    """One of some words, drawn for each record."""
    drawn = np.random.default_rng(0).integers(WORDS, size=len(records))
    return with_values(records, "random column", (f"word{chr(97 + k)}" for k in drawn))


def constant_column(records: Records) -> Records:
    """The same for all."""
    return with_values(records, "constant column", ("active" for _ in records))


def unique_column(records: Records) -> Records:
    """A number for each record."""
    return with_values(records, "unique column", (f"R-{row:06}" for row in range(len(records))))


def copied_column(records: Records) -> Records:
    """The column that most records have, once more."""
    common = Counter(column for record in records for column in record).most_common(1)[0][0]
    return with_values(records, f"copy of {common}", (record.get(common) for record in records))


COLUMNS: dict[str, Callable[[Records], Records]] = {
    "random": random_column,
    "constant": constant_column,
    "unique": unique_column,
    "copied": copied_column,
}


# ---------------------------------------------------------------------- one set


def learn(records: Records) -> Any:
    """A model learnt without labels."""
    return pt.Record.infer(records).fit_prior(records)


def taught(share: float, truth: np.ndarray, records: Records) -> Any:
    """A model learnt from the labels of this share of the clusters, and from no other record."""
    clusters = np.random.default_rng(0).permutation(np.unique(truth))
    rows = np.flatnonzero(np.isin(truth, clusters[: max(round(share * len(clusters)), 1)]))
    return pt.Record.infer(records).fit_prior([records[row] for row in rows], truth[rows])


def f1_of(model: Any, records: Records, truth: np.ndarray) -> float:
    """B-cubed F1 of what a model makes of the records, refined."""
    keys: dict[str, Any] = {"keys": "auto"} if len(records) > MANY else {}
    sampler = pt.SplitSMC(model, alpha="auto", n_particles=20, random_state=0, **keys).fit(records)
    return float(pt.bcubed(truth, sampler.refine(SWEEPS).labels_).f1)


def over_orders(records: Records, truth: np.ndarray, n_orders: int, share: float = 0.0) -> list[float]:
    """F1 in several orders, with the labels of a share of the clusters."""
    found = []
    for order in range(n_orders):
        arranged = np.random.default_rng(order).permutation(len(records))
        given, labels = [records[row] for row in arranged], truth[arranged]
        fit = partial(taught, share, labels) if share else learn
        found.append(f1_of(fit(given), given, labels))
    return found


def measure(data: Path, name: str, most: int, n_orders: int, few: int) -> dict[str, Any]:
    """All figures of one set."""
    records, truth = some_clusters(*load(data, name), most, seed=0)
    plain = over_orders(records, truth, n_orders)
    before = float(np.mean(plain[:few]))
    changes = {
        column: over_orders(add(records), truth, len(plain[:few])) for column, add in COLUMNS.items()
    } | {title: over_orders(records, truth, len(plain[:few]), share) for title, share in LABELLED.items()}
    return {
        "records": len(records),
        "clusters": len(np.unique(truth)),
        "f1": float(np.mean(plain)),
        "f1_sd": float(np.std(plain)),
        "f1_by_order": plain,
        "f1_changed": {what: float(np.mean(found)) for what, found in changes.items()},
        "gains": {what: float(np.mean(found)) - before for what, found in changes.items()},
    }


def measured_set(data: Path, most: int, n_orders: int, few: int, name: str) -> tuple[str, dict[str, Any]]:
    """The same with its name, for a process of its own."""
    return name, measure(data, name, most, n_orders, few)


# ---------------------------------------------------------------------- the command


def marked(figure: float, good: bool, sign: str = "") -> str:
    """Three digits, with a mark if they are not good enough."""
    return f"{figure:{sign}.3f}" + (" " if good else "!")


def row_of(name: str, r: dict[str, Any]) -> list[str]:
    """One set in the table."""
    gains = r["gains"]
    columns = [marked(gains[what], round(gains[what], 3) >= -DEAREST, "+") for what in COLUMNS]
    half, every = (gains[what] for what in LABELLED)
    labels = [f"{half:+.3f}", marked(every, round(every, 3) >= 0.0, "+")]
    steady = marked(r["f1_sd"], round(r["f1_sd"], 3) <= STEADY)
    return [name, str(r["records"]), f"{r['f1']:.3f}", steady, *columns, *labels]


def show_all(results: dict[str, Any]) -> None:
    """Print a table of all sets."""
    columns = ["set", "records", "F1", "sd", *COLUMNS, *LABELLED]
    show("F1, over orders, and what is gained", columns, [row_of(name, r) for name, r in results.items()])


def options(given: list[str] | None = None) -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the sets")
    parser.add_argument("--sets", nargs="+", default=list(HALVES["tuning"]))
    parser.add_argument("--orders", type=int, default=10)
    parser.add_argument("--few", type=int, default=3, help="orders with columns and labels")
    parser.add_argument("--most", type=int, default=800, help="records of a set")
    parser.add_argument("--jobs", type=int, default=1, help="sets at a time")
    return parser.parse_args(given)


def main() -> None:
    """Run what the command line asks for; a choice of sets is not kept."""
    chosen = options()
    task = partial(measured_set, chosen.data, chosen.most, chosen.orders, chosen.few)
    results = {}
    with multiprocessing.get_context("spawn").Pool(chosen.jobs) as pool:
        for name, of_set in pool.imap(task, chosen.sets):
            results[name] = of_set
            console.print(f"{name}: done")
    show_all(results)
    if chosen.sets == list(HALVES["tuning"]):
        settings = {"orders": chosen.orders, "few": chosen.few, "most": chosen.most}
        keep("robustness", settings | {"sets": results})


if __name__ == "__main__":
    main()
