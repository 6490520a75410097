"""Bad input gets a clear error and changes nothing."""

import itertools
import math
import re

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import partita as pt
from tests.helpers.messages import all_of
from tests.helpers.streams import (
    answers,
    rows_of,
    sampler_of,
    uninterrupted,
)

# ---------------------------------------------------------------------- bad input


def changed(X, row, column, value):
    X = np.array(X, float)
    X[row, column] = value
    return X


G, C, B = rows_of("gaussian", 6), rows_of("categorical", 6), rows_of("bernoulli", 6)
BAD_ROWS = {
    "NaN": ("gaussian", changed(G, 3, 1, np.nan), ["row 3", "column 1", "NaN", "drop"]),
    "infinity": ("gaussian", changed(G, 0, 0, np.inf), ["row 0", "column 0", "inf"]),
    "minus infinity": ("gaussian", changed(G, 5, 1, -np.inf), ["row 5", "column 1", "inf"]),
    "None": ("gaussian", [[1.0, 2.0], [3.0, None]], ["row 1", "column 1", "NaN"]),
    "too narrow": ("gaussian", G[:, :1], ["1 feature", "2"]),
    "too wide": ("gaussian", np.zeros((4, 3)), ["3 features", "2"]),
    "no rows": ("gaussian", np.empty((0, 2)), ["0 sample"]),
    "no columns": ("gaussian", np.empty((3, 0)), ["0 feature"]),
    "one dimension": ("gaussian", G[:, 0], ["2D", "1D", "reshape"]),
    "three dimensions": ("gaussian", np.zeros((2, 2, 2)), ["dim 3"]),
    "a number": ("gaussian", 3.0, ["2D", "scalar"]),
    "strings": ("gaussian", [["1.0", "red"], ["2.0", "blue"]], ["'red'"]),
    "complex": ("gaussian", G + 1j, ["omplex"]),
    "ragged": ("gaussian", [[1.0, 2.0], [3.0]], ["shape"]),
    "beyond all bounds": ("gaussian", changed(G, 4, 0, 1e300), ["row 4", "density", "rescale"]),
    "beyond all bounds, multivariate": ("multivariate", changed(G, 2, 1, 1e300), ["row 2", "density"]),
    "code too high": ("categorical", changed(C, 2, 3, 4), ["row 2", "column 3", "4 is not", "0 to 3"]),
    "code negative": ("categorical", changed(C, 1, 0, -1), ["row 1", "column 0", "-1 is not"]),
    "code not whole": ("categorical", changed(C, 0, 4, 1.5), ["row 0", "column 4", "1.5 is not"]),
    "code huge": ("categorical", changed(C, 3, 2, 1e300), ["row 3", "column 2", "encode"]),
    "code NaN": ("categorical", changed(C, 3, 2, np.nan), ["row 3", "column 2", "NaN"]),
    "neither 0 nor 1": ("bernoulli", changed(B, 4, 7, 2), ["row 4", "column 7", "2 is neither 0 nor 1"]),
    "half": ("bernoulli", changed(B, 0, 1, 0.5), ["row 0", "column 1", "0.5 is neither"]),
    "impossible statistics": ("user", [[3.0], [-5.0]], ["row 1", "statistics", "finite"]),
}
BAD_WIDTHS = ["too narrow", "too wide"]  # which are none for a new sampler, and a fit forgets the old width
BAD_ANYWHERE = [case for case in BAD_ROWS if case not in BAD_WIDTHS]


@pytest.mark.parametrize("variant", ["split", "auto, rejuvenation"])
@pytest.mark.parametrize(
    ("method", "case"),
    [
        *itertools.product(["partial_fit", "predict_proba", "predict"], BAD_ROWS),
        *(("fit", case) for case in BAD_ANYWHERE),
    ],
)
def test_bad_rows_are_named_and_change_nothing(case, variant, method):
    model, X, words = BAD_ROWS[case]
    data = rows_of(model)
    sampler = sampler_of(model, variant).fit(data[:40])
    before = answers(sampler)
    with pytest.raises(ValueError, match=all_of(*words)):
        getattr(sampler, method)(X)
    assert answers(sampler) == before
    sampler.partial_fit(data[40:])
    assert answers(sampler) == uninterrupted(model, variant)


@pytest.mark.parametrize("case", BAD_ANYWHERE)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_bad_rows_leave_a_new_sampler_new(case, method):
    model, X, words = BAD_ROWS[case]
    sampler = sampler_of(model, "split")
    before = dict(vars(sampler))
    with pytest.raises(ValueError, match=all_of(*words)):
        getattr(sampler, method)(X)
    assert vars(sampler) == before
    assert answers(sampler.partial_fit(rows_of(model))) == uninterrupted(model, "split")


