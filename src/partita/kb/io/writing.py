"""Rows to files: JSON lines, CSV, Excel, Parquet and Feather, whole or not at all.

Where the columns must be known before the first row is written, rows wait as JSON lines in a temporary file.
Parquet and Feather, which DuckDB makes of those, have types: they are the narrowest that hold every value of a column.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

import duckdb
import numpy as np

from partita.kb.io.excel import openpyxl, write_sheet
from partita.kb.io.formats import STANDARD, connect, format_of, is_zipped
from partita.models.records.arrow import pyarrow
from partita.models.records.fragments import as_plain

QUOTED = re.compile(r'[,;|\t"\r\n]')
BATCH = 4096  # rows of a batch of Arrow
EXACT = 1 << 53  # up to here, whole numbers are floating-point numbers too
LONGEST = 1 << 24  # bytes of a row, unless there is a longer one
Rows = Iterable[Mapping[str, Any]]
# The type of values: None for no value, a name, a list with that of elements, a dict with those of fields.
Kind = Any
SQLITE = b"SQLite format 3\x00"  # how a database begins


def write(
    rows: Rows, path: str | Path, format: str | None = None, columns: Sequence[str] | None = None
) -> int:
    """Write rows to a file, which appears once it is whole, or replaces an older one then.

    Parameters
    ----------
    rows : iterable of mappings
    path : path
        "-" is standard output, in JSON lines unless a format is named. Names in ``.gz`` are gzipped.
    format : str, optional
        "json" for JSON lines, "csv", "tsv", "xlsx", "parquet" or "feather"; otherwise the name tells.
    columns : sequence of str, optional
        Which fields to write, in this order; all of them unless given.

    Returns
    -------
    int
        The number of rows.

    Notes
    -----
    In CSV, what is not text is JSON. In Parquet and Feather, lists are lists and mappings are structs, or maps if
    there are keys that are empty or differ by case alone; a column of values of several types has them as text. In
    Excel, text is text, formulas too, numbers are numbers, and lists and mappings are JSON.
    """
    standard = str(path) == STANDARD
    kind = format_of(path, "json" if standard and format is None else format)
    writers = {
        "json": _json,
        "csv": _csv,
        "tsv": _tsv,
        "xlsx": _xlsx,
        "parquet": _parquet,
        "feather": _feather,
    }
    writer = writers[kind]
    if standard:
        count = writer(rows, columns, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return count
    with _replacing(Path(path)) as file:
        if not is_zipped(path):
            return writer(rows, columns, file)
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as zipped:
            return writer(rows, columns, cast(BinaryIO, zipped))


def check_can_write(path: str | Path, format: str | None = None) -> None:
    """Raise now what :func:`write` would raise when it has all rows, which may take hours to come.

    Parameters
    ----------
    path, format
        As for :func:`write`.
    """
    standard = str(path) == STANDARD
    kind = format_of(path, "json" if standard and format is None else format)
    if kind in NEEDS:
        NEEDS[kind]()
    if not standard and _is_regular(target := _target(Path(path))):
        partial = _partial(target)
        try:
            partial.touch()
            partial.unlink()
        except OSError as error:
            raise type(error)(error.errno, error.strerror, str(path)) from None


NEEDS = {"xlsx": openpyxl, "feather": pyarrow}  # packages that may not be there


def _target(path: Path) -> Path:
    """The file itself, which is a link to none; ValueError or FileNotFoundError if it must not be written."""
    target = path.resolve()  # a link stays one
    if target.is_dir():
        raise ValueError(f"cannot write {path}: it is a folder")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: there is no folder {target.parent}")
    if target.is_file():
        with target.open("rb") as file:
            if file.read(len(SQLITE)) == SQLITE:
                raise ValueError(f"{path} is a database, maybe a knowledge base: name another file")
    return target


def _is_regular(target: Path) -> bool:
    """Whether it is no pipe and no device."""
    return target.is_file() or not target.exists()


def _partial(target: Path) -> Path:
    """Where a file is until it is whole."""
    return target.with_name(f"{target.name}.{os.getpid()}.partial")


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    """A file that takes its place when all is written, and leaves nothing behind if that fails."""
    target = _target(path)
    if not _is_regular(target):
        with target.open("wb") as file:
            yield file
        return
    partial = _partial(target)
    try:
        with partial.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


# ---------------------------------------------------------------------- JSON lines, CSV


def _json(rows: Rows, columns: Sequence[str] | None, file: BinaryIO) -> int:
    count = 0
    for count, row in enumerate(rows, 1):
        file.write(_line(count, row, columns))
    return count


def _line(number: int, row: Mapping[str, Any], columns: Sequence[str] | None) -> bytes:
    chosen = dict(row) if columns is None else {name: row[name] for name in columns if name in row}
    try:
        text = json.dumps(chosen, ensure_ascii=False, allow_nan=False, default=_plain)
    except (TypeError, ValueError) as error:
        raise ValueError(f"row {number} cannot be written: {error}") from error
    return text.encode(errors="backslashreplace") + b"\n"  # which is how JSON writes a lone surrogate


def _plain(value: Any) -> Any:
    """What json cannot write, as something that it can."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, np.ndarray):
        return value.tolist()
    plain = as_plain(value)
    if plain is value:
        raise TypeError(
            f"{type(value).__name__} is neither text, a number, a date, nor a list or mapping of them"
        )
    return plain


