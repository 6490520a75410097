"""The calls that change something: fragments come in, humans judge and take back. And one that only might: match."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Depends
from starlette.responses import Response

from partita.kb import KnowledgeBase
from partita.kb.fragments import Fragment
from partita.kb.ingest import Added
from partita.serve import answers, bodies
from partita.serve.desk import Closing, Desk, last_event
from partita.serve.errors import Json
from partita.serve.reading import is_empty, wrong_pairs
from partita.serve.security import Caller, Judge, Reader, only_known

BATCH = 100  # fragments that are added before others have their turn
MATCHED = 20  # records that are matched before


def router(desk: Desk) -> APIRouter:
    """The calls, answered by a desk."""
    routes = APIRouter(tags=["write"], dependencies=[Depends(only_known)], default_response_class=Json)

    @routes.post("/fragments", status_code=201, response_model=answers.Added)
    async def add(caller: Judge, body: bodies.Fragments) -> Response:
        """Take fragments in: all of them, or none if one is refused. Those that are in already are passed over."""
        return Json(await added(desk, body.fragments), 201)

    @routes.post("/match", response_model=answers.Matches | answers.Results, tags=["read"])
    async def match(_: Reader, body: bodies.Records) -> Response:
        """Where a record would go, or several, and the evidence; nothing is added."""
        if body.record is not None:
            [found] = await desk.ask(matched, [body.record], body.limit)
            return Json(found)
        records = body.records or []
        return Json(
            {
                "results": [
                    one
                    for start in range(0, len(records), MATCHED)
                    for one in await desk.ask(matched, records[start : start + MATCHED], body.limit)
                ]
            }
        )

    @routes.post("/judgements", status_code=201, response_model=answers.Judged)
    async def judge(caller: Judge, body: bodies.Judgement) -> Response:
        """Say that two fragments or entities are the same, are not, or cannot be told apart; or cut one."""
        return Json(await desk.ask(judged, desk, body, user_of(body.user, caller)), 201)

    @routes.post("/undo", response_model=answers.Undone)
    async def undo(caller: Judge, body: bodies.Undo) -> Response:
        """Take a judgement back: the last one, or any."""
        return Json(await desk.ask(undone, desk, body.judgement, user_of(body.user, caller)))

    return routes


def user_of(named: str | None, caller: Caller) -> str:
    """Whose judgement it is: as the request says, else as the token says."""
    return named or caller.name or "api"


# ---------------------------------------------------------------------- fragments


async def added(desk: Desk, given: list[dict[str, Any]]) -> dict[str, Any]:
    """Add fragments, a few at a time, so that others have their turn; what came of it."""
    fragments = await desk.ask(checked, given)
    at_once = (
        len(fragments) if await desk.read(is_empty) else BATCH
    )  # the model is learnt from all of the first ones
    done, events = Added(), []
    for start in range(0, len(fragments), at_once):
        try:
            more, came = await desk.ask(add_some, fragments[start : start + at_once])
        except Closing:
            raise Closing(
                f"the service is stopping; {sum(done)} of {len(fragments)} fragments are in: send all of them again "
                "when it has been started again, and these are passed over"
            ) from None
        done = Added(*map(sum, zip(done, more, strict=True)))
        events += came
    return done._asdict() | {"events": events}


def checked(kb: KnowledgeBase, given: list[dict[str, Any]]) -> list[Fragment]:
    """Fragments that can be added; ValueError for what cannot."""
    try:
        return kb.check(given)
    except TypeError as error:
        raise ValueError(str(error)) from error


def add_some(kb: KnowledgeBase, fragments: list[Fragment]) -> tuple[Added, list[dict[str, Any]]]:
    """Add fragments in one transaction; the events that it has brought about."""
    before = last_event(kb)
    done = kb.add(fragments, batch=len(fragments))
    return done, [event.as_dict() for event in kb.events(since=before)]


def matched(kb: KnowledgeBase, records: list[dict[str, Any]], limit: int) -> list[dict[str, Any]]:
    """Where each of some records would go."""
    try:
        return [{"matches": [one.as_dict() for one in kb.match(record, limit)]} for record in records]
    except TypeError as error:
        raise ValueError(str(error)) from error


# ---------------------------------------------------------------------- judgements


def judged(kb: KnowledgeBase, desk: Desk, body: bodies.Judgement, user: str) -> dict[str, Any]:
    """Record a judgement; what it is about, and what came of it."""
    before = last_event(kb)
    if body.kind == "split":
        number = kb.split(str(body.entity), body.fragments or (), by=body.by, user=user)
    else:
        methods: dict[str, Callable[..., int]] = {
            "confirm": kb.confirm,
            "separate": kb.separate,
            "unsure": kb.unsure,
        }
        number = methods[body.kind](body.first, body.second, user=user)
    row = next(row for row in reversed(kb.judgements()) if row.number == number)
    return {
        "judgement": number,
        "kind": row.kind,
        "first": row.first,
        "second": row.second,
        "sides": row.sides,
        "user": row.user,
        "events": [event.as_dict() for event in kb.events(since=before)],
        "expected_wrong_pairs": wrong_pairs(kb, desk),
    }


def undone(kb: KnowledgeBase, desk: Desk, judgement: int | None, user: str) -> dict[str, Any]:
    """Take a judgement back; what has changed."""
    before = last_event(kb)
    number = kb.undo(judgement, user=user)
    events = [event.as_dict() for event in kb.events(since=before)]
    return {"undone": number, "events": events, "expected_wrong_pairs": wrong_pairs(kb, desk)}
