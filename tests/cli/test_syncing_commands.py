"""``--sync`` and what goes with it, golden records and quiet commands, as they are typed."""

import contextlib
import csv
import io
import json
import sqlite3

import pytest

import partita.kb
from partita.cli import progress
from partita.cli.input import Input
from partita.kb import ingest
from partita.kb.store.database import get
from tests.cli.test_kb_commands import CONTACTS, document, invoke, refused, run
from tests.kb.test_syncing import row

LINES = CONTACTS.splitlines(keepends=True)


@pytest.fixture
def day(tmp_path):
    """Writes the file of a day: all contacts of the CRM and the newsletter but some, and others instead."""

    def write(*without, also=()):
        rows = [line for line in LINES if line.split(",")[0] not in without]
        path = tmp_path / "daily.csv"
        path.write_text("".join([*rows, *also]))
        return path

    return write


@pytest.fixture
def kb(tmp_path, day):
    path = tmp_path / "kb.db"
    run("build", day(), "-o", path, "--ignore", "person")
    return path


def synced(kb, data, *options):
    return ("add", kb, data, "--sync", "--ignore", "person", *options)


def test_a_dry_run_says_what_is_then_done(kb, day):
    changed = "7,Tom Okafor,t.okafor@lumen.example,,Boston,thomas,newsletter\n"
    data = day("2", "7", also=[changed, "99,New One,new@one.example,,Rome,new,crm\n"])
    before = document("stats", kb)
    text = run(*synced(kb, data, "--dry-run"))
    assert "would have 1 added, 1 updated, 1 removed, 13 unchanged" in text
    assert "removed: 2\n" in text
    assert "source 'crm': 6 before, 7 rows now" in text
    foreseen = document(*synced(kb, data, "--dry-run"))
    assert document("stats", kb) == before
    done = document(*synced(kb, data))
    assert foreseen["dry_run"]
    assert not done["dry_run"]
    for part in ("added", "updated", "removed", "unchanged", "fragments", "sources", "touched"):
        assert done[part] == foreseen[part]
    assert done["fragments"] == {"added": ["99"], "updated": ["7"], "removed": ["2"]}
    after = document("stats", kb)
    again = document(*synced(kb, data))
    assert (again["unchanged"], again["events"]) == (15, {})
    assert document("stats", kb) == after
    assert "removed" in refused("show", kb, "2")


def test_what_looks_like_half_a_file_is_refused(kb, day, tmp_path):
    data = day("6", "9", "14", "15", "19")
    before = document("stats", kb)
    message = refused(*synced(kb, data))
    assert "5 of the 6 fragments of 'crm' would be removed, more than half" in message
    assert "--dry-run" in message
    assert "--yes" in message
    assert "it takes --yes" in invoke(*synced(kb, data, "--dry-run")).stderr
    data.write_text(LINES[0])
    assert "no row that says anything" in refused(*synced(kb, data, "--yes"))
    assert document("stats", kb) == before
    assert document(*synced(kb, day("6", "9", "14", "15", "19"), "--yes"))["removed"] == 5


def test_options_that_go_with_sync(kb, day):
    for option in ("--dry-run", "--yes"):
        assert f"{option} goes with --sync" in refused("add", kb, day(), option)
    assert "exclude each other" in refused("add", kb, day(), "--source", "city", "--source-name", "x")


def test_a_source_for_all_rows(tmp_path):
    data, kb = tmp_path / "rows.csv", tmp_path / "kb.db"
    data.write_text("id,name,city\n" + "".join(f"{k},Person {k},Town {k % 3}\n" for k in range(8)))
    report = document("build", data, "-o", kb, "--sync", "--source-name", "crm")
    assert report["sources"] == [{"source": "crm", "before": 0, "rows": 8, "removed": 0, "taken": 0}]
    other = tmp_path / "other.csv"
    other.write_text("id,name,source\nx,Person 9,elsewhere\n")
    found = invoke("add", kb, other, "--sync", "--source-name", "news")
    assert "field 'source' of" in found.stderr
    assert "news" in run("show", kb, "x")
    assert "elsewhere" not in run("show", kb, "x")
    assert document("stats", kb)["fragments"] == 9


def test_ids_that_another_source_has_are_replaced_only_if_that_is_said_to_be_right(tmp_path):
    kb, crm, shop = tmp_path / "kb.db", tmp_path / "crm.csv", tmp_path / "shop.csv"
    crm.write_text("id,name,city\n" + "".join(f"{k},Person {k},Town {k % 3}\n" for k in range(8)))
    shop.write_text("id,name,city\n" + "".join(f"{k},Buyer {k},Town {k % 2}\n" for k in range(2)))
    run("build", crm, "-o", kb, "--sync", "--source-name", "crm")
    before = run("export", kb, "-", "--what", "fragments", "--format", "csv")
    said = refused("add", kb, shop, "--sync", "--source-name", "shop")
    assert "2 of the 8 fragments of 'crm' would be replaced by rows of another source" in said
    assert "does each source have ids of its own (--id)?" in said
    assert run("export", kb, "-", "--what", "fragments", "--format", "csv") == before
    foreseen = invoke("add", kb, shop, "--sync", "--source-name", "shop", "--dry-run")
    assert "source 'crm': 8 before, 2 replaced by rows of another source" in foreseen.stdout
    assert "it takes --yes" in foreseen.stderr
    found = invoke("add", kb, shop, "--source-name", "shop")
    assert "Warning: 2 fragments of 'crm' replaced by rows of another source" in found.stderr
    assert "replaced" not in invoke("add", kb, shop, "--source-name", "shop").stderr
    run("add", kb, crm, "--sync", "--source-name", "crm", "--yes")
    assert run("export", kb, "-", "--what", "fragments", "--format", "csv").count(",crm") == 8


