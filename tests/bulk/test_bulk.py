"""Many records at once: the answer whatever the shards, runs that go on, the report, bad input, the command line."""

import json
import os
import signal
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import partita as pt
from benchmarks.crm import customers
from partita import bulk
from partita.bulk import clustering, records
from partita.bulk.report import described
from partita.bulk.shards import in_order, shards_of
from partita.bulk.work import Work
from partita.cli import app
from partita.kb.io import write
from partita.smc.blocks import components
from partita.smc.blocks.edges import Edges
from partita.smc.blocks.run import Packed
from tests.helpers.effort import examples

FOUND = customers(0)
ROWS = [{k: v for k, v in row.items() if k != "source"} for row in FOUND.rows]
TRUTH = np.array([FOUND.truth[row["id"]] for row in ROWS])


@pytest.fixture(scope="module")
def schema():
    """A model that is learnt, so that each run need not: written as a schema it is learnt from there."""
    said = [{k: v for k, v in row.items() if k != "id"} for row in ROWS]
    return pt.Record.infer(said)


@pytest.fixture(scope="module")
def found():
    return bulk.cluster(ROWS, n_jobs=1)


def same(one, other):
    return (
        one.ids == other.ids
        and one.cluster.tobytes() == other.cluster.tobytes()
        and one.probability.tobytes() == other.probability.tobytes()
    )


# ---------------------------------------------------------------------- the answer


def test_the_answer_is_right_and_says_how_sure_it_is(found):
    assert found.ids == [row["id"] for row in ROWS]
    assert pt.bcubed(TRUTH, found.cluster)[2] > 0.9
    assert ((found.probability > 0) & (found.probability <= 1)).all()
    first = np.unique(found.cluster, return_index=True)[1]
    assert found.cluster[np.sort(first)].tolist() == list(range(len(first)))
    assert found.report.entities == len(first)
    alone = np.bincount(found.cluster)[found.cluster] == 1
    assert (found.probability[alone] == 1).all()


def test_it_is_that_of_the_sampler_with_the_same_model(tmp_path):
    once = bulk.cluster(ROWS, refine=0, work=tmp_path / "work")
    model = pt.Record.from_json(json.loads((tmp_path / "work" / "model.json").read_text())["model"])
    said = [{k: v for k, v in row.items() if k != "id"} for row in ROWS]
    sampler = pt.SplitSMC(model, n_particles=20, keys="auto", longest_odds=1000, random_state=0)
    labels = sampler.fit(said, n_jobs=1).labels_
    assert np.mean(labels == once.cluster) > 0.99  # seeds differ


@pytest.mark.parametrize(("shards", "jobs"), [(2, 1), (4, 2), (16, 3), (1000, 2)])
def test_it_is_the_same_for_any_number_of_shards_and_workers(found, shards, jobs):
    assert same(bulk.cluster(ROWS, shards=shards, n_jobs=jobs), found)


def test_refined_it_is_the_same_too_and_no_worse(found):
    one, other = (bulk.cluster(ROWS, refine=2, shards=shards, n_jobs=shards) for shards in (1, 3))
    assert same(one, other)
    assert pt.bcubed(TRUTH, one.cluster)[2] > pt.bcubed(TRUTH, found.cluster)[2] - 0.01


def test_an_own_schema_and_tables_and_no_ids(schema):
    frame = pytest.importorskip("pandas").DataFrame(ROWS)
    one = bulk.cluster(ROWS, schema=schema)
    assert same(bulk.cluster(frame, schema=schema.to_toml()), one)
    without = bulk.cluster([{k: v for k, v in row.items() if k != "id"} for row in ROWS], schema=schema)
    assert without.ids == [str(row) for row in range(len(ROWS))]
    assert without.cluster.tolist() == one.cluster.tolist()


# ---------------------------------------------------------------------- shards

blocks = st.lists(st.integers(0, 6), min_size=1, max_size=30).map(
    lambda kinds: np.array([kinds.index(kind) for kind in kinds])
)


