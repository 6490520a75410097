"""Kill a process while it works on a knowledge base, again and again, and see whether anything was lost.

    python -m tests.helpers.crash URL [KILLS] [SEED]

A child takes one step after the other: it builds, in bulk and in batches, syncs, updates, judges, undoes, removes,
refines, learns anew. After each batch and step it says how far it has come; it is killed (SIGKILL) at a random moment,
every second time within the step after the next. Then the knowledge base is opened: whatever was acknowledged must be
there, once, and every table in order. The next child goes on from there. In the end the state must be that of a
knowledge base that nobody interrupted.
"""

import os
import random
import re
import signal
import sys
import tempfile
import time
from bisect import bisect_right
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import sqlalchemy as sa

import partita.kb
from partita.kb.store import tables, values
from partita.kb.values import NUMBERS, unpacked
from tests.helpers.downstream import Follower, entities_of
from tests.helpers.people import fragments

ROWS, _ = fragments(120, seed=5)
CHANGED = [{**row, "properties": row["properties"] | {"occupation": ["poet"]}} for row in ROWS[:40:4]]
BOOK = [
    ROWS[k] for k in range(1, 72, 4) if k not in (13, 17)
]  # what one source has later: two go, some come,
BOOK[5] = BOOK[5] | {"properties": BOOK[5]["properties"] | {"occupation": ["poet"]}}  # and one changes
FIRST = 12  # fragments that are loaded in bulk, and learnt from
BATCH = 4
SOON = 0.8  # seconds within which a child is killed; more and more, while none comes any further
AIMED = 0.2  # of that, within which it is killed after a certain step has begun


def build_in_bulk(kb, rows):
    """As ``build --bulk`` does it, and where that was interrupted after the fragments came in, ``build``."""
    if not kb.stats()["fragments"]:
        kb.add(rows, bulk=True, n_jobs=1, sweeps=2)
    kb.finish()


def build(kb, rows):
    """As the command does it: in batches, and refined at the end."""
    kb.add(rows, batch=BATCH, progress=lambda done: tell(f"added {done}"), sweeps=2)
    kb.finish()


def sync(kb, rows):
    """As ``build --sync`` does it."""
    kb.sync(rows, confirmed=True, sweeps=2)
    kb.finish()


def judge_entities(kb, kind, first):
    """Judge an entity, by its place in order of size, and the next one of which that can be said."""
    ids = [entity.id for entity in kb.entities()]
    for other in ids[first + 1 :]:
        try:
            return getattr(kb, kind)(ids[first], other, user="crash")
        except ValueError:  # it contradicts what was said before
            continue
    raise AssertionError("nothing can be said")


STEPS = [  # each is one transaction, or can be taken again where it was interrupted
    lambda kb: build_in_bulk(kb, ROWS[:FIRST]),
    lambda kb: build(kb, ROWS[:60]),
    lambda kb: sync(kb, BOOK),
    lambda kb: kb.split(next(kb.entities()).id, by="born", user="crash"),
    lambda kb: kb.undo(user="crash"),
    lambda kb: judge_entities(kb, "confirm", 0),
    lambda kb: kb.separate("f1", "f2", user="crash"),
    lambda kb: build(kb, CHANGED),
    lambda kb: judge_entities(kb, "separate", 0),
    lambda kb: kb.undo(2, user="crash"),
    lambda kb: kb.refine(),
    lambda kb: kb.relearn(),
    lambda kb: judge_entities(kb, "confirm", 1),
    lambda kb: kb.remove("f3", "f8"),
    lambda kb: kb.unsure("f5", "f6", user="crash"),
    lambda kb: build(kb, ROWS[:3] + ROWS[4:8] + ROWS[9:]),
    lambda kb: judge_entities(kb, "confirm", 0),
    lambda kb: kb.undo(user="crash"),
]


def work(kb, after=()):
    """Take all steps, or those that are not done; says how far it has come.

    ``after`` are the revisions after each step, where nobody interrupts; returns them.
    """
    reached = []
    for k, step in enumerate(STEPS):
        if not after or kb.stats()["revision"] < after[k]:
            tell(f"begins {k}")
            step(kb)
        reached.append(kb.stats()["revision"])
        tell(f"done {reached[-1]}")
    return reached


def tell(what):
    os.write(1, f"{what}\n".encode())


@contextmanager
def quiet():
    """Say nothing meanwhile."""
    kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    yield
    os.dup2(kept, 1)
    os.close(kept)
    os.close(nowhere)


