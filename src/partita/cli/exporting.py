"""Commands that write what a knowledge base knows to a file."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from partita.cli import arguments as args
from partita.cli.opening import opened
from partita.cli.output import answer, note, print_json, refusing
from partita.cli.progress import watching
from partita.terminal.text import so_many


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
        args.What | None,
        typer.Option(
            help="Entities with their values; with one best value each (golden); fragments with their entities; "
            "the same in Splink's columns (clusters); entities for FollowTheMoney (ftm); clusterings drawn from "
            "the posterior (samples).",
            show_default="entities",
        ),
    ] = None,
    golden: Annotated[
        bool, typer.Option("--golden", help="The same as --what golden: one best value an attribute.")
    ] = False,
    rule: Annotated[
        list[str],
        typer.Option(
            "--rule",
            metavar="COLUMN=RULE",
            help="Which value is the best, in golden records: probable (the default), recent, recent:DATE_COLUMN, "
            "longest, or source:FIRST,SECOND; may be repeated.",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    plain: Annotated[
        bool,
        typer.Option(
            "--plain", help="Golden records without how probable values are and how many fragments agree."
        ),
    ] = False,
    with_fields: Annotated[
        bool, typer.Option("--with-fields", help="Clusters with what the fragments say.")
    ] = False,
    format: args.OutputFormat = None,
    samples: Annotated[int, typer.Option(min=1, help="How many clusterings to draw.")] = 100,
    json: args.Json = False,
    quiet: args.Quiet = False,
) -> None:
    """Write what is known to a file: JSON lines, CSV, Excel, Parquet or Feather."""
    check_output(output)
    if golden and what not in (None, args.What.golden):
        raise typer.BadParameter(f"--golden and --what {what} exclude each other")
    wanted = "golden" if golden else "entities" if what is None else what.value
    check_goes_with(wanted, "golden", {"--rule": bool(rule), "--plain": plain})
    check_goes_with(wanted, "clusters", {"--with-fields": with_fields})
    options: dict[str, Any] = {"rules": rules_from(rule), "plain": plain, "with_fields": with_fields}
    with opened(kb) as base, watching() as watch:
        base.watch(watch)
        n = base.export(output, wanted, format=output_format(output, format), samples=samples, **options)
    report_written(output, n, json, what=wanted)


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
    from partita.kb.inputs import check_is_none
    from partita.kb.io import write

    with opened(kb) as base:
        check_is_none(base.store, output)
        found = base.labels(loss.value, **given)
        rows = ({"fragment": id, "label": label} for id, label in found.items())
        n = write(rows, output, output_format(output, format))
    report_written(output, n, json, loss=loss.value)


# ---------------------------------------------------------------------- helpers


def check_goes_with(wanted: str, kind: str, given: dict[str, bool]) -> None:
    """Usage error for options of one kind of export with another."""
    for name, is_given in given.items():
        if is_given and wanted != kind:
            raise typer.BadParameter(f"{name} goes with --what {kind}")


def rules_from(given: list[str]) -> dict[str, str]:
    """Rules by attribute, of options such as ``phone=recent``."""
    rules = {}
    for text in given:
        attribute, divider, rule = text.rpartition("=")
        if not divider or not attribute:
            raise typer.BadParameter(f"{text!r} is no rule: write COLUMN=RULE, such as phone=recent")
        rules[attribute.strip()] = rule.strip()
    return rules


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
        note(f"{so_many(rows, 'row', 'rows')} written.")
    elif json:
        print_json({"path": output, "rows": rows, **more})
    else:
        answer(f"{so_many(rows, 'row', 'rows')} written to {output}")
