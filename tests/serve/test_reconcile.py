"""OpenRefine's reconciliation service: it fits the specification, says what match says, changes nothing."""

import json
from urllib.parse import quote

import jsonschema
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st

import partita.kb
from partita.kb.fragments import Fragment
from partita.serve import errors, reconcile
from partita.serve.desk import Desk
from partita.serve.reconcile.candidates import AGAINST, CERTAIN, is_certain
from partita.serve.reconcile.naming import parts_of
from partita.serve.reconcile.queries import MOST_QUERIES
from partita.serve.security import SCOPES, Guard, Rules, Token
from tests.helpers.effort import examples
from tests.helpers.people import fragments
from tests.serve import reconciliation_schemas as schemas

BASE = "http://127.0.0.1:8000"
REFINE = "http://127.0.0.1:3333"
ELSEWHERE = "https://refine.example"
EVIL = "<script>alert(1)</script>"
MARIE = {"query": "Marie Curie", "properties": [{"pid": "occupation", "v": "physicist"}]}


def application(kb, tokens=(), origins=()):
    """The service with nothing but reconciliation."""
    app = FastAPI()
    errors.install(app)
    app.add_middleware(Guard, rules=Rules(tokens))
    app.state.desk = Desk(kb)
    reconcile.install(app, app.state.desk, origins)
    return app


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    rows, _ = fragments(80, seed=3)
    kb = partita.kb.open(tmp_path_factory.mktemp("serve") / "people.db")
    kb.add(rows)
    kb.add([{"id": "evil", "name": f"Zed {EVIL}", "occupation": '=HYPERLINK("x")', "height": 1.5, "age": 7}])
    yield kb
    kb.close()


@pytest.fixture(scope="module")
def client(kb):
    return TestClient(application(kb, origins=[ELSEWHERE]), base_url=BASE, raise_server_exceptions=True)


def reconciled(client, queries, **more):
    jsonschema.validate(queries, schemas.QUERIES)
    answer = client.post("/reconcile", data={"queries": json.dumps(queries)}, **more)
    assert answer.status_code == 200, answer.text
    jsonschema.validate(answer.json(), schemas.RESULTS)
    return {id: found["result"] for id, found in answer.json().items()}


def refused(answer, status, words):
    assert answer.status_code == status, answer.text
    assert words in answer.json()["error"]["message"]


# ---------------------------------------------------------------------- manifest


def test_the_manifest_fits_the_specification_and_its_addresses_answer(client):
    found = client.get("/reconcile").json()
    jsonschema.validate(found, schemas.MANIFEST)
    assert found["name"] == "Partita: people"
    assert found["view"]["url"] == f"{BASE}/#/entity/{{{{id}}}}"
    assert client.get(found["preview"]["url"].replace("{{id}}", "E1")).status_code == 200
    for which, id in (("entity", "E1"), ("property", "name"), ("type", "entity")):
        own = found["suggest"][which]
        assert client.get(own["service_url"] + own["service_path"], params={"prefix": "a"}).status_code == 200
        flyout = own["flyout_service_url"] + own["flyout_service_path"].replace("${id}", id)
        jsonschema.validate(client.get(flyout).json(), schemas.FLYOUT)
    proposing = found["extend"]["propose_properties"]
    jsonschema.validate(
        client.get(proposing["service_url"] + proposing["service_path"]).json(), schemas.PROPOSED
    )


def test_addresses_are_those_that_the_client_has_used(client):
    found = client.get("/reconcile", headers={"Host": "localhost:9999"}).json()
    assert found["view"]["url"].startswith("http://localhost:9999/")


def test_where_the_knowledge_base_is_stays_unsaid(client, kb, tmp_path):
    assert str(kb.store.name).rsplit("/", 1)[0] not in client.get("/reconcile").text
    called = reconcile.manifest.called
    assert called("postgresql://ann:secret@db.example/people") == "people"


# ---------------------------------------------------------------------- candidates


