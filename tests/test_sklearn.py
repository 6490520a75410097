"""The estimators as scikit-learn expects them."""

import copy
import os
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone, is_clusterer
from sklearn.cluster import DBSCAN
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

import partita as pt
from tests.helpers.effort import effort

GIVEN = [
    pt.SplitSMC(pt.Gaussian(), n_particles=3),
    pt.SMC(pt.Gaussian(), n_particles=3),
    pt.Greedy(pt.Gaussian()),
    pt.Gibbs(pt.Gaussian(), max_sweeps=10),
    pt.Agglomerative(pt.Gaussian()),
]
FITTED = [  # whose hyperparameters are learnt at every fit, which takes far longer
    pt.SplitSMC(n_particles=10),
    pt.SMC(n_particles=10),
    pt.Greedy(),
    pt.Gibbs(max_sweeps=30),
    pt.Agglomerative(),
]
ESTIMATORS = effort(GIVEN, GIVEN + FITTED)
EXPECTED_FAILURES: dict[str, str] = {}  # name of the check: reason

RNG = np.random.default_rng(4)
TRUTH = RNG.integers(0, 4, 60)
X = np.array([[0.0, 900.0], [30.0, 100.0], [60.0, 500.0], [30.0, 600.0]])[TRUTH] + RNG.normal(
    size=(60, 2)
) * [1, 20]
MODEL = pt.Gaussian(rate=0.05, precision=0.01)


def applicable_checks():
    """All but one that needs an environment variable before anything is imported; it follows below."""
    checks = []
    for estimator in ESTIMATORS:
        for instance, check in estimator_checks_generator(estimator):
            inner = check.func
            name = getattr(inner, "__name__", None) or inner.func.__name__
            reason = EXPECTED_FAILURES.get(name)
            marks = [pytest.mark.xfail(reason=reason, strict=True)] if reason else []
            if name != "check_array_api_input":
                checks.append(
                    pytest.param(instance, check, marks=marks, id=f"{type(instance).__name__}-{name}")
                )
    return checks


@pytest.mark.parametrize(("estimator", "check"), applicable_checks())
def test_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_the_check_of_array_dispatch():
    code = (
        "import partita as pt\n"
        "from sklearn.utils.estimator_checks import check_array_api_input\n"
        "for estimator in (pt.SplitSMC(pt.Gaussian(), n_particles=10), pt.Greedy(pt.Gaussian())):\n"
        "    check_array_api_input(type(estimator).__name__, estimator, array_namespace='numpy',\n"
        "                          expect_only_array_outputs=False)\n"
    )
    environment = os.environ | {"SCIPY_ARRAY_API": "1"}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_the_checks_are_many():
    assert len(applicable_checks()) > 100


def make(kind):
    parameters = {} if kind is pt.Greedy else {"n_particles": 7, "merging": "multinomial"}
    return kind(pt.Gaussian(rate=0.05), alpha=2.0, rejuvenation=1, random_state=3, **parameters)


each_kind = pytest.mark.parametrize("kind", [pt.SplitSMC, pt.SMC, pt.Greedy])


@each_kind
def test_clone(kind):
    sampler = make(kind).fit(X)
    copied = clone(sampler)
    assert type(copied) is kind
    assert not hasattr(copied, "labels_")
    assert not hasattr(copied, "n_features_in_")
    assert copied.model is not sampler.model
    ours, theirs = sampler.get_params(), copied.get_params()
    assert str(ours.pop("model")) == str(theirs.pop("model"))
    assert ours == theirs
    assert copied.fit(X).posterior_.log_density() == sampler.posterior_.log_density()


@each_kind
def test_parameters(kind):
    names = {"model", "alpha", "rejuvenation", "random_state"}
    if kind is not pt.Greedy:
        names |= {"n_particles", "resampling", "weights", "merging", "longest_odds"}
    if kind is not pt.SMC:
        names |= {"keys", "candidates"}
    assert set(kind().get_params(deep=False)) == names
    sampler = make(kind)
    assert {"model__shape", "model__rate", "model__mean", "model__precision"} <= set(sampler.get_params())
    assert sampler.get_params()["model__rate"] == 0.05
    assert sampler.set_params(alpha=3.0, model__rate=0.2) is sampler
    assert (sampler.alpha, sampler.model.rate) == (3.0, 0.2)
    assert repr(sampler).startswith(f"{kind.__name__}(")
    with pytest.raises(ValueError, match="Invalid parameter 'n_clusters'"):
        sampler.set_params(n_clusters=3)


def test_the_fixed_parameters_of_greedy():
    greedy = pt.Greedy(MODEL, alpha=1.0)
    assert (greedy.n_particles, greedy.resampling, greedy.merging) == (1, "greedy", "k-best")
    with pytest.raises(ValueError, match="Invalid parameter 'n_particles'"):
        greedy.set_params(n_particles=5)
    with pytest.raises(TypeError, match="n_particles"):
        pt.Greedy(n_particles=5)
    greedy.fit(X)
    assert {len(s.probabilities) for s in greedy.posterior_.subproblems} == {1}


