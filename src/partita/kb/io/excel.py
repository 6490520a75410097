"""Rows of sheets of Excel, as .xlsx, through openpyxl: read and written a row at a time.

What a cell has is kept: numbers are numbers, dates are text in ISO's form, and of a formula it is the value that was
saved with it. What is written as text stays text, even if it begins with "=": no formula ever comes of data.
"""

from __future__ import annotations

import datetime
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from typing import Any, BinaryIO

from partita.kb.io.formats import Row
from partita.kb.io.header import checked_header, named_fields

ROWS, COLUMNS, CHARACTERS = 1_048_576, 16_384, 32_767  # that a sheet, a row and a cell of Excel hold
EXACT = 1 << 53  # from here on numbers of Excel are not exact
CHUNK = 256  # rows
ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")  # how Excel writes what XML cannot
TO_ESCAPE = re.compile("_(?=x[0-9A-Fa-f]{4}_)|[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def openpyxl() -> Any:
    """The module, or an ImportError that says how to get it."""
    try:
        import openpyxl
    except ImportError as error:
        raise ImportError(
            'Excel workbooks need openpyxl, which is not there: pip install "partita[files]"; or save the sheet as CSV'
        ) from error
    return openpyxl


# ---------------------------------------------------------------------- reading


def rows_of_sheet(
    name: str, path: str, sheet: str | None, note: Callable[[str], object]
) -> Iterator[tuple[Row, dict[str, Any]]]:
    """The rows of a sheet below its header, which is the first row with a value; the first sheet unless named."""
    with open(path, "rb") as file, closing(_workbook(name, file)) as book:
        rows = _rows(name, _sheet(name, book, sheet, note))
        header: list[str] | None = None
        for number, values in rows:
            row = Row(number, name)
            if all(value in (None, "") for value in values):
                continue
            if header is None:
                header = checked_header(name, ["" if value is None else str(value) for value in values])
                continue
            width = max(len(header), len(values))
            header += [""] * (width - len(header))
            yield row, named_fields(row, header, [*values, *[None] * (width - len(values))])
        if header is None:
            raise ValueError(f"{name}: the sheet is empty; --sheet names another")


def _workbook(name: str, file: BinaryIO) -> Any:
    load = openpyxl().load_workbook
    try:
        with warnings.catch_warnings():  # of styles and the like, which are not read
            warnings.simplefilter("ignore")
            return load(file, read_only=True, data_only=True, keep_links=False)
    except Exception as error:  # whatever its parts are that are not there, or no XML
        raise ValueError(f"{name} cannot be read as an Excel workbook: {error}") from error


def _sheet(name: str, book: Any, wanted: str | None, note: Callable[[str], object]) -> Any:
    sheets = {sheet.title: sheet for sheet in book.worksheets}
    shown = [title for title, sheet in sheets.items() if sheet.sheet_state == "visible"] or [*sheets]
    if not shown:
        raise ValueError(f"{name} has no sheet of cells")
    if wanted is not None and wanted not in sheets:
        raise ValueError(f"{name} has no sheet {wanted!r}; there are {', '.join(map(repr, sheets))}")
    if wanted is None and len(shown) > 1:
        others = ", ".join(map(repr, shown[1:]))
        note(f"of {name} the sheet {shown[0]!r} is read, not {others}; --sheet says otherwise")
    return sheets[wanted or shown[0]]


def _rows(name: str, sheet: Any) -> Iterator[tuple[int, list[Any]]]:
    """The rows of a sheet, with their numbers."""
    sheet.reset_dimensions()  # some programs write wrong ones
    found, number = sheet.iter_rows(), 0
    while True:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                some = [[_value(cell) for cell in cells] for cells in islice(found, CHUNK)]
        except Exception as error:
            raise ValueError(f"{name}, after row {number}, cannot be read: {error}") from error
        if not some:
            return
        yield from enumerate(some, number + 1)
        number += len(some)


def _value(cell: Any) -> Any:
    value = cell.value
    if isinstance(value, str):
        if cell.data_type == "e":  # what a formula failed with
            return None
        return ESCAPED.sub(lambda match: chr(int(match[1], 16)), value) if "_x" in value else value
    if isinstance(value, datetime.datetime):
        day = value.date() if value.time() == datetime.time() else value
        return str(day)
    if isinstance(value, datetime.time | datetime.timedelta):
        return str(value)
    return value


# ---------------------------------------------------------------------- writing


def write_sheet(rows: Iterable[dict[str, Any]], header: Sequence[str], n: int, path: str) -> None:
    """Write ``n`` rows of JSON's values; ValueError if a sheet cannot hold them."""
    if n + 1 > ROWS or len(header) > COLUMNS:
        raise ValueError(
            f"{n:,} rows and a header, of {len(header):,} columns: a sheet of Excel holds {ROWS:,} rows and "
            f"{COLUMNS:,} columns; write CSV or Parquet"
        )
    book = openpyxl().Workbook(write_only=True)
    sheet = book.create_sheet("partita")
    try:
        sheet.append([_cell(sheet, "the header", name, name) for name in header])
        for number, row in enumerate(rows, 1):
            sheet.append([_cell(sheet, f"row {number}", name, row.get(name)) for name in header])
    except BaseException:
        sheet.close()  # or it is written on when its file is gone
        raise
    book.save(path)


def _cell(sheet: Any, place: str, column: str, value: Any) -> Any:
    """A value as a cell; None for none."""
    from openpyxl.cell import WriteOnlyCell

    if isinstance(value, int) and abs(value) > EXACT:
        value = str(value)
    if not isinstance(value, str):
        return value
    text = TO_ESCAPE.sub(lambda match: f"_x{ord(match[0]):04X}_", value)
    if len(text) > CHARACTERS:
        raise ValueError(
            f"{place}, column {column!r}: {len(text):,} characters, but a cell of Excel holds {CHARACTERS:,}; write "
            "CSV or Parquet"
        )
    cell = WriteOnlyCell(sheet, text)
    cell.data_type = "s"  # or "=" would begin a formula
    return cell
