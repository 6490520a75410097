"""How soon the service answers, with a knowledge base of 50,000 records and 20 clients at once.

python -m benchmarks.service [--data DIR] [--kb FILE] [--seconds N]

A knowledge base of historical50k (or the one given) is served by ``partita serve`` in a process of its own. Clients ask
for pages of the list, searches as one types them, entities, and waterfalls of two fragments of an entity, drawn at
random and hardly ever the same twice: one client alone; 20 that each pause for a second on average, as people do; and
20 that ask as fast as they are answered, which is as much as the service can do. Of each kind the median and the 95th
percentile, in milliseconds, and the CPU time that the server needs for one; beside it the first page after the start,
what it takes to bring the sampler into memory, and the memory of the server.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import partita.kb
from benchmarks.common import keep, show
from benchmarks.knowledge_base import DATA, command

CLIENTS = 20
SECONDS = 20.0  # that each load lasts
FEW = 100  # requests of a kind whose CPU time is measured
PAUSE = 1.0  # seconds, on average, that somebody looks at an answer
KINDS = ("list", "search", "entity", "waterfall")
SORTS = ("size", "sure", "recent", "name")
HOST = "127.0.0.1"
LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


class Client:
    """A connection that is kept, with as little around it as can be: it shares the machine with the server."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def open(self) -> Client:
        """Connect."""
        self._reader, self._writer = await asyncio.open_connection(HOST, self._port)
        return self

    async def get(self, path: str) -> tuple[float, bytes]:
        """The seconds that an answer takes, and the answer."""
        began = time.perf_counter()
        self._writer.write(f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
        head = await self._reader.readuntil(b"\r\n\r\n")
        found = LENGTH.search(head)
        assert head.startswith(b"HTTP/1.1 200"), head
        assert found is not None
        body = await self._reader.readexactly(int(found[1]))
        return time.perf_counter() - began, body

    async def close(self) -> None:
        """Hang up."""
        self._writer.close()
        with suppress(ConnectionError):
            await self._writer.wait_closed()


def paths_of(target: str) -> dict[str, Callable[[random.Random], str]]:
    """What is asked of each kind."""
    with partita.kb.open(target, create=False) as kb:
        entities = [(one.id, one.name or "", one.fragments) for one in kb.entities()]
    words = sorted({word.lower() for _, name, _ in entities for word in name.split() if len(word) > 3})
    several = [(id, fragments) for id, _, fragments in entities if len(fragments) > 1]

    def search(draw: random.Random) -> str:
        word = draw.choice(words)
        first = f"{draw.choice(words)} " if draw.random() < 0.5 else ""
        return f"/api/v1/entities?query={quote(first + word[: draw.randint(3, len(word))])}"

    def waterfall(draw: random.Random) -> str:
        one, other = draw.sample(draw.choice(several)[1], 2)
        return f"/api/v1/explain?first={quote(one)}&second={quote(other)}"

    return {
        "list": lambda draw: (
            f"/api/v1/entities?sort={draw.choice(SORTS)}&offset={draw.randrange(len(entities))}"
        ),
        "search": search,
        "entity": lambda draw: f"/api/v1/entities/{draw.choice(entities)[0]}",
        "waterfall": waterfall,
    }


async def load(
    port: int, paths: dict[str, Callable[[random.Random], str]], clients: int, pause: float, seconds: float
) -> dict[str, Any]:
    """What some clients see who ask for a while, each kind as often as the others."""
    times: dict[str, list[float]] = defaultdict(list)
    end = time.perf_counter() + seconds

    async def ask(number: int) -> None:
        draw = random.Random(f"{number} {pause}")
        client = await Client(port).open()
        while time.perf_counter() < end:
            if pause:
                await asyncio.sleep(draw.expovariate(1.0 / pause))
            kind = draw.choice(KINDS)
            times[kind].append((await client.get(paths[kind](draw)))[0])
        await client.close()

    await asyncio.gather(*(ask(number) for number in range(clients)))
    found: dict[str, Any] = {kind: summed_up(times[kind]) for kind in KINDS}
    return found | {"requests_per_second": sum(map(len, times.values())) / seconds}


def summed_up(times: list[float]) -> dict[str, float]:
    """The median and the 95th percentile, in milliseconds, of how many."""
    return {
        "n": len(times),
        "median_ms": 1000.0 * statistics.median(times),
        "p95_ms": 1000.0 * statistics.quantiles(times, n=20)[-1],
    }


async def many(port: int, path: Callable[[random.Random], str]) -> None:
    """One client that asks for one kind of thing."""
    draw, client = random.Random(1), await Client(port).open()
    for _ in range(FEW):
        await client.get(path(draw))
    await client.close()


def cpu_seconds(process: subprocess.Popen[bytes]) -> float:
    """CPU time of a process so far."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def timed(port: int, path: str) -> float:
    """The seconds that one answer takes."""
    client = await Client(port).open()
    seconds, _ = await client.get(path)
    await client.close()
    return seconds


def memory(process: subprocess.Popen[bytes], field: str) -> float:
    """MiB of a process, now (VmRSS) or at its peak (VmHWM)."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024.0


def start(target: str) -> tuple[subprocess.Popen[bytes], int]:
    """A service in a process of its own, and its port."""
    with socket.socket() as free:
        free.bind((HOST, 0))
        port = int(free.getsockname()[1])
    code = "from partita.cli import app; app()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "serve", target, "--port", str(port), "--no-browser"]
    )
    while True:
        with suppress(OSError), socket.create_connection((HOST, port)):
            return process, port
        if process.poll() is not None:
            raise SystemExit("the service has not started")
        time.sleep(0.02)


