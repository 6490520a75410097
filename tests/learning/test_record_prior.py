"""Empirical Bayes for records: each estimate against brute force."""

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

import partita as pt
from partita.learning import records as record_prior
from partita.learning.records import (
    SHARED,
    counts_among_entities,
    neighbourhoods,
    values_of_clusters,
)
from partita.models.records.corpus import Corpus
from partita.models.records.kinds.learning import PSEUDO, STRENGTHS, best_strength, concentration
from tests.helpers import naive_urns
from tests.helpers.effort import examples

quick = examples(20)


def log_likelihood(theta, sizes, distinct):
    """Of the numbers of distinct values in urns of these sizes, and of the pseudo-observations."""
    total = distinct * math.log(theta)
    for n in sizes:
        total -= sum(math.log(theta + k) for k in range(n))
    agree, differ = 1.0 / (theta + 1.0), theta / (theta + 1.0)
    return total + 0.5 * PSEUDO * (math.log(agree) + math.log(differ))


@quick
@given(st.lists(st.tuples(st.integers(1, 30), st.floats(0, 1)), max_size=40))
def test_the_concentration_maximises_the_likelihood(urns):
    sizes = [n for n, _ in urns]
    distinct = sum(1 + round(share * (n - 1)) for n, share in urns)
    found = concentration(sizes, distinct)
    best = minimize_scalar(
        lambda log_theta: -log_likelihood(math.exp(log_theta), sizes, distinct),
        bounds=(math.log(1e-4), math.log(1e6)),
        method="bounded",
        options={"xatol": 1e-10},
    )
    assert log_likelihood(found, sizes, distinct) >= -best.fun - 1e-9
    assert math.log(found) == pytest.approx(best.x, abs=1e-4)


def test_the_concentration_of_nothing_is_that_of_the_pseudo_observations():
    assert concentration([], 0) == pytest.approx(1.0)
    assert concentration([1] * 50, 50) == pytest.approx(1.0)


def test_the_concentration_says_how_much_urns_vary():
    sizes = [10] * 500
    estimates = [concentration(sizes, distinct) for distinct in (500, 1000, 3000, 5000)]
    assert all(low < high for low, high in pairwise(estimates))
    assert estimates[0] < 0.2
    assert estimates[-1] > 10.0


# ---------------------------------------------------------------------- counts


def test_counts_where_the_sample_shows_everything():
    """A value of two clusters counts twice, one that a cluster repeats once."""
    clusters = [Counter(a=3), Counter(a=1, b=2), Counter(c=1)]
    found = counts_among_entities(Counter(a=4, b=2, c=1), clusters)
    assert found == pytest.approx({"a": 2, "b": 1, "c": 1})


def test_counts_where_the_sample_shows_a_part():
    """The share that was first, of all occurrences; but two occurrences count as two at least."""
    clusters = [Counter(a=4), Counter(b=1)]
    found = counts_among_entities(Counter(a=40, b=2, c=1), clusters)
    assert found == pytest.approx({"a": 10, "b": 2, "c": 1})
    assert counts_among_entities(Counter(a=5), [Counter(a=4)])["a"] == pytest.approx(2.0)


def test_counts_of_what_the_sample_lacks():
    """The share of values that occur about as often, else of all."""
    clusters = [Counter(a=8), Counter(b=8), Counter(c=1)]
    found = counts_among_entities(Counter(a=8, b=8, c=1, like_a=12, rare=1, often=100), clusters)
    assert found["like_a"] == pytest.approx(2.0)  # 12/8, but two at least
    assert found["rare"] == pytest.approx(1.0)
    assert found["often"] == pytest.approx(100 * 3 / 17)


def test_counts_without_a_sample():
    assert counts_among_entities(Counter(a=5, b=1), []) == {"a": 2, "b": 1}


