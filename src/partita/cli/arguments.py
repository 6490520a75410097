"""Arguments and options that several commands share."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated

import typer


class Format(StrEnum):
    """Formats of files; the rest are other names of these."""

    jsonl = "jsonl"
    json = "json"
    ndjson = "ndjson"
    csv = "csv"
    tsv = "tsv"
    parquet = "parquet"
    xlsx = "xlsx"
    feather = "feather"
    arrow = "arrow"


class What(StrEnum):
    """What can be exported."""

    entities = "entities"
    golden = "golden"
    fragments = "fragments"
    clusters = "clusters"
    ftm = "ftm"
    samples = "samples"


class Loss(StrEnum):
    """Losses that a clustering can be the best for."""

    map = "map"
    bcubed = "bcubed"
    vi = "vi"
    binder = "binder"


Base = Annotated[
    str,
    typer.Argument(
        metavar="KB", help="The knowledge base: a file, or a postgresql:// URL.", show_default=False
    ),
]
Data = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA...",
        help="Files of fragments or records: CSV, JSON lines, Excel, Parquet, Feather, patterns such as 'data/*.csv', "
        "folders of Parquet; - is standard input.",
        show_default=False,
    ),
]
First = Annotated[str, typer.Argument(metavar="A", help="A fragment, or an entity.", show_default=False)]
Second = Annotated[str, typer.Argument(metavar="B", help="Another one.", show_default=False)]
Json = Annotated[
    bool, typer.Option("--json", help="Print JSON: one document, or one a line where it is a list.")
]
Diagnostics = Annotated[
    bool,
    typer.Option(
        "--diagnostics", help="Also say what the sampler did: candidates, particles, merges, splits."
    ),
]
User = Annotated[
    str | None,
    typer.Option(
        "--user",
        envvar="PARTITA_USER",
        help="Whose judgement it is; whoever is logged in, unless given.",
        show_default=False,
    ),
]
Id = Annotated[
    str | None,
    typer.Option(
        "--id", metavar="COLUMN", help="The column of the ids; 'id' unless given.", show_default=False
    ),
]
NoId = Annotated[bool, typer.Option("--no-id", help="No column has ids: make them of what each row says.")]
Source = Annotated[
    str | None,
    typer.Option(
        "--source",
        metavar="COLUMN",
        help="The column that says where a row is from; 'source' unless given.",
        show_default=False,
    ),
]
SourceName = Annotated[
    str | None,
    typer.Option(
        "--source-name",
        metavar="NAME",
        help="Where all rows are from, if no column says it.",
        show_default=False,
    ),
]
Sync = Annotated[
    bool,
    typer.Option(
        "--sync",
        help="The data are the whole truth of their source: remove what it had and the data have not.",
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="With --sync: say what would be done, and change nothing.")
]
SyncYes = Annotated[
    bool,
    typer.Option("--yes", "-y", help="With --sync: even if more than half of a source would be removed."),
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print errors only: no progress, no notes, no summary.")
]
Ignore = Annotated[
    list[str],
    typer.Option(
        "--ignore", metavar="COLUMN", help="A column to leave out; may be repeated.", show_default=False
    ),
]
Name = Annotated[
    str | None,
    typer.Option(
        "--name",
        metavar='"ATTRIBUTE…"',
        help='The attributes that name an entity, such as "first_name last_name"; chosen by what identifies '
        "unless given.",
        show_default=False,
    ),
]
InputFormat = Annotated[
    Format | None,
    typer.Option("--format", help="Of the data; their names tell, unless given.", show_default=False),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding",
        metavar="NAME",
        help="Of text, such as windows-1252; found out unless given.",
        show_default=False,
    ),
]
Sheet = Annotated[
    str | None,
    typer.Option(
        "--sheet", metavar="NAME", help="Of Excel workbooks; the first unless given.", show_default=False
    ),
]
OutputFormat = Annotated[
    Format | None,
    typer.Option("--format", help="Of the file; its name tells, unless given.", show_default=False),
]
Batch = Annotated[int, typer.Option("--batch", min=1, help="How many fragments are made durable at a time.")]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        min=1,
        help="How many threads share the work; what comes out is the same for any number.",
        show_default=False,
    ),
]
SkipEmpty = Annotated[bool, typer.Option("--skip-empty", help="Pass over rows that say nothing.")]


def moment(text: str | None) -> int | datetime | None:
    """An event's number, or a time; usage error if it is neither."""
    if text is None:
        return None
    if text.isascii() and text.isdecimal():
        return int(text)
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is neither the number of an event nor a time such as 2026-01-31T09:30"
        ) from None
