"""One contract for all scorers: whatever clusters go through, they are scored as if they were new."""

import math

import numpy as np
import pytest

import partita as pt
from partita.models.scoring.partition import new_partition, put_in, take_out
from partita.models.scoring.scored import ScoredPartition
from tests.helpers.every import MODELS, take
from tests.helpers.oracle import Poisson

each_model = pytest.mark.parametrize("name", MODELS)


def started(name, n=12):
    """A problem, and its rows in three clusters, scored."""
    problem = MODELS[name].fixed(n)
    problem.model.check(problem.rows.shape[1] if isinstance(problem.rows, np.ndarray) else 1)
    rows = problem.rows if isinstance(problem.rows, np.ndarray) else problem.model.validate(problem.rows)
    if isinstance(rows, np.ndarray):
        rows = rows.astype(float)
    partition = new_partition(np.arange(n) % 3)
    return problem, partition, ScoredPartition(problem.model, rows, partition, check=False)


def expected(problem, partition, out=-1):
    """log p(c) of the clusters in use, in closed form; one observation may be out of all."""
    label = np.where(np.arange(len(partition.label)) == out, -1, partition.label)
    members = [np.flatnonzero(label == c) for c in partition.used[1:]]
    return [problem.log_marginal(take(problem.rows, held)) for held in members]


@each_model
def test_observations_come_and_go(name):
    problem, partition, scored = started(name)
    np.testing.assert_allclose(scored.log_likelihood(), expected(problem, partition), rtol=1e-9)
    rng = np.random.default_rng(0)
    for x in rng.integers(12, size=25).tolist():
        scored.shrink(take_out(partition, x), x)
        used = partition.used.copy()
        gains = scored.gains(x, used)
        without = dict(zip(used[1:].tolist(), expected(problem, partition, x), strict=True))
        c = int(rng.choice(used))
        size = int(partition.size[c])
        joined = put_in(partition, x, c)
        scored.grow(joined, x)
        now = dict(zip(partition.used[1:].tolist(), expected(problem, partition), strict=True))
        gain = math.log(max(size, 1)) + now[int(joined)] - without.get(c, 0.0)
        assert gains[used.tolist().index(c)] == pytest.approx(gain, abs=1e-7)
    np.testing.assert_allclose(scored.log_likelihood(), expected(problem, partition), rtol=1e-7)


@each_model
def test_unions(name):
    problem, partition, scored = started(name)
    first, second = partition.used[1:3]
    union = np.flatnonzero(np.isin(partition.label, [first, second]))
    found = scored.unions(np.array([first]), np.array([second]))
    assert found[0] == pytest.approx(problem.log_marginal(take(problem.rows, union)), rel=1e-9)


@each_model
def test_log_likelihood_of_clusters_is_that_of_each(name):
    problem = MODELS[name].fixed(9)
    clusters = [take(problem.rows, held) for held in ([0, 3, 4], [1], [2, 5, 6, 7, 8])]
    found = problem.model.log_likelihood(clusters)
    np.testing.assert_allclose(
        found, [problem.log_marginal(cluster) for cluster in clusters], rtol=1e-9, atol=1e-12
    )
    np.testing.assert_allclose(problem.model.log_likelihood(clusters[:1]), found[:1], rtol=1e-12)
    assert len(problem.model.log_likelihood([])) == 0


@pytest.mark.parametrize(
    ("clusters", "message"),
    [
        ([[[0.0]], []], "cluster 1 is empty"),
        ([[0.0, 1.0]], "cluster 0 must have rows of numbers"),
        ([[[0.0]], [[0.0], [1.0, 2.0]]], "cluster 1 must have rows of numbers, all of one length"),
        ([[[0.0]], [[0.0, 1.0]]], "rows of different lengths"),
        ([[[5.0]], [[0.0], [math.nan]]], "cluster 1, row 1, column 0 is NaN"),
    ],
)
def test_bad_clusters_are_named(clusters, message):
    with pytest.raises(ValueError, match=message):
        pt.Gaussian().log_likelihood(clusters)


def test_clusters_may_come_one_by_one():
    rows = [[[0.0], [1.0]], [[5.0]]]
    found = pt.Gaussian().log_likelihood(iter(cluster) for cluster in rows)
    np.testing.assert_array_equal(found, pt.Gaussian().log_likelihood(rows))


def test_what_is_no_list_of_clusters():
    for clusters in (None, [1.0, 2.0]):
        with pytest.raises(TypeError, match="list of clusters"):
            pt.Gaussian().log_likelihood(clusters)


class Means(pt.Model):
    """A model that does not know what nothing is."""

    def statistics(self, X):
        return np.column_stack([X[:, 0], X[:, 0] ** 2])

    def log_marginal(self, totals, sizes):
        assert (sizes > 0).all()
        spread = totals[:, 1] / sizes - (totals[:, 0] / sizes) ** 2
        return -2.0 - sizes - 3.0 * sizes * spread - 0.5 * np.log(sizes)


def test_a_model_is_never_asked_for_an_empty_cluster():
    X = np.array([[0.0], [0.2], [7.0], [0.1], [7.1], [30.0]])
    found = pt.Gibbs(Means(), 1.0, max_sweeps=20, random_state=0).fit(X)
    assert found.labels_.tolist() == [0, 0, 1, 0, 1, 2]
    assert pt.SplitSMC(Means(), 1.0, 10, rejuvenation=2).fit(X).labels_.tolist() == [0, 0, 1, 0, 1, 2]


class Sized(Poisson):
    """A user's model that has, for reasons of its own, what ``Record`` calls by this name."""

    size = "large"


def test_an_attribute_of_a_users_model_is_not_taken_for_a_size():
    X = np.random.default_rng(0).poisson(3.0, (40, 1))
    found = [pt.SplitSMC(model(), alpha="auto", random_state=0).fit(X) for model in (Sized, Poisson)]
    np.testing.assert_array_equal(found[0].labels_, found[1].labels_)
    assert found[0].alpha_ == found[1].alpha_
