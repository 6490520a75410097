"""Rows of CSV, read by DuckDB: told what to expect instead of guessing.

Its own guesses take a file with one bad row for a file with one column, drop lines that begin with "#", and make one
type of all values of a column. Lines that end in several ways, which it refuses, are made to end in one first.
"""

from __future__ import annotations

import csv
import re
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, BinaryIO, TextIO

from partita.kb.io.formats import LONGEST, Row, chunks
from partita.kb.io.header import checked_header, named_fields

DELIMITERS = ",;\t|"
CHUNK = 1 << 20  # bytes
CSV = """SELECT * FROM read_csv(?, columns = ?, delim = ?, max_line_size = ?,
    auto_detect = false, header = false, quote = '"', escape = '"', comment = '', skip = 0,
    null_padding = false, strict_mode = true, allow_quoted_nulls = false)"""


def rows_of_csv(
    name: str, path: str, ends: frozenset[bytes], tabs: bool
) -> Iterator[tuple[Row, dict[str, Any]]]:
    """The rows of a file in UTF-8 whose lines end in these ways; tabs divide them if they should and are there."""
    header, delimiter = _header(name, path, tabs)
    columns = {f"c{k}": "VARCHAR" for k in range(len(header))}
    with ExitStack() as stack:
        if len(ends) > 1:
            path = _alike(name, path, delimiter, stack)
        rows = chunks(name, CSV, path, columns, delimiter, LONGEST)
        if len(header) == 1:
            rows = (
                row for row in rows if row[0] is not None
            )  # blank lines; DuckDB drops those of wider files
        next(rows)  # the header
        for number, values in enumerate(rows, 1):
            row = Row(number, name)
            yield row, named_fields(row, header, [value or "" for value in values])


def _header(name: str, path: str, tabs: bool) -> tuple[list[str], str]:
    """The names of the columns, and the delimiter that makes the most of them, or a tab if that should divide them."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            found = {delimiter: _first(file, delimiter) for delimiter in DELIMITERS}
    except csv.Error as error:
        raise ValueError(f"{name}: its header cannot be read: {error}") from None
    delimiter = max(DELIMITERS, key=lambda delimiter: len(found[delimiter]))
    if tabs and len(found["\t"]) > 1:
        delimiter = "\t"
    return checked_header(name, found[delimiter]), delimiter


def _first(file: TextIO, delimiter: str) -> list[str]:
    """The first row that is not blank."""
    file.seek(0)
    return next((row for row in csv.reader(file, delimiter=delimiter) if row), [])


# ---------------------------------------------------------------------- ends of lines


def _alike(name: str, path: str, delimiter: str, stack: ExitStack) -> str:
    """A temporary copy of a file whose lines all end in a line feed, but for those within quotes."""
    copy = stack.enter_context(tempfile.NamedTemporaryFile(prefix="partita-"))  # noqa: SIM115
    with open(path, "rb") as file:
        for part in with_line_feeds(name, file, delimiter):
            copy.write(part)
    copy.flush()
    return copy.name


def with_line_feeds(name: str, stream: BinaryIO, delimiter: str) -> Iterator[bytes]:
    """The same bytes with line feeds for all ends of lines outside quotes.

    What is held back until the next chunk begins with a line, so that it is known what is quoted.
    """
    field = re.escape(delimiter).encode()
    quoted = rb"(?:\A|(?<=[\r\n" + field + rb']))\x20*"(?:[^"]|"")*+(?:"|\Z)'
    pattern = re.compile(quoted + rb"|(?P<end>\r\n|\r(?!\Z)|\n)")
    held, line = b"", 1
    while chunk := stream.read(CHUNK):
        text, begun, parts = held + chunk, 0, []
        for match in pattern.finditer(text):
            if match["end"]:
                parts += [text[begun : match.start()], b"\n"]
                begun = match.end()
        done, held = b"".join(parts), text[begun:]
        line += done.count(b"\n")
        if len(held) > LONGEST + CHUNK:
            raise ValueError(f"{name}, line {line}: longer than {LONGEST} bytes; is a quote not closed?")
        yield done
    yield held.removesuffix(b"\r")
