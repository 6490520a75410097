"""Rows from files: text in any encoding, gzipped or not, Parquet, Feather, Excel; or from standard input.

Here files are found, and it is told from how they begin what they are. What is not plain text in UTF-8 is made that
in a temporary file, so that the readers of formats have nothing else to know. JSON lines are not: from standard input
they come as they are written.
"""

from __future__ import annotations

import glob
import gzip
import io
import os
import shutil
import sys
import tempfile
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, cast

from partita.kb.io.csv_files import rows_of_csv
from partita.kb.io.encodings import UTF8, Guess, Utf8, broken, checked, contents_of, marked, read_as, verdict
from partita.kb.io.excel import rows_of_sheet
from partita.kb.io.formats import BINARY, STANDARD, TITLES, Row, format_of, is_zipped
from partita.kb.io.json_files import rows_of_array, rows_of_lines
from partita.kb.io.tables import rows_of_feather, rows_of_parquet

SAMPLE = 4096  # bytes, at most, that tell what a file is
MAGIC = {
    b"PAR1": "parquet",
    b"PK\x03\x04": "xlsx",
    b"ARROW1": "feather",
    b"\xff\xff\xff\xff": "feather",  # a stream of Arrow
}
REFUSED = {
    b"\x1f\x8b": "is gzipped, which its name must say (.gz); standard input must not be",
    b"\xd0\xcf\x11\xe0": "is in the old format .xls, or protected by a password: save it as .xlsx or CSV",
    b"FEA1": "is Feather of version 1: write it again with a newer pyarrow",
}
Rows = Iterator[tuple[Row, dict[str, Any]]]


def warn(text: str) -> None:
    """Say what is noticed about a file, where nobody else does."""
    warnings.warn(text, stacklevel=3)


@dataclass(frozen=True)
class How:
    """How a file is to be read."""

    format: str | None
    encoding: str | None
    sheet: str | None
    note: Callable[[str], object]


def read(
    paths: str | Path | Iterable[str | Path],
    format: str | None = None,
    *,
    encoding: str | None = None,
    sheet: str | None = None,
    note: Callable[[str], object] = warn,
) -> Rows:
    """Rows of one or more files, one by one.

    Parameters
    ----------
    paths : path or several
        Files, folders of Parquet files, patterns such as ``data/*.csv``, whose matches are sorted, or "-" for standard
        input. A file that is met twice is read once.
    format : str, optional
        "json" for JSON lines or an array of objects, "csv" for text with a header, divided by commas,
        semicolons, tabs or bars, "tsv" for the same, divided by tabs if the header has any, "parquet", "xlsx", or
        "feather"; otherwise names tell, and of standard input the first bytes.
    encoding : str, optional
        Of text, such as "windows-1252"; found out unless given.
    sheet : str, optional
        Of Excel workbooks; the first one unless given.
    note : callable
        Called with what is worth a note: an encoding that was found and is not UTF-8, sheets that are not read. A
        warning unless given.

    Yields
    ------
    row : Row
        The number of the row in its file, from 1; of JSON lines, the line; of a sheet, its number there.
    fields : dict
        In CSV all values are text, and empty ones "".

    Raises
    ------
    FileNotFoundError, ValueError
        At once if a file is missing, is a folder or has an unknown format; when its turn comes if it cannot
        be read, with its name, the line and the reason.
    ImportError
        When its turn comes, if Excel or Feather needs a package that is not there.
    """
    given = [paths] if isinstance(paths, str | Path) else paths
    found = dict.fromkeys(name for path in given for name in _expanded(str(path)))
    encoding = None if encoding is None else checked(encoding)
    hows = {
        name: How(
            None if format is None and _is_stream(name) else format_of(name, format), encoding, sheet, note
        )
        for name in found
    }
    return (row for name, how in hows.items() for row in _named_rows(name, how))


def _expanded(path: str) -> list[str]:
    """The file, those of a table in Parquet that is a folder, or those that match the pattern."""
    if os.path.isdir(path):
        if parts := sorted(glob.glob(os.path.join(glob.escape(path), "*.parquet"))):
            return parts
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


def _named_rows(path: str, how: How) -> Rows:
    name = "standard input" if path == STANDARD else path
    try:
        yield from _rows(name, path, how)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{name} is not a whole gzip file: {error}") from error


