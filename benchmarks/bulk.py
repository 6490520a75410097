"""Many records at once: quality against one after the other, speed beside Splink, and cost from 10⁵ to 10⁷ records.

python -m benchmarks.bulk [--only quality speed scale] [--sets …] [--orders 3] [--people 100000 300000 1000000]
                          [--jobs 2] [--data DIR]
python -m benchmarks.bulk --only plan --people 10000000 [--jobs 2] [--kept DIR]

*Quality*: B-cubed F1 of ``fit(n_jobs=)``, in blocks, and of ``fit``, one record after the other, with the same model on
the same records in the same orders; after one pass, and where there are at most 10,000 records after one sweep of
refinement.

*Speed*: ``partita bulk`` on historical50k from a Parquet file to a Parquet file, learning included, in a process of its
own whose kernels are compiled before; and Splink with its own demonstration, which reads nothing from a file.

*Scale*: the same for people who do not exist: families who share an address, fathers and sons of one name, colleagues
who share a switchboard, namesakes, nicknames, changed addresses and typos, 2.4 records each on average.

*Plan*: ``partita bulk --plan`` for more of these people, in a process of its own: what it takes, by phase, and what it
says of the rest. Only if it is asked for. ``--kept`` names a folder for their file and for what the plan leaves, which
are found there again.

Each part replaces its figures in results/benchmarks/bulk.json and leaves the others; what a record costs is drawn in
bulk.png beside it.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

import partita as pt
from benchmarks import people as draw
from benchmarks.common import RESULTS, console, cpu_of_all, keep, measured, show
from benchmarks.crm import colleagues, household, rows_of, somebody
from benchmarks.entity_sets import DATA, HALVES, load
from benchmarks.record_peers import scores
from partita.kb.io import write
from partita.smc.sampler import ODDS

SETS = ("webnlg_conf2", "amazon_google", "inventors_stream", "historical50k", "kb1k", "kb5k", "geo1k", "febrl3",
        "rldata10000", "dblp_acm", "names200_wikidata", "imdb_dbpedia", "assignees_air")  # fmt: skip
REFINABLE = 10_000
WINDOW = 200_000  # records within which people are shuffled
SPLINK = "historical50k"
PARTS = ("quality", "speed", "scale")
PLAN = "plan"
Person = dict[str, str]


# ---------------------------------------------------------------------- people


def last_name(rng: random.Random) -> str:
    """A family name: of those that many have, or one of thousands."""
    return draw.zipf(rng, draw.LASTS) if rng.random() < 0.5 else draw.syllables(rng)


def group(rng: random.Random) -> list[Person]:
    """People who have something in common, or somebody alone."""
    kind = rng.random()
    if kind < 0.1:
        return [one | {"last_name": last_name(rng)} for one in colleagues(rng)]
    last, home = last_name(rng), household(rng)
    if kind < 0.2:
        first = draw.zipf(rng, draw.FIRSTS)
        return [
            somebody(rng, f"{last} {suffix}", home, first, draw.birth(rng, *when))
            for suffix, when in (("Sr", (1935, 1960)), ("Jr", (1965, 1990)))
        ]
    if kind < 0.45:
        return [somebody(rng, last, home, first) for first in rng.sample(draw.FIRSTS, rng.randint(2, 4))]
    return [somebody(rng, last, home)]


def population(n: int, seed: int = 0) -> Iterator[tuple[dict[str, str], int]]:
    """So many records, and whose each is."""
    rng, person, waiting, told = random.Random(f"people {seed}"), 0, [], 0
    while told < n:
        while len(waiting) < WINDOW and told + len(waiting) < n:
            for one in group(rng):
                waiting += [(row, person) for row in rows_of(rng, one)]
                person += 1
        rng.shuffle(waiting)
        for row, own in waiting[: n - told]:
            yield {name: value for name, value in row.items() if name != "source"}, own
        told += len(waiting)
        waiting = []


def write_people(n: int, folder: Path) -> tuple[Path, np.ndarray]:
    """A Parquet file of so many records, with their true entities beside it."""
    truth: list[int] = []

    def rows() -> Iterator[dict[str, str]]:
        for number, (row, own) in enumerate(population(n)):
            truth.append(own)
            yield {"id": f"r{number}"} | row

    write(rows(), path := folder / "people.parquet")
    return path, np.array(truth)


# ---------------------------------------------------------------------- parts


def in_bulk(data: Path, folder: Path, jobs: int) -> tuple[np.ndarray, dict[str, Any]]:
    """What ``partita bulk`` says of a file, in a process of its own: clusters, and what it took."""
    output, before = folder / "entities.parquet", cpu_of_all()
    command = [
        sys.executable,
        "-c",
        "from partita.cli import app; app()",
        "bulk",
        str(data),
        "-o",
        str(output),
    ]
    command += ["--report", str(folder / "report"), "--jobs", str(jobs), "--refine", "0", "--quiet"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    report = json.loads((folder / "report" / "report.json").read_text())
    found = duckdb.sql(f"SELECT cluster_id FROM read_parquet('{output}')").fetchnumpy()["cluster_id"]
    kept = {
        name: report[name] for name in ("records", "entities", "seconds", "divided", "cut", "cut_probability")
    }
    peak = max(phase["mebibytes"] for phase in report["phases"])
    phases = {phase["name"]: round(phase["seconds"], 2) for phase in report["phases"]}
    return np.asarray(found), kept | {
        "cpu_seconds": cpu_of_all() - before,
        "mebibytes": peak,
        "phases": phases,
    }


def scale(sizes: list[int], jobs: int) -> list[dict[str, Any]]:
    """People from Parquet to entities."""
    results = []
    for n in sizes:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            data, truth = write_people(n, folder)
            labels, cost = in_bulk(data, folder, jobs)
        results.append(cost | {"f1": scores(truth, labels).f1, "people": int(truth.max()) + 1})
        console.print(results[-1])
    return results


def plans(sizes: list[int], jobs: int, kept: Path | None) -> list[dict[str, Any]]:
    """People from Parquet to a plan."""
    results = []
    for n in sizes:
        with tempfile.TemporaryDirectory() as name:
            folder = kept or Path(name)
            if not (data := folder / f"people-{n}.parquet").exists():
                write(({"id": f"r{number}"} | row for number, (row, _) in enumerate(population(n))), data)
            results.append(planned(data, folder, jobs))
        console.print(results[-1])
    return results


def planned(data: Path, folder: Path, jobs: int) -> dict[str, Any]:
    """What ``partita bulk --plan`` says of a file, in a process of its own, and what it took."""
    before, report = cpu_of_all(), folder / "report"
    command = [sys.executable, "-c", "from partita.cli import app; app()", "bulk", str(data), "--plan"]
    command += ["--work", str(data.with_suffix(".work")), "--report", str(report), "--jobs", str(jobs)]
    subprocess.run([*command, "--refine", "0"], check=True, stdout=subprocess.DEVNULL)
    found = json.loads((report / "report.json").read_text())
    names = (
        "records",
        "seconds",
        "pairs",
        "components",
        "blocks",
        "shards",
        "divided",
        "cut",
        "cut_probability",
        "rest",
    )
    phases = {
        phase["name"]: {key: round(phase[key], 2) for key in ("seconds", "cpu_seconds", "mebibytes")}
        for phase in found["phases"]
    }
    peak = max(phase["mebibytes"] for phase in found["phases"])
    return {name: found[name] for name in names} | {
        "cpu_seconds": cpu_of_all() - before,
        "mebibytes": peak,
        "jobs": jobs,
        "phases": phases,
    }


def speed(data: Path, jobs: int) -> dict[str, Any]:
    """historical50k in bulk, and with Splink."""
    from benchmarks.splink_peer import splink

    records, truth = load(data, SPLINK)
    truth = np.unique(truth, return_inverse=True)[1]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(
            [{"id": f"r{k}"} | record for k, record in enumerate(records)], path := folder / "records.parquet"
        )
        in_bulk(path, folder, jobs)  # compiles what has to be
        labels, ours = in_bulk(path, folder, jobs)
    theirs = splink(SPLINK, records, truth)
    cost = theirs.cost
    return {
        "partita": ours | {"f1": scores(truth, labels).f1},
        "splink": {
            "seconds": cost.wall_seconds,
            "cpu_seconds": cost.cpu_seconds,
            "mebibytes": cost.mebibytes,
            "f1": scores(truth, theirs.labels).f1,
        },
    }


def quality(data: Path, names: list[str], orders: int, jobs: int) -> dict[str, Any]:
    """F1 in blocks and one after the other."""
    results: dict[str, Any] = {}
    for name in names:
        records, truth = load(data, name)
        truth = np.unique(truth, return_inverse=True)[1]
        found = []
        for order in range(orders):
            arranged = np.random.default_rng(order).permutation(len(records))
            given, own = [records[k] for k in arranged], truth[arranged]
            model = pt.Record.infer(given).fit_prior(given)
            row = {}
            for way, options in (("blocks", {"n_jobs": jobs}), ("stream", {})):
                sampler = pt.SplitSMC(model, n_particles=20, keys="auto", longest_odds=ODDS, random_state=0)
                cost, _ = measured(lambda s=sampler, g=given, o=options: s.fit(g, **o))
                row[way] = scores(own, sampler.labels_).f1
                row[f"{way}_cpu"] = cost.cpu_seconds
                if len(records) <= REFINABLE:
                    row[f"{way}_refined"] = scores(own, sampler.refine(1, n_jobs=jobs).labels_).f1
            found.append(row)
        half = next(half for half, sets in HALVES.items() if name in sets)
        means = {key: float(np.mean([row[key] for row in found])) for key in found[0]}
        results[name] = {"half": half, "records": len(records), "orders": found, **means}
        console.print(name, means)
    return results


def main() -> None:
    """Run what is asked for, and keep it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=(*PARTS, PLAN), default=PARTS)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--orders", type=int, default=3)
    parser.add_argument("--people", nargs="+", type=int, default=(100_000, 300_000, 1_000_000))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--kept", type=Path, help="folder for the people of a plan, and for what it leaves")
    given = parser.parse_args()
    path = RESULTS / "bulk.json"
    results = json.loads(path.read_text()) if path.exists() else {}
    results = {name: results.get(name, {}) for name in (*PARTS, PLAN)}
    if "quality" in given.only:
        results["quality"] |= quality(given.data, given.sets, given.orders, given.jobs)
    if "speed" in given.only:
        results["speed"] = speed(given.data, given.jobs)
    if "scale" in given.only:
        rows = scale(given.people, given.jobs)
        results["scale"] |= {str(row["records"]): row for row in rows}
    if PLAN in given.only:
        results[PLAN] |= {str(row["records"]): row for row in plans(given.people, given.jobs, given.kept)}
    keep("bulk", results)
    if results["scale"]:
        plot(list(results["scale"].values()), RESULTS / "bulk.png")
    tell(results)


