"""Knowledge bases for the page's tests, and a service of one in a thread of its own."""

import random
import shutil
import socket
import threading
import time
from collections import defaultdict
from contextlib import contextmanager
from types import SimpleNamespace

import uvicorn

import partita.kb
from partita.serve.app import create_app

LETTERS = "abcdefghijklmnopqrstuvwxyz"
WINDOWS = defaultdict(list)  # by where the service is: those that look at it, which close before it ends
EVIL = '<script>window.hacked = 1</script><img src=x onerror="window.hacked = 2">'


def doubtful(families, seed=3):
    """Fragments of people, some of whom live together, in which a third of all values is missing or wrong."""
    rng = random.Random(seed)
    words = ["".join(rng.choices(LETTERS, k=rng.randint(4, 8))) for _ in range(60)]
    rows = []
    for family in range(families):
        last, street = rng.choice(words[20:40]), f"{rng.choice(words[40:])} {rng.randint(1, 99)}"
        phone = f"555 {rng.randint(0, 999):04d}"
        for member in range(rng.choice([1, 1, 2])):
            first = rng.choice(words[:20])
            for copy in range(rng.choice([1, 2, 3, 5])):
                said = {"first": first, "last": last, "street": street, "phone": phone}
                said = {
                    k: typo(rng, v) if rng.random() < 0.2 else v
                    for k, v in said.items()
                    if rng.random() > 0.15
                }
                source = rng.choice(["crm", "orders"])
                rows.append(
                    {
                        "id": f"{family}-{member}-{copy}",
                        "source": source,
                        "properties": said or {"last": last},
                    }
                )
    return rows


def typo(rng, value):
    """A value with one character that is another."""
    k = rng.randrange(len(value))
    return value[:k] + rng.choice(LETTERS) + value[k + 1 :]


def hostile():
    """Fragments whose values, attributes and ids would be more than text to a page that is careless."""
    rows = [
        {
            "id": f"x/{k}?&#{EVIL}",
            "properties": {"name": [f"{EVIL} Smith"], f"{EVIL}": [EVIL, "=HYPERLINK(1)"]},
        }
        for k in range(3)
    ]
    rows += [
        {"id": f"o{k}", "properties": {"name": [f"{EVIL} Smyth {k}"], "city": ["a\u202eb\u0007c"]}}
        for k in range(3)
    ]
    return rows


def build(path, rows):
    """A knowledge base of fragments, in a file."""
    with partita.kb.open(path) as kb:
        kb.add(rows)
    return path


def copied(path, to):
    """A copy of a knowledge base that nobody has open."""
    shutil.copy(path, to)
    return to


@contextmanager
def served(path, **settings):
    """A service of a knowledge base; yields its ``url`` and ``desk``."""
    app = create_app(path, **settings)
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_level="warning", access_log=False, ws="none", lifespan="on")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    try:
        yield SimpleNamespace(url=url, desk=app.state.desk)
    finally:
        for window in WINDOWS.pop(url, []):
            window.close()
        app.state.desk.stop()  # which ends live feeds
        server.should_exit = True
        thread.join(timeout=30)
        listening.close()


def until(page, expression, patience=20.0):
    """Wait until something holds on a page; Playwright's own way to wait needs what the page's policy forbids."""
    end = time.monotonic() + patience
    while not page.evaluate(expression):
        assert time.monotonic() < end, f"never true: {expression}"
        page.wait_for_timeout(25)


def loaded(page):
    """Wait until nothing is awaited any more."""
    until(page, "!document.querySelector('.loading')")


def state_of(path):
    """What of a knowledge base does not depend on when it was made: entities, names, judgements."""
    with partita.kb.open(path, create=False) as kb:
        entities = {
            one.id: (one.name, frozenset(one.fragments), round(one.probability, 9)) for one in kb.entities()
        }
        judgements = [(row.kind, row.first, row.second, row.undone_at is None) for row in kb.judgements()]
        return entities, judgements
