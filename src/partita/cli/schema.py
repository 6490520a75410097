"""Commands about a schema: which attributes there are, and how values of each are compared."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from partita.cli import arguments as args
from partita.cli.columns import looked_at
from partita.cli.filling import print_relearnt, relearn_all
from partita.cli.input import Input
from partita.cli.opening import DATA, is_sqlite, opened, read_schema
from partita.cli.output import note, print_json, refusing
from partita.terminal.text import safe

if TYPE_CHECKING:
    from partita.models.records.record import Record

app = typer.Typer(
    no_args_is_help=True,
    help="See or change which attributes there are, and how their values are compared.",
)


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
    encoding: args.Encoding = None,
    sheet: args.Sheet = None,
    json: args.Json = False,
) -> None:
    """Infer a schema from data, as TOML, to be edited and given to build."""
    text = inferred_from(Input(data, id, no_id, source, ignore, format, True, encoding, sheet)).to_toml()
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
def show(
    target: Annotated[
        str,
        typer.Argument(
            metavar="KB|SCHEMA|DATA",
            help="A knowledge base, a schema as a file .toml, or data, from which a schema is inferred.",
            show_default=False,
        ),
    ],
    toml: Annotated[bool, typer.Option("--toml", help="Print the schema as TOML instead.")] = False,
    id: args.Id = None,
    no_id: args.NoId = False,
    source: args.Source = None,
    ignore: args.Ignore = [],  # noqa: B006
    format: args.InputFormat = None,
    encoding: args.Encoding = None,
    sheet: args.Sheet = None,
    json: args.Json = False,
) -> None:
    """Say of each attribute its kind, why it has it, and what has been learnt of it."""
    model = model_of(target, Input([target], id, no_id, source, ignore, format, True, encoding, sheet))
    text = "" if model is None else model.to_toml()
    if json:
        found = {"attributes": [], "size": None} if model is None else model.describe().to_json()
        print_json({"schema": text} | found)
    elif toml:
        typer.echo(text, nl=False)
    elif model is None:
        note(f"{target} has no schema yet: it is inferred from the first fragments.")
    else:
        typer.echo("\n".join(map(safe, str(model.describe()).split("\n"))))


def model_of(target: str, given: Input) -> Record | None:
    """The model of a knowledge base, of a schema's file, or inferred from data; None of an empty knowledge base."""
    from partita.models.records.record import Record

    path = Path(target)
    if path.is_file() and path.suffix.lower() == ".toml":
        return Record.from_toml(read_schema(path))
    if target == "-" or (path.is_file() and path.suffix.lower() in DATA and not is_sqlite(path)):
        return inferred_from(given)
    from partita.kb.store.database import get

    with opened(target) as base:
        with base.store.reading() as connection:
            learnt = get(connection, "model")
        if learnt is not None:
            return Record.from_json(learnt)
        return Record.from_toml(base.schema) if base.schema else None


def inferred_from(given: Input) -> Record:
    """A schema that suits data; what is strange about its columns is said."""
    reader = given.reader()
    return looked_at(given.fragments(reader), reader, None)[1]


@app.command()
@refusing
def edit(kb: args.Base, json: args.Json = False) -> None:
    """Edit the schema of a knowledge base in $EDITOR, then learn and cluster anew."""
    from partita.models.records.record import Record

    with opened(kb) as base:
        file = edited(before := base.schema)
        after = read_schema(file)  # the file stays if it is refused, so that no work is lost
        file.unlink()
        if before and after == Record.from_toml(before).to_toml():  # comments and layout do not matter
            note("The schema is as it was: nothing to do.")
            if json:
                print_json({"entities": base.stats()["entities"], "events": {}})
            return
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