def run_until_killed(url, rng, after, within, aim=None):
    """Run a child for a random time; returns what it has said, and whether it came to the end.

    If it is ``aim``-ed at a step, the time is short and begins with the step.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(writing, 1)
        with partita.kb.open(url) as kb:
            work(kb, after)
        os._exit(0)
    os.close(writing)
    said = b""
    with os.fdopen(reading, "rb", buffering=0) as file:
        while aim is not None and f"begins {aim}\n".encode() not in said and (more := file.read(4096)):
            said += more
        time.sleep(rng.random() ** 2 * within * (1.0 if aim is None else AIMED))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        said += file.read()
    return said.decode().splitlines(), os.WIFEXITED(status)


def acknowledged(said, word):
    """The highest number that was said with a word; 0 if none was."""
    return max((int(line.split()[1]) for line in said if line.startswith(word)), default=0)


def check(url, known, after):
    """Whatever was acknowledged is there, once, and the tables agree with one another; returns how far it has come."""
    with partita.kb.open(url) as kb:
        with kb.store.reading() as connection:
            query = sa.select(tables.fragments.c.id).where(tables.present).order_by(tables.fragments.c.number)
            present = list(connection.scalars(query))
            owned = list(connection.scalars(sa.select(tables.members.c.fragment).where(tables.now)))
            numbers = list(connection.scalars(sa.select(tables.events.c.number).order_by("number")))
        revision = kb.stats()["revision"]
        assert revision >= known["done"], "a step that was acknowledged is lost"
        if revision < after[1]:  # the first two steps are building still
            lost = {row["id"] for row in ROWS[: known["added"]]} - set(present)
            assert not lost, f"lost: {sorted(lost)}"
        assert len(present) == len(set(present)), "a fragment is there twice"
        assert len(owned) == len(set(owned)) == len(present), "memberships and fragments differ"
        assert numbers == list(range(1, len(numbers) + 1)), "an event is missing, or there twice"
        if present:
            assert list(kb.labels()) == present, "the sampler and the table of fragments differ"
        follower = Follower()
        follower.catch_up(kb)
        assert follower.entities() == entities_of(kb), "events and entities differ"
    return revision


def summary(url):
    """All that a knowledge base holds, but times."""
    from partita.kb.clustering import joined
    from partita.kb.store.sampler import read_subproblems

    with partita.kb.open(url) as kb, kb.store.reading() as connection:
        state = sorted(read_subproblems(connection))
        packed = joined(state, 0, np.empty(0, np.int64))
        entities = [(e.id, e.name, e.fragments, e.properties) for e in kb.entities()]
        events = [(e.kind, e.entity, e.other, e.fragment, e.fragments, e.detail) for e in kb.events()]
        shapes, said = [each[:4] for each in state], values_said(connection)
    return (
        shapes,
        packed["members"].tolist(),
        packed["cells"].tolist(),
        entities,
        events,
        said,
        packed["scores"],
    )


def values_said(connection):
    """Of each fragment present what stands for the values that it says."""
    ranks = {}
    for piece in values.load(connection):
        ranks |= enumerate(unpacked(piece.body).rank.tolist(), piece.first)
    query = sa.select(tables.fragments.c.id, tables.fragments.c.value_numbers).where(tables.present)
    rows = connection.execute(query.order_by("number"))
    return [
        (row.id, sorted(ranks[n] for n in np.frombuffer(row.value_numbers, NUMBERS).tolist())) for row in rows
    ]


def main(url, kills, seed):
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        calm = Path(folder) / "calm.db"
        with partita.kb.open(calm) as kb, quiet():
            after = work(kb)
        interrupted, lives, at = 0, 0, Counter()
        known, within, before = {"done": 0, "added": 0}, SOON, 0
        for done in range(1, kills + 1):
            aim = None if done % 2 else bisect_right(after, before) + 1  # the step after the next
            said, ended = run_until_killed(url, rng, after, within, aim)
            known = {word: max(known[word], acknowledged(said, word)) for word in known}
            revision = check(url, known, after)
            within, before = (SOON if revision > before else 1.3 * within), revision
            interrupted += not ended
            at[bisect_right(after, revision)] += 1
            if revision == after[-1]:  # begin again, so that all of the kills matter
                compare(url, calm)
                url, lives = clean(url, done), lives + 1
                known, before = {"done": 0, "added": 0}, 0
            if done % 100 == 0:
                report(done, interrupted, lives, at)
        with partita.kb.open(url) as kb, quiet():
            work(kb, after)
        compare(url, calm)
    report(kills, interrupted, lives, at)
    print(f"{interrupted} of {kills} runs were killed on their way; nothing was lost")


def report(done, interrupted, lives, at):
    """How far it is, on standard error."""
    steps = [at[k] for k in range(len(STEPS))]
    print(f"{done} runs, {interrupted} killed on their way, {lives} lives; by step: {steps}", file=sys.stderr)


def compare(url, calm):
    """The state is that of a run that nobody interrupted."""
    (*found, scores), (*wanted, right) = summary(url), summary(calm)
    for one, other in zip(found, wanted, strict=True):
        assert one == other, "the state differs from that of an uninterrupted run"
    assert abs(scores - right).max() < 1e-9


def clean(url, number):
    """An empty store like this one."""
    if url.startswith("sqlite"):
        return f"{re.sub(r'(_life[0-9]+)?[.]db$', '', url)}_life{number}.db"
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sa.text("DROP SCHEMA public CASCADE"))
        connection.execute(sa.text("CREATE SCHEMA public"))
    engine.dispose()
    return url


if __name__ == "__main__":
    main(sys.argv[1], *map(int, (sys.argv[2:] + ["100", "0"][len(sys.argv) - 2 :])[:2]))
