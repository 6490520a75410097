"""Agglomerative clustering against a naive one, merge by merge."""

import itertools
import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state

import partita as pt
from partita._core.concentration import alpha_for
from tests.helpers import oracle
from tests.helpers.effort import examples
from tests.helpers.gauss700 import ALPHA, model, needs_data, table
from tests.helpers.limited import LIMITED, Limited, state_of

KINDS = [pt.Gaussian, pt.MultivariateGaussian, pt.Categorical, pt.Bernoulli, oracle.Poisson]
quick = examples(8)
seeds = st.integers(0, 2**32 - 1)
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
RNG = np.random.default_rng(3)
POINTS = np.concatenate([RNG.normal(c, 0.5, (8, 2)) for c in (0.0, 3.0, 9.0)])
MODEL = pt.Gaussian(2.0, 0.5, 2.0, 0.1)


# ---------------------------------------------------------------------- the naive one


class Gains:
    """Gains of pairs of clusters. Clusters of equal rows score exactly the same, so that ties are ties."""

    def __init__(self, model, X, alpha):
        self.density, self.X, self.alpha, self.known = oracle.density(model), X, alpha, {}

    def score(self, cluster):
        rows = tuple(sorted(tuple(row) for row in self.X[sorted(cluster)]))
        if rows not in self.known:
            self.known[rows] = math.lgamma(len(rows)) + self.density(np.array(rows))
        return self.known[rows]

    def __call__(self, pair):
        a, b = pair
        return self.score(a | b) - (self.score(a) + self.score(b)) - math.log(self.alpha)


def best_of(pairs, gains):
    """The pair of highest gain, the first of equals by first members; None if no gain is above 0."""
    ranked = sorted(pairs, key=lambda pair: (-gains(pair), min(pair[0]), min(pair[1])))
    if not ranked:
        return None
    best = gains(ranked[0])
    if abs(best) < 1e-9 or any(0 < best - gains(pair) < 1e-9 for pair in ranked):
        raise oracle.Undecided
    return ranked[0] if best > 0 else None


def in_order(a, b):
    return (a, b) if min(a) < min(b) else (b, a)


def naive_full(gains, n):
    """Merge the best of all pairs until none gains; returns the merges."""
    clusters, merges = [frozenset({x}) for x in range(n)], []
    while pair := best_of([in_order(a, b) for a, b in itertools.combinations(clusters, 2)], gains):
        merges.append((*pair, gains(pair)))
        clusters = [c for c in clusters if c not in pair] + [pair[0] | pair[1]]
    return merges


def naive_batched(gains, n, batch_size, patience, seed):
    """Each iteration merges the best of pairs drawn at random, or of all if there are no more than asked for.

    A merged cluster stays where the one with the earlier first member was; the last one takes the other's
    place.
    """
    rng = np.random.default_rng(check_random_state(seed).randint(2**31 - 1))
    clusters, merges, idle = [frozenset({x}) for x in range(n)], [], 0
    while idle < patience:
        uniforms = rng.random((batch_size, 2))
        pairs = list(itertools.combinations(clusters, 2))
        everything = len(pairs) <= batch_size
        if not everything:
            pairs = []
            for u, v in uniforms:
                p, q = int(u * len(clusters)), int(v * (len(clusters) - 1))
                pairs.append((clusters[p], clusters[q + (q >= p)]))
        pair = best_of(list({in_order(*pair) for pair in pairs}), gains)
        if pair:
            merges.append((*pair, gains(pair)))
            clusters[clusters.index(pair[0])] = pair[0] | pair[1]
            clusters[clusters.index(pair[1])] = clusters[-1]
            clusters.pop()
        elif everything:
            break
        idle = 0 if pair else idle + 1
    return merges


def merges_of(agglomerative, n):
    """What an estimator has merged, as the naive one says it."""
    nodes, merges = [frozenset({x}) for x in range(n)], []
    for (first, second), gain in zip(agglomerative.children_, agglomerative.gains_, strict=True):
        merges.append((nodes[first], nodes[second], gain))
        nodes.append(nodes[first] | nodes[second])
    return merges


def assert_same(found, expected):
    assert [merge[:2] for merge in found] == [merge[:2] for merge in expected]
    assert [merge[2] for merge in found] == pytest.approx([merge[2] for merge in expected], abs=1e-8)


def check(kind, seed, n, fit, naive):
    """Compare the two on random data; false if rounding decides."""
    rng = np.random.default_rng(seed)
    d = 1 if kind is oracle.Poisson else int(rng.integers(1, 4))
    model, alpha = oracle.random_model(kind, rng, d), math.exp(rng.uniform(-2.0, 2.0))
    X = oracle.random_data(model, rng, n, d)
    try:
        expected = naive(Gains(model, X, alpha), n)
    except oracle.Undecided:
        return False
    agglomerative = fit(model, alpha, X)
    assert_same(merges_of(agglomerative, n), expected)
    clusters = {frozenset({x}) for x in range(n)}
    for a, b, _ in expected:
        clusters = clusters - {a, b} | {a | b}
    assert oracle.partition_of(range(n), agglomerative.labels_) == clusters
    score = oracle.Scores(model, X, alpha)(clusters)
    assert agglomerative.log_density() == pytest.approx(score, rel=1e-9, abs=1e-9)
    return True


