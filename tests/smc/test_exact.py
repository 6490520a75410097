"""With room for every partition the posterior is exact: each answer against enumeration.

Step n has as many putative particles as there are partitions of n observations, so with m = Bell(n) all of
them are retained. Every two observations then share a cluster in some particle, so there is one subproblem,
nothing is dropped and nothing split: exactness holds for any data, however far apart.
"""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import chi2

import partita as pt
from tests.helpers import oracle
from tests.helpers.effort import examples

KINDS = [pt.Gaussian, pt.MultivariateGaussian, pt.Categorical, pt.Bernoulli, oracle.Poisson]
SAMPLERS = [pt.SplitSMC, pt.SMC]
GRID, PRIOR = [0.05, 0.7, 1.0, 12.0], [1.0, 2.0, 0.5, 3.0]
quick = examples(25)

every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
every_sampler = pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: sampler.__name__)


@st.composite
def problems(draw, kind, largest=6):
    """A model with random hyperparameters, data, and a concentration. Equal observations occur often."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(1, largest))
    d = 1 if kind is oracle.Poisson else draw(st.integers(1, 3))
    model = oracle.random_model(kind, rng, d)
    if kind in (pt.Gaussian, pt.MultivariateGaussian):
        X = draw(arrays(float, (n, d), elements=st.floats(-5, 5, width=32)))
        X *= draw(st.sampled_from([0.1, 1.0, 20.0]))
    elif kind is oracle.Poisson:
        X = draw(arrays(float, (n, d), elements=st.integers(0, 40).map(float)))
    elif kind is pt.Bernoulli:
        X = draw(arrays(float, (n, d), elements=st.sampled_from([0.0, 1.0])))
    else:
        X = np.column_stack(
            [draw(arrays(float, n, elements=st.integers(0, k - 1).map(float))) for k in model.n_categories]
        )
    return model, X, math.exp(draw(st.floats(-4, 4)))


def assert_exact(sampler, model, X, alpha):
    """Compare every answer with enumeration."""
    n = len(X)
    post = sampler.posterior_
    scores = oracle.Scores(model, X, alpha)
    exact = oracle.posterior(scores)
    found = oracle.factors(post)
    assert list(found) == [frozenset(range(n))]
    particles = found[frozenset(range(n))]
    assert set(particles) == set(exact)
    assert max(abs(particles[p] - exact[p]) for p in exact) < 1e-9
    i, j = np.indices((n, n))
    np.testing.assert_allclose(post.together(i, j), oracle.together(exact, n), rtol=0, atol=1e-9)
    counts = dict(zip(*map(np.ndarray.tolist, post.n_clusters()), strict=True))
    for k, probability in oracle.cluster_counts(exact).items():
        assert abs(counts.get(k, 0.0) - probability) < 1e-9
    assert abs(post.log_density() - max(map(scores, exact))) < 1e-9
    labelled = oracle.partition_of(range(n), sampler.labels_)
    assert abs(scores(labelled) - post.log_density()) < 1e-9
    expected = oracle.concentration(model, X, GRID, PRIOR)
    np.testing.assert_allclose(post.alpha(GRID, PRIOR), expected, rtol=0, atol=1e-9)


@every_sampler
@every_kind
def test_every_answer_equals_enumeration(kind, sampler):
    @quick
    @given(problems(kind))
    def check(problem):
        model, X, alpha = problem
        assert_exact(sampler(model, alpha, oracle.BELL[len(X)]).fit(X), *problem)

    check()


@every_kind
def test_seven_observations(kind):
    rng = np.random.default_rng(7)
    model = oracle.random_model(kind, rng, 1)
    X = oracle.random_data(model, rng, 7, 1)
    assert_exact(pt.SplitSMC(model, 1.5, oracle.BELL[7]).fit(X), model, X, 1.5)


@pytest.mark.parametrize("distance", [1e2, 1e4, 1e8])
def test_exact_however_far_apart(distance):
    X = np.array([[0.0], [distance], [0.3], [2 * distance], [-distance], [distance + 0.1]])
    model = pt.Gaussian(precision=1e-3)
    assert_exact(pt.SplitSMC(model, 2.0, oracle.BELL[6]).fit(X), model, X, 2.0)


@every_sampler
def test_one_particle_less_loses_the_least_probable_partition(sampler):
    """The tests above can fail: m = Bell(n) is just enough."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(5, 2))
    model = pt.Gaussian()
    exact = oracle.posterior(oracle.Scores(model, X, 1.0))
    least = min(exact, key=exact.get)
    (particles,) = oracle.factors(sampler(model, 1.0, oracle.BELL[5] - 1).fit(X).posterior_).values()
    assert set(exact) - set(particles) == {least}


@pytest.mark.parametrize("scheme", ["multinomial", "stratified", "optimal"])
def test_optimal_resampling_is_exact_with_room_and_the_others_are_not(scheme):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(5, 1))
    model = pt.Gaussian()
    sampler = pt.SplitSMC(model, 1.0, oracle.BELL[5], resampling=scheme, random_state=0).fit(X)
    if scheme == "optimal":  # Fearnhead and Clifford's scheme changes nothing while there is room
        assert_exact(sampler, model, X, 1.0)
    else:
        with pytest.raises(AssertionError):
            assert_exact(sampler, model, X, 1.0)


@every_kind
def test_sample_frequencies(kind):
    """Pearson's χ² of 20,000 draws against the enumerated posterior, partitions expected less than 20 times
    pooled. The seed is fixed; a correct sampler fails with probability 1e-6 for each kind and seed."""
    n, draws = 5, 20_000
    rng = np.random.default_rng(11)
    model = oracle.random_model(kind, rng, 1)
    X = oracle.random_data(model, rng, n, 1, spread=1.0)
    exact = oracle.posterior(oracle.Scores(model, X, 1.0))
    rows = pt.SplitSMC(model, 1.0, oracle.BELL[n]).fit(X).posterior_.sample(draws, random_state=5)
    counts = Counter(oracle.partition_of(range(n), row) for row in rows)
    assert set(counts) <= set(exact)
    common = [p for p in exact if exact[p] * draws >= 20]
    assert len(common) > 4
    observed = np.array([counts[p] for p in common], float)
    expected = np.array([exact[p] * draws for p in common])
    statistic = ((observed - expected) ** 2 / expected).sum()
    rest = draws - expected.sum()
    if rest >= 20:
        statistic += (draws - observed.sum() - rest) ** 2 / rest
    assert statistic < chi2.isf(1e-6, len(common) - (rest < 20))
