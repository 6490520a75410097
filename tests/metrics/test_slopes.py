"""The slope of truth on evidence, where it is known."""

import numpy as np
import pytest

import partita as pt
from partita.learning.known import whole_clusters
from partita.metrics.slopes import choice_slope, slope_of_truth


@pytest.mark.parametrize("slope", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_logistic_regression_recovers_a_slope(slope, scale):
    rng = np.random.default_rng(0)
    evidence = scale * rng.standard_normal(4000)
    same = rng.random(4000) < 1.0 / (1.0 + np.exp(0.5 - slope * evidence))
    found = slope_of_truth(evidence, same)
    assert found.slope == pytest.approx(slope, abs=3 * found.error)
    assert found.error < 0.2
    assert found.cases == 4000


@pytest.mark.parametrize("slope", [0.3, 1.0, 2.0])
def test_choices_recover_a_slope(slope):
    rng = np.random.default_rng(0)
    evidence = 2.0 * rng.standard_normal((3000, 5))
    gumbel = slope * evidence + rng.gumbel(size=evidence.shape)
    chosen = gumbel.argmax(axis=1)
    rows = np.arange(len(evidence))
    evidence[rows, 0], evidence[rows, chosen] = evidence[rows, chosen], evidence[rows, 0]
    found = choice_slope(evidence)
    assert found.slope == pytest.approx(slope, abs=3 * found.error)


def test_evidence_that_decides_everything_has_a_finite_slope():
    found = slope_of_truth([-500.0, -300.0, 400.0], [False, False, True])
    assert np.isfinite(found).all()


def points(rng, n=60, each=6):
    labels = np.repeat(np.arange(n), each)
    return rng.normal(0.0, 6.0, (n, 2))[labels] + rng.normal(size=(n * each, 2)), labels


def test_a_model_that_is_too_sure_has_a_slope_below_one():
    X, labels = points(np.random.default_rng(0))
    honest = pt.Gaussian(shape=50.0, rate=50.0, mean=0.0, precision=1 / 36)
    too_sure = pt.Gaussian(shape=50.0, rate=10.0, mean=0.0, precision=1 / 36)  # a fifth of the variance
    right = pt.metrics.evidence_slopes(honest, X, labels, alpha=12.0)
    wrong = pt.metrics.evidence_slopes(too_sure, X, labels, alpha=12.0)
    assert right.observations.slope == pytest.approx(1.0, abs=3 * right.observations.error)
    for level in ("observations", "merges", "pairs"):
        assert getattr(wrong, level).slope < 0.6 * getattr(right, level).slope


def test_records():
    rows = [{"name": f"{'abcdefghij'[k % 10]}nna {k % 10}", "city": "xy"[k % 2]} for k in range(60)]
    model = pt.Record.infer(rows).fit_prior(rows)
    found = pt.metrics.evidence_slopes(model, rows, [k % 10 for k in range(60)], alpha=2.0, n_records=40)
    assert 30 <= found.observations.cases <= 40
    assert found.observations.slope > 0.0


def test_labels_without_a_case():
    X, labels = points(np.random.default_rng(0), 5, 2)
    model = pt.Gaussian()
    alone = pt.metrics.evidence_slopes(model, X, np.arange(10), alpha=1.0)
    assert alone.merges is None
    assert alone.pairs is None
    assert pt.metrics.evidence_slopes(model, X, np.zeros(10), alpha=1.0).merges is None
    with pytest.raises(ValueError, match="labels_true has 3 items, X 10"):
        pt.metrics.evidence_slopes(model, X, labels[:3], alpha=1.0)
    with pytest.raises(ValueError, match="alpha must be a positive number"):
        pt.metrics.evidence_slopes(model, X, labels, alpha=0.0)


def test_whole_clusters():
    codes = np.repeat(np.arange(20), 5)
    rows = whole_clusters(codes, 32, np.random.default_rng(0))
    assert len(rows) == 30
    assert set(np.bincount(codes[rows], minlength=20).tolist()) == {0, 5}
