"""Where a run is done: this machine, or Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from partita._core.typing import Floats, Integers
from partita.bulk.records import Mark
from partita.bulk.shards import Shard
from partita.bulk.work import Kept
from partita.smc.blocks.edges import Edges
from partita.smc.blocks.run import Packed
from partita.smc.engine import Engine


class Place(Protocol):
    """What a run needs of the place where it is done, in the order in which it is asked.

    Attributes
    ----------
    work : Kept
        What has been done so far.
    n : int
        How many records there are.
    """

    @property
    def work(self) -> Kept: ...

    @property
    def n(self) -> int: ...

    def read(self, records: Any, id: str | None, options: dict[str, Any]) -> None:
        """Read the records, and see that ``work`` is of a run with these and with these options."""

    def ids(self) -> list[str]:
        """The ids of the records."""

    def sample(self, numbers: Integers) -> list[dict[str, Any]]:
        """What some records say, by number, in ascending order."""

    def holders(self, marks: Sequence[Mark], most: int) -> list[list[int]]:
        """The numbers of the records that have each mark; of none, where more than ``most`` have it."""

    def prepare(self, engine: Engine) -> None:
        """Make all records ready for an engine that has observed none; ValueError for one that it refuses."""

    def edges(self, log_alpha: float) -> Edges:
        """Pairs of records that may be of one entity."""

    def map_shards(
        self, shards: list[Shard], alphas: tuple[Integers, Floats], seed: int, sweeps: int
    ) -> Iterator[tuple[Shard, Packed]]:
        """What comes of shards, in any order."""
