"""The experiments with networks, by stand-ins for these: what is run, counted, limited and reported."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import partita as pt
import partita.neural
from partita.cli import app
from partita.experiments import jobs, neural, plan, report, runner
from partita.experiments.__main__ import main
from partita.experiments.experiment import NONE, Experiment, Setting
from tests.helpers import networks
from tests.helpers.texts import ROWS, write_json

X, TRUTH = pt.datasets.circles(n_clusters=3, sizes=(5, 6), random_state=0)


@pytest.fixture(autouse=True)
def fakes(monkeypatch, tmp_path):
    """Closed forms in place of networks, and of the bigram whatever reads fragments."""
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "jax"))
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    networks.install(monkeypatch)
    monkeypatch.setattr(neural, "bigram", lambda: pt.Record({"name": pt.Text(), "born": pt.Text()}))
    yield
    networks.forget()


@pytest.fixture
def points(tmp_path):
    path = tmp_path / "points.csv"
    np.savetxt(path, np.column_stack([X, TRUTH]), delimiter=",", header="x,y,label", comments="")
    return path


def names_in(table):
    return [row for row in re.findall(r"^\| ([^|]+?) \|", table, flags=re.MULTILINE) if row != "---"]


# ---------------------------------------------------------------------- what is planned


def test_circles_are_the_diffusion_models(points):
    made = plan.plan("circles", points, replications=2)
    assert made.neural
    assert made.model.score.name == "fake-diffusion 1"
    assert made.alpha == 1.0
    assert made.max_minutes == pytest.approx(1e4 / 60)
    assert made.published["split SMC"].f1 == 0.82
    methods = {setting.method for setting in made.settings}
    assert methods == {
        "greedy",
        "SMC",
        "split SMC",
        "split SMC, refined",
        "Gibbs",
        "Metropolis-within-Gibbs",
        "agglomerative",
    }
    assert Setting("greedy", surrogate=NONE) in made.settings
    assert Setting("split SMC", 100, lookahead=1) in made.settings
    assert {s.size for s in made.ablation if s.method == "split SMC"} == {50}
    assert Setting("split SMC", 50) in made.ablation
    assert made.fingerprint() == plan.plan("circles", points, replications=1).fingerprint()
    assert made.fingerprint() != plan.plan("circles", points, model="mine.safetensors").fingerprint()
    elsewhere = plan.plan("circles", points, replications=1)
    elsewhere.model.score.lookahead += 1  # as on a machine of another kind
    assert elsewhere.fingerprint() == made.fingerprint()
    assert not plan.plan("circles", points, model="gaussian").neural


def test_fragments_are_the_language_models(tmp_path):
    path = write_json(tmp_path / "data.jsonl")
    made = plan.plan("kb", path, model="jsonlm", replications=1)
    assert made.alpha == made.surrogates["record"][1]
    assert Setting("greedy", proposals=100) in made.settings
    assert Setting("split SMC", 100, surrogate="record") in made.settings
    assert isinstance(made.surrogates["record"][0], pt.Record)
    pooled = Setting("split SMC", 100, surrogate="record", pooled=True)
    assert pooled in made.settings
    assert pooled.name == "split SMC, m=100, with record"
    alone = Setting("split SMC, refined", 20, 3, surrogate="record", alone=True)
    assert alone in made.settings
    assert alone.name == "split SMC, refined, m=20, record alone"
    assert runner.model_of(made, pooled)[0].surrogate_weight == 0.5
    assert runner.model_of(made, pooled._replace(pooled=False))[0].surrogate_weight == 0.0
    assert {s.size for s in made.ablation if s.method == "SMC"} == {10}
    assert plan.plan("names", path, model="jsonlm", quick=True).X[0] == {"name": "Ada Lovelace"}
    settings, _, skipped = neural.fragments(made.model.score, 501, None, quick=False)
    assert {"Gibbs", "Metropolis-within-Gibbs", "agglomerative"} == set(skipped)
    assert not {s.method for s in settings} & set(skipped)


def test_the_published_figures_are_of_data_like_these():
    assert neural.published("kb", 50, False)[0]["SMC"].f1 == 0.65
    assert neural.published("kb", 201, False)[0]["SMC"].f1 == 0.69
    assert not neural.published("kb", 3, False)[0]
    assert any(
        "REBEL-50, which is built in the same way" in note for note in neural.published("kb", 50, False)[1]
    )


def test_without_the_extra_it_says_what_to_install(points, tmp_path, monkeypatch):
    def missing():
        raise ImportError('neural likelihoods need jax: pip install "partita[neural]"', name="jax")

    monkeypatch.delitem(vars(partita.neural), "SetDiffusion")
    monkeypatch.setattr(partita.neural, "require", missing)
    folder = tmp_path / "report"
    result = CliRunner().invoke(app, ["reproduce", "circles", "--data", str(points), "-o", str(folder)])
    assert result.exit_code == 1
    assert 'pip install "partita[neural]"; --model gaussian works without' in result.output
    assert not folder.exists()


def test_what_does_not_belong(points, tmp_path):
    with pytest.raises(ValueError, match="no model jsonlm of circles: choose diffusion or gaussian"):
        plan.plan("circles", points, model="jsonlm")
    with pytest.raises(ValueError, match="--model is for names and kb and circles, not for points"):
        plan.plan("points", points, model="record")
    for more, words in (
        (["--methods", "split,nuts"], "no method nuts: choose from greedy, smc"),
        (["--particles", "10,x"], "--particles takes whole numbers"),
    ):
        result = CliRunner().invoke(app, ["reproduce", "circles", "--data", str(points), *more])
        assert result.exit_code == 1
        assert words in result.output


# ---------------------------------------------------------------------- what is run


@pytest.fixture
def small(points):
    """Every method, with few particles."""
    return plan.plan("circles", points, replications=2, particles=(3, 5), max_minutes=1.0)._replace(
        ablation=neural.ablation(4, (1, 2, 4))
    )


def test_everything_is_run_counted_and_reported(small, tmp_path):
    settings = [s._replace(sweeps=min(s.sweeps, 5)) for s in small.settings]
    results = runner.Results(tmp_path / "r", small._replace(settings=tuple(settings)))
    expected = sum(1 if setting.once else 2 for setting in runner.chosen(results.experiment, None))
    assert len(list(results.complete())) == expected
    assert not results.missing()
    for run in results.runs:
        assert (run["evaluations"] > 0) if not run["alone"] else "evaluations" not in run
    of = {s: results.of(s)[0] for s in runner.chosen(results.experiment, None)}
    asked = [of[Setting("split SMC", 4, proposals=k)]["evaluations"] for k in (1, 2)]
    assert asked == sorted(asked)
    assert of[Setting("split SMC", 4)]["evaluations"] >= asked[-1]
    assert of[Setting("split SMC", 5)]["calibration_error"] >= 0.0
    page = report.write_report(results).read_text(encoding="utf-8")
    table = (tmp_path / "r" / "table.md").read_text(encoding="utf-8")
    rows = names_in(table)
    for row in (
        "greedy, no surrogate",
        "SMC, m=5",
        "split SMC, m=5",
        "split SMC, m=5, lookahead 1",
        "split SMC, refined, m=5",
        "Metropolis-within-Gibbs",
        "agglomerative, batch=10",
        "split SMC, m=4, m′=2",
        "greedy, surrogate alone",
    ):
        assert row in rows
    assert "calls | evaluations | seconds |" in table
    assert "log-posteriors of different likelihoods do not compare" in table
    for name in ("ablation", "clustering", "runtime", "particles", "online"):
        assert (tmp_path / "r" / f"{name}.png").exists()
    assert "How much to ask the network" in page


def test_the_surrogate_alone_is_scored_by_the_network(small):
    run = runner.run_one(small, Setting("SMC", 5, alone=True), 0)
    points, _ = small.in_order(0)
    sampler = pt.SMC(small.surrogates[""][0], 1.0, 5, random_state=0).fit(points)
    score = networks.FakeDiffusion()
    clusters = [points[sampler.labels_ == c] for c in range(sampler.labels_.max() + 1)]
    expected = sum(score([c])[0] + np.log(np.arange(1, len(c))).sum() for c in clusters)
    assert run["log_density"] == pytest.approx(expected)


def test_a_surrogate_by_another_name(tmp_path):
    made = plan.plan("kb", write_json(tmp_path / "data.jsonl"), model="jsonlm", replications=1)
    model, alpha = runner.model_of(made, Setting("split SMC", 10, surrogate="record", proposals=7))
    assert model.surrogate is made.surrogates["record"][0]
    assert (model.n_proposals, alpha) == (7, made.alpha)
    assert made.model.n_proposals is None
    assert runner.model_of(made, Setting("SMC", 3, alone=True))[1] == made.surrogates[""][1]
    model, _ = runner.model_of(made, Setting("split SMC", 10, lookahead=1))
    assert (model.score.lookahead, made.model.score.lookahead) == (1, 3)


def test_some_methods_now_and_the_others_later(small, tmp_path):
    few = small._replace(settings=small.settings[:3], orders=small.orders[:1])
    results = runner.Results(tmp_path, few)
    assert [s.method for s, _ in results.complete(["greedy"])] == ["greedy"]
    assert "Not run: SMC. Left out." in report.remarks(results)
    report.write_report(results)
    again = runner.Results(tmp_path, few)
    assert len(again.missing()) == len(runner.chosen(few, None)) - 1
    assert again.missing(["ablation"]) == [(s, 0) for s in few.ablation]


def test_an_ablation_alone_is_reported(small, tmp_path):
    few = small._replace(ablation=neural.ablation(4, (1,)), orders=small.orders[:1])
    results = runner.Results(tmp_path / "r", few)
    list(results.complete(["ablation"]))
    report.write_report(results)
    assert "split SMC, m=4, m′=1" in (tmp_path / "r" / "table.md").read_text(encoding="utf-8")
    assert (tmp_path / "r" / "ablation.png").exists()
    assert not (tmp_path / "r" / "runtime.png").exists()


def test_a_run_that_was_cut_short_is_run_again_with_more_time(small, tmp_path):
    gibbs = Setting("Gibbs", sweeps=10**6)
    short = small._replace(settings=(gibbs,), ablation=(), orders=small.orders[:1], max_minutes=1e-4)
    results = runner.Results(tmp_path, short)
    list(results.complete())
    assert results.runs[0]["cut_short"]
    assert "Cut short after 0.0001 minutes: Gibbs, 1 of 1 runs." in report.remarks(results)
    assert not results.missing()
    longer = runner.Results(tmp_path, short._replace(max_minutes=2e-4))
    assert longer.missing() == [(gibbs, 0)]
    list(longer.complete())
    assert [run["max_minutes"] for run in longer.runs] == [2e-4]


def test_results_of_before_are_read(small, tmp_path):
    results = runner.Results(tmp_path, small)
    list(zip(results.complete(["greedy", "SMC"]), range(2), strict=False))
    contents = json.loads(results.path.read_text())
    assert len(contents["runs"]) == 2
    for run in contents["runs"]:
        for name in ("alone", "lookahead", "proposals"):
            del run[name]
    results.path.write_text(json.dumps(contents))
    again = runner.Results(tmp_path, small)
    assert len(again.missing()) == len(results.missing())


# ---------------------------------------------------------------------- side by side, and from a shell


def test_side_by_side_is_as_one_after_the_other(tmp_path):
    settings = (Setting("greedy"), Setting("split SMC", 5))
    model = pt.Gaussian(shape=2.0, rate=0.5)
    experiment = Experiment("points", X, TRUTH, plan.random_orders(2, len(X)), model, 1.0, settings)
    one, two = runner.Results(tmp_path / "1", experiment), runner.Results(tmp_path / "2", experiment)
    list(one.complete())
    assert {setting for setting, _ in jobs.complete(two, 2)} == set(settings)
    for setting in settings:
        for a, b in zip(one.of(setting), two.of(setting), strict=True):
            assert {k: v for k, v in a.items() if k != "seconds"} == {
                k: v for k, v in b.items() if k != "seconds"
            }
    assert not list(jobs.complete(two, 2))


def test_from_a_shell(points, tmp_path, capsys):
    command = ["circles", "--data", str(points), "--orders", "1", "--methods", "split,greedy"]
    command += ["--particles", "3", "-o", str(tmp_path / "r")]
    assert main(command) == 0
    assert names_in(capsys.readouterr().out)[1:] == [
        "greedy, no surrogate",
        "split SMC, m=3",
        "split SMC, m=3, lookahead 1",
    ]
    assert main(["squares"]) == 1
    assert "no experiment squares" in capsys.readouterr().err


def test_fragments_from_a_shell(tmp_path, capsys):
    path = write_json(tmp_path / "data.jsonl", ROWS)
    command = ["kb", "--model", "jsonlm", "--data", str(path), "--quick", "-o", str(tmp_path / "r")]
    assert main(command) == 0
    rows = names_in(capsys.readouterr().out)
    assert "greedy, m′=100" in rows
    assert "split SMC, m=10, surrogate record" in rows


def test_a_shell_needs_neither_typer_nor_a_store():
    code = "import json, sys; import partita.experiments.__main__; print(json.dumps(sorted(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"typer", "rich", "duckdb", "sqlalchemy", "jax", "matplotlib"} & set(json.loads(result.stdout))