@examples(100)
@given(blocks, st.integers(1, 9))
def test_shards_keep_blocks_whole_and_are_about_as_large(block, count):
    shards = shards_of(block, count)
    assert len(shards) == min(count, len(set(block.tolist())))
    assert sorted(np.concatenate([shard.members for shard in shards]).tolist()) == list(range(len(block)))
    for shard in shards:
        assert shard.members.tolist() == sorted(shard.members.tolist())
        assert shard.block.tolist() == block[shard.members].tolist()
    held = [set(shard.block.tolist()) for shard in shards]
    assert sum(map(len, held)) == len(set(block.tolist()))
    sizes, largest = [len(shard.members) for shard in shards], np.bincount(block).max()
    assert max(sizes) - min(sizes) <= largest


@examples(50)
@given(blocks, st.integers(1, 5), st.randoms(use_true_random=False))
def test_what_comes_of_shards_is_put_together_in_the_order_of_blocks(block, count, random):
    def packed(members):
        """A subproblem of each record, with all that stands beside it telling which it is of."""
        own = np.asarray(members, np.int64)
        ones = np.ones(len(own), np.int64)
        shapes = np.column_stack([ones + own % 2, ones, ones])
        rows = np.repeat(own, ones + own % 2)
        return Packed(own, ones, shapes, rows.astype(np.int32), rows * 1.0, own * 10.0)

    parts = [
        packed(shard.members[np.argsort(shard.block, kind="stable")]) for shard in shards_of(block, count)
    ]
    random.shuffle(parts)
    found = in_order(parts, block)
    expected = packed(np.argsort(block, kind="stable"))
    for one, other in zip(found, expected, strict=True):
        assert one.tolist() == other.tolist()


# ---------------------------------------------------------------------- runs that go on


def test_a_run_goes_on_after_the_last_finished_shard(found, tmp_path, monkeypatch):
    work, done = tmp_path / "work", []
    write = Work.write_arrays

    def break_off(self, name, arrays):
        if name.startswith("shard") and len(done) == 2:
            raise KeyboardInterrupt
        write(self, name, arrays)
        done.append(name)

    monkeypatch.setattr(Work, "write_arrays", break_off)
    with pytest.raises(KeyboardInterrupt):
        bulk.cluster(ROWS, shards=5, work=work)
    monkeypatch.setattr(Work, "write_arrays", write)
    learnt = []
    monkeypatch.setattr(clustering.Record, "fit_prior", lambda *_, **__: learnt.append(1))
    again = bulk.cluster(ROWS, shards=5, work=work)
    assert again.report.resumed == 2
    assert not learnt
    assert same(again, found)


def test_another_run_in_the_same_directory_begins_anew(found, tmp_path):
    work = tmp_path / "work"
    bulk.cluster(ROWS[:-1], work=work)
    again = bulk.cluster(ROWS, work=work)
    assert again.report.resumed == 0
    assert same(again, found)


def test_a_run_of_another_version_begins_anew(found, tmp_path, monkeypatch):
    bulk.cluster(ROWS, work=tmp_path)
    monkeypatch.setattr(records, "__version__", "0.0.1")
    assert bulk.cluster(ROWS, work=tmp_path).report.resumed == 0
    assert bulk.cluster(ROWS, work=tmp_path).report.resumed == 1


def test_a_directory_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ValueError, match="not the directory of a run"):
        bulk.cluster(ROWS, work=tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]


def test_a_directory_with_a_run_of_another_kind_is_left_alone(tmp_path):
    mine = {"run.json": '{"lr": 0.1}', "model.json": "mine", "weights.npz": "mine"}
    for name, text in mine.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match="not the directory of a run"):
        bulk.cluster(ROWS, work=tmp_path)
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == mine


def test_two_runs_do_not_share_a_directory(tmp_path):
    first = Work(tmp_path / "work")
    with pytest.raises(ValueError, match="another run is at work"):
        bulk.cluster(ROWS, work=tmp_path / "work")
    first.close()


def test_the_answer_does_not_take_the_place_of_the_data(tmp_path):
    data = tmp_path / "people.jsonl"
    data.write_text(said := json.dumps(ROWS[0]) + "\n")
    outcome = CliRunner().invoke(app, ["bulk", str(data), "-o", str(data)])
    assert outcome.exit_code == 1
    assert "one of the files to read" in outcome.output.replace("\n", " ")
    assert data.read_text() == said