def _tsv(rows: Rows, columns: Sequence[str] | None, file: BinaryIO) -> int:
    return _csv(rows, columns, file, delimiter="\t")


def _csv(rows: Rows, columns: Sequence[str] | None, file: BinaryIO, delimiter: str = ",") -> int:
    with tempfile.TemporaryFile() as waiting:
        count, kinds, _ = _wait(rows, columns, waiting)
        header = list(kinds) if columns is None else columns
        if header:
            file.write(_record(header, delimiter))
        waiting.seek(0)
        for line in waiting:
            row = json.loads(line)
            file.write(_record([_cell(row.get(name)) for name in header], delimiter))
    return count


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _record(cells: Sequence[str], delimiter: str) -> bytes:
    quoted = ['"' + text.replace('"', '""') + '"' if QUOTED.search(text) else text for text in cells]
    return (delimiter.join(quoted) or '""').encode() + b"\n"  # a blank line would be no row


def _xlsx(rows: Rows, columns: Sequence[str] | None, file: BinaryIO) -> int:
    with tempfile.TemporaryDirectory(prefix="partita-") as folder:
        waiting, written = Path(folder, "rows.jsonl"), Path(folder, "rows.xlsx")
        with waiting.open("wb+") as lines:
            count, kinds, _ = _wait(rows, columns, lines)
            lines.seek(0)
            header = list(kinds) if columns is None else columns
            cells = ({name: _for_excel(value) for name, value in json.loads(line).items()} for line in lines)
            write_sheet(cells, header, count, str(written))
        _copy(written, file)
    return count


def _for_excel(value: Any) -> Any:
    return _cell(value) if isinstance(value, list | dict) else value


# ---------------------------------------------------------------------- Parquet, Feather


def _parquet(rows: Rows, columns: Sequence[str] | None, file: BinaryIO) -> int:
    def make(typed: duckdb.DuckDBPyRelation, path: Path) -> None:
        typed.write_parquet(str(path), compression="zstd")

    return _typed(rows, columns, file, "Parquet", make)


def _feather(rows: Rows, columns: Sequence[str] | None, file: BinaryIO) -> int:
    pa = pyarrow()
    import pyarrow.ipc as ipc

    def make(typed: duckdb.DuckDBPyRelation, path: Path) -> None:
        reader = typed.to_arrow_reader(BATCH)
        options = ipc.IpcWriteOptions(compression="lz4")
        with (
            pa.OSFile(str(path), "wb") as whole,
            ipc.new_file(whole, reader.schema, options=options) as writer,
        ):
            for batch in reader:
                writer.write_batch(batch)

    return _typed(rows, columns, file, "Feather", make)


