"""The commands of the knowledge base: each in text and as JSON, and the mistakes that people make."""

import json
import os
import re
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from partita.cli import app
from partita.kb import knowledge_base
from partita.kb.queries.answers import Event
from partita.kb.store import database as store
from partita.models.records.record import Record
from partita.terminal.text import CONTROL, consequences_in_words, percent, proportion, signed, sure
from partita.terminal.waterfall import HALF, bar
from tests.helpers.files import ROOT

CONTACTS = """\
id,name,email,phone,city,person,source
1,Maria Hernandez,maria.hernandez@norwind.example,+1 555 0114,Boston,maria,crm
2,Maria Hernández,,555-0114,Boston,maria,newsletter
3,M. Hernandez,maria.hernandez@norwind.example,,,maria,invoices
6,Thomas Okafor,t.okafor@lumen.example,+1 555 0131,Chicago,thomas,crm
7,Tom Okafor,t.okafor@lumen.example,,Chicago,thomas,newsletter
8,Thomas Okafro,,+1 555 0131,Chcago,thomas,invoices
9,Anna Schmidt,anna.schmidt@kessler.example,+49 555 0177,Berlin,anna,crm
10,Anna Schmitt,anna.schmidt@kessler.example,,Berlin,anna,newsletter
14,John Smith,john.smith@harbor.example,+1 555 0148,Seattle,john,crm
15,John Smith,jsmith@cedarclinic.example,+1 555 0163,Seattle,other john,crm
16,Jon Smith,,555 0148,Seattle,john,newsletter
17,J. Smith,jsmith@cedarclinic.example,,Seattle,other john,invoices
18,John Smith,,,Seattle,other john,newsletter
19,Priya Raman,priya@ramandesign.example,+1 555 0155,Austin,priya,crm
20,Pria Raman,priya@ramandesign.example,,Austin,priya,newsletter
"""
ESCAPES = "\x1b[31mRed\x1b]0;title\x07 \x9b2J \u202egnp [bold]b[/bold] :smile:\r"


def invoke(*arguments, input=None, **environment):
    environment = {"COLUMNS": None} | environment  # whatever the terminal of the tests: as in a pipe
    found = CliRunner().invoke(app, [str(argument) for argument in arguments], input=input, env=environment)
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    return found


def run(*arguments, **options):
    """A command that must succeed; what it prints."""
    found = invoke(*arguments, **options)
    assert found.exit_code == 0, found.output
    return found.stdout


def document(*arguments, **options):
    """What a command prints as one JSON document."""
    text = run(*arguments, "--json", **options)
    assert text.endswith("}\n")
    assert text.count("\n") == 1
    return json.loads(text)


def lines(*arguments, **options):
    """What a command prints as JSON lines."""
    return [json.loads(line) for line in run(*arguments, "--json", **options).splitlines()]


def refused(*arguments, code=1, **options):
    """Why a command was refused; nothing is printed but that."""
    found = invoke(*arguments, **options)
    assert found.exit_code == code, found.output
    assert found.stdout == ""
    assert "Traceback" not in found.stderr
    return re.sub(r"[\s│]+", " ", found.stderr)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("built")
    (made / "contacts.csv").write_text(CONTACTS, encoding="utf-8")
    run("build", made / "contacts.csv", "-o", made / "kb.db", "--ignore", "person", "--refine", 1)
    return made


@pytest.fixture
def data(folder, tmp_path):
    return shutil.copy(folder / "contacts.csv", tmp_path)


@pytest.fixture
def kb(folder, tmp_path):
    return shutil.copy(folder / "kb.db", tmp_path)


def entity_of(kb, fragment):
    return document("show", kb, fragment)["entity"]


# ---------------------------------------------------------------------- filling


def test_build_says_what_came_of_it_and_goes_on_when_it_is_run_again(data, tmp_path):
    kb = tmp_path / "new.db"
    text = run("build", data, "-o", kb, "--ignore", "person", "--refine", 0)
    assert "15 added" in text
    assert f"partita entities {kb}" in text
    again = invoke("build", data, "-o", kb, "--ignore", "person", "--refine", 0, "--json")
    assert again.exit_code == 0
    assert "is there already: adding to it" in again.stderr
    report = json.loads(again.stdout)
    assert (report["added"], report["unchanged"]) == (0, 15)
    assert "15 unchanged" in run("build", data, "-o", kb, "--ignore", "person", "--refine", 0)


def test_build_in_bulk(data, tmp_path):
    kb = tmp_path / "new.db"
    options = ("--ignore", "person", "--bulk")
    report = document("build", data, "-o", kb, *options, "--jobs", 2)
    assert (report["added"], report["unchanged"]) == (15, 0)
    assert document("stats", kb)["fragments"] == 15
    assert entity_of(kb, 1)["id"] == "E1"
    again = refused("build", data, "-o", kb, *options)
    assert "add to it without bulk" in again
    assert document("build", data, "-o", kb, "--ignore", "person")["unchanged"] == 15
    assert document("add", kb, "-", input='{"id": "new", "name": "Tom Okafor"}\n')["added"] == 1
    assert "--sync" in refused("build", data, "-o", tmp_path / "other.db", *options, "--sync", code=2)
    assert not (tmp_path / "other.db").exists()
    exact = refused("build", data, "-o", tmp_path / "other.db", *options, "--exact")
    assert "leave one of them out" in exact
    assert not (tmp_path / "other.db").exists()


@pytest.mark.parametrize("option", [[], ["--bulk"]])
def test_diagnostics_say_what_the_sampler_did(data, tmp_path, option):
    built = document("build", data, "-o", tmp_path / "new.db", "--diagnostics", *option)
    steps = built["diagnostics"]["steps"]
    assert steps >= built["added"]
    assert built["diagnostics"]["pooled"] >= steps - 1
    said = invoke("refine", tmp_path / "new.db", "--diagnostics")
    assert said.exit_code == 0
    assert "steps: " in said.stderr
    assert "diagnostics" not in document("refine", tmp_path / "new.db")


