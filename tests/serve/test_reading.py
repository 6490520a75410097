"""What the service answers is what the knowledge base does, and what the OpenAPI document says."""

import json
from datetime import datetime

import pytest
from pydantic import TypeAdapter
from sqlalchemy import event

import partita.kb
from partita.serve import answers, create_app
from partita.serve.listing import summary
from tests.serve.conftest import API, client_of


def answer(client, path, status=200, **parameters):
    """What a call answers."""
    found = client.get(f"{API}/{path}", params=parameters)
    assert found.status_code == status, found.text
    return found.json()


def fits(model, document):
    """The document, which is as the OpenAPI document says."""
    TypeAdapter(model).validate_python(document)
    return document


# ---------------------------------------------------------------------- entities


@pytest.mark.parametrize("sort", ["size", "sure", "recent", "name"])
def test_entities_come_page_by_page_in_order(service, kb, sort):
    expected = list(kb.entities(sort=sort))
    found, offset = [], 0
    while offset is not None:
        page = fits(answers.Page, answer(service, "entities", sort=sort, limit=3, offset=offset))
        assert page["total"] == len(expected)
        found, offset = found + page["entities"], page["next"]
    assert [one["id"] for one in found] == [entity.id for entity in expected]
    for one, entity in zip(found, expected, strict=True):
        assert (one["name"], one["size"]) == (entity.name, len(entity.fragments))
        assert one["probability"] == pytest.approx(entity.probability)
        said = {str(value.value) for values in entity.properties.values() for value in values}
        assert set(one["summary"]) <= said
        assert len(one["summary"]) <= 3


def test_entities_can_be_chosen(service, kb):
    found = answer(service, "entities", where="occupation=composer", min_size=2)
    expected = list(kb.entities(where={"occupation": "composer"}, minimum=2))
    assert [one["id"] for one in found["entities"]] == [entity.id for entity in expected]
    assert found["total"] == len(expected) > 0


def test_a_search_has_the_order_and_the_scores_of_search(service, kb):
    found = fits(answers.Page, answer(service, "entities", query="strauss par", limit=200))
    expected = kb.search("strauss par", limit=200)
    assert [
        (one["id"], one["name"], one["size"], one["score"], one["matches"]) for one in found["entities"]
    ] == [(one.id, one.name, one.size, one.score, one.matches) for one in expected]
    assert found["total"] == len(expected) > 1
    some = answer(service, "entities", query="strauss par", limit=1, offset=1, min_size=2)
    assert all(one["size"] >= 2 for one in some["entities"])


def test_an_id_finds_its_entity_first(service, kb):
    entity = list(kb.entities())[3]
    for id in (entity.id, entity.id.lower(), f" {entity.id} ", entity.fragments[-1]):
        found = answer(service, "entities", query=id)
        assert found["entities"][0]["id"] == entity.id, id
        assert found["entities"][0]["score"] > max([one["score"] for one in found["entities"][1:]], default=0)
    assert answer(service, "entities", query=entity.id)["total"] == 1  # and no misspelling of it
    assert [one.id for one in kb.search(entity.id)] == [entity.id]
    assert answer(service, "entities", query="E99999")["total"] == 0
    kb.remove(*entity.fragments)
    assert answer(service, "entities", query=entity.id)["total"] == 0


def test_a_search_does_not_read_all_fragments(service, kb):
    said = []
    with kb.store.reading() as connection:
        event.listen(connection.engine, "before_cursor_execute", lambda *given: said.append(given[2]))
    answer(service, "entities", query="strauss")
    assert said
    assert not [text for text in said if "count(" in text.lower()]


def test_another_method_is_told_which_one_it_is(service):
    for method, path, allowed in (
        ("GET", f"{API}/fragments", "POST"),
        ("DELETE", f"{API}/entities/E1", "GET"),
        ("HEAD", f"{API}/entities", "GET"),
    ):
        found = service.request(method, path, headers={"Content-Type": "application/json"})
        assert (found.status_code, found.headers["allow"]) == (405, allowed)
    assert "takes POST" in answer(service, "fragments", 405)["error"]["message"]
    assert "nothing here" in answer(service, "no-such-call", 404)["error"]["message"]
    assert service.head("/health").status_code == 200
    body = service.post(f"{API}/match", content='{"record"', headers={"Content-Type": "application/json"})
    assert "the body is not JSON: " in body.json()["error"]["message"]


