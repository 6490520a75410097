"""Every question to the posterior, against enumeration of the whole product distribution."""

import itertools
import math
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, chisquare

from partita.posterior import Posterior
from tests.helpers.effort import examples

seeds = st.integers(0, 2**32 - 1)
LOSSES = ["bcubed", "vi", "binder"]


def canonical(keys):
    """Labels 0..K−1 in order of first appearance."""
    numbers = {}
    return tuple(numbers.setdefault(key, len(numbers)) for key in keys)


def all_partitions(n):
    rows = [(0,)] if n else [()]
    for _ in range(n - 1):
        rows = [(*row, label) for row in rows for label in range(max(row) + 2)]
    return rows


def snapshot(problems, *, alpha=1.0, scores=None, seed=0, largest_id=None):
    """The sampler's arrays for [(observations, partitions, log weights)], particles heaviest first.

    Observations with the same labels in all partitions form a block. The order of the blocks and the ids of
    the clusters are arbitrary, so both are drawn at random.
    """
    rng = np.random.default_rng(seed)
    n = sum(len(observations) for observations, _, _ in problems)
    observation_block = np.full(n, -1)
    starts = {name: [0] for name in ("blocks_start", "rows_start", "cells_start")}
    cells, log_weights, clusters = [], [], {}
    for observations, partitions, weights in problems:
        columns = [tuple(column) for column in zip(*partitions, strict=True)]
        blocks = rng.permutation(np.array(sorted(set(columns))))
        position = {tuple(block): starts["blocks_start"][-1] + b for b, block in enumerate(blocks)}
        for x, column in zip(observations, columns, strict=True):
            observation_block[x] = position[column]
        for p, partition in enumerate(partitions):
            for label in blocks[:, p]:
                members = frozenset(np.array(observations)[np.array(partition) == label].tolist())
                cells.append(clusters.setdefault(members, len(clusters)))
        starts["blocks_start"].append(starts["blocks_start"][-1] + len(blocks))
        starts["rows_start"].append(starts["rows_start"][-1] + len(partitions))
        starts["cells_start"].append(len(cells))
        log_weights.extend(weights)
    ids = rng.choice(largest_id or 2 * len(clusters) + 1, len(clusters), replace=False)
    return {
        "observation_block": observation_block,
        **{name: np.array(start) for name, start in starts.items()},
        "cells": ids[cells] if cells else np.empty(0, np.int64),
        "log_weights": np.array(log_weights, float),
        "row_scores": np.array(log_weights if scores is None else scores, float),
        "alpha": alpha,
    }


