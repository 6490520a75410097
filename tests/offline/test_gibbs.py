"""Gibbs sampling: invariance against enumeration, stopping, histories, and errors that change nothing."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from scipy.stats import chi2
from scipy.stats import t as student
from sklearn.exceptions import NotFittedError

import partita as pt
from partita._core.concentration import alpha_for
from partita.offline.chain import chain
from tests.helpers import oracle
from tests.helpers.effort import effort
from tests.helpers.gauss700 import ALPHA as PAPER_ALPHA
from tests.helpers.gauss700 import model, needs_data, table
from tests.helpers.limited import LIMITED, Limited, state_of

N = 5  # observations; 52 partitions
ALPHA = 1.3
COUNTS = np.array([[1.0], [4.0], [2.0], [7.0], [3.0]])
CODES = np.array([[0.0, 1.0], [1.0, 1.0], [0.0, 1.0], [0.0, 0.0], [1.0, 0.0]])
RNG = np.random.default_rng(3)
POINTS = np.concatenate([RNG.normal(c, 0.5, (8, 2)) for c in (0.0, 3.0, 9.0)])
MODEL = pt.Gaussian(2.0, 0.5, 2.0, 0.1)

CHAINS = {  # data, model, surrogate
    "Gaussian": (COUNTS, pt.Gaussian(2.0, 2.0, 3.0, 0.3), None),
    "MultivariateGaussian": (COUNTS, pt.MultivariateGaussian(3.0, 4.0, 3.0, 0.3), None),
    "Categorical": (CODES, pt.Categorical(2, 0.4), None),
    "Bernoulli": (CODES, pt.Bernoulli(0.3, 0.6), None),
    "user": (COUNTS, oracle.Poisson(1.0, 0.3), None),
    "Gaussian by Gaussian": (COUNTS, pt.Gaussian(2.0, 2.0, 3.0, 0.3), pt.Gaussian(1.0, 0.5, 0.0, 0.1)),
    "Bernoulli by Categorical": (CODES, pt.Bernoulli(0.3, 0.6), pt.Categorical(2, 2.0)),
    "user by user": (COUNTS, oracle.Poisson(1.0, 0.3), oracle.Poisson(3.0, 1.0)),
    "user by Gaussian": (COUNTS, oracle.Poisson(1.0, 0.3), pt.Gaussian(2.0, 2.0, 3.0, 0.3)),
    "Gaussian by user": (COUNTS, pt.Gaussian(2.0, 2.0, 3.0, 0.3), oracle.Poisson(1.0, 0.3)),
}
every_chain = pytest.mark.parametrize("case", CHAINS)


def posterior(case):
    """The exact posterior: partitions and their probabilities."""
    X, model, _ = CHAINS[case]
    exact = oracle.posterior(oracle.Scores(model, X, ALPHA))
    return list(exact), np.array(list(exact.values()))


def labels_of(partition):
    labels = np.empty(N, np.int64)
    for k, c in enumerate(sorted(partition, key=min)):
        labels[list(c)] = k
    return labels


@every_chain
def test_a_sweep_leaves_the_posterior_invariant(case):
    """One sweep from each of 1,500 exact draws: Pearson's χ² of the results against the posterior.

    The results are independent, so a correct chain fails with probability 1e-6. Partitions expected less than
    ten times are pooled.
    """
    X, model, surrogate = CHAINS[case]
    partitions, probability = posterior(case)
    rng, draws, moved = np.random.default_rng(17), effort(1500, 4000), 0
    counts = Counter()
    for k in rng.choice(len(partitions), draws, p=probability):
        walk = chain(model, surrogate, X, labels_of(partitions[k]), math.log(ALPHA))
        walk.sweep(rng.permutation(N), rng.random((N, 2)))
        after = oracle.partition_of(range(N), walk.partition.label)
        counts[after] += 1
        moved += after != partitions[k]
    assert moved > draws / 10
    observed, expected = np.array([counts[p] for p in partitions]), probability * draws
    common = expected >= 10
    observed = np.append(observed[common], observed[~common].sum())
    expected = np.append(expected[common], expected[~common].sum())
    cells = expected > 0
    statistic = ((observed - expected)[cells] ** 2 / expected[cells]).sum()
    assert statistic < chi2.isf(1e-6, cells.sum() - 1)


@every_chain
def test_long_run_frequencies(case):
    """From singletons: each partition's frequency against its probability.

    Standard errors are those of 40 batch means, compared by Student's t; with Bonferroni's correction a
    correct chain fails with probability 1e-6, up to the batches' being a little dependent. Partitions less
    probable than 1 in 100 are pooled.
    """
    X, model, surrogate = CHAINS[case]
    partitions, probability = posterior(case)
    sweeps = effort(2000, 4000) if "user" in case else effort(4000, 12_000)
    gibbs = pt.Gibbs(
        model, ALPHA, surrogate=surrogate, max_sweeps=sweeps, keep_labels=True, random_state=5
    ).fit(X)
    visited = [oracle.partition_of(range(N), row) for row in gibbs.history_.labels[1:]]
    number = {p: k if probability[k] >= 0.01 else -1 for k, p in enumerate(partitions)}
    codes = np.array([number[p] for p in visited]).reshape(40, -1)
    cells = sorted(set(number.values()))
    assert len(cells) > 8
    for k in cells:
        expected = sum(probability[j] for j, p in enumerate(partitions) if number[p] == k)
        means = (codes == k).mean(axis=1)
        error = means.std(ddof=1) / math.sqrt(40)
        assert abs(means.mean() - expected) < student.isf(0.5e-6 / len(cells), 39) * error
    best = max(partitions, key=oracle.Scores(model, X, ALPHA))
    assert oracle.partition_of(range(N), gibbs.labels_) == best


def test_the_tests_above_can_fail():
    """A chain that proposes from the surrogate and accepts everything has another distribution."""
    X, _, surrogate = CHAINS["Gaussian by Gaussian"]
    partitions, probability = posterior("Gaussian by Gaussian")
    wrong = pt.Gibbs(surrogate, ALPHA, max_sweeps=4000, keep_labels=True, random_state=5).fit(X)
    counts = Counter(oracle.partition_of(range(N), row) for row in wrong.history_.labels)
    assert sum(abs(counts[p] / 4001 - q) for p, q in zip(partitions, probability, strict=True)) > 0.2


# ---------------------------------------------------------------------- one chain, however it is run


@pytest.mark.parametrize("surrogate", [None, (0.5, 0.9)], ids=["exact", "Metropolis"])
def test_compiled_and_general_chains_agree(surrogate):
    """The same random numbers lead through the same partitions."""
    X = np.random.default_rng(1).integers(0, 2, (40, 6)).astype(float)
    histories = []
    for kind, proposing in [
        (pt.Bernoulli, pt.Bernoulli),
        (oracle.Coins, oracle.Coins),
        (pt.Bernoulli, oracle.Coins),
        (oracle.Coins, pt.Bernoulli),
    ]:
        by = None if surrogate is None else proposing(*surrogate)
        gibbs = pt.Gibbs(
            kind(0.3, 0.4), 2.0, surrogate=by, max_sweeps=30, keep_labels=True, random_state=1
        ).fit(X)
        histories.append(gibbs.history_)
    for history in histories[1:]:
        np.testing.assert_array_equal(history.labels, histories[0].labels)
        np.testing.assert_allclose(history.score, histories[0].score, rtol=1e-10)


@pytest.mark.parametrize("kind", [pt.Bernoulli, oracle.Coins])
def test_a_surrogate_that_is_the_model_is_always_accepted(kind):
    X = np.random.default_rng(2).integers(0, 2, (30, 4)).astype(float)
    runs = [
        pt.Gibbs(kind(0.3, 0.4), surrogate=by, max_sweeps=20, keep_labels=True, random_state=4).fit(X)
        for by in (None, kind(0.3, 0.4))
    ]
    np.testing.assert_array_equal(runs[0].history_.labels, runs[1].history_.labels)


class Counting(oracle.Poisson):
    """Counts the clusters it has scored."""

    scored = 0

    def log_marginal(self, totals, sizes):
        Counting.scored += len(sizes)
        return super().log_marginal(totals, sizes)


def test_with_a_surrogate_the_model_scores_two_clusters_an_observation():
    X = np.random.default_rng(0).poisson(RNG.choice([1.0, 20.0, 80.0], (50, 1))).astype(float)
    scored = []
    for sweeps in (0, 20):
        Counting.scored = 0
        pt.Gibbs(
            Counting(1.0, 0.1),
            surrogate=pt.Gaussian(rate=5.0, precision=1e-3),
            max_sweeps=sweeps,
            random_state=0,
        ).fit(X)
        scored.append(Counting.scored)
    clusters = 50  # scored at the end of each sweep, at most
    assert 0 < scored[1] - scored[0] <= 20 * (3 * len(X) + clusters)


# ---------------------------------------------------------------------- results


@pytest.mark.parametrize("model", [MODEL, oracle.Coins(0.3, 0.4)], ids=["compiled", "user"])
def test_results_fit_together(model):
    X = (POINTS > 2.5).astype(float) if isinstance(model, oracle.Coins) else POINTS
    gibbs = pt.Gibbs(model, ALPHA, max_sweeps=40, keep_labels=True, random_state=0).fit(X)
    history, scores = gibbs.history_, oracle.Scores(model, X, ALPHA)
    assert len(history.time) == len(history.score) == len(history.n_clusters) == len(history.labels) == 41
    assert (np.diff(history.time) >= 0).all()
    assert (np.diff(history.best_score) >= 0).all()
    assert history.best_score[-1] == gibbs.log_density() == history.score.max()
    for score, count, labels in zip(history.score, history.n_clusters, history.labels, strict=True):
        assert score == pytest.approx(scores(oracle.partition_of(range(len(X)), labels)), rel=1e-9)
        assert count == labels.max() + 1
        _, first = np.unique(labels, return_index=True)
        assert (np.diff(first) > 0).all()
    assert (history.score[history.leader] == history.best_score).all()
    np.testing.assert_array_equal(history.labels[history.leader[-1]], gibbs.labels_)
    np.testing.assert_array_equal(gibbs.fit_predict(X), gibbs.labels_)
    assert pt.Gibbs(model, ALPHA, max_sweeps=1).fit(X).history_.labels is None


def test_the_seed_decides():
    runs = [
        pt.Gibbs(MODEL, 5.0, max_sweeps=3, keep_labels=True, random_state=s).fit(POINTS).history_.labels
        for s in (0, 0, 1)
    ]
    assert (runs[0] == runs[1]).all()
    assert (runs[0] != runs[2]).any()


@pytest.mark.parametrize("init", [np.arange(24) % 3, ["b", "a", "c"] * 8, np.zeros(24)])
def test_any_labels_will_do_to_start_from(init):
    gibbs = pt.Gibbs(MODEL, ALPHA, init=init, max_sweeps=0, keep_labels=True).fit(POINTS)
    expected = np.unique(init, return_inverse=True)[1]
    partition = oracle.partition_of(range(24), expected)
    assert oracle.partition_of(range(24), gibbs.labels_) == partition
    assert gibbs.log_density() == pytest.approx(oracle.Scores(MODEL, POINTS, ALPHA)(partition))
    better = pt.Gibbs(MODEL, ALPHA, init=init, max_sweeps=20, random_state=0).fit(POINTS)
    assert better.log_density() > gibbs.log_density()


def test_singletons_to_start_from():
    gibbs = pt.Gibbs(MODEL, ALPHA, max_sweeps=0).fit(POINTS)
    np.testing.assert_array_equal(gibbs.labels_, np.arange(24))


def test_stops_after_sweeps_without_improvement():
    gibbs = pt.Gibbs(MODEL, 0.1, max_sweeps=10_000, patience=30, random_state=0).fit(POINTS)
    best = int(np.argmax(gibbs.history_.score))
    assert len(gibbs.history_.score) == best + 31


def test_the_history_of_a_run_that_was_out_of_time_says_so(monkeypatch):
    """The clock goes on between noting a moment and asking whether it was the last: both must mean the same one."""
    clock = itertools.count()
    monkeypatch.setattr("partita.offline.base.perf_counter", lambda: next(clock))
    for max_time in (2, 3, 4, 5):
        times = pt.Gibbs(MODEL, 1.0, max_sweeps=100, max_time=max_time).fit(POINTS).history_.time
        assert times[-1] >= max_time > times[-2]


def test_stops_when_time_is_up():
    gibbs = pt.Gibbs(MODEL, 1.0, max_sweeps=10**9, max_time=0.2).fit(POINTS)
    assert gibbs.history_.time[-2] < 0.2 < gibbs.history_.time[-1] + 1e-3
    assert len(gibbs.history_.time) > 20


@pytest.mark.parametrize("kind", [pt.Gibbs, pt.Agglomerative])
def test_progress_is_shown_on_request(kind, capsys):
    quiet = kind(MODEL, random_state=0).fit(POINTS)
    assert capsys.readouterr().out == ""
    loud = kind(MODEL, random_state=0).fit(POINTS, progress=True)
    assert capsys.readouterr().out != ""
    np.testing.assert_array_equal(loud.labels_, quiet.labels_)


# ---------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": 0.0}, 'alpha must be a positive number or "auto", got 0.0'),
        ({"alpha": "best"}, "alpha must be a positive number"),
        ({"max_sweeps": -1}, "max_sweeps must be a whole number"),
        ({"max_sweeps": 1.5}, "max_sweeps must be a whole number"),
        ({"patience": 0}, "patience must be a whole number of at least 1"),
        ({"max_time": 0.0}, "max_time must be a positive number of seconds"),
        ({"max_time": "long"}, "max_time must be a positive number of seconds"),
        ({"init": [0, 1]}, r"init has 2 labels, but X has 24 rows"),
        ({"model": pt.Gaussian(shape=-1.0)}, "shape"),
        ({"surrogate": pt.Gaussian(rate=[1.0, 2.0, 3.0])}, "rate has shape"),
        ({"surrogate": pt.Bernoulli()}, "row 0, column 0: .* is neither 0 nor 1"),
    ],
)
def test_bad_parameters_are_named_and_change_nothing(parameters, message):
    gibbs = pt.Gibbs(MODEL, max_sweeps=3, random_state=0).fit(POINTS).set_params(**parameters)
    before = state_of(gibbs)
    with pytest.raises(ValueError, match=message):
        gibbs.fit(POINTS)
    assert state_of(gibbs) == before


@pytest.mark.parametrize("name", ["model", "surrogate"])
def test_what_is_no_model_is_refused(name):
    with pytest.raises(TypeError, match=f"{name} must be a partita model, got str"):
        pt.Gibbs(**{name: "Gaussian"}).fit(POINTS)


@pytest.mark.parametrize(
    ("value", "message"),
    [(np.nan, "row 4, column 1 is NaN"), (np.inf, "row 4, column 1 is inf"), (1e300, "row 4: its density")],
)
def test_bad_rows_are_named_and_change_nothing(value, message):
    gibbs = pt.Gibbs(MODEL, max_sweeps=3, random_state=0).fit(POINTS)
    before, X = state_of(gibbs), POINTS.copy()
    X[4, 1] = value
    with pytest.raises(ValueError, match=message):
        gibbs.fit(X)
    assert state_of(gibbs) == before


def test_what_is_not_fitted_says_so():
    with pytest.raises(NotFittedError, match="Gibbs is not fitted yet"):
        pt.Gibbs().log_density()


def test_impossible_clusters_are_never_entered():
    gibbs = pt.Gibbs(Limited(), max_sweeps=500, keep_labels=True, random_state=0).fit(LIMITED)
    for labels in gibbs.history_.labels:
        assert all(LIMITED[labels == k].sum() <= 100 for k in range(labels.max() + 1))
    assert np.isfinite(gibbs.history_.score).all()
    by = pt.Gibbs(oracle.Poisson(), surrogate=Limited(), max_sweeps=50, random_state=0).fit(LIMITED)
    assert np.isfinite(by.history_.score).all()


def test_impossible_rows_and_starts_are_named():
    with pytest.raises(ValueError, match="row 2: impossible under the model"):
        pt.Gibbs(Limited(), max_sweeps=1).fit([[1.0], [2.0], [101.0]])
    with pytest.raises(ValueError, match="row 0: its cluster in init is impossible"):
        pt.Gibbs(Limited(), max_sweeps=1, init=np.zeros(5)).fit(LIMITED)


@pytest.mark.parametrize(
    ("value", "error"), [(math.nan, ValueError), (math.inf, ValueError), (None, KeyboardInterrupt)]
)
def test_a_failure_on_the_way_changes_nothing(value, error):
    gibbs = pt.Gibbs(oracle.Poisson(), max_sweeps=5, random_state=0).fit(LIMITED)
    gibbs.set_params(model=Limited(value), max_sweeps=500)
    before = state_of(gibbs)
    with pytest.raises(error):
        gibbs.fit(LIMITED)
    assert state_of(gibbs) == before


# ---------------------------------------------------------------------- the paper's data


@needs_data
def test_the_known_score():
    """About −1428 (2) over many runs: one within four standard deviations, not above the best known."""
    X = table()
    gibbs = pt.Gibbs(model(), PAPER_ALPHA, max_sweeps=300, random_state=0).fit(X[:, :2])
    assert -1437 < gibbs.log_density() < -1421.06
    assert pt.bcubed(X[:, 2], gibbs.labels_).f1 > 0.85


def test_the_concentration_is_learnt():
    X, _ = pt.datasets.gaussian_mixture(n_points=200, random_state=0)
    model = pt.Gaussian(shape=2.0, rate=0.5, mean=0.0, precision=2e-4)
    gibbs = pt.Gibbs(model, "auto", max_sweeps=30, random_state=0).fit(X)
    again = pt.Gibbs(model, gibbs.alpha_, max_sweeps=30, random_state=0).fit(X)
    k = gibbs.labels_.max() + 1
    assert abs(np.log(gibbs.alpha_ / alpha_for(float(k), len(X)))) < 0.5  # it suits the clusters it found
    assert gibbs.log_density() == pytest.approx(again.log_density(), abs=20.0)


def test_the_concentration_is_no_matter_of_chance():
    """Where clusters overlap their number moves from sweep to sweep: the last draw alone gave 0.4 to 5.6."""
    rng = np.random.default_rng(0)
    X = rng.normal(0.0, 3.0, (80, 2)) + 5.0 * rng.integers(3, size=(80, 1))
    model = pt.Gaussian(shape=8.6, rate=80.0, mean=3.0, precision=0.6)
    found = [pt.Gibbs(model, "auto", max_sweeps=100, random_state=seed).fit(X).alpha_ for seed in range(8)]
    assert max(found) < 3.0 * min(found)


def test_learning_the_concentration_leaves_time_to_sample(monkeypatch):
    clock = itertools.count()  # each look at it takes a second
    monkeypatch.setattr("partita.offline.base.perf_counter", lambda: float(next(clock)))
    history = pt.Gibbs(MODEL, "auto", max_sweeps=10**6, max_time=40.0, random_state=0).fit(POINTS).history_
    assert 20.0 <= history.time[0] <= 23.0
    assert len(history.time) > 15