def test_a_sparse_matrix_is_refused():
    from scipy.sparse import csr_array

    with pytest.raises(TypeError, match="dense"):
        sampler_of("gaussian", "split").fit(csr_array(G))


def test_the_rows_of_a_later_batch_are_numbered_within_it():
    sampler = sampler_of("gaussian", "split").fit(rows_of("gaussian"))
    with pytest.raises(ValueError, match="row 1, column 0"):
        sampler.partial_fit([[0.0, 0.0], [np.nan, 0.0]])


BAD_PARAMETERS = [
    *(("n_particles", value) for value in (0, -3, 1.0, 2.5, True, "10", None, math.nan)),
    *(("alpha", value) for value in (0, 0.0, -1.0, math.nan, math.inf, "foo", None, [1.0], True)),
    *(("rejuvenation", value) for value in (-1, 0.5, 1.0, True, "1", None)),
    *(("resampling", value) for value in ("Greedy", "systematic", None, 0, ["greedy"])),
    *(("weights", value) for value in ("exactly", 1, ["exact"])),
    *(("merging", value) for value in ("best", None, ["k-best"])),
    *(("random_state", value) for value in ("seed", -1, 1.5)),
]


@pytest.mark.parametrize(("name", "value"), BAD_PARAMETERS)
def test_bad_parameters_are_named_and_change_nothing(name, value):
    good = getattr(sampler_of("gaussian", "split"), name)
    word = "seed" if name == "random_state" else name
    fresh = sampler_of("gaussian", "split").set_params(**{name: value})
    before = dict(vars(fresh))
    with pytest.raises(ValueError, match=f"(?i){word}"):
        fresh.fit(rows_of("gaussian"))
    assert vars(fresh) == before
    fitted = sampler_of("gaussian", "split").fit(rows_of("gaussian")[:40]).set_params(**{name: value})
    with pytest.raises(ValueError, match=f"(?i){word}"):
        fitted.fit(rows_of("gaussian"))
    fitted.set_params(**{name: good}).partial_fit(rows_of("gaussian")[40:])
    assert answers(fitted) == uninterrupted("gaussian", "split")


@pytest.mark.parametrize(
    ("name", "value", "fix"),
    [
        ("n_particles", 0, "at least 1, got 0"),
        ("rejuvenation", -1, "at least 0, got -1"),
        ("alpha", -2.0, 'positive number or "auto", got -2.0'),
        ("resampling", "best", "'greedy', 'multinomial', 'stratified', 'optimal', got 'best'"),
        ("weights", "best", "'marginal', 'exact', got 'best'"),
        ("merging", "best", "'k-best', 'multinomial', got 'best'"),
    ],
)
def test_errors_of_parameters_state_the_fix(name, value, fix):
    with pytest.raises(ValueError, match=f"^{name} must be.*{re.escape(fix)}"):
        pt.SplitSMC(pt.Gaussian(), **{name: value}).fit(G)


@pytest.mark.parametrize("resampling", ["multinomial", "stratified", "optimal"])
def test_exact_weights_need_greedy_resampling(resampling):
    sampler = pt.SplitSMC(pt.Gaussian(), weights="exact", resampling=resampling)
    with pytest.raises(ValueError, match='weights="exact" needs resampling="greedy"'):
        sampler.fit(G)


@pytest.mark.parametrize("variant", ["multinomial", "marginal"])
def test_refining_needs_exact_weights(variant):
    sampler = sampler_of("gaussian", variant).fit(rows_of("gaussian"))
    with pytest.raises(ValueError, match="exact weights"):
        sampler.refine()
    assert answers(sampler) == uninterrupted("gaussian", variant)


@pytest.mark.parametrize("sweeps", [-1, 1.5, True, "2", None])
def test_sweeps_are_counted_in_whole_numbers(sweeps):
    sampler = sampler_of("gaussian", "split").fit(rows_of("gaussian"))
    with pytest.raises(ValueError, match="sweeps must be a whole number of at least 0"):
        sampler.refine(sweeps)
    assert answers(sampler) == uninterrupted("gaussian", "split")


@pytest.mark.parametrize("model", ["gaussian", 3, pt.Gaussian, object()])
def test_a_model_of_the_wrong_type(model):
    sampler = pt.SplitSMC(model)
    with pytest.raises(TypeError, match="model must be a partita model"):
        sampler.fit(G)
    assert not hasattr(sampler, "n_features_in_")


