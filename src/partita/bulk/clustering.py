"""A run: learn, plan, cluster in shards, and put together what comes of them."""

from __future__ import annotations

import gc
import math
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from partita._core.checks import choice, whole, workers
from partita._core.collecting import uncollected
from partita._core.progress import Report as Watcher
from partita._core.progress import unreported, unwatched
from partita._core.typing import Floats, Integers
from partita.bulk.drawing import with_neighbourhoods
from partita.bulk.local import Local
from partita.bulk.place import Place
from partita.bulk.records import validated
from partita.bulk.report import Clock, Report, Rest, described, divided, largest_blocks
from partita.bulk.shards import Shard, in_order, shards_of
from partita.bulk.work import Work
from partita.learning.records import fit_prior
from partita.models.records.record import Record
from partita.smc.blocks.components import blocks_of, component_of
from partita.smc.blocks.fit import alphas_of, state_of
from partita.smc.blocks.run import Packed
from partita.smc.engine import Engine
from partita.smc.files.packing import live_slots
from partita.smc.reading.best import best_clustering
from partita.smc.sampler import ODDS
from partita.smc.state.access import progress
from partita.smc.state.state import Settings, dismantle

SAMPLE = 50_000  # records, at most, that the model is learnt from
PARTICLES = 20
SWEEPS = 1  # of refinement, of each block
DIGITS = 12  # of a probability that are kept
TRIED = 20  # shards of which one is clustered to tell what all would cost
COPIES = 3  # of what comes of shards that are held at a time: as they come, together, and in order
ID = 80  # bytes of a record's id
ENGINES = {"local": 0, "spark": 1}
NO_SPARK = 'Spark needs pyspark, pandas and pyarrow, and they are not all there: pip install "partita[spark]"'


@dataclass
class Entities:
    """What a run has found.

    Attributes
    ----------
    ids : list of str
        Of each record its id, or its row, counted from 0.
    cluster : int array
        Of each record its entity, numbered in order of first appearance.
    probability : float array
        Of each record the probability that it belongs there: the mean, over the entity's other records, of the
        probability that the two are together.
    report : Report
    """

    ids: list[str]
    cluster: Integers
    probability: Floats
    report: Report

    def rows(self) -> Iterator[dict[str, Any]]:
        """A row for each record, with the columns ``unique_id``, ``cluster_id`` and ``match_probability``."""
        columns = self.ids, self.cluster.tolist(), self.probability.tolist()
        for id, cluster, probability in zip(*columns, strict=True):
            yield {"unique_id": id, "cluster_id": cluster, "match_probability": probability}


def cluster(
    records: Any,
    *,
    id: str | None = "id",
    schema: Record | str | None = None,
    engine: str = "local",
    session: Any = None,
    shards: int | None = None,
    seed: int = 0,
    n_particles: int = PARTICLES,
    refine: int = SWEEPS,
    n_jobs: int | None = None,
    work: str | os.PathLike[str] | None = None,
    progress: Watcher = unreported,
) -> Entities:
    """Cluster many records at once; the answer is the same for any number of shards, workers and machines.

    Parameters
    ----------
    records : iterable of mappings, DataFrame or table
        They are read once. With Spark also a DataFrame of Spark or the path of a table in Parquet: these have no
        order, so that each record needs an id, and they are ordered by it.
    id : str, optional
        The field that holds a record's id, which is no evidence; where there is none, its row is, counted from 0.
    schema : Record or str, optional
        Which attributes there are, or that as TOML; inferred unless given.
    engine : "local" or "spark"
        All cores of this machine, or a session of Spark.
    session : SparkSession or str, optional
        For Spark: a session, or the URL of a server of Spark Connect, ``sc://host:port``. Unless given, the session of
        the DataFrame, the active one, or one on this machine.
    shards : int, optional
        How many; of 25,000 records each unless given.
    seed : int
    n_particles : int
        Clusterings kept of each subproblem.
    refine : int
        How often to look again at each block when all of it has been observed.
    n_jobs : int, optional
        How many threads, one for each core unless given; with Spark how many shards are run at a time.
    work : path, optional
        A directory for what has been done so far, which stays: a run that finds what another with the same records and
        options has left there goes on. Unless given there is none, and nothing stays. With Spark on other machines it
        must be given: a path that all of them can read and write.
    progress : callable
        Told what is going on, how much of it is done, and of how much.

    Examples
    --------
    >>> from partita import bulk
    >>> people = [{"id": k, "name": ["Ada Lovelace", "Charles Babbage"][k % 2], "born": [1815, 1791][k % 2]}
    ...           for k in range(6)]
    >>> bulk.cluster(people).cluster
    array([0, 1, 0, 1, 0, 1])
    """
    with run_of(
        records, schema, engine, session, shards, seed, n_particles, refine, n_jobs, work, progress
    ) as run:
        return run.entities(records, id, shards)


