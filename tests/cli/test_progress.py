"""Progress: bars on terminals, lines in logs, and nothing where everything is quick or nobody wants it."""

import re
import sys

import pytest

import partita as pt
import partita.kb
from partita.cli import progress
from partita.cli.output import QUIET
from partita.cli.progress import Log, duration, how_far, watching
from tests.helpers.people import fragments

ROWS, _ = fragments(60, seed=1)


class Clock:
    """A clock that is set by hand."""

    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def log():
    return Log({"adding": lambda: 2000}, Clock())


def said(capsys):
    """What was logged, without the times of day."""
    lines = capsys.readouterr().err.splitlines()
    assert all(re.match(r"\d\d:\d\d:\d\d ", line) for line in lines)
    return [line[9:] for line in lines]


def test_a_line_every_half_a_minute_and_one_a_phase(log, capsys):
    for second in range(81):
        log.clock.now = second
        log("learning", 10 * second, 1600)
    assert said(capsys) == [
        "learning: 300 of 1,600 (19%), about 2 min left",
        "learning: 600 of 1,600 (38%), about 2 min left",
    ]
    for second in range(81, 130):
        log.clock.now = second
        log("adding", 20 * (second - 80), None)
    log.close()
    assert said(capsys) == [
        "learning: done in 81 s",
        "adding: 620 of 2,000 (31%), about 67 s left",
        "adding: done in 48 s",
    ]
    log.close()
    assert said(capsys) == []


def test_nothing_is_logged_where_everything_is_quick(log, capsys):
    for phase in ("learning", "adding", "refining"):
        log.clock.now += 1.0
        log(phase, 1, 2)
    log.close()
    assert said(capsys) == []


def test_how_far_in_words():
    assert how_far(0, None, 40.0) == "for 40 s"
    assert how_far(1200, None, 40.0) == "1,200"
    assert how_far(0, 10, 40.0) == "0 of 10 (0%)"
    assert how_far(10, 10, 40.0) == "10 of 10 (100%)"
    assert [duration(s) for s in (0.4, 89, 91, 3600, 7500)] == ["0 s", "89 s", "2 min", "60 min", "2 h 5 min"]


def test_a_bar_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(progress, "FRAME", 0.0)
    with watching({"adding": lambda: 10}) as watch:
        watch("learning", 1, 8)
        watch("adding", 5, None)
        watch("adding", 10, None)
    shown = capsys.readouterr()
    assert "10/10" in shown.err
    assert "/s" in shown.err
    assert "learning" in shown.err
    assert shown.out == ""


def test_nothing_where_nobody_wants_it(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    before = QUIET.set(True)
    with watching() as watch:
        watch("adding", 5, 10)
    QUIET.reset(before)
    assert capsys.readouterr().err == ""


# ---------------------------------------------------------------------- what there is to watch


def test_every_phase_is_reported_up_to_its_end(tmp_path):
    told = []
    with partita.kb.open(tmp_path / "kb.db", n_particles=5) as kb:
        kb.watch(lambda *what: told.append(what))
        kb.add(ROWS)
        kb.refine(2)
        kb.sync([{**row, "source": None} for row in ROWS[:30]], confirmed=True)
        kb.sync([{**row, "source": None} for row in ROWS[:20]])
        kb.relearn()
        kb.export(tmp_path / "out.csv")
    phases = {}
    for phase, done, total in told:
        phases.setdefault(phase, []).append((done, total))
    assert list(phases)[:4] == ["learning", "adding", "refining, sweep 1 of 2", "refining, sweep 2 of 2"]
    assert {"reading", "removing", "clustering", "refining"} <= phases.keys()
    assert phases["adding"][:2] == [(0, 60), (5, 60)]
    assert (60, 60) in phases["adding"]
    learning = [step for step in phases["learning"] if step[1]]
    assert len(learning) > 100
    for steps in (learning[: learning.index(max(learning)) + 1], phases["refining, sweep 1 of 2"]):
        assert steps == sorted(steps)
        assert all(done <= total for done, total in steps)
    assert all(
        done == total for done, total in [steps[-1] for phase, steps in phases.items() if "sweep" in phase]
    )


def test_who_watches_changes_nothing():
    X = [row["properties"] for row in ROWS]
    model, seen = pt.Record.infer(X), []
    watched = model.fit_prior(X, progress=lambda done, most: seen.append((done, most)))
    assert watched.to_json() == model.fit_prior(X).to_json()
    assert seen == sorted(seen)
    assert all(done <= most for done, most in seen)
    assert [most for _, most in seen] == sorted(most for _, most in seen)  # a turn more than usual is counted
    rows, subproblems = [], []
    sampler = pt.SplitSMC(watched, random_state=0).fit(X, progress=rows.append)
    sampler.refine(progress=lambda done, n: subproblems.append((done, n)))
    plain = pt.SplitSMC(watched, random_state=0).fit(X).refine()
    assert (sampler.labels_ == plain.labels_).all()
    assert rows == sorted(rows)
    assert rows[-1] == len(X)
    n = subproblems[0][1]
    assert subproblems == [(k, n) for k in range(n + 1)]
