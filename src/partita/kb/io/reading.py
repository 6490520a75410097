"""Rows from files: JSON lines, arrays of JSON objects, CSV and Parquet, gzipped or not, or standard input.

DuckDB reads CSV, arrays and Parquet, in chunks. It is told what to expect instead of guessing: its own
guesses take a file with one bad row for a file with one column, drop lines that begin with "#", and make one
type of all values of a column. JSON lines are divided by Python, for the numbers of the lines, and come from
standard input as they are written.
"""

from __future__ import annotations

import csv
import glob
import gzip
import io
import json
import os
import re
import shutil
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

import duckdb

from partita.kb.io.formats import STANDARD, connect, format_of, is_zipped

CHUNK = 2048  # rows
LONGEST = 1 << 24  # bytes of a line of CSV or of an object of an array
DELIMITERS = ",;\t|"
TITLES = {"json": "JSON", "csv": "CSV", "parquet": "Parquet"}
CSV = """SELECT * FROM read_csv(?, columns = ?, delim = ?, max_line_size = ?,
    auto_detect = false, header = false, quote = '"', escape = '"', comment = '', skip = 0,
    null_padding = false, strict_mode = true)"""
ARRAY = "SELECT * FROM read_json_objects(?, maximum_object_size = ?, format = 'array')"
# As JSON: Python would need more modules for some types, and everything else reads JSON anyhow.
PARQUET = 'SELECT to_json("the row") FROM read_parquet(?) AS "the row"'


class Row(int):
    """The number of a row, from 1, that names its file in messages; of JSON lines, the number of the line."""

    file: str

    def __new__(cls, number: int, file: str) -> Row:
        row = super().__new__(cls, number)
        row.file = file
        return row

    def __str__(self) -> str:
        return f"{int(self)} of {self.file}"


def read(
    paths: str | Path | Iterable[str | Path], format: str | None = None
) -> Iterator[tuple[Row, dict[str, Any]]]:
    """Rows of one or more files, one by one.

    Parameters
    ----------
    paths : path or several
        Files, patterns such as ``data/*.csv``, whose matches are sorted, or "-" for standard input. A file
        that is met twice is read once.
    format : str, optional
        "json" for JSON lines or an array of objects, "csv" for text with a header, divided by commas,
        semicolons, tabs or bars, or "parquet"; otherwise names tell, and of standard input the first byte.

    Yields
    ------
    row : Row
        The number of the row in its file, from 1; of JSON lines, the line.
    fields : dict
        In CSV all values are text, and empty ones "".

    Raises
    ------
    FileNotFoundError, ValueError
        At once if a file is missing, is a folder or has an unknown format; when its turn comes if it cannot
        be read, with its name, the line and the reason.
    """
    given = [paths] if isinstance(paths, str | Path) else paths
    found = dict.fromkeys(name for path in given for name in _expanded(str(path)))
    formats = {
        name: None if format is None and _is_stream(name) else format_of(name, format) for name in found
    }
    return (row for name in found for row in _rows(name, formats[name]))


def _expanded(path: str) -> list[str]:
    """The file, or those that match the pattern."""
    if os.path.isdir(path):
        raise ValueError(f"{path} is a folder: name files, for instance {os.path.join(path, '*.csv')}")
    if path == STANDARD or os.path.exists(path):
        return [path]
    matches = sorted(name for name in glob.glob(path, recursive=True) if not os.path.isdir(name))
    if not matches:
        raise FileNotFoundError(
            f"no file matches {path}" if glob.has_magic(path) else f"there is no file {path}"
        )
    return matches


def _is_stream(path: str) -> bool:
    """Whether what is read is gone: standard input, a pipe."""
    return path == STANDARD or not os.path.isfile(path)


def _rows(path: str, format: str | None) -> Iterator[tuple[Row, dict[str, Any]]]:
    name = "standard input" if path == STANDARD else path
    with ExitStack() as stack:
        try:
            stream = _opened(path, stack)
            line, start = _start(stream)
            kind = _kind(name, start, format)
            if kind == "json" and start.startswith(b"{"):
                yield from _json_lines(name, stream, line)
                return
            if _is_stream(path) or is_zipped(path):  # DuckDB may take half a gzip file for a whole one
                path = _spooled(stream, stack)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise ValueError(f"{name} is not a whole gzip file: {error}") from error
        yield from {"json": _array, "csv": _csv, "parquet": _parquet}[kind](name, path)


def _opened(path: str, stack: ExitStack) -> io.BufferedReader:
    if path == STANDARD:
        stream = cast(io.BufferedReader, sys.stdin.buffer)
        return stream if hasattr(stream, "peek") else io.BufferedReader(stream)  # one that replaces it
    opener = gzip.open if is_zipped(path) else open
    return cast(io.BufferedReader, stack.enter_context(opener(path, "rb")))


def _start(stream: io.BufferedReader) -> tuple[int, bytes]:
    """Pass what is blank; the number of the line, and how it begins."""
    line = 1
    if stream.peek(3).startswith(b"\xef\xbb\xbf"):
        stream.read(3)
    while (start := stream.peek(4)[:16])[:1] in (b" ", b"\r", b"\n"):
        line += stream.read(1) == b"\n"
    return line, start


def _kind(name: str, start: bytes, format: str | None) -> str:
    """The format, which must be what the first bytes say."""
    if not start:
        raise ValueError(f"{name} is empty")
    if start.startswith(b"\x1f\x8b"):
        raise ValueError(f"{name} is gzipped, which its name must say (.gz); standard input must not be")
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ValueError(f"{name} is in UTF-16: save it in UTF-8")
    format = "csv" if format == "tsv" else format
    seen = "json" if start[:1] in b"{[" else "parquet" if start.startswith(b"PAR1") else "csv"
    if format is not None and seen != format:
        raise ValueError(
            f"{name} is not {TITLES[format]}: it begins with {start.decode(errors='replace')!r}; if it is of "
            "another format, name that (--format)"
        )
    return seen