@every_kind
def test_full_equals_naive(kind):
    compared = []

    @quick
    @given(seeds, st.integers(1, 16))
    def run(seed, n):
        compared.append(
            check(kind, seed, n, lambda model, alpha, X: pt.Agglomerative(model, alpha).fit(X), naive_full)
        )

    run()
    assert sum(compared) > len(compared) / 2


@every_kind
def test_batched_equals_naive(kind):
    compared = []

    @quick
    @given(seeds, st.integers(1, 14), st.integers(1, 30), st.integers(1, 12))
    def run(seed, n, batch_size, patience):
        compared.append(
            check(
                kind,
                seed,
                n,
                lambda model, alpha, X: pt.Agglomerative(
                    model, alpha, batch_size=batch_size, patience=patience, random_state=7
                ).fit(X),
                lambda gains, n: naive_batched(gains, n, batch_size, patience, 7),
            )
        )

    run()
    assert sum(compared) > len(compared) / 2


@pytest.mark.parametrize("kind", [pt.Bernoulli, oracle.Coins])
def test_ties_go_to_the_first_members(kind):
    """Equal rows, so that nearly all gains are tied."""
    X = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    agglomerative = pt.Agglomerative(kind(0.5, 0.5), 0.3).fit(X)
    assert_same(merges_of(agglomerative, 7), naive_full(Gains(pt.Bernoulli(0.5, 0.5), X, 0.3), 7))
    assert agglomerative.children_[0].tolist() == [0, 2]


@pytest.mark.parametrize("batch_size", [None, 5, 10_000])
def test_compiled_and_general_loops_agree(batch_size):
    rng = np.random.default_rng(1)
    X = rng.integers(0, 2, (120, 8)).astype(float)
    a, b = rng.uniform(0.1, 1.0, (2, 8))  # all different, so that rounding decides no tie
    one, other = (
        pt.Agglomerative(kind(a, b), batch_size=batch_size, random_state=0).fit(X)
        for kind in (pt.Bernoulli, oracle.Coins)
    )
    np.testing.assert_array_equal(one.children_, other.children_)
    np.testing.assert_allclose(one.history_.score, other.history_.score, rtol=1e-9)
    assert len(one.history_.time) > 5


class Counting(oracle.Poisson):
    """Counts the clusters it has scored."""

    scored = 0

    def log_marginal(self, totals, sizes):
        Counting.scored += len(sizes)
        return super().log_marginal(totals, sizes)


def test_a_merge_evaluates_the_pairs_of_the_new_cluster_only():
    n = 60
    X = np.random.default_rng(0).poisson(RNG.choice([1.0, 20.0, 80.0], (n, 1))).astype(float)
    Counting.scored = 0
    agglomerative = pt.Agglomerative(Counting(1.0, 0.1)).fit(X)
    merges = len(agglomerative.gains_)
    assert merges > n / 2
    assert Counting.scored <= 3 * n + n * (n - 1) // 2 + sum(n - k for k in range(1, merges + 1))


# ---------------------------------------------------------------------- results


@pytest.mark.parametrize("batch_size", [None, 20])
@pytest.mark.parametrize("model", [MODEL, oracle.Coins(0.3, 0.4)], ids=["compiled", "user"])
def test_results_fit_together(model, batch_size):
    X = (POINTS > 2.5).astype(float) if isinstance(model, oracle.Coins) else POINTS
    agglomerative = pt.Agglomerative(model, 1.3, batch_size=batch_size, keep_labels=True, random_state=0)
    np.testing.assert_array_equal(agglomerative.fit_predict(X), agglomerative.labels_)
    history, scores = agglomerative.history_, oracle.Scores(model, X, 1.3)
    assert len(history.time) == len(history.score) == len(history.n_clusters) == len(history.labels)
    assert (history.labels[0] == np.arange(24)).all()
    assert (np.diff(history.time) >= 0).all()
    assert (np.diff(history.score) >= 0).all()
    assert (history.best_score == history.score).all()
    for score, count, labels in zip(history.score, history.n_clusters, history.labels, strict=True):
        assert score == pytest.approx(scores(oracle.partition_of(range(24), labels)), rel=1e-9)
        assert count == labels.max() + 1
    np.testing.assert_array_equal(history.labels[-1], agglomerative.labels_)
    assert agglomerative.log_density() == history.score[-1]
    assert history.score[-1] - history.score[0] == pytest.approx(agglomerative.gains_.sum())
    assert (agglomerative.gains_ > 0).all()


