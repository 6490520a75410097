"""Kernels are cached by what they are made of, and by nothing else."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import partita
from partita._core.kernel import COMPILED, PACKAGE

CODE = """
import json
from partita._core.concentration import alpha_for
alpha_for(3.0, 10)
print(json.dumps([sum(alpha_for.stats.cache_hits.values()), sum(alpha_for.stats.cache_misses.values())]))
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the package whose files may be changed."""
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(
        Path(partita.__file__).parent,
        folder / "partita",
        ignore=shutil.ignore_patterns("__pycache__", "pretrained"),
    )
    return folder


def run(folder):
    """Cache hits and misses of a kernel in a process of its own."""
    environment = os.environ | {"PYTHONPATH": str(folder)}
    environment.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run(
        [sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def test_a_kernel_is_compiled_when_a_part_of_it_has_changed_and_else_not(copy):
    assert run(copy) == [0, 1]
    assert run(copy) == [1, 0]
    for file in (copy / "partita").rglob("*.py"):  # a fresh clone has fresh times
        os.utime(file)
    assert run(copy) == [1, 0]
    with (copy / "partita/plots.py").open("a") as file:
        file.write("# no part of a kernel\n")
    assert run(copy) == [1, 0]
    with (copy / "partita/_core/sorting.py").open("a") as file:
        file.write("# may be part of one\n")
    assert run(copy) == [0, 1]


def test_every_kernel_lies_where_the_cache_looks():
    """Else an edited kernel would run stale."""
    kernels = re.compile(r"^ *@(kernel|inner|intrinsic)\b", re.MULTILINE)
    folders = {
        file.relative_to(PACKAGE).parts[0]
        for file in PACKAGE.rglob("*.py")
        if kernels.search(file.read_text(encoding="utf-8"))
    }
    assert folders == set(COMPILED)
