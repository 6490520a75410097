"""The first fragments all at once: what a sampler that fits in blocks says, and a stream that goes on from there."""

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys

import numpy as np
import pytest

import partita as pt
import partita.kb
from partita.kb import StoreError, ingest, loading
from partita.kb.fragments import Fragment, as_fragments
from partita.kb.store import database, journal
from partita.models.records.record import Record
from partita.smc.sampler import ODDS
from tests.helpers.downstream import Follower, entities_of
from tests.helpers.files import ROOT
from tests.helpers.people import fragments
from tests.helpers.stores import assert_same

ROWS, TRUTH = fragments(60)
IDS = [row["id"] for row in ROWS]
SAID = [row["properties"] for row in ROWS]


@pytest.fixture
def kb(url):
    """A knowledge base that was loaded."""
    with partita.kb.open(url) as kb:
        assert kb.add(ROWS, bulk=True, n_jobs=2) == (60, 0, 0)
        yield kb


def sampler_of(kb):
    """A sampler with the same model and seed."""
    with kb.store.reading() as connection:
        model = Record.from_json(database.get(connection, "model"))
    return pt.SplitSMC(model, n_particles=20, keys="auto", longest_odds=ODDS, random_state=0)


def contents(path):
    """Every row of every table but for the times of events."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        held = {name: connection.execute(f"SELECT rowid, * FROM {name}").fetchall() for name in sorted(names)}
    return held | {"events": [(*row[:2], *row[3:]) for row in held["events"]]}


# ---------------------------------------------------------------------- what comes out


def test_entities_are_the_clusters_of_a_sampler_that_fits_in_blocks(kb):
    sampler = sampler_of(kb).fit(SAID, n_jobs=1)
    assert kb.labels() == dict(zip(IDS, sampler.labels_.tolist(), strict=True))
    together = sampler.posterior_.together(np.arange(60)[:, None], np.arange(60))
    assert kb.together(IDS, IDS) == pytest.approx(together, abs=1e-12)
    for k, id in enumerate(IDS):  # numbered in order of their first fragments
        assert kb.entity_of(id).id == f"E{sampler.labels_[k] + 1}"


def test_a_stream_goes_on_as_from_a_sampler_that_has_fitted_in_blocks(url, monkeypatch):
    monkeypatch.setattr(ingest, "STRIDE", 1000)  # so that nothing is looked at again on the way
    with partita.kb.open(url) as kb:
        kb.add(ROWS[:45], bulk=True)
    with partita.kb.open(url) as kb:
        kb.add(ROWS[45:])
        sampler = sampler_of(kb).fit(SAID[:45], n_jobs=1).partial_fit(SAID[45:])
        assert kb.labels() == dict(zip(IDS, sampler.labels_.tolist(), strict=True))


def test_the_same_for_any_number_of_threads_and_any_portions(tmp_path, monkeypatch):
    held = []
    for n_jobs, portion in ((1, 5000), (2, 7), (None, 60)):
        monkeypatch.setattr(loading, "PORTION", portion)
        monkeypatch.setattr(journal, "PORTION", portion)
        path = tmp_path / f"{n_jobs}.db"
        with partita.kb.open(path) as kb:
            kb.add(iter(ROWS), bulk=True, n_jobs=n_jobs, sweeps=1)
            kb.finish(n_jobs=n_jobs)
            kb.refine(n_jobs=n_jobs)
        held.append(contents(path))
    assert held[1:] == held[:1] * 2


def test_the_same_on_any_database_and_when_it_is_opened_again(kb, url, tmp_path):
    with partita.kb.open(tmp_path / "other.db") as other, partita.kb.open(url) as again:
        other.add(ROWS, bulk=True)
        assert_same(kb, other)
        for each in (kb, again, other):
            each.refine()  # by one after the other: the first two are the same
        assert [e.name for e in again.entities()] == [e.name for e in kb.entities()]


def test_events_and_names_are_those_of_each_fragment(kb):
    follower = Follower()
    follower.catch_up(kb)
    assert follower.entities() == entities_of(kb)
    events = kb.events()
    assert [(event.number, event.fragment) for event in events] == list(enumerate(IDS, 1))
    assert {event.kind for event in events} == {"created", "joined"}
    for entity in kb.entities():
        assert kb.entity(entity.id, as_of=60).fragments == entity.fragments
    first = kb.entity("E1", as_of=1)
    assert (first.fragments, first.name) == (IDS[:1], kb.entity("E1").name)
    assert kb.search(first.name, limit=1)[0].id == "E1"


def test_a_life_after_it(kb):
    before, sure = entities_of(kb), kb.together(IDS, IDS)
    (first, second), follower = [entity.id for entity in kb.entities(limit=2)], Follower()
    judgement = kb.confirm(first, second)
    assert kb.entity(second).id == first
    kb.undo(judgement)
    assert entities_of(kb) == before
    assert kb.together(IDS, IDS) == pytest.approx(sure, abs=1e-9)
    kb.add([ROWS[0], {**ROWS[1], "properties": ROWS[1]["properties"] | {"occupation": ["poet"]}}])
    kb.remove(IDS[2])
    kb.separate(IDS[3], IDS[4])
    kb.add([{"id": "new", **SAID[5]}])
    kb.relearn()
    follower.catch_up(kb)
    assert follower.entities() == entities_of(kb)
    assert kb.stats()["fragments"] == 60


def test_a_model_learnt_from_the_first_is_not_learnt_anew_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(loading, "LEARNT_FROM", 15)
    with partita.kb.open(tmp_path / "kb.db") as kb:
        kb.add(ROWS, bulk=True)
        kb.add([{"id": "one more", **SAID[0]}])
        assert kb.settings["learnt_from"] == 15
        assert not [event for event in kb.events() if event.detail.get("relearnt")]
        kb.relearn()
        assert kb.settings["learnt_from"] == 61


def test_phases_are_told(tmp_path):
    told = []
    with partita.kb.open(tmp_path / "kb.db") as kb:
        kb.watch(lambda *what: told.append(what))
        kb.add(ROWS, bulk=True)
    assert list(dict.fromkeys(phase for phase, _, _ in told)) == [
        "learning",
        "adding",
        "clustering",
        "writing",
    ]
    assert {("adding", 60, 60), ("clustering", 60, 60), ("writing", 60, 60)} <= set(told)


# ---------------------------------------------------------------------- what does not come in


def is_empty(kb):
    return kb.stats()["fragments"] == kb.stats()["events"] == kb.settings["learnt_from"] == 0


def test_a_killed_load_leaves_an_empty_knowledge_base(url):
    program = (
        "import os, signal, sys, partita.kb\n"
        "from partita.kb.session import Session\n"
        "from tests.kb.test_loading import ROWS\n"
        "Session.begin = lambda *given: os.kill(os.getpid(), signal.SIGKILL)\n"  # when all is written
        "partita.kb.open(sys.argv[1]).add(ROWS, bulk=True)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program, url], cwd=ROOT, env=os.environ, timeout=600)
    assert ended.returncode == -signal.SIGKILL
    with partita.kb.open(url) as kb:
        assert is_empty(kb)
        assert kb.add(ROWS, bulk=True) == (60, 0, 0)


def test_a_load_that_fails_leaves_an_empty_knowledge_base(url, monkeypatch):
    with partita.kb.open(url) as kb:
        with monkeypatch.context() as patch:
            patch.setattr(loading, "cluster", lambda *given: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                kb.add(ROWS, bulk=True)
        assert is_empty(kb)
        assert kb.add([], bulk=True) == (0, 0, 0)
        assert kb.add(ROWS, bulk=True) == (60, 0, 0)


def test_what_is_there_twice(tmp_path):
    given = list(as_fragments(ROWS))
    with partita.kb.open(tmp_path / "kb.db") as kb:
        with pytest.raises(ValueError, match="'f1' is there twice and says different things: add without"):
            kb.add([*given, Fragment("f1", None, {"name": ["Nobody"]})], bulk=True)
        assert is_empty(kb)
        assert kb.add([*given, *given[:3]], bulk=True) == (60, 0, 3)
        assert len(kb.events()) == 60


def test_only_what_is_empty_is_loaded(kb):
    with pytest.raises(ValueError, match=r"is not empty.*add to it without bulk"):
        kb.add(ROWS[:3], bulk=True)
    kb.remove(*IDS)
    with pytest.raises(ValueError, match="is not empty"):
        kb.add(ROWS, bulk=True)


@pytest.mark.parametrize(
    ("options", "given", "message"),
    [
        ({"exact": True}, {"bulk": True}, "exact"),
        ({}, {"bulk": True, "n_jobs": 0}, "n_jobs"),
        ({}, {"bulk": True, "sweeps": -1}, "sweeps"),
        ({}, {"n_jobs": 2}, "bulk=True"),
    ],
)
def test_options_that_do_not_go_together(tmp_path, options, given, message):
    with partita.kb.open(tmp_path / "kb.db", **options) as kb:
        with pytest.raises(ValueError, match=message):
            kb.add(ROWS, **given)
        assert is_empty(kb)


def test_a_language_model_reads_one_after_the_other(tmp_path):
    pytest.importorskip("torch")
    with partita.kb.open(tmp_path / "kb.db", model="jsonlm") as kb:
        with pytest.raises(ValueError, match="add without bulk"):
            kb.add(ROWS, bulk=True)
        assert is_empty(kb)


def test_another_process_writes_meanwhile(tmp_path, monkeypatch):
    monkeypatch.setattr(database, "PATIENCE", 0.1)
    with partita.kb.open(tmp_path / "kb.db") as kb, partita.kb.open(tmp_path / "kb.db") as other:

        def rows():
            yield from ROWS[:5]
            with pytest.raises(StoreError, match="another process"):
                other.add(ROWS[:5])
            yield from ROWS[5:]

        assert kb.add(rows(), bulk=True) == (60, 0, 0)
