"""What reading and writing files share: the formats by name, and a connection to DuckDB."""

from __future__ import annotations

from pathlib import Path

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
}
# One thread keeps rows in order and memory small; nothing is ever fetched from the network.
SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}


def connect() -> duckdb.DuckDBPyConnection:
    """A database of its own, in memory, which keeps quiet: it would draw its progress on standard output."""
    connection = duckdb.connect(":memory:", config=SETTINGS)
    connection.execute("SET enable_progress_bar = false")
    return connection


def is_zipped(path: str | Path) -> bool:
    """Whether a name says that the file is gzipped."""
    return str(path).lower().endswith(".gz")


def format_of(path: str | Path, named: str | None) -> str:
    """The format that is named, or that the file's name ends in: "json", "csv", "tsv" or "parquet"."""
    listed = ", ".join(FORMATS)
    if named is not None:
        if named.lower() not in FORMATS:
            raise ValueError(f"unknown format {named!r}: choose from {listed}")
        found = FORMATS[named.lower()]
    else:
        name = Path(path).name.lower().removesuffix(".gz")
        suffix = Path(name).suffix.removeprefix(".")
        if suffix not in FORMATS:
            hint = "; save the sheet as CSV" if suffix in ("xlsx", "xls", "ods") else ""
            raise ValueError(
                f"{path}: its name does not end in one of {listed}; name the format (--format){hint}"
            )
        found = FORMATS[suffix]
    if found == "parquet" and is_zipped(path):
        raise ValueError(f"{path}: Parquet is compressed by itself and cannot be gzipped")
    return found
