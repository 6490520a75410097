"""What a run has done: how records were divided, what that has cut, and what each phase took."""

from __future__ import annotations

import json
import resource
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from partita._core.typing import Integers
from partita.bulk.place import Place
from partita.smc.blocks.components import MOST, Blocks
from partita.smc.blocks.edges import Edges
from partita.smc.files.packing import ragged

LARGEST = 10  # blocks that the report lists
WORDS = 5  # values that links of a block share, of which each is described by some


@dataclass
class Phase:
    """A part of the run."""

    name: str
    seconds: float  # on the wall
    cpu_seconds: float
    mebibytes: float  # of the process, at its peak so far


@dataclass
class Block:
    """A large block.

    Attributes
    ----------
    records, links : int
        How many it has.
    values : dict
        The values that most of its links share, and how many do: that both records of the link have.
    """

    records: int
    links: int
    values: dict[str, int] = field(default_factory=dict)


@dataclass
class Rest:
    """What a run would cost that has only been planned, by what some of its shards have.

    Attributes
    ----------
    tried : int
        Records that were clustered to tell it.
    seconds : float
        What clustering these took, and reading out their entities, times how many there are; without writing these.
    mebibytes, read_out_mebibytes : float
        Of the plan, at its peak, and of reading out the entities: what shards leave, times how many there are. The
        larger one of them is what the run needs.
    """

    tried: int
    seconds: float
    mebibytes: float
    read_out_mebibytes: float

    def __str__(self) -> str:
        most = max(self.mebibytes, self.read_out_mebibytes)
        return (
            f"The rest would take about {duration(self.seconds)}, and all of it {most:,.0f} MiB, "
            f"as {self.tried:,} records tell"
        )


@dataclass
class Report:
    """What a run has done.

    Attributes
    ----------
    records, entities, blocks, shards : int
    pairs : int
        Pairs of records that are linked: that may be of one entity, seen by themselves.
    components : int
        Sets of records that are connected by these.
    divided : int
        Components of more records than a block may have, which were divided.
    cut, cut_probability : int, float
        Links that were cut by that, and the sum of their probabilities: how many of them were true, as far as a pair
        seen by itself can tell.
    largest : list of Block
    size, size_again : float, float or None
        Records an entity has, as learnt from the sample, and from a second one; None if there were not enough for it.
    alpha : float
    phases : list of Phase
    rest : Rest or None
        What is left to do would cost; None unless this is a plan.
    resumed : int
        Shards that were done before.
    """

    records: int = 0
    entities: int = 0
    pairs: int = 0
    components: int = 0
    blocks: int = 0
    shards: int = 0
    divided: int = 0
    cut: int = 0
    cut_probability: float = 0.0
    largest: list[Block] = field(default_factory=list)
    size: float | None = None
    size_again: float | None = None
    alpha: float = 0.0
    resumed: int = 0
    phases: list[Phase] = field(default_factory=list)
    rest: Rest | None = None

    @property
    def seconds(self) -> float:
        """All phases together."""
        return sum(phase.seconds for phase in self.phases)

    @property
    def warnings(self) -> list[str]:
        """What whoever uses the answer should know."""
        found = []
        if self.divided:
            found.append(
                f"{self.divided:,} set{'s' if self.divided > 1 else ''} of linked records had more than {MOST:,}: "
                f"{self.cut:,} links were cut, of which {self.cut_probability:,.0f} may have been true; the report "
                "lists the largest blocks and what their records share"
            )
        if self.size and self.size_again and abs(np.log(self.size / self.size_again)) > np.log(1.25):
            found.append(
                f"two samples disagree about how many records an entity has: {self.size:.1f} and "
                f"{self.size_again:.1f}; the model may not suit all records"
            )
        return found

    @property
    def headline(self) -> str:
        """How many records and entities, and how fast; of a plan what the rest would cost."""
        if self.rest is not None:
            return f"{self.records:,} records, planned. {self.rest}"
        speed = "" if self.resumed else f", {self.records / max(self.seconds, 1e-9):,.0f} records a second"
        return f"{self.records:,} records, {self.entities:,} entities{speed}"

    def write(self, path: Path) -> None:
        """Write report.json and report.md into a directory."""
        path.mkdir(parents=True, exist_ok=True)
        contents = asdict(self) | {"seconds": self.seconds, "warnings": self.warnings}
        (path / "report.json").write_text(json.dumps(contents, indent=1) + "\n", encoding="utf-8")
        (path / "report.md").write_text(str(self) + "\n", encoding="utf-8")

    def __str__(self) -> str:
        lines = [
            self.headline,
            "",
            f"- {self.pairs:,} links make {self.components:,} components; {divided_into(self)}"
            + (f", {self.resumed:,} of them done before" if self.resumed else ""),
            f"- {self.divided:,} components divided, {self.cut:,} links cut with a probability of "
            f"{self.cut_probability:,.1f} in all",
            f"- {'' if self.rest else f'α {self.alpha:.4g}; '}an entity has {self.size or float('nan'):.2f} records"
            + (f" ({self.size_again:.2f} in a second sample)" if self.size_again else ""),
            *(f"- **Warning**: {text}" for text in self.warnings),
            "",
            "| phase | seconds | CPU seconds | MiB at the peak |",
            "| --- | ---: | ---: | ---: |",
            *(
                f"| {p.name} | {p.seconds:.1f} | {p.cpu_seconds:.1f} | {p.mebibytes:,.0f} |"
                for p in self.phases
            ),
            "",
            "| largest blocks | links | values that most of these share, and how many do |",
            "| ---: | ---: | --- |",
            *(
                f"| {block.records:,} | {block.links:,} | "
                + ", ".join(f"{cell(value)} ({n:,})" for value, n in block.values.items())
                + " |"
                for block in self.largest
            ),
        ]
        return "\n".join(lines)


