"""Writes by the service are those of the command line: the same events, the same judgements, the same answers."""

import json
import shutil

import pytest
from typer.testing import CliRunner

import partita.kb
from partita.cli import app
from partita.serve import answers, create_app
from partita.serve.writing import BATCH
from tests.helpers.people import fragments
from tests.helpers.stores import assert_same
from tests.serve.conftest import API, client_of, state_of
from tests.serve.test_reading import answer, fits


def post(client, path, body, status=200):
    """What a call answers."""
    found = client.post(f"{API}/{path}", json=body)
    assert found.status_code == status, found.text
    return found.json()


def command(*arguments):
    """What the command line prints with --json."""
    result = CliRunner().invoke(app, [*map(str, arguments), "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def without_times(document):
    """The same, at no time."""
    return json.loads(
        json.dumps(document), object_hook=lambda one: {k: v for k, v in one.items() if k != "at"}
    )


def test_judgements_by_the_service_are_those_of_the_command_line(service, copy, tmp_path):
    other = shutil.copy(copy, tmp_path / "other.db")
    with partita.kb.open(other) as kb:
        first, second, third = [entity.id for entity in kb.entities(limit=3)]
        leaving = kb.entity(third).fragments[0]
    said = [
        ({"kind": "confirm", "first": first, "second": second}, ["confirm", other, first, second]),
        ({"kind": "unsure", "first": first, "second": third}, ["unsure", other, first, third]),
        ({"kind": "separate", "first": first, "second": third}, ["separate", other, first, third]),
        ({"kind": "split", "entity": third, "fragments": [leaving]}, ["split", other, third, leaving]),
    ]
    for body, arguments in said:
        found = fits(answers.Judged, post(service, "judgements", body | {"user": "ann"}, 201))
        expected = command(*arguments, "--user", "ann")
        found.pop("expected_wrong_pairs")
        assert without_times(found) == without_times(expected)
    undone = fits(answers.Undone, post(service, "undo", {"judgement": 1, "user": "ann"}))
    undone.pop("expected_wrong_pairs")
    assert without_times(undone) == without_times(command("undo", other, 1, "--user", "ann"))
    with partita.kb.open(other) as kb:
        assert_same(service.app.state.desk.kb, kb)


def test_fragments_by_the_service_are_those_of_the_command_line(service, copy, tmp_path):
    other = shutil.copy(copy, tmp_path / "other.db")
    rows = [row | {"id": f"more {row['id']}"} for row in fragments(30, seed=1)[0]]
    found = fits(answers.Added, post(service, "fragments", {"fragments": rows}, 201))
    assert (found["added"], found["updated"], found["unchanged"]) == (30, 0, 0)
    data = tmp_path / "rows.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert command("add", other, data)["added"] == 30
    with partita.kb.open(other) as kb:
        assert_same(service.app.state.desk.kb, kb)
        assert len(found["events"]) == len(
            [e for e in kb.events() if e.number >= found["events"][0]["number"]]
        )
    again = post(service, "fragments", {"fragments": rows}, 201)
    assert (again["added"], again["unchanged"], again["events"]) == (0, 30, [])
    changed = post(service, "fragments", {"fragments": [rows[0] | {"properties": {"name": ["Ada"]}}]}, 201)
    assert changed["updated"] == 1


def test_many_fragments_go_in_a_few_at_a_time(service, kb):
    before = kb.stats()["revision"]
    rows = [{"id": f"n{k}", "name": f"Person number {k}"} for k in range(BATCH + 1)]
    assert post(service, "fragments", {"fragments": rows}, 201)["added"] == BATCH + 1
    assert kb.stats()["revision"] == before + 2


def test_one_bad_fragment_and_none_is_in(service, kb):
    rows = [{"id": f"n{k}", "name": f"Person number {k}"} for k in range(BATCH + 1)]
    before = state_of(kb)
    for bad in (
        {"id": "x"},
        {"id": "x", "name": [[1]]},
        {"id": "n0", "name": "Someone else"},
        {"id": [], "name": "x"},
    ):
        error = post(service, "fragments", {"fragments": [*rows, bad]}, 422)["error"]
        assert str(len(rows)) in error["message"]
    assert state_of(kb) == before


def test_the_first_fragments_of_an_empty_knowledge_base(tmp_path):
    partita.kb.open(tmp_path / "empty.db").close()
    rows = fragments(BATCH + 20)[0]
    with client_of(create_app(tmp_path / "empty.db")) as client:
        assert post(client, "fragments", {"fragments": rows}, 201)["added"] == len(rows)
        with partita.kb.open(tmp_path / "other.db") as kb:
            kb.add(rows)
            assert_same(client.app.state.desk.kb, kb)


def test_match_says_what_the_knowledge_base_says_and_changes_nothing(service, kb):
    before, record = state_of(kb), {"name": "Johann Strauss", "born": "1804-03-14"}
    found = fits(answers.Matches, post(service, "match", {"record": record, "limit": 2}))
    assert found == json.loads(json.dumps({"matches": [one.as_dict() for one in kb.match(record, 2)]}))
    many = fits(answers.Results, post(service, "match", {"records": [record] * 25, "limit": 1}))
    assert many["results"] == [{"matches": found["matches"][:1]}] * 25
    for wrong in ({}, {"record": {}}, {"record": record, "records": [record]}, {"record": {"name": [[1]]}}):
        post(service, "match", wrong, 422)
    assert state_of(kb) == before


def test_a_contradiction_is_a_conflict(service, kb):
    first, second = [entity.id for entity in kb.entities(limit=2)]
    number = post(service, "judgements", {"kind": "separate", "first": first, "second": second}, 201)[
        "judgement"
    ]
    before = state_of(kb)
    error = post(service, "judgements", {"kind": "confirm", "first": first, "second": second}, 409)["error"]
    assert error["kind"] == "conflict"
    assert f"undo one of {number}" in error["message"]
    assert state_of(kb) == before
    post(service, "undo", {})
    assert post(service, "undo", {"judgement": number}, 409)["error"]["kind"] == "conflict"
    assert post(service, "undo", {}, 404)["error"]["kind"] == "not_found"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"kind": "confirm"},
        {"kind": "confirm", "first": "f1"},
        {"kind": "confirm", "first": "f1", "second": "f2", "by": "name"},
        {"kind": "split", "entity": "E1"},
        {"kind": "split", "entity": "E1", "fragments": ["f1"], "by": "name"},
        {"kind": "join", "first": "f1", "second": "f2"},
        {"kind": "confirm", "first": "f1", "second": "f2", "more": 1},
        {"kind": "confirm", "first": "f1", "second": 2},
        {"kind": "confirm", "first": "f1", "second": "\0"},
        {"kind": "confirm", "first": "f1", "second": "\ud800"},
        [],
        None,
    ],
)
def test_judgements_that_are_none(service, kb, body):
    before = state_of(kb)
    found = service.post(
        f"{API}/judgements", content=json.dumps(body), headers={"content-type": "application/json"}
    )
    assert found.status_code == 422, found.text
    fits(answers.Refusal, found.json())
    assert state_of(kb) == before


def test_whose_judgement_it_is(service, kb):
    first, second, third = [entity.id for entity in kb.entities(limit=3)]
    assert (
        post(service, "judgements", {"kind": "unsure", "first": first, "second": second}, 201)["user"]
        == "api"
    )
    named = {"kind": "unsure", "first": first, "second": third, "user": "ann"}
    assert post(service, "judgements", named, 201)["user"] == "ann"
    assert answer(service, "judgements")["judgements"][0]["user"] == "ann"
