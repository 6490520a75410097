"""The names of columns, as the first row of a table has them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from partita.kb.io.formats import Row


def checked_header(name: str, cells: Sequence[str]) -> list[str]:
    """The names of the columns, "" for none; ValueError if this is no header."""
    header = [text.strip() for text in cells]
    named = [text for text in header if text]
    if not any(character.isalpha() for text in named for character in text):
        raise ValueError(
            f"{name}: a header is missing, with the names of the columns; the first line is {header}"
        )
    repeated = [text for text, count in Counter(named).items() if count > 1]
    if repeated:
        raise ValueError(f"{name}: there are several columns called {repeated[0]!r}")
    return header


def named_fields(row: Row, header: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
    """The values of a row by the names of their columns; ValueError if there is one in a column without."""
    for column, value in zip(header, values, strict=True):
        if not column and value not in ("", None):
            raise ValueError(
                f"{row.file}, row {int(row)}: a value in a column without a name; name it in the header"
            )
    return {column: value for column, value in zip(header, values, strict=True) if column}
