"""Rows of files that have columns with types: Parquet, through DuckDB, and Feather, through pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from partita.kb.io.formats import Row, chunks
from partita.kb.io.json_files import object_of
from partita.models.records.arrow import pyarrow, rows_of_batches

# As JSON: Python would need more modules for some types, and everything else reads JSON anyhow.
PARQUET = 'SELECT to_json("the row") FROM read_parquet(?) AS "the row"'
FILE = b"ARROW1"  # how a file of Arrow begins; a stream begins otherwise


def rows_of_parquet(name: str, path: str) -> Iterator[tuple[Row, dict[str, Any]]]:
    """The rows of a Parquet file."""
    for number, (text,) in enumerate(chunks(name, PARQUET, path), 1):
        yield Row(number, name), object_of(f"{name}, row {number}", text)


def rows_of_feather(name: str, path: str) -> Iterator[tuple[Row, dict[str, Any]]]:
    """The rows of a Feather file, which is Arrow's format for files, or of Arrow's format for streams."""
    pa = pyarrow()
    import pyarrow.ipc as ipc

    number = 0
    try:
        with open(path, "rb") as file:
            is_file = file.read(len(FILE)) == FILE
        with pa.memory_map(path) as mapped:
            reader = ipc.open_file(mapped) if is_file else ipc.open_stream(mapped)
            batches = map(reader.get_batch, range(reader.num_record_batches)) if is_file else reader
            for number, fields in enumerate(rows_of_batches(batches), 1):
                yield Row(number, name), fields
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        place = f"{name}, after row {number}," if number else name
        raise ValueError(f"{place} cannot be read as Feather: {reason}") from error
