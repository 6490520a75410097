"""Statements that are sent to the database's driver as they are, compiled once.

What SQLAlchemy does around a statement takes ten times as long as what SQLite does for it, and a single fragment
needs some twenty. What every fragment needs goes this way; its rows are plain tuples.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from sqlalchemy import Connection, Table, bindparam, delete, insert

MANY = 512  # values that are looked up in one statement


class Compiled(NamedTuple):
    """A statement as a driver takes it."""

    text: str
    order: list[str] | None  # of its parameters, where the driver takes them without names
    constants: dict[str, Any]  # parameters that the statement has values for itself

    def given(self, row: Mapping[str, Any]) -> Any:
        """All parameters."""
        known = {**self.constants, **row} if self.constants else row
        return known if self.order is None else [known[name] for name in self.order]


_known: dict[Any, Compiled] = {}


def compiled(connection: Connection, statement: Any, columns: tuple[str, ...] | None = None) -> Compiled:
    """A statement that lives as long as its module, as the driver takes it; ``columns`` are those that it sets."""
    key = (statement, columns, connection.dialect.name)
    if key not in _known:
        made = insert(statement) if isinstance(statement, Table) else statement
        found = made.compile(dialect=connection.dialect, column_keys=columns)
        constants = {name: value for name, value in found.params.items() if value is not None}
        _known[key] = Compiled(str(found), found.positiontup, constants)
    return _known[key]


def fetch(connection: Connection, statement: Any, **given: Any) -> list[Any]:
    """The rows that a query finds, given its parameters."""
    made = compiled(connection, statement)
    cursor = connection.connection.cursor()
    try:
        cursor.execute(made.text, made.given(given))
        return list(cursor.fetchall())
    finally:
        cursor.close()


def fetch_one(connection: Connection, statement: Any, **given: Any) -> Any:
    """The first value of the first row that a query finds; None if there is none."""
    rows = fetch(connection, statement, **given)
    return rows[0][0] if rows else None


def execute(
    connection: Connection,
    statement: Any,
    rows: Sequence[Mapping[str, Any]],
    columns: tuple[str, ...] | None = None,
) -> int:
    """Execute a statement that changes rows, for each of ``rows``; returns how many it has met, where that is known.

    A table in place of a statement has the rows inserted; ``columns`` are those that an UPDATE sets.
    """
    if not rows:
        return 0
    made = compiled(connection, statement, tuple(rows[0]) if columns is None else columns)
    cursor = connection.connection.cursor()
    try:
        if len(rows) == 1:
            cursor.execute(made.text, made.given(rows[0]))
        else:
            cursor.executemany(made.text, [made.given(row) for row in rows])
        return int(cursor.rowcount)
    finally:
        cursor.close()


class Lookup:
    """A query for the rows that have one of some values in a column."""

    def __init__(self, query: Any, column: Any) -> None:
        self._query, self._column = query, column
        self._statements: dict[int, Any] = {}  # by how many values they take

    def __call__(self, connection: Connection, values: Iterable[Any]) -> list[Any]:
        """The rows, in no particular order."""
        rest, rows = iter(values), []
        while some := list(islice(rest, MANY)):
            n = (
                1 << (len(some) - 1).bit_length()
            )  # few statements serve any number: the last value fills them
            some += [some[-1]] * (n - len(some))
            rows += fetch(connection, self._taking(n), **{f"v{k}": value for k, value in enumerate(some)})
        return rows

    def _taking(self, n: int) -> Any:
        if n not in self._statements:
            wanted = [bindparam(f"v{k}", type_=self._column.type) for k in range(n)]
            self._statements[n] = self._query.where(self._column.in_(wanted))
        return self._statements[n]


class Deletion:
    """The deletion of rows that have one of some values in a column."""

    def __init__(self, column: Any) -> None:
        self._statement = delete(column.table).where(column == bindparam("value"))

    def __call__(self, connection: Connection, values: Iterable[Any]) -> None:
        """Delete them."""
        execute(connection, self._statement, [{"value": value} for value in values], ())
