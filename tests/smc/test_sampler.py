"""The estimators: the same answer every time, wherever the data lie."""

import itertools
import math
import weakref

import numpy as np
import pytest

import partita as pt
from tests.helpers.streams import (
    VARIANTS,
    N,
    answers,
    each_model,
    rows_of,
    sampler_of,
    saved_and_loaded,
    uninterrupted,
)

# ---------------------------------------------------------------------- the same answer every time


@pytest.mark.parametrize("model", ["gaussian", "user"])
@pytest.mark.parametrize("variant", ["rejuvenation", "optimal", "auto"])
def test_saving_and_loading_after_every_row_gives_the_same_answer(model, variant):
    sampler = sampler_of(model, variant)
    for row in rows_of(model):
        sampler = saved_and_loaded(sampler.partial_fit(row[None]))
    assert answers(sampler) == uninterrupted(model, variant)


def test_fit_forgets_the_width():
    sampler = sampler_of("gaussian", "split").fit(np.zeros((3, 5)))
    assert answers(sampler.fit(rows_of("gaussian"))) == uninterrupted("gaussian", "split")


@each_model
def test_the_cases_have_doubts_and_subproblems(model):
    """Or else the comparisons above would show little."""
    split, smc = uninterrupted(model, "split"), uninterrupted(model, "smc")
    assert max(map(len, split["probabilities"])) == 20
    assert len(smc["observations"]) == 1
    assert len(smc["probabilities"][0]) == 20
    assert {len(p) for p in uninterrupted(model, "greedy")["probabilities"]} == {1}
    distinct = {str(uninterrupted(model, variant)["probabilities"]) for variant in VARIANTS}
    assert len(distinct) >= 8


@pytest.mark.parametrize("variant", ["multinomial", "stratified", "optimal", "rejuvenation"])
def test_the_seed_matters_where_something_is_drawn(variant):
    seeds = [sampler_of("gaussian", variant).set_params(random_state=seed) for seed in range(6)]
    assert len({str(answers(sampler.fit(rows_of("gaussian")))) for sampler in seeds}) > 1


@pytest.mark.parametrize("variant", ["split", "auto", "smc", "greedy"])
def test_the_seed_does_not_matter_where_nothing_is_drawn(variant):
    sampler = sampler_of("gaussian", variant).set_params(random_state=None)
    assert answers(sampler.fit(rows_of("gaussian"))) == uninterrupted("gaussian", variant)


@pytest.mark.parametrize("variant", ["multinomial", "rejuvenation"])
def test_a_generator_as_random_state(variant):
    one, other = (
        sampler_of("gaussian", variant).set_params(random_state=np.random.RandomState(7)) for _ in range(2)
    )
    one.fit(rows_of("gaussian"))
    other.partial_fit(rows_of("gaussian")[:20])
    other = saved_and_loaded(other).partial_fit(rows_of("gaussian")[20:])
    assert answers(one) == answers(other)


def test_the_order_of_observations_in_memory_does_not_matter():
    X = rows_of("gaussian")
    for same in (np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2], X.tolist(), X.astype(object)):
        assert answers(sampler_of("gaussian", "split").fit(same)) == uninterrupted("gaussian", "split")


def test_integers_and_floats_are_the_same_data():
    X = rows_of("categorical")
    for dtype in (np.int8, np.uint16, np.int64, np.float32):
        same = sampler_of("categorical", "split").fit(X.astype(dtype))
        assert answers(same) == uninterrupted("categorical", "split")


def test_optimal_resampling_where_a_few_have_all_the_weight():
    """The sum of the others then has no digits left."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (60, 1)) * np.ones((1, 40))
    X = np.abs(X - (rng.random((60, 40)) < 0.03))
    for seed in range(5):
        sampler = pt.SplitSMC(pt.Bernoulli(0.5, 0.5), 1.0, 20, resampling="optimal", random_state=seed).fit(X)
        for subproblem in sampler.posterior_.subproblems:
            assert subproblem.probabilities.sum() == pytest.approx(1.0)
            assert (subproblem.probabilities > 0.0).all()


def test_a_posterior_stays_as_it_was():
    X = rows_of("gaussian")
    sampler = sampler_of("gaussian", "rejuvenation").fit(X[:30])
    early, before = sampler.posterior_, answers(sampler)
    sampler.partial_fit(X[30:]).refine(1)
    assert early.labels().tolist() == before["labels"]
    assert early.log_density() == before["log_density"]
    assert [s.probabilities.tolist() for s in early.subproblems] == before["probabilities"]
    assert len(sampler.labels_) == N


def test_changing_the_answers_does_not_change_the_sampler():
    sampler = sampler_of("gaussian", "split").fit(rows_of("gaussian"))
    sampler.labels_[:] = -5
    subproblem = sampler.posterior_.subproblems[0]
    subproblem.probabilities[:] = 9.0
    subproblem.partitions[:] = 9
    assert answers(sampler) == uninterrupted("gaussian", "split")


def test_the_data_are_neither_kept_nor_changed():
    X = rows_of("gaussian")
    mine = X.copy()
    sampler = sampler_of("gaussian", "rejuvenation").partial_fit(mine[:30])
    np.testing.assert_array_equal(mine, X)
    mine[:30] = 0.0
    sampler.partial_fit(mine[30:])
    assert answers(sampler) == uninterrupted("gaussian", "rejuvenation")


def test_the_model_is_read_when_the_stream_begins():
    """A change of the user's object in the middle must not leave two models in one state."""
    sampler = sampler_of("gaussian", "split").partial_fit(rows_of("gaussian")[:30])
    sampler.set_params(model__rate=50.0, model__mean=3.0)
    sampler.partial_fit(rows_of("gaussian")[30:])
    assert answers(sampler) == uninterrupted("gaussian", "split")


