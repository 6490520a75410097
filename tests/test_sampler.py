"""The estimators: the same answer every time, and no change at all on bad input."""

import itertools
import math
import re
import signal
import sys
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln
from sklearn.exceptions import NotFittedError

import partita as pt


class Poisson(pt.Model):
    """A user's own model: the example of `partita.Model`."""

    def __init__(self, shape=1.0, rate=1.0):
        self.shape, self.rate = shape, rate

    def statistics(self, X):
        return np.column_stack([X[:, 0], gammaln(X[:, 0] + 1.0)])

    def log_marginal(self, totals, sizes):
        shape, rate = self.shape + totals[:, 0], self.rate + sizes
        return (
            gammaln(shape)
            - gammaln(self.shape)
            - totals[:, 1]
            + self.shape * np.log(self.rate)
            - shape * np.log(rate)
        )


class Fused(Poisson):
    """A user's model that fails at one chosen call. The fuse belongs to the class, so clones share it."""

    remaining = math.inf
    failure = "raise"
    calls = 0

    def log_marginal(self, totals, sizes):
        Fused.calls += 1
        Fused.remaining -= 1
        assert len(sizes) > 0, "a user's model need not know what to do with no clusters"
        result = super().log_marginal(totals, sizes)
        if Fused.remaining != 0:
            return result
        if Fused.failure == "raise":
            raise ZeroDivisionError("the user's model fails")
        if Fused.failure == "shape":
            return np.append(result, 0.0)
        return np.full_like(result, {"nan": np.nan, "inf": np.inf}[Fused.failure])


@pytest.fixture(autouse=True)
def intact_fuse():
    Fused.remaining, Fused.failure, Fused.calls = math.inf, "raise", 0
    yield
    Fused.remaining = math.inf


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
    "user": lambda: Poisson(1.0, 0.04),
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
            "rejuvenation": 1,
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
each_variant = pytest.mark.parametrize("variant", VARIANTS)


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
        "n_features_in_": sampler.n_features_in_,
    }


@cache
def uninterrupted(model, variant):
    return answers(sampler_of(model, variant).fit(rows_of(model)))


@cache
def refined(model, variant):
    return answers(sampler_of(model, variant).fit(rows_of(model)).refine(2))


def saved_and_loaded(sampler):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.partita"
        sampler.save(path)
        model = sampler.model if isinstance(sampler.model, Poisson) else None
        return type(sampler).load(path, model=model)


# ---------------------------------------------------------------------- the same answer every time


@each_model
@each_variant
@settings(max_examples=8, deadline=None)
@given(cuts=st.sets(st.integers(1, N - 1), max_size=12))
def test_any_batching_gives_the_same_answer(model, variant, cuts):
    sampler = sampler_of(model, variant)
    for batch in np.split(rows_of(model), sorted(cuts)):
        sampler.partial_fit(batch)
    assert answers(sampler) == uninterrupted(model, variant)


@each_model
@each_variant
def test_one_row_at_a_time_gives_the_same_answer(model, variant):
    sampler = sampler_of(model, variant)
    for row in rows_of(model):
        sampler.partial_fit(row[None])
    assert answers(sampler) == uninterrupted(model, variant)


@each_model
@each_variant
@settings(max_examples=6, deadline=None)
@given(cuts=st.dictionaries(st.integers(1, N), st.booleans(), min_size=1, max_size=5))
def test_saving_and_loading_at_any_point_gives_the_same_answer(model, variant, cuts):
    """At each cut the batch ends; where true, the sampler goes through a file."""
    sampler = sampler_of(model, variant)
    for batch, end in zip(np.split(rows_of(model), sorted(cuts)), [*sorted(cuts), N], strict=True):
        if len(batch):
            sampler.partial_fit(batch)
        if cuts.get(end, True):
            sampler = saved_and_loaded(sampler)
    assert answers(sampler) == uninterrupted(model, variant)


@pytest.mark.parametrize("model", ["gaussian", "user"])
@pytest.mark.parametrize("variant", ["rejuvenation", "optimal", "auto"])
def test_saving_and_loading_after_every_row_gives_the_same_answer(model, variant):
    sampler = sampler_of(model, variant)
    for row in rows_of(model):
        sampler = saved_and_loaded(sampler.partial_fit(row[None]))
    assert answers(sampler) == uninterrupted(model, variant)


