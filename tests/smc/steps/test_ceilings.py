"""Ceilings: no cluster's gain is above its subproblem's, and what they rule out changes nothing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

import partita as pt
from partita.smc.engine import Engine
from partita.smc.reading.snapshot import posterior_of
from partita.smc.state.state import Settings, dismantle, grown
from partita.smc.steps.candidates import count_in, find_candidates
from partita.smc.steps.step import extend_created, place
from partita.smc.steps.update import find_bounds, score, score_few
from tests.helpers.effort import examples

quick = examples(8)
MODELS = [
    pt.Gaussian(2.0, 0.5, 0.0, 0.01),
    pt.Gaussian(50.0, 40.0, 1.0, 1.0),
    pt.MultivariateGaussian(precision=0.01),
    pt.MultivariateGaussian(freedom=40.0, scale=40.0, precision=0.2),
]
each_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: repr(model)[:40])


def points(seed, n=80):
    """Groups with doubtful points between them; some points occur twice."""
    rng = np.random.default_rng(seed)
    centres = rng.uniform(-15.0, 15.0, (8, 2)) * rng.choice([1.0, 20.0])
    X = centres[rng.integers(8, size=n)] + rng.normal(size=(n, 2))
    X[rng.integers(n, size=8)] = X[rng.integers(n, size=8)].round()
    X[n // 2 : n // 2 + 5] = X[:5]
    return X


def engine_of(model, particles):
    return Engine(model, Settings(particles), 2, 2, 0.5, 0)


@njit
def score_everything(state, family, x):
    find_candidates(state, x)
    score(state, family, state.data, x)


@njit
def finish(state, family, x):
    extend_created(state, family, x)
    count_in(state)


@njit
def bounds(state, family, x):
    """How many candidates have ceilings, and how far the lowest is above the largest gain."""
    find_candidates(state, x)
    score_few(state, family, x)
    late = state.late[: state.subproblems.shape[0]].copy()
    ceilings = state.bound.copy()
    score(state, family, state.data, x)
    find_bounds(state)
    count, lowest = 0, np.inf
    for q in range(state.n_candidates):
        s = state.candidates[q]
        if late[s]:
            count += 1
            lowest = min(lowest, ceilings[s] - state.bound[s])
    return count, lowest


def observe_scoring_everything(engine, X):
    """What the engine does, without ceilings."""
    first, end = engine.n_observations, engine.store(engine.encode(X))
    for x in range(first, end):
        score_everything(engine.state, engine.family, x)
        while not place(engine.state, x, 0):
            engine.state = grown(engine.state)
            score_everything(engine.state, engine.family, x)
        finish(engine.state, engine.family, x)


@each_model
@quick
@given(seed=st.integers(0, 2**32 - 1), particles=st.sampled_from([1, 3, 20, 100]))
def test_results_are_the_same_to_the_last_bit(model, seed, particles):
    X = points(seed)
    with_ceilings, without = engine_of(model, particles), engine_of(model, particles)
    with_ceilings.run(with_ceilings.store(with_ceilings.encode(X)))
    observe_scoring_everything(without, X)
    for one, other in zip(dismantle(with_ceilings.state), dismantle(without.state), strict=True):
        parts = zip(one, other, strict=True) if isinstance(one, tuple) else [(one, other)]
        for name, (a, b) in enumerate(parts):
            if name != 4:  # rows of statistics no longer in use differ in what they were
                assert np.array_equal(a, b)
    assert len(posterior_of(with_ceilings.state).subproblems) >= 1


@each_model
@quick
@given(seed=st.integers(0, 2**32 - 1))
def test_no_gain_is_above_its_ceiling(model, seed):
    X, engine = points(seed), engine_of(model, 20)
    engine.run(engine.store(engine.encode(X[:-20])))
    engine.store(engine.encode(X[-20:]))
    found = [bounds(engine.state, engine.family, x) for x in range(60, 80)]
    assert min(lowest for _, lowest in found) >= 0.0


def test_ceilings_are_put_to_use():
    engine = engine_of(MODELS[0], 20)
    X = points(3)
    engine.run(engine.store(engine.encode(X)))
    engine.store(engine.encode(X[:20]))
    assert max(bounds(engine.state, engine.family, x)[0] for x in range(80, 100)) > 1


def test_an_observation_taken_out_and_put_back_meets_the_hulls_of_what_remains():
    X = points(5)
    one = pt.SplitSMC(MODELS[0], 1.0, 20, rejuvenation=2, random_state=0).fit(X)
    scores = [one.posterior_.log_density()]
    one.refine(1)
    scores.append(one.posterior_.log_density())
    assert scores[1] >= scores[0] - 1e-9
