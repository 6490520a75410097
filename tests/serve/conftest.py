"""A knowledge base of sixty fragments, built once, and services of copies of it."""

import shutil
from contextlib import contextmanager

import pytest

pytest.importorskip("fastapi", reason="the service needs the extra 'serve'")

from fastapi.testclient import TestClient

import partita.kb
from partita.serve import create_app
from tests.helpers.people import fragments

HOME = "http://127.0.0.1:8000"
API = f"{HOME}/api/v1"
HOSTILE = [
    {"id": "evil", "name": "<script>alert(1)</script>", "note": '=HYPERLINK("http://evil.example")'},
    {"id": "a/b?c#d", "name": "<script>alert(1)</script>", "note": "+cmd|' /C calc'!A0", "change": -5},
]


@pytest.fixture(scope="session")
def people(tmp_path_factory):
    """A file that is to be copied before it is changed."""
    path = tmp_path_factory.mktemp("people") / "kb.db"
    with partita.kb.open(path) as kb:
        kb.add(fragments(60)[0] + HOSTILE)
    return path


@pytest.fixture
def copy(people, tmp_path):
    """A copy."""
    return shutil.copy(people, tmp_path / "copy.db")


@pytest.fixture
def service(copy):
    """A client of a service of a copy, to whom everybody on this machine is known."""
    with client_of(create_app(copy)) as client:
        yield client


@contextmanager
def client_of(app, **headers):
    """A client, and the application for as long as it is used."""
    with TestClient(app, base_url=HOME, raise_server_exceptions=False, headers=headers) as client:
        yield client


@pytest.fixture
def kb(service):
    """The knowledge base behind the service."""
    return service.app.state.desk.kb


def state_of(kb):
    """What a request may change: the number of events, of fragments and of judgements."""
    stats = kb.stats()
    return stats["events"], stats["fragments"], stats["judgements"], stats["revision"]