def test_alpha_is_told():
    assert sampler_of("gaussian", "split").set_params(alpha=2.5).fit(
        rows_of("gaussian")
    ).alpha_ == pytest.approx(2.5)
    learnt = sampler_of("gaussian", "auto").fit(rows_of("gaussian"))
    assert isinstance(learnt.alpha_, float)
    assert 0.1 < learnt.alpha_ < 10.0
    assert saved_and_loaded(learnt).alpha_ == learnt.alpha_


def test_refining_never_lowers_the_density():
    sampler = sampler_of("gaussian", "split").set_params(n_particles=3).fit(rows_of("gaussian"))
    density = sampler.posterior_.log_density()
    for _ in range(3):
        sampler.refine()
        assert sampler.posterior_.log_density() >= density - 1e-9
        density = sampler.posterior_.log_density()


def test_refining_no_times_changes_nothing():
    sampler = sampler_of("gaussian", "split").fit(rows_of("gaussian"))
    assert sampler.refine(0) is sampler
    assert answers(sampler) == uninterrupted("gaussian", "split")


def test_progress_bars(capsys):
    sampler = sampler_of("gaussian", "split").fit(rows_of("gaussian"), progress=True)
    assert "clustering" in capsys.readouterr().out
    assert answers(sampler) == uninterrupted("gaussian", "split")
    sampler.partial_fit(rows_of("gaussian")[:1], progress=True)
    assert "100%" in capsys.readouterr().out
    sampler.refine(2, progress=True)
    assert "refining" in capsys.readouterr().out
    sampler.fit(rows_of("gaussian")).refine()
    assert capsys.readouterr().out == ""


# ---------------------------------------------------------------------- far away, tiny and huge


def moved(model, shift, scale):
    """The model for data that have been scaled and then shifted."""
    if model == "gaussian":
        return pt.Gaussian(shape=2.0, rate=2.0 * scale**2, mean=shift, precision=0.06)
    return pt.MultivariateGaussian(
        scale=scale**2 * np.array([[2.0, 0.5], [0.5, 1.5]]), mean=shift, precision=0.06
    )


@pytest.mark.parametrize("model", ["gaussian", "multivariate"])
@pytest.mark.parametrize("variant", ["split", "rejuvenation", "auto", "smc", "greedy"])
@pytest.mark.parametrize(
    ("shift", "scale"),
    [(1e6, 1.0), (-1e6, 1.0), (0.0, 1e-100), (0.0, 1e100), (1e-94, 1e-100), (1e106, 1e100)],
)
def test_the_unit_and_the_origin_do_not_matter(model, variant, shift, scale):
    X = rows_of(model)
    here = sampler_of(model, variant).set_params(model=moved(model, 0.0, 1.0)).fit(X)
    there = sampler_of(model, variant).set_params(model=moved(model, shift, scale)).fit(X * scale + shift)
    i, j = np.array(list(itertools.combinations(range(len(X)), 2))).T
    for _ in range(2):  # as it is, and refined
        np.testing.assert_array_equal(there.labels_, here.labels_)
        np.testing.assert_allclose(there.posterior_.together(i, j), here.posterior_.together(i, j), atol=1e-6)
        change = -X.size * math.log(scale)
        assert there.posterior_.log_density() == pytest.approx(
            here.posterior_.log_density() + change, abs=1e-5
        )
        here.refine(1)
        there.refine(1)
    predicted = there.predict_proba(X * scale + shift)
    np.testing.assert_allclose(predicted, here.predict_proba(X), atol=1e-6)


def test_the_origin_matters_when_the_model_stays():
    """Or else the test above would show nothing."""
    X = rows_of("gaussian")
    here = sampler_of("gaussian", "split").fit(X).posterior_.log_density()
    assert abs(sampler_of("gaussian", "split").fit(X + 5.0).posterior_.log_density() - here) > 1.0


def test_a_sampler_that_nobody_needs_leaves_nothing_behind():
    sampler = pt.SplitSMC(pt.Gaussian(), 1.0, 5).fit(np.arange(6.0)[:, None])
    engine = weakref.ref(sampler._engine)
    del sampler
    assert engine() is None  # at once, without the garbage collector
