"""Expected losses against their definitions, and the minimisers against all partitions."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partita import losses
from partita.losses import BCUBED, BINDER, EXACT_BLOCKS, VI, Layout, Loss

LOSSES = [Loss(BCUBED), Loss(VI), Loss(BINDER), Loss(BINDER, 3.0, 0.5)]
seeds = st.integers(0, 2**32 - 1)


def all_partitions(n):
    """Every set partition of n items, as an (M, n) array of labels."""
    rows = [[0]]
    for _ in range(n - 1):
        rows = [[*row, label] for row in rows for label in range(max(row) + 2)]
    return np.array(rows)


def definition(loss, estimates, truths):
    """(M, J) losses of estimates (M, n) against truths (J, n), item by item or pair by pair."""
    one = (estimates[:, :, None] == estimates[:, None, :])[:, None]
    other = (truths[:, :, None] == truths[:, None, :])[None]
    if loss.code == BINDER:
        merged = (one & ~other).sum((2, 3)) / 2
        separated = (~one & other).sum((2, 3)) / 2
        return loss.false_merge * merged + loss.false_split * separated
    shared, own, true = (one & other).sum(3), one.sum(3), other.sum(3)
    if loss.code == VI:
        return np.log(own * true / shared**2).mean(2)
    precision, recall = shared / own, shared / true
    return 1 - (2 * precision * recall / (precision + recall)).mean(2)


def make_layout(rows, weights, block_size):
    """One subproblem whose particles are rows of block labels."""
    ids = {}
    cells = [
        ids.setdefault((frozenset(np.flatnonzero(row == label))), len(ids)) for row in rows for label in row
    ]
    ends = [np.array([0, end]) for end in (rows.shape[1], rows.shape[0], rows.size)]
    layout = Layout(*ends, np.array(cells, np.int32), np.array(weights, float), np.array(block_size))
    return layout, losses.weigh_clusters(layout, len(ids))


def random_particles(rng, n_blocks, n_rows, spread=None):
    """Distinct partitions near a random centre, with weights, heaviest first."""
    centre = rng.integers(0, rng.integers(1, n_blocks + 1), n_blocks)
    rows = {}
    for _ in range(n_rows):
        row = centre.copy()
        changed = rng.random(n_blocks) < (rng.random() if spread is None else spread)
        row[changed] = rng.integers(0, n_blocks, changed.sum())
        _, first, inverse = np.unique(row, return_index=True, return_inverse=True)
        rows[tuple(np.argsort(np.argsort(first))[inverse])] = None
    weights = np.sort(rng.dirichlet(np.full(len(rows), 0.5)))[::-1]
    return np.array(list(rows)), weights


def expected(loss, layout, clusters, labels):
    """`losses.expected_loss` of a labelling of the observations, which stand in order of block."""
    order, start = losses.grouped(labels, int(labels.max()) + 1)
    observation_block = np.repeat(np.arange(len(layout.block_size)), layout.block_size)
    return losses.expected_loss(loss, clusters, order, start, observation_block)


@given(seeds)
@settings(max_examples=30, deadline=None)
def test_expected_loss_is_the_weighted_mean_of_the_definition(seed):
    rng = np.random.default_rng(seed)
    rows, weights = random_particles(rng, int(rng.integers(1, 7)), 6)
    block_size = rng.integers(1, 4, rows.shape[1])
    layout, clusters = make_layout(rows, weights, block_size)
    truths = np.repeat(rows, block_size, axis=1)
    estimates = rng.integers(0, 4, (5, truths.shape[1]))  # divides blocks too
    for loss in LOSSES:
        wanted = definition(loss, estimates, truths) @ weights
        got = [expected(loss, layout, clusters, labels) for labels in estimates]
        np.testing.assert_allclose(got, wanted, atol=1e-9)


@given(seeds)
@settings(max_examples=30, deadline=None)
def test_exact_minimiser_beats_every_partition_of_the_observations(seed):
    rng = np.random.default_rng(seed)
    rows, weights = random_particles(rng, int(rng.integers(1, 6)), 6)
    block_size = np.ones(rows.shape[1], int)
    block_size[0] += rng.integers(0, 3)
    layout, clusters = make_layout(rows, weights, block_size)
    truths = np.repeat(rows, block_size, axis=1)
    candidates = all_partitions(truths.shape[1])
    for loss in LOSSES:
        estimate = np.repeat(losses.minimise(loss, layout, clusters), block_size)
        got = definition(loss, estimate[None], truths) @ weights
        least = (definition(loss, candidates, truths) @ weights).min()
        np.testing.assert_allclose(got, least, atol=1e-9)


def test_the_best_particle_wins_ties():
    layout, clusters = make_layout(np.array([[0, 1], [0, 0]]), [0.5, 0.5], [1, 1])
    assert losses.minimise(Loss(BINDER), layout, clusters).tolist() == [0, 1]
    layout, clusters = make_layout(np.array([[0, 0], [0, 1]]), [0.5, 0.5], [1, 1])
    assert losses.minimise(Loss(BINDER), layout, clusters).tolist() == [0, 0]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(4))
def test_local_search_cannot_be_improved(loss, seed):
    rng = np.random.default_rng(seed)
    n_blocks = EXACT_BLOCKS + 3 + 3 * seed
    rows, weights = random_particles(rng, n_blocks, 20, spread=0.4)
    block_size = rng.integers(1, 4, n_blocks)
    layout, clusters = make_layout(rows, weights, block_size)
    assert not losses.components(clusters).any(), "the case must not fall apart into small ones"
    estimate = losses.minimise(loss, layout, clusters)
    np.testing.assert_array_equal(estimate, losses.minimise(loss, layout, clusters))

    def value(blocks):
        return expected(loss, layout, clusters, np.repeat(blocks, block_size))

    least = value(estimate) - 1e-9
    assert all(least <= value(row) for row in rows)
    for b in range(n_blocks):
        for target in range(n_blocks):
            moved = estimate.copy()
            moved[b] = target if target in estimate else n_blocks  # or a cluster of its own
            assert least <= value(moved)
    for one, other in itertools.combinations(np.unique(estimate), 2):
        assert least <= value(np.where(estimate == one, other, estimate))


@pytest.mark.parametrize("loss", LOSSES)
def test_every_local_minimum_is_one(loss):
    """From any start the search ends where no move of a block, no union of clusters lowers the loss."""
    rng = np.random.default_rng(8)
    for _ in range(20):
        rows, weights = random_particles(rng, 8, 12, spread=0.4)
        _, clusters = make_layout(rows, weights, rng.integers(1, 4, 8))
        start = rng.integers(0, 4, 8)
        found = losses.local_minimum(loss, clusters, start)
        least = losses.partition_loss(loss, clusters, found) - 1e-9
        assert least <= losses.partition_loss(loss, clusters, start)
        for b, slot in itertools.product(range(8), range(9)):
            moved = found.copy()
            moved[b] = slot
            assert least <= losses.partition_loss(loss, clusters, moved)
        for one, other in itertools.combinations(np.unique(found), 2):
            joined = np.where(found == one, other, found)
            assert least <= losses.partition_loss(loss, clusters, joined)


def test_local_search_joins_clusters_that_no_single_move_would():
    """Four blocks together with probability 0.9: from two halves, a lone move breaks as much as it mends."""
    _, clusters = make_layout(np.array([[0, 0, 0, 0], [0, 0, 1, 1]]), [0.9, 0.1], [1, 1, 1, 1])
    for loss in LOSSES[:3]:
        assert len(set(losses.local_minimum(loss, clusters, np.array([0, 0, 1, 1])).tolist())) == 1


def test_local_search_mostly_finds_the_exact_minimum():
    rng = np.random.default_rng(5)
    found = []
    for _ in range(25):
        rows, weights = random_particles(rng, 7, 15, spread=0.5)
        layout, clusters = make_layout(rows, weights, rng.integers(1, 4, 7))
        cells = layout.cells.reshape(rows.shape).astype(np.int64)
        for loss in LOSSES:
            exact = losses.partition_loss(loss, clusters, losses.exact_minimiser(loss, clusters, cells[0]))
            search = losses.partition_loss(loss, clusters, losses.searched_minimiser(loss, clusters, cells))
            assert search >= exact - 1e-9
            found.append(search <= exact + 1e-9)
    assert np.mean(found) >= 0.9


def test_parts_that_never_meet_are_minimised_alone():
    """An unsplit subproblem of 18 blocks whose two halves never share a cluster: exact all the same."""
    rng = np.random.default_rng(2)
    halves = [random_particles(rng, 9, 12, spread=0.6)[0][:8] for _ in range(2)]
    weights = np.sort(rng.dirichlet(np.ones(8)))[::-1]
    layout, clusters = make_layout(np.hstack([halves[0], halves[1] + 9]), weights, np.ones(18, int))
    for loss in LOSSES:
        joint = losses.minimise(loss, layout, clusters)
        alone = [losses.minimise(loss, *make_layout(half, weights, np.ones(9, int))) for half in halves]
        np.testing.assert_array_equal(joint, np.concatenate([alone[0], alone[1] + 9]))


def test_clusters_collect_the_weights_of_their_particles():
    rows = np.array([[0, 0, 1], [0, 1, 1], [0, 1, 2]])
    _, clusters = make_layout(rows, [0.5, 0.3, 0.2], [2, 1, 1])
    blocks = [clusters.blocks[a:b].tolist() for a, b in itertools.pairwise(clusters.start)]
    assert blocks == [[0, 1], [2], [0], [1, 2], [1]]
    np.testing.assert_allclose(clusters.weight, [0.5, 0.7, 0.5, 0.3, 0.2])
    assert clusters.size.tolist() == [3, 1, 2, 2, 1]
    holders = [clusters.holders[a:b].tolist() for a, b in itertools.pairwise(clusters.block_start)]
    assert holders == [[0, 2], [0, 3, 4], [1, 3]]


def test_renumber_counts_and_restores_its_table():
    ids, table = np.array([7, 2, 7, 5], np.int32), np.full(8, -1, np.int32)
    assert losses.renumber(ids, table) == 3
    assert ids.tolist() == [0, 1, 0, 2]
    assert (table == -1).all()