@pytest.mark.parametrize(
    ("model", "X", "word"),
    [
        (pt.Gaussian(shape=0.0), G, "shape"),
        (pt.Gaussian(rate=-1.0), G, "rate"),
        (pt.Gaussian(rate=[1.0, 1.0, 1.0]), G, "rate"),
        (pt.Gaussian(mean=math.nan), G, "mean"),
        (pt.Gaussian(precision=math.inf), G, "precision"),
        (pt.MultivariateGaussian(freedom=1.0), G, "freedom"),
        (pt.MultivariateGaussian(scale=-1.0), G, "scale"),
        (pt.MultivariateGaussian(scale=[[1.0, 2.0], [2.0, 1.0]]), G, "scale"),
        (pt.MultivariateGaussian(scale=np.eye(3)), G, "scale"),
        (pt.Categorical(), C, "n_categories"),
        (pt.Categorical(n_categories=[4, 4]), C, "n_categories"),
        (pt.Categorical(n_categories=4, concentration=0.0), C, "concentration"),
        (pt.Bernoulli(a=-1.0), B, "a must be"),
        (pt.Bernoulli(b=[1.0, 1.0]), B, "b has shape"),
    ],
)
def test_bad_hyperparameters_are_named(model, X, word):
    sampler = pt.SplitSMC(model, alpha=1.0)
    with pytest.raises(ValueError, match=word):
        sampler.fit(X)
    assert not hasattr(sampler, "n_features_in_")


@pytest.mark.parametrize("kind", [pt.SplitSMC, pt.SMC, pt.Greedy])
@pytest.mark.parametrize(
    "use",
    [
        lambda sampler: sampler.labels_,
        lambda sampler: sampler.posterior_,
        lambda sampler: sampler.alpha_,
        lambda sampler: sampler.predict_proba(G),
        lambda sampler: sampler.predict(G),
        lambda sampler: sampler.refine(),
        lambda sampler: sampler.save("nowhere.partita"),
    ],
)
def test_use_before_fit(kind, use, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sampler = kind(pt.Gaussian())
    before = dict(vars(sampler))
    with pytest.raises(NotFittedError, match=f"{kind.__name__} is not fitted.*call fit"):
        use(sampler)
    assert vars(sampler) == before
    assert not hasattr(sampler, "labels_")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("value", [0.0, 1e-300, -1e100, 1e140, 5e150, -1e153, 1e154, 1e200, 1e308])
@pytest.mark.parametrize("model", ["gaussian", "multivariate"])
@pytest.mark.parametrize("variant", ["split", "rejuvenation", "smc"])
def test_huge_values_are_refused_or_clustered(model, variant, value):
    """No finite input makes a posterior that is not a distribution."""
    X = np.concatenate([rows_of(model)[:20], [[value, value], [-value, value], [value, 0.0]], G])
    sampler = sampler_of(model, variant)
    refusal = None
    try:
        sampler.fit(X)
    except ValueError as error:
        refusal = str(error)
    if refusal is not None:
        assert "row 2" in refusal  # one of 20, 21 and 22
        assert abs(value) > 1e100
        return
    posterior = sampler.posterior_
    assert math.isfinite(posterior.log_density())
    for subproblem in posterior.subproblems:
        assert subproblem.probabilities.sum() == pytest.approx(1.0)
    if value > 1.0:
        assert sampler.labels_[0] not in sampler.labels_[20:23]


def test_rejuvenation_needs_exact_weights():
    """Marginal weights would count what is observed again twice."""
    for parameters in ({"weights": "marginal"}, {"resampling": "optimal"}):
        sampler = pt.SplitSMC(pt.Gaussian(), 1.0, rejuvenation=1, **parameters)
        with pytest.raises(ValueError, match="rejuvenation needs exact weights"):
            sampler.fit(G)


def test_refine_asks_how_the_state_was_made():
    sampler = pt.SplitSMC(pt.Gaussian(), 1.0, weights="marginal").fit(G).set_params(weights=None)
    with pytest.raises(ValueError, match="refine needs exact weights"):
        sampler.refine()


def test_a_prior_is_not_fitted_to_a_few_rows_of_a_stream():
    sampler = pt.SplitSMC()
    with pytest.raises(ValueError, match=r"1 rows are too few.*give a model, or begin with 10 rows"):
        sampler.partial_fit(G[:1])
    assert not hasattr(sampler, "n_features_in_")
    sampler.partial_fit(np.tile(G, (2, 1))).partial_fit(G[:1])
    assert len(sampler.labels_) == 13


def test_a_model_changed_in_place_stays_as_it_was():
    rate = np.array([0.5, 0.5])
    sampler = pt.SplitSMC(pt.Gaussian(rate=rate), 1.0).fit(G)
    before = sampler.predict_proba(G)
    rate[:] = 100.0
    np.testing.assert_array_equal(sampler.predict_proba(G), before)


def test_masked_values_are_refused():
    X = np.ma.masked_array(G, np.arange(G.size).reshape(G.shape) == 5)
    sampler = sampler_of("gaussian", "split").fit(G)
    before = answers(sampler)
    for call in (sampler.partial_fit, sampler.predict_proba, sampler.fit):
        with pytest.raises(ValueError, match="row 2, column 1 is masked"):
            call(X)
    assert answers(sampler) == before
