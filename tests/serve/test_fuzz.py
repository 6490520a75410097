"""Whatever is sent, no call fails by itself, and nothing changes but by a valid write; the OpenAPI document is right.

Requests are drawn from the OpenAPI document: each call with parameters and bodies that it describes, that it almost
describes, or that it does not.
"""

import json
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from partita.serve import answers, bodies, create_app
from tests.helpers.effort import effort
from tests.serve.conftest import HOME, client_of, state_of

REQUESTS = effort(400, 10_000)
WRITES = {("post", "/api/v1/fragments"), ("post", "/api/v1/judgements"), ("post", "/api/v1/undo")}
IDS = (
    "E1",
    "E2",
    "E3",
    "E999",
    "f0",
    "f1",
    "f2",
    "f59",
    "a/b?c#d",
    "evil",
    "entity:E1",
    "E1' --",
    "nope",
    "",
)
WORDS = (
    *IDS,
    "name",
    "born",
    "name=Ada Lovelace",
    "f1,f2",
    "strauss",
    "size",
    "sure",
    "0",
    "3",
    "-1",
    "1e9",
    "2026-01-01",
)
TEXTS = st.one_of(st.sampled_from(WORDS), st.text(max_size=20), st.integers(-(2**70), 2**70).map(str))
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), TEXTS, st.sampled_from(IDS)
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
RECORDS = st.dictionaries(
    st.sampled_from(("id", "name", "born", "place", "source", "properties", "", "x.y")), JSON
)
KINDS = st.sampled_from(("confirm", "separate", "unsure", "split", "join"))
FIELDS = {
    "fragments": st.lists(RECORDS | JSON, max_size=3) | JSON,
    "record": RECORDS | JSON,
    "records": st.lists(RECORDS, max_size=2) | JSON,
    "limit": st.integers(-1, 12) | JSON,
    "kind": KINDS,
    "first": st.sampled_from(IDS) | JSON,
    "second": st.sampled_from(IDS) | JSON,
    "entity": st.sampled_from(IDS) | JSON,
    "by": st.sampled_from(("name", "born", "x")) | JSON,
    "judgement": st.integers(-1, 5) | JSON,
    "user": st.sampled_from(("ann", "")) | JSON,
}


@pytest.fixture(scope="module")
def document(people):
    """The OpenAPI document."""
    app = create_app(people)
    found = app.openapi()
    app.state.desk.close()
    return found


def calls(document):
    """Each call of the service: its method, its path, and what its parameters and body are called."""
    for path, methods in document["paths"].items():
        for method, call in methods.items():
            names = [one["name"] for one in call.get("parameters", []) if one["in"] == "query"]
            body = (
                call.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            )
            model = document["components"]["schemas"].get(body.get("$ref", "").rpartition("/")[2], {})
            yield method, path, names, list(model.get("properties", {}))


@st.composite
def requests(draw, known):
    """A request for one of the known calls, or for none."""
    method, path, names, fields = draw(st.sampled_from(known))
    for name in re.findall(r"{(\w+)}", path):
        path = path.replace(f"{{{name}}}", draw(TEXTS))
    query = draw(st.dictionaries(st.sampled_from(names), TEXTS, max_size=3)) if names else {}
    if draw(st.integers(0, 9)) == 0:
        query["nonsense"] = draw(TEXTS)
    if method == "post" and draw(st.integers(0, 9)):
        body = {name: draw(FIELDS.get(name, JSON)) for name in fields if draw(st.booleans())}
    else:
        body = draw(JSON)
    if draw(st.integers(0, 9)) == 0:
        method = draw(st.sampled_from(("get", "post", "put", "delete", "head", "options", "patch")))
    headers = {"accept": draw(st.sampled_from(("*/*", "application/json", "")))}
    if draw(st.integers(0, 9)):
        headers["content-type"] = "application/json"
    return method, path, query, body, headers


def send(client, request):
    """The answer to a request."""
    method, path, query, body, headers = request
    content = json.dumps(body).encode() if method in ("post", "put", "patch") else None
    parameters = {name: text.encode("utf-8", "replace").decode() for name, text in query.items()}
    path = "".join(
        f"%{byte:02X}" if byte in b"%?# \r\n" or byte > 126 or byte < 32 else chr(byte)
        for byte in path.encode("utf-8", "replace")
    )
    return client.request(method, f"{HOME}{path}", params=parameters, content=content, headers=headers)


def test_no_request_fails_and_none_changes_what_it_should_not(service, kb, document):
    known = list(calls(document))
    seen = {"requests": 0, "statuses": set(), "before": state_of(kb)}

    @settings(max_examples=REQUESTS, suppress_health_check=list(HealthCheck), deadline=None)
    @given(requests(known))
    def fuzz(request):
        found = send(service, request)
        seen["requests"] += 1
        seen["statuses"].add(found.status_code)
        assert found.status_code < 500, (request, found.text)
        if found.status_code >= 400 and request[0] != "head" and "/reconcile" not in str(found.url):
            answers.Refusal.model_validate(found.json())
        after = state_of(kb)
        wrote = (request[0], request[1]) in WRITES and found.status_code in (200, 201)
        assert wrote or after == seen["before"], (request, found.text)
        seen["before"] = after

    fuzz()
    assert seen["requests"] >= REQUESTS * 0.9
    assert {200, 404, 405, 415, 422} <= seen["statuses"]
    assert sum(len(entity.fragments) for entity in kb.entities()) == kb.stats()["fragments"]


def test_every_call_has_a_description_and_its_refusals(document):
    for path, methods in document["paths"].items():
        for call in methods.values():
            assert call.get("description"), path
            if path.startswith("/api/"):
                assert {"401", "403", "404", "422", "503"} <= call["responses"].keys()


def test_the_examples_are_what_they_are_examples_of(document):
    """Those of answers fit their schemas, and those of requests are taken."""
    seen = set()
    for module in (answers, bodies):
        for model in vars(module).values():
            extra = getattr(model, "model_config", {}).get("json_schema_extra", {})
            for example in extra.get("examples", []):
                model.model_validate(example)
                assert document["components"]["schemas"][model.__name__]["examples"]
                seen.add(model.__name__)
    assert {"Fragments", "Records", "Judgement", "Undo", "Page", "Shown", "Events", "Refusal"} <= seen


def test_the_document_needs_no_token_and_loads_nothing(people):
    app = create_app(people)
    with client_of(app) as client:
        assert client.get("/openapi.json").json()["openapi"].startswith("3.1")
        assert client.get("/docs").status_code == client.get("/redoc").status_code == 404
