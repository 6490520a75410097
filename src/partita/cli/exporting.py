"""Commands that write what a knowledge base knows to a file."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from partita.cli import arguments as args
from partita.cli.opening import opened
from partita.cli.output import note, print_json, progress, refusing


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
    """Write what is known to a file: JSON lines, CSV, Excel, Parquet or Feather."""
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
