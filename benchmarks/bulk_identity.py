"""Is the answer the same to the last bit, for any number of shards, on one machine and on Spark?

python -m benchmarks.bulk_identity --sets febrl3 rldata10000 --shards 1 4 16 64 --engines local spark
    [--connect sc://localhost:15002] [--data ../shared/data]

Each run starts from the same model, learnt once, and has a directory of its own; "permuted" takes its shards in another
order. A digest is of ids, clusters and the bits of the probabilities. A server of Spark Connect must be on this
machine: it reads and writes here. The figures of a set and an engine replace those that are kept in
results/benchmarks/bulk_identity.json.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import RESULTS, keep, show
from benchmarks.entity_sets import DATA, load
from partita import bulk
from partita._core.progress import unreported
from partita.bulk.clustering import PARTICLES, SWEEPS, Run
from partita.bulk.local import Local
from partita.bulk.shards import Shard
from partita.bulk.work import Work


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=["febrl3", "rldata10000"])
    parser.add_argument("--shards", nargs="+", type=int, default=[1, 4, 16, 64])
    parser.add_argument("--engines", nargs="+", choices=["local", "spark"], default=["local", "spark"])
    parser.add_argument(
        "--connect", metavar="URL", help="of a server of Spark Connect, instead of a session of our own"
    )
    parser.add_argument("--data", type=Path, default=DATA)
    given = parser.parse_args()
    rows, differ = [], False
    for name in given.sets:
        found = digests(load(given.data, name)[0], given.shards, given.engines, given.connect)
        differ |= len({digest for *_, digest in found}) > 1
        remember(name, found)
        rows += [[name, *row] for row in found]
    show("The same for any number of shards", ["set", "engine", "shards", "seconds", "digest"], rows)
    sys.exit(1 if differ else 0)


def remember(name: str, found: list[list[Any]]) -> None:
    """Keep what came of a set, in the place of what the same engines gave before."""
    path = RESULTS / "bulk_identity.json"
    known = json.loads(path.read_text()).get("sets", {}) if path.exists() else {}
    fresh = [dict(zip(("engine", "shards", "seconds", "digest"), row, strict=True)) for row in found]
    engines = {row["engine"] for row in fresh}
    known[name] = [row for row in known.get(name, []) if row["engine"] not in engines] + fresh
    keep("bulk_identity", {"sets": known})


class Permuted(Local):
    """The engine for one machine, which takes shards in some other order."""

    def map_shards(self, shards: list[Shard], *given: Any) -> Iterator[Any]:
        order = np.random.default_rng(1).permutation(len(shards))
        return super().map_shards([shards[k] for k in order], *given)


def digests(records: Any, counts: list[int], engines: list[str], url: str | None) -> list[list[Any]]:
    """Engine, shards, seconds, and digest of each run."""
    found: list[list[Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        known = Path(folder, "known")
        bulk.cluster(records, id=None, work=known)
        for engine in engines:
            for count in counts:
                work = Path(folder, f"{engine}-{count}")
                options: dict[str, Any] = {"work": work}
                if engine == "spark" and url is not None:
                    options = {"work": work.as_uri(), "session": url}
                else:
                    work.mkdir()
                    for file in ("run.json", "model.json"):
                        shutil.copy(known / file, work / file)
                started = time.perf_counter()
                entities = bulk.cluster(records, id=None, engine=engine, shards=count, **options)
                seconds = time.perf_counter() - started
                found.append(
                    [name_of(engine, url), entities.report.shards, round(seconds, 1), digest(entities)]
                )
                print(*found[-1], file=sys.stderr, flush=True)
        if "local" in engines:
            found.append(permuted(records, known, Path(folder, "permuted"), max(counts)))
            print(*found[-1], file=sys.stderr, flush=True)
    return found


def name_of(engine: str, url: str | None) -> str:
    """An engine, with its version if it has one."""
    if engine == "local":
        return engine
    import pyspark

    return f"spark {pyspark.__version__}" + (" connect" if url else "")


def permuted(records: Any, known: Path, work: Path, count: int) -> list[Any]:
    """Shards in another order, on this machine."""
    work.mkdir()
    for file in ("run.json", "model.json"):
        shutil.copy(known / file, work / file)
    started = time.perf_counter()
    with closing(Work(work)) as kept:
        run = Run(Permuted(kept, 2, unreported), None, 0, PARTICLES, SWEEPS, unreported)
        entities = run.entities(records, None, count)
    return ["permuted", entities.report.shards, round(time.perf_counter() - started, 1), digest(entities)]


def digest(entities: bulk.Entities) -> str:
    """Of all that is said of the records."""
    state = hashlib.blake2b(digest_size=8)
    state.update(repr(entities.ids).encode())
    state.update(repr(entities.cluster.tolist()).encode())
    state.update(entities.probability.tobytes())
    return state.hexdigest()


if __name__ == "__main__":
    main()