def test_a_killed_run_ends_with_the_same_bytes(tmp_path):
    data = tmp_path / "people.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    arguments = ["bulk", str(data), "--shards", "40", "--jobs", "1", "-o"]
    assert CliRunner().invoke(app, [*arguments, str(tmp_path / "whole.parquet")]).exit_code == 0
    killed = tmp_path / "killed.parquet"
    code = (
        "import os, signal; from partita.bulk.work import Work; from partita.cli import app\n"
        "write, done = Work.write_arrays, []\n"
        "def kill(self, name, arrays):\n"
        "    write(self, name, arrays); done.append(name)\n"
        "    if len(done) == 7: os.kill(os.getpid(), signal.SIGKILL)\n"
        "Work.write_arrays = kill\n"
        "app()\n"
    )
    ended = subprocess.run([sys.executable, "-c", code, *arguments, str(killed)], capture_output=True)
    assert ended.returncode == -signal.SIGKILL
    assert not killed.exists()
    outcome = CliRunner().invoke(app, [*arguments, str(killed)])
    assert outcome.exit_code == 0
    assert "7 of 40 shards had been done before" in outcome.output
    assert killed.read_bytes() == (tmp_path / "whole.parquet").read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["killed.parquet", "people.jsonl", "whole.parquet"]


# ---------------------------------------------------------------------- the report


def test_the_report_says_what_was_cut(tmp_path, monkeypatch):
    monkeypatch.setattr(components.blocks_of, "__defaults__", (8,))
    monkeypatch.setattr("partita.bulk.report.MOST", 8)
    report = bulk.cluster(ROWS).report
    assert report.divided > 0
    assert report.cut > 0
    assert 0 < report.cut_probability < report.cut
    assert max(block.records for block in report.largest) == 8
    assert "links were cut" in report.warnings[0]
    report.write(tmp_path)
    kept = json.loads((tmp_path / "report.json").read_text())
    assert kept["cut"] == report.cut
    assert kept["records"] == len(ROWS)
    assert [phase["name"] for phase in kept["phases"]] == [
        "reading", "learning", "encoding", "planning", "clustering", "reading out"
    ]  # fmt: skip
    assert "largest blocks" in (tmp_path / "report.md").read_text()


def test_large_blocks_are_described_by_what_their_links_share():
    said = [
        {"city": ["Graz"], "name": ["Ada"]},
        {"city": ["Graz", "Linz"]},
        {"city": ["Linz"], "name": ["Ada"]},
    ]
    said += [{"name": ["Ada"]}, {"name": ["Ada"]}]
    place = SimpleNamespace(sample=lambda numbers: [said[k] for k in numbers])
    first, second = np.array([0, 1, 3], np.int32), np.array([1, 2, 4], np.int32)
    links = Edges(first, second, np.zeros(3))
    chain, pair = described(place, [np.arange(3), np.array([3, 4])], links)
    assert (chain.records, chain.links, chain.values) == (3, 2, {"city = Graz": 1, "city = Linz": 1})
    assert (pair.records, pair.links, pair.values) == (2, 1, {"name = Ada": 1})


def test_samples_that_disagree_are_told():
    report = bulk.Report(size=2.0, size_again=3.0)
    assert "2.0 and 3.0" in report.warnings[0]
    assert not bulk.Report(size=2.0, size_again=2.1).warnings


