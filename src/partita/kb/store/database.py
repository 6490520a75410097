"""The store: one SQLite file, or one PostgreSQL database, that never holds half a change.

A change is one transaction under a lock that other writers wait for. SQLite runs with a write-ahead log and
full synchronisation, so that what has been committed survives a crash of the process or of the machine.
Pieces of the sampler's state carry checksums.
"""

from __future__ import annotations

import json
import threading
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from sqlalchemy import (
    Connection,
    Table,
    bindparam,
    create_engine,
    event,
    func,
    insert,
    inspect,
    select,
    text,
    update,
)
from sqlalchemy.engine import URL, Engine, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError

from partita.kb.store import tables
from partita.kb.store.statements import MANY, execute, fetch
from partita.kb.store.tables import about

PATIENCE = 30  # seconds that a writer waits for another
PREPARING = 0x5061727469746121  # whoever makes tables in PostgreSQL holds this lock


class StoreError(Exception):
    """The store cannot be opened, read or written, or is damaged."""


class Store:
    """A knowledge base's database.

    Parameters
    ----------
    target : path or str
        A file, which is made if it is not there, or a URL of SQLAlchemy.
    create : bool
        Whether to make a knowledge base where there is none.
    """

    def __init__(self, target: str | PathLike[str], create: bool = True) -> None:
        self.name = fspath(target)
        self._held = threading.local()  # the connection that each thread has in one_moment, if it is in it
        url = url_of(self.name)
        if url.password:
            self.name = url.render_as_string()  # which hides it
        self.is_sqlite = url.get_backend_name() == "sqlite"
        if self.is_sqlite and url.database and not url.database.startswith("file:"):
            check_file(Path(url.database), create)
        try:
            self._engine = connected(url)
        except (ArgumentError, NoSuchModuleError, ModuleNotFoundError) as error:
            if "psycopg" in str(error):
                hint = 'for PostgreSQL, pip install "partita[postgresql]"'
                raise StoreError(f"cannot open {self.name}: psycopg is not installed; {hint}") from None
            raise StoreError(f"cannot open {self.name}: {error}") from None
        try:
            with self.reading() as connection:
                ready = is_ready(connection, self.name, create)
            if not ready:
                with self.writing(locked=False) as connection:
                    prepare(connection)
        except BaseException:
            self.close()
            raise

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection that sees one moment; within :meth:`one_moment` the same for all."""
        held: Connection | None = getattr(self._held, "connection", None)
        if held is not None:
            yield held
            return
        with self._speaking(), self._engine.connect() as connection:
            if not self.is_sqlite:
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            with connection.begin():
                yield connection

    @contextmanager
    def one_moment(self) -> Iterator[None]:
        """Have all that this thread reads within see one moment, whatever asks for it; until it changes something."""
        with self.reading() as connection:
            before, self._held.connection = getattr(self._held, "connection", None), connection
            try:
                yield
            finally:
                if self._held.connection is connection:  # else a change has ended the moment already
                    self._held.connection = before

    @contextmanager
    def writing(self, locked: bool = True) -> Iterator[Connection]:
        """A transaction, alone in its writing; rolled back if anything is raised in it."""
        self._held.connection = None  # what is read after a change must see it
        with (
            self._speaking(),
            self._engine.connect() as connection,
            connection.execution_options(writes=True).begin(),
        ):
            if not self.is_sqlite:
                connection.execute(text(f"SET LOCAL lock_timeout = '{PATIENCE}s'"))
                if locked:
                    held = select(about.c.name).where(about.c.name == "revision")
                    connection.execute(held.with_for_update())
            yield connection

    @contextmanager
    def _speaking(self) -> Iterator[None]:
        """Turn the database's errors into one that says what to do."""
        try:
            yield
        except DBAPIError as error:
            raise StoreError(f"{self.name}: {explanation(str(error.orig))}") from error
        except SQLAlchemyError as error:
            raise StoreError(f"{self.name}: {error}") from error
        except self._engine.dialect.loaded_dbapi.Error as error:  # of a statement that was sent as it is
            raise StoreError(f"{self.name}: {explanation(str(error))}") from error

    def close(self) -> None:
        """Give all connections back."""
        self._engine.dispose()


