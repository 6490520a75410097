"""The engine for one machine: records are encoded once, and threads compare and cluster them.

They are held in memory where they are few enough (:mod:`.memory`), else in files (:mod:`.portions`): the answer is the
same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from partita._core.progress import Report
from partita._core.typing import Floats, Integers
from partita.bulk import portions
from partita.bulk.memory import InMemory, encoded
from partita.bulk.portions import Portions
from partita.bulk.records import CHUNK, Mark, Records, add, begun, in_chunks, read
from partita.bulk.shards import Shard
from partita.bulk.work import Work
from partita.smc.blocks.edges import Edges
from partita.smc.blocks.run import Packed
from partita.smc.engine import Engine


class Local:
    """Records of a directory on this machine.

    Parameters
    ----------
    work : Work
    workers : int
        How many threads.
    report : callable
    """

    encoded: InMemory | Portions

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

    def holders(self, marks: Sequence[Mark], most: int) -> list[list[int]]:
        """The numbers of the records that have each mark; of none, where more than ``most`` have it."""
        return self.records.holders(marks, most)

    def prepare(self, engine: Engine) -> None:
        """Encode all records, for an engine that has observed none."""
        if self.n > portions.PORTION:
            self.encoded = Portions(engine, self.records, self.work.path, self.workers, self.report)
            self.encoded.encode()
        else:
            found = encoded(engine, self.records, 0, self.n, self.report)
            self.encoded = InMemory(engine, *found, self.workers, self.work.path)

    def edges(self, log_alpha: float) -> Edges:
        """Pairs of records that may be of one entity."""
        return self.encoded.edges(log_alpha)

    def map_shards(
        self, shards: list[Shard], alphas: tuple[Integers, Floats], seed: int, sweeps: int
    ) -> Iterator[tuple[Shard, Packed]]:
        """What comes of shards, one after the other."""
        return self.encoded.map_shards(shards, alphas, seed, sweeps)
