"""The engine for Spark: DataFrames and groups of them in Arrow, so that it runs wherever Spark runs.

Clusters that are shared refuse RDDs, checkpoints and JARs: what has been computed is written as Parquet, into the
directory of the run, and read again. A group is some thousand records, for groups are dear. Numbers of records, edges
and blocks are with the driver, what records say is with Spark.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pandas as pd
from pyspark import SparkContext
from pyspark.sql import SparkSession

from partita._core.checks import workers
from partita._core.progress import Report
from partita._core.typing import Array, Floats, Integers
from partita.bulk import worker
from partita.bulk.far import Far
from partita.bulk.records import Mark, add, begun, in_chunks, read
from partita.bulk.shards import Shard
from partita.bulk.work import Kept, Work, unpacked
from partita.smc.blocks.edges import CLOSEST, Edges
from partita.smc.blocks.near import closest, selected
from partita.smc.blocks.run import Packed
from partita.smc.engine import Engine
from partita.smc.state.state import dismantle

AT_ONCE = 64  # shards, unless something else is asked for
BUCKET = 5000  # records whose pairs are scored in one group
ROWS = 10_000  # of the driver that go to Spark at a time, if they hold texts
NUMBERS = 1_000_000  # and if they hold numbers

RECORDS = "number bigint, id string, said string"
SHARD = "number bigint, said string, block bigint"
# Spark's monotonically increasing ids have a row's partition, and in 33 bits its place there.
PARTS = """
    SELECT shiftright(place, 33) AS part, count(*) AS records, bit_xor(low) AS low, bit_xor(high) AS high
    FROM {given} GROUP BY shiftright(place, 33) ORDER BY part
"""
NUMBERED = """
    SELECT p.start + (g.place & 8589934591) AS number, g.id, g.said
    FROM {given} g JOIN {parts} p ON shiftright(g.place, 33) = p.part
"""
NEEDED = """
    SELECT n.home, n.number, r.said FROM (
        SELECT bucket AS home, first AS number FROM {pairs} UNION SELECT bucket, second FROM {pairs}
    ) AS n JOIN {records} r ON n.number = r.number
"""

NO_JAVA = (
    "Spark needs Java, and there is none: install a runtime, version 17 say (Debian: apt-get install "
    "openjdk-17-jre-headless), or set JAVA_HOME to where it is"
)

NO_CONNECT = 'Spark Connect needs packages that are not there: pip install "pyspark[connect]"'

# ---------------------------------------------------------------------- sessions


@contextmanager
def on_spark(
    records: Any,
    session: Any,
    work: str | os.PathLike[str] | None,
    n_jobs: int | None,
    report: Report,
) -> Iterator[Spark]:
    """Spark, with a session and a directory; what is made for it goes in the end."""
    with ExitStack() as stack:
        found = given(session, records) or stack.enter_context(own_session(session, n_jobs))
        if is_near(found) and "://" not in str(work):
            path = Path(work or stack.enter_context(tempfile.TemporaryDirectory(prefix="partita-")))
            kept: Kept = stack.enter_context(closing(Work(path)))
            tables = (path.absolute() / "tables").as_uri()
        elif work is None:
            raise ValueError(
                "give work: a path that all machines of this session of Spark can read and write"
            )
        else:
            kept, tables = Far(found, str(work)), f"{work}/tables"
        at_once = cores(found) if n_jobs is None else workers(n_jobs)
        place = Spark(found, kept, tables, at_once, report)
        stack.callback(place.tables.close)
        yield place


def given(session: Any, records: Any) -> Any:
    """The session that is there; None if one has to be made."""
    if isinstance(session, str):
        return None
    if session is not None:
        return session
    if is_frame(records):
        return records.sparkSession
    return SparkSession.getActiveSession()


def is_frame(records: Any) -> bool:
    """Whether this is a DataFrame of Spark, classic or of Spark Connect."""
    return type(records).__module__.startswith("pyspark.sql.") and hasattr(records, "sparkSession")


@contextmanager
def own_session(url: str | None, n_jobs: int | None) -> Iterator[Any]:
    """A session that is stopped in the end: of a server of Spark Connect, or of this machine."""
    if url is not None:
        if not url.startswith("sc://"):
            raise ValueError(
                f"session must be a session or a URL of Spark Connect, sc://host:port, got {url!r}"
            )
        # Without it PySpark would end the process, and call that a success.
        if importlib.util.find_spec("grpc") is None:
            raise ImportError(NO_CONNECT)
        session, made = SparkSession.builder.remote(url).create(), True
    else:
        home = os.environ.get("JAVA_HOME")
        if shutil.which("java") is None and not (home and Path(home, "bin", "java").exists()):
            raise RuntimeError(NO_JAVA)
        os.environ["PYSPARK_PYTHON"] = sys.executable
        n = workers(-1 if n_jobs is None else n_jobs)
        options = {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.driver.memory": "2g",
            "spark.sql.shuffle.partitions": str(4 * n),
            "spark.sql.execution.arrow.pyspark.enabled": "true",
        }
        builder = SparkSession.builder.master(f"local[{n}, 4]").appName("partita")
        for name, value in options.items():
            builder = builder.config(name, value)
        made = SparkContext._active_spark_context is None  # else it is that of another thread
        session = builder.getOrCreate()
    try:
        yield session
    finally:
        if made:
            session.stop()


def master(session: Any) -> str:
    """What runs a session's tasks; nothing if it is on the other side of Spark Connect."""
    if "connect" in type(session).__module__:
        return ""
    return str(session.conf.get("spark.master", ""))


