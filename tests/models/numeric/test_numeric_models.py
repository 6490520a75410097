"""One conformance suite for every model, and each model's closed form against scipy.stats."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad

import partita as pt
from partita.smc.engine import Engine
from partita.smc.moves.reobserve import take_out
from partita.smc.state.access import arrays_of, used_clusters
from partita.smc.state.keys import EVERYTHING
from partita.smc.state.state import Settings, grown
from partita.smc.steps.candidates import candidates_of_row
from tests.helpers import oracle
from tests.helpers.effort import examples

KINDS = [pt.Gaussian, pt.MultivariateGaussian, pt.Categorical, pt.Bernoulli, oracle.Poisson]
REAL = [pt.Gaussian, pt.MultivariateGaussian]
seeds = st.integers(0, 2**32 - 1)
quick = examples(15)
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
every_real_kind = pytest.mark.parametrize("kind", REAL, ids=lambda kind: kind.__name__)


def draw_problem(kind, seed, n, d=None, spread=3.0):
    """A model with random hyperparameters, and data."""
    rng = np.random.default_rng(seed)
    d = 1 if kind is oracle.Poisson else d or int(rng.integers(1, 4))
    model = oracle.random_model(kind, rng, d)
    return model, oracle.random_data(model, rng, n, d, spread), rng


class LibraryMarginal:
    """log p(c) as the library computes it, cluster by cluster, of rows of one data set."""

    def __init__(self, model, X):
        encoded = model.encode(np.asarray(X, float))
        model.check(X.shape[1])
        self.engine = Engine(model, Settings(1), X.shape[1], encoded.shape[1], 0.0, 0)
        self.engine.store(encoded)

    def __call__(self, members):
        members = np.asarray(members, np.int64)
        self.engine.fill_all(np.array([1]), [np.asarray(members, np.int64)])
        return float(arrays_of(self.engine.state)[1]["score"][1]) - math.lgamma(len(members))


# ---------------------------------------------------------------------- every model


@every_kind
def test_a_row_is_encoded_the_same_in_any_batch(kind):
    """To the last bit, or the result would depend on how the data were batched."""
    model, X, _ = draw_problem(kind, 8, 40, 1 if kind is oracle.Poisson else 3)
    one_by_one = np.concatenate([model.encode(X[k : k + 1]) for k in range(len(X))])
    assert np.array_equal(model.encode(X), one_by_one)


@every_kind
def test_removing_finds_other_particles(kind):
    """It does: the test above would hold if every point came back to where it was."""
    changes = 0
    for seed in range(10):
        model, X, rng = draw_problem(kind, seed, 20)
        sampler = pt.SplitSMC(model, 1.3, 3).fit(X)
        before = {p for particles in oracle.factors(sampler.posterior_).values() for p in particles}
        for x in rng.permutation(20):
            sampler._engine.observe_again(int(x))
        sampler._engine._posterior = None
        after = {p for particles in oracle.factors(sampler.posterior_).values() for p in particles}
        changes += after != before
    assert changes > 0


@every_real_kind
def test_an_outlier_that_leaves_takes_no_digits_along(kind):
    """A point 1e6 away, which three others let in, leaves when seen again, after twenty more."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, 1))
    X[3] += 1e6
    model, alpha = kind(precision=1e-12), math.exp(-200.0)
    sampler = pt.SplitSMC(model, alpha, 1).fit(X)
    scores = oracle.Scores(model, X, alpha)
    assert len(oracle.check_invariants(sampler, scores, 1)) == 1
    sampler._engine.observe_again(3)
    sampler._engine._posterior = None
    assert frozenset({3}) in oracle.check_invariants(sampler, scores, 1)
    assert sampler.posterior_.log_density() == pytest.approx(
        scores([frozenset({3}), frozenset(range(24)) - {3}]), abs=1e-8
    )


