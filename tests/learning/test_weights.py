"""What columns count that go together: against a naive sum over pairs, and where the answer is known."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.learning import weights as learning_weights
from partita.learning.pairs import Sample, sum_evidence, sum_given
from partita.learning.weights import LEAST, LEAST_SHARE, discriminant, others_of, weights_of
from tests.helpers.effort import examples

N = 12  # values of an attribute


def sample_of(records):
    """Records, of each attribute a list of values each, as kernels read them."""
    items = [(a, v) for record in records for a, own in enumerate(record) for v in own]
    attribute, value = np.array(items, np.int64).reshape(-1, 2).T.copy()
    starts = np.cumsum([0, *(sum(map(len, record)) for record in records)])
    k = len(records[0])
    distinct, offset = np.full(k, N), np.arange(k + 1) * N * N
    return Sample(starts, attribute, value, distinct, offset, np.zeros(k * N * N, np.int8))


def said(evidence, one, other):
    """What each attribute says of two records, on average over their values."""
    return {
        a: np.mean([evidence[a, v, w] for v, w in product(one[a], other[a])])
        for a in range(len(one))
        if one[a] and other[a]
    }


values = st.lists(st.integers(0, N - 1), max_size=3, unique=True)
some_records = st.lists(st.tuples(values, values, values), min_size=2, max_size=8)


@examples(30)
@given(some_records, st.floats(-3.0, 3.0), st.floats(-4.0, 4.0), st.integers(0, 2**31))
def test_sums_are_those_over_pairs(records, least, limit, seed):
    rng = np.random.default_rng(seed)
    evidence = rng.normal(0.0, 3.0, (3, N, N))
    first, second = rng.integers(len(records), size=(2, 10))
    sample, flat = sample_of(records), evidence.ravel()
    counts, sums, expected, total = np.zeros((4, 3))
    sum_evidence(sample, flat, first, second, counts, sums)
    given_counts, given_sums, given_expected, given_total = np.zeros((4, 3, 3))
    sum_given(sample, flat, first, second, np.full(3, least), limit, given_counts, given_sums)
    for i, j in zip(first, second, strict=True):
        of = said(evidence, records[i], records[j])
        strange = 1 / (1 + math.exp(sum(of.values()) - limit))
        for a, e in of.items():
            expected[a] += 1
            total[a] += e
            for b in of:
                given_expected[a, b] += strange * (e >= least)
                given_total[a, b] += strange * (e >= least) * of[b]
    np.testing.assert_allclose(counts, expected)
    np.testing.assert_allclose(sums, total, atol=1e-9)
    np.testing.assert_allclose(given_counts, given_expected, atol=1e-9)
    np.testing.assert_allclose(given_sums, given_total, atol=1e-9)


@examples(50)
@given(
    st.integers(1, 5).flatmap(
        lambda k: st.tuples(
            st.lists(st.floats(0.0, 1.0), min_size=k * k, max_size=k * k),
            st.lists(st.floats(0.5, 12.0), min_size=k, max_size=k),
        )
    )
)
def test_no_step_from_the_discriminant_goes_up(given_):
    """It is the best of all weights within bounds: the slope along each is 0, or down and the weight is the least."""
    shares, gap = given_
    k, gap = len(gap), np.array(gap)
    share = (
        np.array(shares).reshape(k, k) * 0.4 / k
    )  # so that Σ has a largest diagonal, and the best is unique
    found = discriminant(share, gap, np.ones((k, k)))
    covariance = np.minimum(0.5 * (share * gap + (share * gap).T), np.sqrt(np.outer(gap, gap)))
    np.fill_diagonal(covariance, gap)
    slope = gap - covariance @ found
    for weight, up in zip(found, slope, strict=True):
        assert up == pytest.approx(0.0, abs=1e-6) or (weight == LEAST and up < 0.0)


def test_the_weights_of_two_columns():
    """Closed forms: independent ones count whole, copies as much as one, and of unequal ones the better counts."""
    beside, gap = np.ones((2, 2)), np.array([6.0, 6.0])
    np.testing.assert_allclose(discriminant(np.zeros((2, 2)), gap, beside), 1.0)
    assert discriminant(np.ones((2, 2)), gap, beside).sum() == pytest.approx(
        1.0
    )  # of the very same, any two will do
    np.testing.assert_allclose(discriminant(np.full((2, 2), 0.25), gap, beside), 1 / 1.25)
    better, worse = discriminant(np.ones((2, 2)), np.array([9.0, 3.0]), beside)
    assert better > 0.9
    assert worse == LEAST
    apart = np.eye(2)  # never mentioned together, they never say the same twice
    np.testing.assert_allclose(discriminant(np.ones((2, 2)), gap, apart), 1.0)


def records_of(n, each, rng, copied):
    """Of n entities so many records each: a name, and a second column that is the same, or says something of its own.

    Names are of families of three: within one they are alike, and so is what is copied from them.
    """
    labels = np.repeat(np.arange(n), each)
    own = rng.permutation(n)
    records = [([k], [k if copied else own[k]]) for k in labels]
    return records, labels


@pytest.mark.parametrize("copied", [True, False])
def test_a_column_that_says_what_another_says_counts_for_less(copied, monkeypatch):
    """Strangers of one family are alike in their names; in the second column only if that is copied."""
    monkeypatch.setattr(learning_weights, "PAIRS", 100_000)
    rng, n = np.random.default_rng(0), N
    records, labels = records_of(n, 4, rng, copied)
    family, of_second = np.arange(n) // 3, np.arange(n) // 3
    evidence = np.full((2, N, N), -3.0)
    evidence[0][family[:, None] == family] = 4.0
    evidence[1][of_second[:, None] == of_second] = 4.0
    for a in range(2):
        np.fill_diagonal(evidence[a], 6.0)
    sample, present = sample_of(records), np.ones((len(labels), 2))
    found = weights_of(sample, present, evidence.ravel(), np.full(2, 6.0), labels)
    if copied:
        assert found.sum() == pytest.approx(1.1, abs=0.1)
    else:
        assert found.sum() > 1.5
        assert (found <= 1.0 / (1.0 + LEAST_SHARE) + 1e-4).all()


def test_records_that_were_missed_do_not_lower_the_weights(monkeypatch):
    """Halves of entities that are apart look like strangers alike in both columns, which they are not."""
    monkeypatch.setattr(learning_weights, "PAIRS", 100_000)
    rng = np.random.default_rng(0)
    records, labels = records_of(N, 8, rng, copied=False)
    halves = 2 * labels + np.arange(len(labels)) % 8 // 6  # a fourth of each is apart
    evidence = np.full((2, N, N), -3.0)
    for a in range(2):
        np.fill_diagonal(evidence[a], 6.0)
    sample, present, expected = sample_of(records), np.ones((len(labels), 2)), np.full(2, 6.0)
    taken_for_true = weights_of(sample, present, evidence.ravel(), expected, halves)
    doubted = weights_of(sample, present, evidence.ravel(), expected, halves, others_of(labels))
    assert (taken_for_true < 0.6).all()
    assert (doubted > 0.9).all()


def test_how_many_others_records_have():
    assert others_of(np.array([0, 0, 0, 1, 2, 2])) == pytest.approx((3 * 2 + 0 + 2 * 1) / 6)
    assert others_of(np.arange(5)) == 0.0
