"""How fast a knowledge base takes fragments in, durably, how large it is, and how soon it answers.

python -m benchmarks.knowledge_base [--data DIR] [--store URL] [--only ingest|large|bulk]

Through the command line, with kernels compiled before the clock starts: kb5k in batches on SQLite, or on the
store given, then some of its fragments again as new ones, one transaction each. Through the library: what one
of them takes, how soon a knowledge base of 50,000 records (historical50k) answers after it is opened, and what it takes
to add one record durably, and to match one, at first and when what they are compared with is in memory; beside it what
a bare transaction of SQLite takes. And what it takes to build that knowledge base one record after the other, and with
--bulk, each refined twice, how much memory, and how good the entities are.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import partita.kb
from benchmarks.common import RESULTS, ROOT, keep, measured, show

DATA = ROOT.parent / "shared" / "data"
SINGLE = 1000  # fragments that come one by one
SIZE = 50_000  # records of the large knowledge base
PARTS = ("ingest", "large", "bulk")
FEW = 300  # of these that are added, or matched, one by one


def command(*arguments: str | Path) -> tuple[float, float, Any]:
    """CPU and wall seconds of a command, and its JSON."""
    program = [sys.executable, "-c", "from partita.cli import app; app()", *map(str, arguments), "--json"]
    run = lambda: subprocess.run(program, check=True, stdout=subprocess.PIPE, text=True).stdout  # noqa: E731
    cost, output = measured(run)
    return cost.cpu_seconds, cost.wall_seconds, json.loads(output)


def ingest(data: Path, store: str) -> dict[str, Any]:
    """kb5k through the command line: in batches, then one by one."""
    fragments = data / "kb5k" / "fragments.jsonl.gz"
    cpu, wall, _ = command("build", fragments, "-o", store, "--id", "fragment_id", "--refine", "0")
    stats = command("stats", store)[2]
    with gzip.open(fragments, "rt") as file:
        again = [json.loads(line) for _, line in zip(range(SINGLE), file, strict=False)]
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as more:
        for row in again:
            more.write(json.dumps(row | {"fragment_id": f"again-{row['fragment_id']}"}) + "\n")
        more.flush()
        single = command("add", store, more.name, "--id", "fragment_id", "--batch", "1")
    n = stats["fragments"]
    return {
        "fragments": n,
        "cpu_seconds": cpu,
        "wall_seconds": wall,
        "per_second": n / wall,
        "per_cpu_second": n / cpu,
        "bytes_per_fragment": stats["bytes per fragment"],
        "one_by_one_wall_seconds": single[1],
        "one_by_one_per_second": SINGLE / single[1],
    }


def large(data: Path, folder: str) -> dict[str, Any]:
    """A knowledge base of many records: how soon it answers, what one more takes, and to match one."""
    path = f"{folder}/large.db"
    records = data / "historical50k" / "records.csv.gz"
    arguments = ("--id", "record_id", "--ignore", "cluster_id", "--refine", "0")
    cpu, wall, _ = command("build", records, "-o", path, *arguments)
    results: dict[str, Any] = {"cpu_seconds": cpu, "wall_seconds": wall}
    began = time.perf_counter()
    kb = partita.kb.open(path)
    results["opened"] = time.perf_counter() - began
    some = kb.search("smith", limit=1)[0].id
    kb.entity(some)
    results["found"] = time.perf_counter() - began
    kb.together(*list(kb.entity(some).fragments)[:1] * 2)
    results["posterior"] = time.perf_counter() - began
    # The first ones fetch what their neighbours say; later ones find it there.
    for name, first in (("single", 0), ("single_warm", FEW)):
        results |= timed(
            name, [lambda k=k: kb.add([one(k) | {"id": f"new {k}"}]) for k in range(first, first + FEW)]
        )
    for name in ("match", "match_warm"):
        results |= timed(name, [lambda row=row: kb.match(row) for row in some_of(records)])
    results |= timed("transaction", transactions(f"{folder}/bare.db"))
    stats = kb.stats()
    kb.close()
    return results | {"records": stats["fragments"], "bytes_per_record": stats["bytes per fragment"]}


def bulk(data: Path, folder: str) -> dict[str, Any]:
    """A knowledge base of many records, built one after the other and all at once."""
    records = data / "historical50k" / "records.csv.gz"
    results: dict[str, Any] = {}
    for name, option in (("in_bulk", ["--bulk"]), ("one_by_one", [])):
        path = f"{folder}/{name}.db"
        arguments = ("--id", "record_id", "--ignore", "cluster_id", *option)
        cpu, wall, _ = command("build", records, "-o", path, *arguments)
        found = command("evaluate", path, "--labels", records, "--label", "cluster_id", "--id", "record_id")[
            2
        ]
        stats = command("stats", path)[2]
        results[name] = {
            "cpu_seconds": cpu,
            "wall_seconds": wall,
            "entities": stats["entities"],
            "bytes_per_record": stats["bytes per fragment"],
            **{key: found[key] for key in ("precision", "recall", "f1")},
        }
    return results


def one(k: int) -> dict[str, Any]:
    """A record that many others are like."""
    return {"first_name": "john", "surname": f"smith{k % 7}", "dob": f"18{k % 90 + 10}-05-01"}


def some_of(records: Path) -> list[dict[str, Any]]:
    """Some records of a file, drawn at random, without their ids and the answer."""
    with gzip.open(records, "rt") as file:
        rows = list(csv.DictReader(file))
    chosen = random.Random(0).sample(rows, FEW)
    return [{name: row[name] for name in row if name not in ("record_id", "cluster_id")} for row in chosen]


def transactions(path: str) -> list[Callable[[], object]]:
    """Bare transactions of SQLite that are as durable: the floor."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE bare (body BLOB)"
    )
    return [lambda: connection.execute("INSERT INTO bare VALUES (zeroblob(2000))")] * FEW


