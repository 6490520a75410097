"""The benchmark of robustness: its columns, and its figures on a few records."""

import numpy as np
import pytest

import partita as pt
from benchmarks import robustness
from tests.helpers.texts import write_json

RECORDS = [{"name": f"n{k}", "city": "x"} if k % 2 else {"name": f"n{k}"} for k in range(60)]


@pytest.mark.parametrize("add", robustness.COLUMNS.values())
def test_a_column_is_added_to_all(add):
    more = add(RECORDS)
    (column,) = {column for record in more for column in record} - {"name", "city"}
    assert all(column in record for record in more)
    assert [{k: v for k, v in record.items() if k != column} for record in more] == RECORDS
    assert add(RECORDS) == more


def test_what_the_columns_say():
    assert {record["copy of name"] for record in robustness.copied_column(RECORDS)} == {
        record["name"] for record in RECORDS
    }
    assert len({record["unique column"] for record in robustness.unique_column(RECORDS)}) == 60
    assert len({record["constant column"] for record in robustness.constant_column(RECORDS)}) == 1
    assert 10 < len({record["random column"] for record in robustness.random_column(RECORDS)}) <= 20
    lists = robustness.copied_column([{"a": ["x", "y"]}, {"b": "z"}, {"a": ["w"]}])
    assert lists == [{"a": ["x", "y"], "copy of a": ["x", "y"]}, {"b": "z"}, {"a": ["w"], "copy of a": ["w"]}]


def test_labels_of_whole_clusters(monkeypatch):
    seen = []
    monkeypatch.setattr(pt.Record, "fit_prior", lambda _self, X, labels: seen.append((len(X), labels)))
    truth = np.repeat(np.arange(20), 3)
    robustness.taught(0.5, truth, RECORDS)
    robustness.taught(1.0, truth, RECORDS)
    (half, labels), (every, _) = seen
    assert (half, every) == (30, 60)
    assert np.unique(labels, return_counts=True)[1].tolist() == [3] * 10


def test_figures_of_a_set(tmp_path):
    (tmp_path / "toy").mkdir()
    write_json(tmp_path / "toy" / "fragments.jsonl")
    found = robustness.measure(tmp_path, "toy", most=800, n_orders=2, few=1)
    assert found["records"] == 9
    assert found["f1"] == pytest.approx(np.mean(found["f1_by_order"]))
    assert set(found["gains"]) == {*robustness.COLUMNS, *robustness.LABELLED}
    for what, gain in found["gains"].items():
        assert gain == pytest.approx(found["f1_changed"][what] - found["f1_by_order"][0])
    robustness.show_all({"toy": found})


def test_what_misses_is_marked():
    gains = {"random": -0.0204, "constant": -0.021, "unique": 0.1, "copied": 0.0} | {
        "half the labels": -0.5,
        "all labels": -0.001,
    }
    row = robustness.row_of("toy", {"records": 9, "f1": 0.5, "f1_sd": 0.02, "gains": gains})
    assert [cell[-1] == "!" for cell in row] == [
        False,
        False,
        False,
        True,
        False,
        True,
        False,
        False,
        False,
        True,
    ]
    assert robustness.options([]).orders == 10
