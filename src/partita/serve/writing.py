"""The calls that change something: fragments come in, humans judge and take back. And one that only might: match."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Depends
from starlette.responses import Response

from partita.kb import KnowledgeBase
from partita.serve import bodies
from partita.serve.desk import Desk, last_event
from partita.serve.errors import Json
from partita.serve.reading import wrong_pairs
from partita.serve.security import Caller, Judge, only_known


def router(desk: Desk) -> APIRouter:
    """The calls, answered by a desk."""
    routes = APIRouter(tags=["write"], dependencies=[Depends(only_known)], default_response_class=Json)

    @routes.post("/judgements", status_code=201)
    async def judge(caller: Judge, body: bodies.Judgement) -> Response:
        """Say that two fragments or entities are the same, are not, or cannot be told apart; or cut one."""
        return Json(await desk.ask(judged, desk, body, user_of(body.user, caller)), 201)

    @routes.post("/undo")
    async def undo(caller: Judge, body: bodies.Undo) -> Response:
        """Take a judgement back: the last one, or any."""
        return Json(await desk.ask(undone, desk, body.judgement, user_of(body.user, caller)))

    return routes


def user_of(named: str | None, caller: Caller) -> str:
    """Whose judgement it is: as the request says, else as the token says."""
    return named or caller.name or "api"


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
