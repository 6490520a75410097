"""The prior over partitions, against enumeration and simulation."""

import math
from collections import Counter

import numpy as np
import pytest
from scipy.special import digamma
from scipy.stats import chi2

import partita as pt
from tests.helpers import oracle

ALPHAS = [0.1, 1.0, 7.0]


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("n", [1, 4, 7])
def test_probabilities_sum_to_one(alpha, n):
    prior = pt.DirichletProcess(alpha)
    total = sum(math.exp(prior.log_density(map(len, p))) for p in oracle.all_partitions(n))
    assert total == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("alpha", [1e-6, *ALPHAS, 1e4, 1e9, 1e18])
@pytest.mark.parametrize("n", [1, 6, 1000])
def test_expected_clusters(alpha, n):
    expected = sum(alpha / (alpha + i) for i in range(n))
    found = pt.DirichletProcess(alpha).expected_clusters(n)
    assert found == pytest.approx(expected, rel=1e-9)
    if alpha < 1e5:  # beyond, the difference cancels
        assert found == pytest.approx(alpha * (digamma(alpha + n) - digamma(alpha)), rel=1e-9)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_samples_follow_the_density(alpha):
    """Pearson's χ² of 20,000 partitions of four; a correct sampler fails with probability 1e-6."""
    prior, rng, draws = pt.DirichletProcess(alpha), np.random.default_rng(0), 20_000
    counts = Counter(oracle.partition_of(range(4), prior.sample(4, rng)) for _ in range(draws))
    statistic, cells = 0.0, oracle.all_partitions(4)
    for partition in cells:
        expected = draws * math.exp(prior.log_density(map(len, partition)))
        statistic += (counts[partition] - expected) ** 2 / expected
    assert statistic < chi2.isf(1e-6, len(cells) - 1)


def test_labels_of_a_sample_appear_in_order():
    labels = pt.DirichletProcess(5.0).sample(300, random_state=1)
    _, first = np.unique(labels, return_index=True)
    assert (np.diff(first) > 0).all()
    assert (labels == pt.DirichletProcess(5.0).sample(300, random_state=1)).all()


def test_weights_are_shares_of_a_stick():
    """The mean of the first of many sticks is 1/(1 + α), within five standard errors."""
    prior, rng = pt.DirichletProcess(3.0), np.random.default_rng(2)
    first = np.array([prior.weights(200, rng)[0] for _ in range(4000)])
    assert prior.weights(50, rng).sum() == pytest.approx(1.0)
    assert abs(first.mean() - 0.25) < 5 * first.std() / math.sqrt(4000)


@pytest.mark.parametrize("alpha", [0.0, -1.0, math.nan, math.inf])
def test_the_concentration_is_positive(alpha):
    with pytest.raises(ValueError, match="alpha must be a positive number"):
        pt.DirichletProcess(alpha)
