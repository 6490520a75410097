"""Options and fixtures that all tests share."""

import importlib
import os
import shutil
import uuid
from contextlib import contextmanager

import pytest

from tests.helpers.files import fitted

SERVER = "PARTITA_TEST_POSTGRES"
MOST_WORKERS = 4  # each compiles and holds networks of its own; more only wait for one another


def pytest_addoption(parser):
    """``pytest --long``."""
    parser.addoption("--long", action="store_true", help="try ten times as hard: see tests/helpers/effort.py")


def pytest_configure(config):
    """Before any test is collected: how hard to try. Processes that are started inherit it."""
    if config.getoption("--long"):
        os.environ["PARTITA_LONG"] = "1"
    importlib.import_module("tests.helpers.effort")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """``-n auto``: a worker for each core that this process may use."""
    return min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2, MOST_WORKERS)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.partita"


@pytest.fixture
def saved(path):
    """A file, and all of its bytes."""
    fitted().save(path)
    return path, path.read_bytes()


@pytest.fixture
def template():
    """What databases are copies of: a file's path for SQLite, a database's name for PostgreSQL; None: empty ones."""
    return lambda kind: None


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path, template):
    """The URL of a new database, which is dropped after the test: SQLite, and PostgreSQL where it is."""
    if request.param == "postgresql" and not os.environ.get(SERVER):
        pytest.skip(f"{SERVER} is not set: .ci/postgres start starts a server and prints its URL")
    with database(request.param, tmp_path / "kb.db", template(request.param)) as url:
        yield url


@contextmanager
def database(kind, path, template=None):
    """The URL of a database: for SQLite a file, for PostgreSQL one that is dropped in the end."""
    if kind == "sqlite":
        if template is not None:
            shutil.copy(template, path)
        yield f"sqlite:///{path}"
        return
    import sqlalchemy as sa

    server = sa.make_url(os.environ[SERVER])
    name = f"partita_{uuid.uuid4().hex}"
    execute(server, f'CREATE DATABASE "{name}"' + (f' TEMPLATE "{template}"' if template else ""))
    yield server.set(database=name).render_as_string(hide_password=False)
    execute(server, f'DROP DATABASE "{name}" WITH (FORCE)')


def execute(server, statement):
    """Run one statement on a server, outside any transaction."""
    import sqlalchemy as sa

    engine = sa.create_engine(server, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with engine.connect() as connection:
        connection.execute(sa.text(statement))
    engine.dispose()
