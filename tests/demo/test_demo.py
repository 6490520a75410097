"""``partita demo``: what it prints and leaves behind."""

import re

import pytest
from typer.testing import CliRunner

import partita.kb
from partita.cli import app
from partita.demo import entities


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """What the demonstration has printed, and where it was run."""
    folder = tmp_path_factory.mktemp("demo")
    return run(folder), folder


def run(folder):
    return CliRunner().invoke(app, ["demo", "-o", str(folder / "demo.png"), "--kb", str(folder / "demo.db")])


def test_fragments_are_as_they_should_be():
    rows, truth = entities.fragments()
    assert 280 <= len(rows) <= 320
    assert 55 <= len(set(truth.values())) <= 65
    assert len({row["id"] for row in rows}) == len(rows)
    assert any("Gutenberg" in name for row in rows for name in row["properties"].get("name", []))


def test_it_shows_entities_a_question_its_waterfall_and_a_merge_undone(shown):
    result, _ = shown
    assert result.exit_code == 0, result.output
    for part in ("fragments about 65 things", "The question most worth asking", "log-odds", "Otherwise:"):
        assert part in result.output
    story = result.output[result.output.index("A merge that later evidence has undone") :]
    assert re.search(r"were one entity, E\d+", story.replace("\n", " "))
    assert "Then came" in story


def test_the_merge_was_one_and_is_undone(shown):
    _, folder = shown
    with partita.kb.open(folder / "demo.db") as kb:
        event, (kept, gone) = entities.undone(kb)
        before = kb.entity(event.entity, as_of=event.number - 1).fragments
        assert {*kept, *gone} <= set(before)
        assert all(kb.entity_of(a).id != kb.entity_of(b).id for a in kept for b in gone)


def test_it_leaves_a_knowledge_base_and_a_picture(shown):
    result, folder = shown
    assert (folder / "demo.png").stat().st_size > 10_000
    assert str(folder / "demo.db") in result.output.replace("\n", "")
    with partita.kb.open(folder / "demo.db", create=False) as kb:
        assert kb.evaluate(entities.fragments()[1])["f1"] > 0.75


def test_it_replaces_its_own_file_and_no_other(shown):
    _, folder = shown
    assert run(folder).exit_code == 0
    with partita.kb.open(folder / "demo.db") as kb:
        kb.confirm("f001", "f002")
    refused = run(folder)
    assert refused.exit_code == 1
    assert "name another file" in refused.output.replace("\n", " ")
    with partita.kb.open(folder / "demo.db") as kb:
        assert len(kb.judgements()) == 1