def random_problems(rng):
    """Subproblems with distinct random partitions and descending, normalised log weights; n ≤ 7."""
    n = int(rng.choice([1, 2, 4, 5, 6, 7, 7, 7]))
    order, problems = rng.permutation(n).tolist(), []
    while order:
        size = int(rng.integers(1, min(len(order), 5) + 1))
        observations, order = sorted(order[:size]), order[size:]
        chosen = {canonical(rng.integers(0, 1 + size // 2, size)) for _ in range(rng.integers(1, 8))}
        weights = np.sort(rng.dirichlet(np.full(len(chosen), 0.7)))[::-1]
        problems.append((observations, sorted(chosen, key=lambda _: rng.random()), np.log(weights)))
    return problems


def enumerate_product(problems):
    """(probability, labels) of every whole clustering; the first is the best."""
    n = sum(len(observations) for observations, _, _ in problems)
    for choice in itertools.product(*(range(len(partitions)) for _, partitions, _ in problems)):
        keys, log_weight = [None] * n, 0.0
        for s, ((observations, partitions, weights), p) in enumerate(zip(problems, choice, strict=True)):
            log_weight += weights[p]
            for x, label in zip(observations, partitions[p], strict=True):
                keys[x] = (s, label)
        yield math.exp(log_weight), canonical(keys)


def random_case(seed, **options):
    """A random posterior, the probabilities (J,) of its whole clusterings, and their labels (J, n)."""
    problems = random_problems(np.random.default_rng(seed))
    weights, labels = zip(*enumerate_product(problems), strict=True)
    return Posterior(**snapshot(problems, seed=seed, **options)), np.array(weights), np.array(labels)


def same(labels):
    return labels[..., :, None] == labels[..., None, :]


def definition(loss, estimates, truths, false_merge_cost=1.0, false_split_cost=1.0):
    """(M, J) losses of estimates (M, n) against truths (J, n), item by item or pair by pair."""
    one, other = same(np.asarray(estimates))[:, None], same(truths)[None]
    if loss == "map":
        return (one != other).any((2, 3)).astype(float)
    if loss == "binder":
        merged, separated = (one & ~other).sum((2, 3)) / 2, (~one & other).sum((2, 3)) / 2
        return false_merge_cost * merged + false_split_cost * separated
    shared, own, true = (one & other).sum(3), one.sum(3), other.sum(3)
    if loss == "vi":
        return np.log(own * true / shared**2).mean(2)
    precision, recall = shared / own, shared / true
    return 1 - (2 * precision * recall / (precision + recall)).mean(2)


@given(seeds)
@examples(25)
def test_labels_minimise_the_expected_loss_over_all_partitions(seed):
    posterior, weights, truths = random_case(seed)
    candidates = np.array(all_partitions(truths.shape[1]))
    costs = {"false_merge_cost": 2.5, "false_split_cost": 0.8}
    for loss, options in [(loss, {}) for loss in ["map", *LOSSES]] + [("binder", costs)]:
        labels = posterior.labels(loss, **options)
        assert labels.dtype == np.int64
        assert tuple(labels) == canonical(labels)
        least = (definition(loss, candidates, truths, **options) @ weights).min()
        got = definition(loss, labels[None], truths, **options) @ weights
        np.testing.assert_allclose(got, least, atol=1e-9)
        np.testing.assert_allclose(posterior.expected_loss(labels, loss, **options), least, atol=1e-9)


@given(seeds)
@examples(25)
def test_map_labels_are_the_heaviest_particles(seed):
    posterior, _, truths = random_case(seed, largest_id=2**31 - 1)
    assert posterior.labels().tolist() == truths[0].tolist()


@given(seeds)
@examples(25)
def test_expected_loss_of_any_labelling(seed):
    posterior, weights, truths = random_case(seed)
    rng = np.random.default_rng(seed)
    estimates = np.vstack([rng.integers(0, 3, (4, truths.shape[1])), truths[-1]])  # most cross subproblems
    costs = {"false_merge_cost": 0.3, "false_split_cost": 4.0}
    for loss, options in [(loss, {}) for loss in ["map", *LOSSES]] + [("binder", costs)]:
        wanted = definition(loss, estimates, truths, **options) @ weights
        got = [posterior.expected_loss(labels, loss, **options) for labels in estimates]
        np.testing.assert_allclose(got, wanted, atol=1e-9)
        assert min(got) >= 0


def test_labels_may_be_any_values():
    posterior, _, truths = random_case(18)
    names = np.array(["a", "b", "c", "d", "e", "f"])[truths[0]]
    for loss in ["map", *LOSSES]:
        assert posterior.expected_loss(names, loss) == posterior.expected_loss(truths[0], loss)


@given(seeds)
@examples(25)
def test_together(seed):
    posterior, weights, truths = random_case(seed)
    n = truths.shape[1]
    wanted = np.tensordot(weights, same(truths), axes=1)
    got = posterior.together(np.arange(n)[:, None], np.arange(n))
    np.testing.assert_allclose(got, wanted, atol=1e-12)
    always, never = same(truths).all(0), ~same(truths).any(0)
    assert (got[always] == 1.0).all()
    assert (got[never] == 0.0).all()
    scalar = posterior.together(0, np.int32(n - 1))
    assert type(scalar) is float
    assert scalar == got[0, n - 1]
    assert posterior.together([], 0).shape == (0,)


def test_together_refuses_what_is_no_observation():
    posterior, _, truths = random_case(3)
    n = truths.shape[1]
    with pytest.raises(IndexError, match=f"observation {n} is out of range: the posterior holds {n}"):
        posterior.together(0, [0, n])
    with pytest.raises(IndexError, match="observation -1 "):
        posterior.together(-1, 0)
    for wrong in (0.0, True, "0", [0.5]):
        with pytest.raises(TypeError, match="integers"):
            posterior.together(wrong, 0)


@pytest.mark.parametrize("seed", [2, 8, 18])
def test_samples_have_the_exact_distribution(seed):
    posterior, weights, truths = random_case(seed)
    assert len(weights) > 2
    draws = posterior.sample(20_000, random_state=0)
    assert draws.shape == (20_000, truths.shape[1])
    assert draws.dtype == np.int64
    counts = Counter(map(tuple, draws.tolist()))
    wanted = {tuple(row): 20_000 * weight for row, weight in zip(truths.tolist(), weights, strict=True)}
    assert counts.keys() <= wanted.keys()  # canonical labels of clusterings in the support
    often = [row for row, count in wanted.items() if count >= 5]
    observed = [counts[row] for row in often] + [20_000 - sum(counts[row] for row in often)]
    expected = [wanted[row] for row in often] + [20_000 - sum(wanted[row] for row in often)]
    if expected[-1] < 5:
        observed[-2:], expected[-2:] = [sum(observed[-2:])], [sum(expected[-2:])]
    assert chisquare(observed, expected).pvalue > 1e-4


def test_samples_repeat_and_extend():
    posterior, _, truths = random_case(18)
    long = posterior.sample(50, random_state=3)
    np.testing.assert_array_equal(posterior.sample(20, random_state=3), long[:20])
    np.testing.assert_array_equal(posterior.sample(50, random_state=np.random.RandomState(3)), long)
    assert (posterior.sample(50, random_state=4) != long).any()
    assert posterior.sample(0).shape == (0, truths.shape[1])
    with pytest.raises(ValueError, match="n must not be negative"):
        posterior.sample(-1)


def entropy_by_definition(weights, truths):
    """H(q_x), observation by observation over all whole clusterings."""
    n = truths.shape[1]
    result = np.zeros(n)
    for x in range(n):
        q = Counter()
        for weight, labels in zip(weights, truths, strict=True):
            companions = [y for y in range(n) if y != x and labels[y] == labels[x]]
            for y in companions:
                q[truths[0, y]] += weight / len(companions)
            if not companions:
                q["alone"] += weight
        result[x] = -sum(p * math.log(p) for p in q.values() if p > 0)
    return result


@given(seeds)
@examples(40)
def test_entropy(seed):
    posterior, weights, truths = random_case(seed)
    got = posterior.entropy()
    np.testing.assert_allclose(got, entropy_by_definition(weights, truths), atol=1e-9)
    assert (got >= 0).all()


def test_entropy_of_a_settled_observation_ignores_a_doubtful_neighbour():
    partitions = [(0, 0, 0, 0), (0, 0, 0, 1)]
    posterior = Posterior(**snapshot([(range(4), partitions, np.log([0.5, 0.5]))]))
    np.testing.assert_allclose(posterior.entropy(), [0, 0, 0, math.log(2)], atol=1e-12)


@given(seeds)
@examples(40)
def test_n_clusters(seed):
    posterior, weights, truths = random_case(seed)
    values, probabilities = posterior.n_clusters()
    wanted = Counter()
    for weight, labels in zip(weights, truths, strict=True):
        wanted[max(labels) + 1] += weight
    assert values.tolist() == list(range(min(wanted), max(wanted) + 1))
    np.testing.assert_allclose(probabilities, [wanted[value] for value in values], rtol=1e-9)


def pairs(n_pairs, apart, **options):
    """Two observations a subproblem, apart with the given probability."""
    partitions = [(0, 0), (0, 1)] if apart < 0.5 else [(0, 1), (0, 0)]
    weights = np.log(sorted([apart, 1 - apart], reverse=True))
    problems = [((2 * s, 2 * s + 1), partitions, weights) for s in range(n_pairs)]
    return Posterior(**snapshot(problems, **options))


@pytest.mark.parametrize("apart", [0.3, 0.9])
def test_n_clusters_of_many_subproblems_is_accurate_to_the_tails(apart):
    values, probabilities = pairs(1500, apart).n_clusters()
    wanted = binom.logpmf(values - 1500, 1500, apart)
    np.testing.assert_allclose(np.log(probabilities), wanted, rtol=1e-9, atol=1e-9)
    assert math.isclose(probabilities.sum(), 1.0, rel_tol=1e-12)
    assert probabilities.min() >= 1e-300
    assert binom.logpmf([values[0] - 1501, values[-1] - 1499], 1500, apart).max() < -690


@given(seeds)
@examples(20)
def test_alpha_is_the_posterior_over_all_partitions_and_concentrations(seed):
    rng = np.random.default_rng(seed)
    alpha, grid = rng.gamma(2.0), np.array([0.01, 0.5, 1.0, 7.0, 300.0])
    prior = rng.random(5)
    problems = []
    for size in (3, 4):  # all partitions of each subproblem, with any Π Γ(|c|) p(c)
        partitions = all_partitions(size)
        scores = np.array([math.log(alpha) * (max(row) + 1) for row in partitions]) + rng.normal(
            size=len(partitions)
        )
        order = np.argsort(-scores)
        weights = scores[order] - np.logaddexp.reduce(scores)
        problems.append(
            (range(len(problems) * 3, len(problems) * 3 + size), [partitions[p] for p in order], weights)
        )
    posterior = Posterior(**snapshot(problems, alpha=alpha, seed=seed))
    wanted = np.zeros(5)
    for weight, labels in enumerate_product(problems):
        wanted += weight * (grid / alpha) ** (max(labels) + 1)
    rising = np.array([math.prod(a + i for i in range(7)) for a in grid])
    for given_prior, factor in [(None, 1.0), (prior, prior)]:
        product = factor * wanted / rising
        np.testing.assert_allclose(posterior.alpha(grid, given_prior), product / product.sum(), rtol=1e-9)


def test_alpha_does_not_overflow():
    posterior = pairs(3000, 0.01, alpha=1.0)
    probabilities = posterior.alpha([1e-300, 1e-3, 1.0, 1e6, 1e300])
    assert np.isfinite(probabilities).all()
    assert math.isclose(probabilities.sum(), 1.0)
    assert posterior.alpha([1.0, 2.0], [0.0, 3.0]).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("grid", [[], [[1.0]], [0.0], [-1.0], [np.nan], [np.inf], 1.0])
def test_alpha_refuses_a_bad_grid(grid):
    with pytest.raises(ValueError, match="grid must be"):
        pairs(1, 0.5).alpha(grid)


@pytest.mark.parametrize("prior", [[1.0], [0.0, 0.0], [-1.0, 2.0], [np.nan, 1.0]])
def test_alpha_refuses_a_bad_prior(prior):
    with pytest.raises(ValueError, match="prior must"):
        pairs(1, 0.5).alpha([1.0, 2.0], prior)


@given(seeds)
@examples(25)
def test_subproblems_are_what_went_in(seed):
    problems = random_problems(np.random.default_rng(seed))
    posterior = Posterior(**snapshot(problems, seed=seed))
    assert len(posterior.subproblems) == posterior.n_subproblems == len(problems)
    for got, (observations, partitions, weights) in zip(posterior.subproblems, problems, strict=True):
        assert got.observations.tolist() == observations
        assert got.partitions.tolist() == [list(row) for row in partitions]
        np.testing.assert_allclose(got.probabilities, np.exp(weights), rtol=1e-12)
    assert posterior.subproblems[-1].observations.tolist() == problems[-1][0]
    assert len(posterior.subproblems[:-1]) == len(problems) - 1
    with pytest.raises(IndexError):
        posterior.subproblems[len(problems)]


@given(seeds)
@examples(25)
def test_scores_and_sizes(seed):
    problems = random_problems(np.random.default_rng(seed))
    scores = [np.random.default_rng(seed).normal(size=len(partitions)) for _, partitions, _ in problems]
    posterior = Posterior(**snapshot(problems, scores=np.concatenate(scores)))
    assert math.isclose(posterior.log_density(), sum(score[0] for score in scores), abs_tol=1e-12)
    wanted = math.log(math.prod(len(partitions) for _, partitions, _ in problems))
    assert math.isclose(posterior.log_effective_particles(), wanted, abs_tol=1e-12)
    assert posterior.n_observations == sum(len(observations) for observations, _, _ in problems)


def test_repr_tells_the_sizes():
    assert (
        repr(pairs(31, 0.4)) == "Posterior(62 observations, 31 subproblems, 31 clusters, e^21.5 clusterings)"
    )


def test_empty_posterior():
    posterior = Posterior(**snapshot([]))
    for loss in ["map", *LOSSES]:
        assert posterior.labels(loss).tolist() == []
        assert posterior.expected_loss([], loss) == 0.0
    assert posterior.log_density() == 0.0
    assert posterior.log_effective_particles() == 0.0
    assert [array.tolist() for array in posterior.n_clusters()] == [[0], [1.0]]
    assert posterior.entropy().shape == (0,)
    assert posterior.sample(3, random_state=0).shape == (3, 0)
    assert posterior.alpha([1.0, 4.0]).tolist() == [0.5, 0.5]
    assert list(posterior.subproblems) == []
    assert posterior.together([], []).shape == (0,)
    assert repr(posterior) == "Posterior(0 observations, 0 subproblems, 0 clusters, e^0.0 clusterings)"


def test_large_subproblem_is_never_worse_than_a_particle():
    rng = np.random.default_rng(0)
    rows = {
        canonical(np.where(rng.random(40) < 0.3, rng.integers(0, 9, 40), np.arange(40) // 5))
        for _ in range(60)
    }
    weights = np.sort(rng.dirichlet(np.ones(len(rows))))[::-1]
    problems = [(range(40), sorted(rows), np.log(weights))]
    posterior, truths = Posterior(**snapshot(problems)), np.array(sorted(rows))
    for loss in LOSSES:
        labels = posterior.labels(loss)
        got = definition(loss, labels[None], truths) @ weights
        assert got < (definition(loss, truths, truths) @ weights).min()
        np.testing.assert_allclose(posterior.expected_loss(labels, loss), got, atol=1e-9)
        for x in range(40):
            moved = np.repeat(labels[None], labels.max() + 2, axis=0)
            moved[:, x] = np.arange(labels.max() + 2)
            assert (definition(loss, moved, truths) @ weights >= got - 1e-9).all()


def test_bad_arguments_are_named():
    posterior = pairs(1, 0.5)
    with pytest.raises(ValueError, match="'map', 'bcubed', 'vi', 'binder'; got 'rand'"):
        posterior.labels("rand")
    for cost in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="false_merge_cost must be positive and finite"):
            posterior.labels("binder", false_merge_cost=cost)
        with pytest.raises(ValueError, match="false_split_cost must be positive and finite"):
            posterior.expected_loss([0, 0], "binder", false_split_cost=cost)
    with pytest.raises(ValueError, match="belongs to loss='binder'"):
        posterior.labels("vi", false_merge_cost=2.0)
    with pytest.raises(ValueError, match=r"shape \(2,\), got \(3,\)"):
        posterior.expected_loss([0, 0, 0], "vi")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("observation_block", [0, 5], "observation_block must name"),
        ("observation_block", [0, 0], "each at least once"),
        ("blocks_start", [0, 1], "particles × blocks"),
        ("rows_start", [0, 0], "at least one block and one particle"),
        ("cells_start", [0, 4, 4], r"S\+1 entries"),
        ("cells", [0, 0, 1, -2], "non-negative"),
        ("log_weights", [0.0], "one entry per particle"),
        ("row_scores", [[0.0, 0.0]], "one-dimensional"),
        ("alpha", 0.0, "alpha must be positive"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(name, value, message):
    arrays = snapshot([((0, 1), [(0, 0), (0, 1)], np.log([0.6, 0.4]))])
    with pytest.raises(ValueError, match=message):
        Posterior(**{**arrays, name: value})


def test_the_snapshot_is_never_changed():
    problems = random_problems(np.random.default_rng(18))
    arrays = snapshot(problems)
    before = {name: np.copy(value) for name, value in arrays.items()}
    posterior = Posterior(**arrays)
    for loss in ["map", *LOSSES]:
        posterior.expected_loss(posterior.labels(loss), loss)
    posterior.sample(5, random_state=0)[:] = -1
    posterior.entropy()[:] = -1
    posterior.subproblems[0].probabilities[:] = -1
    posterior.n_clusters()[1][:] = -1
    posterior.together(0, 0)
    posterior.alpha([1.0, 2.0])
    for name, value in before.items():
        np.testing.assert_array_equal(arrays[name], value)
    np.testing.assert_allclose(posterior.n_clusters()[1].sum(), 1.0)
    np.testing.assert_allclose(posterior.subproblems[0].probabilities.sum(), 1.0)


def test_read_only_arrays_will_do():
    arrays = snapshot([((0, 1), [(0, 0), (0, 1)], np.log([0.6, 0.4]))])
    for value in arrays.values():
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
    assert Posterior(**arrays).labels("vi").tolist() == [0, 0]


def test_each_kernel_is_compiled_once():
    """Whatever the arrays come as: int32, read-only, strided, and for all losses."""
    code = """
import sys
import numpy as np
from numba.core.dispatcher import Dispatcher
from partita.posterior import Posterior

rng = np.random.default_rng(0)
rows = [np.arange(15) // 3, *rng.integers(0, 15, (5, 15)), np.zeros(15, int)]
ids = np.concatenate([16 * p + row for p, row in enumerate(rows)] + [[150, 150, 151, 152]])
given = {"observation_block": np.arange(17), "blocks_start": [0, 15, 17], "rows_start": [0, 7, 9],
         "cells_start": [0, 105, 109], "cells": ids.astype(np.int32), "alpha": 1,
         "log_weights": np.log([1 / 7] * 7 + [0.5] * 2), "row_scores": np.zeros(9)}
frozen = {key: np.repeat(value, 2)[::2] if key != "alpha" else value for key, value in given.items()}
for key in frozen:
    if key != "alpha":
        frozen[key].flags.writeable = False
for arrays in (given, frozen):
    posterior = Posterior(**arrays)
    for loss in ("map", "vi", "binder", "bcubed"):
        posterior.expected_loss(posterior.labels(loss), loss)
        posterior.expected_loss(np.ones(17, bool), loss)
    posterior.together(0, 1), posterior.together(np.arange(17, dtype=np.uint8), [[3], [4]])
    posterior.entropy(), posterior.n_clusters(), posterior.alpha([1, 2])
    posterior.sample(2), list(posterior.subproblems)
kernels = {value for name, module in list(sys.modules.items()) if name.startswith("partita.")
           for value in vars(module).values() if isinstance(value, Dispatcher)}
for kernel in kernels:
    print(kernel.py_func.__name__, len(kernel.signatures))
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    counts = [line.split() for line in result.stdout.splitlines()]
    assert sum(count == "1" for _, count in counts) >= 9
    assert all(count in "01" for _, count in counts), counts  # 0: an inner function of a cached kernel


def test_import_is_light():
    code = "import sys, partita.posterior; print(*sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"sklearn", "matplotlib", "scipy.optimize"} & set(result.stdout.split())