def _spooled(stream: BinaryIO, stack: ExitStack) -> str:
    """The name of a temporary file with the rest of a stream."""
    file = stack.enter_context(tempfile.NamedTemporaryFile(prefix="partita-"))  # noqa: SIM115
    shutil.copyfileobj(stream, file)
    file.flush()
    return file.name


def _chunks(name: str, query: str, path: str, *options: object) -> Iterator[tuple[Any, ...]]:
    """What DuckDB makes of a file, a chunk at a time."""
    place = glob.escape(os.path.abspath(path))  # or DuckDB takes it for a pattern
    with connect() as connection:
        try:
            connection.execute(query, [place, *options])
            while chunk := connection.fetchmany(CHUNK):
                yield from chunk
        except duckdb.Error as error:
            raise ValueError(_reason(name, str(error))) from error


# ---------------------------------------------------------------------- JSON, Parquet


def _json_lines(name: str, stream: BinaryIO, start: int) -> Iterator[tuple[Row, dict[str, Any]]]:
    for number, line in enumerate(stream, start):
        if not line.isspace():
            yield Row(number, name), _object(f"{name}, line {number}", line)


def _array(name: str, path: str) -> Iterator[tuple[Row, dict[str, Any]]]:
    rows = _chunks(name, ARRAY, path, LONGEST)
    for number, (text,) in enumerate(rows, 1):
        yield Row(number, name), _object(f"{name}, object {number}", text)


def _parquet(name: str, path: str) -> Iterator[tuple[Row, dict[str, Any]]]:
    for number, (text,) in enumerate(_chunks(name, PARQUET, path), 1):
        yield Row(number, name), _object(f"{name}, row {number}", text)


def _object(place: str, text: str | bytes) -> dict[str, Any]:
    try:
        found = json.loads(text.decode() if isinstance(text, bytes) else text, object_pairs_hook=_unique)
    except UnicodeDecodeError:
        raise ValueError(f"{place} is not in UTF-8: save the file in that encoding") from None
    except (ValueError, RecursionError) as error:
        hint = "write an object a line, or an array of objects"
        raise ValueError(f"{place} cannot be read as JSON: {error}; {hint}") from None
    if not isinstance(found, dict):
        raise ValueError(f'{place} must be an object, like {{"name": "Ada"}}, not {type(found).__name__}')
    return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        name = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"{name!r} is there twice; make a list of its values")
    return found


# ---------------------------------------------------------------------- CSV


def _csv(name: str, path: str) -> Iterator[tuple[Row, dict[str, Any]]]:
    header, delimiter = _header(name, path)
    nameless = [k for k, column in enumerate(header) if not column]
    columns = {f"c{k}": "VARCHAR" for k in range(len(header))}
    rows = _chunks(name, CSV, path, columns, delimiter, LONGEST)
    if len(header) == 1:
        rows = (row for row in rows if row[0] is not None)  # blank lines; DuckDB drops those of wider files
    next(rows)  # the header
    for number, values in enumerate(rows, 1):
        fields = {column: value or "" for column, value in zip(header, values, strict=True) if column}
        if nameless and any(values[k] for k in nameless):
            raise ValueError(
                f"{name}, row {number}: a value in a column without a name; name it in the header"
            )
        yield Row(number, name), fields


def _header(name: str, path: str) -> tuple[list[str], str]:
    """The names of the columns, and the delimiter that makes the most of them."""
    try:
        with open(path, encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
            found = {delimiter: _first(file, delimiter) for delimiter in DELIMITERS}
    except csv.Error as error:
        raise ValueError(f"{name}: its header cannot be read: {error}") from None
    delimiter = max(DELIMITERS, key=lambda delimiter: len(found[delimiter]))
    header = [text.strip() for text in found[delimiter]]
    if any("\ud800" <= character < "\ue000" for text in header for character in text):
        raise ValueError(f"{name} does not begin with text in UTF-8: save it in that encoding")
    named = [text for text in header if text]
    if not any(character.isalpha() for text in named for character in text):
        raise ValueError(
            f"{name}: a header is missing, with the names of the columns; the first line is {header}"
        )
    repeated = [text for text, count in Counter(named).items() if count > 1]
    if repeated:
        raise ValueError(f"{name}: there are several columns called {repeated[0]!r}")
    return header, delimiter


def _first(file: TextIO, delimiter: str) -> list[str]:
    """The first row that is not blank."""
    file.seek(0)
    return next((row for row in csv.reader(file, delimiter=delimiter) if row), [])


def _reason(name: str, message: str) -> str:
    """What DuckDB says, in a line, without the advice that is about its options."""
    line = re.search(r"Error on Line: (\d+)", message)
    place = f"{name}, line {line[1]}" if line else name
    if counts := re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", message):
        hint = "is a field that contains the delimiter not quoted?"
        return f"{place}: {counts[2]} fields, but the header has {counts[1]}; {hint}"
    if "unterminated quote" in message:
        return f'{place}: a quote is not closed; within quotes, write " as ""'
    if "utf-8" in message.lower():
        return f"{place} is not in UTF-8: save the file in that encoding"
    if "Maximum line size" in message:
        return f"{place}: longer than {LONGEST} bytes; is a quote not closed?"
    if "state machine" in message:
        return f"{place}: its lines do not all end the same way; make them, for instance with dos2unix"
    if array := re.search(r"Malformed JSON .*?: (.*)", message):
        return f"{place} is not an array of JSON objects: {array[1].strip()}"
    first = message.strip().splitlines()[0]
    return f"{place} cannot be read: {first}"