def test_candidates_are_what_match_says(client, kb):
    [found] = reconciled(client, {"q0": MARIE | {"limit": 3}}).values()
    expected = kb.match({"name": "Marie Curie", "occupation": "physicist"}, limit=4)
    known = [place for place in expected if place.entity != "new"][:3]
    assert [row["id"] for row in found] == [place.entity for place in known]
    for row, place in zip(found, known, strict=True):
        assert row["score"] == pytest.approx(100.0 * place.probability, abs=1e-4)
        features = {feature["id"]: feature["value"] for feature in row["features"]}
        assert features.pop("(log-odds)") == pytest.approx(sum(features.values()), abs=1e-3)
        own = {step.attribute: step.nats for step in place.steps}
        assert features["name"] == pytest.approx(own["name"], abs=1e-4)
        assert features["(prior)"] == pytest.approx(own["prior"], abs=1e-4)
    assert "fragments" in found[0]["description"]
    assert "Marie Curie" not in found[0]["description"]


def test_get_and_post_answer_the_same(client):
    queries = json.dumps({"a": MARIE, "b": {"query": "Dumas"}})
    posted = client.post("/reconcile", data={"queries": queries}).json()
    assert client.get("/reconcile", params={"queries": queries}).json() == posted


def test_queries_of_a_batch_do_not_depend_on_one_another(client):
    names = ["Ada Lovelace", "Babbage", "Strauss", "G. Eliot", "Curie"] * 5
    batch = {f"q{k}": {"query": name, "limit": 1 + k % 7} for k, name in enumerate(names)}
    together = reconciled(client, batch)
    assert list(together) == list(batch)
    for id, query in batch.items():
        assert reconciled(client, {id: query})[id] == together[id]
        assert len(together[id]) <= query["limit"]
        scores = [row["score"] for row in together[id]]
        assert scores == sorted(scores, reverse=True)
        assert sum(scores) <= 100.001


def test_an_id_finds_its_entity(client, kb):
    first = next(kb.entities(limit=1))
    [row, *_] = reconciled(client, {"q": {"query": first.id}})["q"]
    assert (row["id"], row["score"], row["match"]) == (first.id, 100.0, True)
    [row, *_] = reconciled(client, {"q": {"query": first.id, "properties": [{"pid": "place", "v": "Rome"}]}})[
        "q"
    ]
    assert (row["id"], row["match"]) == (first.id, False)
    assert reconciled(client, {"q": {"query": "E987654321"}})["q"] == []


def test_a_stranger_has_no_candidate_that_is_taken_for_him(client):
    for row in reconciled(
        client, {"q": {"query": "Zxqv Wyrmk", "properties": [{"pid": "born", "v": "2001"}]}}
    )["q"]:
        assert not row["match"]


def test_a_match_is_nearly_certain_and_uncontradicted(kb):
    sure, doubted = 0, 0
    for row in fragments(60, seed=11)[0]:
        best = next((place for place in kb.match(row) if place.entity != "new"), None)
        if best is None:
            continue
        own = [step.nats for step in best.steps if step.attribute in ("name", "born", "place", "occupation")]
        assert is_certain(best) == (best.probability > CERTAIN and min(own) > AGAINST)
        sure, doubted = sure + is_certain(best), doubted + (not is_certain(best))
    assert sure
    assert doubted


def test_types_that_are_insisted_on(client):
    found = {
        (types if isinstance(types, str) else tuple(types), strict): bool(
            reconciled(client, {"q": MARIE | {"type": types, "type_strict": strict}})["q"]
        )
        for types in ("entity", "city", ["entity", "city"])
        for strict in ("any", "should", "all")
    }
    assert [key for key, there in found.items() if not there] == [
        ("city", "any"),
        ("city", "all"),
        (("entity", "city"), "all"),
    ]


def test_values_of_every_kind_and_none(client):
    values = ["1867-11-07", 1867, 1867.5, True, {"id": "E3", "name": "Paris"}, {"id": "E3"}, "", " "]
    for value in [*values, values, []]:
        reconciled(client, {"q": MARIE | {"properties": [{"pid": "born", "v": value}]}})
    found = reconciled(client, {"q": {"query": "", "properties": [{"pid": "born", "v": ""}]}})
    assert found == {"q": []}