def plan(
    records: Any,
    *,
    id: str | None = "id",
    schema: Record | str | None = None,
    engine: str = "local",
    session: Any = None,
    shards: int | None = None,
    seed: int = 0,
    n_particles: int = PARTICLES,
    refine: int = SWEEPS,
    n_jobs: int | None = None,
    work: str | os.PathLike[str] | None = None,
    progress: Watcher = unreported,
) -> Report:
    """What :func:`cluster` would do: how it would divide records, and about what the rest would cost.

    All is done up to the plan, and a twentieth of the shards are clustered, from which the rest is estimated. In a
    directory ``work`` all of that stays, and :func:`cluster` goes on from it, if it is given the same.

    Parameters
    ----------
    records, id, schema, engine, session, shards, seed, n_particles, refine, n_jobs, work, progress
        As for :func:`cluster`.

    Examples
    --------
    >>> from partita import bulk
    >>> people = [{"id": k, "name": ["Ada Lovelace", "Charles Babbage"][k % 2], "born": [1815, 1791][k % 2]}
    ...           for k in range(6)]
    >>> report = bulk.plan(people)
    >>> report.blocks, report.cut
    (2, 0)
    """
    with run_of(
        records, schema, engine, session, shards, seed, n_particles, refine, n_jobs, work, progress
    ) as run:
        return run.plan(records, id, shards)


@contextmanager
def run_of(
    records: Any,
    schema: Record | str | None,
    engine: str,
    session: Any,
    shards: int | None,
    seed: int,
    n_particles: int,
    refine: int,
    n_jobs: int | None,
    work: str | os.PathLike[str] | None,
    progress: Watcher,
) -> Iterator[Run]:
    """A run, if what it is given makes sense."""
    choice("engine", engine, ENGINES)
    whole("seed", seed, 0)
    whole("n_particles", n_particles, 1)
    whole("refine", refine, 0)
    if shards is not None:
        whole("shards", shards, 1)
    if n_jobs is not None:
        workers(n_jobs)
    model = Record.from_toml(schema) if isinstance(schema, str) else schema
    if not isinstance(model, Record | None):
        raise TypeError(f"schema must be a Record or TOML, got {type(schema).__name__}")
    if session is not None and engine != "spark":
        raise ValueError('session is for engine="spark"')
    with place_for(engine, records, session, work, n_jobs, progress) as place:
        yield Run(place, model, seed, n_particles, refine, progress)


def place_for(
    engine: str,
    records: Any,
    session: Any,
    work: str | os.PathLike[str] | None,
    n_jobs: int | None,
    progress: Watcher,
) -> AbstractContextManager[Place]:
    """Where a run is done."""
    if engine == "local":
        return on_this_machine(work, n_jobs, progress)
    try:
        from partita.bulk.spark import on_spark
    except ImportError as error:
        raise ImportError(NO_SPARK) from error
    return on_spark(records, session, work, n_jobs, progress)