@each_model
@pytest.mark.parametrize("variant", EXACT)
def test_refining_after_loading_gives_the_same_answer(model, variant):
    sampler = saved_and_loaded(sampler_of(model, variant).fit(rows_of(model)))
    assert answers(sampler.refine(2)) == refined(model, variant)
    sampler = sampler_of(model, variant)
    sampler.partial_fit(rows_of(model)[:23]).partial_fit(rows_of(model)[23:])
    assert answers(saved_and_loaded(sampler.refine(1)).refine(1)) == refined(model, variant)


@each_model
@pytest.mark.parametrize("variant", EXACT)
def test_a_stream_goes_on_after_refining_and_loading(model, variant):
    first, more = rows_of(model), rows_of(model, 20, seed=4)
    expected = answers(sampler_of(model, variant).fit(first).refine(1).partial_fit(more))
    sampler = saved_and_loaded(sampler_of(model, variant).fit(first).refine(1))
    for row in more:
        sampler.partial_fit(row[None])
    assert answers(sampler) == expected


@each_model
@each_variant
def test_fit_forgets(model, variant):
    sampler = sampler_of(model, variant).fit(rows_of(model, 30, seed=9))
    for _ in range(2):
        assert answers(sampler.fit(rows_of(model))) == uninterrupted(model, variant)


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
each_bad = pytest.mark.parametrize("case", BAD_ROWS)


def all_of(*words):
    """A pattern for messages that have all the words in them, in any order."""
    return "(?is)" + "".join(f"(?=.*{re.escape(word)})" for word in words)


@each_bad
@pytest.mark.parametrize("variant", ["split", "auto, rejuvenation"])
@pytest.mark.parametrize("method", ["fit", "partial_fit", "predict_proba", "predict"])
def test_bad_rows_are_named_and_change_nothing(case, variant, method):
    model, X, words = BAD_ROWS[case]
    if method == "fit" and case in ("too narrow", "too wide"):
        return  # a fit forgets the old width
    data = rows_of(model)
    sampler = sampler_of(model, variant).fit(data[:40])
    before = answers(sampler)
    with pytest.raises(ValueError, match=all_of(*words)):
        getattr(sampler, method)(X)
    assert answers(sampler) == before
    sampler.partial_fit(data[40:])
    assert answers(sampler) == uninterrupted(model, variant)


@each_bad
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_bad_rows_leave_a_new_sampler_new(case, method):
    model, X, words = BAD_ROWS[case]
    if case in ("too narrow", "too wide"):
        return  # any width will do for a new one
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


# ---------------------------------------------------------------------- a user's model that fails


def fused(rejuvenation, seed=2):
    return pt.SplitSMC(Fused(1.0, 0.04), 1.0, 10, rejuvenation=rejuvenation, random_state=seed)