def test_a_second_sample_is_looked_at_where_there_is_one(monkeypatch):
    monkeypatch.setattr(clustering, "SAMPLE", len(ROWS) // 2)
    report = bulk.cluster(ROWS).report
    assert report.size_again is not None
    assert report.size_again >= 1.0


# ---------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("records", "options", "message"),
    [
        ([], {}, "there is no record"),
        ([{"id": 1, "name": "Ada"}, {"id": 1, "name": "Bob"}], {}, "row 1 and row 0 have the same id, '1'"),
        ([{"id": 1, "name": "Ada"}, {"name": "Bob"}], {}, "a row without an id has its place for one"),
        ([{"name": "Ada"}, ["Bob"]], {}, "row 1 must map"),
        ([{"name": "Ada"}, {"born": float("inf")}], {}, "row 1, attribute 'born': inf is no number"),
        (ROWS, {"schema": 5}, "schema must be"),
        (ROWS, {"engine": "cluster"}, "engine"),
        (ROWS, {"shards": 0}, "shards"),
        (ROWS, {"n_jobs": 0}, "n_jobs"),
        (ROWS, {"n_jobs": 10**6}, "n_jobs"),
        (ROWS, {"id": "number"}, "no record has the field 'number'"),
        (ROWS, {"seed": -1}, "seed"),
    ],
)
def test_bad_input_is_named(records, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        bulk.cluster(records, **options)


def test_whole_numbers_are_ids_as_they_are_where_pandas_makes_others_of_them(schema):
    rows = [row | {"id": float(2000 + k)} for k, row in enumerate(ROWS[:50])]
    rows[7]["id"] = float("nan")
    expected = [str(2000 + k) if k != 7 else "7" for k in range(50)]
    assert bulk.cluster(rows, schema=schema).ids == expected


def test_a_record_that_the_schema_refuses_is_named_by_its_row():
    schema = pt.Record({"born": pt.Number()})
    rows = [{"born": k % 7} for k in range(40)]
    rows[33] = {"born": "long ago"}
    with pytest.raises(ValueError, match="row 33"):
        bulk.cluster(rows, schema=schema)


# ---------------------------------------------------------------------- the command line


def test_the_command_writes_what_splink_users_expect(found, tmp_path):
    data, output = tmp_path / "people.jsonl", tmp_path / "entities.csv"
    data.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    outcome = CliRunner().invoke(
        app, ["bulk", str(data), "-o", str(output), "--report", str(tmp_path / "r"), "--json"]
    )
    assert outcome.exit_code == 0
    assert json.loads(outcome.stdout)["entities"] == found.report.entities
    lines = output.read_text().splitlines()
    assert lines[0] == "unique_id,cluster_id,match_probability"
    assert [line.split(",")[:2] for line in lines[1:]] == [
        [id, str(own)] for id, own in zip(found.ids, found.cluster.tolist(), strict=True)
    ]
    assert (tmp_path / "r" / "report.md").exists()


def test_a_path_of_spark_stays_as_it_is(tmp_path, monkeypatch):
    data, seen = tmp_path / "people.jsonl", []
    data.write_text(json.dumps(ROWS[0]) + "\n")
    monkeypatch.setattr(
        bulk, "plan", lambda _, work, **__: seen.append(work) or bulk.Report(rest=bulk.Rest(1, 90, 1, 1))
    )
    arguments = ["--engine", "spark", "--spark", "sc://here", "--work", "s3://bucket/run"]
    outcome = CliRunner().invoke(app, ["bulk", str(data), "--plan", *arguments])
    assert outcome.exit_code == 0
    assert "about 90 seconds" in outcome.output
    assert seen == ["s3://bucket/run"]


def test_data_that_are_refused_leave_no_directory(tmp_path):
    data, output = tmp_path / "people.jsonl", tmp_path / "entities.csv"
    data.write_text(json.dumps({"id": 1, "name": "Ada"}) + "\n" + json.dumps({"id": 1, "name": "Bob"}) + "\n")
    for file in (data, tmp_path / "nowhere.csv"):
        outcome = CliRunner().invoke(app, ["bulk", str(file), "-o", str(output)])
        assert outcome.exit_code != 0
        assert [file.name for file in tmp_path.iterdir()] == ["people.jsonl"]


def test_what_another_run_could_go_on_from_stays(tmp_path, monkeypatch):
    data, output = tmp_path / "people.jsonl", tmp_path / "entities.csv"
    data.write_text("".join(json.dumps(row) + "\n" for row in ROWS[:60]))

    def full(*_):
        raise OSError("no space left")

    for name, left in (("read", []), ("prepare", ["entities.csv.work"])):
        with monkeypatch.context() as patch:
            patch.setattr(clustering.Local, name, full)
            assert CliRunner().invoke(app, ["bulk", str(data), "-o", str(output)]).exit_code != 0
        assert [file.name for file in tmp_path.glob("*.work")] == left


def test_what_cannot_be_written_is_refused_before_anything_is_read(tmp_path, monkeypatch):
    data = tmp_path / "people.jsonl"
    data.write_text(json.dumps(ROWS[0]) + "\n")
    (kept := tmp_path / "base.csv").write_bytes(b"SQLite format 3\x00")
    monkeypatch.setattr(bulk, "cluster", lambda *_, **__: pytest.fail("it has been begun"))
    for output, message in [
        (kept, "is a database"),
        (tmp_path / ("x" * 245 + ".csv"), "File name too long"),
        (tmp_path / "x.xlsx", "Excel workbooks need openpyxl"),
    ]:
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, "openpyxl", None)
            outcome = CliRunner().invoke(
                app, ["bulk", str(data), "-o", str(output), "--work", str(tmp_path / "w")]
            )
        assert outcome.exit_code == 1
        assert message in outcome.output.replace("\n", " ")
    outcome = CliRunner().invoke(
        app, ["bulk", str(data), "-o", str(tmp_path / "y.csv"), "--report", str(data)]
    )
    assert outcome.exit_code == 1
    assert sorted(file.name for file in tmp_path.iterdir()) == ["base.csv", "people.jsonl"]


