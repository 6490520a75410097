"""What is joined is one thing, if agreement in one attribute tells nothing of that in others."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import partita as pt
from benchmarks.crm import customers
from partita.learning.dependence import dependence, mutual_information, pairs_within
from partita.metrics import bcubed
from tests.helpers.effort import examples


def same(attribute, first, second):
    return first == second


def naive(values, labels, fewest):
    """The definition, pair by pair."""
    sizes = {label: int((labels == label).sum()) for label in set(labels.tolist())}
    pairs = [(i, j) for i, j in combinations(range(len(labels)), 2) if labels[i] == labels[j]]
    weight = {pair: 2.0 / sizes[labels[pair[0]]] for pair in pairs}  # n − 1 over the n(n − 1)/2 of a cluster
    found = 0.0
    for a, b in combinations(range(values.shape[1]), 2):
        table = np.zeros((2, 2))
        for i, j in pairs:
            if min(values[i, a], values[j, a], values[i, b], values[j, b]) >= 0:
                table[int(values[i, a] == values[j, a]), int(values[i, b] == values[j, b])] += weight[i, j]
        n = table.sum()
        if n < fewest:
            continue
        p = table / n
        terms = [
            p[x, y] * np.log(p[x, y] / (p[x].sum() * p[:, y].sum()))
            for x in (0, 1)
            for y in (0, 1)
            if p[x, y] > 0
        ]
        found += n * max(sum(terms) - 0.5 / n, 0.0)
    return found / sum(weight.values()) if weight else 0.0


@examples(30)
@given(st.integers(0, 10_000), st.integers(1, 8), st.sampled_from([0.0, 3.0]))
def test_it_is_what_the_definition_says(seed, n_clusters, fewest):
    generator = np.random.default_rng(seed)
    values, labels = generator.integers(-1, 3, (25, 4)), generator.integers(n_clusters, size=25)
    assert dependence(values, labels, same, fewest=fewest) == pytest.approx(naive(values, labels, fewest))


def test_persons_are_independent_and_families_are_not():
    """Three persons with three columns of their own, one of which is wrong now and then: apart, and as a family."""
    generator = np.random.default_rng(0)
    person = np.repeat(np.arange(300), 4)
    values = np.column_stack([person] * 3)
    wrong = generator.random(values.shape) < 0.1
    values[wrong] = generator.integers(1000, 9000, int(wrong.sum()))
    assert dependence(values, person, same) < 0.01
    assert dependence(values, person // 3, same) > 0.5


def test_many_pairs_of_a_cluster_are_sampled_and_weigh_as_much():
    first, second, weights = pairs_within(np.zeros(100, int), 300)
    assert len(set(zip(first.tolist(), second.tolist(), strict=True))) == len(first) == 300
    assert weights.sum() == pytest.approx(99.0)
    assert dependence(np.zeros((5, 2), int), np.arange(5), same) == 0.0


def test_information_of_equal_indicators_is_their_entropy():
    table = np.array([[50.0, 0.0], [0.0, 50.0]])[:, :, None]
    assert mutual_information(table, 0.0)[0] == pytest.approx(100.0 * np.log(2.0) - 0.5)


def test_families_at_one_address_are_not_taken_for_persons():
    """With the weights of before, a third of these entities were families (F1 .74)."""
    found = customers(1)
    rows = [{k: v for k, v in row.items() if v and k not in ("id", "source")} for row in found.rows]
    model = pt.Record.infer(rows).fit_prior(rows)
    labels = pt.SplitSMC(model, alpha="auto", n_particles=10, random_state=0).fit(rows).labels_
    truth = [found.truth[row["id"]] for row in found.rows]
    assert bcubed(truth, labels).f1 > 0.9
