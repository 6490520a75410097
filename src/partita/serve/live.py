"""Events, and the live feed of them: server-sent events, which a browser that was cut off goes on with.

While somebody listens, one task looks for the number of the last event again and again; so what other processes do is
seen, too, and a hundred listeners cost no more than one.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query
from starlette.responses import Response, StreamingResponse

from partita.kb import KnowledgeBase, StoreError
from partita.kb.queries.answers import Event
from partita.serve import answers
from partita.serve.bodies import LARGEST
from partita.serve.desk import Closing, Desk
from partita.serve.errors import Json, refusal
from partita.serve.security import Reader, only_known

PERIOD = 0.25  # seconds from one look to the next
HEARTBEAT = 15.0  # seconds without an event after which a comment shows that the line is open
BATCH = 500  # events that are read at a time
LISTENERS = 200  # at once
STREAM = "text/event-stream"


def router(desk: Desk) -> APIRouter:
    """The calls, answered by a desk."""
    routes = APIRouter(tags=["events"], dependencies=[Depends(only_known)], default_response_class=Json)
    watch = Watch(desk)

    @routes.get("/events", response_model=answers.Events, responses={200: {"content": {STREAM: {}}}})
    async def events(
        _: Reader,
        since: Annotated[int | None, Query(ge=0, le=LARGEST, description="The number of an event.")] = None,
        entity: Annotated[str | None, Query(max_length=1000, description="Of one entity only.")] = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
        accept: Annotated[str, Header(include_in_schema=False)] = "",
        last_event_id: Annotated[str, Header(description="For a live feed: the event to go on after.")] = "",
    ) -> Response:
        """What has happened, after an event; with `Accept: text/event-stream` what is happening, as it does.

        A live feed begins with what comes next, or after `Last-Event-ID`, or after `since`.
        """
        if STREAM not in accept:
            return Json(await desk.read(page_of, since or 0, entity, limit))
        if last_event_id.isascii() and last_event_id.isdecimal():
            since = min(int(last_event_id[:20]), LARGEST)
        if entity is not None:
            await desk.read(lambda kb: kb.events(entity=entity, limit=1))  # which refuses what is none
        if watch.listeners >= LISTENERS:
            return refusal(503, f"{LISTENERS} live feeds are open already: close one")
        first = await desk.moment() if since is None else since
        return StreamingResponse(
            feed(desk, watch, first, entity), media_type=STREAM, headers={"X-Accel-Buffering": "no"}
        )

    return routes


def page_of(kb: KnowledgeBase, since: int, entity: str | None, limit: int) -> dict[str, Any]:
    """Some events, and after which the next ones come."""
    found = kb.events(since=since, entity=entity, limit=limit + 1)
    more = len(found) > limit
    return {
        "events": [event.as_dict() for event in found[:limit]],
        "next": found[limit - 1].number if more else None,
    }


class Watch:
    """Wakes those who listen when there is an event.

    Attributes
    ----------
    listeners : int
        How many there are.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._last = -1
        self._looked = asyncio.Event()  # set when there has been a look, which has another in its place then
        self._task: asyncio.Task[None] | None = None
        self.listeners = 0

    async def after(self, event: int) -> None:
        """Wait for an event after one, for as long as a heart takes to beat; Closing if the service stops."""
        if self._desk.is_closing:
            raise Closing
        async with asyncio.timeout(HEARTBEAT):
            while self._last <= event and not self._desk.is_closing:
                await self._looked.wait()

    def join(self) -> None:
        """One more listens."""
        self.listeners += 1
        if self._task is None:
            self._task = asyncio.create_task(self._look())

    def leave(self) -> None:
        """One listens no longer."""
        self.listeners -= 1

    async def _look(self) -> None:
        """Look for events while somebody listens."""
        try:
            while self.listeners and not self._desk.is_closing:
                with suppress(StoreError):  # of a store that may be there again in a moment
                    self._last = await self._desk.moment()
                self._wake()
                await asyncio.sleep(PERIOD)
        except Closing:
            pass
        finally:
            self._task = None
            self._wake()

    def _wake(self) -> None:
        """Have everybody see what the last look has found. No lock, which one who is cut off might take along."""
        self._looked.set()
        self._looked = asyncio.Event()


async def feed(desk: Desk, watch: Watch, since: int, entity: str | None) -> AsyncIterator[str]:
    """Events after one, as they come, in the form of server-sent events."""
    watch.join()
    try:
        yield f"retry: 1000\n: events after {since}\n\n"
        while True:
            try:
                await watch.after(since)
            except TimeoutError:
                yield ": still here\n\n"
                continue
            now = await desk.moment()
            found = await desk.read(happened, since, entity)
            for event in found:
                yield as_message(event.as_dict())
            last = found[-1].number if found else since
            since = last if len(found) == BATCH else max(last, now)
    except Closing:
        return
    finally:
        watch.leave()


def happened(kb: KnowledgeBase, since: int, entity: str | None) -> list[Event]:
    """The next events after one."""
    return kb.events(since=since, entity=entity, limit=BATCH)


def as_message(event: dict[str, Any]) -> str:
    """An event as a browser reads it; JSON has no end of line in it."""
    return f"id: {event['number']}\ndata: {json.dumps(event, ensure_ascii=True)}\n\n"
