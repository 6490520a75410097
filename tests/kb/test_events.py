"""Events: who follows them, and nothing else, is in step; where nothing comes in there are none."""

import contextlib
import json
import random
import sqlite3

import pytest
from typer.testing import CliRunner

import partita.kb
from partita.cli import app
from partita.kb.clustering import Clustering
from partita.kb.knowledge_base import KnowledgeBase
from partita.kb.store.database import get
from tests.helpers.downstream import Follower, entities_of
from tests.helpers.people import fragments
from tests.helpers.stores import assert_same

ROWS, _ = fragments(60, seed=3)
CHANGED = [{**row, "properties": row["properties"] | {"occupation": ["poet"]}} for row in ROWS]


def two(kb, rng):
    return [entity.id for entity in rng.sample(list(kb.entities()), 2)]


DEEDS = {
    "add": lambda kb, rng: kb.add(rng.sample(ROWS, 8)),
    "update": lambda kb, rng: kb.add(rng.sample(CHANGED, 5)),
    "remove": lambda kb, rng: kb.remove(*(rng.choice(entity.fragments) for entity in kb.entities(limit=2))),
    "confirm": lambda kb, rng: kb.confirm(*two(kb, rng)),
    "separate": lambda kb, rng: kb.separate(*two(kb, rng)),
    "split": lambda kb, rng: kb.split(next(kb.entities()).id, by="born"),
    "undo": lambda kb, rng: kb.undo(),
    "undo any": lambda kb, rng: kb.undo(rng.choice(kb.judgements() or [None]).number),
    "refine": lambda kb, rng: kb.refine(),
    "relearn": lambda kb, rng: kb.relearn(),
}


@pytest.mark.parametrize("seed", range(2))
def test_a_table_that_follows_the_printed_events_is_in_step(tmp_path, seed):
    path, rng, follower, kinds = tmp_path / "kb.db", random.Random(seed), Follower(), set()
    with partita.kb.open(path, n_particles=5) as kb:
        kb.add(ROWS[:20])
    for _ in range(6):
        with partita.kb.open(path) as kb:
            for deed in rng.sample(sorted(DEEDS), 4):
                with contextlib.suppress(ValueError, KeyError, AttributeError):
                    DEEDS[deed](kb, rng)
        command = ["events", str(path), "--since", str(follower.seen), "--limit", "0", "--json"]
        for line in CliRunner().invoke(app, command).stdout.splitlines():
            follower.follow(line)
        with partita.kb.open(path) as kb:
            assert follower.entities() == entities_of(kb)
            kinds = {event.kind for event in kb.events()}
    assert kinds >= {"created", "joined", "merged", "split", "updated", "left", "renamed", "undone"}


def test_a_new_version_is_told(tmp_path):
    """Of a fragment among others, of one alone that stays so, and of one alone that joins others."""
    with partita.kb.open(tmp_path / "kb.db") as kb:
        kb.add(ROWS[:30])
        large = next(kb.entities())
        kb.add([{"id": "alone", "name": "Zygmunt Xylander", "place": "Ouagadougou"}])
        alone = kb.entity_of("alone")
        assert alone.fragments == ["alone"]
        for id, said, wanted in (
            (large.fragments[0], {"name": "Zacharias Quux"}, [(large.id, None)]),
            ("alone", {"name": "Zygmunt Xylander", "place": "Timbuktu"}, [(alone.id, alone.id)]),
            ("alone", kb.fragment(large.fragments[1]).properties, [(alone.id, None)]),
        ):
            at = kb.events()[-1].number
            kb.add([{"id": id, "properties": {key: said[key] for key in said}}])
            told = [event for event in kb.events(since=at) if event.kind == "updated"]
            assert [(event.from_entity, event.to_entity) for event in told] == wanted
            assert [event.fragments for event in told] == [[id]]
            assert not [event for event in kb.events(since=at) if event.kind == "left"]


def contents(path):
    """Every row of every table."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: connection.execute(f"SELECT rowid, * FROM {name}").fetchall() for name in sorted(names)}


@pytest.fixture
def data(tmp_path):
    """A file of fragments, one a line, and the same with a line more."""
    lines = [json.dumps(row) + "\n" for row in ROWS]
    (tmp_path / "same.jsonl").write_text("".join(lines[:50]), encoding="utf-8")
    (tmp_path / "more.jsonl").write_text("".join(lines[:51]), encoding="utf-8")
    return tmp_path


def run(*arguments):
    found = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert found.exit_code == 0, found.output
    return found.stdout


def test_to_build_again_from_an_unchanged_file_changes_nothing_at_all(data):
    kb = data / "kb.db"
    run("build", data / "same.jsonl", "-o", kb)
    with partita.kb.open(kb) as base:  # whose fragments are in what is added again
        base.separate("f0", "f1")
        base.confirm(*(entity.id for entity in base.entities(limit=2)))
    before = contents(kb)
    assert "50 unchanged" in run("build", data / "same.jsonl", "-o", kb)
    assert contents(kb) == before
    assert "no entity changed" in run("add", kb, data / "same.jsonl")
    assert contents(kb) == before
    run("build", data / "more.jsonl", "-o", kb)
    assert contents(kb) != before


def test_only_what_has_come_in_is_refined_at_the_end(data, monkeypatch):
    seen, refine = [], Clustering.refine

    def spy(clustering, after=None, most=None, **more):
        if most is None:
            seen.append(after)
        return refine(clustering, after, most, **more)

    monkeypatch.setattr(Clustering, "refine", spy)
    run("build", data / "same.jsonl", "-o", data / "kb.db")
    run("build", data / "more.jsonl", "-o", data / "kb.db")
    run("build", data / "more.jsonl", "-o", data / "kb.db")
    assert seen == [None, None, 50, 50]


def test_a_build_that_was_interrupted_ends_as_one_that_was_not(data, monkeypatch):
    """Whether that was while adding, before the refinement, or in the middle of it."""
    build = ("build", data / "same.jsonl", "--batch", 10, "-o")
    run(*build, data / "calm.db")
    finish = KnowledgeBase.finish
    for name, sweeps, stop in (
        ("adding", 2, lambda kb, **given: None),
        ("refining", 1, lambda kb, **given: finish(kb, progress=lambda done: 1 / 0)),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(KnowledgeBase, "finish", stop)
            CliRunner().invoke(app, [str(part) for part in (*build, data / f"{name}.db")])
        with partita.kb.open(data / f"{name}.db") as kb, kb.store.reading() as connection:
            assert get(connection, "unrefined") == {"after": 0, "sweeps": sweeps}
        run(*build, data / f"{name}.db")
        with partita.kb.open(data / f"{name}.db") as kb, partita.kb.open(data / "calm.db") as calm:
            assert_same(kb, calm)