@each_kind
def test_parameters_are_read_at_the_next_fit(kind):
    fresh = kind(MODEL, alpha=5.0, random_state=0).fit(X)
    changed = kind(MODEL, alpha=1.0, random_state=0).fit(X).set_params(alpha=5.0).fit(X)
    assert changed.posterior_.log_density() == fresh.posterior_.log_density()


@each_kind
def test_fitting_leaves_the_parameters_alone(kind):
    sampler = make(kind)
    before = {name: copy.deepcopy(value) for name, value in sampler.get_params().items() if name != "model"}
    model = sampler.model
    sampler.fit(X).partial_fit(X).refine(1)
    assert sampler.model is model
    assert {name: value for name, value in sampler.get_params().items() if name != "model"} == before


@each_kind
def test_a_clusterer(kind):
    sampler = kind(pt.Gaussian(rate=[0.5, 200.0], mean=[30.0, 500.0], precision=0.001), alpha=1.0)
    assert is_clusterer(sampler)
    labels = sampler.fit_predict(X)
    np.testing.assert_array_equal(labels, sampler.labels_)
    assert labels.dtype.kind == "i"
    assert adjusted_rand_score(TRUTH, labels) == 1.0
    _, first = np.unique(labels, return_index=True)
    assert (np.diff(first) > 0).all()  # numbered in order of first appearance
    np.testing.assert_array_equal(sampler.fit_predict(X, y=TRUTH[::-1]), labels)  # y is ignored


@each_kind
def test_pipeline(kind):
    pipeline = make_pipeline(StandardScaler(), kind(pt.Gaussian(rate=0.01, precision=0.005), alpha=1.0))
    labels = pipeline.fit_predict(X)
    assert adjusted_rand_score(TRUTH, labels) == 1.0
    np.testing.assert_array_equal(pipeline.predict(X), labels)
    np.testing.assert_array_equal(pipeline[-1].labels_, labels)
    assert pipeline.predict([[1e4, 1e4]]).tolist() == [-1]
    probabilities = pipeline.predict_proba(X[:3])
    assert probabilities.shape == (3, 5)
    scaled = StandardScaler().fit_transform(X)
    np.testing.assert_array_equal(clone(pipeline[-1]).fit_predict(scaled), labels)
    assert pipeline.get_params()[f"{kind.__name__.lower()}__model__rate"] == 0.01
    assert clone(pipeline).fit_predict(X).tolist() == labels.tolist()


def test_no_model_is_a_gaussian_fitted_to_the_data():
    sampler = pt.SplitSMC(n_particles=10).fit(X)
    assert sampler.model is None
    assert isinstance(sampler.model_, pt.Gaussian)
    assert adjusted_rand_score(TRUTH, sampler.labels_) > 0.9
    again = pt.SplitSMC(sampler.model_, n_particles=10).fit(X)
    np.testing.assert_array_equal(again.labels_, sampler.labels_)


@each_kind
def test_a_deep_copy_goes_its_own_way(kind):
    sampler = make(kind).fit(X[:40])
    copied = copy.deepcopy(sampler)
    before = sampler.posterior_.log_density()
    assert copied.posterior_.log_density() == before
    copied.partial_fit(X[40:])
    assert sampler.posterior_.log_density() == before
    assert len(sampler.labels_) == 40
    assert copied.posterior_.log_density() == make(kind).fit(X).posterior_.log_density()
    sampler.partial_fit(X[40:])
    assert sampler.posterior_.log_density() == copied.posterior_.log_density()


class Table:
    """What data frames have in common: an array inside."""

    def __init__(self, array):
        self.array, self.shape = array, array.shape

    def __array__(self, dtype=None, copy=None):
        return np.array(self.array, dtype=dtype)

    def __len__(self):
        return len(self.array)


@pytest.mark.parametrize(
    "wrap", [Table, np.ndarray.tolist, lambda X: X.astype(np.float32), np.asfortranarray]
)
def test_any_table_will_do(wrap):
    data = X.astype(np.float32).astype(float)
    expected = pt.SplitSMC(MODEL, 1.0, 10).fit(data)
    sampler = pt.SplitSMC(MODEL, 1.0, 10).fit(wrap(data))
    np.testing.assert_array_equal(sampler.labels_, expected.labels_)
    np.testing.assert_array_equal(sampler.predict_proba(wrap(data)), expected.predict_proba(data))
    assert sampler.n_features_in_ == 2


def test_the_shape_of_an_estimator_like_any_other():
    """Code written for another clusterer works."""
    for clusterer in (DBSCAN(eps=30.0), pt.SplitSMC(pt.Gaussian(rate=[0.5, 200.0], precision=1e-3), 1.0)):
        labels = clone(clusterer).fit(X).labels_
        assert adjusted_rand_score(TRUTH, labels) > 0.9
