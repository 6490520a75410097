"""Expected losses against their definitions, and the minimisers against all partitions."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.posterior import losses
from partita.posterior.losses import BCUBED, BINDER, EXACT_BLOCKS, VI, Layout, Loss
from partita.posterior.losses._minimise import (
    connect,
    losses_of_particles,
    partition_loss,
    search_from_particles,
    smallest_names,
)
from partita.posterior.losses._search import local_minimum, new_search
from partita.posterior.losses._terms import rounding, tabulate
from tests.helpers.effort import examples

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
    layout = Layout(*ends, np.array(cells), np.array(weights, float), np.array(block_size))
    return layout, losses.take_census(layout)


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


def expected(loss, layout, census, labels):
    """`losses.expected_loss` of a labelling of the observations, which stand in order of block."""
    observation_block = np.repeat(np.arange(len(layout.block_size)), layout.block_size)
    return losses.expected_loss(loss, census.clusters, labels, observation_block)


def value(loss, clusters, assignment):
    """Σ f of an assignment of all blocks."""
    n = clusters.block_size.sum()
    return partition_loss(tabulate(loss, n), clusters, np.arange(len(assignment)), assignment)


def descend(loss, clusters, start):
    """Local search over all blocks, from any labels of theirs."""
    n, blocks = clusters.block_size.sum(), np.arange(len(start))
    start = smallest_names(blocks, start)
    return local_minimum(tabulate(loss, n), clusters, new_search(clusters), blocks, start, rounding(loss, n))


@given(seeds)
@examples(30)
def test_expected_loss_is_the_weighted_mean_of_the_definition(seed):
    rng = np.random.default_rng(seed)
    rows, weights = random_particles(rng, int(rng.integers(1, 7)), 6)
    block_size = rng.integers(1, 4, rows.shape[1])
    layout, census = make_layout(rows, weights, block_size)
    truths = np.repeat(rows, block_size, axis=1)
    estimates = rng.integers(0, 4, (5, truths.shape[1]))  # divides blocks too
    for loss in LOSSES:
        wanted = definition(loss, estimates, truths) @ weights
        got = [expected(loss, layout, census, labels) for labels in estimates]
        np.testing.assert_allclose(got, wanted, atol=1e-9)


@given(seeds)
@examples(30)
def test_exact_minimiser_beats_every_partition_of_the_observations(seed):
    rng = np.random.default_rng(seed)
    rows, weights = random_particles(rng, int(rng.integers(1, 6)), 6)
    block_size = np.ones(rows.shape[1], int)
    block_size[0] += rng.integers(0, 3)
    layout, census = make_layout(rows, weights, block_size)
    truths = np.repeat(rows, block_size, axis=1)
    candidates = all_partitions(truths.shape[1])
    for loss in LOSSES:
        estimate = np.repeat(losses.minimise(loss, layout, census), block_size)
        got = definition(loss, estimate[None], truths) @ weights
        least = (definition(loss, candidates, truths) @ weights).min()
        np.testing.assert_allclose(got, least, atol=1e-9)


def test_the_best_particle_wins_ties():
    layout, census = make_layout(np.array([[0, 1], [0, 0]]), [0.5, 0.5], [1, 1])
    assert losses.minimise(Loss(BINDER), layout, census).tolist() == [0, 1]
    layout, census = make_layout(np.array([[0, 0], [0, 1]]), [0.5, 0.5], [1, 1])
    assert losses.minimise(Loss(BINDER), layout, census).tolist() == [0, 0]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(4))
def test_local_search_cannot_be_improved(loss, seed):
    rng = np.random.default_rng(seed)
    n_blocks = EXACT_BLOCKS + 3 + 3 * seed
    rows, weights = random_particles(rng, n_blocks, 20, spread=0.4)
    block_size = rng.integers(1, 4, n_blocks)
    layout, census = make_layout(rows, weights, block_size)
    assert not connect(census.clusters).any(), "the case must not fall apart into small ones"
    estimate = losses.minimise(loss, layout, census)
    np.testing.assert_array_equal(estimate, losses.minimise(loss, layout, census))

    def loss_of(blocks):
        return expected(loss, layout, census, np.repeat(blocks, block_size))

    least = loss_of(estimate) - 1e-9
    assert all(least <= loss_of(row) for row in rows)
    for b in range(n_blocks):
        for target in range(n_blocks):
            moved = estimate.copy()
            moved[b] = target if target in estimate else n_blocks  # or a cluster of its own
            assert least <= loss_of(moved)
    for one, other in itertools.combinations(np.unique(estimate), 2):
        assert least <= loss_of(np.where(estimate == one, other, estimate))


@pytest.mark.parametrize("loss", LOSSES)
def test_every_local_minimum_is_one(loss):
    """From any start the search ends where no move of a block, no union of clusters lowers the loss."""
    rng = np.random.default_rng(8)
    for _ in range(20):
        rows, weights = random_particles(rng, 8, 12, spread=0.4)
        clusters = make_layout(rows, weights, rng.integers(1, 4, 8))[1].clusters
        start = rng.integers(0, 4, 8)
        found = descend(loss, clusters, start)
        least = value(loss, clusters, found) - 1e-9
        assert least <= value(loss, clusters, start)
        for b, slot in itertools.product(range(8), range(9)):
            moved = found.copy()
            moved[b] = slot
            assert least <= value(loss, clusters, moved)
        for one, other in itertools.combinations(np.unique(found), 2):
            joined = np.where(found == one, other, found)
            assert least <= value(loss, clusters, joined)


def test_local_search_joins_clusters_that_no_single_move_would():
    """Four blocks together with probability 0.9: from two halves, a lone move breaks as much as it mends."""
    _, census = make_layout(np.array([[0, 0, 0, 0], [0, 0, 1, 1]]), [0.9, 0.1], [1, 1, 1, 1])
    for loss in LOSSES[:3]:
        assert len(set(descend(loss, census.clusters, np.array([0, 0, 1, 1])).tolist())) == 1


def test_local_search_mostly_finds_the_exact_minimum():
    rng = np.random.default_rng(5)
    found = []
    for _ in range(25):
        rows, weights = random_particles(rng, 7, 15, spread=0.5)
        layout, census = make_layout(rows, weights, rng.integers(1, 4, 7))
        clusters, blocks = census.clusters, np.arange(7)
        n, cells = clusters.block_size.sum(), census.cells.reshape(rows.shape)
        for loss in LOSSES:
            terms, tolerance = tabulate(loss, n), rounding(loss, n)
            found_by_search = search_from_particles(
                terms, clusters, new_search(clusters), blocks, cells, tolerance
            )
            exact = value(loss, clusters, losses.minimise(loss, layout, census))
            search = value(loss, clusters, found_by_search)
            assert search >= exact - 1e-9
            found.append(search <= exact + 1e-9)
    assert np.mean(found) >= 0.9


def test_parts_that_never_meet_are_minimised_alone():
    """An unsplit subproblem of 18 blocks whose two halves never share a cluster: exact all the same."""
    rng = np.random.default_rng(2)
    halves = [random_particles(rng, 9, 12, spread=0.6)[0][:8] for _ in range(2)]
    weights = np.sort(rng.dirichlet(np.ones(8)))[::-1]
    layout, census = make_layout(np.hstack([halves[0], halves[1] + 9]), weights, np.ones(18, int))
    for loss in LOSSES:
        joint = losses.minimise(loss, layout, census)
        alone = [losses.minimise(loss, *make_layout(half, weights, np.ones(9, int))) for half in halves]
        np.testing.assert_array_equal(joint, np.concatenate([alone[0], alone[1] + 9]))


def test_clusters_collect_the_weights_of_their_particles():
    rows = np.array([[0, 0, 1], [0, 1, 1], [0, 1, 2]])
    _, census = make_layout(rows, [0.5, 0.3, 0.2], [2, 1, 1])
    clusters = census.clusters
    blocks = [clusters.blocks[a:b].tolist() for a, b in itertools.pairwise(clusters.start)]
    assert blocks == [[0, 1], [2], [0], [1, 2], [1]]
    np.testing.assert_allclose(clusters.weight, [0.5, 0.7, 0.5, 0.3, 0.2])
    assert clusters.size.tolist() == [3, 1, 2, 2, 1]
    holders = [clusters.holders[a:b].tolist() for a, b in itertools.pairwise(clusters.block_start)]
    assert holders == [[0, 2], [0, 3, 4], [1, 3]]


def test_clusters_are_numbered_as_they_appear():
    ends = [np.array([0, end]) for end in (2, 2, 4)]
    census = losses.take_census(Layout(*ends, np.array([7, 7, 2, 5]), np.array([0.6, 0.4]), np.array([1, 3])))
    assert census.cells.tolist() == [0, 0, 1, 2]
    assert census.row_clusters.tolist() == [1, 2]
    assert census.clusters.size.tolist() == [4, 1, 3]


def test_losses_of_particles_are_those_of_their_partitions():
    rng = np.random.default_rng(4)
    rows, weights = random_particles(rng, 9, 15, spread=0.5)
    layout, census = make_layout(rows, weights, rng.integers(1, 4, 9))
    clusters, cells = census.clusters, census.cells.reshape(rows.shape)
    particles = clusters.blocks[clusters.start[cells]]
    for loss in LOSSES:
        terms = tabulate(loss, layout.block_size.sum())
        got = losses_of_particles(terms, clusters, np.arange(9), cells, particles)
        np.testing.assert_allclose(got, [value(loss, clusters, row) for row in rows], rtol=1e-12)