@every_real_kind
def test_outliers_that_leave_one_by_one_lose_no_digits(kind):
    """Each is three times closer in than the one before, so that each takes nearly all the scatter along.

    No single step cancels much more than a digit; all of them together cancel every digit there is.
    """
    rng = np.random.default_rng(0)
    core, far = 8, 25
    X = np.concatenate([rng.normal(size=(core, 1)), 2.9 ** np.arange(1, far + 1)[:, None]])
    X[core:] *= rng.choice([-1, 1], (far, 1)) * rng.uniform(0.95, 1.05, (far, 1))
    model = kind(precision=1e-9)
    sampler = pt.SMC(model, 1e-300, 1).fit(X)
    assert sampler.labels_.max() == 0  # one cluster of all
    engine = sampler._engine
    for x in range(core + far - 1, core - 1, -1):
        while not take_out(engine.state, engine.family, x):
            engine.state = grown(engine.state)
        candidates_of_row(engine.state, *EVERYTHING, 0)
        cluster = used_clusters(engine.state)[1]  # after the empty one
        found = arrays_of(engine.state)[1]["score"][cluster] - math.lgamma(x)
        assert found == pytest.approx(oracle.density(model)(X[:x]), abs=1e-6)


@every_kind
def test_data_of_any_width(kind):
    for d in (1, 2, 7) if kind is not oracle.Poisson else (1,):
        model, X, _ = draw_problem(kind, 5, 6, d)
        scores = oracle.Scores(model, X, 1.3)
        oracle.check_invariants(pt.SplitSMC(model, 1.3, 10).fit(X), scores, 10)


# ---------------------------------------------------------------------- predictive densities


def predictive(model, X, points):
    """p(x | all rows of X as one cluster) for many x."""
    marginal = LibraryMarginal(model, np.concatenate([X, points]))
    n = len(X)
    base = marginal(range(n)) if n else 0.0
    return np.exp([marginal([*range(n), n + k]) - base for k in range(len(points))])


