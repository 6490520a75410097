"""Imports point one way, down the layers in pyproject.toml ([tool.importlinter]), lazy imports included."""

import subprocess
import sys
import tomllib

import grimp

from tests.helpers.files import ROOT

TOP = {"cli", "demo", "experiments", "serve"}  # these use the library as anybody does


def test_no_layer_imports_one_above_it():
    code = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_nothing_below_imports_the_package_as_a_whole():
    """Whose names are looked up when they are asked for: the contract could not see which are used."""
    graph = grimp.build_graph("partita", cache_dir=None)
    by = {name for name in graph.find_modules_that_directly_import("partita") if name.count(".")}
    assert {name for name in by if name.split(".")[1] not in TOP} == set()
    assert len(graph.modules) > 100  # all of them were found


def test_the_layers_are_those_of_the_design():
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    (layers,) = (each["layers"] for each in contract["contracts"])
    depth = {name.strip(" ()"): k for k, layer in enumerate(layers) for name in layer.split("|")}
    for lower, upper in [
        ("_core", "models"),
        ("models", "smc"),
        ("models", "offline"),
        ("models", "posterior"),
        ("smc", "learning"),
        ("offline", "learning"),
        ("posterior", "learning"),
        ("learning", "kb"),
        ("learning", "neural"),
        ("neural", "kb"),
        *(("serve", name) for name in TOP - {"serve"}),
        *(("kb", name) for name in TOP),
    ]:
        assert depth[lower] > depth[upper], (lower, upper)
    assert "ignore_imports" not in str(contract)