def test_a_value_that_cannot_be_read_keeps_no_other_from_being_reconciled(tmp_path):
    schema = '[attributes.name]\nkind = "text"\n[attributes.weight]\nkind = "number"\n'
    with partita.kb.open(tmp_path / "kb.db", schema=schema) as kb:
        kb.add(
            [{"name": f"thing {word}", "weight": k} for k, word in enumerate(["red", "blue", "green"] * 5)]
        )
        client = TestClient(application(kb), base_url=BASE)
        dirty = {"query": "thing red", "properties": [{"pid": "weight", "v": "about ten"}]}
        found = reconciled(client, {"dirty": dirty, "clean": {"query": "thing red"}})
        assert found["dirty"] == found["clean"]
        assert found["clean"]
        unknown = {"q": {"query": "thing red", "properties": [{"pid": "wieght", "v": 3}]}}
        answer = client.post("/reconcile", data={"queries": json.dumps(unknown)})
        refused(answer, 422, "did you mean 'weight'?")


def test_without_a_name_queries_need_properties(tmp_path):
    schema = '[attributes.height]\nkind = "number"\n[attributes.weight]\nkind = "number"\n'
    with partita.kb.open(tmp_path / "kb.db", schema=schema) as kb:
        kb.add([{"height": k % 5, "weight": k % 5 * 10} for k in range(20)])
        client = TestClient(application(kb), base_url=BASE)
        answer = client.post("/reconcile", data={"queries": '{"q": {"query": "Ada"}}'})
        refused(answer, 422, "no attribute of this knowledge base reads like a name")
        reconciled(client, {"q": {"properties": [{"pid": "height", "v": 3}]}})


def test_names_in_parts(tmp_path):
    people = [("Ada", "Lovelace"), ("Charles", "Babbage"), ("Grace", "Hopper"), ("Alan", "Turing")]
    rows = [{"first_name": first, "last_name": last} for first, last in people for _ in range(4)]
    with partita.kb.open(tmp_path / "kb.db", name="first_name last_name") as kb:
        kb.add(rows)
        client = TestClient(application(kb), base_url=BASE)
        asked = {
            "a": {"query": "Grace Hopper"},
            "b": {"query": "Hopper, Grace"},
            "c": {"query": "Ada Hopper"},
        }
        asked["c"]["properties"] = [{"pid": "first_name", "v": "Grace"}]
        found = reconciled(client, asked)
        assert found["a"] == found["b"] == found["c"]
        assert found["a"][0]["name"] == "Grace Hopper"


@pytest.mark.parametrize(
    ("text", "way", "parts"),
    [
        ("Ada", ["first", "last"], {"last": "Ada"}),
        (
            "Ada King Lovelace",
            ["first", "middle", "last"],
            {"first": "Ada", "middle": "King", "last": "Lovelace"},
        ),
        ("Lovelace, Ada King", ["first", "last"], {"first": "Ada King", "last": "Lovelace"}),
        (
            "King, Martin L. Jr",
            ["first", "last", "suffix"],
            {"first": "Martin L.", "last": "King", "suffix": "Jr"},
        ),
        ("Jr", ["first", "last", "suffix"], {"last": "Jr"}),
        (",", ["first", "last"], {}),
        ("Canon", ["brand", "model"], {"brand": "Canon"}),
    ],
)
def test_parts_of_names(text, way, parts):
    assert parts_of(text, way) == parts