@contextmanager
def on_this_machine(
    work: str | os.PathLike[str] | None, n_jobs: int | None, progress: Watcher
) -> Iterator[Place]:
    """Threads, and a directory: the one that is named, or one that goes in the end."""
    n_workers = workers(-1 if n_jobs is None else n_jobs)
    if work is not None:
        with closing(Work(work)) as kept:
            yield Local(kept, n_workers, progress)
        return
    with tempfile.TemporaryDirectory(prefix="partita-") as path, closing(Work(path)) as kept:
        yield Local(kept, n_workers, progress)


class Run:
    """A run, and what it knows.

    Parameters
    ----------
    place : Place
    schema : Record or None
    seed, n_particles, sweeps : int
    progress : callable
    """

    def __init__(
        self,
        place: Place,
        schema: Record | None,
        seed: int,
        n_particles: int,
        sweeps: int,
        progress: Watcher,
    ) -> None:
        self.place, self.work, self.schema = place, place.work, schema
        self.seed, self.sweeps = seed, sweeps
        self.settings = Settings(n_particles, learn_alpha=1, longest_odds=ODDS)
        self.progress, self.report = progress, Report()
        self.clock = Clock(self.report)

    def entities(self, records: Any, id: str | None, shards: int | None) -> Entities:
        """Do it; without the collector of garbage, which would look through millions of values time and again."""
        with uncollected():
            sampler, alphas, block = self._planned(records, id)
            found = in_order(list(self.shards(block, shards, alphas)), block)
            self.clock.done("clustering")
            return self.answer(sampler, found, alphas)

    def plan(self, records: Any, id: str | None, shards: int | None) -> Report:
        """Do what comes before clustering, and enough of that to tell what the rest would cost."""
        with uncollected():
            sampler, alphas, block = self._planned(records, id)
            self.report.rest = self.rest(sampler, shards_of(block, shards), block, alphas)
            self.clock.done("trying")
            return self.report

    def _planned(self, records: Any, id: str | None) -> tuple[Engine, tuple[Integers, Floats], Integers]:
        """An engine that has observed nothing, α, and of each record the first record of its block."""
        self.progress("reading", 0, None)
        schema = None if self.schema is None else self.schema.to_toml()
        options = {"schema": schema, "seed": self.seed, "particles": self.settings.particles}
        options["refine"] = self.sweeps
        self.place.read(records, id, options)
        if not self.place.n:
            raise ValueError("there is no record: at least one is needed")
        self.clock.done("reading")
        model = self.learnt()
        gc.collect()  # the samplers that it was learnt with, which refer to themselves
        self.clock.done("learning")
        sampler = Engine(model, self.settings, 1, 2, 0.0, self.seed, "auto")
        self.place.prepare(sampler)
        self.clock.done("encoding")
        alphas = alphas_of(sampler, self.place.n)
        block = self.blocks(float(alphas[1][-1]))
        self.report.records = self.place.n
        self.clock.done("planning")
        return sampler, alphas, block

    def learnt(self) -> Record:
        """The model, learnt on a sample, if that has not been done."""
        if (known := self.work.read_json("model")) is None:
            self.progress("learning", 0, None)
            n = self.place.n
            order = np.random.default_rng(self.seed).permutation(n)
            model = self.taught(order[:SAMPLE], lambda done, all: self.progress("learning", done, all))
            again = self.taught(order[SAMPLE : 2 * SAMPLE]).size if n >= 2 * SAMPLE else None
            known = {"model": model.to_json(), "size_again": again}
            self.work.write_json("model", known)
        found = Record.from_json(
            known["model"]
        )  # always from there, so that it is the same when a run goes on
        found.check(1)
        self.report.size, self.report.size_again = found.size, known["size_again"]
        return found

    def taught(self, drawn: Integers, progress: Callable[[int, int], object] = unwatched) -> Record:
        """A model, learnt on records that were drawn; ValueError names one that the schema refuses by its row."""
        rows = np.sort(drawn)
        said = self.place.sample(rows)
        if self.schema is None:
            self.schema = Record.infer(said)
        around = None
        if len(rows) < self.place.n:
            known = dict(zip(rows.tolist(), said, strict=True))
            rows, said, around = with_neighbourhoods(self.place, self.schema, drawn, known)
        try:
            found: Record = fit_prior(self.schema, said, progress=progress, around=around)
        except ValueError:
            validated(self.schema, said, rows.tolist())
            raise
        return found

    def blocks(self, log_alpha: float) -> Integers:
        """Of each record the first record of its block."""
        n = self.place.n
        self.progress("comparing", 0, n)
        linked = self.place.edges(log_alpha)
        found = blocks_of(n, linked)
        divided(self.report, linked, found, component_of(n, linked))
        self.report.largest = described(self.place, largest_blocks(found.block), linked)
        return found.block

    def shards(self, block: Integers, count: int | None, alphas: tuple[Integers, Floats]) -> Iterator[Packed]:
        """What comes of the shards, those first that are done."""
        every = shards_of(block, count)
        self.report.shards, left = len(every), []
        for shard in every:
            known = self.work.read_arrays(name_of(shard, len(every)))
            if known is None:
                left.append(shard)
            else:
                yield Packed(**known)
        self.report.resumed = len(every) - len(left)
        done = self.place.n - sum(len(shard.members) for shard in left)
        self.progress("clustering", done, self.place.n)
        for shard, found in self.place.map_shards(left, alphas, self.seed, self.sweeps):
            self.work.write_arrays(name_of(shard, len(every)), found._asdict())
            done += len(shard.members)
            self.progress("clustering", done, self.place.n)
            yield found

    def rest(
        self, sampler: Engine, shards: list[Shard], block: Integers, alphas: tuple[Integers, Floats]
    ) -> Rest:
        """What is left to do would cost about so much, as some shards tell."""
        self.report.shards = len(shards)
        some = shards[: -(-len(shards) // TRIED)]
        tried, parts, began = sum(len(shard.members) for shard in some), [], time.perf_counter()
        self.progress("trying", 0, tried)
        for shard, found in self.place.map_shards(some, alphas, self.seed, self.sweeps):
            self.work.write_arrays(name_of(shard, len(shards)), found._asdict())
            parts.append(found)
            self.progress("trying", sum(len(part.members) for part in parts), tried)
        whole = in_order(parts, block)
        numbers = np.sort(whole.members)
        whole = whole._replace(members=np.searchsorted(numbers, whole.members))
        state, *_ = self.read_out(sampler, whole, alphas)
        held = COPIES * sum(part.nbytes for part in whole) + sum(part.nbytes for part in dismantle(state)[0])
        times = self.place.n / tried
        return Rest(
            tried,
            (time.perf_counter() - began) * times,
            max(phase.mebibytes for phase in self.report.phases),
            self.report.phases[1].mebibytes + (held / tried + ID) * self.place.n / 2**20,
        )

    def read_out(
        self, sampler: Engine, found: Packed, alphas: tuple[Integers, Floats]
    ) -> tuple[Any, Integers, Floats]:
        """A state without what records say, their clusters in the best clustering, and how sure it is of each."""
        nothing = np.zeros(0, np.int64), np.zeros(0, np.int64)
        data = np.zeros((len(found.members), 2))
        state = state_of(sampler, found, data, nothing, alphas, statistics=False)
        _, clusters, sure = best_clustering(state, live_slots(state))
        return state, clusters, sure

    def answer(self, sampler: Engine, found: Packed, alphas: tuple[Integers, Floats]) -> Entities:
        """The best clustering, and how sure it is of each record."""
        state, clusters, sure = self.read_out(sampler, found, alphas)
        numbers, first, cluster = np.unique(clusters, return_index=True, return_inverse=True)
        order = np.empty(len(numbers), np.int64)
        order[np.argsort(first)] = np.arange(len(numbers))
        self.report.entities = len(numbers)
        self.report.alpha = math.exp(progress(state)[3])
        ids = self.place.ids()
        self.clock.done("reading out")
        return Entities(ids, order[cluster], sure.round(DIGITS), self.report)


def name_of(shard: Shard, count: int) -> str:
    """What a shard is called in the directory."""
    return f"shard-{shard.number + 1:05d}-of-{count:05d}"
