"""What somebody on the same machine may try, over a socket of their own: nothing of it gets in, or keeps others out."""

import json
import signal
import socket
import threading
import time

import pytest
import uvicorn

import partita.kb
from partita.serve import create_app, security
from partita.serve.running import Server
from tests.helpers.people import fragments


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    path = tmp_path_factory.mktemp("hostile") / "people.db"
    with partita.kb.open(path) as kb:
        kb.add(fragments(20, seed=2)[0])
    listening = socket.create_server(("127.0.0.1", 0))
    app = create_app(path)
    server = Server(uvicorn.Config(app, log_level="critical", lifespan="on"), app.state.desk)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    yield listening.getsockname()[1]
    server.handle_exit(signal.SIGTERM, None)
    thread.join(60)
    assert not thread.is_alive()
    listening.close()


def sent(port, *lines, body=b"", host=None):
    """The status and the body that bytes are answered with."""
    own = f"127.0.0.1:{port}" if host is None else host
    head = [lines[0], f"Host: {own}", "Connection: close", *lines[1:], "", ""]
    with socket.create_connection(("127.0.0.1", port), timeout=60) as line:
        line.sendall("\r\n".join(head).encode("latin-1") + body)
        answer = b"".join(iter(lambda: line.recv(65536), b""))
    begun, _, rest = answer.partition(b"\r\n\r\n")
    return int(begun.split()[1]), begun, rest


JSON = "Content-Type: application/json"


@pytest.mark.parametrize("path", ["/api/v1/stats", "/reconcile", "/reconcile/preview?id=E1", "/"])
@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "127.0.0.1@evil", "[::1", "0.0.0.0", ""]
)
def test_names_that_lead_here_are_not_answered(port, path, host):
    assert sent(port, f"GET {path} HTTP/1.1", host=host)[0] == 403


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1:3333", "http://127.0.0.1.evil.example"]
)
def test_pages_of_other_origins_change_nothing(port, origin):
    body = json.dumps({"kind": "unsure", "first": "f1", "second": "f2"}).encode()
    lines = ["POST /api/v1/judgements HTTP/1.1", JSON, f"Origin: {origin}", f"Content-Length: {len(body)}"]
    assert sent(port, *lines, body=body)[0] == 403
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        simple = [lines[0], f"Content-Type: {kind}", lines[3]]
        assert sent(port, *simple, body=body)[0] == 415


@pytest.mark.parametrize(
    "path",
    [
        "/../desk.py",
        "/..%2fdesk.py",
        "/%2e%2e/desk.py",
        "/..%5cdesk.py",
        "//etc/passwd",
        "/%2fetc%2fpasswd",
        "/vendor/..%2f..%2fdesk.py",
        "/%c0%ae%c0%ae/desk.py",
        "/__init__.py",
        "/" + "../" * 50 + "etc/passwd",
    ],
)
def test_no_file_but_the_page_is_served(port, path):
    assert sent(port, f"GET {path} HTTP/1.1")[0] == 404


def test_lines_in_an_address_stay_in_it(port):
    for path in (
        "/?x=%0d%0aX-Injected:y",
        "/%0d%0aX-Injected:y",
        "/api/v1/export?what=entities%0d%0aX-Injected:y",
    ):
        assert b"x-injected" not in sent(port, f"GET {path} HTTP/1.1")[1].lower()


@pytest.mark.parametrize("path", ["/api/v1/match", "/api/v1/fragments", "/api/v1/judgements", "/api/v1/undo"])
@pytest.mark.parametrize(
    "body",
    [
        b"[" * 200_000,
        b'{"record":' + b'{"a":' * 50_000,
        b'{"record": {"a": NaN}}',
        b'{"record": {"a": 1e999}}',
        b'{"record": {"a": %s}}' % (b"9" * 5000),
        b'{"record": {"\\ud800": "x"}}',
        b'{"record": {"a\\u0000": "x"}}',
        b'{"record": {"name": "\xff"}}',
        b"null",
        b"",
    ],
)
def test_bodies_that_are_none_are_refused(port, path, body):
    assert sent(port, f"POST {path} HTTP/1.1", JSON, f"Content-Length: {len(body)}", body=body)[0] == 422


def test_a_body_that_is_too_large_is_refused_before_it_has_come(port):
    for path in ("/api/v1/match", "/reconcile"):
        assert sent(port, f"POST {path} HTTP/1.1", JSON, "Content-Length: 99999999999", body=b"{")[0] == 413


def test_who_stalls_is_not_waited_for(port, monkeypatch):
    monkeypatch.setattr(security, "SLOWEST", 0.3)
    for path, kind in (
        ("/api/v1/match", "application/json"),
        ("/reconcile", "application/x-www-form-urlencoded"),
    ):
        begun = time.monotonic()
        lines = [f"POST {path} HTTP/1.1", f"Content-Type: {kind}", "Content-Length: 4000"]
        assert sent(port, *lines, body=b"{")[0] == 408
        assert time.monotonic() - begun < 30


def test_many_who_wait_keep_nobody_out(port):
    held = []
    try:
        for k in range(200):
            line = socket.create_connection(("127.0.0.1", port), timeout=10)
            feed = b"Accept: text/event-stream\r\n\r\n" if k % 2 else b"X: "
            line.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n" % port + feed)
            held.append(line)
        assert sent(port, "GET /health HTTP/1.1")[0] == 200
        assert sent(port, "GET /api/v1/stats HTTP/1.1")[0] == 200
    finally:
        for line in held:
            line.close()
