"""Is the answer the same to the last bit, for any number of shards, on one machine and on Spark?

python -m benchmarks.bulk_identity --sets febrl3 rldata10000 --shards 1 4 16 64 --engines local spark
    [--connect sc://localhost:15002] [--data ../shared/data]

Each run starts from the same model, learnt once, and has a directory of its own. A digest is of ids, clusters and the
bits of the probabilities. A server of Spark Connect must be on this machine: it reads and writes here.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.common import show
from benchmarks.entity_sets import DATA, load
from partita import bulk


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
        rows += [[name, *row] for row in found]
    show("The same for any number of shards", ["set", "engine", "shards", "seconds", "digest"], rows)
    sys.exit(1 if differ else 0)


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
                found.append([engine, entities.report.shards, f"{seconds:.1f}", digest(entities)])
                print(*found[-1], file=sys.stderr, flush=True)
    return found


def digest(entities: bulk.Entities) -> str:
    """Of all that is said of the records."""
    state = hashlib.blake2b(digest_size=8)
    state.update(repr(entities.ids).encode())
    state.update(repr(entities.cluster.tolist()).encode())
    state.update(entities.probability.tobytes())
    return state.hexdigest()


if __name__ == "__main__":
    main()