def test_build_with_a_schema_and_particles(data, tmp_path):
    schema, kb = tmp_path / "schema.toml", tmp_path / "new.db"
    assert "Schema written" in run("schema", "infer", data, "--ignore", "person", "-o", schema)
    command = ("build", data, "-o", kb, "--ignore", "person", "--schema", schema, "--particles", 5)
    assert document(*command)["added"] == 15
    assert document(*command)["unchanged"] == 15
    assert document("stats", kb)["particles"] == 5
    assert "5 particles" in refused("build", data, "-o", kb, "--particles", 7)
    schema.write_text(schema.read_text() + '\n[attributes."more"]\nkind = "text"\n')
    assert "partita relearn" in refused(*command)
    schema.write_text("[attributes")
    assert f"{schema} is not a schema" in refused(*command)


def test_add_new_updated_and_unchanged(kb, tmp_path):
    more = tmp_path / "more.jsonl"
    rows = [
        {"id": "30", "properties": {"name": ["Thomas Okafor"], "phone": ["+1 555 0131"]}, "source": "crm"},
        {"id": "20", "name": "Priya Raman", "email": "priya@ramandesign.example", "source": "newsletter"},
    ]
    more.write_text("".join(json.dumps(row) + "\n" for row in rows))
    report = document("add", kb, more)
    assert (report["added"], report["updated"], report["unchanged"]) == (1, 1, 0)
    assert report["events"]["joined"] >= 1
    assert "2 unchanged" in run("add", kb, more)
    assert "30" in entity_of(kb, "6")["fragments"]


def test_add_from_standard_input(kb):
    text = json.dumps({"id": "31", "name": "Anna Schmidt", "city": "Berlin"}) + "\n"
    assert "1 added" in run("add", kb, "-", input=text)
    assert document("add", kb, "-", "--batch", 1, input=text)["unchanged"] == 1


def test_rows_that_say_nothing_are_skipped_if_asked_for(kb, tmp_path):
    more = tmp_path / "more.csv"
    more.write_text("id,name\n40,\n41,Ada Byron\n41,Ada Byron\n")
    assert "skip" in refused("add", kb, more)
    report = document("add", kb, more, "--skip-empty")
    assert (report["added"], report["skipped"], report["repeated"]) == (1, 1, 1)


def test_remove_asks_first(kb):
    assert "nothing was removed" in refused("remove", kb, 18, input="n\n")
    assert "nothing was removed" in refused("remove", kb, 18, input="")
    assert document("stats", kb)["fragments"] == 15
    assert "Removed fragment '18'" in run("remove", kb, 18, input="y\n")
    assert document("remove", kb, 19, 20, "--yes")["removed"] == ["19", "20"]
    assert document("stats", kb)["fragments"] == 12
    assert "has been removed" in refused("show", kb, 18)


def test_remove_of_an_entity_names_its_fragments(kb):
    entity = entity_of(kb, "9")["id"]
    assert "its fragments: 9, 10" in refused("remove", kb, entity, "--yes")


def test_refine_and_relearn(kb):
    assert "entities" in run("refine", kb)
    assert document("refine", kb, "--sweeps", 2, "--jobs", 2)["sweeps"] == 2
    assert "Learnt anew" in run("relearn", kb)
    assert document("relearn", kb)["entities"] > 3


def test_relearn_from_known_matches(kb, data, tmp_path):
    found = document("relearn", kb, "--labels", data, "--label", "person")
    assert (found["labels"], found["unknown"], found["judgements"]) == (15, 0, 0)
    run("confirm", kb, 1, 2)
    assert "Learnt anew with 1 judgement and 15 known matches; " in run("relearn", kb)
    truth = tmp_path / "truth.csv"
    truth.write_text("key,is\n1,A\n3,A\n99,B\n", encoding="utf-8")
    command = ("relearn", kb, "--labels", truth, "--id", "key", "--label", "is")
    assert "with 1 judgement and 2 known matches (1 labelled id is of no fragment)" in run(*command)
    run("separate", kb, 1, 3)
    assert "but judgement 2 says that they are different" in refused(*command)
    assert "there is no field 'who'; name one of 'key', 'is' with --label" in refused(*command[:-1], "who")
    assert "known match" not in run("relearn", kb, "--no-labels")
    assert "do not go together" in refused(*command, "--no-labels", code=2)


# ---------------------------------------------------------------------- asking


def test_entities(kb):
    text = run("entities", kb)
    assert "Priya Raman" in text
    assert "city: Seattle" in text
    found = lines("entities", kb)
    assert sum(len(entity["fragments"]) for entity in found) == 15
    assert {"id", "name", "properties", "fragments", "probability"} <= set(found[0])
    sizes = [len(entity["fragments"]) for entity in lines("entities", kb, "--min-size", 3)]
    assert sizes
    assert min(sizes) == 3
    assert len(lines("entities", kb, "--limit", 2)) == 2
    limited = invoke("entities", kb, "--limit", 2)
    assert "--limit 0 lists all" in limited.stderr
    assert len(run("entities", kb, "--limit", 0).splitlines()) == len(found) + 2
    narrow = run("entities", kb, COLUMNS="60").splitlines()
    assert len(narrow) == len(found) + 2
    assert max(map(len, narrow)) <= 60


