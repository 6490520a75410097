"""Commands about a schema: which attributes there are, and how values of each are compared."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from partita.cli import arguments as args
from partita.cli.filling import print_relearnt, relearn_all
from partita.cli.input import Input
from partita.cli.opening import opened, read_schema
from partita.cli.output import note, print_json, refusing

app = typer.Typer(
    no_args_is_help=True,
    help="See or change which attributes there are, and how their values are compared.",
)
ENOUGH = 50_000  # rows to infer a schema from


@app.command()
@refusing
def infer(
    data: args.Data,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The file to write; printed unless given.", show_default=False),
    ] = None,
    id: args.Id = None,
    no_id: args.NoId = False,
    source: args.Source = None,
    ignore: args.Ignore = [],  # noqa: B006
    format: args.InputFormat = None,
    json: args.Json = False,
) -> None:
    """Infer a schema from data, as TOML, to be edited and given to build."""
    from partita.models.records.record import Record

    given = Input(data, id, no_id, source, ignore, format, skip_empty=True)
    found = [fragment.properties for fragment in islice(given.fragments(given.reader()), ENOUGH)]
    text = Record.infer(found).to_toml()
    if output is not None:
        output.write_text(text, encoding="utf-8")
    if json:
        print_json({"schema": text} if output is None else {"path": str(output), "schema": text})
    elif output is None:
        typer.echo(text, nl=False)
    else:
        typer.echo(f"Schema written to {output}; use it with partita build … --schema {output}")


@app.command()
@refusing
def show(kb: args.Base, json: args.Json = False) -> None:
    """Print the schema of a knowledge base as TOML, with what has been learnt."""
    with opened(kb) as base:
        text = base.schema
    if json:
        print_json({"schema": text})
    else:
        typer.echo(text, nl=False)


@app.command()
@refusing
def edit(kb: args.Base, json: args.Json = False) -> None:
    """Edit the schema of a knowledge base in $EDITOR, then learn and cluster anew."""
    with opened(kb) as base:
        before = base.schema
        file = edited(before)
        after = read_schema(file)  # the file stays if it is refused, so that no work is lost
        file.unlink()
        if after == before:
            note("The schema is as it was: nothing to do.")
            report = {"entities": base.stats()["entities"], "events": {}}
        else:
            report = relearn_all(base, after)
    print_relearnt(report, json)


def edited(text: str) -> Path:
    """A file with what the user has made of a text."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ("notepad" if os.name == "nt" else "vi")
    with tempfile.NamedTemporaryFile(
        "w", prefix="partita-schema-", suffix=".toml", delete=False, encoding="utf-8"
    ) as file:
        file.write(text)
    try:
        done = subprocess.run([*shlex.split(editor), file.name], check=False)
    except FileNotFoundError:
        Path(file.name).unlink()
        raise ValueError(f"there is no editor {editor!r}: set EDITOR to one") from None
    if done.returncode:
        Path(file.name).unlink()
        raise ValueError(f"{editor!r} ended with exit code {done.returncode}: nothing was changed")
    return Path(file.name)