FIRST, BATCH, LAST = np.split(rows_of("user", 42), [30, 36])
OPERATIONS = {
    "one row": lambda sampler: sampler.partial_fit(BATCH[:1]),
    "a batch": lambda sampler: sampler.partial_fit(BATCH),
    "fit": lambda sampler: sampler.fit(np.column_stack([BATCH, BATCH])),  # another width
    "refine": lambda sampler: sampler.refine(1),
    "predict": lambda sampler: sampler.predict_proba(BATCH),
}


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("rejuvenation", [0, 2])
@pytest.mark.parametrize("failure", ["raise", "nan", "inf", "shape"])
def test_a_failing_model_changes_nothing(operation, rejuvenation, failure):
    """Let each of the calls to the user's model fail in turn."""
    act = OPERATIONS[operation]
    sampler = fused(rejuvenation).fit(FIRST)
    before = answers(sampler)
    expected = answers(fused(rejuvenation).fit(FIRST).partial_fit(LAST))
    other = fused(rejuvenation).fit(FIRST)
    Fused.calls = 0
    act(other)
    calls = Fused.calls
    Fused.failure = failure
    for k in sorted({*range(1, min(calls, 20) + 1), calls // 2 + 1, calls}):
        Fused.remaining = k
        with pytest.raises(
            ZeroDivisionError if failure == "raise" else ValueError,
            match="fails" if failure == "raise" else "Fused.log_marginal",
        ):
            act(sampler)
        Fused.remaining = math.inf
        assert answers(sampler) == before
    assert answers(sampler.partial_fit(LAST)) == expected


@pytest.mark.parametrize("failure", ["raise", "nan"])
def test_a_model_that_fails_in_the_first_batch_leaves_a_new_sampler_new(failure):
    for k in (1, 2, 10, 30):
        sampler = fused(0)
        before = dict(vars(sampler))
        Fused.remaining, Fused.failure = k, failure
        with pytest.raises((ZeroDivisionError, ValueError)):
            sampler.partial_fit(FIRST)
        assert vars(sampler) == before
        Fused.remaining = math.inf
        assert answers(sampler.fit(FIRST)) == answers(fused(0).fit(FIRST))


def test_the_row_at_which_a_model_fails_is_named():
    sampler = fused(0).fit(FIRST)
    Fused.remaining, Fused.failure = 4, "nan"
    with pytest.raises(ValueError, match=r"row 3: Fused\.log_marginal"):
        sampler.partial_fit(BATCH)


class Ragged(Poisson):
    """A user's mistake: as many statistics as the largest value of the batch."""

    def statistics(self, X):
        return np.eye(int(X.max()) + 1)[X[:, 0].astype(int)]

    def log_marginal(self, totals, sizes):
        return -np.log1p(totals).sum(axis=1) - sizes


def test_statistics_must_keep_their_width():
    sampler = pt.SplitSMC(Ragged(), 1.0, 5).fit([[2], [2], [0]])
    before = answers(sampler)
    for call in (sampler.partial_fit, sampler.predict_proba):
        with pytest.raises(ValueError, match=r"Ragged\.statistics"):
            call([[3], [1]])
        assert answers(sampler) == before
    with pytest.raises(ValueError, match=r"Ragged\.statistics"):
        pt.SplitSMC(Ragged(), 1.0, 5).fit([[0], [2], [1]])


class Forgetful(pt.Model):
    """A model without methods."""


def test_a_model_without_methods_says_what_is_missing():
    sampler = pt.SplitSMC(Forgetful())
    with pytest.raises(TypeError, match=r"Forgetful must define statistics\(X\)"):
        sampler.fit(G)
    Forgetful.statistics = lambda self, X: X
    try:
        with pytest.raises(TypeError, match="Forgetful must define log_marginal"):
            sampler.fit(G)
    finally:
        del Forgetful.statistics
    assert not hasattr(sampler, "n_features_in_")


# ---------------------------------------------------------------------- interruptions


def interrupted(call, at):
    """Send SIGINT, as Ctrl-C does, at a chosen line of the package; returns how many lines there were."""
    package = str(Path(pt.__file__).parent)
    lines = 0

    def watch(frame, event, argument):
        nonlocal lines
        if event == "line":
            lines += 1
            if lines == at:
                signal.raise_signal(signal.SIGINT)
        return watch if frame.f_code.co_filename.startswith(package) else None

    trace, handler = sys.gettrace(), signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.settrace(watch)
    try:
        call()
    finally:
        sys.settrace(trace)
        signal.signal(signal.SIGINT, handler)
    return lines


INTERRUPTIONS = {
    "one row": lambda sampler, rows: sampler.partial_fit(rows[30:31]),
    "a batch": lambda sampler, rows: sampler.partial_fit(rows[30:38]),
    "fit": lambda sampler, rows: sampler.fit(rows[10:20]),
    "refine": lambda sampler, rows: sampler.refine(1),
    "predict": lambda sampler, rows: sampler.predict_proba(rows[30:33]),
}


@pytest.mark.parametrize("operation", INTERRUPTIONS)
@pytest.mark.parametrize("variant", ["split", "auto, rejuvenation"])
@pytest.mark.parametrize("model", ["gaussian", "user"])
def test_an_interrupted_call_leaves_nothing_half_done(model, variant, operation):
    """It happens as a whole or not at all, or ends with one of the rows of a batch."""
    rows, act = rows_of(model), INTERRUPTIONS[operation]

    def fresh():
        sampler = sampler_of(model, variant).fit(rows[:30])
        sampler.labels_  # noqa: B018  so that an old answer could stay behind
        return sampler

    done = fresh()
    lines = interrupted(lambda: act(done, rows), at=-1)
    allowed = [fresh(), done]
    if operation == "a batch":
        allowed += [fresh().partial_fit(rows[30:stop]) for stop in range(31, 38)]
    then = {str(answers(twin)): answers(twin.partial_fit(rows[40:50])) for twin in allowed}
    for at in sorted(set(np.linspace(1, lines, 30).astype(int).tolist())):
        sampler = fresh()
        with pytest.raises(KeyboardInterrupt):
            interrupted(lambda sampler=sampler: act(sampler, rows), at)
        state = str(answers(sampler))
        assert state in then
        assert answers(sampler.partial_fit(rows[40:50])) == then[state]


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
