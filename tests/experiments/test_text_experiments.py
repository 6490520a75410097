"""The experiments on names and fragments: what is read, what is run, and what is left out."""

import re

import numpy as np
import pytest
from typer.testing import CliRunner

from partita.cli import app
from partita.experiments import plan, report, runner
from partita.experiments.experiment import plain
from partita.experiments.files import names_of, read_fragments
from tests.helpers.texts import ROWS, Letters, write_json


@pytest.fixture
def letters(monkeypatch):
    """The models of text replaced by a cheap one; the arguments that they were fitted with."""
    fitted = []
    monkeypatch.setattr(plan, "text_model", lambda *given: fitted.append(given) or Letters())
    return fitted


# ---------------------------------------------------------------------- what is read


@pytest.mark.parametrize("name", ["data.jsonl", "data.jsonl.gz"])
def test_fragments_from_json_lines(tmp_path, name):
    fragments, truth = read_fragments(write_json(tmp_path / name))
    assert fragments == [row["properties"] for row in ROWS]
    np.testing.assert_array_equal(truth, [0, 1, 2] * 3)
    assert names_of(fragments)[2] == "Zoë Quux"


def test_flat_fragments_lose_what_is_no_attribute(tmp_path):
    rows = [{"name": "Ada", "age": 36, "id": 1, "source": "x", "who": "a", "note": None}]
    fragments, truth = read_fragments(write_json(tmp_path / "flat.json", rows), "who")
    assert fragments == [{"name": "Ada", "age": 36}]
    np.testing.assert_array_equal(truth, [0])
    assert read_fragments(tmp_path / "flat.json")[1] is None


def test_fragments_from_csv(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("record_id,cluster_id,name,born\n1,7,Ada,\n\n2,5,Bob,1942\n", encoding="utf-8")
    fragments, truth = read_fragments(path)
    assert fragments == [{"name": "Ada"}, {"name": "Bob", "born": "1942"}]
    np.testing.assert_array_equal(truth, [1, 0])


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.jsonl", "\n", "no fragments"),
        ("a.jsonl", '{"name": "Ada"}\n{"name": \n', "line 2 is not JSON"),
        ("a.jsonl", '["Ada"]\n', "line 1: a fragment is an object"),
        ("a.jsonl", '{"properties": ["Ada"]}\n', "line 1: a fragment is an object"),
        ("a.jsonl", '{"entity_id": 1, "name": "A"}\n\n{"name": "B"}\n', "line 3: no entity_id"),
        ("a.jsonl", '{"name": "A"}\n{"born": "1942"}\n', "fragment 1 has no name"),
        ("a.jsonl", '{"name": []}\n', "fragment 0 has no name"),
        ("a.csv", "name,born\nAda\n", "line 2: more or fewer fields"),
        ("a.csv", "name\nAda,1942\n", "line 2: more or fewer fields"),
        ("a.csv.gz", "name\nAda\n", "not a text file"),
    ],
)
def test_a_file_that_has_none(tmp_path, name, text, words):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    result = CliRunner().invoke(app, ["reproduce", "names", "--data", str(path), "-o", str(tmp_path / "r")])
    assert result.exit_code == 1
    assert words in result.output.replace("\n", "")
    assert not (tmp_path / "r").exists()


# ---------------------------------------------------------------------- what is planned


def test_names_are_texts_or_records(tmp_path, letters):
    path = write_json(tmp_path / "data.jsonl")
    made = plan.plan("names", path, quick=True)
    assert names_of([row["properties"] for row in ROWS]) == made.X
    assert letters == [("ngram", made.X)]
    assert made.orders.shape == (3, 9)
    assert plan.plan("names", path, model="record").X[0] == {"name": "Ada Lovelace"}
    assert plan.plan("kb", path).X[0] == ROWS[0]["properties"]
    assert made.fingerprint() == plan.plan("names", path, quick=True).fingerprint()
    others = write_json(tmp_path / "others.jsonl", [*ROWS[:-1], ROWS[0]])
    assert made.fingerprint() != plan.plan("names", others, quick=True).fingerprint()


