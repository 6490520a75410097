"""What the tests of networks share."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="package", autouse=True)
def programs(request):
    """Each program is compiled once: for all workers, and for the next run."""
    import jax

    values = {
        "jax_compilation_cache_dir": str(request.config.cache.mkdir("jax-programs")),
        "jax_compilation_cache_max_size": 2**30,  # a limit comes with a lock, for several workers
        "jax_persistent_cache_min_compile_time_secs": 0.05,
    }
    before = {name: getattr(jax.config, name) for name in values}
    for name, value in values.items():
        jax.config.update(name, value)
    yield
    for name, value in before.items():
        jax.config.update(name, value)


@pytest.fixture
def unoptimised():
    """Programs compiled meanwhile are hardly optimised: for what does not depend on that, and runs for a moment."""
    import jax

    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)
