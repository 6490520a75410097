"""What the tests of networks share."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="package", autouse=True)
def programs(tmp_path_factory):
    """Trainings of one kind are compiled once."""
    import jax

    names = "jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs"
    before = [getattr(jax.config, name) for name in names]
    for name, value in zip(names, (str(tmp_path_factory.mktemp("programs")), 0.5), strict=True):
        jax.config.update(name, value)
    yield
    for name, value in zip(names, before, strict=True):
        jax.config.update(name, value)
