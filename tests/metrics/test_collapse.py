"""Signs that learning has collapsed."""

import dataclasses

import numpy as np
import pytest

import partita as pt
from partita.metrics.left_out import EDGES, AttributeReliability
from partita.metrics.unlabelled import combined
from tests.helpers.posteriors import certain_posterior, pairs_posterior


def kinds(X, posterior, reliability=None):
    found = pt.metrics.signs_of_collapse(X, posterior, reliability)
    assert all(sign.message and sign.advice for sign in found)
    return [sign.kind for sign in found]


def rows(n, names):
    return [{"name": f"n{k % names}", "k": k // names % 1} for k in range(n)]


def test_an_ordinary_clustering_has_no_sign():
    assert kinds(rows(60, 20), certain_posterior(np.arange(60) % 20, 10.0)) == []


def test_identical_rows_apart():
    sign, *others = pt.metrics.signs_of_collapse(rows(60, 20), certain_posterior(np.arange(60), 10.0))
    assert sign.kind == "identical rows apart"
    assert sign.message.startswith("40 of 40 rows")
    assert [other.kind for other in others] == ["hardly any pair certain"]


def test_rows_that_are_all_different_may_be_alone():
    assert kinds(rows(20, 20), certain_posterior(np.arange(20), 10.0)) == ["hardly any pair certain"]


@pytest.mark.parametrize("alpha", [1e-6, 1e5])
def test_alpha_at_a_bound(alpha):
    assert kinds(rows(60, 20), certain_posterior(np.arange(60) % 20, alpha)) == ["alpha at a bound"]


def test_one_large_cluster():
    labels = np.maximum(np.arange(60) - 30, 0)
    (sign,) = pt.metrics.signs_of_collapse(rows(60, 60), certain_posterior(labels, 10.0))
    assert sign.kind == "one large cluster"
    assert "31 of 60 rows" in sign.message


def test_hardly_any_pair_certain():
    assert kinds(rows(60, 60), pairs_posterior(30, 0.7)) == ["hardly any pair certain"]
    assert kinds(rows(60, 60), pairs_posterior(30, 0.97)) == []


@pytest.mark.parametrize(("share", "kind"), [(0.5, ["too sure"]), (0.95, []), (np.nan, [])])
def test_probabilities_that_the_curve_contradicts(share, kind):
    said = np.array([np.nan] * (len(EDGES) - 1) + [share])
    reasons = tuple("" if np.isfinite(x) else "no" for x in said)
    one = AttributeReliability("a", "", 0.9, 0.1, said, np.full(len(EDGES), 0.02), reasons)
    curve = combined([one, dataclasses.replace(one, name="b")], np.full(30, 0.99), 60)
    assert kinds(rows(60, 60), pairs_posterior(30, 0.99), curve) == kind


def test_too_unsure():
    said = np.array([0.9] + [np.nan] * (len(EDGES) - 1))
    reasons = tuple("" if np.isfinite(x) else "no" for x in said)
    one = AttributeReliability("a", "", 0.9, 0.1, said, np.full(len(EDGES), 0.02), reasons)
    curve = combined([one, dataclasses.replace(one, name="b")], np.full(30, 0.3), 60)
    assert "too unsure" in kinds(rows(60, 60), pairs_posterior(30, 0.3), curve)


def test_numbers_are_rows_too():
    X = np.zeros((10, 2))
    assert "identical rows apart" in kinds(X, certain_posterior(np.arange(10), 1.0))
    with pytest.raises(ValueError, match="X has 3 rows, the posterior 10"):
        pt.metrics.signs_of_collapse(X[:3], certain_posterior(np.arange(10), 1.0))