def test_an_empty_search_is_all_and_one_of_no_words_is_refused(service):
    assert answer(service, "entities", query="") == answer(service, "entities")
    error = answer(service, "entities", 422, query=" ")["error"]
    assert error["kind"] == "invalid"
    assert "nothing to search for" in error["message"]


def test_an_entity_in_full(service, kb):
    entity = next(kb.entities())
    found = fits(answers.Shown, answer(service, f"entities/{entity.id}"))
    assert found | entity.as_dict() == found
    assert found["size"] == len(entity.fragments)
    assert found["events"] == [event.as_dict() for event in kb.events(entity=entity.id)]
    assert found["as_of"] is None


def test_an_entity_as_of_an_event_and_a_time(service, kb):
    id = next(kb.entities()).id
    number = kb.events(entity=id)[2].number
    found = fits(answers.Shown, answer(service, f"entities/{id}", as_of=number))
    assert found["fragments"] == kb.entity(id, as_of=number).fragments
    assert found["as_of"] == number == max(event["number"] for event in found["events"])
    late = answer(service, f"entities/{id}", as_of=datetime(9000, 1, 1).isoformat())
    assert late["fragments"] == kb.entity(id).fragments
    for wrong in ("yesterday", "0001-01-01", "1" * 40 + "x"):
        assert answer(service, f"entities/{id}", 422, as_of=wrong)["error"]["kind"] == "invalid"


def test_an_entity_that_was_merged_leads_on(service, kb):
    one, other = [entity.id for entity in kb.entities(limit=2)]
    kb.confirm(one, other)
    found = answer(service, f"entities/{other}")
    assert (found["id"], found["merged_from"]) == (one, other)


def test_rows(service, kb):
    entity = next(kb.entities())
    found = fits(answers.Rows, answer(service, f"entities/{entity.id}/rows", limit=2, offset=1))
    assert found["rows"] == [row.as_dict() for row in kb.rows(entity.id)[1:3]]
    assert found["total"] == len(entity.fragments)
    assert set(found["attributes"]) == set(entity.properties)


def test_a_fragment_whatever_its_id(service, kb):
    for id in ("f3", "a/b?c#d"):
        found = fits(
            answers.Piece, answer(service, "fragments/" + id.replace("?", "%3F").replace("#", "%23"))
        )
        assert (found["id"], found["properties"]) == (id, kb.fragment(id).properties)
        assert found["entity"]["id"] == kb.entity_of(id).id


def test_the_summary_has_the_commonest_values_beside_the_name():
    said = [json.dumps({"name": ["Ada"], "field": [field], "born": [1815]}) for field in ("x", "y", "y")]
    assert summary("Ada", said) == ["y", "1815"]
    assert summary(None, []) == []


# ---------------------------------------------------------------------- the posterior


def test_explain_is_what_the_knowledge_base_explains(service, kb):
    one, other = [entity.id for entity in kb.entities(limit=2)]
    found = fits(answers.Explanation, answer(service, "explain", first=one, second=other))
    assert found == json.loads(json.dumps(kb.explain(one, other).as_dict()))
    assert sum(step["nats"] for step in found["steps"]) == pytest.approx(found["log_odds"])


def test_questions_and_blind_ones(service, kb):
    found = fits(answers.Questions, answer(service, "questions", limit=3))
    assert found["questions"] == [one.as_dict() for one in kb.uncertain(3)]
    assert found["expected_wrong_pairs"] == pytest.approx(kb.wrong_pairs())
    blind = fits(answers.Questions, answer(service, "questions", limit=3, blind=True))["questions"]
    hidden = {"probability", "value", "reason", "kind"}
    for one, other in zip(found["questions"], blind, strict=True):
        assert other == {name: value for name, value in one.items() if name not in hidden}
    first = found["questions"][0]
    passed = answer(service, "questions", limit=3, passed=f"{first['first']},{first['second']}")
    assert (first["first"], first["second"]) not in [(q["first"], q["second"]) for q in passed["questions"]]


def test_alternatives_and_the_matrix(service, kb):
    entity = next(kb.entities(sort="sure"))
    found = fits(answers.Alternatives, answer(service, f"entities/{entity.id}/alternatives", limit=3))
    assert found == json.loads(json.dumps(kb.alternatives(entity.id, 3).as_dict()))
    matrix = fits(answers.Matrix, answer(service, f"entities/{entity.id}/together"))
    assert sorted(matrix["fragments"]) == sorted(found["fragments"])