def timed(name: str, calls: list[Callable[[], object]]) -> dict[str, float]:
    """Median and 99 % of the seconds that calls take, each by itself."""
    times = []
    for call in calls:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return {f"{name}_median": statistics.median(times), f"{name}_p99": sorted(times)[int(0.99 * len(times))]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--store", help="a URL in place of a SQLite file, for kb5k")
    parser.add_argument("--only", choices=PARTS)
    options = parser.parse_args()
    path = RESULTS / "knowledge_base.json"
    kept = json.loads(path.read_text()) if path.exists() else {}
    results = {name: kept[name] for name in PARTS if name in kept}  # what is not run stays
    with tempfile.TemporaryDirectory() as folder:
        with partita.kb.open(f"{folder}/warm.db") as kb:  # compiles what the commands need
            kb.add([{"id": str(k), "name": f"a{k % 3} b", "born": "1800"} for k in range(20)])
        if options.only in (None, "ingest"):
            found = ingest(options.data, options.store or f"{folder}/kb.db")
            results["ingest"] = found
            rows = [[name, f"{value:,.4g}"] for name, value in found.items()]
            show("kb5k through the command line", ["", ""], rows)
        if options.only in (None, "large"):
            results["large"] = large(options.data, folder)
            rows = [[name, f"{value:,.4g}"] for name, value in results["large"].items()]
            show("historical50k: seconds, and bytes", ["", ""], rows)
        if options.only in (None, "bulk"):
            results["bulk"] = bulk(options.data, folder)
            in_bulk, one_by_one = results["bulk"]["in_bulk"], results["bulk"]["one_by_one"]
            rows = [[name, f"{in_bulk[name]:,.4g}", f"{one_by_one[name]:,.4g}"] for name in in_bulk]
            show("historical50k, built", ["", "in bulk", "one by one"], rows)
    keep("knowledge_base", results)


if __name__ == "__main__":
    main()