def _rows(name: str, path: str, how: How) -> Rows:
    with ExitStack() as stack:
        stream = _opened(path, stack)
        start = stream.peek(SAMPLE)[:SAMPLE]
        kind = _binary_kind(name, start)
        encoding, line = how.encoding, 1
        if kind is None:
            encoding = encoding or _marked(name, start, how)
            if encoding not in (None, UTF8):
                stream = io.BufferedReader(Utf8(name, stream, encoding))
            line, start = _start(stream)
            kind = "lines" if start.startswith(b"{") else "array" if start.startswith(b"[") else "csv"
        _check_kind(name, kind, start, how)
        is_plain = encoding in (None, UTF8)
        if kind != "lines" and (_is_stream(path) or is_zipped(path) or not is_plain):
            path = _spooled(stream, stack)
            yield from _rows(name, path, replace(how, encoding=encoding and UTF8))
        elif kind in BINARY:
            yield from _binary_rows(name, path, kind, how)
        elif _is_stream(path) or not is_plain:
            yield from rows_of_lines(name, stream, line, Guess(name, how.note, encoding is not None))
        else:
            yield from _text_rows(name, path, kind, replace(how, encoding=encoding), stream, line)


def _text_rows(name: str, path: str, kind: str, how: How, stream: BinaryIO, line: int) -> Rows:
    """The rows of a file of text, which is in UTF-8 or in what all of it tells."""
    with ExitStack() as stack:
        contents = contents_of(_opened(path, stack))
    encoding = verdict(name, contents) if how.encoding is None else how.encoding
    if how.encoding is not None and contents.broken:
        raise broken(name, contents.first, UTF8)
    if encoding != UTF8:
        how.note(read_as(name, encoding))
        yield from _rows(name, path, replace(how, encoding=encoding))
    elif kind == "lines":
        yield from rows_of_lines(name, stream, line, Guess(name, how.note, True))
    elif kind == "array":
        yield from rows_of_array(name, path)
    else:
        yield from rows_of_csv(name, path, contents.ends, how.format == "tsv")


def _binary_rows(name: str, path: str, kind: str, how: How) -> Rows:
    if kind == "xlsx":
        return rows_of_sheet(name, path, how.sheet, how.note)
    return rows_of_parquet(name, path) if kind == "parquet" else rows_of_feather(name, path)


# ---------------------------------------------------------------------- what a file is


def _opened(path: str, stack: ExitStack) -> io.BufferedReader:
    if path == STANDARD:
        stream = cast(io.BufferedReader, sys.stdin.buffer)
        return stream if hasattr(stream, "peek") else io.BufferedReader(stream)  # one that replaces it
    opener = gzip.open if is_zipped(path) else open
    return cast(io.BufferedReader, stack.enter_context(opener(path, "rb")))


def _binary_kind(name: str, start: bytes) -> str | None:
    """The format of what is no text, or None; ValueError if it is one that cannot be read."""
    for magic, reason in REFUSED.items():
        if start.startswith(magic):
            raise ValueError(f"{name} {reason}")
    return next((kind for magic, kind in MAGIC.items() if start.startswith(magic)), None)


def _marked(name: str, start: bytes, how: How) -> str | None:
    """The encoding that the first bytes tell."""
    found = marked(start)
    if found not in (None, UTF8):
        how.note(read_as(name, found))
    return found


def _start(stream: io.BufferedReader) -> tuple[int, bytes]:
    """Pass what is blank; the number of the line, and how it begins."""
    line = 1
    if stream.peek(3).startswith(b"\xef\xbb\xbf"):
        stream.read(3)
    while (start := stream.peek(4)[:16])[:1] in (b" ", b"\r", b"\n"):
        line += stream.read(1) == b"\n"
    return line, start


def _check_kind(name: str, kind: str, start: bytes, how: How) -> None:
    """ValueError unless the format is the one that is expected, and what is said of it can be followed."""
    if not start:
        raise ValueError(f"{name} is empty")
    seen = kind if kind in (*BINARY, "csv") else "json"
    expected = "csv" if how.format == "tsv" else how.format
    if expected is not None and seen != expected:
        raise ValueError(
            f"{name} is not {TITLES[expected]}: it begins with {start[:16].decode(errors='replace')!r}; if it is of "
            "another format, name that (--format)"
        )
    if how.encoding is not None and seen in BINARY:
        raise ValueError(f"{name} is {TITLES[seen]}, which has no encoding to choose: leave --encoding out")
    if how.sheet is not None and seen != "xlsx":
        raise ValueError(f"{name} is {TITLES[seen]}, which has no sheets: leave --sheet out")


def _spooled(stream: BinaryIO, stack: ExitStack) -> str:
    """The name of a temporary file with the rest of a stream."""
    file = stack.enter_context(tempfile.NamedTemporaryFile(prefix="partita-"))  # noqa: SIM115
    shutil.copyfileobj(stream, file)
    file.flush()
    return file.name
