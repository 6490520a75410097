"""Commands that read a knowledge base and change nothing in it."""

from __future__ import annotations

import sys
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from partita.cli import arguments as args
from partita.cli.session import console, note, opened, print_json, print_json_lines, progress, refusing

if TYPE_CHECKING:
    from partita.kb import KnowledgeBase
    from partita.kb.queries.answers import Entity

PAGE = 30  # entities or events that are listed as text unless more are asked for
LABELS = ("entity_id", "cluster_id", "entity", "cluster", "label", "truth")  # usual names of the true entity


@refusing
def entities(
    kb: args.Base,
    minimum: Annotated[
        int, typer.Option("--min", min=1, help="Leave out entities with fewer fragments.")
    ] = 1,
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
    """List the entities, the largest first."""
    most = (None if json else PAGE) if limit is None else limit or None
    with opened(kb) as base:
        found = base.entities(minimum=minimum, limit=None if most is None else most + 1)
        if json:
            print_json_lines(entity.as_dict() for entity in islice(found, most))
            return
        from partita.cli import drawing

        rows = list(found)
        drawing.entities(console(), rows[:most])
        if most is not None and len(rows) > most:
            total = base.stats()["entities"]
            note(f"{most} of {total:,} entities or fewer; --limit 0 lists all.")


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
    json: args.Json = False,
) -> None:
    """Show an entity, or a fragment and what it is of."""
    moment = args.moment(as_of)
    with opened(kb) as base:
        if not entity and moment is None and not events and is_fragment(base, id):
            show_fragment(base, id, json)
            return
        found = found_entity(base, id, moment)
        happened = base.events(entity=found.id) if events else None
    if json:
        history = {} if happened is None else {"events": [event.as_dict() for event in happened]}
        print_json({**found.as_dict(), **history})
        return
    from partita.cli import drawing

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
    from partita.cli import drawing

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
    from partita.cli import drawing

    drawing.explanation(console(), found)


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
    from partita.cli import drawing

    drawing.events(console(), shown)
    if len(shown) < len(found):
        note(f"The last {len(shown):,} of {len(found):,}; --limit 0 lists all.")


@refusing
def stats(kb: args.Base, json: args.Json = False) -> None:
    """Say how much there is of everything."""
    with opened(kb) as base:
        print_pairs(base.stats(), json)


@refusing
def evaluate(
    kb: args.Base,
    truth: Annotated[
        str,
        typer.Argument(
            metavar="TRUTH",
            help="A file with ids of fragments and their true entities; may be the data themselves.",
            show_default=False,
        ),
    ],
    id: args.Id = None,
    label: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help=f"The column of the true entity; the first of {', '.join(LABELS)} unless given.",
            show_default=False,
        ),
    ] = None,
    loss: Annotated[args.Loss, typer.Option(help="Which clustering to evaluate.")] = args.Loss.map,
    format: args.InputFormat = None,
    json: args.Json = False,
) -> None:
    """Say how good the clustering is, where the true entities of some fragments are known."""
    with opened(kb) as base:
        known = read_truth(truth, id, label, format)
        print_pairs(base.evaluate(known, loss=loss.value), json)


@refusing
def export(
    kb: args.Base,
    output: Annotated[
        str,
        typer.Argument(
            metavar="OUT", help="The file to write, or - for standard output.", show_default=False
        ),
    ],
    what: Annotated[
        args.What,
        typer.Option(
            help="Entities with their values; fragments with their entities; entities in the manner of "
            "FollowTheMoney; clusterings drawn from the posterior."
        ),
    ] = args.What.entities,
    format: args.OutputFormat = None,
    samples: Annotated[int, typer.Option(min=1, help="How many clusterings to draw.")] = 100,
    json: args.Json = False,
) -> None:
    """Write what is known to a file: JSON lines, CSV or Parquet."""
    check_output(output)
    with opened(kb) as base, progress("writing", None):
        n = base.export(output, what.value, format=output_format(output, format), samples=samples)
    report_written(output, n, json, what=what.value)


@refusing
def labels(
    kb: args.Base,
    output: Annotated[
        str,
        typer.Argument(
            metavar="OUT", help="The file to write, or - for standard output.", show_default=False
        ),
    ],
    loss: Annotated[
        args.Loss, typer.Option(help="What the clustering is to be the best for.")
    ] = args.Loss.map,
    false_merge_cost: Annotated[
        float | None, typer.Option(min=0.0, help="Of a wrong merge, with binder.", show_default=False)
    ] = None,
    false_split_cost: Annotated[
        float | None, typer.Option(min=0.0, help="Of a wrong split, with binder.", show_default=False)
    ] = None,
    format: args.OutputFormat = None,
    json: args.Json = False,
) -> None:
    """Write a cluster's number for each fragment, of the clustering that is the best for a loss."""
    costs = {"false_merge_cost": false_merge_cost, "false_split_cost": false_split_cost}
    given = {name: cost for name, cost in costs.items() if cost is not None}
    if given and loss is not args.Loss.binder:
        raise typer.BadParameter("costs go with --loss binder")
    check_output(output)
    from partita.kb.io import write

    with opened(kb) as base:
        found = base.labels(loss.value, **given)
        rows = ({"fragment": id, "label": label} for id, label in found.items())
        n = write(rows, output, output_format(output, format))
    report_written(output, n, json, loss=loss.value)


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
    from partita.cli import drawing

    drawing.fragment(console(), found, of)


def print_pairs(found: dict[str, Any], json: bool) -> None:
    """Numbers by name."""
    if json:
        print_json(found)
        return
    from partita.cli import drawing

    drawing.pairs(console(), found)


def read_truth(path: str, id: str | None, label: str | None, format: args.Format | None) -> dict[str, str]:
    """The true entity of each fragment that a file names, by id."""
    from partita.cli.input import check_are_data
    from partita.kb.io import read

    check_are_data([path])
    found: dict[str, str] = {}
    for row, fields in read(path, None if format is None else format.value):
        key = field_of(row, fields, (id,) if id else ("id", "fragment"), "--id")
        true = field_of(row, fields, (label,) if label else LABELS, "--label")
        if key in (None, "") or true in (None, ""):
            continue
        if found.setdefault(str(key), str(true)) != str(true):
            raise ValueError(f"row {row}: {key!r} is of two true entities, {found[str(key)]!r} and {true!r}")
    if not found:
        raise ValueError(f"{path} names no true entity of any fragment")
    return found


def field_of(row: object, fields: dict[str, Any], names: tuple[str, ...], option: str) -> Any:
    """The first of some fields that there is."""
    for name in names:
        if name in fields:
            return fields[name]
    wanted, there = " or ".join(map(repr, names)), ", ".join(map(repr, fields))
    raise ValueError(f"row {row}: there is no field {wanted}; name one of {there} with {option}")


def check_output(output: str) -> None:
    """Raise ValueError if a terminal would receive data as they are."""
    if output == "-" and sys.stdout.isatty():
        raise ValueError("this would write raw data to the terminal: name a file, or pipe it on")


def output_format(output: str, format: args.Format | None) -> str | None:
    """The format that was named; JSON lines on standard output."""
    if format is not None:
        return format.value
    return "jsonl" if output == "-" else None


def report_written(output: str, rows: int, json: bool, **more: str) -> None:
    """How many rows were written; beside the data, if these went to standard output."""
    if output == "-":
        note(f"{rows:,} rows written.")
    elif json:
        print_json({"path": output, "rows": rows, **more})
    else:
        typer.echo(f"{rows:,} rows written to {output}")
