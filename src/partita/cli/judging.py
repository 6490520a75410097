"""Commands with which a human corrects a knowledge base."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from partita.cli import arguments as args
from partita.cli.opening import opened
from partita.cli.output import console, note, print_json, print_json_lines, refusing
from partita.terminal.text import event_in_words, safe

if TYPE_CHECKING:
    from partita.kb import KnowledgeBase

SAID = {"confirm": "the same", "separate": "different", "unsure": "undecidable"}


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
def undo(
    kb: args.Base,
    judgement: Annotated[
        int,
        typer.Argument(metavar="JUDGEMENT", help="Its number, as judgements lists it.", show_default=False),
    ],
    user: args.User = None,
    json: args.Json = False,
) -> None:
    """Take a judgement back."""
    with opened(kb) as base:
        before = base.stats()["events"]
        base.undo(judgement, user=user)
        events = base.events(since=before)
    if json:
        print_json({"undone": judgement, "events": [event.as_dict() for event in events]})
        return
    typer.echo(f"Judgement {judgement} is undone.")
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
    if json:
        print_json({**report, "events": [event.as_dict() for event in report["events"]]})
        return
    print_judgement(report)
    note(f"To take it back: partita undo {kb} {report['judgement']}")


def judge(base: KnowledgeBase, kind: str, a: str, b: str, user: str | None) -> dict[str, Any]:
    """Record a judgement; its number, what it is about, and what came of it."""
    methods: dict[str, Callable[..., int]] = {
        "confirm": base.confirm,
        "separate": base.separate,
        "unsure": base.unsure,
    }
    before = base.stats()["events"]
    number = methods[kind](a, b, user=user)
    row = next(row for row in reversed(base.judgements()) if row.number == number)
    report = {"judgement": number, "kind": kind, "first": row.first, "second": row.second, "user": row.user}
    return {**report, "events": base.events(since=before)}


def print_judgement(report: dict[str, Any]) -> None:
    """A judgement and its consequences, in words."""
    said = f"{report['first']} and {report['second']} are {SAID[report['kind']]}"
    typer.echo(safe(f"Judgement {report['judgement']} by {report['user']}: {said}."))
    print_consequences(report["events"])


def print_consequences(events: list[Any]) -> None:
    """What has changed because of a judgement."""
    changes = [event for event in events if event.entity is not None]
    for event in changes:
        typer.echo(f"  {safe(event_in_words(event))}")
    if not changes:
        typer.echo("  No entity has changed.")
