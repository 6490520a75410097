"""Many readers while one writes: every answer is of one moment, and says of which."""

import asyncio
import json
import threading
import time

import httpx

import partita.kb
from partita.serve import create_app, exporting
from partita.serve.desk import Desk
from tests.helpers.downstream import Follower
from tests.helpers.effort import effort
from tests.helpers.people import fragments
from tests.serve.conftest import HOME

READERS = 50
ROWS = effort(300, 1000)


def test_readers_see_whole_states_while_fragments_come_in(url):
    """On SQLite and PostgreSQL; another process's connection writes as well."""
    with partita.kb.open(url) as kb:
        kb.add(fragments(60)[0])
    app = create_app(url)
    with partita.kb.open(url) as other:
        seen = asyncio.run(everybody(app, other))
        events = [event.as_dict() for event in other.events()]
        last = sum(len(entity.fragments) for entity in other.entities())
    app.state.desk.close()
    moments = sizes_by_event(events)
    assert last == 60 + ROWS + 5
    assert len({number for number, _ in seen["entities"]}) > 1
    for number, sizes in seen["entities"]:
        assert sizes == moments[number]
    for number, found in seen["entity"]:
        assert found["size"] == len(found["fragments"]) == moments[number][found["id"]]
        assert all(event["number"] <= number for event in found["events"])
    for number, found in seen["stats"]:
        assert found["fragments"] == sum(moments[number].values())
        assert found["entities"] == len(moments[number])
        assert found["events"] == number


async def everybody(app, other):
    """Fifty who ask again and again until all is in, and what each was told, with the event that it is of."""
    seen = {"entities": [], "entity": [], "stats": []}
    done = asyncio.Event()
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url=f"{HOME}/api/v1", timeout=120) as client:

        async def ask(kind, path):
            while not done.is_set():
                found = await client.get(path)
                assert found.status_code == 200, found.text
                seen[kind].append((int(found.headers["partita-event"]), read(kind, found.json())))
                await asyncio.sleep(0.05)

        async def write():
            rows = [row | {"id": f"more {row['id']}"} for row in fragments(ROWS, seed=3)[0]]
            adding = asyncio.create_task(client.post("/fragments", json={"fragments": rows}))
            for k in range(5):
                await asyncio.sleep(0.1)
                await asyncio.to_thread(other.add, [{"id": f"else {k}", "name": "Zebulon Pike"}])
            assert (await adding).status_code == 201
            done.set()

        kinds = [("entities", "/entities?limit=200"), ("entity", "/entities/E1"), ("stats", "/stats")]
        asked = [ask(*kinds[k % len(kinds)]) for k in range(READERS)]
        await asyncio.gather(write(), *asked)
    return seen


def read(kind, document):
    """What there is to check of an answer."""
    if kind == "entities":
        assert document["total"] == len(document["entities"])
        return {one["id"]: one["size"] for one in document["entities"]}
    return document


def sizes_by_event(events):
    """The sizes of the entities after each event."""
    follower, found = Follower(), {}
    for event in events:
        follower.follow(json.dumps(event))
        found[event["number"]] = {id: len(held) for id, (_, held) in follower.entities().items()}
    return found


def test_files_of_everything_keep_nobody_from_reading(url, monkeypatch):
    with partita.kb.open(url) as kb:
        kb.add(fragments(60)[0])
    app, gate = create_app(url), threading.Event()
    written = exporting.exported
    monkeypatch.setattr(exporting, "exported", lambda *given: gate.wait(60) and written(*given))

    async def run():
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url=f"{HOME}/api/v1", timeout=120) as client:
            files = [asyncio.create_task(client.get("/export")) for _ in range(5)]
            await asyncio.sleep(0.2)
            async with asyncio.timeout(20):
                assert (await client.get("/entities")).status_code == 200
            assert not any(file.done() for file in files)
            gate.set()
            assert {found.status_code for found in await asyncio.gather(*files)} == {200}

    asyncio.run(run())
    app.state.desk.close()


def test_readers_leave_the_sampler_its_share(tmp_path):
    """Three read at once, and two while somebody waits for the sampler."""
    with partita.kb.open(tmp_path / "kb.db") as kb:
        kb.add(fragments(60)[0])
    desk, most, now, lock = (
        Desk(partita.kb.open(tmp_path / "kb.db", create=False)),
        [0],
        [0],
        threading.Lock(),
    )

    def reads(_):
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        time.sleep(0.05)
        with lock:
            now[0] -= 1

    async def run():
        await asyncio.gather(*(desk.read(reads) for _ in range(9)))
        assert most == [3]
        most[0], gate = 0, threading.Event()
        asking = asyncio.create_task(desk.ask(lambda _: gate.wait(60)))
        await asyncio.sleep(0.05)
        async with asyncio.timeout(30):
            await asyncio.gather(*(desk.read(reads) for _ in range(9)))
        assert most == [2]
        gate.set()
        await asking
        await asyncio.gather(*(desk.read(reads) for _ in range(9)))
        assert most == [3]

    asyncio.run(run())
    desk.close()
