"""What can go wrong with a store: a clear error, and no damage."""

import contextlib
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

import partita.kb
from partita.kb import StoreError
from partita.kb.store import database as store
from partita.kb.store import tables
from tests.helpers.downstream import entities_of
from tests.helpers.files import ROOT
from tests.helpers.people import fragments

ROWS, _ = fragments(30)


@pytest.fixture
def path(tmp_path):
    """A knowledge base of twenty fragments in a file."""
    path = tmp_path / "kb.db"
    with partita.kb.open(path) as kb:
        kb.add(ROWS[:20])
    return path


def contents(path):
    """Every row of every table."""
    connection = sqlite3.connect(path)
    names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    found = {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in sorted(names)}
    connection.close()
    return found


def change(path, statement):
    """Do something to the file behind its back."""
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()


def test_sqlite_is_set_to_be_safe(path):
    with partita.kb.open(path) as kb, kb.store.reading() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2  # full


def test_a_full_disk(path):
    before = contents(path)
    with partita.kb.open(path) as kb:

        @sa.event.listens_for(kb.store._engine, "begin")
        def limit(connection):
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
            connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")

        with pytest.raises(StoreError, match="the disk is full; nothing of the last change was kept"):
            kb.add([{"id": "long", "name": "x" * 200_000}])
        assert contents(path) == before
        sa.event.remove(kb.store._engine, "begin", limit)
        kb.close()
    with partita.kb.open(path) as kb:
        kb.add(ROWS)
        assert len(kb.labels()) == 30


def test_a_file_that_sqlite_may_only_read(path):
    before = contents(path)
    url = f"sqlite:///file:{path}?mode=ro&uri=true"
    with partita.kb.open(url) as kb:
        assert len(list(kb.entities())) > 0
        with pytest.raises(StoreError, match="read-only"):
            kb.add(ROWS)
    assert contents(path) == before


def test_another_writer_is_waited_for(path):
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    timer = threading.Timer(0.5, lambda: other.execute("ROLLBACK"))
    timer.start()
    with partita.kb.open(path) as kb:
        kb.add(ROWS)
        assert len(kb.labels()) == 30
    timer.join()
    other.close()


def test_another_writer_that_does_not_end(path, monkeypatch):
    monkeypatch.setattr(store, "PATIENCE", 0.2)
    other = sqlite3.connect(path, isolation_level=None)
    with partita.kb.open(path) as kb:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match=r"another process has been writing for more than 0\.2 seconds"):
            kb.add(ROWS)
        other.execute("ROLLBACK")
        other.close()
        kb.add(ROWS)
        assert len(kb.labels()) == 30


def test_two_processes_at_once(url):
    """Both add their half at the same time; nothing is lost, and each fragment is there once."""
    program = (
        "import sys; import partita.kb; from tests.helpers.people import fragments\n"
        "rows = fragments(80)[0][int(sys.argv[2])::2]\n"
        "with partita.kb.open(sys.argv[1]) as kb:\n"
        "    kb.add(rows, batch=3)\n"
    )
    with partita.kb.open(url) as kb:
        kb.add(ROWS[:20])
    workers = [
        subprocess.Popen([sys.executable, "-c", program, url, half], stderr=subprocess.PIPE, cwd=ROOT)
        for half in "01"
    ]
    for worker in workers:
        _, error = worker.communicate(timeout=300)
        assert worker.returncode == 0, error.decode()
    with partita.kb.open(url) as kb:
        assert sorted(kb.labels()) == sorted(row["id"] for row in fragments(80)[0])
        assert sum(len(entity.fragments) for entity in kb.entities()) == 80


