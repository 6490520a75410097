"""A sampler beside a naive one, observation by observation."""

import math

import numpy as np

import partita as pt
from tests.helpers import oracle

CONTINUOUS = [pt.Gaussian, pt.MultivariateGaussian]  # no two weights are ever equal


def stream(kind, seed, n=25):
    """A model, data in groups with doubtful points between them, and a concentration."""
    rng = np.random.default_rng(seed)
    d = 1 if kind is oracle.Poisson else int(rng.integers(1, 3))
    model = oracle.random_model(kind, rng, d)
    if kind in CONTINUOUS and rng.random() < 0.7:
        model = kind(precision=0.01)
    X = oracle.random_data(model, rng, n, d, spread=rng.choice([3.0, 6.0]))
    return model, X, math.exp(rng.uniform(-2.0, 2.0))


def follow(sampler, naive, X):
    """Let both samplers see the data, one observation at a time, and compare them after each."""
    for x in range(len(X)):
        naive.observe(x)
        sampler.partial_fit(X[x : x + 1])
        found = oracle.check_invariants(sampler, naive.scores, naive.m, exact=naive.exact)
        oracle.assert_same_factors(found, naive.factors())