def served(target: str, seconds: float) -> dict[str, Any]:
    """All that is measured of a service."""
    paths = paths_of(target)
    process, port = start(target)
    try:
        draw = random.Random(0)
        results: dict[str, Any] = {
            "first_page_seconds": asyncio.run(timed(port, "/api/v1/entities")),
            "first_page_again_seconds": asyncio.run(timed(port, "/api/v1/entities?offset=50")),
            "memory_tables_only_mib": memory(process, "VmRSS"),
            "sampler_loaded_seconds": asyncio.run(timed(port, paths["waterfall"](draw))),
        }
        results["cpu_ms"] = {}
        for kind in KINDS:
            before = cpu_seconds(process)
            asyncio.run(many(port, paths[kind]))
            results["cpu_ms"][kind] = 1000.0 * (cpu_seconds(process) - before) / FEW
        for name, clients, pause in (
            ("alone", 1, 0.0),
            ("people", CLIENTS, PAUSE),
            ("flat_out", CLIENTS, 0.0),
        ):
            results[name] = asyncio.run(load(port, paths, clients, pause, seconds))
        results["memory_mib"], results["memory_peak_mib"] = memory(process, "VmRSS"), memory(process, "VmHWM")
        return results
    finally:
        process.terminate()
        process.wait()


def report(results: dict[str, Any]) -> None:
    """Print what was measured."""
    rows = [
        [kind, f"{results['cpu_ms'][kind]:.1f}"]
        + [
            f"{results[name][kind][measure]:.0f}"
            for name in ("alone", "people", "flat_out")
            for measure in ("median_ms", "p95_ms")
        ]
        for kind in KINDS
    ]
    names = ("1 client", "20 people", "20 flat out")
    columns = ["ms", "CPU", *(f"{name}, {measure}" for name in names for measure in ("median", "95 %"))]
    show(f"{results['records']:,} records, {results['entities']:,} entities", columns, rows)
    print(
        json.dumps({name: value for name, value in results.items() if not isinstance(value, dict)}, indent=1)
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--kb", help="a knowledge base that is there already")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="that each load lasts")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        target = arguments.kb or f"{folder}/large.db"
        if arguments.kb is None:
            records = arguments.data / "historical50k" / "records.csv.gz"
            command("build", records, "-o", target, "--id", "record_id", "--ignore", "cluster_id", "--bulk")
        stats = command("stats", target)[2]
        results = {"records": stats["fragments"], "entities": stats["entities"], "cores": os.cpu_count()}
        results["load_before"] = os.getloadavg()[0]
        results |= served(target, arguments.seconds)
    report(results)
    keep("service", results)


if __name__ == "__main__":
    main()
