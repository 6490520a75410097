"""Generators of the paper's two point sets, at any size.

Each returns the points and the cluster every point was drawn from, in random order, because an online
method must not be helped by data that arrive one cluster at a time. `random_state` is a seed, a
`numpy.random.Generator` to draw from, or None for fresh randomness; the same seed gives the same data.

The definitions are those of Trojan et al., "Scalable Model-Based Clustering with Sequential Monte
Carlo", AISTATS 2026, appendix "Experiments".
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from partita.priors import DirichletProcess


def circles(
    n_clusters: int = 15,
    radius: float = 0.6,
    sizes: tuple[int, int] = (10, 30),
    box: float = 5.0,
    random_state: int | np.random.Generator | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Draw points on the circumferences of circles of equal radius that may overlap.

    Neighbouring points can belong to different circles, so that no pair of points tells whether they
    belong together: more than two must be considered jointly.

    Parameters
    ----------
    n_clusters : int
        Number of circles.
    radius : float
        Radius of every circle.
    sizes : (int, int)
        Smallest and largest number of points on a circle, both included; each number between them is
        equally likely.
    box : float
        Centres are uniform on the square [-box, box]².
    random_state : int, numpy.random.Generator or None
        Source of randomness.

    Returns
    -------
    X : ndarray of shape (n, 2)
        The points, in random order. `n` is the sum of the sizes drawn.
    labels : ndarray of shape (n,)
        The circle of each point, 0 to `n_clusters` - 1.

    Examples
    --------
    >>> X, labels = circles(n_clusters=3, random_state=0)
    >>> X.shape[0] == labels.size, int(labels.max())
    (True, 2)
    """
    _require_count("n_clusters", n_clusters)
    _require_positive("radius", radius)
    _require_positive("box", box)
    smallest, largest = sizes
    if not 1 <= smallest <= largest:
        raise ValueError(f"sizes must be (smallest, largest) with 1 <= smallest <= largest, got {sizes!r}")

    rng = np.random.default_rng(random_state)
    centres = rng.uniform(-box, box, size=(n_clusters, 2))
    cluster_sizes = rng.integers(smallest, largest, size=n_clusters, endpoint=True)
    labels = rng.permutation(np.repeat(np.arange(n_clusters), cluster_sizes))
    angles = rng.uniform(0.0, 2.0 * math.pi, size=labels.size)
    return centres[labels] + radius * np.column_stack([np.cos(angles), np.sin(angles)]), labels


def gaussian_mixture(
    n_points: int = 700,
    n_clusters: int = 100,
    concentration: float = 20.0,
    n_groups: int = 16,
    shape: float = 2.0,
    rate: float = 0.5,
    mean: float = 0.0,
    precision: float = 2e-4,
    n_features: int = 2,
    random_state: int | np.random.Generator | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Draw from a Dirichlet-process mixture of Gaussians whose means come in close groups.

    Parameters
    ----------
    n_points : int
        Number of points.
    n_clusters : int
        Number of sticks broken. Clusters that receive no point vanish, so that fewer are seen.
    concentration : float
        Concentration of the Dirichlet process: the larger, the more clusters.
    n_groups : int
        Number of group centres around which the cluster means lie.
    shape, rate : float
        Gamma distribution of a cluster's inverse variance, one independent draw for each feature.
    mean, precision : float
        Mean and inverse variance of the group centres, in each feature.
    n_features : int
        Number of columns of `X`.
    random_state : int, numpy.random.Generator or None
        Source of randomness.

    Returns
    -------
    X : ndarray of shape (n_points, n_features)
        The points, in random order.
    labels : ndarray of shape (n_points,)
        The cluster of each point, 0 to K - 1, where K is the number of clusters that have points. Low
        labels broke off the stick first and tend to be large.

    Notes
    -----
    With all operations applied to each feature on its own, cluster i is drawn as::

        1 / σᵢ² ~ Gamma(shape, rate)
        μ_g     ~ Normal(mean, 1 / precision)          for each group
        μᵢ      ~ Normal(μ_g, σᵢ² / (125 precision))   for a group g chosen uniformly
        x       ~ Normal(μᵢ, σᵢ²)

    Both normal distributions of means are given by their variances: with the default precision, group
    centres spread with standard deviation 70.7, and a cluster lies about 6.3 of its own standard
    deviations away from its group's centre.

    Where the text leaves a choice: the weights of the truncated stick are divided by their sum, rather
    than the last one taking what is left. Γ(α, β) is read as shape and rate, which makes `shape` and
    `rate` the parameters of the same name of `partita.Gaussian`. The data set published with the paper
    has clusters about twice as wide as these defaults give: it was drawn with β as a scale, and
    ``rate=2.0`` resembles it.

    Examples
    --------
    >>> X, labels = gaussian_mixture(n_points=50, random_state=0)
    >>> X.shape, labels.shape
    ((50, 2), (50,))
    """
    _require_count("n_points", n_points)
    _require_count("n_clusters", n_clusters)
    _require_count("n_groups", n_groups)
    _require_count("n_features", n_features)
    _require_positive("concentration", concentration)
    _require_positive("shape", shape)
    _require_positive("rate", rate)
    _require_positive("precision", precision)
    if not math.isfinite(mean):
        raise ValueError(f"mean must be finite, got {mean!r}")

    rng = np.random.default_rng(random_state)
    weights = DirichletProcess(concentration).weights(n_clusters, rng)
    # Independent draws are exchangeable: the points need no shuffling.
    sticks, labels = np.unique(rng.choice(n_clusters, size=n_points, p=weights), return_inverse=True)

    # Only clusters that have points are given a place.
    deviations = rng.gamma(shape, 1.0 / rate, size=(sticks.size, n_features)) ** -0.5
    group_centres = rng.normal(mean, precision**-0.5, size=(n_groups, n_features))
    own_group = group_centres[rng.integers(n_groups, size=sticks.size)]
    centres = rng.normal(own_group, deviations * (125.0 * precision) ** -0.5)
    return rng.normal(centres[labels], deviations[labels]), labels


def _require_count(name: str, value: int) -> None:
    if value != int(value) or value < 1:
        raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}")


def _require_positive(name: str, value: float) -> None:
    if not (value > 0 and math.isfinite(value)):
        raise ValueError(f"{name} must be positive and finite, got {value!r}")
