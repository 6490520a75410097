"""Fixtures."""

import pytest

from .files import fitted


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.partita"


@pytest.fixture
def saved(path):
    """A file, and all of its bytes."""
    fitted().save(path)
    return path, path.read_bytes()