def url_of(target: str) -> URL:
    """A file's name, or a URL, as SQLAlchemy reads it; PostgreSQL through psycopg."""
    if "://" not in target:
        return URL.create("sqlite", database=target)
    try:
        url = make_url(target)
    except ArgumentError as error:
        raise StoreError(f"{target!r} is neither a file nor a URL of a database: {error}") from None
    if url.get_backend_name() not in ("sqlite", "postgresql"):
        raise StoreError(f"{url.get_backend_name()} is not supported: use a file, or postgresql://…")
    return url.set(drivername="postgresql+psycopg") if url.drivername in ("postgresql", "postgres") else url


def check_file(path: Path, create: bool) -> None:
    """Raise StoreError for what cannot be a knowledge base's file."""
    if path.is_dir():
        raise StoreError(f"{path} is a folder: name a file in it, such as {path / 'kb.db'}")
    if path.exists():
        with path.open("rb") as file:
            head = file.read(16)
        if head and head != b"SQLite format 3\x00":
            raise StoreError(f"{path} is not a knowledge base: it is no SQLite file")
    elif not create:
        raise StoreError(f"there is no knowledge base {path}: build one with partita build DATA -o {path}")
    elif not path.parent.is_dir():
        raise StoreError(f"cannot make {path}: there is no folder {path.parent}")


def connected(url: URL) -> Engine:
    """SQLAlchemy's engine for a store."""
    if url.get_backend_name() != "sqlite":
        return create_engine(url, pool_pre_ping=True)
    engine = create_engine(url, connect_args={"timeout": PATIENCE, "check_same_thread": False})

    @event.listens_for(engine, "connect")
    def configure(connection: Any, record: object) -> None:
        connection.isolation_level = None  # transactions begin where ``begin`` says
        waiting = f"busy_timeout = {1000 * PATIENCE}"
        for setting in ("journal_mode = WAL", "synchronous = FULL", "secure_delete = ON", waiting):
            try:
                connection.execute(f"PRAGMA {setting}")
            except Exception as error:  # a file that is read-only can still be read
                if "readonly" not in str(error):
                    raise

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def explanation(error: str) -> str:
    """What an error of the database means to a user."""
    known = {
        "is full": "the disk is full; nothing of the last change was kept",
        "readonly": "the file is read-only",
        "read-only": "the file is read-only",
        "locked": f"another process has been writing for more than {PATIENCE} seconds; try again later",
        "lock timeout": f"another process has been writing for more than {PATIENCE} seconds; try again later",
        "malformed": "the file is damaged; restore it from a copy",
        "not a database": "it is no SQLite file",
        "unable to open": "the file cannot be opened; are its folder and the file yours to write?",
    }
    return next((meaning for sign, meaning in known.items() if sign in error), error)


# ---------------------------------------------------------------------- versions


def is_ready(connection: Connection, name: str, create: bool) -> bool:
    """Whether there are tables of this version; StoreError for what cannot be made or brought up to date."""
    found = set(inspect(connection).get_table_names())
    if "about" in found:
        version = get(connection, "format")["version"]
        if version > tables.VERSION:
            raise StoreError(
                f"{name} was written by a later Partita (format {version}; this one reads up to "
                f"{tables.VERSION}): update Partita"
            )
        return bool(version == tables.VERSION)
    if found & set(tables.metadata.tables):
        raise StoreError(f"{name} is another kind of database: it has tables {', '.join(sorted(found))}")
    if not create:
        raise StoreError(f"there is no knowledge base in {name}")
    return False


def to_version_2(connection: Connection) -> None:
    """Judgements may be about many fragments, and events name those that they move."""
    connection.execute(text("ALTER TABLE events ADD COLUMN fragments TEXT"))
    tables.metadata.create_all(connection, [tables.judged, tables.undoing])
    for row in connection.execute(select(tables.judgements)).all():
        sides = [{"judgement": row.number, "side": k, "place": 0} for k in (0, 1)]
        both = [side | {"fragment": id} for side, id in zip(sides, (row.first, row.second), strict=True)]
        connection.execute(insert(tables.judged), both)