@every_real_kind
@pytest.mark.parametrize("n", [0, 1, 2, 9])
def test_predictive_density_integrates_to_one(kind, n):
    model, X, _ = draw_problem(kind, n, n + 1, 1)
    X = X[:n]
    centre, scale = (X.mean(), X.std() + 1.0) if n else (model.mean[0], 2.0)

    def integrand(u):  # x = centre + scale·tan(u) covers the whole line
        return predictive(model, X, np.array([[centre + scale * math.tan(u)]]))[0] * scale / math.cos(u) ** 2

    limit = math.pi / 2 - 1e-9
    total, _ = quad(integrand, -limit, limit, epsabs=1e-8, epsrel=1e-8, limit=200)
    assert total == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("kind", [pt.Categorical, pt.Bernoulli], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("n", [0, 1, 8])
def test_predictive_probabilities_sum_to_one(kind, n):
    model, X, _ = draw_problem(kind, n + 20, n + 1, 3)
    levels = model.n_categories if kind is pt.Categorical else [2, 2, 2]
    points = np.array(list(itertools.product(*map(range, levels))), float)
    assert predictive(model, X[:n], points).sum() == pytest.approx(1.0, abs=1e-12)


def test_gaussian_predictive_is_student_t():
    """Murphy (2007), eq. 110: t with 2a degrees of freedom, each column of its own."""
    model, X, rng = draw_problem(pt.Gaussian, 3, 9, 2)
    points = rng.normal(scale=5.0, size=(20, 2))
    n, centre = len(X), X.mean(axis=0)
    a, k = model.shape + n / 2, model.precision + n
    b = model.rate + 0.5 * ((X - centre) ** 2).sum(axis=0)
    b = b + 0.5 * model.precision * n / k * (centre - model.mean) ** 2
    location = (model.precision * model.mean + n * centre) / k
    scale = np.sqrt(b * (k + 1) / (a * k))
    expected = stats.t.pdf(points, 2 * a, location, scale).prod(axis=1)
    np.testing.assert_allclose(predictive(model, X, points), expected, rtol=1e-10)


def test_multivariate_predictive_is_multivariate_t():
    """Murphy (2007), eq. 232."""
    model, X, rng = draw_problem(pt.MultivariateGaussian, 4, 9, 3)
    points = rng.normal(scale=5.0, size=(20, 3))
    n, d = X.shape
    centre = X.mean(axis=0)
    k, freedom = model.precision + n, model.freedom + n
    location = (model.precision * model.mean + n * centre) / k
    away = centre - model.mean
    scale = model.scale + (X - centre).T @ (X - centre) + model.precision * n / k * np.outer(away, away)
    shape = scale * (k + 1) / (k * (freedom - d + 1))
    expected = stats.multivariate_t.pdf(points, location, shape, freedom - d + 1)
    np.testing.assert_allclose(predictive(model, X, points), expected, rtol=1e-10)


def test_one_column_multivariate_is_the_univariate_model():
    """An inverse-Wishart with ν and s in one dimension is an inverse-gamma with ν/2 and s/2."""
    X = np.random.default_rng(2).normal(size=(6, 1))
    one = pt.Gaussian(shape=1.7, rate=0.6, mean=0.3, precision=0.2)
    other = pt.MultivariateGaussian(freedom=3.4, scale=1.2, mean=0.3, precision=0.2)
    assert LibraryMarginal(one, X)(range(6)) == pytest.approx(LibraryMarginal(other, X)(range(6)), abs=1e-10)


def test_bernoulli_is_categorical_with_two_levels():
    X = np.random.default_rng(2).integers(0, 2, (7, 3)).astype(float)
    one = pt.Bernoulli(a=0.7, b=0.2)
    other = pt.Categorical(2, [np.array([0.2, 0.7])] * 3)
    assert LibraryMarginal(one, X)(range(7)) == pytest.approx(LibraryMarginal(other, X)(range(7)), abs=1e-12)


# ---------------------------------------------------------------------- units and offsets


def moved(model, shift, factor):
    """The model for data multiplied by ``factor`` and then shifted."""
    mean = np.asarray(model.mean) * factor + shift
    if isinstance(model, pt.Gaussian):
        return pt.Gaussian(model.shape, np.asarray(model.rate) * factor**2, mean, model.precision)
    scale = np.asarray(model.scale) * factor**2
    return pt.MultivariateGaussian(model.freedom, scale, mean, model.precision)


def answers(model, X, m):
    """Co-clustering matrix, labels and number of clusters."""
    sampler = pt.SplitSMC(model, 1.3, m).fit(X)
    i, j = np.indices((len(X), len(X)))
    return sampler.posterior_.together(i, j), sampler.labels_, sampler.posterior_.log_density()


@every_real_kind
@pytest.mark.parametrize(
    ("shift", "factor"),
    [(1e6, 1.0), (-1e6, 1.0), *((0.0, 10.0**e) for e in (-150, -100, -30, 30, 100, 150)), (1e6, 1e3)],
)
def test_neither_offset_nor_unit_changes_the_answer(kind, shift, factor):
    for seed in range(5):
        for n, m in ((6, oracle.BELL[6]), (30, 10)):
            model, X, _ = draw_problem(kind, seed, n, 2)
            if isinstance(model, pt.Gaussian) or factor in (1.0, 1e3):
                model = kind(mean=1.0)
            expected, labels, density = answers(model, X, m)
            found, moved_labels, moved_density = answers(moved(model, shift, factor), X * factor + shift, m)
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
            assert (moved_labels == labels).all()
            assert moved_density + X.size * math.log(factor) == pytest.approx(density, rel=1e-6)


# ---------------------------------------------------------------------- bad hyperparameters

BAD = [
    (pt.Gaussian(shape=0.0), "shape"),
    (pt.Gaussian(shape=-1.0), "shape"),
    (pt.Gaussian(shape=math.nan), "shape"),
    (pt.Gaussian(rate=0.0), "rate"),
    (pt.Gaussian(rate=[1.0, -1.0]), "rate"),
    (pt.Gaussian(rate=[1.0, 1.0, 1.0]), "rate"),
    (pt.Gaussian(mean=math.inf), "mean"),
    (pt.Gaussian(mean=[0.0]), "mean"),
    (pt.Gaussian(precision=0.0), "precision"),
    (pt.Gaussian(precision=math.inf), "precision"),
    (pt.MultivariateGaussian(freedom=1.0), "freedom"),
    (pt.MultivariateGaussian(freedom=math.nan), "freedom"),
    (pt.MultivariateGaussian(scale=-1.0), "scale"),
    (pt.MultivariateGaussian(scale=[[1.0, 2.0], [2.0, 1.0]]), "scale"),
    (pt.MultivariateGaussian(scale=[[1.0, 0.5], [0.0, 1.0]]), "scale"),
    (pt.MultivariateGaussian(scale=np.eye(3)), "scale"),
    (pt.MultivariateGaussian(scale=math.nan), "scale"),
    (pt.MultivariateGaussian(mean=[0.0, math.nan]), "mean"),
    (pt.MultivariateGaussian(precision=-1.0), "precision"),
    (pt.Categorical(), "n_categories"),
    (pt.Categorical(0), "n_categories"),
    (pt.Categorical(2.5), "n_categories"),
    (pt.Categorical([2, 2, 2]), "n_categories"),
    (pt.Categorical(2, 0.0), "concentration"),
    (pt.Categorical(2, [[1.0, 1.0], [1.0, -1.0]]), "concentration"),
    (pt.Categorical(2, [[1.0, 1.0], [1.0, 1.0, 1.0]]), "concentration"),
    (pt.Bernoulli(a=0.0), "a"),
    (pt.Bernoulli(a=[1.0]), "a"),
    (pt.Bernoulli(b=[1.0, math.nan]), "b"),
    (pt.Bernoulli(b=-2.0), "b"),
]


@pytest.mark.parametrize(("model", "name"), BAD, ids=lambda value: repr(value).replace("\n", ""))
def test_bad_hyperparameters_are_named(model, name):
    X = np.array([[0.0, 1.0], [1.0, 1.0], [0.0, 0.0]])
    with pytest.raises(ValueError, match=rf"\b{name}\b"):
        pt.SplitSMC(model, 1.0, 4).fit(X)


@pytest.mark.parametrize(
    ("model", "bad"),
    [(pt.Categorical(2), 2.0), (pt.Categorical(2), 0.5), (pt.Categorical(2), -1.0), (pt.Bernoulli(), 2.0)],
)
def test_bad_data_are_located(model, bad):
    X = np.array([[0.0, 1.0], [1.0, 1.0], [0.0, bad]])
    sampler = pt.SplitSMC(model, 1.0, 4)
    with pytest.raises(ValueError, match="row 2, column 1"):
        sampler.fit(X)


# ---------------------------------------------------------------------- a user's own model


class Forgetful(pt.Model):
    """A model that lacks its methods."""


class Fractious(oracle.Poisson):
    """A model with a limit: clusters whose counts add up to more than 100 have the given log-likelihood."""

    def __init__(self, value=-math.inf):
        super().__init__()
        self.value = value

    def log_marginal(self, totals, sizes):
        return np.where(totals[:, 0] > 100, self.value, super().log_marginal(totals, sizes))


def test_a_model_without_methods_says_what_it_needs():
    with pytest.raises(TypeError, match="Forgetful must define statistics"):
        pt.SplitSMC(Forgetful(), 1.0).fit([[1.0]])


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_score_that_is_not_finite_is_refused(value):
    X = np.array([[60.0], [1.0], [70.0]])
    sampler = pt.SplitSMC(Fractious(value), 1.0, 10).fit(X[:2])
    before = oracle.factors(sampler.posterior_)
    with pytest.raises(ValueError, match="log_marginal returned"):
        sampler.partial_fit(X[2:])
    oracle.assert_same_factors(oracle.factors(sampler.posterior_), before)


def fractious_posterior(X, alpha):
    """The exact posterior under :class:`Fractious`, of the partitions that it does not rule out."""
    scores = oracle.Scores(oracle.Poisson(), X, alpha)
    possible = [p for p in oracle.all_partitions(len(X)) if all(X[sorted(c)].sum() <= 100 for c in p)]
    return oracle.normalised({p: scores(p) for p in possible})


IMPOSSIBLE = {  # in the first some partitions of all points are ruled out, in the others all points but two
    "some": [60.0, 1.0, 70.0, 2.0, 80.0, 3.0],
    "at first": [60.0, 70.0, 1.0, 2.0],
    "at last": [60.0, 1.0, 99.5],
}


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_impossible_clusters_have_no_weight(case):
    """log p(c) = −∞ rules out the partitions with such a cluster, and changes nothing for the others."""
    X = np.array(IMPOSSIBLE[case])[:, None]
    exact = fractious_posterior(X, 1.0)
    assert len(exact) < oracle.BELL[len(X)]
    sampler = pt.SMC(Fractious(), 1.0, oracle.BELL[len(X)]).fit(X)
    found = oracle.product(oracle.factors(sampler.posterior_))
    assert len(sampler.posterior_.subproblems) == 1
    assert found == pytest.approx(exact, abs=1e-9)


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_impossible_clusters_may_divide_subproblems(case):
    X = np.array(IMPOSSIBLE[case])[:, None]
    exact = fractious_posterior(X, 1.0)
    sampler = pt.SplitSMC(Fractious(), 1.0, oracle.BELL[len(X)], random_state=0).fit(X)
    for _ in range(2):
        found = oracle.product(oracle.factors(sampler.posterior_))
        assert set(found) <= set(exact)
        assert max(found, key=found.get) == max(exact, key=exact.get)
        assert math.isfinite(sampler.posterior_.log_density())
        sampler.refine()
