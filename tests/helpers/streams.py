"""Small streams for every model, and samplers in every configuration."""

import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import partita as pt
from tests.helpers import oracle

N = 60


def rows_of(name, n=N, seed=3):
    """Clusters that overlap, so that the posterior has doubts."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 7, n)
    if name in ("gaussian", "multivariate"):
        return 4.0 * rng.normal(size=(7, 2))[label] + rng.normal(size=(n, 2))
    if name == "categorical":
        favourite = rng.integers(0, 4, (7, 5))[label]
        return np.where(rng.random((n, 5)) < 0.65, favourite, rng.integers(0, 4, (n, 5)))
    if name == "bernoulli":
        return (rng.random((n, 8)) < rng.beta(0.4, 0.4, (7, 8))[label]).astype(int)
    return rng.poisson(np.array([1, 4, 10, 20, 40, 70, 110])[label])[:, None]


MODELS = {
    "gaussian": lambda: pt.Gaussian(shape=2.0, rate=2.0, precision=0.06),
    "multivariate": lambda: pt.MultivariateGaussian(scale=2.0, precision=0.06),
    "categorical": lambda: pt.Categorical(n_categories=4, concentration=0.5),
    "bernoulli": lambda: pt.Bernoulli(a=0.5, b=0.5),
    "user": lambda: oracle.Poisson(1.0, 0.04),
}
VARIANTS = {
    "split": (pt.SplitSMC, {"alpha": 1.0, "n_particles": 20}),
    "auto": (pt.SplitSMC, {"alpha": "auto", "n_particles": 20}),
    "rejuvenation": (pt.SplitSMC, {"alpha": 1.0, "n_particles": 20, "rejuvenation": 2}),
    "auto, rejuvenation": (pt.SplitSMC, {"alpha": "auto", "n_particles": 20, "rejuvenation": 1}),
    "multinomial": (pt.SplitSMC, {"alpha": 1.0, "n_particles": 20, "resampling": "multinomial"}),
    "stratified": (pt.SplitSMC, {"alpha": "auto", "n_particles": 20, "resampling": "stratified"}),
    "optimal": (
        pt.SplitSMC,
        {
            "alpha": 1.0,
            "n_particles": 20,
            "resampling": "optimal",
            "merging": "multinomial",
        },
    ),
    "marginal": (pt.SplitSMC, {"alpha": 1.0, "n_particles": 20, "weights": "marginal"}),
    "smc": (pt.SMC, {"alpha": 1.0, "n_particles": 20}),
    "smc, auto, rejuvenation": (pt.SMC, {"alpha": "auto", "n_particles": 20, "rejuvenation": 1}),
    "greedy": (pt.Greedy, {"alpha": 1.0}),
    "greedy, auto, rejuvenation": (pt.Greedy, {"alpha": "auto", "rejuvenation": 2}),
}
EXACT = ["split", "auto", "rejuvenation", "smc", "greedy"]  # those that can be refined
each_model = pytest.mark.parametrize("model", MODELS)


def sampler_of(model, variant):
    kind, parameters = VARIANTS[variant]
    return kind(MODELS[model](), random_state=5, **parameters)


def answers(sampler):
    """All that a sampler says, for exact comparison."""
    posterior = sampler.posterior_
    return {
        "labels": sampler.labels_.tolist(),
        "log_density": posterior.log_density(),
        "observations": [s.observations.tolist() for s in posterior.subproblems],
        "partitions": [s.partitions.tolist() for s in posterior.subproblems],
        "probabilities": [s.probabilities.tolist() for s in posterior.subproblems],
        "n_clusters": [array.tolist() for array in posterior.n_clusters()],
        "n_features_in_": getattr(sampler, "n_features_in_", None),
    }


@cache
def uninterrupted(model, variant):
    return answers(sampler_of(model, variant).fit(rows_of(model)))


def saved_and_loaded(sampler):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.partita"
        sampler.save(path)
        model = sampler.model if isinstance(sampler.model, oracle.Poisson) else None
        return type(sampler).load(path, model=model)
