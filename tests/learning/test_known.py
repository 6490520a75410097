"""What is known before learning: labels of some rows and answers about pairs, against what they must mean."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import partita as pt
from partita.learning import records as record_prior
from partita.learning.known import known_of
from partita.learning.records import neighbourhoods
from tests.helpers.effort import examples
from tests.helpers.people import fragments

N = 7
ROWS = [row["properties"] for row in fragments(40)[0]]
TRUTH = np.array(list(fragments(40)[1].values()))
pair = st.tuples(st.integers(0, N - 1), st.integers(0, N - 1)).filter(lambda pair: pair[0] != pair[1])


def same_model(one, other):
    return one.to_json() == other.to_json()


# ---------------------------------------------------------------------- which clusterings conform


def partitions(n):
    """All partitions of n rows, as labels."""
    found = [[]]
    for _ in range(n):
        found = [[*labels, label] for labels in found for label in range(max(labels, default=-1) + 2)]
    return found


EVERY = partitions(N)


@examples(60)
@given(
    st.lists(st.integers(-1, 2), min_size=N, max_size=N), st.lists(st.tuples(pair, st.booleans()), max_size=5)
)
def test_breaks_nothing_if_and_only_if_it_conforms(labels, answers):
    """Against all 877 partitions of seven rows: what is refused is impossible, what is broken is not as is known."""

    def conforms(found):
        labelled = all(
            (found[i] == found[j]) == (labels[i] == labels[j])
            for i, j in combinations(range(N), 2)
            if -1 not in (labels[i], labels[j])
        )
        return labelled and all((found[i] == found[j]) == same for (i, j), same in answers)

    possible = [found for found in EVERY if conforms(found)]
    try:
        known = known_of(N, labels, [(i, j, same) for (i, j), same in answers])
    except ValueError:
        assert not possible
        return
    assert possible
    assert [found for found in EVERY if not any(known.broken(np.array(found)))] == possible


@examples(40)
@given(
    st.lists(st.tuples(pair, st.booleans()), max_size=5),
    st.lists(st.integers(0, N - 1), unique=True, min_size=1),
)
def test_what_is_known_of_some_rows(answers, rows):
    """Through rows that are left out as well."""
    try:
        known = known_of(N, pairs=[(i, j, same) for (i, j), same in answers])
    except ValueError:
        return
    among = known.among(rows)
    for i, j in combinations(range(len(rows)), 2):
        alone, joined = np.arange(len(rows)), np.arange(len(rows))
        joined[j] = joined[i]
        one, other = (int(known.group[rows[k]]) for k in (i, j))
        assert any(among.broken(joined)[1]) == (one != other and (one, other) in known.apart)
        assert ((i, j) in among.broken(alone)[0]) <= (one == other != -1)


@pytest.mark.parametrize("missing", [-1, None, math.nan, np.nan])
def test_labels_that_are_not_known(missing):
    known = known_of(4, ["a", missing, "b", "a"])
    assert sorted(known.rows) == [0, 2, 3]
    assert known.group[1] == -1
    assert known.group[0] == known.group[3] != known.group[2]
    assert not known.is_complete
    assert known_of(4, ["a", "c", "b", "a"]).is_complete


@pytest.mark.parametrize(
    ("labels", "pairs", "message"),
    [
        (None, [(0, 1, True), (1, 2, True), (0, 2, False)], "rows 0 and 2 are different by pairs"),
        (["a", "b", None, None], [(0, 2, True), (2, 1, True)], "rows 0 and 1 have different labels"),
        (["a", "a", None, None], [(0, 1, False)], "rows 0 and 1 are different by pairs"),
        (None, [(0, 1, True), (0, 4, True)], "item 1, .* has no two different rows out of 4"),
        (None, [(2, 2, True)], "item 0, .* has no two different rows"),
        (None, [(0, 1)], "item 0 is .* not .row, row"),
        (None, [(0, 1, "no")], "must say True or False of rows 0 and 1"),
        (None, [(0.5, 1, True)], "item 0 is"),
        ([1, 2, 3], None, "labels has 3 entries, but there are 4 fragments"),
    ],
)
def test_what_cannot_be(labels, pairs, message):
    with pytest.raises(ValueError, match=message):
        known_of(4, labels, pairs)


# ---------------------------------------------------------------------- learning


def test_nothing_known_is_as_without():
    schema = pt.Record.infer(ROWS)
    without = schema.fit_prior(ROWS)
    assert same_model(schema.fit_prior(ROWS, [None] * len(ROWS)), without)
    assert same_model(schema.fit_prior(ROWS, np.full(len(ROWS), -1), pairs=[]), without)


def test_all_labels_are_counted_and_pairs_add_nothing():
    schema = pt.Record.infer(ROWS)
    counted = schema.fit_prior(ROWS, TRUTH)
    pairs = [(i, j, bool(TRUTH[i] == TRUTH[j])) for i, j in combinations(range(8), 2)]
    assert same_model(schema.fit_prior(ROWS, TRUTH, pairs=pairs), counted)
    assert counted.size == pytest.approx(len(TRUTH) / len(set(TRUTH)) + record_prior.MORE)


def test_what_is_learnt_respects_what_is_known(monkeypatch):
    """The clusters of every turn conform, however odd the answers are."""
    seen, learnt = [], record_prior.learnt

    def spy(model, learner, labels, *rest):
        seen.append(labels)
        return learnt(model, learner, labels, *rest)

    monkeypatch.setattr(record_prior, "learnt", spy)
    labels = np.where(np.arange(len(ROWS)) < 12, TRUTH, -1)
    labels[1] = max(TRUTH) + 1  # which nobody would guess
    pairs = [(20, 30, True), (30, 31, True), (21, 22, False)]
    pt.Record.infer(ROWS).fit_prior(ROWS, labels, pairs)
    known = known_of(len(ROWS), labels, pairs)
    assert record_prior.BOLD < len(seen) <= record_prior.TURNS
    assert not any(any(known.broken(found)) for found in seen)


def test_answers_change_what_is_learnt():
    """Two spellings are of one entity, or never: only an answer can tell."""
    X = [{"name": f"{'Dr ' * (k % 2)}person {k // 2}", "town": "abcdefg"[k % 7]} for k in range(40)]
    schema = pt.Record({"name": pt.Text(), "town": pt.Category()})
    sizes = [
        schema.fit_prior(X, pairs=[(k, k + 1, same) for k in range(0, 40, 2)]).size for same in (True, False)
    ]
    assert sizes[0] > 1.8
    assert sizes[1] == pytest.approx(1.0 + record_prior.MORE, abs=0.2)


def test_rows_that_are_known_are_in_the_sample(monkeypatch):
    monkeypatch.setattr(record_prior, "SAMPLE", 100)
    pairs = [[(0, f"name {k // 3}")] for k in range(900)]
    occurrences = record_prior.counted(pairs, 1)
    few, many = [5, 700, 6], list(range(0, 900, 2))
    rows, seeds = neighbourhoods(pairs, occurrences, few)
    assert set(few) <= set(rows)
    assert len(set(seeds) - set(few)) > 20
    rows, seeds = neighbourhoods(pairs, occurrences, many)
    assert set(many[:50]) <= set(rows)  # half of the sample
    assert len(rows) < 110
    assert set(seeds) <= set(rows)


def test_learning_with_answers_is_deterministic():
    pairs = [(0, 1, bool(TRUTH[0] == TRUTH[1])), (2, 9, bool(TRUTH[2] == TRUTH[9]))]
    one, other = (pt.Record.infer(ROWS).fit_prior(ROWS, pairs=iter(pairs)) for _ in range(2))
    assert same_model(one, other)