# ---------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("queries", "words"),
    [
        ("", "cannot be read as JSON"),
        ("{", "cannot be read as JSON"),
        ("[]", "must be a JSON object"),
        ('{"q": "Ada"}', "query 'q' must be a JSON object"),
        ('{"q": {}}', "needs 'query'"),
        ('{"q": {"properties": []}}', "needs 'query'"),
        ('{"q": {"query": 7}}', "'query' must be text"),
        ('{"q": {"query": "a", "limit": 0}}', "'limit' must be a whole number"),
        ('{"q": {"query": "a", "limit": 1e999}}', "'limit' must be a whole number"),
        ('{"q": {"query": "a", "limit": NaN}}', "NaN is no number"),
        ('{"q": {"query": "a", "limit": true}}', "'limit' must be a whole number"),
        ('{"q": {"query": "a", "type": 3}}', "'type' must be"),
        ('{"q": {"query": "a", "type_strict": "perhaps"}}', "'type_strict' must be one of"),
        ('{"q": {"query": "a", "colour": "red"}}', "'colour', which is none of"),
        ('{"q": {"query": "a", "properties": {"pid": "b"}}}', "'properties' must be a list"),
        ('{"q": {"query": "a", "properties": [{"pid": "b"}]}}', "must have 'pid'"),
        ('{"q": {"query": "a", "properties": [{"pid": "b", "v": [[1]]}]}}', "values are text"),
        ('{"q": {"query": "a", "properties": [{"pid": "b", "v": {"name": "x"}}]}}', "must have 'id'"),
        ('{"q": {"query": "a", "properties": [{"pid": "b", "v": 1e999}]}}', "too large"),
        ('{"q": {"query": "a", "properties": [{"pid": "b", "v": 1%s}]}}' % ("0" * 400), "too long"),
        ('{"q": {"query": "a", "properties": [{"pid": "b", "v": 1%s}]}}' % ("0" * 5000), "cannot be read"),
        ('{"q\\ud800": {"query": "a"}}', "lone surrogate"),
        ('{"q": ' + "[" * 100_000, "nested too deeply"),
    ],
)
def test_a_malformed_query_is_told_what_is_wrong(client, queries, words):
    refused(client.post("/reconcile", data={"queries": queries}), 422, words)
    if len(queries) < 1000:
        refused(client.get("/reconcile", params={"queries": queries}), 422, words)


def test_other_requests_that_are_refused(client):
    refused(client.post("/reconcile", json={"queries": {}}), 415, "send a form")
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    refused(client.post("/reconcile", content=b"", headers=form), 422, "send 'queries'")
    refused(client.post("/reconcile", data={"queries": "{}", "extend": "{}"}), 422, "not both")
    refused(client.post("/reconcile", content=b"queries=%ff", headers=form), 422, "not UTF-8")
    refused(client.post("/reconcile", content=b"a&" * 100, headers=form), 422, "more than")
    refused(client.get("/reconcile", params={"query": "Ada"}), 422, "no parameter 'query'")
    refused(client.get("/reconcile", params={"callback": "x"}), 422, "JSONP is not offered")
    many = {f"q{k}": {"query": "a"} for k in range(MOST_QUERIES + 1)}
    refused(client.post("/reconcile", data={"queries": json.dumps(many)}), 413, "in one batch")
    for path in ("preview", "flyout/entity", "flyout/property", "flyout/type"):
        refused(client.get(f"/reconcile/{path}", params={"id": "E99999"}), 404, "there is no")
        assert client.get(f"/reconcile/{path}").status_code == 422


