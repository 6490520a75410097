"""The concentration is learnt from all observations, and the first few cannot run away with it."""

import numpy as np
import pytest

from partita.models.numeric.gaussian import Gaussian
from partita.smc.sampler import SplitSMC

SPREAD = 0.25
MODEL = Gaussian(shape=20.0, rate=20.0 * SPREAD**2, mean=1.5, precision=SPREAD**2 / 1.25)


def lattice_with_all_centres_first(n=600):
    """Sixteen clusters that touch; the first sixteen observations are as far apart as can be."""
    rng = np.random.default_rng(0)
    centres = np.stack(np.meshgrid(np.arange(4.0), np.arange(4.0)), axis=-1).reshape(-1, 2)
    return np.concatenate([centres, centres[rng.integers(16, size=n)] + SPREAD * rng.normal(size=(n, 2))])


def test_one_step_at_most_doubles_alpha():
    X = lattice_with_all_centres_first()
    assert SplitSMC(MODEL, n_particles=10).fit(X[:9]).alpha_ == 1.0
    assert SplitSMC(MODEL, n_particles=10).fit(X[:10]).alpha_ == pytest.approx(2.0)


def test_a_start_with_every_observation_apart_is_overcome():
    sampler = SplitSMC(MODEL, n_particles=10).fit(lattice_with_all_centres_first())
    assert 10 <= sampler.labels_.max() + 1 <= 40
    assert sampler.alpha_ < 10.0


def test_where_all_are_apart_alpha_grows_with_the_data():
    X = np.random.default_rng(0).uniform(-1e6, 1e6, size=(300, 2))
    sampler = SplitSMC(Gaussian(precision=1e-12), n_particles=10).fit(X)
    assert sampler.labels_.max() + 1 == 300
    assert sampler.alpha_ > 300.0
