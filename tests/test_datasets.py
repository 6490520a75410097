"""The generators draw what their docstrings say, within stated tolerances."""

import math

import numpy as np
import pytest

from partita.datasets import circles, gaussian_mixture


def deviations(X, labels, smallest):
    """Standard deviation of each feature of each cluster that has at least `smallest` points."""
    large = np.flatnonzero(np.bincount(labels) >= smallest)
    return np.array([X[labels == cluster].std(axis=0, ddof=1) for cluster in large])


@pytest.mark.parametrize("generate", [circles, gaussian_mixture])
def test_the_seed_decides_the_data(generate):
    for first, again in zip(generate(random_state=3), generate(random_state=3), strict=True):
        np.testing.assert_array_equal(first, again)
    X, _ = generate(random_state=np.random.default_rng(3))
    np.testing.assert_array_equal(X, generate(random_state=3)[0])
    assert generate(random_state=4)[0].shape != X.shape or not np.allclose(generate(random_state=4)[0], X)
    assert generate()[0].shape[1] == 2


@pytest.mark.parametrize("generate", [circles, gaussian_mixture])
def test_points_come_in_random_order(generate):
    _, labels = generate(random_state=0)
    # Sorted by cluster, nearly all neighbours would share one.
    share = np.mean(labels[1:] == labels[:-1])
    expected = np.sum((np.bincount(labels) / labels.size) ** 2)
    assert abs(share - expected) < 5 * math.sqrt(expected / labels.size)


def test_circles_are_circles_within_the_box():
    X, labels = circles(n_clusters=400, radius=0.5, sizes=(3, 6), box=2.0, random_state=0)
    assert X.dtype == np.float64
    sizes = np.bincount(labels)
    assert set(sizes) == {3, 4, 5, 6}
    assert sizes.size == 400
    for cluster in range(50):
        points = X[labels == cluster]
        # The centre is as far from three points: 2 (xᵢ - x₀)·centre = |xᵢ|² - |x₀|².
        squares = (points[:3] ** 2).sum(axis=1)
        centre = np.linalg.solve(2 * (points[1:3] - points[0]), squares[1:] - squares[0])
        np.testing.assert_allclose(np.linalg.norm(points - centre, axis=1), 0.5, rtol=1e-6)
        assert np.abs(centre).max() <= 2.0


def test_circles_have_the_papers_size():
    sizes = np.concatenate([np.bincount(circles(random_state=seed)[1]) for seed in range(200)])
    assert (sizes.size, sizes.min(), sizes.max()) == (200 * 15, 10, 30)
    # Uniform on 10..30: mean 20, standard deviation 6.06, so 0.11 for the mean of 3,000.
    assert sizes.mean() == pytest.approx(20.0, abs=0.5)
    assert np.bincount(sizes)[10:].min() > 90


def test_points_are_uniform_on_the_circumference():
    X, labels = circles(n_clusters=1, sizes=(20_000, 20_000), random_state=1)
    centre = X.mean(axis=0)
    angles = np.arctan2(*(X - centre).T)
    counts, _ = np.histogram(angles, bins=8, range=(-math.pi, math.pi))
    np.testing.assert_allclose(counts / labels.size, 1 / 8, atol=0.015)


def test_mixture_has_the_papers_size():
    clusters = [np.unique(gaussian_mixture(random_state=seed)[1]).size for seed in range(40)]
    assert 55 < np.mean(clusters) < 85  # the paper's draw has 80
    X, labels = gaussian_mixture(random_state=0)
    assert X.shape == (700, 2)
    np.testing.assert_array_equal(np.unique(labels), np.arange(labels.max() + 1))


def test_mixture_variances_are_inverse_gamma():
    parameters = {"n_points": 200_000, "n_clusters": 2000, "concentration": 2000.0, "random_state": 0}
    for shape, rate in ((2.0, 0.5), (5.0, 2.0)):
        inverse_variance = deviations(*gaussian_mixture(**parameters, shape=shape, rate=rate), 60) ** -2.0
        assert inverse_variance.mean() == pytest.approx(shape / rate, rel=0.08)
        assert inverse_variance.std() == pytest.approx(math.sqrt(shape) / rate, rel=0.15)
        assert abs(np.corrcoef(inverse_variance.T)[0, 1]) < 0.1  # independent in each feature


def test_mixture_means_lie_in_groups():
    # One group: the means' distance from its centre, in the clusters' own deviations, has variance 1/(125 λ).
    parameters = {"n_points": 100_000, "n_clusters": 1000, "concentration": 1000.0, "n_groups": 1}
    X, labels = gaussian_mixture(**parameters, shape=500.0, rate=500.0, random_state=0)
    centres = np.array([X[labels == cluster].mean(axis=0) for cluster in range(labels.max() + 1)])
    assert centres.std(axis=0) == pytest.approx(math.sqrt(1 / (125 * 2e-4)), rel=0.08)

    # Many groups, far apart: they decide the spread.
    group_centres = [gaussian_mixture(n_points=1, mean=30.0, random_state=seed)[0][0] for seed in range(2000)]
    assert np.std(group_centres) == pytest.approx(math.sqrt(1 / 2e-4), rel=0.05)
    assert np.mean(group_centres) == pytest.approx(30.0, abs=5.0)


def test_mixture_sizes_break_a_stick():
    # The first stick takes 1 / (1 + α) on average, and clusters come out in that order.
    first = [np.bincount(gaussian_mixture(concentration=4.0, random_state=seed)[1])[0] for seed in range(300)]
    assert np.mean(first) / 700 == pytest.approx(1 / 5, abs=0.04)


def test_mixture_takes_any_size():
    X, labels = gaussian_mixture(n_points=5, n_clusters=1, n_groups=1, n_features=7, random_state=0)
    assert X.shape == (5, 7)
    np.testing.assert_array_equal(labels, np.zeros(5))


@pytest.mark.parametrize(
    ("generate", "parameters"),
    [
        (circles, {"n_clusters": 0}),
        (circles, {"radius": -1.0}),
        (circles, {"box": math.inf}),
        (circles, {"sizes": (5, 4)}),
        (circles, {"sizes": (0, 4)}),
        (gaussian_mixture, {"n_points": 0}),
        (gaussian_mixture, {"n_clusters": 2.5}),
        (gaussian_mixture, {"n_groups": 0}),
        (gaussian_mixture, {"n_features": 0}),
        (gaussian_mixture, {"concentration": 0.0}),
        (gaussian_mixture, {"shape": -2.0}),
        (gaussian_mixture, {"rate": 0.0}),
        (gaussian_mixture, {"precision": math.nan}),
        (gaussian_mixture, {"mean": math.inf}),
    ],
)
def test_bad_parameters_are_refused_by_name(generate, parameters):
    (name,) = parameters
    with pytest.raises(ValueError, match=name):
        generate(**parameters)
