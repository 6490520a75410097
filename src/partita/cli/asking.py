"""Commands that read a knowledge base and change nothing in it."""

from __future__ import annotations

from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from partita.cli import arguments as args
from partita.cli.opening import opened
from partita.cli.output import console, note, print_json, print_json_lines, refusing

if TYPE_CHECKING:
    from partita.kb import KnowledgeBase
    from partita.kb.queries.answers import Entity


class Sort(StrEnum):
    """Orders in which entities are listed."""

    size = "size"
    sure = "sure"
    recent = "recent"
    name = "name"


PAGE = 30  # entities or events that are listed as text unless more are asked for


@refusing
def entities(
    kb: args.Base,
    sort: Annotated[
        Sort,
        typer.Option(
            help="The largest first; the least sure; those that a fragment came to last; or by name."
        ),
    ] = Sort.size,
    minimum: Annotated[
        int, typer.Option("--min-size", "--min", min=1, help="Leave out entities with fewer fragments.")
    ] = 1,
    where: Annotated[
        list[str],
        typer.Option(
            metavar="ATTRIBUTE=VALUE",
            help="Only entities of which a fragment says so, whatever the case; may be repeated.",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    limit: Annotated[
        int | None,
        typer.Option(
            min=0,
            help=f"How many at most, 0 for all; {PAGE} unless given, and all with --json.",
            show_default=False,
        ),
    ] = None,
    json: args.Json = False,
) -> None:
    """List the entities, the largest first unless --sort says otherwise."""
    most = (None if json else PAGE) if limit is None else limit or None
    wanted = conditions(where)
    with opened(kb) as base:
        found = base.entities(
            sort=sort, minimum=minimum, where=wanted, limit=None if most is None else most + 1
        )
        if json:
            print_json_lines(entity.as_dict() for entity in islice(found, most))
            return
        from partita.terminal import drawing

        rows = list(found)
        if not rows and base.stats()["entities"]:
            note("No entity is so.")
            return
        drawing.entities(console(), rows[:most], base.comparing)
        if most is not None and len(rows) > most:
            total = f" of {base.stats()['entities']:,}" if minimum == 1 and not wanted else ""
            note(f"The first {most}{total}; --limit 0 lists all.")


@refusing
def show(
    kb: args.Base,
    id: Annotated[str, typer.Argument(metavar="ID", help="An entity, or a fragment.", show_default=False)],
    as_of: Annotated[
        str | None,
        typer.Option(
            "--as-of",
            metavar="EVENT|TIME",
            help="As the entity was after an event, or at a time such as 2026-01-31T09:30.",
            show_default=False,
        ),
    ] = None,
    events: Annotated[bool, typer.Option("--events", help="Also what has happened to the entity.")] = False,
    entity: Annotated[
        bool, typer.Option("--entity", help="The entity, even if a fragment has the same id.")
    ] = False,
    rows: Annotated[
        bool, typer.Option("--rows", help="The entity's fragments one a line, with what differs marked.")
    ] = False,
    json: args.Json = False,
) -> None:
    """Show an entity, or a fragment and what it is of."""
    moment = args.moment(as_of)
    if rows and (moment is not None or events):
        raise ValueError("--rows shows an entity as it is, without --as-of or --events")
    with opened(kb) as base:
        if rows:
            show_rows(base, id, json)
            return
        if not entity and moment is None and not events and is_fragment(base, id):
            show_fragment(base, id, json)
            return
        found = found_entity(base, id, moment)
        happened = base.events(entity=found.id) if events else None
    if json:
        history = {} if happened is None else {"events": [event.as_dict() for event in happened]}
        print_json({**found.as_dict(), **history})
        return
    from partita.terminal import drawing

    drawing.entity(console(), found, happened)


@refusing
def search(
    kb: args.Base,
    words: Annotated[
        list[str], typer.Argument(metavar="WORDS...", help="Or how they begin.", show_default=False)
    ],
    limit: Annotated[int, typer.Option(min=1, help="How many at most.")] = 10,
    json: args.Json = False,
) -> None:
    """Find entities by words of what their fragments say; a misspelt word finds the nearest."""
    with opened(kb) as base:
        found = base.search(" ".join(words), limit=limit)
    if json:
        print_json_lines(row.as_dict() for row in found)
        return
    if not found:
        note("Nothing found.")
        return
    from partita.terminal import drawing

    drawing.search(console(), found)


@refusing
def explain(kb: args.Base, a: args.First, b: args.Second, json: args.Json = False) -> None:
    """Explain why two fragments, or entities, are the same or not.

    Each line is evidence in nats: above 0 for the same, below 0 for different. The lines sum to the log-odds.
    """
    with opened(kb) as base:
        found = base.explain(a, b)
    if json:
        print_json(found.as_dict())
        return
    from partita.terminal import waterfall

    waterfall.explanation(console(), found)


@refusing
def events(
    kb: args.Base,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="EVENT|TIME",
            help="After an event, or a time such as 2026-01-31T09:30.",
            show_default=False,
        ),
    ] = None,
    entity: Annotated[str | None, typer.Option(help="Of one entity.", show_default=False)] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            min=0,
            help=f"The last so many, 0 for all; {PAGE} unless given, and all with --json.",
            show_default=False,
        ),
    ] = None,
    json: args.Json = False,
) -> None:
    """List what has happened: entities created, merged, split, judged."""
    most = (None if json else PAGE) if limit is None else limit or None
    with opened(kb) as base:
        found = base.events(since=args.moment(since), entity=entity)
    shown = found if most is None else found[-most:]
    if json:
        print_json_lines(event.as_dict() for event in shown)
        return
    from partita.terminal import drawing

    drawing.events(console(), shown)
    if len(shown) < len(found):
        note(f"The last {len(shown):,} of {len(found):,}; --limit 0 lists all.")


