"""The commands that say how good a knowledge base is, in text and as JSON."""

import csv
import json
import re

import numpy as np
import pytest

from partita.cli.checking import read_truth
from partita.kb.io import write
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
    p, r = found["precision"], found["recall"]
    assert found["harmonic f1"] == pytest.approx(2 * p * r / (p + r))
    text = run("evaluate", kb, "--labels", rows)
    assert re.search(rf"F1, mean over fragments +{found['f1']:.4f}\n", text)
    assert re.search(rf"F1, harmonic: 2PR/\(P\+R\) +{found['harmonic f1']:.4f}\n", text)
    assert re.search(rf"F1 of pairs +{found['pair f1']:.4f}\n", text)
    assert "pairs held for certain" in text
    assert "90–100 %" in text
    assert "name one file" in refused("evaluate", kb, code=2)
    assert "name one file" in refused("evaluate", kb, rows, "--labels", rows, code=2)
    truth = tmp_path / "truth.jsonl"
    truth.write_text('{"id": "0-0", "entity": "a"}\n{"id": "0-0", "entity": "b"}\n', encoding="utf-8")
    assert "two true entities" in refused("evaluate", kb, "--labels", truth)


def test_evaluate_says_what_is_wrong(folder, tmp_path):
    """Truth by which two entities should be one, and one should be two."""
    kb, truth = folder / "kb.db", tmp_path / "truth.csv"
    truth.write_text("id,entity\n0-0,A\n0-1,A\n1-0,A\n2-0,B\n2-1,C\n", encoding="utf-8")
    found = document("evaluate", kb, truth)["worst"]
    (spread,) = (one for one in found if one["missed"])
    (mixed,) = (one for one in found if one["joined"])
    assert spread["holds"] == {"A": ["0-0", "0-1"]}
    assert spread["spread"]["A"][spread["entity"]] == 2
    assert mixed["holds"] == {"B": ["2-0"], "C": ["2-1"]}
    text = run("evaluate", kb, truth)
    over = ", ".join(f"{entity} ({n})" for entity, n in spread["spread"]["A"].items())
    assert f"A is spread over {over}\n" in text
    assert "1 of B, 1 of C (joined wrongly)" in text
    assert text.index("A is spread") < text.index("1 of B")
    assert document("evaluate", kb, truth, "--worst", 1)["worst"] == [spread]
    assert "wrong" not in run("evaluate", kb, truth, "--worst", 0)
    truth.write_text("id,entity\n0-0,A\n1-0,B\n", encoding="utf-8")
    assert "No entity is wrong" in run("evaluate", kb, truth)


def test_ids_of_the_truth_are_as_those_of_fragments(tmp_path):
    path = tmp_path / "truth.parquet"
    write([{"id": 7.0, "entity": "a"}, {"id": 8.0, "entity": "b"}, {"id": None, "entity": "c"}], path)
    assert read_truth(str(path), None, None, None) == {"7": "a", "8": "b"}


def test_labels_are_read_as_they_are_said_to_be(folder, tmp_path):
    path = tmp_path / "truth.csv"
    path.write_text("id,entity\n0-0,\xe9\n", encoding="latin-1")
    for command in ("relearn", "evaluate", "diagnose"):
        said = refused(command, folder / "kb.db", "--labels", path, "--encoding", "utf-8")
        assert "UTF-8" in said
        assert "leave --sheet out" in refused(command, folder / "kb.db", "--labels", path, "--sheet", "a")
