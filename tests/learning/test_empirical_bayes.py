"""Hyperparameters are recovered, evidence agrees with the chain rule, and units do not matter."""

import itertools
from functools import cache

import numpy as np
import pytest
from scipy.stats import multivariate_t
from scipy.stats import t as student
from sklearn.base import clone

from partita.learning.empirical_bayes import DOUBT, SAMPLE, cluster, fit_prior
from partita.metrics import bcubed
from partita.models.numeric.bernoulli import Bernoulli
from partita.models.numeric.categorical import Categorical
from partita.models.numeric.gaussian import Gaussian
from partita.models.numeric.multivariate import MultivariateGaussian
from partita.smc.sampler import SplitSMC
from tests.helpers.effort import effort

MODELS = [Gaussian(), MultivariateGaussian(), Categorical(), Bernoulli()]
REAL = MODELS[:2]
by_name = pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
by_real_name = pytest.mark.parametrize("model", REAL, ids=lambda model: type(model).__name__)


# Generators, and the oracle: log p(c) as a sum of predictive log-densities, one observation after the other


def draw(model, n_clusters, size, d, seed=0):
    """Clusters from the model's own prior: X and labels."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(n_clusters), size)
    if isinstance(model, Gaussian):
        variance = np.asarray(model.rate) / rng.gamma(model.shape, size=(n_clusters, d))
        centres = rng.normal(model.mean, np.sqrt(variance / model.precision))
        X = rng.normal(centres[labels], np.sqrt(variance)[labels])
    elif isinstance(model, MultivariateGaussian):
        # Σ⁻¹ ~ Wishart(ν, Λ⁻¹): the sum of ν outer products, for a whole ν
        root = np.linalg.cholesky(np.linalg.inv(model.scale))
        z = rng.normal(size=(n_clusters, int(model.freedom), d)) @ root.T
        factors = np.linalg.cholesky(np.linalg.inv(np.einsum("cki,ckj->cij", z, z)))
        noise = np.einsum("cij,cj->ci", factors, rng.normal(size=(n_clusters, d)))
        centres = model.mean + noise / np.sqrt(model.precision)
        X = centres[labels] + np.einsum("nij,nj->ni", factors[labels], rng.normal(size=(len(labels), d)))
    elif isinstance(model, Categorical):
        columns = [rng.dirichlet(c, size=n_clusters)[labels] for c in model.concentration]
        X = np.stack([(p.cumsum(axis=1) < rng.random((len(p), 1))).sum(axis=1) for p in columns], axis=1)
    else:
        X = rng.random((len(labels), d)) < rng.beta(model.a, model.b, size=(n_clusters, d))[labels]
    return X.astype(float), labels


GENERATORS = [
    Gaussian(shape=4.0, rate=np.array([2.0, 300.0]), mean=np.array([50.0, -3.0]), precision=0.02),
    MultivariateGaussian(
        freedom=9, scale=np.array([[4.0, 3.0], [3.0, 9.0]]), mean=np.ones(2), precision=0.05
    ),
    Categorical(n_categories=[3, 5], concentration=[np.array([0.5, 0.3, 0.2]), np.full(5, 0.8)]),
    Bernoulli(a=np.array([0.3, 2.0]), b=np.array([0.6, 1.0])),
]
by_generator = pytest.mark.parametrize("generator", GENERATORS, ids=lambda model: type(model).__name__)


def log_predictive(model, x, seen):
    """log p(x | seen), from textbook formulas."""
    n = len(seen)
    if isinstance(model, Categorical):
        return sum(
            np.log((c[int(x[j])] + (seen[:, j] == x[j]).sum()) / (c.sum() + n))
            for j, c in enumerate(model.concentration)
        )
    if isinstance(model, Bernoulli):
        ones = (model.a + seen.sum(axis=0)) / (model.a + model.b + n)
        return np.log(np.where(x == 1, ones, 1 - ones)).sum()
    prior = np.asarray(model.mean)
    mean = seen.mean(axis=0) if n else prior
    precision = model.precision + n
    location = (model.precision * prior + n * mean) / precision
    if isinstance(model, Gaussian):
        a = model.shape + n / 2
        squares = ((seen - mean) ** 2).sum(axis=0) + model.precision * n / precision * (mean - prior) ** 2
        b = model.rate + squares / 2
        return student.logpdf(x, 2 * a, location, np.sqrt(b * (precision + 1) / (a * precision))).sum()
    scatter = (seen - mean).T @ (seen - mean)
    scatter += model.scale + model.precision * n / precision * np.outer(mean - prior, mean - prior)
    freedom = model.freedom + n - len(x) + 1
    return multivariate_t.logpdf(x, location, scatter * (precision + 1) / (precision * freedom), freedom)


def log_evidence(model, X, labels):
    """Σ_c log p(c) by the chain rule."""
    clusters = [X[labels == c] for c in np.unique(labels)]
    return sum(log_predictive(model, x, members[:i]) for members in clusters for i, x in enumerate(members))


def learner_and_vector(model, X, labels):
    """A learner, its vector at some odd place, that place as the model has it, and the summary."""
    learner = model.learner(model, X, np.arange(len(X)))
    rng = np.random.default_rng(1)
    place, clusters = learner.starts()[1], learner.summary(labels)
    if isinstance(model, MultivariateGaussian):
        vector = place.vector + rng.normal(0.0, 0.3, size=3)
        place = place._replace(vector=vector, mean=np.full(2, 0.2), factor=np.array([[0.5, 0.0], [0.2, 0.3]]))
        clusters = learner.along_axes(clusters, place.mean, place.factor)
    else:
        vector = place = place + rng.normal(0.0, 0.3, size=len(place))
    return learner, vector, clone(model).set_params(**learner.parameters(place)), clusters


@by_generator
def test_closed_form_evidence_is_the_sum_of_predictive_densities(generator):
    X, labels = draw(generator, 12, 4, 2)
    labels[:3] = [0, 12, 13]  # unequal sizes, and singletons
    learner, vector, model, clusters = learner_and_vector(generator, X, labels)
    value, _ = learner.log_evidence(vector, clusters)
    if hasattr(learner, "units"):  # densities of standardised data
        value -= len(X) * np.log(learner.units.scale).sum()
    if hasattr(learner, "whitener"):
        value -= len(X) * np.log(np.diag(learner.whitener)).sum()
    assert value == pytest.approx(log_evidence(model, X, labels), rel=1e-5)


@by_generator
def test_gradient(generator):
    X, labels = draw(generator, 12, 4, 2)
    learner, vector, _, clusters = learner_and_vector(generator, X, labels)
    _, gradient = learner.log_evidence(vector, clusters)
    steps = 1e-5 * np.eye(len(vector))
    heights = [[learner.log_evidence(vector + s, clusters)[0] for s in (step, -step)] for step in steps]
    np.testing.assert_allclose(gradient, [(up - down) / 2e-5 for up, down in heights], rtol=1e-5, atol=1e-5)


# With labels


def test_gaussian_hyperparameters_are_recovered():
    truth = GENERATORS[0]
    fitted = fit_prior(Gaussian(), *draw(truth, 2000, 10, 2))
    assert fitted.shape == pytest.approx(truth.shape, rel=0.1)
    assert fitted.precision == pytest.approx(truth.precision, rel=0.1)
    np.testing.assert_allclose(fitted.rate, truth.rate, rtol=0.1)
    sd = np.sqrt(truth.rate / truth.shape / truth.precision)
    np.testing.assert_allclose((fitted.mean - truth.mean) / sd, 0.0, atol=0.1)


def test_multivariate_hyperparameters_are_recovered():
    truth = GENERATORS[1]
    fitted = fit_prior(MultivariateGaussian(), *draw(truth, 2000, 10, 2))
    assert fitted.freedom == pytest.approx(truth.freedom, rel=0.1)
    assert fitted.precision == pytest.approx(truth.precision, rel=0.1)
    np.testing.assert_allclose(fitted.scale, truth.scale, rtol=0.15)
    np.testing.assert_allclose(fitted.mean, truth.mean, atol=0.5)


def test_pseudo_counts_are_recovered():
    truth = GENERATORS[2]
    fitted = fit_prior(Categorical(), *draw(truth, 2000, 10, 2))
    assert fitted.n_categories == [3, 5]
    for found, true in zip(fitted.concentration, truth.concentration, strict=True):
        np.testing.assert_allclose(found, true, rtol=0.1)
    truth = GENERATORS[3]
    fitted = fit_prior(Bernoulli(), *draw(truth, 2000, 10, 2))
    np.testing.assert_allclose(fitted.a, truth.a, rtol=0.1)
    np.testing.assert_allclose(fitted.b, truth.b, rtol=0.1)


@by_generator
def test_evidence_beats_the_generator_s_own(generator):
    X, labels = draw(generator, 60, 6, 2)
    fitted = fit_prior(clone(generator), X, labels)
    assert log_evidence(fitted, X, labels) > log_evidence(generator, X, labels)


@by_generator
def test_every_start_climbs_to_the_same_height(generator):
    X, labels = draw(generator, 40, 5, 2)
    learner = generator.learner(generator, X, np.arange(len(X)))
    heights = [learner.maximise(labels, start)[1] for start in learner.starts()]
    np.testing.assert_allclose(heights, max(heights), atol=0.05)


def test_labels_of_any_kind():
    X, labels = draw(GENERATORS[0], 10, 5, 2)
    named = np.array([f"cluster {c}" for c in labels])
    assert repr(fit_prior(Gaussian(), X, named)) == repr(fit_prior(Gaussian(), X, labels))


# Without labels


def blobs(d=2, n_clusters=8, n=320, noise=0.05, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(n_clusters, size=n)
    return rng.normal(size=(n_clusters, d))[labels] + noise * rng.normal(size=(n, d)), labels


def found(model, X):
    """Clusters under a fitted model, numbered in order of first appearance."""
    orders = [np.random.default_rng(seed).permutation(len(X)) for seed in range(3)]
    _, labels = cluster(model, np.asarray(X, float), orders)
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


@by_real_name
@pytest.mark.parametrize(("d", "noise"), [(1, 0.005), (2, 0.05), (10, 0.3)])
def test_separate_blobs_are_found(model, d, noise):
    X, labels = blobs(d, noise=noise)
    assert bcubed(labels, found(fit_prior(model, X), X)).f1 > 0.95


def test_many_dimensions():
    X, labels = blobs(d=100, n=200, noise=1.0)
    fitted = fit_prior(Gaussian(), X)
    assert fitted.rate.shape == (100,)
    assert bcubed(labels, found(fitted, X)).f1 > 0.95


def test_categories_are_found():
    X, labels = draw(Categorical(concentration=[np.full(4, 0.1)] * 10), 6, 50, 10)
    assert bcubed(labels, found(fit_prior(Categorical(), X), X)).f1 > 0.95
    X, labels = draw(Bernoulli(a=0.3, b=0.3), 6, 50, 30)
    assert bcubed(labels, found(fit_prior(Bernoulli(), X), X)).f1 > 0.95


@by_name
def test_where_there_is_nothing_to_find_all_is_one_cluster(model):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)) if model in REAL else rng.integers(2, size=(300, 3))
    assert found(fit_prior(model, X), X).max() == 0


@by_real_name
def test_rounded_values_are_no_clusters(model):
    X = np.random.default_rng(0).normal(size=(400, 1)).round(1)
    assert found(fit_prior(model, X), X).max() == 0


@cache
def before_they_are_moved(kind, labelled):
    """Blobs, a model learnt from them, and what it finds."""
    X, labels = blobs(n=effort(160, 320), noise=0.2)
    fitted = fit_prior(kind(), X, labels if labelled else None)
    return X, labels, fitted, found(fitted, X)


@by_real_name
@pytest.mark.parametrize(("scale", "shift"), [(1e-6, 0.0), (1e6, 0.0), (1.0, 1e6), (-3.0, 7.0)])
@pytest.mark.parametrize("labelled", [True, False])
def test_units_and_origin_do_not_matter(model, scale, shift, labelled):
    X, labels, before, clusters = before_they_are_moved(type(model), labelled)
    moved = shift + scale * X
    after = fit_prior(model, moved, labels if labelled else None)
    np.testing.assert_array_equal(found(after, moved), clusters)
    spread = "rate" if isinstance(model, Gaussian) else "scale"
    np.testing.assert_allclose(getattr(after, spread), scale**2 * getattr(before, spread), rtol=1e-3)
    np.testing.assert_allclose(after.mean, shift + scale * before.mean, rtol=1e-3)
    assert after.precision == pytest.approx(before.precision, rel=1e-3)


SIZE = effort(60, 150)  # of a cluster


def thicket(overlap, n_clusters=15, size=SIZE, seed=0):
    """Clusters like those of the S sets: their spread is ``overlap`` of the least distance of centres."""
    rng = np.random.default_rng(seed)
    centres = np.empty((0, 2))
    while len(centres) < n_clusters:  # at random, but none too close to another
        centre = rng.uniform(0.0, 5.0, (1, 2))
        if (np.linalg.norm(centres - centre, axis=1) > 1.0).all():
            centres = np.concatenate([centres, centre])
    labels = rng.permutation(np.repeat(np.arange(n_clusters), size))
    return centres[labels] + overlap * rng.normal(size=(len(labels), 2)), centres, labels


def lattice(side=10, size=40, overlap=0.235, seed=0):
    """Clusters on a square lattice, like those of Birch 1: so many that each label costs much."""
    rng = np.random.default_rng(seed)
    centres = np.stack(np.meshgrid(np.arange(side), np.arange(side)), axis=-1).reshape(-1, 2).astype(float)
    labels = rng.permutation(np.repeat(np.arange(side**2), size))
    return centres[labels] + overlap * rng.normal(size=(len(labels), 2)), centres, labels


THICKETS = {  # how they are made, and how much worse than the best possible they may be found
    "apart": (thicket, {"overlap": 0.15}, 0.02),
    "touching": (thicket, {"overlap": 0.25}, 0.03),
    "overlapping": (thicket, {"overlap": 0.35}, 0.12),
    "lattice": (lattice, {}, 0.05),
}
CHOSEN = [(REAL[0], "touching"), (REAL[0], "overlapping"), (REAL[0], "lattice"), (REAL[1], "overlapping")]


@pytest.mark.parametrize(
    ("model", "case"),
    effort(CHOSEN, list(itertools.product(REAL, THICKETS))),
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_overlapping_clusters_are_told_apart(model, case):
    make, parameters, lost = THICKETS[case]
    X, centres, labels = make(**parameters)
    nearest = np.linalg.norm(X[:, None] - centres, axis=2).argmin(axis=1)  # nobody can tell better
    sampler = SplitSMC(fit_prior(model, X), n_particles=10, random_state=0).fit(X).refine()
    assert bcubed(labels, sampler.labels_).f1 > bcubed(labels, nearest).f1 - lost


def test_only_a_sample_is_clustered_but_all_levels_count():
    X = np.zeros((SAMPLE + 500, 2), int)
    X[::2] = 1
    X[7] = 9, 4
    fitted = fit_prior(Categorical(n_categories=[3, 8]), X)
    assert fitted.n_categories == [10, 8]
    fitted.encode(X.astype(float))


def test_same_result_every_time_and_the_given_model_is_left_alone():
    X, _ = blobs(n=100)
    model = Gaussian(shape=7.0, rate=3.0)
    first, second = fit_prior(model, X), fit_prior(model, X)
    assert repr(first.get_params()) == repr(second.get_params())
    assert (model.shape, model.rate) == (7.0, 3.0)


def test_subclasses_stay_what_they_are():
    class Special(Gaussian):
        pass

    assert type(fit_prior(Special(), blobs(n=50)[0])) is Special


# What is judged


def test_where_no_label_is_in_doubt_joint_and_prequential_are_the_evidence():
    X = np.array([[0.0], [1000.0], [0.5], [1000.2], [0.1]])
    labels = np.array([0, 1, 0, 1, 0])
    model = Gaussian(shape=3.0, rate=1.0, mean=500.0, precision=1e-12)
    height, clusters = cluster(model, X, [np.arange(5)])  # too few for α to be learnt: it is 1
    ewens = np.log([2.0, 1.0]).sum() - np.log(np.arange(1, 6)).sum()  # Π Γ(|c|) / Π (α + t)
    evidence = ewens + log_evidence(model, X, labels)
    np.testing.assert_array_equal(clusters, labels)
    log_hyperprior = -2.0 * np.log(2.0)  # of α, in the joint density only
    assert height == pytest.approx(evidence + DOUBT * log_hyperprior, abs=1e-5)


# Degenerate data

rng = np.random.default_rng(0)
DEGENERATE = {
    "one row": np.array([[3.0, 0.0]]),
    "two rows": np.array([[0.0, 1.0], [1.0, 1.0]]),
    "all equal": np.ones((40, 2)),
    "a constant column": np.column_stack([rng.integers(3, size=60), np.full(60, 1.0)]),
    "repeats": np.repeat([[0.0, 1.0], [1.0, 2.0], [2.0, 1.0]], 20, axis=0),
    "more columns than rows": rng.integers(2, size=(5, 12)),
    "equal columns": rng.integers(5, size=(50, 1)).repeat(2, axis=1),
}


@by_name
@pytest.mark.parametrize("X", DEGENERATE.values(), ids=DEGENERATE.keys())
def test_degenerate_data_give_finite_models(model, X):
    X, n = np.minimum(X, 1) if isinstance(model, Bernoulli) else X, len(X)
    for labels in (None, np.zeros(n), np.arange(n), np.arange(n) % 3):
        fitted = fit_prior(model, X, labels)
        fitted.check(X.shape[1])
        assert len(found(fitted, X)) == n


@by_real_name
def test_extreme_numbers(model):
    X, labels = blobs(n=60)
    expected = found(fit_prior(model, X), X)
    for factor in (1e-100, 1e100):
        np.testing.assert_array_equal(found(fit_prior(model, factor * X), factor * X), expected)
    with pytest.raises(ValueError, match=r"column 0 has a spread of .*; rescale it"):
        fit_prior(model, 1e-200 * X, labels)


@by_real_name
def test_outliers_do_not_hide_the_rest(model):
    X, labels = blobs(n_clusters=3, n=100, noise=0.01)
    X[0] = 1e9
    fitted = fit_prior(model, X)
    assert bcubed(labels[1:], found(fitted, X)[1:]).f1 > 0.9


# Bad input


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([1.0, 2.0], r"X must have rows and columns, its shape is \(2,\)"),
        (np.empty((0, 2)), r"its shape is \(0, 2\)"),
        ([[1.0, 2.0], [3.0, np.nan]], "row 1, column 1 is nan"),
        ([[1.0, -np.inf]], "row 0, column 1 is -inf"),
        ([[1.0, "a"], [2.0, "3"]], "row 0, column 1: .*a.* is not a number"),
    ],
)
def test_bad_data(X, message):
    with pytest.raises(ValueError, match=message):
        fit_prior(Gaussian(), X)


def test_bad_codes():
    with pytest.raises(ValueError, match="row 1, column 0: -1 is not a category code"):
        fit_prior(Categorical(), [[0], [-1]])
    with pytest.raises(ValueError, match=r"row 0, column 1: 0\.5 is not a category code"):
        fit_prior(Categorical(), [[0, 0.5], [1, 1]])
    with pytest.raises(ValueError, match="row 1, column 0: 2 is neither 0 nor 1"):
        fit_prior(Bernoulli(), [[0], [2]])


def test_bad_n_categories():
    with pytest.raises(ValueError, match=r"n_categories has shape \(3,\), but the data have 2 columns"):
        fit_prior(Categorical(n_categories=[2, 2, 2]), [[0, 1], [1, 0]])


def test_bad_labels():
    with pytest.raises(ValueError, match="3 labels, but X has 2 rows"):
        fit_prior(Gaussian(), [[1.0], [2.0]], labels=[0, 1, 2])
    with pytest.raises(ValueError, match="labels: item 0 is missing"):
        fit_prior(Gaussian(), [[1.0], [2.0]], labels=[None, 2])