@pytest.mark.parametrize("column", ["body", "checksum", "rows", "clusters"])
def test_a_corrupted_subproblem(path, column):
    value = "zeroblob(64)" if column == "body" else f"{column} + 1"
    where = "(SELECT MAX(slot) FROM subproblems)"
    change(path, f"UPDATE subproblems SET {column} = {value} WHERE slot = {where}")
    before = contents(path)
    with partita.kb.open(path) as kb:
        assert len(list(kb.entities())) > 0  # what is in tables can still be read
        with pytest.raises(StoreError, match=r"damaged: subproblem \d+ has changed"):
            kb.add(ROWS)
        with pytest.raises(StoreError, match="damaged"):
            kb.uncertain()
    assert contents(path) == before


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM subproblems WHERE slot = (SELECT MAX(slot) FROM subproblems)",
        "DELETE FROM fragments WHERE number = 3",
        "DELETE FROM members WHERE fragment = 3",
        "DELETE FROM about WHERE name = 'sampler'",
        "UPDATE about SET body = zeroblob(9) WHERE name = 'model'",
        "UPDATE fragments SET properties = '{' WHERE number = 3",
        "UPDATE fragments SET value_numbers = X'FFFFFF7F' WHERE number = 3",
        "UPDATE vocabulary SET body = zeroblob(9)",
        "UPDATE vocabulary SET first = first + 1",
        "DELETE FROM vocabulary",
    ],
)
def test_other_damage(path, statement):
    change(path, statement)
    before = contents(path)
    with partita.kb.open(path) as kb, pytest.raises(StoreError, match="damaged"):
        kb.add(ROWS)
    assert contents(path) == before


def test_a_file_of_a_later_version(path):
    with partita.kb.open(path) as kb, kb.store.writing() as connection:
        store.put(connection, "format", {"version": tables.VERSION + 1})
    before = contents(path)
    with pytest.raises(StoreError, match="written by a later Partita"):
        partita.kb.open(path)
    assert contents(path) == before


def test_a_file_of_an_earlier_version_is_brought_up_to_date(path, monkeypatch):
    def add_column(connection):
        connection.execute(sa.text("ALTER TABLE fragments ADD COLUMN language TEXT"))

    monkeypatch.setattr(tables, "VERSION", tables.VERSION + 1)
    monkeypatch.setitem(store.MIGRATIONS, tables.VERSION - 1, add_column)
    with partita.kb.open(path) as kb, kb.store.reading() as connection:
        assert store.get(connection, "format") == {"version": tables.VERSION}
        assert connection.execute(sa.text("SELECT language FROM fragments")).first() == (None,)


OLDER = {  # what a version lacks that the next one has
    1: ("DROP TABLE judged", "DROP TABLE undoing", "ALTER TABLE events DROP COLUMN fragments"),
    2: ("DROP TABLE vocabulary", "ALTER TABLE fragments DROP COLUMN value_numbers"),
}


def make_older(kb, version):
    """Have the tables that a version of Partita made."""
    with kb.store.writing() as connection:
        for lacking in range(version, tables.VERSION):
            for statement in OLDER[lacking]:
                connection.execute(sa.text(statement))
        numbers = store.get(connection, "sampler")
        del numbers["next_value"]
        store.put(connection, "sampler", numbers)
        store.put(connection, "format", {"version": version})


def test_a_file_of_version_2(path):
    """What fragments say was kept as it came only, and compared anew by every process."""
    older = path.with_name("older.db")
    shutil.copy(path, older)
    with partita.kb.open(older) as kb:
        make_older(kb, 2)
    found = []
    for each in (path, older):
        for rows in (ROWS[20:25], ROWS[25:]):  # and opened again between them
            with partita.kb.open(each) as kb:
                kb.add(rows)
        with partita.kb.open(each) as kb:
            kb.remove("f1", "f21")
            kb.refine()
            found.append((entities_of(kb), [row.matches for row in kb.match_all(ROWS[:9])]))
            coded = values_kept(kb)
    assert found[0] == found[1]
    assert coded["f25"] > 0
    assert coded["f2"] is None  # one of before is read as it was,
    with partita.kb.open(older) as kb:
        kb.relearn()
        assert None not in values_kept(kb).values()  # until all are read anyway