def divided_into(report: Report) -> str:
    """How many blocks and shards there are."""
    shards = f"{report.shards:,} shard{'' if report.shards == 1 else 's'}"
    return f"{report.blocks:,} block{'' if report.blocks == 1 else 's'} in {shards}"


def duration(seconds: float) -> str:
    """About how long, in words."""
    return f"{seconds:,.0f} seconds" if seconds < 120 else f"{seconds / 60:,.0f} minutes"


def cell(text: str) -> str:
    """A text in a cell of a table."""
    return text.replace("|", "\\|").replace("\n", " ")


class Clock:
    """Notes what each phase takes."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self._last = time.perf_counter(), time.process_time()

    def done(self, name: str) -> None:
        """A phase is over; the next begins."""
        now = time.perf_counter(), time.process_time()
        wall, cpu = (b - a for a, b in zip(self._last, now, strict=True))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        kibibytes = peak / 1024 if sys.platform == "darwin" else peak
        self.report.phases.append(Phase(name, wall, cpu, kibibytes / 1024))
        self._last = now


def divided(report: Report, edges: Edges, blocks: Blocks, component: Integers) -> None:
    """Note how records were divided."""
    sizes = np.unique(component, return_counts=True)[1]
    report.pairs, report.components = len(edges.first), len(sizes)
    report.blocks = len(np.unique(blocks.block))
    report.divided = int((sizes > MOST).sum())
    report.cut = len(blocks.cut)
    report.cut_probability = float((1.0 / (1.0 + np.exp(-edges.odds[blocks.cut]))).sum())


def largest_blocks(block: Integers) -> list[Integers]:
    """The records of the largest blocks."""
    roots, sizes = np.unique(block, return_counts=True)
    order = np.lexsort((roots, -sizes))[:LARGEST]
    return [np.flatnonzero(block == roots[k]) for k in order.tolist() if sizes[k] > 1]


def described(place: Place, blocks: list[Integers], edges: Edges) -> list[Block]:
    """Blocks, by the values that most links of each share."""
    numbers = np.sort(np.concatenate([np.zeros(0, np.int64), *blocks]))
    said = dict(zip(numbers.tolist(), map(values_of, place.sample(numbers)), strict=True))
    found = []
    for own in blocks:
        links = links_among(own, edges)
        counts = Counter(value for first, second in links for value in said[first] & said[second])
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        found.append(Block(len(own), len(links), dict(ranked[:WORDS])))
    return found


def values_of(said: dict[str, list[object]]) -> set[str]:
    """What a record says, as text."""
    return {f"{name} = {value}" for name, values in said.items() for value in values}


def links_among(own: Integers, edges: Edges) -> list[tuple[int, int]]:
    """The links between some records; edges are in ascending order of their second record."""
    members = own.astype(edges.second.dtype)  # or all edges would be converted
    low, high = (np.searchsorted(edges.second, members, side) for side in ("left", "right"))
    at = ragged(low, high - low)
    at = at[np.isin(edges.first[at], members)]
    return list(zip(edges.first[at].tolist(), edges.second[at].tolist(), strict=True))
