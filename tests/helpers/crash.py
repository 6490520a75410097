"""Kill a process while it ingests, again and again, and see whether anything was lost.

    python -m tests.helpers.crash URL [KILLS] [SEED]

A child adds fragments in small batches and says after each how many it has been told are safe; it is killed
(SIGKILL) at a random moment. Then the knowledge base is opened: every fragment that was acknowledged must be
there, once, and every table in order. The next child goes on with the same stream. In the end the state must
be that of a knowledge base that nobody interrupted.
"""

import os
import random
import signal
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import sqlalchemy as sa

import partita.kb
from partita.kb.store import tables
from tests.helpers.people import fragments

ROWS, _ = fragments(240, seed=5)
CHANGED = [{**row, "properties": row["properties"] | {"occupation": ["poet"]}} for row in ROWS[:40:4]]
BATCH = 4


def work(kb):
    """The stream: fragments, then new versions of some, removals and judgements; says how far it has come."""
    if kb.fragment("f0").properties == ROWS[0]["properties"]:  # else that was done before the last kill
        kb.add(ROWS[:160], batch=BATCH, progress=lambda done: tell(f"added {done}"))
    kb.add(CHANGED, batch=BATCH)
    tell("changed")
    kb.add(ROWS[160:], batch=BATCH, progress=lambda done: tell(f"added {160 + done}"))
    if not kb.judgements():
        kb.separate("f1", "f2", user="crash")
    tell("judged")


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


def run_until_killed(url, rng):
    """Run a child for a random time; returns what it has said, and whether it came to the end."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(writing, 1)
        with partita.kb.open(url) as kb:
            work(kb)
        os._exit(0)
    os.close(writing)
    time.sleep(rng.random() ** 2 * 2.0)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as file:
        said = file.read().decode().splitlines()
    return said, os.WIFEXITED(status)


def check(url, acknowledged):
    """Every acknowledged fragment is there once, and the tables agree with one another."""
    with partita.kb.open(url) as kb:
        with kb.store.reading() as connection:
            query = sa.select(tables.fragments.c.id).where(tables.present).order_by(tables.fragments.c.number)
            present = list(connection.scalars(query))
            owned = list(connection.scalars(sa.select(tables.members.c.fragment).where(tables.now)))
        assert len(present) == len(set(present)), "a fragment is there twice"
        lost = {row["id"] for row in ROWS[:acknowledged]} - set(present)
        assert not lost, f"lost: {sorted(lost)}"
        assert len(owned) == len(set(owned)) == len(present), "memberships and fragments differ"
        if present:
            assert list(kb.labels()) == present, "the sampler and the table of fragments differ"
            assert sum(len(entity.fragments) for entity in kb.entities()) == len(present)


def summary(url):
    """All that a knowledge base holds, but times."""
    from partita.kb.clustering import joined
    from partita.kb.store.sampler import read_subproblems

    with partita.kb.open(url) as kb, kb.store.reading() as connection:
        state = sorted(read_subproblems(connection))
        packed = joined(state, 0, np.empty(0, np.int64))
        entities = [(e.id, e.name, e.fragments, e.properties) for e in kb.entities()]
        events = [(e.kind, e.entity, e.other, e.fragment, e.detail) for e in kb.events()]
        shapes = [each[:4] for each in state]
    return shapes, packed["members"].tolist(), packed["cells"].tolist(), entities, events, packed["scores"]


def main(url, kills, seed):
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        calm = Path(folder) / "calm.db"
        with partita.kb.open(calm) as kb, quiet():
            kb.add(ROWS[:12])  # so that all have the same model, learnt from these
            work(kb)
        with partita.kb.open(url) as kb:
            kb.add(ROWS[:12])
        done, acknowledged, interrupted = 0, 12, 0
        while done < kills:
            said, ended = run_until_killed(url, rng)
            acknowledged = max([acknowledged, *(int(s.split()[1]) for s in said if s.startswith("added"))])
            check(url, acknowledged)
            done, interrupted = done + 1, interrupted + (not ended)
            if "judged" in said:  # begin again, so that all of the kills matter
                compare(url, calm)
                url = clean(url, done)
                with partita.kb.open(url) as kb:
                    kb.add(ROWS[:12])
                acknowledged = 12
        with partita.kb.open(url) as kb, quiet():
            work(kb)
        compare(url, calm)
    print(f"{interrupted} of {kills} runs were killed on their way; nothing was lost")


def compare(url, calm):
    """The state is that of a run that nobody interrupted."""
    (*found, scores), (*wanted, right) = summary(url), summary(calm)
    for one, other in zip(found, wanted, strict=True):
        assert one == other, "the state differs from that of an uninterrupted run"
    assert abs(scores - right).max() < 1e-9


def clean(url, number):
    """An empty store like this one."""
    if url.startswith("sqlite"):
        return f"{url.rsplit('.db', 1)[0]}.{number}.db"
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sa.text("DROP SCHEMA public CASCADE"))
        connection.execute(sa.text("CREATE SCHEMA public"))
    engine.dispose()
    return url


if __name__ == "__main__":
    main(sys.argv[1], *map(int, (sys.argv[2:] + ["100", "0"][len(sys.argv) - 2 :])[:2]))
