"""The command that takes over what another tool was told: settings of Splink."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from partita.cli import arguments as args
from partita.cli.output import complain, console, print_json, refusing

if TYPE_CHECKING:
    from partita.models.records.splink import Imported


@refusing
def import_splink(
    settings: Annotated[
        Path,
        typer.Argument(
            metavar="SETTINGS.json",
            help="Settings or a model, as Splink 4 or 5 saves them.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The schema to write; printed unless given.", show_default=False),
    ] = None,
    json: args.Json = False,
) -> None:
    """Turn settings of Splink into a schema, and say what corresponds to what.

    Comparisons become kinds of attributes. Blocking rules have no counterpart: Partita finds by itself which records
    to compare. Columns that no comparison names are ignored. Splink need not be installed.
    """
    from partita.models.records.splink import imported

    try:
        contents = json_module.loads(settings.read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise ValueError(f"{settings} is not JSON: {error}") from None
    found = imported(contents)
    schema = found.model.to_toml()
    if output is not None:
        output.write_text(schema, encoding="utf-8")
    if json:
        print_json(
            {
                "schema": schema,
                "path": None if output is None else str(output),
                "comparisons": [one._asdict() for one in found.compared],
                "blocking_rules": found.rules,
                "options": found.options,
                "warnings": found.warnings,
            }
        )
        return
    explain(found, error=output is None)
    if output is None:
        typer.echo(schema, nl=False)
        return
    use = " ".join(["partita build DATA -o KB", f"--schema {output}", *found.options])
    typer.echo(f"Schema written to {output}; use it with {use}")


def explain(found: Imported, error: bool) -> None:
    """The table of what corresponds to what; where the schema is the answer, beside it."""
    from partita.terminal.drawing import cell, table
    from partita.terminal.text import shortened

    shown = table("comparison", "attribute", "kind", "no counterpart")
    for one in found.compared:
        shown.add_row(
            cell(shortened(one.comparison)), cell(one.column), cell(one.kind, "cyan"), cell(one.lost, "dim")
        )
    for rule in found.rules:
        shown.add_row(
            cell(f"blocking rule {shortened(rule)}"), cell("–"), cell("–"), cell("not needed", "dim")
        )
    console(error).print(shown)
    for warning in found.warnings:
        complain(f"Warning: {warning}")
