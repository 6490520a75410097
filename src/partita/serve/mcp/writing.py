"""The tools that change something, which are there only if that was asked for; they leave the same events."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from partita.kb import KnowledgeBase
from partita.serve import bodies
from partita.serve.desk import Desk, last_event
from partita.serve.mcp import arguments as args
from partita.serve.mcp.sizes import cut
from partita.serve.writing import judged, undone

EVENTS = 20  # of what came of a change

Tool = Callable[[Desk, Any], Coroutine[Any, Any, dict[str, Any]]]


def tools(user: str) -> dict[str, Tool]:
    """The tools by name, for judgements of a user."""

    async def answer(desk: Desk, given: args.Answer) -> dict[str, Any]:
        """Record a judgement."""
        said = {name: value for name, value in given.model_dump().items() if value}
        return summed_up(await desk.ask(judged, desk, bodies.Judgement(**said), user))

    async def undo(desk: Desk, given: args.Undo) -> dict[str, Any]:
        """Take a judgement back."""
        return summed_up(await desk.ask(undone, desk, given.judgement or None, user))

    async def add(desk: Desk, given: args.Add) -> dict[str, Any]:
        """Take fragments in."""
        return summed_up(await desk.ask(added, given.fragments))

    return {"answer": answer, "undo": undo, "add": add}


def added(kb: KnowledgeBase, fragments: list[dict[str, Any]]) -> dict[str, Any]:
    """Add fragments; how many were new, and what came of it."""
    before = last_event(kb)
    done = kb.add(fragments)
    return done._asdict() | {"events": [event.as_dict() for event in kb.events(since=before)]}


def summed_up(report: dict[str, Any]) -> dict[str, Any]:
    """A report with its first events, and how many there are."""
    events = report.pop("events")
    return cut(report | {"n_events": len(events), "events": events[:EVENTS]})
