"""Metrics against naive re-implementations that look at every item or every pair."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import adjusted_rand_score

from partita.metrics import (
    adjusted_rand_index,
    bcubed,
    calibration,
    calibration_of,
    pairs_for_calibration,
    pairwise,
    variation_of_information,
)
from tests.helpers.effort import examples

COMPARISONS = (bcubed, pairwise, adjusted_rand_index, variation_of_information)


@st.composite
def two_clusterings(draw):
    n = draw(st.integers(1, 25))
    labels = hnp.arrays(np.int64, n, elements=st.integers(0, draw(st.integers(0, 8))))
    return draw(labels), draw(labels)


def naive_bcubed(true, pred):
    scores = []
    for i in range(len(true)):
        both = np.sum((true == true[i]) & (pred == pred[i]))
        precision, recall = both / np.sum(pred == pred[i]), both / np.sum(true == true[i])
        scores.append((precision, recall, 2 * precision * recall / (precision + recall)))
    return np.mean(scores, axis=0)


def naive_pairwise(true, pred):
    pairs = list(itertools.combinations(range(len(true)), 2))
    said = {(i, j) for i, j in pairs if pred[i] == pred[j]}
    real = {(i, j) for i, j in pairs if true[i] == true[j]}
    precision = len(said & real) / len(said) if said else 1.0
    recall = len(said & real) / len(real) if real else 1.0
    return precision, recall, 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def naive_variation_of_information(true, pred):
    n, distance = len(true), 0.0
    for i in range(n):
        both = np.sum((true == true[i]) & (pred == pred[i]))
        distance -= (
            math.log(both / np.sum(pred == pred[i])) / n + math.log(both / np.sum(true == true[i])) / n
        )
    return distance


@examples(100)
@given(two_clusterings())
def test_they_agree_with_naive_implementations(clusterings):
    true, pred = clusterings
    assert bcubed(true, pred) == pytest.approx(naive_bcubed(true, pred))
    assert pairwise(true, pred) == pytest.approx(naive_pairwise(true, pred))
    expected = naive_variation_of_information(true, pred)
    assert variation_of_information(true, pred) == pytest.approx(expected, abs=1e-12)


@examples(100)
@given(two_clusterings())
def test_adjusted_rand_index_agrees_with_scikit_learn(clusterings):
    assert adjusted_rand_index(*clusterings) == pytest.approx(adjusted_rand_score(*clusterings), abs=1e-12)


@examples(100)
@given(two_clusterings(), st.randoms(use_true_random=False))
def test_names_and_order_do_not_matter(clusterings, random):
    true, pred = clusterings
    names = [f"cluster {k}" for k in range(20)]
    random.shuffle(names)
    order = np.array(random.sample(range(len(true)), len(true)))
    for compare in COMPARISONS:
        renamed = compare(np.array(names)[true][order], [names[k] for k in pred[order]])
        assert renamed == pytest.approx(compare(true, pred), abs=1e-12)


@examples(100)
@given(two_clusterings())
def test_exchanging_the_roles_exchanges_precision_and_recall(clusterings):
    true, pred = clusterings
    for compare in (bcubed, pairwise):
        forth, back = compare(true, pred), compare(pred, true)
        assert (forth.precision, forth.recall) == pytest.approx((back.recall, back.precision))
        assert forth.f1 == pytest.approx(back.f1)
    assert adjusted_rand_index(true, pred) == pytest.approx(adjusted_rand_index(pred, true))
    forth = variation_of_information(true, pred)
    assert forth == pytest.approx(variation_of_information(pred, true), abs=1e-12)


@examples(100)
@given(two_clusterings())
def test_a_clustering_agrees_perfectly_with_itself(clusterings):
    labels, _ = clusterings
    assert bcubed(labels, labels) == pytest.approx((1.0, 1.0, 1.0))
    assert pairwise(labels, labels) == (1.0, 1.0, 1.0)
    assert adjusted_rand_index(labels, labels) == 1.0
    assert variation_of_information(labels, labels) == 0.0


@examples(100)
@given(two_clusterings())
def test_values_stay_in_range(clusterings):
    assert all(0.0 < value <= 1.0 + 1e-12 for value in bcubed(*clusterings))
    assert all(0.0 <= value <= 1.0 for value in pairwise(*clusterings))
    assert adjusted_rand_index(*clusterings) <= 1.0
    assert 0.0 <= variation_of_information(*clusterings) <= math.log(len(clusterings[0])) + 1e-12


def test_f1_is_the_mean_over_items_and_not_of_the_means():
    score = bcubed([0, 0, 0, 0, 1], [0, 0, 0, 0, 0])
    assert score.precision == pytest.approx((4 * 0.8 + 0.2) / 5)
    assert score.recall == 1.0
    assert score.f1 == pytest.approx((4 * (1.6 / 1.8) + 0.4 / 1.2) / 5)
    assert score.f1 != pytest.approx(2 * score.precision / (1 + score.precision))


def test_no_pairs_are_no_mistakes():
    together, apart = [0, 0, 0], [0, 1, 2]
    assert pairwise(together, apart) == (1.0, 0.0, 0.0)
    assert pairwise(apart, together) == (0.0, 1.0, 0.0)
    assert pairwise(apart, apart) == (1.0, 1.0, 1.0)
    assert pairwise([0, 0, 1, 1], [0, 1, 0, 1]) == (0.0, 0.0, 0.0)


def test_a_million_items_need_no_square_matrix():
    rng = np.random.default_rng(0)
    true = rng.integers(300_000, size=1_000_000)
    pred = np.where(rng.random(true.size) < 0.1, rng.integers(300_000, size=true.size), true)
    assert 0.8 < bcubed(true, pred).f1 < 1.0
    assert 0.75 < adjusted_rand_index(true, pred) < 0.9


@pytest.mark.parametrize("compare", COMPARISONS)
def test_bad_labels_are_refused_with_a_reason(compare):
    with pytest.raises(ValueError, match="labels_true has 2 items, labels_pred 3"):
        compare([0, 1], [0, 1, 2])
    with pytest.raises(ValueError, match="labels_true is empty"):
        compare([], [])
    with pytest.raises(ValueError, match="labels_pred must be one-dimensional"):
        compare([0, 1], [[0, 1]])
    with pytest.raises(ValueError, match="labels_pred cannot be sorted"):
        compare([0, 1], np.array([3, "a"], dtype=object))
    for missing in (None, float("nan")):
        with pytest.raises(ValueError, match="labels_true: item 1 is missing"):
            compare([0, missing, missing], [0, 1, 1])


def test_calibration_of_honest_probabilities_is_good():
    rng = np.random.default_rng(0)
    together = rng.random(200_000)
    report = calibration(together, rng.random(together.size) < together)
    assert report.expected_calibration_error < 0.01
    assert report.brier == pytest.approx(1 / 6, abs=0.005)  # the integral of p(1 - p)
    np.testing.assert_allclose(report.bin_probability, np.arange(0.05, 1, 0.1), atol=0.01)
    np.testing.assert_allclose(report.bin_frequency, report.bin_probability, atol=0.02)


@examples(100)
@given(
    st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=30),
    st.integers(1, 7),
)
def test_calibration_agrees_with_a_naive_implementation(predictions, n_bins):
    together, same = (np.array(column) for column in zip(*predictions, strict=True))
    report = calibration(together, same, n_bins)
    error = 0.0
    for k in range(n_bins):
        inside = [i for i, p in enumerate(together) if min(int(p * n_bins), n_bins - 1) == k]
        assert report.bin_count[k] == len(inside)
        if inside:
            assert report.bin_probability[k] == pytest.approx(together[inside].mean())
            assert report.bin_frequency[k] == pytest.approx(same[inside].mean())
            error += len(inside) / together.size * abs(together[inside].mean() - same[inside].mean())
        else:
            assert math.isnan(report.bin_probability[k])
            assert math.isnan(report.bin_frequency[k])
    assert report.expected_calibration_error == pytest.approx(error, abs=1e-12)
    assert report.brier == pytest.approx(np.mean((together - same) ** 2))


@pytest.mark.parametrize(
    ("together", "same", "n_bins", "message"),
    [
        ([0.5], [True, False], 10, "of one length"),
        ([], np.array([], dtype=bool), 10, "empty"),
        ([1.5], [True], 10, "between 0 and 1"),
        ([math.nan], [True], 10, "between 0 and 1"),
        ([0.5], [2], 10, "boolean"),
        ([0.5], [True], 0, "n_bins"),
    ],
)
def test_bad_predictions_are_refused_with_a_reason(together, same, n_bins, message):
    with pytest.raises(ValueError, match=message):
        calibration(together, same, n_bins)


class FakePosterior:
    """Subproblems with a probability of sharing a cluster that is the same within each of them."""

    def __init__(self, members, probabilities):
        self.subproblems = [SimpleNamespace(observations=np.array(rows, dtype=np.int64)) for rows in members]
        self.subproblem_of = np.empty(sum(map(len, members)), dtype=np.int64)
        for index, rows in enumerate(members):
            self.subproblem_of[rows] = index
        self.probabilities = np.array(probabilities)

    def labels(self):
        return self.subproblem_of

    def together(self, i, j):
        assert np.all(i != j)
        same = self.subproblem_of[i] == self.subproblem_of[j]
        return np.where(same, self.probabilities[self.subproblem_of[i]], 0.0)


def inner_pairs(members):
    return {frozenset(pair) for rows in members for pair in itertools.combinations(rows, 2)}


@examples(100)
@given(st.lists(st.integers(1, 7), min_size=1, max_size=6).filter(lambda sizes: max(sizes) > 1), st.data())
def test_every_pair_inside_a_subproblem_is_asked_about_once(sizes, data):
    order = data.draw(st.permutations(range(sum(sizes))))
    members = [list(rows) for rows in np.split(order, np.cumsum(sizes)[:-1])]
    i, j = pairs_for_calibration(FakePosterior(members, np.zeros(len(members))))
    asked = [frozenset(pair) for pair in zip(i.tolist(), j.tolist(), strict=True)]
    assert len(asked) == len(set(asked))
    assert set(asked) == inner_pairs(members)


def test_a_sample_of_pairs_is_uniform_and_seeded():
    members = [[0, 3, 5, 9], [1, 2], [4], [6, 7, 8]]
    posterior = FakePosterior(members, np.zeros(4))
    first, again = (pairs_for_calibration(posterior, 5, random_state=1) for _ in range(2))
    np.testing.assert_array_equal(first, again)

    rng = np.random.default_rng(0)
    counts = dict.fromkeys(inner_pairs(members), 0)
    for _ in range(4000):
        i, j = pairs_for_calibration(posterior, 5, rng)
        drawn = {frozenset(pair) for pair in zip(i.tolist(), j.tolist(), strict=True)}
        assert len(drawn) == 5
        for pair in drawn:
            counts[pair] += 1
    # Ten pairs, five drawn: each in half of the draws, give or take 0.008 in standard deviation.
    np.testing.assert_allclose(np.array(list(counts.values())) / 4000, 0.5, atol=0.04)


def test_pairs_of_a_huge_subproblem_are_within_it():
    n = 3_000_000
    posterior = SimpleNamespace(subproblems=[SimpleNamespace(observations=np.arange(n))])
    i, j = pairs_for_calibration(posterior, n_pairs=1000)
    assert np.all((i >= 0) & (i < j) & (j < n))
    assert j.mean() == pytest.approx(2 * n / 3, rel=0.1)


@examples(20)
@given(st.integers(0, 1000))
def test_calibration_of_finds_the_claim_of_each_subproblem(seed):
    rng = np.random.default_rng(seed)
    members = [np.arange(40), np.arange(40, 80), np.arange(80, 81)]
    labels_true = rng.integers(3, size=81)
    report = calibration_of(FakePosterior(members, [0.25, 0.95, 0.5]), labels_true.astype(str))
    for rows, index, claim in ((members[0], 2, 0.25), (members[1], 9, 0.95)):
        same = [labels_true[i] == labels_true[j] for i, j in itertools.combinations(rows, 2)]
        assert report.bin_count[index] == len(same) == 780
        assert report.bin_probability[index] == pytest.approx(claim)
        assert report.bin_frequency[index] == pytest.approx(np.mean(same))
    assert report.bin_count.sum() == 1560


def test_calibration_of_refuses_what_it_cannot_answer():
    posterior = FakePosterior([[0], [1]], [0.0, 0.0])
    with pytest.raises(ValueError, match="labels_true has 3 items, the posterior 2 observations"):
        calibration_of(posterior, [0, 1, 2])
    with pytest.raises(ValueError, match="no subproblem holds two observations"):
        calibration_of(posterior, [0, 1])
    with pytest.raises(ValueError, match="n_pairs"):
        pairs_for_calibration(posterior, n_pairs=0)
