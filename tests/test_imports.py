"""`import partita` is light, and its names are there when asked for."""

import json
import subprocess
import sys

import pytest

import partita

HEAVY = ["matplotlib", "sqlalchemy", "duckdb", "jax", "sklearn", "scipy", "numba", "numpy", "rich", "typer"]


def in_a_fresh_interpreter(code):
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_import_pulls_in_nothing_heavy():
    loaded = in_a_fresh_interpreter("import json, sys, partita; print(json.dumps(sorted(sys.modules)))")
    assert "partita" in loaded
    assert not set(HEAVY) & set(loaded)
    own = {name for name in loaded if name.startswith("partita.")}
    of_learning = {"partita.models", "partita.models.registry"}  # which know where learning is to be found
    assert own == of_learning | {"partita._core", "partita._core.version"}


def test_the_command_line_starts_without_a_web_server():
    code = "import json, sys, partita.cli, partita.kb; print(json.dumps(sorted(sys.modules)))"
    loaded = in_a_fresh_interpreter(code)
    assert "partita.cli.serve" in loaded
    assert not {"fastapi", "starlette", "uvicorn", "pydantic", "mcp", "httpx", "partita.serve"} & set(loaded)


@pytest.mark.parametrize(
    ("rest", "some"),
    [
        ("points", {"assemble", "dismantle", "append", "gather", "label_blocks", "measure"}),
        ("records", {"assemble", "dismantle", "gather", "best_of", "commit", "learn_alpha"}),
    ],
)
def test_the_helper_compiles_all_but_the_loop(rest, some):
    """The two processes that prepare a first use must not do the same work.

    Nor fail: nobody would notice, as the first compiles what is missing, and it would only take longer.
    """
    code = (
        "import json, partita.demo.warmup as w; from numba.core.dispatcher import Dispatcher; "
        "found = []; real = Dispatcher.compile; "
        "Dispatcher.compile = lambda self, sig: (found.append(self.py_func.__name__), real(self, sig))[1]; "
        f"w.compile_for_{rest}(); print(json.dumps(sorted(set(found))))"
    )
    compiled = in_a_fresh_interpreter(code)
    assert some <= set(compiled)
    assert not {"stream", "fill"} & set(compiled)


def test_clustering_draws_no_pictures():
    """What the samplers need is loaded with them, pictures and progress bars are not."""
    code = "import json, sys, partita; partita.SplitSMC; print(json.dumps(sorted(sys.modules)))"
    loaded = in_a_fresh_interpreter(code)
    assert "numba" in loaded
    assert not {"matplotlib", "sqlalchemy", "duckdb", "jax", "rich", "typer"} & set(loaded)


@pytest.mark.parametrize("name", partita.__all__)
def test_every_public_name_resolves(name):
    assert getattr(partita, name) is not None
    assert getattr(partita, name) is getattr(partita, name)


def test_all_names_the_public_interface():
    assert {"SplitSMC", "SMC", "Greedy", "Model", "Posterior", "bcubed", "metrics", "plots"} <= set(
        partita.__all__
    )
    assert {"Gaussian", "MultivariateGaussian", "Categorical", "Bernoulli"} <= set(partita.__all__)
    assert len(set(partita.__all__)) == len(partita.__all__)


def test_dir_lists_all_names_before_any_is_used():
    names = in_a_fresh_interpreter("import json, partita; print(json.dumps([dir(partita), partita.__all__]))")
    assert set(names[1]) <= set(names[0])
    assert "__version__" in names[0]


def test_from_partita_import_star():
    names = in_a_fresh_interpreter("import json\nfrom partita import *\nprint(json.dumps(sorted(globals())))")
    assert set(partita.__all__) <= set(names)


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'SplitMCS'"):
        partita.SplitMCS  # noqa: B018