def values_kept(kb):
    """Of each fragment present how many values are kept; None where they are not."""
    with kb.store.reading() as connection:
        query = sa.select(tables.fragments.c.id, tables.fragments.c.value_numbers).where(tables.present)
        return {row.id: row[1] and len(row[1]) // 4 for row in connection.execute(query)}


def test_a_file_of_version_1(path):
    """Judgements were of two fragments, and events did not name those that they moved."""
    with partita.kb.open(path) as kb:
        kb.confirm("f0", "f1")
        kb.separate("f2", "f3")
        kb.unsure("f4", "f5")
        kb.undo(1)
        wanted = entities_of(kb), [(row.kind, row.sides) for row in kb.judgements()]
        at = kb.events()[-1].number
        make_older(kb, 1)
    with partita.kb.open(path) as kb:
        assert (entities_of(kb), [(row.kind, row.sides) for row in kb.judgements()]) == wanted
        assert all(event.fragments == [] for event in kb.events())
        assert kb.together("f2", "f3") == 0.0
        with pytest.raises(ValueError, match="undo one of 2"):
            kb.confirm("f2", "f3")
        kb.add(ROWS[20:])
        assert all(event.fragments for event in kb.events(since=at) if event.kind in ("created", "joined"))
        kb.undo(2)  # which nothing is remembered of
        kb.confirm("f2", "f3")


def test_a_migration_that_fails_leaves_the_old_version(path, monkeypatch):
    def fail(connection):
        connection.execute(sa.text("ALTER TABLE fragments ADD COLUMN language TEXT"))
        raise RuntimeError("no")

    before = contents(path)
    with monkeypatch.context() as patched:
        patched.setattr(tables, "VERSION", tables.VERSION + 1)
        patched.setitem(store.MIGRATIONS, tables.VERSION - 1, fail)
        with pytest.raises(RuntimeError, match="no"):
            partita.kb.open(path)
    assert contents(path) == before


def test_what_is_no_knowledge_base(tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("not a database")
    with pytest.raises(StoreError, match="no SQLite file"):
        partita.kb.open(text)
    assert text.read_text() == "not a database"
    with pytest.raises(StoreError, match="is a folder"):
        partita.kb.open(tmp_path)
    with pytest.raises(StoreError, match="there is no folder"):
        partita.kb.open(tmp_path / "none" / "kb.db")
    change(tmp_path / "other.db", "CREATE TABLE fragments (a)")
    with pytest.raises(StoreError, match="another kind of database"):
        partita.kb.open(tmp_path / "other.db")
    with pytest.raises(StoreError, match="mysql is not supported"):
        partita.kb.open("mysql://localhost/kb")
    with pytest.raises(StoreError, match="neither a file nor a URL"):
        partita.kb.open("://")
    with pytest.raises(StoreError, match=r"connection|refused"):
        partita.kb.open("postgresql://localhost:1/kb")


def test_two_processes_that_bring_a_store_up_to_date_at_once(url, monkeypatch):
    """The one that waits finds it done."""
    both, before = threading.Barrier(2), store.is_ready

    def is_ready(*given):
        found = before(*given)
        both.wait(10)
        return found

    def add_column(connection):
        connection.execute(sa.text("ALTER TABLE fragments ADD COLUMN language TEXT"))
        time.sleep(0.3)

    partita.kb.open(url).close()
    monkeypatch.setattr(store, "is_ready", is_ready)
    monkeypatch.setattr(tables, "VERSION", tables.VERSION + 1)
    monkeypatch.setitem(store.MIGRATIONS, tables.VERSION - 1, add_column)
    with ThreadPoolExecutor(2) as pool:
        for opened in [pool.submit(store.Store, url) for _ in range(2)]:
            with contextlib.closing(opened.result()) as each, each.reading() as connection:
                assert store.get(connection, "format") == {"version": tables.VERSION}
