"""``partita train``: what is read and handed on, and that a training is only gone on with as it was begun."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import partita.neural
from partita.cli import app
from tests.helpers.texts import ROWS, write_json


class Trained:
    """Keeps what it was trained with, and says how it goes."""

    calls: list = []  # noqa: RUF012

    @classmethod
    def train(cls, *data, folder, steps, progress, **options):
        cls.calls.append((data, folder, steps))
        cls.options = options
        (folder / "checkpoint.safetensors").write_bytes(b"")
        for step in (20, steps):
            progress(step, {"step": step, "loss": 1.5, "seconds": 2.0})
        return cls()

    def save(self, path):
        path.write_bytes(b"weights")


@pytest.fixture
def calls(monkeypatch):
    for name in ("SetDiffusion", "JsonLM"):
        monkeypatch.setitem(vars(partita.neural), name, Trained)
    monkeypatch.setattr(Trained, "calls", [])
    return Trained.calls


def run(*arguments):
    return CliRunner().invoke(app, ["train", *map(str, arguments)])


def test_diffusion_learns_from_sets_of_points(tmp_path, calls):
    data, folder = tmp_path / "points.csv", tmp_path / "net"
    data.write_text("x,y,label\n1,2,b\n3,4,a\n5,6,b\n")
    result = run("diffusion", data, "-o", folder, "--steps", 40)
    assert result.exit_code == 0, result.output
    ((sets,), used, steps) = calls[0]
    assert (used, steps) == (folder, 40)
    assert [points.tolist() for points in sets] == [[[3, 4]], [[1, 2], [5, 6]]]
    assert (folder / "diffusion.safetensors").read_bytes() == b"weights"
    assert "3 points of 2 clusters" in result.output
    assert "step 40 of 40: loss 1.5" in result.output
    assert Trained.options == {"batch": 1024, "every": 500}
    assert run("diffusion", data, "-o", tmp_path / "b", "--batch", 8, "--every", 3).exit_code == 0
    assert Trained.options == {"batch": 8, "every": 3}


def test_jsonlm_learns_from_labelled_fragments(tmp_path, calls):
    data, folder = write_json(tmp_path / "data.jsonl"), tmp_path / "net"
    result = run("jsonlm", data, "-o", folder)
    assert result.exit_code == 0, result.output
    ((fragments, labels), used, steps) = calls[0]
    assert fragments == [row["properties"] for row in ROWS]
    np.testing.assert_array_equal(labels, [0, 1, 2] * 3)
    assert (used, steps) == (folder, 5_000)
    assert Trained.options == {"batch_tokens": 32_768, "every": 500}
    assert f"--model {folder / 'jsonlm.safetensors'}" in result.output.replace("\n", "")


def test_flat_fragments_with_a_label_of_another_name(tmp_path, calls):
    data = tmp_path / "data.csv"
    data.write_text("who,name,born\nx,Ada,1815\ny,Bob,\n")
    assert run("jsonlm", data, "-o", tmp_path / "net", "--labels", "who").exit_code == 0
    assert calls[0][0][0] == [{"name": ["Ada"], "born": ["1815"]}, {"name": ["Bob"]}]


def test_it_goes_on_as_it_was_begun_only(tmp_path, calls):
    data, folder = write_json(tmp_path / "data.jsonl"), tmp_path / "net"
    assert run("jsonlm", data, "-o", folder, "--steps", 30).exit_code == 0
    again = run("jsonlm", data, "-o", folder, "--steps", 30)
    assert again.exit_code == 0
    assert "going on with the training" in again.output
    others = write_json(tmp_path / "others.jsonl", ROWS[:4])
    for arguments, what in (
        (("jsonlm", data, "-o", folder, "--steps", 31), "other steps"),
        (("jsonlm", others, "-o", folder, "--steps", 30), "other data"),
    ):
        result = run(*arguments)
        assert result.exit_code == 1
        assert f"has a training with {what}: choose another folder" in result.output
    assert len(calls) == 2
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("…")
    result = run("jsonlm", data, "-o", tmp_path / "full")
    assert result.exit_code == 1
    assert "is not empty" in result.output


def test_what_cannot_be_learnt_from(tmp_path, calls):
    points, fragments = tmp_path / "points.csv", tmp_path / "flat.jsonl"
    points.write_text("x,y\n1,2\n")
    fragments.write_text(json.dumps({"name": "Ada"}) + "\n")

    def write(name, text):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    for kind, data, words in (
        ("diffusion", points, "no column label"),
        ("jsonlm", fragments, "name the field with --labels"),
        ("jsonlm", tmp_path / "nowhere.jsonl", "No such file"),
        ("diffusion", write("alone.csv", "x,label\n1,a\n2,b\n"), "no cluster has two points"),
        ("diffusion", write("empty.csv", "x,label\n1,a\n2,\n"), "line 3: the label is empty"),
        ("jsonlm", write("silent.csv", "entity_id,name\nx,\ny,\n"), "no fragment says anything"),
    ):
        result = run(kind, data, "-o", tmp_path / "net")
        assert result.exit_code == 1
        assert words in " ".join(result.output.split())
    assert not calls
    assert not (tmp_path / "net").exists()


def test_without_the_extra_nothing_is_begun(tmp_path, monkeypatch):
    def missing():
        raise ImportError('neural likelihoods need jax: pip install "partita[neural]"', name="jax")

    monkeypatch.setattr(partita.neural, "require", missing)
    result = run("jsonlm", write_json(tmp_path / "data.jsonl"), "-o", tmp_path / "net")
    assert result.exit_code == 1
    assert "pip install" in result.output
    assert not (tmp_path / "net").exists()