def is_near(session: Any) -> bool:
    """Whether all of a session is on this machine, and reads its files."""
    return master(session).startswith("local")


def cores(session: Any) -> int:
    """How many shards are run at a time: one on each core of this machine, or some if there are many machines."""
    return workers(-1) if is_near(session) else AT_ONCE


# ---------------------------------------------------------------------- tables


class Tables:
    """Tables in Parquet, and views of them for SQL.

    Parameters
    ----------
    session : SparkSession
    path : str
        As Spark calls it.
    """

    xor = "({one}) ^ ({other})"

    def whole(self, number: str, by: int) -> str:
        return f"(({number}) div {by})"

    def __init__(self, session: Any, path: str) -> None:
        self.session, self.path = session, path
        self.prefix = f"partita_{uuid4().hex[:8]}"
        self.views: set[str] = set()

    def keep(self, name: str, frame: Any) -> Any:
        """What has been computed, read from where it is written."""
        frame.write.mode("overwrite").parquet(f"{self.path}/{name}")
        return self.kept(name, frame.schema)

    def kept(self, name: str, schema: Any) -> Any:
        """What has been written."""
        return self.session.read.schema(schema).parquet(f"{self.path}/{name}")

    def view(self, name: str, frame: Any) -> str:
        """Have SQL find a frame; returns what it is called there."""
        called = f"{self.prefix}_{name}"
        frame.createOrReplaceTempView(called)
        self.views.add(called)
        return called

    def make(self, name: str, query: str) -> str:
        return self.view(name, self.keep(name, self.session.sql(query)))

    def put(self, name: str, columns: dict[str, Array]) -> str:
        return self.view(name, self.sent(name, columns))

    def fetch(self, query: str) -> dict[str, Array]:
        found = self.session.sql(query)
        rows = found.collect()
        return {name: np.array([row[name] for row in rows], np.int64) for name in found.columns}

    def sent(self, name: str, columns: dict[str, Array]) -> Any:
        """A frame of arrays of whole numbers."""
        n = len(next(iter(columns.values())))
        schema = ", ".join(f"{column} bigint" for column in columns)
        for start in range(0, max(n, 1), NUMBERS):
            some = {column: values[start : start + NUMBERS] for column, values in columns.items()}
            self.append(name, pd.DataFrame(some), schema, start == 0)
        return self.kept(name, schema)

    def append(self, name: str, rows: Any, schema: str, anew: bool) -> None:
        """Write rows of the driver, a DataFrame of pandas, after those that are there or in their stead."""
        frame = self.session.createDataFrame(rows, schema)
        frame.write.mode("overwrite" if anew else "append").parquet(f"{self.path}/{name}")

    def close(self) -> None:
        """Have SQL forget the views."""
        for view in self.views:
            self.session.catalog.dropTempView(view)


