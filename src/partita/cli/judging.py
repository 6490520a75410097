"""Commands with which a human corrects a knowledge base."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from partita.cli import arguments as args
from partita.cli.opening import opened
from partita.cli.output import console, note, print_json, print_json_lines, refusing
from partita.terminal.text import consequences_in_words, judgement_in_words, safe

if TYPE_CHECKING:
    from partita.kb import KnowledgeBase
    from partita.kb.queries.answers import Event


@refusing
def confirm(
    kb: args.Base, a: args.First, b: args.Second, user: args.User = None, json: args.Json = False
) -> None:
    """Say that two fragments, or entities, are of the same thing."""
    judge_and_report(kb, "confirm", a, b, user, json)


@refusing
def separate(
    kb: args.Base, a: args.First, b: args.Second, user: args.User = None, json: args.Json = False
) -> None:
    """Say that two fragments, or entities, are not of the same thing."""
    judge_and_report(kb, "separate", a, b, user, json)


@refusing
def unsure(
    kb: args.Base, a: args.First, b: args.Second, user: args.User = None, json: args.Json = False
) -> None:
    """Say that nobody can tell, so that it is not asked again."""
    judge_and_report(kb, "unsure", a, b, user, json)


@refusing
def split(
    kb: args.Base,
    entity: Annotated[str, typer.Argument(metavar="ENTITY", help="Such as E10.", show_default=False)],
    fragments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FRAGMENT]...", help="Those that are of another thing than the rest.", show_default=False
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="ATTRIBUTE",
            help="Instead of them: fragments with different values of it are of different things.",
            show_default=False,
        ),
    ] = None,
    user: args.User = None,
    json: args.Json = False,
) -> None:
    """Say that an entity is several things."""
    with opened(kb) as base:
        before = last_event(base)
        number = base.split(entity, fragments or (), by=by, user=user)
        report = report_of(base, number, before)
    print_report(kb, report, json)


@refusing
def undo(
    kb: args.Base,
    judgement: Annotated[
        int | None,
        typer.Argument(
            metavar="[JUDGEMENT]",
            help="Its number, as judgements lists it; the last one unless given.",
            show_default=False,
        ),
    ] = None,
    user: args.User = None,
    json: args.Json = False,
) -> None:
    """Take a judgement back: the last one, or any."""
    with opened(kb) as base:
        before = last_event(base)
        undone = base.undo(judgement, user=user)
        events = events_of(base, undone, before)
    if json:
        print_json({"undone": undone, "events": [event.as_dict() for event in events]})
        return
    typer.echo(f"Judgement {undone} is undone.")
    print_consequences(events)


@refusing
def judgements(kb: args.Base, json: args.Json = False) -> None:
    """List all judgements, those undone as well."""
    with opened(kb) as base:
        found = base.judgements()
    if json:
        print_json_lines(row.as_dict() for row in found)
        return
    if not found:
        note("Nobody has judged anything yet.")
        return
    from partita.terminal import drawing

    drawing.judgements(console(), found)


# ---------------------------------------------------------------------- the work


def judge_and_report(kb: str, kind: str, a: str, b: str, user: str | None, json: bool) -> None:
    """Record a judgement, and say what came of it."""
    with opened(kb) as base:
        report = judge(base, kind, a, b, user)
    print_report(kb, report, json)


def judge(base: KnowledgeBase, kind: str, a: str, b: str, user: str | None) -> dict[str, Any]:
    """Record a judgement; its number, what it is about, and what came of it."""
    methods: dict[str, Callable[..., int]] = {
        "confirm": base.confirm,
        "separate": base.separate,
        "unsure": base.unsure,
    }
    before = last_event(base)
    return report_of(base, methods[kind](a, b, user=user), before)


def last_event(base: KnowledgeBase) -> int:
    """The number of the last event."""
    return int(base.stats()["events"])


def report_of(base: KnowledgeBase, number: int, before: int) -> dict[str, Any]:
    """A judgement, what it is about, and what came of it."""
    row = next(row for row in reversed(base.judgements()) if row.number == number)
    report = {"judgement": number, "kind": row.kind, "first": row.first, "second": row.second}
    return {**report, "sides": row.sides, "user": row.user, "events": events_of(base, number, before)}


def events_of(base: KnowledgeBase, judgement: int, since: int) -> list[Event]:
    """What a judgement, or its undoing, has brought about since an event; others may write meanwhile."""
    return [
        event
        for event in base.events(since=since)
        if judgement in (event.detail.get("judgement"), event.detail.get("undone"))
    ]


def print_report(kb: str, report: dict[str, Any], json: bool) -> None:
    """A judgement and its consequences, and how to take it back."""
    if json:
        print_json({**report, "events": [event.as_dict() for event in report["events"]]})
        return
    print_judgement(report)
    note(f"To take it back: partita undo {kb} {report['judgement']}")


def print_judgement(report: dict[str, Any]) -> None:
    """A judgement and its consequences, in words."""
    said = judgement_in_words(report["kind"], report["first"], report["second"])
    typer.echo(safe(f"Judgement {report['judgement']} by {report['user']}: {said}."))
    print_consequences(report["events"])


def print_consequences(events: list[Any]) -> None:
    """What has changed because of a judgement, in a few lines."""
    lines = consequences_in_words([event for event in events if event.entity is not None])
    for line in lines or ["No entity has changed."]:
        typer.echo(f"  {safe(line)}")
