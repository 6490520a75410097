"""The concentration of a Dirichlet process and the number of clusters: what one says of the other."""

from __future__ import annotations

import math

from partita._core.kernel import inner, kernel

PRIOR = (
    0.5,
    1.5,
)  # α/(1 + α) ~ Beta(1/2, 3/2): keeps α from following a few observations, whichever way they fall


def expected_clusters(alpha: float, n_observations: float) -> float:
    """α (ψ(α + n) − ψ(α)), the prior mean of the number of clusters.

    Plain arithmetic, so that kernels can compile it: ψ by recurrence to 10 and its asymptotic series there.
    The difference of the logarithms in it is taken at once, since a large α would cancel it.
    """
    difference, low, high = 0.0, alpha, alpha + n_observations
    while low < 10.0:
        difference += 1.0 / low
        low += 1.0
    while high < 10.0:
        difference -= 1.0 / high
        high += 1.0
    for x, sign in ((high, -1.0), (low, 1.0)):
        y = 1.0 / (x * x)
        difference += sign * (0.5 / x + y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y / 240))))
    apart = n_observations if low == alpha else high - low
    return alpha * (difference + math.log1p(apart / low))


compiled_expected_clusters = inner(expected_clusters)


@inner
def best_alpha(n_clusters, n_observations):
    """The α that maximises the expected log-prior of partitions with so many clusters on average."""
    low, high = math.log(1e-6), math.log(1e12)
    for _ in range(80):  # the derivative in log α is decreasing where it matters
        middle = 0.5 * (low + high)
        alpha = math.exp(middle)
        expected = compiled_expected_clusters(alpha, n_observations)
        if n_clusters + PRIOR[0] - (PRIOR[0] + PRIOR[1]) * alpha / (1.0 + alpha) > expected:
            low = middle
        else:
            high = middle
    return math.exp(0.5 * (low + high))


@kernel
def alpha_for(n_clusters, n_observations):
    """:func:`best_alpha`, for Python."""
    return best_alpha(n_clusters, n_observations)
