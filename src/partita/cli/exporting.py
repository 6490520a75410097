"""Commands that take what a knowledge base knows elsewhere: to a file, or to be compared with the truth."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from partita.cli import arguments as args
from partita.cli.asking import print_pairs
from partita.cli.input import check_are_data
from partita.cli.opening import opened
from partita.cli.output import note, print_json, progress, refusing

LABELS = ("entity_id", "cluster_id", "entity", "cluster", "label", "truth")  # usual names of the true entity


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


def read_truth(path: str, id: str | None, label: str | None, format: args.Format | None) -> dict[str, str]:
    """The true entity of each fragment that a file names, by id."""
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
