"""What columns count that go together if the truth is known: a naive sum over pairs, closed forms, known answers."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import partita as pt
from partita.learning.discriminant import LEAST, LEAST_SHARE, discriminant, weights_of_known
from partita.learning.learner import Learner
from partita.learning.pairs import Sample, sum_evidence
from tests.helpers.effort import examples

N = 12  # values of an attribute


def sample_of(records, levels):
    """Records, of each attribute a list of values each, as kernels read them."""
    items = [(a, v) for record in records for a, own in enumerate(record) for v in own]
    attribute, value = np.array(items, np.int64).reshape(-1, 2).T.copy()
    starts = np.cumsum([0, *(sum(map(len, record)) for record in records)])
    k = len(records[0])
    return Sample(starts, attribute, value, np.full(k, N), np.arange(k + 1) * N * N, levels)


values = st.lists(st.integers(0, N - 1), max_size=3, unique=True)
some_records = st.lists(st.tuples(values, values, values), min_size=2, max_size=8)
seeds = st.integers(0, 2**31)


@examples(30)
@given(some_records, st.floats(-3.0, 3.0), st.floats(-4.0, 4.0), st.integers(0, 7), seeds)
def test_sums_are_those_over_pairs(records, enough, limit, least, seed):
    rng = np.random.default_rng(seed)
    evidence, levels = rng.normal(0.0, 3.0, (3, N, N)), rng.integers(0, 8, (3, N, N)).astype(np.int8)
    first, second = rng.integers(len(records), size=(2, 10))
    counts, sums, expected, total = np.zeros((4, 3, 3))
    sample = sample_of(records, levels.ravel())
    sum_evidence(sample, evidence.ravel(), first, second, limit, least, np.full(3, enough), counts, sums)
    for i, j in zip(first, second, strict=True):
        both = {a: list(product(records[i][a], records[j][a])) for a in range(3)}
        said = {a: np.mean([evidence[a, v, w] for v, w in both[a]]) for a in range(3) if both[a]}
        if sum(said.values()) > limit:
            continue
        for a, e in said.items():
            if e >= enough and max(levels[a, v, w] for v, w in both[a]) >= least:
                for b in said:
                    expected[a, b] += 1
                    total[a, b] += said[b]
    np.testing.assert_allclose(counts, expected)
    np.testing.assert_allclose(sums, total, atol=1e-9)


@examples(50)
@given(
    st.integers(1, 5).flatmap(
        lambda k: st.tuples(
            st.lists(st.floats(0.0, 1.0), min_size=k * k, max_size=k * k),
            st.lists(st.floats(0.5, 12.0), min_size=k, max_size=k),
        )
    )
)
def test_no_step_from_the_discriminant_goes_up(drawn):
    """It is the best of all weights within bounds: the slope along each is 0, or down and the weight is the least."""
    shares, gap = drawn
    k, gap = len(gap), np.array(gap)
    share = np.array(shares).reshape(k, k) * 0.4 / k  # so that the best is unique
    found = discriminant(share, gap, np.ones((k, k)))
    covariance = np.minimum(0.5 * (share * gap + (share * gap).T), np.sqrt(np.outer(gap, gap)))
    np.fill_diagonal(covariance, gap)
    for weight, up in zip(found, gap - covariance @ found, strict=True):
        assert up == pytest.approx(0.0, abs=1e-6) or (weight == LEAST and up < 0.0)


def test_the_weights_of_two_columns():
    """Closed forms: independent ones count whole, copies as much as one, and of unequal ones the better counts."""
    beside, gap = np.ones((2, 2)), np.array([6.0, 6.0])
    np.testing.assert_allclose(discriminant(np.zeros((2, 2)), gap, beside), 1.0)
    assert discriminant(np.ones((2, 2)), gap, beside).sum() == pytest.approx(1.0)
    np.testing.assert_allclose(discriminant(np.full((2, 2), 0.25), gap, beside), 1 / 1.25)
    better, worse = discriminant(np.ones((2, 2)), np.array([9.0, 3.0]), beside)
    assert better > 0.9
    assert worse == LEAST
    apart = np.eye(2)  # never mentioned together, they never say the same twice
    np.testing.assert_allclose(discriminant(np.ones((2, 2)), gap, apart), 1.0)


@pytest.mark.parametrize("copied", [True, False])
def test_a_column_that_says_what_another_says_counts_for_less(copied):
    """Strangers of one family are alike in both columns if the second is the first again, else in one or the other."""
    labels, families = np.repeat(np.arange(60), 3), np.arange(60) // 3
    second = np.arange(60) if copied else np.random.default_rng(0).permutation(60)
    said = [[(0, f"title {k}"), (1, f"text {second[k]}")] for k in labels]
    learner = Learner(["title", "description"], [pt.Category(), pt.Category()], said)
    evidence = np.full((2, 60, 60), -3.0)
    evidence[0][families[:, None] == families] = 4.0  # values are numbered as they come
    family_of_second = families[second]
    evidence[1][family_of_second[:, None] == family_of_second] = 4.0
    for a in range(2):
        np.fill_diagonal(evidence[a], 6.0)
    weights = weights_of_known(learner, evidence.ravel(), np.full(2, 6.0), labels)
    if copied:
        assert weights.sum() == pytest.approx(1.15, abs=0.1)
    else:
        assert weights.sum() > 1.5
        assert (weights <= 1.0 / (1.0 + LEAST_SHARE) + 1e-4).all()
