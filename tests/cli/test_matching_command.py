"""partita match: records in words, as JSON and in files; tables out; nothing added."""

import csv
import json
import shutil

import pytest

from tests.cli.test_kb_commands import CONTACTS, invoke, lines, refused, run

NEW = """\
id,name,email,phone,city
a,Thomas Okafor,t.okafor@lumen.example,,Chicago
a,Anna Schmidt,,+49 555 0177,Berlin
,Grace Hopper,grace@navy.example,,Arlington
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    made = tmp_path_factory.mktemp("match")
    (made / "contacts.csv").write_text(CONTACTS, encoding="utf-8")
    (made / "new.csv").write_text(NEW, encoding="utf-8")
    run("build", made / "contacts.csv", "-o", made / "kb.db", "--ignore", "person", "--refine", 1)
    return made


@pytest.fixture
def folder(built, tmp_path):
    for name in ("kb.db", "new.csv"):
        shutil.copy(built / name, tmp_path)
    return tmp_path


def test_a_record_in_words(folder):
    [in_words] = lines(
        "match", folder / "kb.db", "name=Tom Okafor", "city=Chicago", "email=t.okafor@lumen.example"
    )
    said = {"name": "Tom Okafor", "city": ["Chicago"], "email": "t.okafor@lumen.example"}
    [as_json] = lines("match", folder / "kb.db", json.dumps(said))
    assert in_words == as_json
    assert in_words["record"] is None
    best = in_words["matches"][0]
    assert "7" in [
        id for e in lines("entities", folder / "kb.db") if e["id"] == best["entity"] for id in e["fragments"]
    ]
    text = run("match", folder / "kb.db", "name=Tom Okafor", "city=Chicago", "email=t.okafor@lumen.example")
    assert text.splitlines()[2].split()[0] == best["entity"]
    assert "email +" in text


def test_several_values_and_equals_signs(folder):
    [found] = lines("match", folder / "kb.db", "name=John=Smith", "name=John Smith", "--limit", 1)
    assert found["matches"][0]["steps"][1:]
    [step] = [step for step in found["matches"][0]["steps"] if step["attribute"] == "name"]
    assert step["record"] == ["John=Smith", "John Smith"]


def test_a_file_in_and_out(folder):
    before = (folder / "kb.db").read_bytes()
    assert "rows written" in run("match", folder / "kb.db", folder / "new.csv", "-o", folder / "matches.csv")
    with (folder / "matches.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    firsts = [row for row in rows if row["rank"] == "1"]
    assert [(row["row"], row["record"]) for row in firsts] == [("1", "a"), ("2", "a"), ("3", "")]
    assert firsts[2]["entity"] == "new"
    named = {row["row"]: row["name"] for row in firsts}
    assert named == {"1": "Thomas Okafor", "2": "Anna Schmidt", "3": ""}
    for row in rows:
        total = sum(json.loads(row["evidence"]).values())
        assert total == pytest.approx(float(row["log_odds"]))
    run("match", folder / "kb.db", folder / "new.csv", "--limit", 1, "-o", folder / "best.jsonl")
    best = [json.loads(line) for line in (folder / "best.jsonl").read_text().splitlines()]
    assert [row["entity"] for row in best] == [row["entity"] for row in firsts]
    assert (folder / "kb.db").read_bytes() == before


def test_standard_input_and_text(folder):
    found = lines("match", folder / "kb.db", "-", input=NEW)
    assert [(each["row"], each["record"]) for each in found] == [(1, "a"), (2, "a"), (3, None)]
    text = run("match", folder / "kb.db", folder / "new.csv")
    assert "row 3" in text
    assert "Anna Schmidt" in text


def test_rows_that_say_nothing_are_skipped_if_asked_for(folder):
    (folder / "gaps.csv").write_text(NEW.replace("a,Anna", ",,,,\na,Anna"), encoding="utf-8")
    assert "skip empty rows (--skip-empty)" in refused("match", folder / "kb.db", folder / "gaps.csv")
    found = invoke("match", folder / "kb.db", folder / "gaps.csv", "--skip-empty", "--json")
    assert [json.loads(line)["row"] for line in found.stdout.splitlines()] == [1, 3, 4]
    assert "1 empty row skipped" in found.stderr


def test_mistakes(folder):
    kb = folder / "kb.db"
    assert "no file nosuch.csv" in refused("match", kb, "nosuch.csv")
    assert "no attribute=value" in refused("match", kb, "name=A", folder / "new.csv")
    assert "cannot be read as JSON" in refused("match", kb, '{"name": ')
    assert "no property says anything" in refused("match", kb, "name=")
    assert "no field 'nosuch'" in refused("match", kb, folder / "new.csv", "--id", "nosuch", "--json")
    assert "is data, not a knowledge base" in refused("match", folder / "new.csv", "name=A")


def test_an_attribute_misspelt_is_noted(folder):
    found = invoke("match", folder / "kb.db", "naem=Ada")
    assert found.exit_code == 0
    assert "no attribute 'naem'" in found.stderr
    assert "did you mean 'name'?" in found.stderr


def test_what_is_to_be_ignored_is_there(folder):
    for record in (["name=Tom", "city=Rome"], [folder / "new.csv"]):
        said = refused("match", folder / "kb.db", *record, "--ignore", "citi")
        assert "there is no column 'citi' to ignore; did you mean 'city'?" in " ".join(said.split())
        assert lines("match", folder / "kb.db", *record, "--ignore", "city")


def test_what_is_read_is_not_written_over(folder):
    error = refused("match", folder / "kb.db", folder / "new.csv", "-o", folder / "new.csv")
    assert "is what would be read: name another file" in error
    assert (folder / "new.csv").read_text(encoding="utf-8") == NEW


def test_no_answer_is_written_over_a_file_that_was_read(tmp_path, monkeypatch):
    """By whichever name, and whichever command."""
    (tmp_path / "contacts.csv").write_text(CONTACTS, encoding="utf-8")
    (tmp_path / "link.csv").symlink_to(tmp_path / "contacts.csv")
    (tmp_path / "new.csv").write_text(NEW, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    run("build", "contacts.csv", "-o", "kb.db", "--ignore", "person", "--refine", 0)
    run("add", "kb.db", "new.csv", "--no-id")
    before = (tmp_path / "kb.db").read_bytes()
    run("build", "contacts.csv", "-o", "kb.db", "--ignore", "person", "--refine", 0)
    assert (tmp_path / "kb.db").read_bytes() == before  # known files are not noted again
    for command in (
        ("export", "kb.db", tmp_path / "contacts.csv", "--what", "clusters"),
        ("export", "kb.db", "link.csv"),
        ("labels", "kb.db", "new.csv"),
        ("match", "kb.db", "name=Ada", "-o", "contacts.csv"),
    ):
        assert "built from: name another file" in refused(*command)
    assert (tmp_path / "contacts.csv").read_text(encoding="utf-8") == CONTACTS
    assert (tmp_path / "new.csv").read_text(encoding="utf-8") == NEW
    run("export", "kb.db", "out.csv")
    run("export", "kb.db", "out.csv")  # an answer may take the place of an answer