def plot(rows: list[dict[str, Any]], path: Path) -> None:
    """What a record costs, by how many there are."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = sorted(rows, key=lambda row: row["records"])
    figure, axes = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
    records = [row["records"] for row in rows]
    for key, label in (("cpu_seconds", "CPU"), ("seconds", "wall, two threads")):
        axes.plot(records, [1000 * row[key] / row["records"] for row in rows], marker="o", label=label)
    axes.set(xscale="log", xlabel="records", ylabel="milliseconds a record", ylim=(0, None))
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def tell(results: dict[str, Any]) -> None:
    """Print the figures."""
    if results["quality"]:
        columns = ["set", "half", "records", "in blocks", "one by one", "refined", "refined"]
        ways = ("blocks", "stream", "blocks_refined", "stream_refined")
        rows = [
            [name, row["half"], row["records"], *(f"{row[way]:.3f}" if way in row else "" for way in ways)]
            for name, row in results["quality"].items()
        ]
        show("B-cubed F1", columns, rows)
    if results["scale"]:
        columns = ["records", "seconds", "CPU ms a record", "MiB", "F1"]
        rows = [
            [f"{row['records']:,}", f"{row['seconds']:.0f}", f"{1000 * row['cpu_seconds'] / row['records']:.2f}",
             f"{row['mebibytes']:,.0f}", f"{row['f1']:.3f}"]
            for row in results["scale"].values()
        ]  # fmt: skip
        show("People", columns, rows)
    if results[PLAN]:
        columns = ["records", "seconds", "CPU seconds", "MiB", "the rest: seconds", "MiB"]
        rows = [
            [f"{row['records']:,}", f"{row['seconds']:,.0f}", f"{row['cpu_seconds']:,.0f}", f"{row['mebibytes']:,.0f}",
             f"{row['rest']['seconds']:,.0f}", f"{row['rest']['read_out_mebibytes']:,.0f}"]
            for row in results[PLAN].values()
        ]  # fmt: skip
        show("Plans", columns, rows)
    if results["speed"]:
        rows = [
            [name, *(f"{row[key]:.3g}" for key in ("seconds", "cpu_seconds", "mebibytes", "f1"))]
            for name, row in results["speed"].items()
        ]
        show("historical50k", ["", "seconds", "CPU seconds", "MiB", "F1"], rows)


if __name__ == "__main__":
    main()