def test_lists_of_entities_show_values_that_say_something(tmp_path):
    rows = "id,name,phone,city\n1,Ada King,-,n/a\n2,Ada King,555 0101,\n3,Bo Li,n/a,Oslo\n"
    (tmp_path / "rows.csv").write_text(rows, encoding="utf-8")
    run("build", tmp_path / "rows.csv", "-o", tmp_path / "kb.db", "--refine", 0)
    run("confirm", tmp_path / "kb.db", 1, 2)
    ada, bo = run("entities", tmp_path / "kb.db", "--sort", "name").splitlines()[2:]
    assert ada.split("Ada King")[1].split() == ["phone:", "555", "0101"]
    assert bo.split("Bo Li")[1].split() == ["city:", "Oslo"]


def test_one_of_a_thing_is_not_several(tmp_path):
    (tmp_path / "rows.csv").write_text("id,name\n1,Ada King\n", encoding="utf-8")
    text = run("build", tmp_path / "rows.csv", "-o", tmp_path / "kb.db", "--refine", 0)
    assert "1 fragment of 1 entity. See" in text
    assert "1 row written" in run("export", tmp_path / "kb.db", tmp_path / "out.csv")


def test_an_entity_of_nearly_everything_is_warned_of(tmp_path):
    rows = ["id,name", *(f"{k},Ada King" for k in range(40))]
    (tmp_path / "rows.csv").write_text("\n".join(rows), encoding="utf-8")
    run("build", tmp_path / "rows.csv", "-o", tmp_path / "kb.db", "--refine", 0)
    first, *others = [entity["id"] for entity in lines("entities", tmp_path / "kb.db", "--limit", 0)]
    for other in others:
        run("confirm", tmp_path / "kb.db", first, other)
    found = invoke("build", tmp_path / "rows.csv", "-o", tmp_path / "kb.db", "--json")
    assert "Warning: one entity holds 40 of 40 rows; look at what its rows share" in found.stderr
    assert [sign["kind"] for sign in json.loads(found.stdout)["warnings"]] == ["one large cluster"]
    assert document("relearn", tmp_path / "kb.db")["warnings"]


def test_entities_in_any_order_and_of_which_something_is_said(kb):
    names = [entity["name"] for entity in lines("entities", kb, "--sort", "name")]
    assert names == sorted(names)
    sure = [entity["probability"] for entity in lines("entities", kb, "--sort", "sure")]
    assert sure == sorted(sure)
    found = lines("entities", kb, "--where", "city=CHICAGO", "--where", "name=tom okafor")
    assert [entity["name"] for entity in found] == ["Thomas Okafor"]
    assert "Thomas Okafor" in run("entities", kb, "--where", "city=chicago", "--min-size", 2)
    nothing = invoke("entities", kb, "--where", "city=Oslo")
    assert (nothing.exit_code, nothing.stdout) == (0, "")
    assert "did you mean 'city'" in refused("entities", kb, "--where", "cty=Chicago")
    assert invoke("entities", kb, "--where", "city").exit_code == 2
    assert invoke("entities", kb, "--sort", "age").exit_code == 2


def test_show_rows(kb):
    id = entity_of(kb, "6")["id"]
    rows = lines("show", kb, id, "--rows")
    assert [row["id"] for row in rows] == ["6", "7", "8"]
    assert rows[1]["differs"] == ["name"]
    assert lines("show", kb, "7", "--rows") == rows
    text = run("show", kb, id, "--rows")
    assert "≠ Tom Okafor" in text
    assert "t.okafor@lumen.example" in text
    narrow = invoke("show", kb, id, "--rows", COLUMNS="50")
    assert max(map(len, narrow.stdout.splitlines())) <= 50
    assert "Not shown for want of room" in narrow.stderr
    assert "--rows shows an entity as it is" in refused("show", kb, id, "--rows", "--events")


def test_names_can_be_chosen(tmp_path):
    data, kb = tmp_path / "people.csv", tmp_path / "kb.db"
    data.write_text("id,first,last,title\n1,Ada,King,Engineer\n2,Zoe,Byron,Engineer\n", encoding="utf-8")
    error = refused("build", data, "-o", kb, "--name", "first lst")
    assert "did you mean 'last'" in error
    assert not kb.exists()
    run("build", data, "-o", kb, "--name", "first last")
    assert {entity["name"] for entity in lines("entities", kb)} == {"Ada King", "Zoe Byron"}
    assert "partita relearn" in refused("build", data, "-o", kb, "--name", "last")
    assert "2 entities renamed" in run("relearn", kb, "--name", "last, first")
    assert {entity["name"] for entity in lines("entities", kb)} == {"King Ada", "Byron Zoe"}
    assert "entities are named by last first" in run("events", kb)


def test_show(kb):
    entity = entity_of(kb, "6")
    text = run("show", kb, entity["id"])
    assert "t.okafor@lumen.example" in text
    assert "crm" in text
    fragment = document("show", kb, 6)
    assert fragment["source"] == "crm"
    assert fragment["properties"]["name"] == ["Thomas Okafor"]
    assert "Thomas Okafor" in run("show", kb, 6)
    assert f"of {entity['id']}" in run("show", kb, 6)
    assert f"{entity['id']} created by 6" in run("show", kb, entity["id"], "--events")
    found = document("show", kb, entity["id"], "--events")
    assert found["events"][0]["kind"] == "created"


def test_show_as_of_a_moment(kb):
    entity = entity_of(kb, "6")["id"]
    created = document("show", kb, entity, "--events")["events"][0]["number"]
    assert document("show", kb, entity, "--as-of", created)["fragments"] == ["6"]
    assert document("show", kb, 6, "--as-of", created)["fragments"] == ["6"]
    assert len(document("show", kb, entity, "--as-of", "2999-01-01T00:00")["fragments"]) == 3
    assert "had no fragments" in refused("show", kb, entity, "--as-of", "1999-01-01")
    assert "neither the number" in refused("show", kb, entity, "--as-of", "yesterday", code=2)


