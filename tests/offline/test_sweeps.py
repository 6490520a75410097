"""The kernels that compiled models add for offline clustering, against the oracle's closed forms."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import partita as pt
from partita._core.kernel import kernel
from partita.models.scoring.families import join, log_marginal
from partita.models.scoring.partition import in_order, new_partition, put_in, take_out
from partita.offline.chain import CompiledChain
from partita.offline.sweeps import rows_of
from tests.helpers import oracle
from tests.helpers.effort import examples

KINDS = [pt.Gaussian, pt.MultivariateGaussian, pt.Categorical, pt.Bernoulli]
quick = examples(10)
seeds = st.integers(0, 2**32 - 1)
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
OFFSETS = [0.0, 1e4]


def problem(kind, seed, n, offset=0.0):
    """A model with random hyperparameters, and data; real ones lie so far from the prior's mean."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 4))
    model = oracle.random_model(kind, rng, d)
    X = oracle.random_data(model, rng, n, d)
    return model, X + offset if hasattr(model, "mean") else X, rng


@kernel
def joined(rows, sizes, child, first, second):
    d = rows.data.shape[1]
    join(rows.family, rows.statistics, child, first, second, sizes[first], sizes[second], d)
    return log_marginal(rows.family, rows.statistics, child, sizes[first] + sizes[second], d)


def meaningful(rows):
    """The statistics, less the share that removals have left, which depends on the history."""
    return rows.statistics[:, :-1] if hasattr(rows.family, "precision") else rows.statistics


@every_kind
def test_the_union_of_two_clusters(kind):
    """Its row is that of all members, its marginal likelihood the closed form; it may replace a part."""

    @quick
    @given(seeds, st.integers(1, 30), st.integers(1, 30), st.sampled_from(OFFSETS))
    def check(seed, one, other, offset):
        model, X, _ = problem(kind, seed, one + other, offset)
        labels = np.repeat([0, 1], [one, other])
        partition = new_partition(labels)
        expected = oracle.density(model)(X)
        whole = rows_of(model, X, new_partition(np.zeros(len(X), np.int64)))
        for child, first, second in ((3, 1, 2), (3, 2, 1), (1, 1, 2), (2, 1, 2), (1, 2, 1)):
            if child < len(partition.size):
                rows = rows_of(model, X, partition)
                found = joined(rows, partition.size, child, first, second)
                assert found == pytest.approx(expected, rel=1e-8, abs=1e-7 if offset else 1e-9)
                np.testing.assert_allclose(
                    meaningful(rows)[child], meaningful(whole)[1], rtol=1e-7, atol=1e-7
                )

    check()


@every_kind
def test_downdated_rows_are_those_of_the_members(kind):
    """After many sweeps every row equals one built anew, and the score is the oracle's."""

    @examples(5)
    @given(seeds, st.sampled_from(OFFSETS))
    def check(seed, offset):
        model, X, rng = problem(kind, seed, 25, offset)
        chain = CompiledChain(model, None, X, np.arange(25), math.log(1.5))
        for _ in range(20):
            chain.sweep(rng.permutation(25), rng.random((25, 2)))
        used = chain.partition.used
        fresh = rows_of(model, X, chain.partition)
        np.testing.assert_allclose(
            meaningful(chain.rows)[used], meaningful(fresh)[used], rtol=1e-6, atol=1e-6
        )
        partition = oracle.partition_of(range(25), chain.partition.label)
        assert chain.score() == pytest.approx(oracle.Scores(model, X, 1.5)(partition), rel=1e-7)

    check()


def check_partition(partition, labels):
    """All that must hold of a partition's arrays."""
    n, used = len(labels), partition.used[1:]
    assert (in_order(partition.label) == in_order(labels)).all()
    assert sorted(partition.ids.tolist()) == list(range(n + 1))
    assert (partition.ids[partition.place] == np.arange(n + 1)).all()
    assert partition.ids[0] == 0
    assert set(used.tolist()) == set(partition.label.tolist())
    for c in used:
        members, x = [], partition.head[c]
        for _ in range(partition.size[c]):
            members.append(x)
            assert partition.before[partition.after[x]] == x
            x = partition.after[x]
        assert x == partition.head[c]
        assert sorted(members) == np.flatnonzero(partition.label == c).tolist()
    assert partition.size.sum() == n


def test_a_partition_changes_by_one_observation():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, 12)
    partition = new_partition(in_order(labels))
    check_partition(partition, labels)
    for _ in range(300):
        x, y = rng.integers(12, size=2)
        origin = take_out(partition, x)
        if x == y:  # a cluster of its own: the id that was freed last
            c = put_in(partition, x, 0)
            labels[x] = labels.max() + 1
            assert c == origin or partition.size[origin] > 0
        else:
            put_in(partition, x, partition.label[y])
            labels[x] = labels[y]
        check_partition(partition, labels)