# ---------------------------------------------------------------------- the engine


class Spark:
    """Records of a table in Parquet, in a session of Spark.

    Parameters
    ----------
    session : SparkSession
    work : Kept
    path : str
        Of the tables, as Spark calls it.
    at_once : int
        Shards that are run at a time.
    report : callable
    """

    def __init__(self, session: Any, work: Kept, path: str, at_once: int, report: Report) -> None:
        self.session, self.work, self.at_once, self.report = session, work, at_once, report
        self.tables = Tables(session, path)
        self.n = 0

    # ------------------------------------------------------------------ records

    def read(self, records: Any, id: str | None, options: dict[str, Any]) -> None:
        """Write the records as a table (number, id, said)."""
        if isinstance(records, str | os.PathLike):
            records = self.session.read.parquet(os.fspath(records))
        digest = begun(options)
        if is_frame(records):
            if id is None or id not in records.columns:
                listed = ", ".join(map(repr, records.columns))
                raise ValueError(f"a table of Spark has no order: name its column of ids, one of {listed}")
            self._read_frame(records, id, digest)
        else:
            self._read_rows(records, id, digest)
        if not self.n:
            return
        self.records = self.tables.kept("records", RECORDS)
        self.work.begin(digest.hexdigest())

    def _read_rows(self, records: Any, id: str | None, digest: Any) -> None:
        for rows in in_chunks(read(records, id), ROWS):
            add(digest, rows)
            some = pd.DataFrame(rows, columns=["id", "said"])
            some.insert(0, "number", np.arange(self.n, self.n + len(rows)))
            self.tables.append("records", some, RECORDS, self.n == 0)
            self.n += len(rows)

    def _read_frame(self, records: Any, id: str, digest: Any) -> None:
        """Number the rows of a DataFrame in the order of their ids."""
        kind = records.select(f"`{id}`").schema[0].dataType.simpleString()
        schema = f"rank {kind}, id string, said string, error string, low bigint, high bigint"
        ordered = records.mapInArrow(lambda batches: worker.read(id, batches), schema).orderBy("rank", "id")
        given = self.tables.keep("given", ordered.selectExpr("*", "monotonically_increasing_id() AS place"))
        for wrong in given.where("error IS NOT NULL").orderBy("rank").limit(1).collect():
            raise ValueError(wrong["error"])
        for twice in given.groupBy("id").count().where("count > 1").orderBy("id").limit(1).collect():
            raise ValueError(f"{twice['count']} records have the same id, {twice['id']!r}")
        view = self.tables.view("given", given)
        parts = self.tables.fetch(PARTS.format(given=view))
        starts = np.append(0, np.cumsum(parts["records"]))
        self.n = int(starts[-1])
        low, high = (int(np.bitwise_xor.reduce(parts[name])) for name in ("low", "high"))
        add(digest, [(kind, f"{self.n} {low} {high}")])
        first = self.tables.put("parts", {"part": parts["part"], "start": starts[:-1]})
        self.tables.make("records", NUMBERED.format(given=view, parts=first))

    def ids(self) -> list[str]:
        """The ids of the records."""
        found = self.records.select("number", "id").toPandas()
        return [str(id) for id in found.sort_values("number")["id"]]

    def sample(self, numbers: Integers) -> list[dict[str, Any]]:
        """What some records say, by number, in ascending order."""
        wanted = self.tables.sent("sample", {"number": numbers})
        found = self.records.join(wanted, "number").select("number", "said").collect()
        return [json.loads(text) for _, text in sorted(map(tuple, found))]

    def holders(self, marks: Sequence[Mark], most: int) -> list[list[int]]:
        """The numbers of the records that have each mark; of none, where more than ``most`` have it."""
        wanted = {mark: k for k, mark in enumerate(marks)}
        said = self.records.select("number", "said")
        every = self.tables.keep(
            "holders",
            said.mapInPandas(lambda batches: worker.holders(wanted, batches), "mark bigint, number bigint"),
        )
        rare = every.groupBy("mark").count().where(f"count <= {most}").drop("count")
        found: list[list[int]] = [[] for _ in marks]
        for row in every.join(rare, "mark").orderBy("mark", "number").collect():
            found[row["mark"]].append(row["number"])
        return found

    # ------------------------------------------------------------------ what is done with them

    def prepare(self, engine: Engine) -> None:
        """Write a table (number, key); ValueError for a record that the model refuses."""
        model = json.dumps(engine.model.to_json())
        self.job = job = worker.Job(model, tuple(dismantle(engine.state)[2].tolist()))
        said = self.records.select("number", "said")
        keys = said.mapInPandas(
            lambda batches: worker.keys(job, batches), "number bigint, key bigint, error string"
        )
        found = self.tables.keep("keys", keys)
        for wrong in found.where("error IS NOT NULL").orderBy("number").limit(1).collect():
            own = self.records.where(f"number = {wrong['number']}").collect()[0]["id"]
            raise ValueError(f"row {wrong['number']}, of id {own!r}: {wrong['error']}")
        self.keys = self.tables.view("keys", found)

    def edges(self, log_alpha: float) -> Edges:
        """Pairs of records that may be of one entity."""
        job = self.job
        pairs = closest(self.tables, selected(self.tables, self.keys, self.n), self.n, CLOSEST)
        query = f"SELECT second div {BUCKET} AS bucket, second, first, place FROM {pairs}"
        in_buckets = self.session.sql(query)
        view = self.tables.view("pairs", in_buckets)
        records = self.tables.view("records", self.records)
        needed = self.session.sql(NEEDED.format(pairs=view, records=records))
        found = (
            in_buckets.groupBy("bucket")
            .cogroup(needed.groupBy("home"))
            .applyInPandas(
                lambda own, said: worker.edges(job, log_alpha, own, said), "bucket bigint, contents binary"
            )
        )
        parts = [Edges(**unpacked(row["contents"])) for row in sorted(found.collect())]
        nothing = Edges(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
        return Edges(*(np.concatenate(part) for part in zip(nothing, *parts, strict=True)))

    def map_shards(
        self, shards: list[Shard], alphas: tuple[Integers, Floats], seed: int, sweeps: int
    ) -> Iterator[tuple[Shard, Packed]]:
        """What comes of shards, as they are done: each is a job of its own, of one group."""
        if not shards:
            return
        placed = {
            "number": np.concatenate([shard.members for shard in shards]),
            "block": np.concatenate([shard.block for shard in shards]),
            "shard": np.repeat([shard.number for shard in shards], [len(shard.members) for shard in shards]),
        }
        held = self.records.drop("id").join(self.tables.sent("placed", placed), "number")
        path = f"{self.tables.path}/shards"
        held.repartition("shard").write.mode("overwrite").partitionBy("shard").parquet(path)
        job = self.job

        def one(shard: Shard) -> Packed:
            own = self.session.read.schema(SHARD).parquet(f"{path}/shard={shard.number}")
            rows = (
                own.groupBy()
                .applyInPandas(
                    lambda records: worker.shard(job, alphas, seed, sweeps, records), "contents binary"
                )
                .collect()
            )
            return Packed(**unpacked(rows[0]["contents"]))

        with ThreadPoolExecutor(self.at_once) as pool:
            running = {pool.submit(one, shard): shard for shard in shards}
            try:
                for done in as_completed(running):
                    yield running[done], done.result()
            finally:
                pool.shutdown(cancel_futures=True)
