"""Tables of others, through Arrow's interface: polars, pyarrow, DuckDB, whatever has ``__arrow_c_stream__``.

pandas has it too, but its DataFrames are read as they are: columns there may hold values of several types, which
Arrow refuses, and pyarrow need not be installed for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

CHUNK = 2048  # rows that are Python's at a time


def is_table(X: Any) -> bool:
    """Whether this is a table that gives its rows through Arrow, and is not of pandas."""
    kind = type(X)  # a relation of DuckDB has its columns for attributes
    columns = hasattr(kind, "columns") or hasattr(kind, "schema")
    return hasattr(kind, "__arrow_c_stream__") and columns and not hasattr(kind, "iloc")


def rows_of_table(X: Any) -> Iterator[dict[str, Any]]:
    """Rows as mappings: nulls are None, lists lists, structs and maps mappings. A stream is used up by it."""
    return rows_of_batches(_reader(X))


def rows_of_batches(batches: Any) -> Iterator[dict[str, Any]]:
    """The rows of record batches of pyarrow, some at a time."""
    for batch in batches:
        _check_names(batch.schema)
        for start in range(0, batch.num_rows, CHUNK):
            yield from _plain(batch.slice(start, CHUNK)).to_pylist(maps_as_pydicts="lossy")


def for_an_estimator(X: Any) -> Any:
    """A table as estimators take it: numbers as a table still, of which they make an array, others as mappings.

    What is no table through Arrow is returned as it is. The rows of a stream are all read.
    """
    if not is_table(X) or _is_numeric_frame(X):
        return X
    table = _reader(X).read_all()
    if is_numeric(table.schema):
        return table
    return list(rows_of_batches(table.to_batches()))


def is_numeric(schema: Any) -> bool:
    """Whether a schema of pyarrow has numbers only."""
    from pyarrow import types

    numeric = (types.is_integer, types.is_floating, types.is_boolean)
    return all(any(test(field.type) for test in numeric) for field in schema)


def pyarrow() -> Any:
    """The module, or an ImportError that says how to get it."""
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError(
            'Arrow tables and files need pyarrow, which is not there: pip install "partita[files]"'
        ) from error
    return pyarrow


def _reader(X: Any) -> Any:
    try:
        return pyarrow().RecordBatchReader.from_stream(X)
    except (TypeError, ValueError) as error:  # columns without names: an array
        raise TypeError(f"{type(X).__name__} is not a table of rows: {error}") from error


def _is_numeric_frame(X: Any) -> bool:
    """Whether a DataFrame says by itself that it has numbers only, as those of polars do."""
    kinds = getattr(X, "dtypes", None) if hasattr(type(X), "dtypes") else None
    return isinstance(kinds, list) and all(
        hasattr(kind, "is_numeric") and kind.is_numeric() for kind in kinds
    )


def _check_names(schema: Any) -> None:
    if len(set(schema.names)) < len(schema.names):
        raise ValueError(f"columns of the same name: {sorted(schema.names)}")


def _plain(batch: Any) -> Any:
    """A batch whose times Python can hold: those in nanoseconds are rounded down to microseconds."""
    kinds = [_in_microseconds(field.type) for field in batch.schema]
    if kinds == batch.schema.types:
        return batch
    columns = [column.cast(kind, safe=False) for column, kind in zip(batch.columns, kinds, strict=True)]
    return pyarrow().RecordBatch.from_arrays(columns, names=batch.schema.names)


def _in_microseconds(kind: Any) -> Any:
    pa = pyarrow()
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return pa.timestamp("us", kind.tz)
    if pa.types.is_duration(kind) and kind.unit == "ns":
        return pa.duration("us")
    if pa.types.is_time64(kind):
        return pa.time64("us")
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_in_microseconds(kind.value_type)))
    if pa.types.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(_in_microseconds(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_in_microseconds(field.type)) for field in kind])
    return kind