def test_an_entity_is_shown_even_if_a_fragment_has_its_id(kb):
    run("add", kb, "-", input=json.dumps({"id": "E1", "name": "Confusing Name"}) + "\n")
    assert document("show", kb, "E1")["properties"]["name"] == ["Confusing Name"]
    assert "fragments" in document("show", kb, "E1", "--entity")


def test_search(kb):
    assert "Priya Raman" in run("search", kb, "raman")
    assert lines("search", kb, "okafor", "chicago")[0]["name"].startswith("Thomas")
    nothing = invoke("search", kb, "xyzzyx")
    assert (nothing.exit_code, nothing.stdout) == (0, "")
    assert "Nothing found" in nothing.stderr
    assert "nothing to search for" in refused("search", kb, "")


def test_explain_draws_a_waterfall(kb):
    found = document("explain", kb, 6, 7)
    assert sum(step["nats"] for step in found["steps"]) == pytest.approx(found["log_odds"], abs=1e-9)
    text = run("explain", kb, 6, 7)
    for step in found["steps"]:
        assert step["attribute"] in text
        assert signed(step["nats"]) in text
    assert "the same entity" in text
    assert "█" in text
    assert "Thomas Okafor" in text
    assert "As it is:" in text
    assert "Otherwise:" in text
    apart = run("explain", kb, 6, entity_of(kb, "9")["id"])
    assert "different entities" in apart


