"""The engine for one machine: records are encoded once, and threads compare and cluster them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import numpy as np

from partita._core.progress import Report
from partita._core.typing import Floats, Integers
from partita.bulk.records import CHUNK, Records, add, begun, in_chunks, read, validated
from partita.bulk.shards import Shard
from partita.bulk.work import Work
from partita.smc.blocks.edges import Edges, edges
from partita.smc.blocks.near import near
from partita.smc.blocks.run import Packed, run, task_of
from partita.smc.engine import Engine
from partita.smc.files.packing import ragged

MEMORY = "2GB"  # of DuckDB, which goes on in files of the directory when it has more


class Local:
    """Records of a directory on this machine.

    Parameters
    ----------
    work : Work
    workers : int
        How many threads.
    report : callable
    """

    def __init__(self, work: Work, workers: int, report: Report) -> None:
        self.work, self.workers, self.report = work, workers, report
        self.records = Records(work.path)

    @property
    def n(self) -> int:
        """How many records there are."""
        return self.records.n

    def read(self, records: Any, id: str | None, options: dict[str, Any]) -> None:
        """Keep the records in files."""
        digest = begun(options)
        for rows in in_chunks(read(records, id), CHUNK):
            add(digest, rows)
            self.records.append(rows)
        self.records.close()
        self.work.begin(digest.hexdigest())

    def ids(self) -> list[str]:
        """The ids of the records."""
        return self.records.ids()

    def sample(self, numbers: Integers) -> list[dict[str, Any]]:
        """What some records say, by number, in ascending order."""
        return self.records.sample(numbers)

    def prepare(self, engine: Engine) -> None:
        """Encode all records, for an engine that has observed none."""
        self.engine = engine
        data, counts, keys = [], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for first, said in self.records.chunks():
            self.report("reading", first, self.n)
            some = validated(engine.model, said, range(first, first + len(said)))
            data.append(engine.encode(some))
            starts, codes = engine.keys(some)
            counts.append(np.diff(starts))
            keys.append(codes)
        self.data = np.concatenate(data)
        self.keys = np.append(0, np.cumsum(np.concatenate(counts))), np.concatenate(keys)

    def edges(self, log_alpha: float) -> Edges:
        """Pairs of records that may be of one entity."""
        n, (starts, codes) = len(self.data), self.keys
        options: dict[str, str | bool | int | float | list[str]] = {
            "threads": self.workers,
            "memory_limit": MEMORY,
            "temp_directory": str(self.work.path / "spilt"),
        }
        rows = {"number": np.repeat(np.arange(n, dtype=np.int32), np.diff(starts)), "key": codes}
        with duckdb.connect(config=options) as connection:
            connection.register("keys", rows)
            found = near(connection, "keys", n)
        return edges(self.engine, self.data, found, log_alpha, self.workers)

    def map_shards(
        self, shards: list[Shard], alphas: tuple[Integers, Floats], seed: int, sweeps: int
    ) -> Iterator[tuple[Shard, Packed]]:
        """What comes of shards, one after the other."""
        starts, codes = self.keys
        for shard in shards:
            counts = np.diff(starts)[shard.members]
            held = codes[ragged(starts[shard.members], counts)]
            keys = np.append(0, np.cumsum(counts)), held
            task = task_of(self.data[shard.members], keys, shard.block, shard.members, alphas)
            found = run(self.engine, task, seed, self.workers, sweeps)
            yield shard, found._replace(members=shard.members[found.members])
