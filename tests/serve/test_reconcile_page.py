"""What docs/reconcile.md and docs/mcp.md show is so."""

import json
import re
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

import partita.kb
from partita.cli import app as command
from partita.kb.io import read
from partita.serve import create_app
from partita.serve.mcp.tools import readers, writers
from partita.serve.reconcile.candidates import AGAINST, CERTAIN
from partita.serve.reconcile.extending import OF_ENTITIES
from partita.serve.reconcile.queries import MOST_QUERIES

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def contacts(tmp_path_factory):
    """The knowledge base of docs/knowledge-base.md."""
    folder = tmp_path_factory.mktemp("contacts")
    page = (DOCS / "knowledge-base.md").read_text(encoding="utf-8")
    table = folder / "contacts.csv"
    table.write_text(re.search(r"cat > contacts.csv <<'END'\n(.*?)END\n", page, re.S)[1], encoding="utf-8")
    path = folder / "contacts.db"
    with partita.kb.open(path) as kb:
        kb.add([row for _, row in read(table)])
    return path


def test_the_query_of_the_page_is_answered_as_it_shows(contacts):
    page = (DOCS / "reconcile.md").read_text(encoding="utf-8")
    asked, shown = (json.loads(text) for text in re.findall(r"^```json\n(.*?)^```$", page, re.M | re.S))
    with TestClient(create_app(contacts), base_url="http://127.0.0.1:8765") as client:
        answer = client.post("/reconcile", data={"queries": json.dumps(asked)}).json()
    [found], [wanted] = answer["q0"]["result"], shown["q0"]["result"]
    numbers = {one["id"]: one["value"] for one in found.pop("features")}
    assert numbers == pytest.approx({one["id"]: one["value"] for one in wanted.pop("features")}, abs=0.02)
    assert found.pop("score") == pytest.approx(wanted.pop("score"), abs=0.1)
    assert found == wanted


def test_the_numbers_of_the_page_are_those_of_the_code():
    page = (DOCS / "reconcile.md").read_text(encoding="utf-8")
    assert f"above {CERTAIN} and" in page
    assert f"more than {-AGAINST:g} nats" in page
    assert f"have {MOST_QUERIES:,} queries" in page
    assert all(f"`{name}`" in page for name in OF_ENTITIES)


def test_the_tools_of_the_page_are_those_there_are():
    page = (DOCS / "mcp.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(\w+)` \|", page, re.M)
    assert listed == [tool.name for tool in [*readers(), *writers("mcp")]]
    [servers] = (json.loads(text) for text in re.findall(r"^```json\n(.*?)^```$", page, re.M | re.S))
    assert servers["mcpServers"]["people"]["args"][0] in [
        own.callback.__name__ for own in command.registered_commands
    ]
