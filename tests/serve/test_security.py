"""Nobody comes in who should not, and values stay text."""

import csv
import io
import json
import re

import pytest

from partita.serve import create_app, security
from partita.serve.exporting import as_text
from partita.serve.security import LARGEST, POLICY, SCOPES, Token, tokens_of
from tests.serve.conftest import API, HOME, HOSTILE, client_of, state_of

READ, JUDGE = "read-0123456789abcdef", "judge-0123456789abcdef"
JSON = {"content-type": "application/json"}
GETS = (
    *("entities", "entities/E1", "entities/E1/rows", "entities/E1/alternatives", "entities/E1/together"),
    *("fragments/f1", "explain?first=E1&second=E2", "questions", "judgements", "events", "stats", "schema"),
    *("honesty", "export"),
)
POSTS = {
    "fragments": {"fragments": [{"id": "new", "name": "Ada"}]},
    "judgements": {"kind": "unsure", "first": "E1", "second": "E2"},
    "undo": {},
}
MATCH = {"record": {"name": "Ada Lovelace"}}


@pytest.fixture
def closed(copy, tmp_path):
    """A service with tokens."""
    path = tmp_path / "tokens"
    path.write_text(f"# who may\nread {READ}\n\njudge {JUDGE} ann of accounts\n")
    with client_of(create_app(copy, tokens=tokens_of(path))) as client:
        yield client


def bearing(token):
    """The header that a token is sent in."""
    return {"authorization": f"Bearer {token}"}


# ---------------------------------------------------------------------- tokens


def test_without_a_token_there_is_nothing_but_health_and_the_page(closed):
    assert closed.get(f"{HOME}/health").json()["status"] == "ok"
    assert closed.get(f"{HOME}/").status_code == 200
    wrong = [
        {},
        bearing("x"),
        bearing(READ[:-1]),
        bearing(f"{READ}x"),
        {"authorization": READ},
        bearing("é" * 20),
    ]
    for path in (*(f"api/v1/{path}" for path in GETS), "reconcile", "api/v1/nothing"):
        for headers in wrong:
            found = closed.get(f"{HOME}/{path}", headers={k: v.encode() for k, v in headers.items()})
            assert found.status_code == 401, path
            assert found.json()["error"]["kind"] == "unauthorized"
            assert found.headers["www-authenticate"] == "Bearer"
    for path, body in (POSTS | {"match": MATCH}).items():
        assert closed.post(f"{API}/{path}", json=body).status_code == 401


def test_a_token_to_read_with_does_not_judge(closed):
    before = state_of(closed.app.state.desk.kb)
    for path in GETS:
        assert closed.get(f"{API}/{path}", headers=bearing(READ)).status_code == 200, path
    assert closed.post(f"{API}/match", json=MATCH, headers=bearing(READ)).status_code == 200
    for path, body in POSTS.items():
        for sent in (body, {"nonsense": 1}):
            found = closed.post(f"{API}/{path}", json=sent, headers=bearing(READ))
            assert (found.status_code, found.json()["error"]["kind"]) == (403, "forbidden"), path
    assert state_of(closed.app.state.desk.kb) == before


def test_a_token_to_judge_with_also_reads_and_has_a_name(closed):
    assert closed.get(f"{API}/stats", headers=bearing(JUDGE)).status_code == 200
    found = closed.post(f"{API}/judgements", json=POSTS["judgements"], headers=bearing(JUDGE))
    assert (found.status_code, found.json()["user"]) == (201, "ann of accounts")


def test_all_tokens_are_compared_in_constant_time(closed, monkeypatch):
    seen = []
    real = security.hmac.compare_digest
    monkeypatch.setattr(security.hmac, "compare_digest", lambda a, b: seen.append(b) or real(a, b))
    for token in (READ, JUDGE, "wrong"):
        seen.clear()
        closed.get(f"{API}/stats", headers=bearing(token))
        assert seen == [READ.encode(), JUDGE.encode()]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("", "has no token"),
        ("# judge\n", "has no token"),
        ("write 0123456789abcdef", "line 1: .*no scope"),
        ("judge short", "16 plain characters"),
        ("judge 0123456789abcdéf", "16 plain characters"),
    ],
)
def test_token_files_that_are_none(tmp_path, text, hint):
    (tmp_path / "tokens").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=hint):
        tokens_of(tmp_path / "tokens")


def test_a_bare_token_may_judge(tmp_path):
    (tmp_path / "tokens").write_text("0123456789abcdef\n")
    assert tokens_of(tmp_path / "tokens") == [Token(b"0123456789abcdef", SCOPES["judge"])]


