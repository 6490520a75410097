"""docs/extending.md runs as it stands, and what it registers is as good as what is built in."""

import importlib
import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import partita as pt
from partita.models import registry

SOURCE = str(Path(pt.__file__).parents[1])
PAGE = Path(__file__).parents[1] / "docs" / "extending.md"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The modules of the page, importable, and its other blocks, in order."""
    folder = tmp_path_factory.mktemp("extending")
    scripts = []
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S):
        name = re.match(r"# (\w+\.py)\n", block)
        if name:
            (folder / name[1]).write_text(block, encoding="utf-8")
        else:
            scripts.append(block)
    sys.path.insert(0, str(folder))
    before = [dict(table) for table in (registry.MODELS, registry.KINDS, registry.FAMILIES)]
    yield folder, scripts
    sys.path.remove(str(folder))
    for table, known in zip((registry.MODELS, registry.KINDS, registry.FAMILIES), before, strict=True):
        table.clear()
        table.update(known)


def test_the_page_runs(page, monkeypatch):
    folder, scripts = page
    monkeypatch.chdir(folder)
    assert len(scripts) == 2
    for script in scripts:
        exec(compile(script, str(PAGE), "exec"), {})


def test_a_registered_family_is_exchangeable_and_its_gains_are_differences(page):
    model = importlib.import_module("counts").Counts(1.5, 0.3)
    X = np.random.default_rng(0).poisson(4.0, (5, 2)).astype(float)
    orders = [X[list(order)] for order in itertools.permutations(range(5))]
    found = model.log_likelihood(orders)
    np.testing.assert_allclose(found, found[0], rtol=1e-12)
    sampler = pt.SplitSMC(model, alpha=1.0, n_particles=60).fit(X)
    assert len(sampler.posterior_.subproblems[0].partitions) >= 1
    labels = sampler.labels_
    clusters = [X[labels == k] for k in range(labels.max() + 1)]
    score = sum(model.log_likelihood(clusters)) + sum(
        np.log(1.0) + np.sum(np.log(np.arange(1, len(c)))) for c in clusters
    )
    np.testing.assert_allclose(sampler.posterior_.log_density(), score, rtol=1e-10)


def test_a_registered_kernel_of_a_kind_is_what_its_formula_says(page):
    years = importlib.import_module("years")
    model = pt.Record({"born": years.Year(error=0.2).with_corpus({"1800": 1, "1890": 1})}, rate=0.0)
    said = [{"born": 1815}, {"born": 1816}, {"born": 1815}]

    def naive(values):
        total = 0.0
        for year in range(min(values), max(values) + 1):
            total += np.prod([0.8 if v == year else 0.2 * 0.5 ** (abs(v - year) + 1) for v in values]) / 100.0
        return np.log(total)

    expected = [naive([1815]), naive([1815, 1816]), naive([1815, 1816, 1815]) + model.log_size(3)]
    np.testing.assert_allclose(model.log_likelihood([said[:1], said[:2], said]), expected, rtol=1e-12)
    found = model.log_likelihood([said, said[::-1]])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12)


def test_names_that_are_taken_are_refused():
    class Gaussian(pt.Gaussian):
        pass

    with pytest.raises(ValueError, match="taken by partita"):
        pt.register(Gaussian)
    assert registry.MODELS["Gaussian"] is pt.Gaussian
    assert registry.FAMILIES[pt.Gaussian.family_class] is pt.Gaussian


def test_the_command_line_imports_what_the_environment_names(page):
    folder, _ = page
    (folder / "rows.csv").write_text("id,name,passport\na,Ada,GB 794 6001\nb,Ada L,gb7946001\n", "utf-8")
    (folder / "schema.toml").write_text(
        '[attributes.name]\nkind = "text"\n[attributes.passport]\nkind = "passport"\n'
    )
    environment = os.environ | {
        "PARTITA_IMPORT": "passport",
        "PYTHONPATH": os.pathsep.join([str(folder), SOURCE]),
    }

    def partita(*command):
        code = f"from partita.cli import app; app({list(command)!r})"
        return subprocess.run(
            [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True
        )

    built = partita("build", "rows.csv", "-o", "rows.db", "--schema", "schema.toml")
    assert built.returncode == 0, built.stderr
    explained = partita("explain", "rows.db", "a", "b")
    assert explained.returncode == 0, explained.stderr
    assert "passport" in explained.stdout
    environment["PARTITA_IMPORT"] = ""
    refused = partita("explain", "rows.db", "a", "b")
    assert refused.returncode == 1
    assert "PARTITA_IMPORT" in " ".join(refused.stderr.replace("│", " ").split())


def test_what_can_not_be_registered_says_why():
    with pytest.raises(TypeError, match="neither a CompiledModel nor an Attribute"):
        pt.register(dict)

    class Nameless(pt.Attribute):
        pass

    with pytest.raises(TypeError, match="has no kind"):
        pt.register(Nameless)
    with pytest.raises(TypeError, match="there is nothing to register"):
        pt.register(pt.Text())

    class Empty(pt.CompiledModel):
        family_class = dict
        kernels = (1, 2)

    with pytest.raises(TypeError, match=r"Empty.family_class must be a NamedTuple"):
        pt.register(Empty)
    assert "Empty" not in registry.MODELS
