"""What reading and writing files share: the formats by name, rows with their numbers, a connection to DuckDB."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb

STANDARD = "-"  # standard input or output
FORMATS = {
    "json": "json",
    "jsonl": "json",
    "ndjson": "json",
    "csv": "csv",
    "tsv": "tsv",
    "parquet": "parquet",
    "pq": "parquet",
    "xlsx": "xlsx",
    "feather": "feather",
    "arrow": "feather",
    "ipc": "feather",
}
TITLES = {
    "json": "JSON",
    "csv": "CSV",
    "parquet": "Parquet",
    "xlsx": "an Excel workbook",
    "feather": "Feather",
}
BINARY = ("parquet", "xlsx", "feather")  # compressed by themselves, and without an encoding
CHUNK = 2048  # rows
LONGEST = 1 << 24  # bytes of a line of CSV or of an object of an array
# One thread keeps rows in order and memory small; nothing is ever fetched from the network.
SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}


class Row(int):
    """The number of a row, from 1, that names its file in messages.

    Of JSON lines it is the number of the line; of a spreadsheet the number that the row has there.
    """

    file: str

    def __new__(cls, number: int, file: str) -> Row:
        row = super().__new__(cls, number)
        row.file = file
        return row

    def __str__(self) -> str:
        return f"{int(self)} of {self.file}"


def connect() -> duckdb.DuckDBPyConnection:
    """A database of its own, in memory, which keeps quiet: it would draw its progress on standard output."""
    connection = duckdb.connect(":memory:", config=SETTINGS)
    connection.execute("SET enable_progress_bar = false")
    return connection


def chunks(name: str, query: str, path: str, *options: object) -> Iterator[tuple[Any, ...]]:
    """What DuckDB makes of a file, a chunk at a time; ValueError says what it cannot read, and where."""
    place = glob.escape(os.path.abspath(path))  # or DuckDB takes it for a pattern
    with connect() as connection:
        try:
            connection.execute(query, [place, *options])
            while chunk := connection.fetchmany(CHUNK):
                yield from chunk
        except duckdb.Error as error:
            raise ValueError(_reason(name, str(error))) from error


def _reason(name: str, message: str) -> str:
    """What DuckDB says, in a line, without the advice that is about its options."""
    line = re.search(r"Error on Line: (\d+)", message)
    place = f"{name}, line {line[1]}" if line else name
    if counts := re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", message):
        hint = "is a field that contains the delimiter not quoted?"
        return f"{place}: {counts[2]} fields, but the header has {counts[1]}; {hint}"
    if "unterminated quote" in message:
        return f'{place}: a quote is not closed; within quotes, write " as ""'
    if "Maximum line size" in message:
        return f"{place}: longer than {LONGEST} bytes; is a quote not closed?"
    if array := re.search(r"Malformed JSON .*?: (.*)", message):
        return f"{place} is not an array of JSON objects: {array[1].strip()}"
    first = message.strip().splitlines()[0]
    return f"{place} cannot be read: {first}"


def is_zipped(path: str | Path) -> bool:
    """Whether a name says that the file is gzipped."""
    return str(path).lower().endswith(".gz")


def format_of(path: str | Path, named: str | None) -> str:
    """The format that is named, or that the file's name ends in: one of the values of FORMATS."""
    listed = ", ".join(FORMATS)
    if named is not None:
        if named.lower() not in FORMATS:
            raise ValueError(f"unknown format {named!r}: choose from {listed}")
        found = FORMATS[named.lower()]
    else:
        name = Path(path).name.lower().removesuffix(".gz")
        suffix = Path(name).suffix.removeprefix(".")
        if suffix not in FORMATS:
            hint = "; save the sheet as .xlsx or CSV" if suffix in ("xls", "xlsm", "xlsb", "ods") else ""
            raise ValueError(
                f"{path}: its name does not end in one of {listed}; name the format (--format){hint}"
            )
        found = FORMATS[suffix]
    if found in BINARY and is_zipped(path):
        raise ValueError(f"{path}: {TITLES[found]} is compressed by itself and cannot be gzipped")
    return found
