"""The command that asks where records would go, and adds nothing."""

from __future__ import annotations

import difflib
import json as jsons
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from partita.cli import arguments as args
from partita.cli.exporting import check_output, output_format, report_written
from partita.cli.input import Input
from partita.cli.opening import opened
from partita.cli.output import console, note, print_json_lines, refusing
from partita.cli.progress import watching
from partita.terminal.text import so_many

if TYPE_CHECKING:
    from partita.kb import KnowledgeBase
    from partita.kb.fragments import Fragment
    from partita.kb.queries.match import Match

Found = tuple[
    int, str | None, list["Match"]
]  # the row of a record, its id if it has one, and where it may go


@refusing
def match(
    kb: args.Base,
    record: Annotated[
        list[str],
        typer.Argument(
            metavar="RECORD...",
            help="attribute=value, as often as needed; or a JSON object; or files of records: CSV, JSON lines, "
            "Parquet, - for standard input.",
            show_default=False,
        ),
    ],
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="Write a table to a file; - is standard output.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many places of each record at most.")] = 5,
    id: args.Id = None,
    no_id: args.NoId = False,
    source: args.Source = None,
    ignore: args.Ignore = [],  # noqa: B006
    format: args.InputFormat = None,
    encoding: args.Encoding = None,
    sheet: args.Sheet = None,
    skip_empty: args.SkipEmpty = False,
    json: args.Json = False,
) -> None:
    """Say where records would go, how sure that is and why; nothing is added.

    partita match people.db name="Ada Lovelace" born=1815, or partita match people.db new.csv -o matches.csv
    """
    if output is not None:
        check_output(output)
    files = [] if (said := said_in_words(record)) else record
    given = Input(files, id, no_id, source, ignore, format, skip_empty, encoding, sheet)
    if output not in (None, "-") and Path(str(output)).resolve() in [Path(file).resolve() for file in files]:
        raise ValueError(f"{output} is what would be read: name another file to write")
    with opened(kb) as base:
        records = [(1, said)] if said else given.rows()
        found = matched(base, records, given, limit)
        if output is not None:
            from partita.kb.inputs import check_is_none
            from partita.kb.io import write

            check_is_none(base.store, output)
            n = write(as_rows(found), output, output_format(output, None), columns=COLUMNS)
            report_written(output, n, json)
        elif json:
            print_json_lines(as_documents(found))
        else:
            from partita.terminal.matches import matches

            listed = [(id or f"row {row}", places) for row, id, places in found]
            matches(console(), listed, several=not said)


COLUMNS = ["row", "record", "rank", "entity", "name", "probability", "log_odds", "evidence"]


def as_rows(found: Iterator[Found]) -> Iterator[dict[str, Any]]:
    """A row for each place of each record."""
    for row, id, places in found:
        for rank, place in enumerate(places, 1):
            evidence = {step.attribute: step.nats for step in place.steps}
            which = {"row": row, "record": id, "rank": rank, "entity": place.entity, "name": place.name}
            yield which | {"probability": place.probability, "log_odds": place.log_odds, "evidence": evidence}


def as_documents(found: Iterator[Found]) -> Iterator[dict[str, Any]]:
    """A document for each record."""
    for row, id, places in found:
        yield {"row": row, "record": id, "matches": [place.as_dict() for place in places]}


# ---------------------------------------------------------------------- records


def said_in_words(words: list[str]) -> dict[str, Any] | None:
    """The record that the command line itself says; None if it names files."""
    if len(words) == 1 and words[0].lstrip().startswith("{"):
        try:
            found = jsons.loads(words[0])
        except ValueError as error:
            raise ValueError(f"the record cannot be read as JSON: {error}") from None
        return dict(found)
    said = [word for word in words if "=" in word and not Path(word).exists()]
    if not said:
        return None
    if len(said) < len(words):
        other = next(word for word in words if word not in said)
        raise ValueError(
            f"{other!r} is no attribute=value; say a record in such words, or name files, not both"
        )
    record: dict[str, Any] = {}
    for word in said:
        name, value = word.split("=", 1)
        record.setdefault(name.strip(), []).append(value)
    return record


def matched(base: KnowledgeBase, rows: Any, given: Input, limit: int) -> Iterator[Found]:
    """The rows of records, their ids where they have some, and where they may go."""
    known, waiting = attributes_of(base), deque[tuple[int, str | None]]()

    def fragments() -> Iterator[Fragment]:
        for row, fragment, named in read(rows, given):
            for name in fragment.properties.keys() - known:
                known.add(name)  # to be said once
                near = difflib.get_close_matches(name, known - {name}, 1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                note(f"Note: the knowledge base has no attribute {name!r}, so it says little{hint}")
            waiting.append((row, fragment.id if named else None))
            yield fragment

    with watching({"matching": given.count} if given.paths else None) as watch:
        for done, found in enumerate(base.match_all(fragments(), limit), 1):
            yield *waiting.popleft(), found.matches
            watch("matching", done, None)


def read(rows: Any, given: Input) -> Iterator[tuple[int, Fragment, bool]]:
    """Rows as fragments: each with its number, and whether it has an id of its own."""
    from partita.kb.fragments import EmptyFragment, as_fragment

    reader = given.reader()
    for row, fields in rows:
        if reader.unseen:
            reader.look_for_ignored(row, fields)
            if given.is_one_table():
                reader.check_ignored()
        try:
            fragment = as_fragment(fields, row, reader.id_field, reader.source_field, reader.ignore)
        except EmptyFragment:
            if not reader.skip_empty:
                raise
            reader.skipped += 1
            continue
        yield int(row), fragment, not fragment.id.startswith(fragment.digest)
    for name in sorted(reader.unseen):
        note(f"Note: no row has a column {name!r} to ignore.")
    if reader.skipped:
        note(f"Note: {so_many(reader.skipped, 'empty row', 'empty rows')} skipped.")


def attributes_of(base: KnowledgeBase) -> set[str]:
    """The attributes that the knowledge base knows, if all others are one to it; else nothing is to be said of them."""
    from partita.models.records.record import Record

    if not base.schema:
        return set()
    return set(Record.from_toml(base.schema).attributes or {})