# ---------------------------------------------------------------------- from where


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "", "localhost."]
)
def test_another_name_for_this_machine_is_refused(service, host):
    for path in ("health", "", "api/v1/stats", "reconcile"):
        assert service.get(f"{HOME}/{path}", headers={"host": host}).status_code == 403


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:8000", "LOCALHOST:1", "[::1]:8000"])
def test_the_names_of_this_machine(service, host):
    assert service.get(f"{API}/stats", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:9999", "http://127.0.0.1:8000.x"]
)
def test_a_foreign_page_changes_nothing(service, kb, origin):
    before = state_of(kb)
    for path, body in POSTS.items():
        found = service.post(f"{API}/{path}", json=body, headers={"origin": origin})
        assert (found.status_code, found.json()["error"]["kind"]) == (403, "forbidden")
    assert state_of(kb) == before
    allowed = service.get(f"{API}/stats", headers={"origin": origin})
    assert not any(name.startswith("access-control") for name in allowed.headers)


def test_its_own_page_may_judge(service):
    found = service.post(f"{API}/judgements", json=POSTS["judgements"], headers={"origin": HOME})
    assert found.status_code == 201


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", None]
)
def test_only_json_is_taken(service, kb, kind):
    before = state_of(kb)
    for path, body in (POSTS | {"match": MATCH}).items():
        headers = {} if kind is None else {"content-type": kind}
        found = service.post(f"{API}/{path}", content=json.dumps(body), headers=headers)
        assert found.status_code == 415
    assert state_of(kb) == before


# ---------------------------------------------------------------------- how much, and what


def test_a_body_that_is_too_large(service, kb):
    before = state_of(kb)
    large = json.dumps({"fragments": [{"id": "x", "name": "x" * LARGEST}]}).encode()

    def pieces():
        yield from (large[start : start + 100_000] for start in range(0, len(large), 100_000))

    for content in (large, pieces()):  # the second does not say how large it is
        found = service.post(f"{API}/fragments", content=content, headers=JSON)
        assert (found.status_code, found.json()["error"]["kind"]) == (413, "too_large")
    many = {"fragments": [{"id": str(k), "name": "Ada"} for k in range(1001)]}
    assert service.post(f"{API}/fragments", json=many).status_code == 422
    assert service.post(f"{API}/match", json={"records": [{"name": "Ada"}] * 201}).status_code == 422
    assert state_of(kb) == before


@pytest.mark.parametrize("body", ["{", "[" * 100_000, "1" * 5000, '{"fragments": NaN}', b"\xff\xfe{", ""])
def test_json_that_is_none(service, kb, body):
    before = state_of(kb)
    for path in (*POSTS, "match"):
        assert service.post(f"{API}/{path}", content=body, headers=JSON).status_code == 422
    assert state_of(kb) == before


INJECTED = (
    *(
        "' OR 1=1 --",
        "E1'; DROP TABLE entities; --",
        '"',
        "%",
        "_",
        "\\",
        "../../etc/passwd",
        "..",
        "E1\r\nX: y",
    ),
    *(
        "<script>alert(1)</script>",
        "=HYPERLINK(1)",
        "\u202e",
        "\U0001f600",
        "E" + "9" * 30,
        "E-1",
        "E１",
        "x" * 999,
    ),
)


@pytest.mark.parametrize("text", INJECTED)
def test_injected_text_is_only_text(service, kb, text):
    before = state_of(kb)
    asked = [
        ("entities", {"query": text}),
        ("entities", {"where": f"name={text}"}),
        ("entities", {"where": f"{text}=x"}),
        ("explain", {"first": text, "second": text[::-1]}),
        ("questions", {"passed": f"{text},f1"}),
        ("events", {"entity": text}),
        ("export", {"entity": text}),
        ("entities/E1", {"as_of": text}),
    ]
    found = [service.get(f"{API}/{path}", params=parameters) for path, parameters in asked]
    quoted = re.sub(r"[^A-Za-z0-9]", lambda match: "".join(f"%{b:02X}" for b in match[0].encode()), text)
    if text != "..":  # which a client takes for the folder above
        found += [
            service.get(f"{API}/{path}{quoted}") for path in ("entities/", "fragments/", "", "reconcile/")
        ]
    found.append(service.post(f"{API}/judgements", json={"kind": "confirm", "first": text, "second": "f1"}))
    for answer in found:
        assert answer.status_code in (200, 404, 422), answer.text
        assert "x" not in answer.headers
        assert answer.headers["content-type"] in ("application/json", "application/x-ndjson")
        assert answer.headers["content-security-policy"] == POLICY
    assert state_of(kb) == before