def to_version_3(connection: Connection) -> None:
    """Fragments say values by number, and events are found by the other entity and by the fragment that caused them.

    Fragments that are there are read as they were, until the model is learnt anew.
    """
    kind = "BLOB" if connection.dialect.name == "sqlite" else "BYTEA"
    connection.execute(text(f"ALTER TABLE fragments ADD COLUMN value_numbers {kind}"))
    tables.metadata.create_all(connection, [tables.vocabulary])
    for index in tables.events.indexes:
        index.create(connection, checkfirst=True)


MIGRATIONS = {1: to_version_2, 2: to_version_3}  # from a version of the tables to the next


def prepare(connection: Connection) -> None:
    """Make the tables where there are none; bring those of an earlier version up to date.

    One process at a time: who has waited for another finds it done.
    """
    if connection.dialect.name == "postgresql":  # SQLite has a single writer anyway
        connection.execute(select(func.pg_advisory_xact_lock(PREPARING)))
    if not inspect(connection).has_table("about"):
        tables.metadata.create_all(connection)
        for view, query in tables.VIEWS.items():
            connection.execute(text(f"CREATE VIEW {view} AS {query}"))
        put(connection, "format", {"version": tables.VERSION})
        put(connection, "revision", 0)
    version = get(connection, "format")["version"]
    while version < tables.VERSION:
        MIGRATIONS[version](connection)
        version += 1
        put(connection, "format", {"version": version})


# ---------------------------------------------------------------------- pieces


PIECE = select(about.c.body, about.c.checksum).where(about.c.name == bindparam("which"))
PIECE_BY_SIZE = select(about.c.name, func.length(about.c.body), about.c.checksum).where(
    about.c.name == bindparam("which")
)
NEW_PIECE = update(about).where(about.c.name == bindparam("which"))


def put(connection: Connection, name: str, value: Any) -> None:
    """Keep something that JSON can hold under a name."""
    body = zlib.compress(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"), 1)
    values = {"body": body, "checksum": checksum(body)}
    # In place, so that whoever waits for a lock on the row gets it.
    if not execute(connection, NEW_PIECE, [values | {"which": name}], tuple(values)):
        execute(connection, about, [{"name": name} | values])


def get(connection: Connection, name: str, default: Any = None) -> Any:
    """What :func:`put` has kept."""
    for body, kept in fetch(connection, PIECE, which=name):
        check(body, kept, f"its {name}")
        return json.loads(zlib.decompress(body).decode("utf-8", "surrogatepass"))
    return default


def checksum_of(connection: Connection, name: str) -> tuple[Any, ...]:
    """What tells whether something that is kept is the same as before, without reading it."""
    found = [row[1:] for row in fetch(connection, PIECE_BY_SIZE, which=name)]
    return (str(connection.engine.url), name, *found)


def checksum(body: bytes, *others: int) -> int:
    """A number that tells whether bytes, or numbers beside them, have changed."""
    return zlib.crc32(body, zlib.crc32(",".join(map(str, others)).encode()))


def check(body: bytes, kept: int, what: str, *others: int) -> None:
    """Raise StoreError unless a checksum is right."""
    if checksum(body, *others) != kept:
        raise StoreError(f"the knowledge base is damaged: {what} has changed since it was written")


def insert_all(connection: Connection, table: Table, rows: Sequence[dict[str, Any]]) -> None:
    """Insert rows, if there are any; all have the same columns."""
    execute(connection, table, rows)


def batches(values: Iterable[Any]) -> Iterator[list[Any]]:
    """Values in lists that a statement can take for parameters."""
    found = list(values)
    for start in range(0, len(found), MANY):
        yield found[start : start + MANY]


def select_all(connection: Connection, query: Any, column: Any, values: Iterable[Any]) -> list[Any]:
    """The rows of a query that have one of some values in a column."""
    return [row for some in batches(values) for row in connection.execute(query.where(column.in_(some)))]