any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["query", "type", "limit", "properties", "pid", "v", "id", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@examples(150)
@given(
    document=st.dictionaries(st.text(max_size=3), any_json, max_size=3) | any_json,
    field=st.sampled_from(["queries", "extend"]),
)
def test_whatever_is_asked_is_answered_or_refused(client, document, field):
    answer = client.post("/reconcile", data={field: json.dumps(document)})
    assert answer.status_code in (200, 413, 422)
    if answer.status_code == 200:
        jsonschema.validate(answer.json(), schemas.RESULTS if field == "queries" else schemas.EXTENSION)
    else:
        assert answer.json()["error"]["message"]


# ---------------------------------------------------------------------- suggestions, previews, columns


def test_suggested_entities(client, kb):
    def suggested(**params):
        found = client.get("/reconcile/suggest/entity", params=params).json()
        jsonschema.validate(found, schemas.SUGGESTED_ENTITIES)
        return [row["id"] for row in found["result"]]

    assert suggested(prefix="lovel") == [one.id for one in kb.search("lovel")]
    assert suggested(prefix="E1")[0] == "E1"
    everybody = suggested(prefix="a", limit=100)
    assert suggested(prefix="a", cursor=2, limit=3) == everybody[2:5]
    assert suggested(prefix="a", cursor=1_000_000) == []
    assert suggested(prefix="") == suggested(prefix="-") == suggested(prefix="\ufffd") == []


def test_suggested_properties_and_types(client):
    def suggested(which, **params):
        found = client.get(f"/reconcile/suggest/{which}", params=params).json()
        jsonschema.validate(
            found, schemas.SUGGESTED_TYPES if which == "type" else schemas.SUGGESTED_PROPERTIES
        )
        return [row["id"] for row in found["result"]]

    assert suggested("property", prefix="occ") == ["occupation"]
    assert suggested("property", prefix="SURE") == ["partita:sure"]
    assert {"name", "born", "partita:size"} <= set(suggested("property"))
    assert suggested("property", cursor=1, limit=2) == suggested("property")[1:3]
    assert suggested("type", prefix="ent") == suggested("type") == ["entity"]
    assert suggested("type", prefix="city") == []


def test_what_data_say_stays_text(client, kb):
    id = kb.entity_of("evil").id
    for path in (f"preview?id={id}", f"flyout/entity?id={id}"):
        assert EVIL not in client.get(f"/reconcile/{path}").text
    assert "&lt;script&gt;" in client.get(f"/reconcile/preview?id={id}").text


def test_a_preview_may_be_framed_by_openrefine_and_does_nothing(client):
    answer = client.get("/reconcile/preview", params={"id": "E1"})
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "script" not in policy
    assert "http://127.0.0.1:*" in policy
    assert ELSEWHERE in policy
    assert "x-frame-options" not in answer.headers


def test_proposed_properties(client):
    def proposed(**params):
        found = client.get("/reconcile/properties", params=params).json()
        jsonschema.validate(found, schemas.PROPOSED)
        return [row["id"] for row in found["properties"]]

    assert {"name", "born", "partita:sure"} <= set(proposed())
    assert proposed(type="entity", limit=2) == proposed()[:2]
    assert proposed(type="city") == []


def test_columns_from_entities(client, kb):
    entity, evil = next(kb.entities(limit=1)), kb.entity_of("evil")
    wanted = {
        "ids": [entity.id, evil.id, "E99999", "nonsense\0"],
        "properties": [
            {"id": "name", "settings": {"limit": 0}},
            {"id": "born"},
            {"id": "height"},
            {"id": "age"},
            {"id": "partita:sure"},
            {"id": "partita:size"},
            {"id": "partita:fragments"},
            {"id": "unknown"},
        ],
    }
    answer = client.post("/reconcile", data={"extend": json.dumps(wanted)})
    found = answer.json()
    jsonschema.validate(found, schemas.EXTENSION)
    assert [one["id"] for one in found["meta"]] == [one["id"] for one in wanted["properties"]]
    assert list(found["rows"]) == wanted["ids"]
    own = found["rows"][entity.id]
    assert own["name"] == [{"str": value.value} for value in entity.properties["name"]]
    assert len(own["born"]) <= 1
    assert own["unknown"] == []
    assert own["partita:size"] == [{"int": len(entity.fragments)}]
    assert own["partita:sure"] == [{"float": entity.probability}]
    assert own["partita:fragments"] == [{"str": id} for id in entity.fragments]
    assert found["rows"][evil.id]["height"] == [{"float": 1.5}]
    assert found["rows"][evil.id]["age"] == [{"int": 7}]
    assert all(cells == [] for cells in found["rows"]["E99999"].values())
    assert client.get("/reconcile", params={"extend": json.dumps(wanted)}).json() == found


@pytest.mark.parametrize(
    ("extend", "words"),
    [
        ("[]", "must be a JSON object"),
        ('{"properties": []}', "'ids' must be a list"),
        ('{"ids": [1], "properties": []}', "'ids' must be a list"),
        ('{"ids": []}', "'properties' must be a list"),
        ('{"ids": [], "properties": ["name"]}', "must have an 'id'"),
        ('{"ids": ["E1"], "properties": [{"id": "name", "settings": 3}]}', "must be a JSON object"),
        ('{"ids": ["E1"], "properties": [{"id": "name", "settings": {"limit": -1}}]}', "'limit' of 'name'"),
        ('{"ids": ["E1"], "properties": [{"id": "name", "settings": {"least": "x"}}]}', "'least' of 'name'"),
    ],
)
def test_malformed_extensions(client, extend, words):
    refused(client.post("/reconcile", data={"extend": extend}), 422, words)


# ---------------------------------------------------------------------- who may ask


def test_pages_of_this_machine_and_of_allowed_origins_may_read(client):
    for origin in (REFINE, "http://localhost:3333", "http://[::1]:3333", ELSEWHERE, BASE):
        answer = client.get("/reconcile", headers={"Origin": origin})
        assert answer.headers["access-control-allow-origin"] == origin
        assert "Origin" in answer.headers["vary"]
        refusal = client.get("/reconcile?queries={", headers={"Origin": origin})
        assert refusal.headers["access-control-allow-origin"] == origin
        asking = {"Origin": origin, "Access-Control-Request-Method": "POST"}
        agreed = client.options("/reconcile", headers=asking)
        assert agreed.status_code == 204
        assert "POST" in agreed.headers["access-control-allow-methods"]


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "null",
        "http://127.0.0.1.evil.example",
        "http://localhost.evil.example:3333",
        "http://evil.example/127.0.0.1",
        "https://refine.example.evil.example",
        "file://127.0.0.1",
    ],
)
def test_other_pages_may_not(client, origin):
    for answer in (
        client.get("/reconcile", headers={"Origin": origin}),
        client.post("/reconcile", data={"queries": json.dumps({"q": MARIE})}, headers={"Origin": origin}),
        client.options("/reconcile", headers={"Origin": origin, "Access-Control-Request-Method": "POST"}),
        client.get("/reconcile/preview?id=E1", headers={"Origin": origin}),
    ):
        refused(answer, 403, "may not ask here")
        assert "access-control-allow-origin" not in answer.headers