def test_honesty(service, kb):
    found = fits(answers.Honesty, answer(service, "honesty"))
    assert sum(one["fragments"] for one in found["sureness"]) == kb.stats()["fragments"]
    assert sum(one["entities"] for one in found["sureness"]) == kb.stats()["entities"]
    assert found["calibration"] is None
    worth = [one["expected_wrong_pairs"] for one in found["risk"]]
    assert worth == sorted(worth, reverse=True)
    for question in kb.uncertain(3):
        kb.separate(question.first, question.second)
    judged = fits(answers.Honesty, answer(service, "honesty"))["calibration"]
    assert (judged["source"], judged["n"]) == ("judgements", len(kb.judgements()))
    assert all(one["true"] in (None, 0.0) for one in judged["bins"])
    kb.relearn(labels={"f1": "a", "f2": "b", "f3": "a"})
    assert (answer(service, "honesty")["calibration"] or {"source": "labels"})["source"] == "labels"


# ---------------------------------------------------------------------- the rest


def test_events_page_by_page(service, kb):
    found, since = [], 0
    while since is not None:
        page = fits(answers.Events, answer(service, "events", since=since, limit=7))
        found, since = found + page["events"], page["next"]
    assert found == [event.as_dict() for event in kb.events()]
    own = answer(service, "events", entity="E1")["events"]
    assert own == [event.as_dict() for event in kb.events(entity="E1")]


def test_judgements_the_last_first(service, kb):
    one, other, third = [entity.id for entity in kb.entities(limit=3)]
    kb.separate(one, other, user="ann")
    kb.unsure(one, third)
    found = fits(answers.Judgements, answer(service, "judgements", limit=1))
    assert found == {"total": 2, "judgements": [kb.judgements()[-1].as_dict()]}


def test_stats_and_schema(service, kb):
    assert answer(service, "stats") == kb.stats()
    found = fits(answers.Schema, answer(service, "schema"))
    assert found["toml"] == kb.schema
    assert {"name", "born"} <= {one["name"] for one in found["attributes"]}
    assert found["named_by"][0] == ["name"]


def test_every_answer_says_which_moment_it_has_seen(service, kb):
    for path in ("entities", "stats", "explain?first=E1&second=E2", "entities/E999"):
        found = service.get(f"{API}/{path}")
        assert found.headers["partita-event"] == str(kb.events()[-1].number)


def test_an_empty_knowledge_base(tmp_path):
    partita.kb.open(tmp_path / "empty.db").close()
    with client_of(create_app(tmp_path / "empty.db")) as client:
        assert answer(client, "entities") == {"total": 0, "entities": [], "next": None}
        assert answer(client, "questions")["questions"] == []
        fits(answers.Honesty, answer(client, "honesty"))
        assert answer(client, "schema")["attributes"] == []
        assert (
            "add fragments first" in answer(client, "explain", 422, first="a", second="b")["error"]["message"]
        )
        assert answer(client, "events") == {"events": [], "next": None}


@pytest.mark.parametrize(
    ("path", "status", "hint"),
    [
        ("entities/E999", 404, "ids are such as E1"),
        ("entities/f3", 404, "there is no entity"),
        ("fragments/nope", 404, "there are"),
        ("explain?first=f1", 422, "second"),
        ("explain?first=f1&second=f1", 422, "name two different ones"),
        ("entities?where=city", 422, "ATTRIBUTE=VALUE"),
        ("entities?where=nam%3DAda", 404, "did you mean 'name'"),
        ("entities?limit=0", 422, "limit"),
        ("entities?limt=3", 422, "limit, min_size"),
        ("questions?passed=f1", 422, "FIRST,SECOND"),
        ("nothing", 404, "/openapi.json"),
    ],
)
def test_errors_say_how_to_mend_it(service, path, status, hint):
    found = service.get(f"{API}/{path}")
    assert found.status_code == status
    fits(answers.Refusal, found.json())
    assert hint in found.json()["error"]["message"]


def test_what_another_process_writes_is_seen_at_once(service, copy):
    before = answer(service, "entities")["total"]
    answer(service, "questions")
    with partita.kb.open(copy) as other:
        other.add([{"id": "new", "name": "Zebulon Pike", "born": "1779-01-05"}])
    assert answer(service, "entities")["total"] == before + 1
    assert answer(service, "entities", query="zebulon")["total"] == 1
    assert answer(service, "explain", first="new", second="f1")["together"] is False
