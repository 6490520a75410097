"""How fast a knowledge base takes fragments in, durably, how large it is, and how soon it answers.

python -m benchmarks.knowledge_base [--data DIR] [--store URL] [--only ingest|large]

Through the command line, with kernels compiled before the clock starts: kb5k in batches on SQLite, or on the
store given, then some of its fragments again as new ones, one transaction each. Through the library: what one
of them takes, and how soon a knowledge base of 50,000 records (historical50k) answers after it is opened.
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import partita.kb
from benchmarks.common import RESULTS, ROOT, keep, measured, show

DATA = ROOT.parent / "shared" / "data"
SINGLE = 1000  # fragments that come one by one
SIZE = 50_000  # records of the large knowledge base


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
    """A knowledge base of many records: how soon it answers, and what one more takes."""
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
    times = []
    for k in range(300):
        row = {"id": f"new {k}", "first_name": "john", "surname": f"smith{k % 7}"}
        row["dob"] = f"18{k % 90 + 10}-05-01"
        start = time.perf_counter()
        kb.add([row])
        times.append(time.perf_counter() - start)
    results["single_median"], results["single_p99"] = statistics.median(times), sorted(times)[297]
    stats = kb.stats()
    kb.close()
    return results | {"records": stats["fragments"], "bytes_per_record": stats["bytes per fragment"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--store", help="a URL in place of a SQLite file, for kb5k")
    parser.add_argument("--only", choices=["ingest", "large"])
    options = parser.parse_args()
    path = RESULTS / "knowledge_base.json"
    kept = json.loads(path.read_text()) if path.exists() else {}
    results = {name: kept[name] for name in ("ingest", "large") if name in kept}  # what is not run stays
    with tempfile.TemporaryDirectory() as folder:
        with partita.kb.open(f"{folder}/warm.db") as kb:  # compiles what the commands need
            kb.add([{"id": str(k), "name": f"a{k % 3} b", "born": "1800"} for k in range(20)])
        if options.only != "large":
            found = ingest(options.data, options.store or f"{folder}/kb.db")
            results["ingest"] = found
            rows = [[name, f"{value:,.4g}"] for name, value in found.items()]
            show("kb5k through the command line", ["", ""], rows)
        if options.only != "ingest":
            results["large"] = large(options.data, folder)
            rows = [[name, f"{value:,.4g}"] for name, value in results["large"].items()]
            show("historical50k: seconds, and bytes", ["", ""], rows)
    keep("knowledge_base", results)


if __name__ == "__main__":
    main()