def test_every_cluster_by_itself_gives_the_occurrences():
    occurrences = Counter(a=7, b=2, c=1)
    clusters = [Counter([value]) for value in occurrences.elements()]
    assert counts_among_entities(occurrences, clusters) == pytest.approx(dict(occurrences))


def test_values_of_clusters():
    said = [[(0, "a"), (1, "x")], [(0, "a")], [(1, "y")], []]
    names, facts = values_of_clusters(said, np.array([5, 5, 2, 5]), 2)
    assert names == [Counter(a=2)]
    assert sorted(facts, key=str) == [Counter(x=1), Counter(y=1)]


# ---------------------------------------------------------------------- samples


def test_a_small_set_is_its_own_sample():
    pairs = [[(0, str(k))] for k in range(10)]
    assert neighbourhoods(pairs, [Counter(str(k) for k in range(10))]) == list(range(10))


def test_samples_keep_fragments_together_that_share_a_rare_value(monkeypatch):
    monkeypatch.setattr(record_prior, "SAMPLE", 100)
    pairs = [[(0, f"name {k // 3}"), (1, "common")] for k in range(900)]
    occurrences = [Counter(f"name {k // 3}" for k in range(900)), Counter(common=900)]
    rows = neighbourhoods(pairs, occurrences)
    assert rows == sorted(set(rows))
    assert 100 <= len(rows) < 100 + SHARED
    assert set(Counter(row // 3 for row in rows).values()) == {3}
    assert rows == neighbourhoods(pairs, occurrences)


# ---------------------------------------------------------------------- letters


def naive_evidence(attribute, clusters, strength):
    """log p of the letters of the clusters' rare words given those of their common ones, and of the prior."""
    counts = naive_urns.word_counts(attribute.corpus.counts)
    common = {word for word, n in counts.items() if n >= 2}
    q = naive_urns.witten_bell(counts, attribute.letters)

    def weight(letter, context):
        return strength * q(letter, context), strength

    total = -0.5 * math.log(strength) ** 2
    for words in clusters:
        distinct = list(dict.fromkeys(words))
        known = [word for word in distinct if word in common]
        every = known + [word for word in distinct if word not in common]
        total += naive_urns.spelling(every, attribute.letters, weight)
        total -= naive_urns.spelling(known, attribute.letters, weight)
    return total


@quick
@given(
    st.lists(
        st.lists(st.sampled_from(["ab", "abb", "ba", "bab", "aab"]), min_size=1, max_size=4), min_size=1
    ),
    st.dictionaries(st.sampled_from(["ab", "ab ba", "bab"]), st.integers(1, 3)),
    st.integers(1, 3),
)
def test_the_strength_is_the_best_on_the_grid(clusters, counts, letters):
    attribute = pt.Text(letters=letters, corpus=Corpus(counts))
    common = {word for word, n in naive_urns.word_counts(counts).items() if n >= 2}
    found = best_strength(attribute, clusters)
    if all(set(words) <= common for words in clusters):
        assert found == attribute.strength
        return
    scores = [naive_evidence(attribute, clusters, s) for s in STRENGTHS]
    assert naive_evidence(attribute, clusters, found) == pytest.approx(max(scores), abs=1e-8)
    assert found in STRENGTHS


def test_attributes_change_what_is_learnt_alone():
    clusters = [Counter({"ada king": 3, "ada": 1}), Counter({"bob": 2})]
    corpus = Corpus({"ada king": 1, "ada": 1, "bob": 1})
    text = pt.Text(letters=2, corpus=corpus).learnt_from(clusters)
    assert text.theta == concentration([4, 2], 3)
    assert text.phi == concentration([3, 1], 3)
    assert (text.letters, text.corpus) == (2, corpus)
    whole = pt.Text(split=False, strength=0.3, corpus=corpus)
    assert whole.learnt_from(clusters) is whole
    category = pt.Category(corpus=corpus).learnt_from(clusters)
    assert category == pt.Category(concentration([4, 2], 3), corpus)
