"""The benchmark of answers: what may be asked, and its figures on a few records."""

import numpy as np
import pytest

from benchmarks import answers as benchmark
from partita.kb import open as open_kb
from tests.helpers.people import fragments

ROWS, PEOPLE = fragments(30)
RECORDS = [row["properties"] for row in ROWS]
TRUTH = np.unique([PEOPLE[row["id"]] for row in ROWS], return_inverse=True)[1]


def test_what_must_not_be_asked_about_is_not(tmp_path):
    never = TRUTH % 2 == 0
    with open_kb(tmp_path / "kb.db") as kb:
        kb.add([{"id": str(k), "properties": record} for k, record in enumerate(RECORDS)])
        trial = benchmark.Trial(kb, TRUTH, never)
        n = trial.answer_best(3)
        judged = kb.judgements()
        assert len(judged) == n > 0
        for row in judged:
            one, other = int(row.first), int(row.second)
            assert not never[[one, other]].any()
            assert row.kind == ("confirm" if TRUTH[one] == TRUTH[other] else "separate")
        found = trial.measured()
        assert 0.0 < found["f1"] <= 1.0
        probability, i, j = trial.pairs()
        assert probability[0] == pytest.approx(kb.together(str(i[0]), str(j[0])))


def test_all_figures_of_a_set():
    found = benchmark.of_set(RECORDS[:16], TRUTH[:16], 2, 2)
    assert set(found) == {*benchmark.ARMS, "answers", "random answers", "records", "folds"}
    assert len(found["folds"]) == 2
    for arm in benchmark.ARMS:
        assert found[arm]["f1"] == pytest.approx(np.mean([fold[arm]["f1"] for fold in found["folds"]]))
    assert found["answers"] <= 2
