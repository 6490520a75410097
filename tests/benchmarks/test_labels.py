"""The benchmark of labels: its questions, and its figures on a few records."""

import numpy as np
import pytest

from benchmarks import labels as benchmark
from tests.helpers.texts import write_json

RECORDS = [{"name": f"n{k // 3}", "town": ["x", "y"][: 1 + k % 2]} for k in range(60)]
TRUTH = np.arange(60) // 3


def test_questions_are_such_as_people_are_asked():
    asked = benchmark.questions(RECORDS, TRUTH, 40, seed=0)
    assert len(asked) == len({(i, j) for i, j, _ in asked}) == 40
    assert all(i < j and same == (TRUTH[i] == TRUTH[j]) for i, j, same in asked)
    assert {same for _, _, same in asked} == {True, False}
    assert asked == benchmark.questions(RECORDS, TRUTH, 40, seed=0)
    alike = benchmark.sharing(RECORDS)  # names; towns are of many
    assert alike == {(i, j) for i in range(60) for j in range(i + 1, 60) if TRUTH[i] == TRUTH[j]}


def test_questions_where_no_two_are_of_one_entity():
    asked = benchmark.questions(RECORDS, np.arange(60), 10, seed=1)
    assert len(asked) == 10
    assert not any(same for _, _, same in asked)


def test_a_curve(tmp_path, monkeypatch, capsys):
    (tmp_path / "toy").mkdir()
    write_json(tmp_path / "toy" / "fragments.jsonl")
    kept = {}
    monkeypatch.setattr(benchmark, "keep", lambda name, results: kept.update(results))
    benchmark.main(["--data", str(tmp_path), "--sets", "toy", "--pairs", "5", "--orders", "1"])
    assert set(kept["sets"]["toy"]) == {"0", "5", benchmark.ALL}
    assert all(0.0 < value <= 1.0 for value in kept["sets"]["toy"].values())
    assert "toy" in capsys.readouterr().out


def test_what_is_less_is_marked():
    assert benchmark.written(0.9, 0.95) == "0.900!"
    assert benchmark.written(0.948, 0.95) == "0.948"
    assert benchmark.mean([{"0": 0.2}, {"0": 0.4}])["0"] == pytest.approx(0.3)