def test_rows_without_a_source_are_one_source_and_that_is_said(tmp_path):
    data, kb = tmp_path / "rows.csv", tmp_path / "kb.db"
    lines = [f"{k},Person {k},Town {k % 3}\n" for k in range(8)]
    data.write_text("id,name,city\n" + "".join(lines))
    run("build", data, "-o", kb)
    data.write_text("id,name,city\n" + "".join(lines[1:]))
    found = invoke("add", kb, data, "--sync")
    assert "--source-name NAME keeps files apart" in found.stderr
    assert "1 removed" in found.stdout


def test_a_dry_run_makes_no_file_and_build_again_changes_nothing(tmp_path, day):
    kb, data = tmp_path / "new.db", day()
    assert "would have 15 added" in run("build", data, "-o", kb, "--sync", "--dry-run")
    assert not kb.exists()
    run("build", data, "-o", kb, "--sync")
    before = document("stats", kb)
    run("build", data, "-o", kb, "--sync")
    assert document("stats", kb) == before


def test_quiet_commands_say_nothing_but_errors(kb, day, tmp_path):
    for command in (
        synced(kb, day("2"), "-q"),
        ("add", kb, day(), "--quiet"),
        ("refine", kb, "-q"),
        ("relearn", kb, "-q"),
        ("export", kb, tmp_path / "out.csv", "-q"),
        ("build", day(), "-o", kb, "-q"),
    ):
        found = invoke(*command)
        assert (found.exit_code, found.output) == (0, ""), command
    assert "more than half" in refused(*synced(kb, day("6", "9", "14", "15", "19"), "-q"))
    assert json.loads(run("refine", kb, "-q", "--json"))["sweeps"] == 1


def test_golden_records(kb, tmp_path):
    rows = list(csv.DictReader(io.StringIO(run("export", kb, "-", "--golden", "--format", "csv"))))
    (anna,) = [row for row in rows if row["name"].startswith("Anna Schmi")]
    assert (anna["city"], anna["city_agree"], anna["name_agree"]) == ("Berlin", "2", "1")
    options = ("--rule", "name=source:newsletter", "--rule", "city=longest", "--plain", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(run("export", kb, "-", "--what", "golden", *options))))
    assert "Anna Schmitt" in {row["name"] for row in rows}
    assert "name_agree" not in rows[0]
    assert "did you mean 'city'" in refused("export", kb, "-", "--golden", "--rule", "citi=recent")
    assert "is no rule" in refused("export", kb, "-", "--golden", "--rule", "city=best")
    for wrong in (
        ("--plain",),
        ("--rule", "a=b"),
        ("--golden", "--rule", "recent"),
        ("--golden", "--with-fields"),
    ):
        assert refused("export", kb, "-", *wrong, code=2)
    assert "exclude each other" in refused("export", kb, "-", "--golden", "--what", "ftm", code=2)


def test_clusters_as_splink_has_them(kb):
    text = run("export", kb, "-", "--what", "clusters", "--format", "csv", "--with-fields")
    assert text.startswith("unique_id,cluster_id,match_probability,source,name")


def test_an_interrupted_build_is_refined_by_the_next_one(tmp_path, day):
    """Whether it was a sync or not; and by one that finds nothing to change."""
    with partita.kb.open(tmp_path / "calm.db") as calm:
        calm.sync(rows := [row(k) for k in range(12)], sweeps=1)
        calm.finish()
        done = calm.stats()["revision"]
    data = tmp_path / "rows.jsonl"
    data.write_text("".join(json.dumps(each) + "\n" for each in rows))
    for name, fill in (("add", "add"), ("sync", "sync")):
        with partita.kb.open(kb := tmp_path / f"{name}.db") as base:
            getattr(base, fill)(rows, sweeps=1)
            assert base.stats()["revision"] < done
        run("build", data, "-o", kb, "--sync")
        with partita.kb.open(kb) as base, base.store.reading() as connection:
            assert base.stats()["revision"] == done
            assert get(connection, ingest.UNREFINED) is None


def test_a_refusal_says_what_rows_without_a_source_are(tmp_path):
    data, kb = tmp_path / "rows.csv", tmp_path / "kb.db"
    lines = [f"{k},Person {k},Town {k % 3}\n" for k in range(8)]
    data.write_text("id,name,city\n" + "".join(lines))
    run("build", data, "-o", kb)
    data.write_text("id,name,city\n" + "".join(lines[6:]))
    assert "keeps files apart" in refused("add", kb, data, "--sync")


def test_rows_are_counted_where_no_other_writer_waits(tmp_path, monkeypatch):
    data, kb, counted = tmp_path / "rows.csv", tmp_path / "kb.db", []
    data.write_text("id,name,city\n" + "".join(f"{k},Person {k},Town {k % 3}\n" for k in range(30)))

    def count(self):
        with contextlib.closing(sqlite3.connect(kb, timeout=0)) as other:
            other.execute("BEGIN IMMEDIATE")  # an error, if it is locked
        counted.append(30)
        return 30

    monkeypatch.setattr(Input, "count", count)
    monkeypatch.setattr(progress, "EVERY", 0.0)
    found = invoke("build", data, "-o", kb, "--batch", 10, "--refine", 0)
    assert found.exit_code == 0
    assert counted == [30]
    assert "adding: 20 of 30" in found.stderr
