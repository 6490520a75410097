"""The commands that say how good a knowledge base is, in text and as JSON."""

import csv
import json

import numpy as np
import pytest

from tests.cli.test_kb_commands import document, refused, run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table of codes with typos in it, and the knowledge base that comes of it."""
    made = tmp_path_factory.mktemp("checked")
    rng = np.random.default_rng(0)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    word = lambda: "".join(rng.choice(letters, 7))  # noqa: E731
    with (made / "rows.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "name", "street", "phone", "code", "truth"])
        for entity in range(50):
            true = [word() for _ in range(4)]
            for copy in range(3):
                shown = [value if rng.random() > 0.15 else word() for value in true]
                rows.writerow([f"{entity}-{copy}", *shown, entity])
    run("build", made / "rows.csv", "-o", made / "kb.db", "--ignore", "truth")
    return made


def test_diagnose(folder):
    text = run("diagnose", folder / "kb.db")
    assert "150 fragments" in text
    assert "95–100 %" in text
    assert "street" in text
    assert "No sign that learning has collapsed." in text
    found = document("diagnose", folder / "kb.db", "--records", 150)
    assert found["warnings"] == []
    assert "slopes" not in found
    assert found["reliability"]["bins"][-1]["share"] > 0.85
    assert {one["name"] for one in found["reliability"]["attributes"]} == {"name", "street", "phone", "code"}


def test_diagnose_with_labels(folder):
    command = ("diagnose", folder / "kb.db", "--labels", folder / "rows.csv", "--records", 60)
    assert "truth is in a nat" in run(*command)
    assert set(document(*command)["slopes"]) == {"observations", "merges", "pairs"}
    assert "--label" in refused(*command, "--label", "person")


def test_diagnose_warns_of_a_collapse(tmp_path):
    """One column with the same value everywhere."""
    rows = tmp_path / "rows.jsonl"
    lines = [{"id": str(k), "kind": "thing"} for k in range(40)]
    rows.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    kb = tmp_path / "kb.db"
    run("build", rows, "-o", kb)
    found = document("diagnose", kb)
    assert found["warnings"]
    assert {"kind", "message", "advice"} == set(found["warnings"][0])
    text = run("diagnose", kb)
    assert "Warning: " in text
    assert "cannot tell" in text


def test_evaluate(folder, tmp_path):
    kb, rows = folder / "kb.db", folder / "rows.csv"
    found = document("evaluate", kb, "--labels", rows, "--bins", 5)
    assert found == document("evaluate", kb, rows, "--bins", 5)
    assert found["f1"] > 0.9
    assert found["true among these"] > 0.9
    assert len(found["reliability"]) == 5
    assert sum(row["pairs"] for row in found["reliability"]) > 100
    assert all((row["frequency"] is None) == (row["pairs"] == 0) for row in found["reliability"])
    text = run("evaluate", kb, "--labels", rows)
    assert "pairs held for certain" in text
    assert "90–100 %" in text
    assert "name one file" in refused("evaluate", kb, code=2)
    assert "name one file" in refused("evaluate", kb, rows, "--labels", rows, code=2)
    truth = tmp_path / "truth.jsonl"
    truth.write_text('{"id": "0-0", "entity": "a"}\n{"id": "0-0", "entity": "b"}\n', encoding="utf-8")
    assert "two true entities" in refused("evaluate", kb, "--labels", truth)
