"""Records in portions: the same answer as in memory, runs that go on, and plans."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import partita as pt
from partita import bulk
from partita._core.progress import unreported
from partita.bulk import memory, portions, records
from partita.bulk.clustering import PARTICLES, Run, on_this_machine
from partita.bulk.portions import Portions, distinct, places
from partita.bulk.shards import Shard
from partita.bulk.work import PORTIONS
from partita.cli import app
from partita.smc.engine import Engine
from tests.bulk.test_bulk import ROWS as MANY
from tests.bulk.test_bulk import same
from tests.helpers.effort import examples

PLANNED = ("records", "pairs", "components", "blocks", "divided", "cut", "cut_probability", "largest", "size")
SIZES = (25, 48, 125)
ROWS = MANY[:194]


def mixed_rows():
    """Numbers, dates, several values, values that are missing, and 25 records in a row that hardly say anything."""
    rng = np.random.default_rng(4)
    rows = []
    for k in range(130):
        who = int(rng.integers(0, 45))
        born = f"19{who % 80 + 10}-0{who % 9 + 1}-1{who % 7}"
        row = {
            "name": [f"person {who}", f"p. {who}"][: rng.integers(1, 3)],
            "height": 150 + who % 50 + int(rng.integers(0, 2)),
            "born": born if rng.random() < 0.7 else born[:4],
            "town": ["Ulm", "Bern", "Graz"][who % 3] if rng.random() < 0.8 else None,
            "code": f"{who % 30:03d}",
        }
        rows.append({"code": row["code"]} if 50 <= k < 75 else row)
    return rows


def people():
    """Names alone."""
    rng = np.random.default_rng(5)
    firsts, lasts = (
        ["Ada", "Bea", "Cleo", "Dora", "Ella"],
        ["Lovelace", "Babbage", "Turing", "Noether", "Hopper"],
    )
    names = [f"{first} {last}" for first in firsts for last in lasts]
    return [{"name": names[k] if rng.random() < 0.8 else names[k][:-1]} for k in rng.integers(0, 25, 120)]


MIXED = {
    "name": pt.Text(),
    "height": pt.Number(),
    "born": pt.Date(),
    "town": pt.Category(),
    "code": pt.Value(),
}
SETS = {
    "customers": (ROWS, None),
    "kinds": (mixed_rows(), pt.Record(MIXED)),
    "inferred": (mixed_rows(), None),
    "names": (people(), None),
}


@pytest.fixture(scope="module", params=SETS)
def given_set(request, tmp_path_factory):
    """Records, a schema, a directory with what was learnt, and the answer in memory."""
    rows, schema = SETS[request.param]
    work = tmp_path_factory.mktemp(request.param) / "work"
    found = bulk.cluster(rows, schema=schema, work=work)
    return rows, schema, work / "model.json", found


def in_portions(monkeypatch, size):
    monkeypatch.setattr(portions, "PORTION", size)


@pytest.mark.parametrize("size", SIZES)
def test_the_answer_and_the_report_are_those_of_one_portion(given_set, size, monkeypatch):
    rows, schema, _, found = given_set
    in_portions(monkeypatch, size)
    again = bulk.cluster(rows, schema=schema, shards=1 + size % 5, n_jobs=1 + size % 3)
    assert same(again, found)
    for name in (*PLANNED, "entities", "alpha"):
        assert getattr(again.report, name) == getattr(found.report, name), name


@pytest.mark.parametrize("size", SIZES[:2])
def test_links_are_the_same_to_the_last_bit(given_set, size, monkeypatch, tmp_path):
    rows, schema, learnt, _ = given_set

    def links(work):
        with on_this_machine(work, 2, unreported) as place:
            run = Run(place, schema, 0, PARTICLES, 1, unreported)
            place.read(rows, "id", {})
            model = pt.Record.from_json(json.loads(learnt.read_text())["model"])
            model.check(1)
            place.prepare(Engine(model, run.settings, 1, 2, 0.0, 0, "auto"))
            return place.edges(-1.0), type(place.encoded)

    once, kind = links(tmp_path / "one")
    assert kind is memory.InMemory
    in_portions(monkeypatch, size)
    again, kind = links(tmp_path / "many")
    assert kind is Portions
    assert len(once.first) > 20
    assert once.first.tolist() == again.first.tolist()
    assert once.second.tolist() == again.second.tolist()
    assert once.odds.tobytes() == again.odds.tobytes()


def test_a_record_that_the_schema_refuses_is_named_by_its_row(monkeypatch):
    in_portions(monkeypatch, 10)
    rows = [{"born": k % 7} for k in range(40)]
    rows[33] = {"born": "long ago"}
    with pytest.raises(ValueError, match="row 33"):
        bulk.cluster(rows, schema=pt.Record({"born": pt.Number()}))


# ---------------------------------------------------------------------- parts

kinds = st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 2)), max_size=12)


@examples(100)
@given(kinds, kinds)
def test_equal_values_are_found_by_owner_and_rank(values, others):
    def columns(pairs):
        return [np.array([pair[k] for pair in pairs], np.int64) for k in range(2)]

    values, others = sorted(set(values)), sorted(set(others))
    expected = [values.index(pair) if pair in values else -1 for pair in others]
    assert places(*columns(values), *columns(others)).tolist() == expected
    both = values + others + values
    first, place = distinct(*columns(both))
    seen = list(dict.fromkeys(both))
    assert first.tolist() == [both.index(pair) == k for k, pair in enumerate(both)]
    assert place.tolist() == [seen.index(pair) for pair in both]


def test_shards_are_held_in_groups(monkeypatch):
    in_portions(monkeypatch, 10)
    shards = [Shard(k, np.arange(n), np.arange(n)) for k, n in enumerate([4, 6, 1, 30, 9, 2])]
    groups = portions.in_groups(shards)
    assert [[shard.number for shard in group] for group in groups] == [[0, 1], [2], [3], [4], [5]]


@pytest.mark.parametrize("rows", [9, 40])
def test_ids_that_come_twice_are_found_however_far_apart(rows, monkeypatch):
    monkeypatch.setattr(records, "CHUNK", 4)
    given = [{"id": f"r{k}"} for k in range(rows)]
    assert len(list(records.read(given, "id"))) == rows
    for first, second in [(0, 1), (0, rows - 1), (2, 7), (5, 8)]:
        twice = [dict(row) for row in given]
        twice[second]["id"] = f"r{first}"
        with pytest.raises(ValueError, match=f"row {second} and row {first} have the same id, 'r{first}'"):
            list(records.read(twice, "id"))


# ---------------------------------------------------------------------- runs that go on


def test_a_killed_run_ends_with_the_same_bytes(tmp_path):
    data = tmp_path / "people.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    arguments = ["bulk", str(data), "--shards", "20", "--jobs", "1", "-o"]
    assert CliRunner().invoke(app, [*arguments, str(tmp_path / "whole.parquet")]).exit_code == 0
    killed = tmp_path / "killed.parquet"
    code = (
        "import os, signal, sys; from partita.bulk import portions; from partita.bulk.work import Work\n"
        "from partita.cli import app\n"
        "write, done, save = Work.write_arrays, [], portions.save\n"
        "where, count = sys.argv.pop(1), int(sys.argv.pop(1))\n"
        "def counted(place):\n"
        "    done.append(place)\n"
        "    if where == place and done.count(place) == count: os.kill(os.getpid(), signal.SIGKILL)\n"
        "def kill(self, name, arrays):\n"
        "    write(self, name, arrays); counted('shard')\n"
        "def kill_before(folder, arrays):\n"
        "    counted('edges' if folder.name == 'edges' else 'portion'); save(folder, arrays)\n"
        "Work.write_arrays, portions.save, portions.PORTION = kill, kill_before, 48\n"
        "app()\n"
    )
    for where, count in (("portion", 3), ("edges", 1), ("shard", 7), ("never", 1)):
        ended = subprocess.run(
            [sys.executable, "-c", code, where, str(count), *arguments, str(killed)], capture_output=True
        )
        assert ended.returncode == (0 if where == "never" else -signal.SIGKILL), ended.stderr.decode()
    assert b"7 of 20 shards had been done before" in ended.stdout
    assert killed.read_bytes() == (tmp_path / "whole.parquet").read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["killed.parquet", "people.jsonl", "whole.parquet"]


def test_portions_are_encoded_once_and_thrown_away_with_other_records(monkeypatch, tmp_path):
    in_portions(monkeypatch, 48)
    once = bulk.cluster(ROWS, work=tmp_path / "work")
    assert sorted(os.listdir(tmp_path / "work" / PORTIONS)) == [
        "0-48", "144-192", "192-194", "48-96", "96-144", "edges"
    ]  # fmt: skip
    encoded = []
    encode = Portions._encode
    monkeypatch.setattr(Portions, "_encode", lambda self, *args: encoded.append(1) or encode(self, *args))
    for file in (tmp_path / "work").glob("shard-*"):
        file.unlink()
    assert same(bulk.cluster(ROWS, work=tmp_path / "work"), once)
    assert not encoded
    assert not same(bulk.cluster(ROWS[:-1], work=tmp_path / "work"), once)
    assert len(encoded) == 5


# ---------------------------------------------------------------------- plans


@pytest.mark.parametrize("size", [48, 1000])
def test_a_plan_is_that_of_the_run_which_goes_on_from_it(size, monkeypatch, tmp_path):
    in_portions(monkeypatch, size)
    report = bulk.plan(ROWS, shards=30, work=tmp_path / "work")
    assert report.rest.seconds > 0
    assert report.rest.read_out_mebibytes > report.phases[1].mebibytes
    assert report.rest.tried < len(ROWS) / 5
    assert [phase.name for phase in report.phases][-2:] == ["planning", "trying"]
    assert f"{len(ROWS)} records, planned. The rest would take about" in str(report)
    found = bulk.cluster(ROWS, shards=30, work=tmp_path / "work")
    assert found.report.resumed == 2
    for name in (*PLANNED, "shards"):
        assert getattr(found.report, name) == getattr(report, name), name
    assert found.report.rest is None
    assert same(found, bulk.cluster(ROWS))


def test_a_plan_of_one_record():
    assert bulk.plan([{"name": "Ada"}]).blocks == 1


def test_the_command_plans(tmp_path):
    data = tmp_path / "people.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    outcome = CliRunner().invoke(app, ["bulk", str(data), "--plan", "--report", str(tmp_path / "r")])
    assert outcome.exit_code == 0
    assert f"{len(ROWS)} records, planned" in outcome.output
    kept = json.loads((tmp_path / "r" / "report.json").read_text())
    assert kept["rest"]["tried"] == len(ROWS)
    assert sorted(os.listdir(tmp_path)) == ["people.jsonl", "r"]
    said = CliRunner().invoke(app, ["bulk", str(data), "--plan", "--json"]).stdout
    assert json.loads(said)["rest"]["seconds"] > 0
    assert "entities" not in json.loads(said)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [([], "--output, or only --plan"), (["--plan", "-o", "x.csv"], "--plan writes no answer")],
)
def test_what_the_command_refuses(arguments, message, tmp_path):
    data = tmp_path / "people.jsonl"
    data.write_text(json.dumps(ROWS[0]) + "\n")
    outcome = CliRunner().invoke(app, ["bulk", str(data), *arguments])
    assert outcome.exit_code != 0
    assert message in " ".join(outcome.output.split())