@refusing
def stats(kb: args.Base, json: args.Json = False) -> None:
    """Say how much there is of everything."""
    with opened(kb) as base:
        print_pairs(base.stats(), json)


# ---------------------------------------------------------------------- helpers


def is_fragment(base: KnowledgeBase, id: str) -> bool:
    """Whether a fragment has this id."""
    try:
        base.fragment(id)
    except KeyError:
        return False
    return True


def found_entity(base: KnowledgeBase, id: str, moment: Any) -> Entity:
    """An entity by its id, or that of one of its fragments."""
    try:
        return base.entity(id, as_of=moment)
    except KeyError:
        if moment is not None and not is_fragment(base, id):
            raise
    found = base.entity_of(id)
    return found if moment is None else base.entity(found.id, as_of=moment)


def show_fragment(base: KnowledgeBase, id: str, json: bool) -> None:
    """A fragment as it came, and its entity."""
    found, of = base.fragment(id), base.entity_of(id)
    if json:
        said = {"id": found.id, "source": found.source, "properties": found.properties}
        print_json({**said, "entity": of.as_dict()})
        return
    from partita.terminal import drawing

    drawing.fragment(console(), found, of)


def show_rows(base: KnowledgeBase, id: str, json: bool) -> None:
    """An entity's fragments, one a line."""
    found = found_entity(base, id, None)
    rows = base.rows(found.id)
    if json:
        print_json_lines(row.as_dict() for row in rows)
        return
    from partita.terminal.rows import entity_rows

    out = console()
    left_out = entity_rows(out, found, rows)
    if left_out:
        note(f"Not shown for want of room: {', '.join(left_out)}. Through a pipe, or with --json, all are.")


def conditions(where: list[str]) -> dict[str, list[str]]:
    """Of each attribute the values that are wanted; usage error for what is not ATTRIBUTE=VALUE."""
    found: dict[str, list[str]] = {}
    for text in where:
        attribute, sign, value = text.partition("=")
        if not (attribute.strip() and sign and value.strip()):
            raise typer.BadParameter(f"{text!r} is not ATTRIBUTE=VALUE, such as city=London")
        found.setdefault(attribute.strip(), []).append(value.strip())
    return found


def print_pairs(found: dict[str, Any], json: bool) -> None:
    """Numbers by name."""
    if json:
        print_json(found)
        return
    from partita.terminal import drawing

    drawing.pairs(console(), found)
