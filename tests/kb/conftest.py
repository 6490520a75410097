"""Databases for the tests: SQLite, and PostgreSQL where there is a server."""

import os
import uuid

import pytest
import sqlalchemy as sa

SERVER = "PARTITA_TEST_POSTGRES"


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    """The URL of an empty database, which is dropped after the test."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'kb.db'}"
        return
    if not os.environ.get(SERVER):
        pytest.skip(f"{SERVER} is not set: .ci/postgres start starts a server and prints its URL")
    server = sa.make_url(os.environ[SERVER])
    name = f"partita_{uuid.uuid4().hex}"
    _execute(server, f'CREATE DATABASE "{name}"')
    yield server.set(database=name).render_as_string(hide_password=False)
    _execute(server, f'DROP DATABASE "{name}" WITH (FORCE)')


def _execute(server, statement):
    engine = sa.create_engine(server, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with engine.connect() as connection:
        connection.execute(sa.text(statement))
    engine.dispose()