def test_other_names_of_this_machine_are_not_answered(client):
    assert client.get("/reconcile", headers={"Host": "evil.example"}).status_code == 403


def test_with_tokens_one_is_needed_but_not_to_ask_whether_one_may_ask(kb):
    secret = "a-token-for-the-tests"
    client = TestClient(application(kb, [Token(secret.encode(), SCOPES["read"])]), base_url=BASE)
    answer = client.get("/reconcile", headers={"Origin": REFINE})
    assert answer.status_code == 401
    assert answer.headers["access-control-allow-origin"] == REFINE
    asking = {"Origin": REFINE, "Access-Control-Request-Method": "GET"}
    assert client.options("/reconcile", headers=asking).status_code == 204
    bearer = {"Authorization": f"Bearer {secret}"}
    assert client.get("/reconcile", headers=bearer).status_code == 200
    assert reconciled(client, {"q": MARIE}, headers=bearer)["q"]


@pytest.mark.parametrize("origin", ["refine.example", "https://refine.example/path", "*", "https://a b", ""])
def test_what_is_no_origin_is_refused_at_once(kb, origin):
    with pytest.raises(ValueError, match="is no origin"):
        reconcile.router(Desk(kb), [origin])


# ---------------------------------------------------------------------- nothing changes


def test_reconciling_changes_nothing(client, kb):
    def everything():
        with kb.store.reading() as connection:
            tables = [
                row[0]
                for row in connection.exec_driver_sql("select name from sqlite_master where type='table'")
            ]
            return {
                name: connection.exec_driver_sql(f'select * from "{name}"').fetchall()
                for name in sorted(tables)
            }

    before = everything()
    for row in fragments(40, seed=9)[0]:
        properties = [{"pid": name, "v": values} for name, values in row["properties"].items()]
        reconciled(client, {"q": {"query": "Ada", "properties": properties}})
    for path in ("suggest/entity?prefix=a", "preview?id=E1", "properties", "flyout/entity?id=E1"):
        client.get(f"/reconcile/{path}")
    client.post("/reconcile", data={"extend": '{"ids": ["E1"], "properties": [{"id": "name"}]}'})
    assert everything() == before
    assert kb.match(Fragment("x", None, {"name": ["Ada Lovelace"]}))


def test_a_name_with_odd_characters_is_found_as_it_is(client):
    for text in ("Ada\0Lovelace", "Ада Лавлейс", "a" * 5000, "%_'\";--", "\u202eAda"):
        reconciled(client, {"q": {"query": text}})
        assert client.get(f"/reconcile/suggest/entity?prefix={quote(text[:500])}").status_code in (200, 422)
