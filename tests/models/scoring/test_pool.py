"""A black box in which the surrogate has a say: log p(c) = score/temperature + weight·log q(c) + offset."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import gammaln

import partita as pt

GAUSSIAN = pt.Gaussian(shape=2.0, rate=1.0, precision=0.1)


def nothing(clusters):
    return np.zeros(len(clusters))


def spread(clusters):
    return np.array([-1.5 * len(c) - 2.0 * len(c) * np.var(c) for c in clusters])


def log_normal_gamma(points: list) -> float:
    """log p(c) of one column under GAUSSIAN, by the closed form of a normal-gamma prior."""
    x = np.asarray(points, float).ravel()
    n, a, b, k = len(x), 2.0, 1.0, 0.1
    after = b + 0.5 * ((x - x.mean()) ** 2).sum() + 0.5 * k * n * x.mean() ** 2 / (k + n)
    gammas = gammaln(a + n / 2) - gammaln(a) + a * np.log(b) - (a + n / 2) * np.log(after)
    return float(gammas + 0.5 * np.log(k / (k + n)) - 0.5 * n * np.log(2.0 * np.pi))


def test_alone_it_is_the_surrogate():
    X = np.random.default_rng(0).normal(size=(30, 1)) * [[1.0]] + np.repeat([[0.0], [6.0], [9.0]], 10, 0)
    for kind in (pt.SplitSMC, pt.SMC):
        box = kind(pt.BlackBox(nothing, GAUSSIAN, surrogate_weight=1.0), 1.0, 20, random_state=0).fit(X)
        own = kind(GAUSSIAN, 1.0, 20, random_state=0).fit(X)
        assert box.labels_.tolist() == own.labels_.tolist()
        assert box.posterior_.log_density() == pytest.approx(own.posterior_.log_density(), abs=1e-8)


@pytest.mark.parametrize("lookahead", [1, 8])
def test_both_have_their_say(lookahead):
    X = np.random.default_rng(1).normal(scale=3.0, size=(25, 1))

    def together(clusters):
        return spread(clusters) / 2.0 + 0.7 * np.array([log_normal_gamma(c) for c in clusters]) + 0.3

    options = {"temperature": 2.0, "offset": 0.3, "surrogate_weight": 0.7, "lookahead": lookahead}
    found = pt.SplitSMC(pt.BlackBox(spread, GAUSSIAN, **options), 1.0, 10, random_state=0).fit(X)
    naive = pt.SplitSMC(pt.BlackBox(together, GAUSSIAN), 1.0, 10, random_state=0).fit(X)
    assert found.labels_.tolist() == naive.labels_.tolist()
    assert found.posterior_.log_density() == pytest.approx(naive.posterior_.log_density(), abs=1e-8)
    assert found.refine(1).posterior_.log_density() == pytest.approx(
        naive.refine(1).posterior_.log_density(), abs=1e-8
    )


class Second(pt.Model):
    """Normal points in the second column, with unit variance and a normal prior of variance 9 on the mean."""

    def encode(self, X):
        return np.asarray(X, float)[:, 1:]

    def encoded_width(self, X):
        return 1

    def log_marginal(self, totals, sizes):
        return 4.5 * totals[:, 0] ** 2 / (1.0 + 9.0 * sizes) - 0.5 * np.log1p(9.0 * sizes)


def test_calibration_finds_how_much_each_knows():
    """The score sees the first column and is twice too sure, the surrogate the second one and is right."""
    rng = np.random.default_rng(0)
    label = pt.DirichletProcess(15.0).sample(600, random_state=0)
    X = 3.0 * rng.normal(size=(600, 2))[label] + rng.normal(size=(600, 2))

    def score(clusters):
        sums = np.array([(len(c), np.sum(np.asarray(c)[:, 0])) for c in clusters])
        n, total = sums.T
        return 9.0 * total**2 / (1.0 + 9.0 * n) - np.log1p(9.0 * n)

    model = pt.BlackBox(score, Second()).fit_prior(X, label, pool=True)
    assert 1.6 < model.temperature < 2.5
    assert 0.7 < model.surrogate_weight < 1.3
    assert pt.BlackBox(score, Second()).fit_prior(X, label).surrogate_weight == 0.0


def test_a_saved_sampler_goes_on_with_the_same_weight_alone(tmp_path):
    X = np.random.default_rng(2).normal(scale=3.0, size=(12, 1))
    model = pt.BlackBox(spread, GAUSSIAN, surrogate_weight=0.5)
    sampler = pt.SplitSMC(model, 1.0, 5, random_state=0).fit(X[:8])
    sampler.save(tmp_path / "sampler")
    again = pt.SplitSMC.load(tmp_path / "sampler", model=model)
    expected = sampler.partial_fit(X[8:]).posterior_.log_density()
    assert again.partial_fit(X[8:]).posterior_.log_density() == pytest.approx(expected, abs=1e-9)
    with pytest.raises(ValueError, match="model"):
        pt.SplitSMC.load(tmp_path / "sampler", model=pt.BlackBox(spread, GAUSSIAN))


@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf, [1.0]])
def test_a_weight_must_make_sense(weight):
    with pytest.raises(ValueError, match="surrogate_weight must be a number of at least 0"):
        pt.SplitSMC(pt.BlackBox(spread, GAUSSIAN, surrogate_weight=weight)).fit(np.zeros((2, 1)))


def test_there_must_be_a_surrogate():
    with pytest.raises(ValueError, match="but there is no surrogate"):
        pt.SplitSMC(pt.BlackBox(spread, surrogate_weight=1.0)).fit([1.0, 2.0])
    with pytest.raises(ValueError, match="and there is none"):
        pt.BlackBox(spread).fit_prior([1.0, 2.0], [0, 1], pool=True)