def test_a_batch_of_all_pairs_is_the_full_method():
    full = pt.Agglomerative(MODEL).fit(POINTS)
    batched = pt.Agglomerative(MODEL, batch_size=24 * 23 // 2, random_state=0).fit(POINTS)
    np.testing.assert_array_equal(batched.children_, full.children_)
    np.testing.assert_allclose(batched.gains_, full.gains_, rtol=1e-9)


def test_the_seed_decides_the_batches():
    runs = [pt.Agglomerative(MODEL, batch_size=3, random_state=s).fit(POINTS).gains_ for s in (0, 0, 1)]
    np.testing.assert_array_equal(runs[0], runs[1])
    assert len(runs[0]) != len(runs[2]) or (runs[0] != runs[2]).any()


class Slow(oracle.Poisson):
    def log_marginal(self, totals, sizes):
        time.sleep(0.005)
        return super().log_marginal(totals, sizes)


def test_stops_when_time_is_up():
    X = np.arange(90.0)[:, None]
    agglomerative = pt.Agglomerative(Slow(1.0, 0.1), batch_size=3, max_time=0.1, random_state=0).fit(X)
    assert 2 < len(agglomerative.gains_) < 20
    assert agglomerative.history_.time[-2] < 0.1 < agglomerative.history_.time[-1] + 1e-3


def test_one_row():
    agglomerative = pt.Agglomerative(MODEL).fit(POINTS[:1])
    assert agglomerative.labels_.tolist() == [0]
    assert agglomerative.children_.shape == (0, 2)
    assert pt.Agglomerative(MODEL, batch_size=3).fit(POINTS[:1]).labels_.tolist() == [0]


# ---------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": -1.0}, 'alpha must be a positive number or "auto", got -1.0'),
        ({"batch_size": 0}, "batch_size must be a whole number of at least 1"),
        ({"batch_size": 2.5}, "batch_size must be a whole number of at least 1"),
        ({"patience": 0}, "patience must be a whole number of at least 1"),
        ({"max_time": -1}, "max_time must be a positive number of seconds"),
        ({"model": pt.Gaussian(shape=-1.0)}, "shape"),
    ],
)
def test_bad_parameters_are_named_and_change_nothing(parameters, message):
    agglomerative = pt.Agglomerative(MODEL).fit(POINTS).set_params(**parameters)
    before = state_of(agglomerative)
    with pytest.raises(ValueError, match=message):
        agglomerative.fit(POINTS)
    assert state_of(agglomerative) == before


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_bad_rows_are_named_and_change_nothing(value):
    agglomerative = pt.Agglomerative(MODEL).fit(POINTS)
    before, X = state_of(agglomerative), POINTS.copy()
    X[4, 1] = value
    with pytest.raises(ValueError, match="row 4"):
        agglomerative.fit(X)
    assert state_of(agglomerative) == before


def test_what_is_not_fitted_says_so():
    with pytest.raises(NotFittedError, match="Agglomerative is not fitted yet"):
        pt.Agglomerative().log_density()


@pytest.mark.parametrize("batch_size", [None, 4])
def test_impossible_clusters_are_never_made(batch_size):
    agglomerative = pt.Agglomerative(Limited(), 1e-3, batch_size=batch_size).fit(LIMITED)
    labels = agglomerative.labels_
    assert all(LIMITED[labels == k].sum() <= 100 for k in range(labels.max() + 1))
    assert len(agglomerative.gains_) > 0


@pytest.mark.parametrize("batch_size", [None, 4])
@pytest.mark.parametrize(
    ("value", "error"), [(math.nan, ValueError), (math.inf, ValueError), (None, KeyboardInterrupt)]
)
def test_a_failure_on_the_way_changes_nothing(value, error, batch_size):
    agglomerative = pt.Agglomerative(oracle.Poisson(), batch_size=batch_size).fit(LIMITED)
    before = state_of(agglomerative.set_params(model=Limited(value)))
    with pytest.raises(error):
        agglomerative.fit(LIMITED)
    assert state_of(agglomerative) == before


# ---------------------------------------------------------------------- the paper's data


@needs_data
def test_the_known_score():
    X = table()
    agglomerative = pt.Agglomerative(model(), ALPHA).fit(X[:, :2])
    assert agglomerative.log_density() == pytest.approx(-1425.196, abs=0.01)
    assert pt.bcubed(X[:, 2], agglomerative.labels_).f1 == pytest.approx(0.871, abs=0.001)


def test_the_concentration_is_learnt():
    X, _ = pt.datasets.gaussian_mixture(n_points=150, random_state=0)
    model = pt.Gaussian(shape=2.0, rate=0.5, mean=0.0, precision=2e-4)
    found = pt.Agglomerative(model, "auto").fit(X)
    again = pt.Agglomerative(model, found.alpha_).fit(X)
    assert (found.labels_ == again.labels_).all()
    assert found.log_density() == again.log_density()
    assert found.alpha_ == pytest.approx(alpha_for(found.labels_.max() + 1.0, len(X)), rel=0.02)