def test_a_prior_of_other_data(tmp_path, letters):
    path, other = write_json(tmp_path / "data.jsonl"), write_json(tmp_path / "other.jsonl", ROWS[:2])
    plan.plan("names", path, prior=other)
    kind, X, entities = letters[0]
    assert (kind, X) == ("ngram", ["Ada Lovelace", "Bob Hoskins"])
    np.testing.assert_array_equal(entities, [0, 1])


def test_what_does_not_belong(tmp_path, letters):
    path = write_json(tmp_path / "data.jsonl")
    with pytest.raises(ValueError, match="no model ngram of kb: choose record or jsonlm"):
        plan.plan("kb", path, model="ngram")
    with pytest.raises(ValueError, match="no field who"):
        plan.plan("kb", path, labels="who")
    with pytest.raises(ValueError, match="kb needs data"):
        plan.plan("kb")
    with pytest.raises(ValueError, match="--labels is for names and kb, not for gaussian"):
        plan.plan("gaussian", labels="who")


def test_methods_that_take_too_long_are_left_out():
    settings, skipped = plan.text_settings(3_000, quick=False)
    assert {setting.method for setting in settings} == {"greedy", "SMC", "split SMC", "split SMC, refined"}
    assert skipped["Gibbs"].startswith("3,000 observations are more than 2,000, and")
    assert not plan.text_settings(100, quick=True)[1]


def test_parameters_as_plain_data():
    parameters = {"counts": np.arange(3), 7: (1.5, None), "set": {"b", "a"}, "model": Letters(0.5)}
    assert plain(parameters) == {
        "counts": [0, 1, 2],
        "7": [1.5, None],
        "set": ["a", "b"],
        "model": ["Letters", {"strength": 0.5}],
    }


# ---------------------------------------------------------------------- what is run


def test_the_command_runs_every_method(tmp_path, letters):
    path, folder = write_json(tmp_path / "data.jsonl"), tmp_path / "report"
    command = ["reproduce", "names", "--data", str(path), "--orders", "2", "--quick", "-o", str(folder)]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    table = (folder / "table.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([^|]+?) \|", table, flags=re.MULTILINE)[2:]
    assert rows == [
        "greedy",
        "SMC, m=100",
        "split SMC, m=100",
        "split SMC, refined, m=20",
        "Gibbs",
        "agglomerative",
    ]
    assert "9 observations, in 2 orders" in (folder / "report.html").read_text(encoding="utf-8")
    assert not (folder / "clustering.png").exists()
    assert CliRunner().invoke(app, command).output.count("split SMC, m=100") == 1


def test_no_orders_are_too_few(tmp_path, letters):
    path = write_json(tmp_path / "data.jsonl")
    for more in (["--orders", "0"], ["--orders", "2", "--replications", "2"]):
        result = CliRunner().invoke(app, ["reproduce", "kb", "--data", str(path), *more])
        assert result.exit_code == 1
        assert "--orders takes a number from 1" in result.output


def test_a_report_without_some_methods(tmp_path, letters, monkeypatch):
    monkeypatch.setattr(plan, "MOST", {"SMC": 5, "Gibbs": 5, "agglomerative": 5})
    experiment = plan.plan("kb", write_json(tmp_path / "data.jsonl"), replications=1, quick=True)
    results = runner.Results(tmp_path / "report", experiment)
    assert [setting.method for setting, _ in results.complete()].count("SMC") == 0
    page = report.write_report(results).read_text(encoding="utf-8")
    reason = "Not run: Gibbs. 9 observations are more than 5, and each of its"
    assert reason in page
    assert reason in (tmp_path / "report" / "table.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("more", [["names"], ["names", "--model", "record"], ["kb"]])
def test_the_models_of_text(tmp_path, more):
    path, folder = write_json(tmp_path / "data.jsonl"), tmp_path / "report"
    command = ["reproduce", *more, "--data", str(path), "--orders", "1", "--quick", "-o", str(folder)]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert "split SMC, m=100" in result.output
