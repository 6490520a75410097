"""The live feed, and a service as a process of its own: what it says, and how it stops."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import httpx
import pytest

import partita.kb
from partita.kb.store.database import get
from partita.serve import live
from partita.serve.desk import Closing
from tests.helpers.people import fragments

PATIENCE = 60


@contextmanager
def running(target, *options):
    """The address of a service that runs as a process of its own, and the process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code = "from partita.cli import app; app()"
    arguments = [
        sys.executable,
        "-c",
        code,
        "serve",
        str(target),
        "--port",
        str(port),
        "--no-browser",
        *options,
    ]
    process = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True)
    try:
        url = f"http://127.0.0.1:{port}"
        until(lambda: is_there(url, process))
        yield url, process
    finally:
        process.kill()
        process.communicate()


def is_there(url, process):
    """Whether a service answers."""
    assert process.poll() is None, process.stderr.read()
    try:
        return httpx.get(f"{url}/health").status_code == 200
    except httpx.TransportError:
        return False


def until(happened):
    """Wait for something."""
    end = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.05)


class Listening(threading.Thread):
    """Somebody who listens to the live feed, and keeps what there is to hear."""

    def __init__(self, url, headers=None, **parameters):
        super().__init__(daemon=True)
        self.lines, self.ended, self.status = [], False, None
        self._url, self._parameters = f"{url}/api/v1/events", parameters
        self._headers = {"accept": "text/event-stream"} | (headers or {})
        self.start()
        until(lambda: self.lines or self.ended)

    def run(self):
        sent = {"headers": self._headers, "params": self._parameters, "timeout": PATIENCE}
        with httpx.stream("GET", self._url, **sent) as found:
            self.status = found.status_code
            self.lines.extend(f"{name}: {value}" for name, value in found.headers.items())
            for line in found.iter_lines():
                self.lines.append(line)
        self.ended = True

    @property
    def events(self):
        """What was heard, each with the id that it came with."""
        ids = [int(line[4:]) for line in list(self.lines) if line.startswith("id: ")]
        documents = [json.loads(line[6:]) for line in list(self.lines) if line.startswith("data: ")]
        return list(zip(ids, documents, strict=False))


def test_the_feed_has_what_happens_from_here_and_elsewhere_and_goes_on_where_it_was(copy):
    with running(copy) as (url, process), partita.kb.open(copy) as other:
        last = other.events()[-1].number
        ann = Listening(url)
        assert "content-type: text/event-stream; charset=utf-8" in ann.lines
        sent = {"fragments": [{"id": "here", "name": "Ada\nLovelace: \r\n\r\nid: 7"}]}
        assert httpx.post(f"{url}/api/v1/fragments", json=sent).status_code == 201
        other.add([{"id": "elsewhere", "name": "Zebulon Pike"}])
        expected = [(e.number, e.as_dict()) for e in other.events(since=last)]
        until(lambda: len(ann.events) >= len(expected))
        assert ann.events == expected
        bob = Listening(url, {"last-event-id": str(expected[0][0])})
        carl = Listening(url, since=last)
        dora = Listening(url, since=0, entity=other.entity_of("elsewhere").id)
        until(lambda: len(bob.events) >= len(expected) - 1 and len(carl.events) >= len(expected))
        assert bob.events == expected[1:]
        assert carl.events == expected
        until(lambda: dora.events)
        assert {event["entity"] for _, event in dora.events} == {other.entity_of("elsewhere").id}
        began = time.monotonic()
        process.terminate()
        assert process.wait(PATIENCE) == 0
        until(lambda: ann.ended and bob.ended and carl.ended and dora.ended)
        assert time.monotonic() - began < 20


def test_listeners_who_are_cut_off_leave_the_others_their_feed():
    class Desk:
        is_closing, last = False, 0

        async def moment(self):
            return self.last

    async def story():
        desk = Desk()
        watch = live.Watch(desk)
        cut_off = [asyncio.create_task(watch.after(0)) for _ in range(20)]
        staying = asyncio.create_task(watch.after(0))
        watch.join()
        await asyncio.sleep(0)
        for _ in range(3):  # as often as servers do it, also while a listener is on its way out
            for task in cut_off:
                task.cancel()
            await asyncio.sleep(0)
        desk.last = 1
        await asyncio.wait_for(staying, 10)
        desk.is_closing = True
        with pytest.raises(Closing):
            await watch.after(1)
        watch.leave()

    asyncio.run(story())


def test_a_feed_of_what_is_no_entity(service):
    found = service.get("/api/v1/events?entity=E999", headers={"accept": "text/event-stream"})
    assert found.status_code == 404


@pytest.mark.parametrize("kill", [False, True])
def test_stopped_in_the_middle_of_an_add_it_finishes_a_batch_or_rolls_back(copy, kill):
    rows = [row | {"id": f"more {row['id']}"} for row in fragments(1000, seed=2)[0]]
    with partita.kb.open(copy) as kb:
        before = kb.stats()["fragments"]
    with running(copy) as (url, process):
        answers = []
        sending = threading.Thread(target=lambda: answers.append(sent(url, {"fragments": rows})), daemon=True)
        sending.start()
        with partita.kb.open(copy) as kb:
            until(lambda: kb.stats()["fragments"] > before)
        if kill:
            process.kill()
            process.wait()
        else:
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0
        sending.join(PATIENCE)
    with partita.kb.open(copy) as kb:
        n = kb.stats()["fragments"] - before
        assert n % 100 == 0
        assert 0 < n <= 1000
        kb.explain("f1", "more f1")  # the sampler is whole
        assert sum(len(entity.fragments) for entity in kb.entities()) == n + before
        if not kill:
            status, document = answers[0]
            assert (status, n) == (201, 1000) or f"{n} of 1000 fragments are in" in document["error"][
                "message"
            ]
        assert kb.add(rows).unchanged == n
        with kb.store.reading() as connection:
            assert get(connection, "settings")["learnt_from"]


def sent(url, body):
    """The answer to fragments; nothing if there is none."""
    try:
        found = httpx.post(f"{url}/api/v1/fragments", json=body, timeout=PATIENCE)
        return found.status_code, found.json()
    except httpx.TransportError:
        return None, {}


def test_what_takes_long_does_not_delay_health(service):
    """Nor what is read from tables: the one waits for nothing, the other not for the sampler."""
    desk, begun, go_on = service.app.state.desk, threading.Event(), threading.Event()
    portal = service.portal

    def slow(kb):
        begun.set()
        assert go_on.wait(PATIENCE)

    waiting = portal.start_task_soon(desk.ask, slow)
    try:
        assert begun.wait(PATIENCE)
        assert service.get("/health").status_code == 200
        assert service.get("/api/v1/entities").status_code == 200
        assert service.get("/api/v1/stats").status_code == 200
    finally:
        go_on.set()
    waiting.result(PATIENCE)


def test_what_cannot_be_served(tmp_path, copy):
    def refused(*arguments):
        code = "from partita.cli import app; app()"
        done = subprocess.run(
            [sys.executable, "-c", code, "serve", *map(str, arguments), "--no-browser"],
            capture_output=True,
            text=True,
            env=os.environ | {"COLUMNS": "200"},
            timeout=PATIENCE,
        )
        assert done.returncode != 0
        return done.stderr

    (tmp_path / "data.csv").write_text("name\nAda\n")
    assert "partita build" in refused(tmp_path / "data.csv")
    assert "build one with" in refused(tmp_path / "nothing.db")
    assert "--token-file" in refused(copy, "--host", "0.0.0.0")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert "choose another with --port" in refused(copy, "--port", taken.getsockname()[1])