def lines_of(path):
    return path.read_text().splitlines()[1:]


def test_rows_without_ids_are_called_by_their_place_among_all_of_them(tmp_path):
    data, output = tmp_path / "names.csv", tmp_path / "entities.csv"
    data.write_text('name\nAda Lovelace\n""\nCharles Babbage\n')
    (more := tmp_path / "more.csv").write_text("name\nAda Lovelace\nAda Lovelace\n")
    arguments = ["bulk", str(data), str(more), "-o", str(output)]
    outcome = CliRunner().invoke(app, arguments)
    assert outcome.exit_code == 1
    assert "row 2 of" in outcome.output
    outcome = CliRunner().invoke(app, [*arguments, "--skip-empty"])
    assert outcome.exit_code == 0
    assert [line.split(",")[0] for line in lines_of(output)] == ["0", "2", "3", "4"]
    assert "1 empty row skipped" in outcome.output
    assert "each row is called by its place" in outcome.output.replace("\n", " ")
    outcome = CliRunner().invoke(app, ["bulk", str(data), "-o", str(output), "--ignore", "nam"])
    assert outcome.exit_code == 1
    assert "no column 'nam' to ignore; did you mean 'name'?" in outcome.output.replace("\n", " ")


def test_a_folder_of_parquet_is_read_file_after_file(tmp_path):
    (table := tmp_path / "people").mkdir()
    for part, rows in enumerate((ROWS[:100], ROWS[100:150])):
        write(rows, table / f"part-{part}.parquet")
    (table / "_SUCCESS").touch()
    output = tmp_path / "entities.csv"
    assert CliRunner().invoke(app, ["bulk", str(table), "-o", str(output)]).exit_code == 0
    assert [line.split(",")[0] for line in lines_of(output)] == [row["id"] for row in ROWS[:150]]


def test_a_folder_is_no_output(tmp_path):
    data, output = tmp_path / "people.jsonl", tmp_path / "entities.csv"
    data.write_text(json.dumps(ROWS[0]) + "\n")
    output.mkdir()
    outcome = CliRunner().invoke(app, ["bulk", str(data), "-o", str(output)])
    assert outcome.exit_code != 0
    assert not (tmp_path / "entities.csv.work").exists()  # nothing had been begun


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "x.unknown"], "does not end in one of"),
        (["-o", "nowhere/x.csv"], "there is no folder"),
        (["-o", "x.csv", "--jobs", "100000"], "at least 1 and at most 1024"),
        (["-o", "x.csv", "--engine", "cloud"], "local or spark"),
        (["-o", "x.csv", "--spark", "sc://here"], "--engine spark"),
        (["-o", "x.csv", "--engine", "spark", "--spark", "sc://here"], "--spark needs --work"),
    ],
)
def test_what_the_command_refuses(arguments, message, tmp_path):
    data = tmp_path / "people.jsonl"
    data.write_text(json.dumps(ROWS[0]) + "\n")
    outcome = CliRunner().invoke(app, ["bulk", str(data), *arguments])
    assert outcome.exit_code != 0
    assert message in outcome.output.replace("\n", " ")
