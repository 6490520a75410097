"""The sample that a model is learnt from: whoever shares a rare value with the first that are drawn is in it."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import partita as pt
from benchmarks.bulk import population
from partita import bulk
from partita.bulk import clustering, drawing
from partita.bulk.records import Records
from partita.learning import records as learning
from tests.helpers.effort import examples

SCHEMA = pt.Record({"name": pt.Text(), "code": pt.Category(), "note": None})
VALUES = st.lists(st.sampled_from(["a", "b", "c", 1, 1.5]), max_size=2)
SAID = st.fixed_dictionaries({}, optional={"name": VALUES, "code": VALUES, "note": VALUES})


class Place:
    """Records in memory, looked through one by one."""

    def __init__(self, said):
        self.said, self.n = said, len(said)

    def sample(self, numbers):
        return [self.said[number] for number in numbers]

    def holders(self, marks, most):
        found = [
            [k for k, own in enumerate(self.said) if value in map(text, own.get(name, []))]
            for name, value in marks
        ]
        return [own if len(own) <= most else [] for own in found]


def text(value):
    return value if isinstance(value, str) else json.dumps(value)


@given(st.lists(SAID, min_size=2, max_size=30), st.integers(0, 2**32), st.integers(1, 12), st.integers(1, 6))
@examples(60)
def test_a_sample_has_the_neighbourhoods_of_the_first_that_are_drawn(said, seed, enough, rare):
    order = np.random.default_rng(seed).permutation(len(said))
    drawn = order[: max(1, len(said) // 2)]
    with pytest.MonkeyPatch.context() as patch:
        for module, name, value in (
            (drawing, "CLUSTERED", enough),
            (drawing, "SHARED", rare),
            (learning, "SAMPLE", enough),
        ):
            patch.setattr(module, name, value)
        known = {row: said[row] for row in drawn.tolist()}
        found = drawing.with_neighbourhoods(Place(said), SCHEMA, drawn, known)
    expected, seeds = set(), []
    for row in drawn[:enough].tolist():
        seeds.append(row)
        expected.add(row)
        for name in ("name", "code"):  # what is ignored ties nobody together
            for value in map(text, said[row].get(name, [])):
                sharing = [k for k, own in enumerate(said) if value in map(text, own.get(name, []))]
                if len(sharing) <= rare:
                    expected |= set(sharing)
        if len(expected) >= enough:
            break
    assert found.rows.tolist() == sorted({*drawn.tolist(), *expected})
    assert found.said == [said[row] for row in found.rows]
    clustered, drawn_at_random = found.around
    assert found.rows[clustered].tolist() == sorted(expected)
    assert found.rows[drawn_at_random].tolist() == seeds


@given(st.lists(SAID, min_size=1, max_size=30), st.integers(0, 4))
@examples(20)
def test_records_in_files_are_looked_through_as_one_by_one(tmp_path_factory, said, most):
    kept = Records(tmp_path_factory.mktemp("records"))
    kept.append([(str(k), json.dumps(own)) for k, own in enumerate(said)])
    marks = sorted(
        {(name, text(v)) for own in said for name, values in own.items() for v in values} | {("x", "a")}
    )
    assert kept.holders(marks, most) == Place(said).holders(marks, most)


def test_a_small_sample_tells_how_many_records_an_entity_has(monkeypatch):
    rows, truth = zip(*population(700), strict=True)
    counts = np.bincount(np.unique(truth, return_inverse=True)[1])
    monkeypatch.setattr(clustering, "SAMPLE", 60)
    report = bulk.plan(list(rows), id=None)
    of_a_record = 1 / np.mean(1 / np.repeat(counts, counts))
    assert report.size == pytest.approx(of_a_record, rel=0.25)
    assert report.size_again == pytest.approx(of_a_record, rel=0.25)