def test_a_nul_is_refused_before_a_database_sees_it(service):
    for path in ("entities?query=%00", "entities/E%001", "fragments/%00", "explain?first=%00&second=f1"):
        assert service.get(f"{API}/{path}").status_code == 422


@pytest.mark.parametrize(
    "path", ["../pyproject.toml", "..%2f..%2fapp.py", "%2e%2e/app.py", "..\\app.py", "//etc/passwd"]
)
def test_the_page_is_all_that_there_is_of_files(service, path):
    found = service.get(f"{HOME}/{path}")
    assert found.status_code == 404
    assert b"import" not in found.content


def test_every_answer_has_the_headers(service):
    for path in ("", "health", "openapi.json", "api/v1/stats", "api/v1/nothing", "app.js", "reconcile"):
        headers = service.get(f"{HOME}/{path}").headers
        assert headers["content-security-policy"] == POLICY
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "set-cookie" not in headers
        assert "server" not in headers
    assert service.get(f"{API}/stats").headers["cache-control"] == "no-store"
    for path, kind in {
        "": "text/html",
        "app.js": "text/javascript",
        "style.css": "text/css",
        "icon.svg": "image/svg",
    }.items():
        assert service.get(f"{HOME}/{path}").headers["content-type"].startswith(kind)


# ---------------------------------------------------------------------- exports


def test_a_table_has_no_formulas(service):
    for what in ("entities", "golden", "clusters", "fragments", "events"):
        found = service.get(f"{API}/export", params={"what": what, "format": "csv"})
        assert found.headers["content-disposition"] == f'attachment; filename="partita-{what}.csv"'
        assert found.headers["content-type"] == "text/csv; charset=utf-8"
        rows = list(csv.reader(io.StringIO(found.text)))
        assert len(rows) > 1
        for cell in (cell for row in rows for cell in row):
            assert not cell.startswith(("=", "+", "@", "\t", "\r")), cell


def test_json_lines_have_values_as_they_are(service, kb):
    found = service.get(f"{API}/export", params={"entity": kb.entity_of("evil").id})
    [entity] = map(json.loads, found.text.splitlines())
    values = {value["value"] for name in ("name", "note") for value in entity["properties"][name]}
    assert {HOSTILE[0]["name"], HOSTILE[0]["note"]} <= values


@pytest.mark.parametrize("what", ["entities", "golden", "clusters", "fragments", "events"])
def test_an_export_is_that_of_the_knowledge_base_or_a_part_of_it(service, kb, tmp_path, what):
    lines = service.get(f"{API}/export", params={"what": what}).text.splitlines()
    if what != "events":
        kb.export(tmp_path / "all.jsonl", what)
        assert lines == (tmp_path / "all.jsonl").read_text(encoding="utf-8").splitlines()
    ids = [entity.id for entity in kb.entities(limit=2)]
    some = service.get(f"{API}/export", params={"what": what, "entity": ids}).text.splitlines()
    assert set(some) < set(lines)
    fields = {"entities": "id", "golden": "id", "clusters": "cluster_id", "fragments": "entity"}
    if what != "events":
        assert {json.loads(line)[fields[what]] for line in some} == set(ids)
    assert service.get(f"{API}/export", params={"what": what, "entity": "E999"}).status_code == 404


def test_a_file_of_one_entity_is_called_by_its_id(service, kb):
    entity = next(kb.entities())
    for id in (entity.id, f"entity:{entity.id}"):
        found = service.get(f"{API}/export", params={"what": "fragments", "format": "csv", "entity": id})
        assert f'filename="partita-{entity.id}-fragments.csv"' in found.headers["content-disposition"]
    assert (
        'filename="partita-golden.jsonl"'
        in service.get(f"{API}/export?what=golden").headers["content-disposition"]
    )


def test_exports_leave_no_file_behind(service, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    service.get(f"{API}/export")
    service.get(f"{API}/export", params={"entity": "E999"})
    assert list((tmp_path / "temporary").iterdir()) == []


@pytest.mark.parametrize("text", ["=1+1", "+44 20 7946", "-x", "@a", "\tx", "\rx", "-", "--1", "=", "-1+1"])
def test_what_looks_like_a_formula_is_guarded(text):
    assert as_text(text) == f"'{text}"


@pytest.mark.parametrize("text", ["-5", "+3.25", "-1e9", "1,000", "a=b", "", "'=1"])
def test_what_is_none_is_left_as_it_is(text):
    assert as_text(text) == text