def _typed(
    rows: Rows,
    columns: Sequence[str] | None,
    file: BinaryIO,
    title: str,
    make: Callable[[duckdb.DuckDBPyRelation, Path], None],
) -> int:
    """Write a format whose columns have types."""
    with tempfile.TemporaryDirectory(prefix="partita-") as folder:
        waiting, written = Path(folder, "rows.jsonl"), Path(folder, "written")
        with waiting.open("wb") as lines:
            count, kinds, longest = _wait(rows, columns, lines)
        types = {name: _type(kinds.get(name)) for name in (kinds if columns is None else columns)}
        if not types:
            raise ValueError(f"there is nothing to write: a {title} file needs a column")
        if not _are_fields(types):
            raise ValueError(
                f"{title} needs columns whose names are not empty nor the same but for case: {[*types]}"
            )
        size = max(LONGEST, 2 * longest)
        try:
            with connect() as connection:
                typed = connection.read_json(
                    str(waiting), columns=types, format="newline_delimited", maximum_object_size=size
                )
                make(typed, written)
        except duckdb.Error as error:
            raise ValueError(f"cannot be written as {title}: {error}") from error
        _copy(written, file)
    return count


def _copy(written: Path, file: BinaryIO) -> None:
    with written.open("rb") as whole:
        shutil.copyfileobj(whole, file)


def _wait(rows: Rows, columns: Sequence[str] | None, file: BinaryIO) -> tuple[int, dict[str, Kind], int]:
    """Write rows as JSON lines; how many there are, the types of their columns, and the longest line."""
    count, longest = 0, 0
    kinds: dict[str, Kind] = {}
    for count, row in enumerate(rows, 1):
        line = _line(count, row, columns)
        file.write(line)
        longest = max(longest, len(line))
        kinds = _merged(kinds, _kind(json.loads(line)))
    return count, kinds, longest


def _kind(value: Any) -> Kind:
    """The type of a value that was read from JSON."""
    if isinstance(value, dict):
        return {name: _kind(field) for name, field in value.items()}
    if isinstance(value, list):
        inner: Kind = None
        for element in value:
            inner = _merged(inner, _kind(element))
        return [inner]
    if isinstance(value, int) and not isinstance(value, bool):
        return "INTEGER" if abs(value) <= EXACT else "BIGINT" if -(1 << 63) <= value < 1 << 63 else "VARCHAR"
    return {type(None): None, bool: "BOOLEAN", float: "DOUBLE", str: "VARCHAR"}[type(value)]


def _merged(first: Kind, second: Kind) -> Kind:
    """The narrowest type that holds the values of both, exactly."""
    if first is None or second is None or first == second:
        return second if first is None else first
    if isinstance(first, dict) and isinstance(second, dict):
        return first | {name: _merged(first.get(name), kind) for name, kind in second.items()}
    if isinstance(first, list) and isinstance(second, list):
        return [_merged(first[0], second[0])]
    for wider in ("BIGINT", "DOUBLE"):
        if (first, second) in (("INTEGER", wider), (wider, "INTEGER")):
            return wider
    return "VARCHAR"


def _type(kind: Kind) -> str:
    """The type as DuckDB writes it."""
    if isinstance(kind, list):
        return f"{_type(kind[0])}[]"
    if not isinstance(kind, dict):
        return {None: "VARCHAR", "INTEGER": "BIGINT"}.get(kind) or str(kind)
    if kind and _are_fields(kind):
        fields = (f'"{name.replace(chr(34), chr(34) * 2)}" {_type(field)}' for name, field in kind.items())
        return f"STRUCT({', '.join(fields)})"
    inner: Kind = None
    for field in kind.values():
        inner = _merged(inner, field)
    return f"MAP(VARCHAR, {_type(inner)})"


def _are_fields(names: Iterable[str]) -> bool:
    """Whether DuckDB can tell the names apart."""
    folded = [name.casefold() for name in names]
    return "" not in folded and not any("\0" in name for name in folded) and len(set(folded)) == len(folded)
