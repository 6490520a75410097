"""Records that are encoded and held in memory: all of them, where they fit, or those of some shards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np

from partita._core.progress import Report
from partita._core.typing import Floats, Integers
from partita.bulk.records import Records, validated
from partita.bulk.shards import Shard
from partita.smc.blocks.edges import Edges, edges
from partita.smc.blocks.near import near
from partita.smc.blocks.run import Packed, run, task_of
from partita.smc.engine import Engine
from partita.smc.files.packing import ragged
from partita.smc.state.keys import Keys

MEMORY = "2GB"  # of DuckDB, which goes on in files of the directory when it has more


class InMemory:
    """Encoded records.

    Parameters
    ----------
    engine : Engine
        That has encoded them, and has observed none.
    data : array
        The records, encoded.
    keys : (starts, codes)
    workers : int
        How many threads.
    path : Path
        The directory of the run, for what DuckDB has no memory for.
    """

    def __init__(self, engine: Engine, data: Floats, keys: Keys, workers: int, path: Path) -> None:
        self.engine, self.data, self.keys, self.workers, self.path = engine, data, keys, workers, path

    def edges(self, log_alpha: float) -> Edges:
        """Pairs of records that may be of one entity."""
        n, (starts, codes) = len(self.data), self.keys
        rows = {"number": np.repeat(np.arange(n, dtype=np.int32), np.diff(starts)), "key": codes}
        with duckdb.connect(config=options(self.path, self.workers)) as connection:
            connection.register("keys", rows)
            found = near(connection, "keys", n)
        return edges(self.engine, self.data, found, log_alpha, self.workers)

    def map_shards(
        self, shards: list[Shard], alphas: tuple[Integers, Floats], seed: int, sweeps: int
    ) -> Iterator[tuple[Shard, Packed]]:
        """What comes of shards, one after the other."""
        for shard in shards:
            yield shard, self.clustered(shard, shard.members, alphas, seed, sweeps)

    def clustered(
        self, shard: Shard, rows: Integers, alphas: tuple[Integers, Floats], seed: int, sweeps: int
    ) -> Packed:
        """What comes of a shard, whose members are the records in these rows."""
        starts, codes = self.keys
        counts = np.diff(starts)[rows]
        keys = np.append(0, np.cumsum(counts)), codes[ragged(starts[rows], counts)]
        task = task_of(self.data[rows], keys, shard.block, shard.members, alphas)
        found = run(self.engine, task, seed, self.workers, sweeps)
        return found._replace(members=shard.members[found.members])


def options(path: Path, workers: int) -> dict[str, str | bool | int | float | list[str]]:
    """How DuckDB works in a directory."""
    return {"threads": workers, "memory_limit": MEMORY, "temp_directory": str(path / "spilt")}


def encoded(engine: Engine, records: Records, start: int, stop: int, report: Report) -> tuple[Floats, Keys]:
    """Records from ``start`` to ``stop``, encoded by an engine, and their keys; ValueError names one it refuses."""
    data, counts, keys = [], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for first, said in records.chunks(start, stop):
        report("reading", first, records.n)
        some = validated(engine.model, said, range(first, first + len(said)))
        data.append(engine.encode(some))
        starts, codes = engine.keys(some)
        counts.append(np.diff(starts))
        keys.append(codes)
    return np.concatenate(data), (np.append(0, np.cumsum(np.concatenate(counts))), np.concatenate(keys))
