"""Spark: the same answer as of the engine for one machine, whatever becomes of partitions, shards and workers."""

import gc
import json
import os
import shutil
import signal
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import partita as pt
from benchmarks.crm import customers
from partita import bulk

pytest.importorskip("pyspark", reason="pyspark is not there")
if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
    pytest.skip("Java is not there", allow_module_level=True)

import pandas as pd
from pyspark import SparkContext
from pyspark.sql import SparkSession

from partita.bulk import clustering, drawing, spark, worker
from partita.bulk.far import Far
from partita.learning import records as learning
from partita.smc.state.state import Settings

pytestmark = [
    pytest.mark.filterwarnings("ignore:distutils Version classes"),  # pyspark 3.5 has some
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # and leaves sockets open
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
ROWS = sorted(customers(0).rows[:150], key=lambda row: row["id"])

SEED = 5


@pytest.fixture(scope="module")
def session():
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2, 4]")
    for name, value in {
        "spark.driver.memory": "512m",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.codegen.wholeStage": "false",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    }.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    gateway = session.sparkContext._gateway
    session.stop()
    gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = None  # the next session has a process of its own
    del session, gateway
    gc.collect()


@pytest.fixture(scope="module", autouse=True)
def small_sample():
    """A model is learnt from a sample, and whoever shares a rare value with some of it, as where there are many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clustering, "SAMPLE", 75)
        patch.setattr(drawing, "CLUSTERED", 50)
        patch.setattr(learning, "SAMPLE", 50)
        yield


@pytest.fixture(scope="module")
def expected():
    return told(bulk.cluster(ROWS, seed=SEED))


def told(found):
    """An answer, to the last bit."""
    return found.ids, found.cluster.tolist(), [probability.hex() for probability in found.probability]


def on_spark(records, session, **options):
    return bulk.cluster(records, engine="spark", session=session, seed=SEED, **options)


def test_the_same_as_on_one_machine_for_three_shards(session, expected):
    found = on_spark(ROWS, session, shards=3)
    assert found.report.shards == 3
    assert told(found) == expected
    assert session.catalog.listTables() == []


def test_a_worker_that_is_killed_is_replaced_and_a_run_goes_on(session, expected, tmp_path, monkeypatch):
    mark = str(tmp_path / "killed")

    def killed(*arguments):
        try:
            Path(mark).touch(exist_ok=False)
        except FileExistsError:
            from partita.bulk import worker

            return worker.shard(*arguments)
        os.kill(os.getpid(), signal.SIGKILL)

    functions = {name: getattr(worker, name) for name in ("Job", "holders", "keys", "edges")}
    monkeypatch.setattr(spark, "worker", SimpleNamespace(**functions, shard=killed))
    assert told(on_spark(ROWS, session, shards=7, work=tmp_path / "work")) == expected
    assert Path(mark).exists()
    (tmp_path / "work" / "shard-00002-of-00007.npz").unlink()
    again = on_spark(ROWS, session, shards=7, work=tmp_path / "work")
    assert (again.report.shards, again.report.resumed) == (7, 6)
    assert told(again) == expected


def test_a_dataframe_is_ordered_by_its_ids(session, expected):
    shuffled = ROWS[100:] + ROWS[:50] + ROWS[50:100]
    frame = session.createDataFrame(shuffled).repartition(5)
    found = bulk.cluster(frame, engine="spark", seed=SEED, shards=1)
    assert told(found) == expected
    assert frame.count() == len(ROWS)  # the session has not been stopped


def test_a_worker_keeps_its_engine_until_it_has_grown(monkeypatch):
    rows = [{name: [text] for name, text in row.items() if text and name != "id"} for row in ROWS[:40]]
    model = pt.Record.infer(rows).fit_prior(rows)
    settings = Settings(10, learn_alpha=1, longest_odds=1000)
    job = worker.Job(json.dumps(model.to_json()), tuple(settings))
    said = pd.DataFrame({"number": range(40), "said": map(json.dumps, rows), "block": [0] * 20 + [20] * 20})
    alphas = np.zeros(1, np.int64), np.zeros(1)
    first = worker.engine_of(job, 0)
    found = [worker.shard(job, alphas, 3, 0, said)["contents"][0] for _ in range(2)]
    assert worker.engine_of(job, 0) is first
    monkeypatch.setattr(worker, "MOST", 79)
    found.append(worker.shard(job, alphas, 3, 0, said)["contents"][0])
    assert worker.engine_of(job, 0) is not first
    assert found[0] == found[1] == found[2]


def test_what_is_kept_where_only_spark_can_write(session, tmp_path):
    path = (tmp_path / "far").as_uri()
    for digest, known in [("one", None), ("one", b"contents"), ("two", None)]:
        kept = Far(session, path)
        kept.begin(digest)
        assert kept.read("thing") == known
        kept.write("thing", b"contents")
        assert kept.read("thing") == b"contents"


@pytest.mark.parametrize(
    ("rows", "id", "message"),
    [
        ([("a", "x"), ("b", "y"), ("a", "z")], "id", "2 records have the same id, 'a'"),
        ([("a", "x"), (None, "y")], "id", "each needs one"),
        ([("a", "x")], "key", "name its column of ids, one of 'id', 'name'"),
        ([("a", "x")], None, "has no order"),
    ],
)
def test_a_dataframe_without_an_order_is_refused(rows, id, message, session):
    with pytest.raises(ValueError, match=message):
        on_spark(session.createDataFrame(rows, "id string, name string"), session, id=id)


def test_whole_numbers_are_ids_as_they_are():
    assert (
        worker.read_one("id", {"id": 7.0, "name": "Ada"})[0]
        == worker.read_one("id", {"id": 7, "name": "Ada"})[0]
    )


def test_nothing_is_refused(session):
    with pytest.raises(ValueError, match="there is no record"):
        on_spark([], session)


def test_errors_name_the_record(session, monkeypatch):
    frame = session.createDataFrame([("a", b"x")], "id string, name binary")
    with pytest.raises(ValueError, match="the record with 'id' 'a', attribute 'name': bytes is neither text"):
        on_spark(frame, session)
    schema = pt.Record({"name": pt.Text(), "born": pt.Number()}).to_toml()
    monkeypatch.setattr(clustering, "SAMPLE", 6)
    for sampled in (True, False):
        drawn = np.random.default_rng(SEED).permutation(8).tolist()
        row = drawn[0 if sampled else 7]
        rows = [
            {"id": f"p{k}", "name": f"Ada {k}", "born": "soon" if k == row else 1815 + k} for k in range(8)
        ]
        named = f"row {row}" if sampled else f"row {row}, of id 'p{row}'"
        with pytest.raises(ValueError, match=f"{named}: attribute 'born': 'soon' is not a number"):
            on_spark(rows, session, schema=schema)


def test_what_is_missing_is_named(monkeypatch):
    with pytest.raises(ValueError, match='session is for engine="spark"'):
        bulk.cluster(ROWS, session="sc://localhost")
    with pytest.raises(ValueError, match=r"sc://host:port, got 'local\[2\]'"):
        bulk.cluster(ROWS, engine="spark", session="local[2]")
    with monkeypatch.context() as patch:
        patch.setattr("importlib.util.find_spec", lambda name: None)
        with pytest.raises(ImportError, match=r"pip install \"pyspark\[connect\]\""):
            bulk.cluster(ROWS, engine="spark", session="sc://localhost", work="s3://nowhere")
    with monkeypatch.context() as patch:
        patch.delenv("JAVA_HOME", raising=False)
        patch.setattr(shutil, "which", lambda name: None)
        patch.setattr(spark, "given", lambda session, records: None)
        with pytest.raises(RuntimeError, match="openjdk-17-jre-headless"):
            bulk.cluster(ROWS, engine="spark")
    monkeypatch.setitem(sys.modules, "partita.bulk.spark", None)
    with pytest.raises(ImportError, match=r"pip install \"partita\[spark\]\""):
        bulk.cluster(ROWS, engine="spark")
