"""What docs/serve.md shows is so."""

import json
import re
import shlex
import subprocess

import pytest
from typer.testing import CliRunner

from partita.cli import app
from tests.helpers.files import ROOT
from tests.serve.test_live import running

PAGE = (ROOT / "docs" / "serve.md").read_text(encoding="utf-8")
ADDRESS = "http://127.0.0.1:8765"


def blocks(kind):
    """The blocks of code of one kind."""
    return re.findall(rf"^```{kind}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """The address of a service of the page's knowledge base."""
    folder = tmp_path_factory.mktemp("page")
    [text] = [
        found for block in blocks("sh") for found in re.findall(r"<<'END'\n(.*?)^END", block, re.M | re.S)
    ]
    (folder / "people.jsonl").write_text(text, encoding="utf-8")
    built = CliRunner().invoke(app, ["build", str(folder / "people.jsonl"), "-o", str(folder / "people.db")])
    assert built.exit_code == 0, built.output
    with running(folder / "people.db") as (url, _):
        yield url


def curl(line, url, folder):
    """What a line prints, comments aside."""
    words = shlex.split(line.replace(ADDRESS, url), comments=True)
    assert words[0] == "curl"
    done = subprocess.run(["curl", "-sS", *words[1:]], capture_output=True, text=True, cwd=folder, timeout=60)
    return done.stdout


def test_the_calls_of_the_page(service, tmp_path):
    if subprocess.run(["curl", "--version"], capture_output=True).returncode:
        pytest.skip("there is no curl")
    lines = [line for block in blocks("sh") for line in block.splitlines() if line.startswith("curl")]
    lines = [line for line in lines if ADDRESS in line and "-N" not in line]  # which goes on for ever
    assert len(lines) == 10
    for line in lines:
        found = curl(line, service, tmp_path)
        assert bool(found) != ("-O" in line)  # which is a file
        assert '"error"' not in found, (line, found)
    [table] = tmp_path.glob("*.csv")
    assert table.read_text(encoding="utf-8").startswith("id,fragments")


def test_the_answers_of_the_page(service, tmp_path):
    if subprocess.run(["curl", "--version"], capture_output=True).returncode:
        pytest.skip("there is no curl")
    shown = [
        pair for block in blocks("console") for pair in re.findall(r"^\$ (.*)\n(.*)$", block, re.MULTILINE)
    ]
    assert len(shown) == 4
    for line, answer in shown:
        assert json.loads(curl(line, service, tmp_path)) == json.loads(answer)


def test_the_tokens_of_the_page(tmp_path):
    from partita.serve.security import tokens_of

    [text] = blocks("text")
    (tmp_path / "tokens.txt").write_text(text, encoding="utf-8")
    assert [token.name for token in tokens_of(tmp_path / "tokens.txt")] == [None, "ann"]