def test_bars_point_to_the_side_that_the_evidence_is_for():
    for_same, against = bar(2.0, 4.0, False).plain, bar(-4.0, 4.0, False).plain
    left, right = for_same.split("│")
    assert (left.strip(), right.rstrip()) == ("", "█" * (HALF // 2))
    left, right = against.split("│")
    assert (left, right.strip()) == ("█" * HALF, "")
    assert set(bar(1.0, 4.0, True).plain) == {" ", "#", "|"}
    assert bar(0.0, 0.0, False).plain.strip() == "│"


@pytest.mark.parametrize(
    ("probability", "text"),
    [(0.0, "0 %"), (1e-9, "<1 %"), (0.5, "50 %"), (1 - 1e-9, ">99 %"), (1.0, "100 %")],
)
def test_only_what_was_counted_is_all_or_nothing(probability, text):
    assert proportion(probability) == sure(probability, 1) == text
    less = {"0 %": "<1 %", "100 %": ">99 %"}.get(text, text)
    assert percent(probability) == sure(probability, 2) == less


def test_only_a_fragment_alone_is_certain(kb):
    for text in (
        run("entities", kb),
        run("show", kb, "1"),
        run("show", kb, entity_of(kb, 1)["id"], "--rows"),
    ):
        assert " 100 %" not in text
    run("add", kb, "-", input='{"id": "alone", "name": "Zygmunt Xylander"}\n')
    assert "100 % sure: alone" in run("show", kb, entity_of(kb, "alone")["id"])


def test_events(kb):
    assert "created" in run("events", kb)
    found = lines("events", kb)
    assert [event["number"] for event in found] == list(range(1, len(found) + 1))
    assert lines("events", kb, "--since", len(found) - 2) == found[-2:]
    assert lines("events", kb, "--limit", 3) == found[-3:]
    assert lines("events", kb, "--since", "2999-01-01") == []
    entity = entity_of(kb, "6")["id"]
    assert {event["entity"] for event in lines("events", kb, "--entity", entity)} == {entity}
    limited = invoke("events", kb, "--limit", 3)
    assert f"The last 3 of {len(found)}" in limited.stderr


def test_stats(kb):
    assert re.search(r"fragments +15", run("stats", kb))
    assert document("stats", kb)["fragments"] == 15


def test_evaluate(kb, data, tmp_path):
    found = document("evaluate", kb, data, "--label", "person")
    assert found["fragments"] == 15
    assert 0.5 < found["f1"] <= 1.0
    assert "precision" in run("evaluate", kb, data, "--label", "person", "--loss", "vi")
    truth = tmp_path / "truth.jsonl"
    truth.write_text('{"fragment": 1, "entity_id": "a"}\n{"fragment": 2, "entity_id": "a"}\n')
    assert document("evaluate", kb, truth)["fragments"] == 2
    assert "--label" in refused("evaluate", kb, data)
    assert "--id" in refused("evaluate", kb, data, "--id", "key", "--label", "person")
    truth.write_text('{"id": 1, "entity_id": "a"}\n{"id": 1, "entity_id": "b"}\n')
    assert "two true entities" in refused("evaluate", kb, truth)
    truth.write_text('{"id": "x", "entity_id": "a"}\n')
    assert "none of the ids" in refused("evaluate", kb, truth)


@pytest.mark.parametrize("what", ["entities", "golden", "fragments", "clusters", "ftm", "samples"])
@pytest.mark.parametrize("format", ["jsonl", "csv", "tsv", "parquet"])
def test_export(kb, tmp_path, what, format):
    path = tmp_path / f"out.{format}"
    report = document("export", kb, path, "--what", what, "--samples", 3)
    rows = {"fragments": 15, "clusters": 15, "samples": 45}.get(what) or len(lines("entities", kb))
    assert report == {"path": str(path), "rows": rows, "what": what}
    assert path.stat().st_size > 100


def test_export_to_standard_output(kb):
    found = invoke("export", kb, "-")
    assert [json.loads(line)["id"] for line in found.stdout.splitlines()]
    assert "rows written" in found.stderr
    table = run("export", kb, "-", "--format", "csv", "--what", "fragments", "--json").splitlines()
    assert len(table) == 16
    assert table[0] == "fragment,entity,probability,source"
    assert "rows written to" in run("export", kb, os.devnull, "--format", "csv")


def test_labels(kb, tmp_path):
    path = tmp_path / "labels.csv"
    assert "15 rows written" in run("labels", kb, path)
    assert path.read_text().startswith("fragment,label\n1,0\n")
    for loss in ("map", "bcubed", "vi", "binder"):
        assert document("labels", kb, path, "--loss", loss) == {"path": str(path), "rows": 15, "loss": loss}
    assert document("labels", kb, path, "--loss", "binder", "--false-merge-cost", 9)["rows"] == 15
    assert "--loss binder" in refused("labels", kb, path, "--false-merge-cost", 9, code=2)


# ---------------------------------------------------------------------- correcting


def test_uncertain_asks_of_the_two_johns_too(kb):
    found = lines("uncertain", kb)
    assert lines("uncertain", kb, "--limit", 1) == found[:1]
    assert {"14", "15"} in [{question["first"], question["second"]} for question in found]
    text = run("uncertain", kb)
    for question in found[:3]:
        assert f"Are {question['first']} and {question['second']} the same?" in text
    assert "Seattle" in text


def test_judgements_have_consequences_and_can_be_undone(kb):
    together = run("confirm", kb, 15, 18, "--user", "ada")
    assert "Judgement 1 by ada: 15 and 18 are the same." in together
    assert "18" in entity_of(kb, "15")["fragments"]
    report = document("separate", kb, 14, 18, PARTITA_USER="bob")
    assert (report["judgement"], report["user"], report["kind"]) == (2, "bob", "separate")
    assert "because judgement 1 says so" in run("explain", kb, 15, 18)
    assert "are undecidable" in run("unsure", kb, 6, 9)
    text = run("judgements", kb)
    assert "ada" in text
    assert "separate" in text
    assert "Judgement 1 is undone" in run("undo", kb, 1)
    assert document("undo", kb, 2, "--user", "eve")["events"][0]["kind"] == "undone"
    rows = lines("judgements", kb)
    assert [row["kind"] for row in rows] == ["confirm", "separate", "unsure"]
    assert rows[1]["undone_by"] == "eve"
    assert "undone already, by eve" in refused("undo", kb, 2)
    assert "there is no judgement 9" in refused("undo", kb, 9)


def test_an_entity_is_split_and_merged_again(kb):
    john = entity_of(kb, "14")["id"]
    maria = entity_of(kb, "1")
    report = document("confirm", kb, maria["id"], entity_of(kb, "6")["id"])
    assert [event["kind"] for event in report["events"]][:2] == ["confirmed", "merged"]
    merged = report["events"][1]
    assert merged["fragments"] == report["sides"][1 if merged["from"] == report["second"] else 0]
    assert document("undo", kb)["undone"] == 1
    text = run("split", kb, maria["id"], 2, 3, "--user", "ada")
    assert f"Judgement 2 by ada: {maria['id']} is several things: 2, 3 are of another than the rest." in text
    assert f"split off {maria['id']} by judgement 2" in text
    assert "2, 3" in run("judgements", kb)
    assert "Judgement 2 is undone." in run("undo", kb)
    assert entity_of(kb, "1")["fragments"] == maria["fragments"]
    whole = run("confirm", kb, maria["id"], john)
    assert whole.count("\n") <= 4
    assert f"with {len(maria['fragments'])} fragments" in whole or "merged into" in whole
    said = entity_of(kb, "1")["id"]
    report = document("split", kb, entity_of(kb, "6")["id"], "--by", "city")
    assert (report["kind"], report["second"], len(report["sides"])) == ("split", "by city", 2)
    assert "is several things, by city" in run("events", kb, "--limit", 0)
    assert "say how to split" in refused("split", kb, said)
    assert "is not of" in refused("split", kb, said, 6)


def test_what_others_write_meanwhile_is_no_consequence(kb, monkeypatch):
    judge = knowledge_base.KnowledgeBase.confirm

    def after_another(base, *given, **options):
        with knowledge_base.KnowledgeBase(kb) as other:
            other.add([{"id": "99", "name": "Thomas Okafor", "city": "Chicago"}])
        return judge(base, *given, **options)

    monkeypatch.setattr(knowledge_base.KnowledgeBase, "confirm", after_another)
    report = document("confirm", kb, 14, 15)
    assert {event["kind"] for event in report["events"]} <= {"confirmed", "merged", "moved", "renamed"}
    assert report["events"][0]["detail"]["judgement"] == report["judgement"]
    assert "99 joined" in run("events", kb, "--limit", 0)


def test_many_consequences_are_told_in_a_few_lines():
    def event(kind, fragment, to):
        fields = {
            "number": 1,
            "at": "",
            "entity": to,
            "other": "E1",
            "fragment": None,
            "detail": {"judgement": 7},
        }
        return Event(kind=kind, fragments=[fragment], from_entity="E1", to_entity=to, **fields)

    moved = [event("moved", f"f{k}", "E2") for k in range(96)] + [event("moved", "x", "E3")]
    assert consequences_in_words(moved) == [
        "96 fragments moved from E1 to E2 by judgement 7",
        "x moved from E1 to E3 by judgement 7",
    ]
    lines = consequences_in_words([event("merged", f"f{k}", f"E{k}") for k in range(40)])
    assert len(lines) == 12
    assert lines[-1] == "and 29 more changes; partita events lists them"


def test_before_any_judgement(kb):
    found = invoke("judgements", kb)
    assert (found.exit_code, found.stdout) == (0, "")
    assert "Nobody has judged" in found.stderr


def test_questions_one_after_the_other(kb):
    found = invoke("uncertain", kb, "--ask", input="what?\ny\ns\nq\n")
    assert found.exit_code == 0
    assert "Please answer" in found.stderr
    assert "Judgement 1" in found.stdout
    assert [row["kind"] for row in lines("judgements", kb)] == ["confirm"]
    answers = invoke("uncertain", kb, "--ask", "--json", "--user", "ada", "--limit", 1, input="u\n")
    if answers.stdout:  # one answer may have settled everything
        assert json.loads(answers.stdout)["kind"] == "unsure"
    assert invoke("uncertain", kb, "--ask", input="").exit_code == 0


def test_a_conversation_goes_back_and_says_what_has_changed(kb):
    before = {entity["id"]: entity["fragments"] for entity in lines("entities", kb)}
    found = invoke("uncertain", kb, "--ask", input="b\ny\nb\ns\nb\nn\nq\n")
    assert found.exit_code == 0
    assert "There is nothing to go back to." in found.stderr
    assert "Judgement 1 is undone." in found.stdout
    assert re.search(r"Question 1 of (about|at most) \d+; \d+\.\d\d wrong pairs are expected\.", found.stderr)
    assert found.stderr.count("Question 1 of") == 4
    first = re.findall(r"^1\. Are (\S+) and (\S+) the same", found.stdout, re.M)
    assert len(first) == 4
    assert len(set(first)) == 1
    assert re.search(r"Wrong pairs that are expected: \d+\.\d\d before, \d+\.\d\d now\.", found.stdout)
    assert "1 answered; " in found.stderr
    assert f"partita relearn {kb} learns from them" in found.stderr
    assert [(row["kind"], row["undone_at"] is None) for row in lines("judgements", kb)] == [
        ("confirm", False),
        ("separate", True),
    ]
    run("undo", kb, 2)
    assert {entity["id"]: entity["fragments"] for entity in lines("entities", kb)} == before


def test_a_conversation_as_json(kb):
    found = invoke("uncertain", kb, "--ask", "--json", input="y\nb\nu\nq\n")
    said = [json.loads(line) for line in found.stdout.splitlines()]
    assert [one.get("kind") for one in said] == ["confirm", None, "unsure"]
    assert said[1]["undone"] == said[0]["judgement"] == 1
    assert said[1]["wrong_pairs"] == pytest.approx(said[2]["wrong_pairs"])
    assert any(event["kind"] == "confirmed" for event in said[0]["events"])


def test_skipped_questions_are_not_repeated(kb):
    found = invoke("uncertain", kb, "--ask", input="s\n" * 20)
    asked = re.findall(r"^\d+\. Are (\S+) and (\S+) the same", found.stdout, re.M)
    assert len(set(map(frozenset, asked))) == len(asked) > 0
    assert "Nothing answered." in found.stderr
    assert lines("judgements", kb) == []


def test_no_question_is_left_at_the_end(kb):
    for _ in range(20):
        if not run("uncertain", kb, "--limit", 1):
            break
        run("uncertain", kb, "--ask", "--limit", 5, input="u\n" * 5)
    found = invoke("uncertain", kb)
    assert "nothing uncertain to ask" in found.stderr
    assert "nothing uncertain to ask" in invoke("uncertain", kb, "--ask").stderr


# ---------------------------------------------------------------------- the schema


def test_schema_infer_and_show(kb, data, tmp_path):
    text = run("schema", "infer", data, "--ignore", "person")
    assert set(Record.from_toml(text).attributes) >= {"name", "email", "phone", "city"}
    assert 'attributes."person"' not in text
    assert document("schema", "infer", data, "-o", tmp_path / "s.toml")["path"] == str(tmp_path / "s.toml")
    assert Record.from_toml(run("schema", "show", kb, "--toml")).attributes
    assert document("schema", "show", kb)["schema"] == run("schema", "show", kb, "--toml")


def test_schema_show_says_why_and_what_was_learnt(kb, data, tmp_path):
    learnt = run("schema", "show", kb)
    assert "email: email\n    because all 11 values are e-mail addresses\n" in learnt
    assert "values of an entity are the very same" in learnt
    assert "weight 0." in learnt
    assert "fragments, on average" in learnt
    inferred = run("schema", "show", data, "--ignore", "person")
    assert "phone: phone\n    because all 9 values are telephone numbers, as its name says\n" in inferred
    assert "person:" not in inferred
    assert "Nothing has been learnt yet" in inferred
    schema = tmp_path / "s.toml"
    schema.write_text(
        '[attributes.name]\nkind = "person_name"\n[attributes."\\u001b[31m"]\nkind = "ignore"\n'
    )
    shown = run("schema", "show", schema)
    assert "name: person_name\n\\x1b[31m: ignore\n" in shown
    assert "because" not in shown
    found = {one["name"]: one for one in document("schema", "show", kb)["attributes"]}
    assert found["email"]["kind"] == "email"
    assert found["email"]["same"] > found["email"]["same_by_chance"] > 0.0
    assert found["email"]["distinct"] == 6
    assert document("schema", "show", data)["size"] is None
    assert "there is no knowledge base" in refused("schema", "show", tmp_path / "none.db")
    schema.write_text("kind = ")
    assert "is not a schema" in refused("schema", "show", schema)


def test_schema_edit_learns_anew(kb):
    learn = "sed -i s/category/text/"
    assert "Learnt anew" in run("schema", "edit", kb, EDITOR=learn, VISUAL="")
    assert 'kind = "category"' not in run("schema", "show", kb, "--toml")
    unchanged = invoke("schema", "edit", kb, EDITOR="true", VISUAL="")
    assert "as it was" in unchanged.stderr
    assert document("schema", "edit", kb, EDITOR="true", VISUAL="")["events"] == {}


def test_a_bad_schema_is_refused_and_kept_for_mending(kb):
    before = run("schema", "show", kb, "--toml")
    message = refused("schema", "edit", kb, EDITOR="sed -i s/kind/kin/", VISUAL="")
    kept = Path(re.search(r"Error: (\S+) is not a schema", message)[1])
    assert "kin =" in kept.read_text()
    kept.unlink()
    assert run("schema", "show", kb, "--toml") == before
    assert "there is no editor" in refused("schema", "edit", kb, EDITOR="no-such-editor", VISUAL="")
    assert "exit code 1" in refused("schema", "edit", kb, EDITOR="false", VISUAL="")


# ---------------------------------------------------------------------- mistakes


def test_missing_knowledge_base(kb, tmp_path):
    assert "partita build DATA -o" in refused("entities", tmp_path / "missing.db")
    assert not (tmp_path / "missing.db").exists()
    assert f"did you mean {kb}?" in refused("stats", tmp_path / "kbb.db")
    assert "is a folder" in refused("stats", tmp_path)


def test_data_in_place_of_the_knowledge_base_and_the_reverse(kb, data, tmp_path):
    assert "is data, not a knowledge base" in refused("add", data, kb)
    assert "is data, not a knowledge base" in refused("entities", data)
    assert "is a knowledge base, not data" in refused("add", kb, kb)
    assert "is a knowledge base, not data" in refused("build", kb, "-o", tmp_path / "other.db")
    assert "is data, not a knowledge base" in refused("build", data, "-o", data)
    assert "a name for data" in refused("build", data, "-o", tmp_path / "other.csv")
    (tmp_path / "notes.txt").write_text("some notes")
    assert "is not a knowledge base" in refused("stats", tmp_path / "notes.txt")


def test_another_sqlite_file(tmp_path):
    with sqlite3.connect(tmp_path / "other.db") as connection:
        connection.execute("CREATE TABLE birds (name TEXT)")
    connection.close()
    assert "no knowledge base" in refused("stats", tmp_path / "other.db")


def test_missing_data(kb, data, tmp_path):
    assert f"did you mean {data}?" in refused("add", kb, tmp_path / "contact.csv")
    assert "there is no file" in refused("build", tmp_path / "zzz.json", "-o", tmp_path / "new.db")
    assert "no file matches" in refused("build", tmp_path / "*.parquet", "-o", tmp_path / "new.db")
    assert "is a folder" in refused("build", tmp_path, "-o", tmp_path / "new.db")
    assert not (tmp_path / "new.db").exists()


def test_ids_that_are_none(data, tmp_path):
    new = tmp_path / "new.db"
    assert "--no-id" in refused("build", data, "-o", new, "--id", "city")
    assert "there is no field 'key' for the id; there are 'id', 'name'" in refused(
        "build", data, "-o", new, "--id", "key"
    )
    assert "exclude each other" in refused("build", data, "-o", new, "--id", "id", "--no-id")
    assert not new.exists()
    assert not list(tmp_path.glob("new.db*"))


def test_a_column_with_another_name_than_id(data, tmp_path):
    Path(data).write_text(CONTACTS.replace("id,", "contact_id,", 1), encoding="utf-8")
    found = invoke("build", data, "-o", tmp_path / "new.db", "--refine", 0, "--json")
    assert found.exit_code == 0
    assert "has no field 'id'" in found.stderr
    assert "--id contact_id" in found.stderr


def test_wrong_delimiter(data, tmp_path):
    new = tmp_path / "new.db"
    Path(data).write_text(CONTACTS.replace(",", "^"), encoding="utf-8")
    assert "single column" in refused("build", data, "-o", new)
    assert not new.exists()
    Path(data).write_text("name\nAda Lovelace\nAda Byron\n", encoding="utf-8")
    one = invoke("build", data, "-o", new, "--no-id", "--refine", 0)
    assert one.exit_code == 0
    assert "single column, 'name'" in one.stderr


def test_empty_data(kb, tmp_path):
    (tmp_path / "empty.csv").write_text("")
    assert "is empty" in refused("build", tmp_path / "empty.csv", "-o", tmp_path / "new.db")
    (tmp_path / "header.csv").write_text("id,name\n")
    assert "no row that says anything" in refused("build", tmp_path / "header.csv", "-o", tmp_path / "new.db")
    assert "no row that says anything" in refused("add", kb, tmp_path / "header.csv")
    assert not (tmp_path / "new.db").exists()


@pytest.mark.parametrize("command", ["confirm", "explain"])
def test_unknown_ids(kb, command):
    message = refused(command, kb, 6, "1b")
    assert "there is no fragment or entity '1b'; there are" in message
    assert "'10'" in message or "'1'" in message
    assert "E1" in refused("events", kb, "--entity", "E99")
    assert "E99" in refused("show", kb, "E99")
    assert "name two different ones" in refused(command, kb, 6, 6)


def test_contradiction(kb):
    run("separate", kb, 14, 15)
    message = refused("confirm", kb, 14, 15)
    assert "undo one of 1 (separate '14' '15'" in message
    assert "2 (" not in message
    assert len(lines("judgements", kb)) == 1


def test_locked(kb, monkeypatch):
    monkeypatch.setattr(store, "PATIENCE", 1)
    connection = sqlite3.connect(kb, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    try:
        assert "another process has been writing" in refused("confirm", kb, 14, 16)
        assert lines("entities", kb)  # what was there before can be read meanwhile
    finally:
        connection.rollback()
        connection.close()


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs users")
def test_read_only(kb):
    import numba  # noqa: F401  (what is imported now need not be found as another user)

    entity_of(kb, "6")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kb.db")
        shutil.copy(kb, path)
        path.chmod(0o444)
        Path(folder).chmod(0o555)
        user = os.geteuid()
        try:
            if user == 0:
                os.seteuid(65534)
            found = invoke("confirm", path, 14, 16)
        finally:
            os.seteuid(user)
            Path(folder).chmod(0o755)
    assert found.exit_code == 1
    assert "read-only" in found.stderr or "cannot be opened" in found.stderr


def test_unknown_names(kb, tmp_path):
    assert "No such command" in refused("entitys", kb, code=2)
    assert "samples" in refused("export", kb, tmp_path / "x.csv", "--what", "everything", code=2)
    assert "parquet" in refused("export", kb, tmp_path / "x.csv", "--format", "docx", code=2)
    assert "name the format" in refused("export", kb, tmp_path / "x.docx")
    assert "no folder" in refused("export", kb, tmp_path / "missing" / "x.csv")
    assert "binder" in refused("labels", kb, tmp_path / "x.csv", "--loss", "hinge", code=2)


def test_without_psycopg(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    message = refused("entities", "postgresql://ada:secret@localhost/kb")
    assert 'pip install "partita[postgresql]"' in message
    assert "secret" not in message


def test_unknown_databases():
    assert "mysql is not supported" in refused("entities", "mysql://localhost/kb")


def test_a_later_version(kb, monkeypatch):
    monkeypatch.setattr(store.tables, "VERSION", 0)
    assert "was written by a later Partita" in refused("entities", kb)


def test_mistakes_of_ours_are_not_hidden(kb, monkeypatch):
    monkeypatch.setattr(knowledge_base, "explain", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        invoke("explain", kb, 6, 7)


# ---------------------------------------------------------------------- the terminal


def test_control_characters_do_not_reach_the_terminal(kb):
    row = {"id": "evil\x1b", "name": ESCAPES, "city": "Seattle", "source": ESCAPES}
    run("add", kb, "-", input=json.dumps(row) + "\n")
    id = "evil\x1b"
    entity = entity_of(kb, id)["id"]
    outputs = [
        invoke("entities", kb),
        invoke("show", kb, id),
        invoke("show", kb, entity, "--events"),
        invoke("search", kb, "smile"),
        invoke("explain", kb, id, 14),
        invoke("separate", kb, id, 14),
        invoke("events", kb),
        invoke("judgements", kb),
        invoke("show", kb, "\x1b[31m"),
        invoke("entities", kb, "--json"),
        invoke("explain", kb, id, 14, "--json"),
    ]
    for output in outputs:
        raw = set(CONTROL.findall(output.output)) - {"\n"}
        assert not raw
    assert "\\x1b[31mRed" in outputs[1].output
    assert "[bold]b[/bold] :smile:" in outputs[1].output
    assert lines("search", kb, "smile")[0]["matches"] == [ESCAPES]


def test_raw_data_are_not_written_to_a_terminal(kb, monkeypatch):
    from partita.cli import exporting

    monkeypatch.setattr(exporting.sys.stdout, "isatty", lambda: True, raising=False)
    with pytest.raises(ValueError, match="raw data to the terminal"):
        exporting.check_output("-")
    exporting.check_output("file.csv")


# ---------------------------------------------------------------------- processes


def start(*arguments, **options):
    code = "from partita.cli import app; app()"
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a worker of the tests ignores it
        **options,
    )


def test_help_is_quick_and_loads_nothing_heavy():
    code = (
        "import sys; from partita.cli import app\n"
        "try: app(['--help'])\n"
        "except SystemExit: pass\n"
        "print('HEAVY', sorted({'numpy', 'numba', 'sqlalchemy', 'duckdb', 'sklearn'} & set(sys.modules)))"
    )
    times = []
    for _ in range(3):
        begun = time.perf_counter()
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        times.append(time.perf_counter() - begun)
        assert "HEAVY []" in found.stdout
    assert "explain" in found.stdout
    assert min(times) < 1.0  # 0.2 s on a machine that does nothing else


def test_a_closed_pipe_is_no_error(kb):
    process = start("export", kb, "-", "--what", "samples", "--samples", "5000")
    process.stdout.readline()
    process.stdout.close()
    message = process.stderr.read()
    process.stderr.close()
    process.wait(60)
    assert "Traceback" not in message
    assert "Error" not in message


def test_interrupted_while_adding(kb):
    known = len(lines("events", kb))
    process = start("add", kb, "-", "--batch", 1, stdin=subprocess.PIPE)
    rows = [json.dumps({"id": f"new {k}", "name": f"Person {k}"}) + "\n" for k in range(3)]
    process.stdin.write("".join(rows))
    process.stdin.flush()
    deadline = time.monotonic() + 120
    while len(lines("events", kb)) == known and time.monotonic() < deadline:
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    out, message = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    assert "Interrupted" in message
    assert "run the same command again" in message
    assert "Traceback" not in message
    assert document("stats", kb)["fragments"] >= 16
    assert document("add", kb, "-", input="".join(rows))["unchanged"] >= 1


# ---------------------------------------------------------------------- the page for newcomers


def test_the_commands_of_the_page_do_what_it_shows(tmp_path, monkeypatch):
    """Each begins with the words that the page shows; numbers may differ."""
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "knowledge-base.md").read_text(encoding="utf-8")
    table = re.search(r"cat > contacts.csv <<'END'\n(.*?)END\n", page, re.S)[1]
    Path("contacts.csv").write_text(table, encoding="utf-8")
    shown = re.findall(r"^\$ (.*)\n(.*)", page, re.M)
    assert len(shown) > 12
    for command, first in shown:
        said, _, command = command.rpartition(" | ")
        arguments = shlex.split(command)
        assert arguments.pop(0) == "partita"
        input = shlex.split(said)[1] if said else None
        output = run(*arguments, input=input, COLUMNS="100", PARTITA_USER="grace")
        begun, wanted = (re.sub(r"\d+", "0", text).split()[:4] for text in (output, first))
        assert begun[: len(wanted)] == wanted, command


# ---------------------------------------------------------------------- PostgreSQL


def test_the_same_on_any_database(url, data):
    report = document("build", data, "-o", url, "--ignore", "person", "--refine", 0)
    assert report["added"] == 15
    again = invoke("build", data, "-o", url, "--ignore", "person", "--refine", 0, "--json")
    assert json.loads(again.stdout)["unchanged"] == 15
    assert "Thomas" in run("entities", url)
    assert document("confirm", url, 15, 18)["judgement"] == 1
