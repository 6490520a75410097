"""Records that say one thing alone: pairs of one entity told from those of strangers, with counts that are known."""

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import partita as pt
from partita._core.concentration import alpha_for
from partita.learning.one_attribute import (
    EQUAL,
    FALLING,
    LEAST_PAIRS,
    MOST_BY_CHANCE,
    NEARLY,
    SPELT_ALIKE,
    THINNING,
    chances,
    kin_and_strangers,
    size_of,
)
from partita.learning.recombined import likeness_of_recombined, recombined
from partita.models.records.comparisons.family import BOUNDS, LEVELS
from partita.models.records.kinds.attribute import AGREEMENT
from tests.helpers.effort import examples
from tests.helpers.naive_comparisons import Compared

USUAL = np.array(AGREEMENT[:-1]) / sum(AGREEMENT[:-1])


def falling(n):
    """Numbers of pairs of strangers by degree, n of them at the degree from which they fall off exponentially."""
    density = [math.exp(-THINNING * k / 1000) for k in range(1000)]
    edges = [0, *(round(1000 * bound) for bound in BOUNDS), 1000]
    by_degree = np.array([sum(density[a:b]) for a, b in pairwise(edges)])
    return n * by_degree / by_degree[FALLING]


@examples(50)
@given(st.floats(50.0, 1e5), st.floats(0.1, 20.0))
def test_a_mixture_is_taken_apart(n, times):
    """Given counts that are just so, both parts are found."""
    strangers = falling(n)
    kin = times * strangers[NEARLY] / USUAL[NEARLY] + 100.0 / USUAL[NEARLY]
    found, others = kin_and_strangers(strangers + kin * USUAL, USUAL)
    assert found == pytest.approx(kin, rel=0.02)
    np.testing.assert_allclose(others, np.maximum(strangers, LEAST_PAIRS), rtol=0.05, atol=0.01 * kin)


@examples(50)
@given(st.floats(0.0, 1e6), st.integers(0, 2**32 - 1))
def test_strangers_alone_have_no_kin(n, seed):
    counts = np.random.default_rng(seed).poisson(falling(n)).astype(float)
    # Three standard deviations are exceeded now and then, but then there are few.
    found, others = kin_and_strangers(counts, USUAL)
    assert found * USUAL[NEARLY] <= max(6.0 * math.sqrt(falling(n)[NEARLY] + 1.0), 6.0)
    if found == 0.0:
        np.testing.assert_array_equal(others, np.maximum(counts, LEAST_PAIRS))


def test_who_shares_a_name_is_alike_but_never_nearly_the_same():
    """Many more than fall off are alike to a middling degree, none nearly the same: no kin."""
    counts = falling(1000.0)
    counts[3:5] *= 4.0
    counts[5:] = 0.0
    assert kin_and_strangers(counts, USUAL)[0] == 0.0


FIRST = [
    "james",
    "mary",
    "robert",
    "patricia",
    "jennifer",
    "michael",
    "linda",
    "elizabeth",
    "barbara",
    "richard",
]
LAST = [
    "smith",
    "johnson",
    "williams",
    "brown",
    "garcia",
    "miller",
    "davis",
    "rodriguez",
    "martinez",
    "hernandez",
]


def test_words_are_put_together_each_in_its_place():
    words = [[first, last] for first in FIRST for last in LAST[:4]] + [["cher"], ["juan", "de", "la", "cruz"]]
    taken, made = recombined(words)
    assert taken == [" ".join(own) for own in words[:40]]
    for place in range(2):
        assert Counter(v.split(" ")[place] for v in made) == Counter(v.split(" ")[place] for v in taken)
    assert made != taken
    compared = Compared(pt.Text().with_corpus(Counter(taken)))
    shares, covered = likeness_of_recombined(compared.attribute, [" ".join(own) for own in words])
    expected = Counter(compared.level(v, w) for v in taken for w in recombined(sorted(words[:40]))[1])
    del expected[LEVELS - 1]
    np.testing.assert_allclose(shares, [expected[k] / expected.total() for k in range(LEVELS - 1)])
    assert covered == pytest.approx((40 / 42) ** 2)


@pytest.mark.parametrize(
    "values", [[], ["cher", "prince"], ["one of the longer texts", "another of the longer texts"]]
)
def test_where_words_say_nothing(values):
    assert likeness_of_recombined(pt.Text().with_corpus(Counter(values)), values)[1] == 0.0


def test_a_typo_in_a_name_of_a_common_kind_is_found():
    """Everybody shares a first or a last name with many, and has one copy with a letter changed."""
    rng, letters = np.random.default_rng(0), list("abcdefghijklmnopqrstuvwxyz")
    first, last = (["".join(rng.choice(letters, rng.integers(4, 9))) for _ in range(n)] for n in (40, 50))
    drawn = rng.permutation(2000)[:300].tolist()
    names = [f"{first[k % 40]} {last[k // 40]}" for k in drawn]
    spoilt = []
    for name in names:
        at = int(rng.integers(1, len(name) - 1))
        spoilt.append(name[:at] + "q" + name[at + 1 :])
    X, truth = [{"name": name} for name in names + spoilt], np.tile(np.arange(300), 2)
    found = pt.SplitSMC(pt.Record.infer(X).fit_prior(X), random_state=0).fit(X).refine().labels_
    assert pt.bcubed(truth, found).precision > 0.98
    assert pt.bcubed(truth, found).recall > 0.6
    alone = X[:300]  # nobody has a copy
    assert (
        len(set(pt.SplitSMC(pt.Record.infer(alone).fit_prior(alone), random_state=0).fit_predict(alone)))
        == 300
    )


@examples(50)
@given(st.floats(0.5, 1e5), st.floats(10.0, 1e5))
def test_the_size_gives_the_odds_back(alpha, n):
    size = size_of(alpha, n)
    assert size >= 1.0
    if 1.001 < size < n / 1.001:
        assert alpha_for(n / size, n) == pytest.approx(alpha, rel=1e-3)


def test_the_evidence_of_one_attribute_by_hand():
    """No value is like another: what is the same is of one entity by ``EQUAL`` nats, whatever α is."""
    X = [{"name": word} for word in ("abcdef", "ghijkl", "mnopqr", "stuvwx") for _ in range(3)]
    model = pt.Record.infer(X).fit_prior(X)
    name = model.attributes["name"]
    assert model.size == 3.0
    assert 1.0 - SPELT_ALIKE <= name.agreement[-1] < 1.0
    alpha = alpha_for(4.0, 12.0)
    joined, apart = model.log_likelihood([X[:2], X[:1]])
    assert joined - 2 * apart - math.log(alpha) == pytest.approx(EQUAL)


def test_records_that_say_nothing_change_nothing():
    """They are alone, and what is the same is as surely of one entity as it is without them."""
    said = [{"name": "Ada Lovelace"}, {"name": "Ada Lovelace"}, {"name": "Bob Stone"}]
    for n in (0, 20, 400):
        X = [{"name": []}] * n + said
        model = pt.Record({"name": pt.Text()}).fit_prior(X)
        sampler = pt.SplitSMC(model, random_state=0).fit(X)
        assert sampler.posterior_.together(n, n + 1) > 0.95
        assert len(set(sampler.labels_)) == n + 2


def test_kin_are_no_more_than_those_nearly_the_same_allow_for():
    counts = falling(1000.0)
    counts[3:5] *= 4.0  # who share a name
    counts[NEARLY] += 100.0
    kin, strangers = kin_and_strangers(counts, USUAL)
    assert 0.0 < kin <= (counts[NEARLY] - strangers[NEARLY]) / USUAL[NEARLY] + 1e-9


@examples(50)
@given(st.lists(st.floats(0.5, 1e6), min_size=LEVELS - 1, max_size=LEVELS - 1), st.floats(0.0, 1e4))
def test_to_be_more_alike_never_says_less(strangers, kin):
    """And where it said no less before, nothing is changed."""
    strangers = np.array(strangers)
    found = chances(USUAL, strangers, strangers + kin * USUAL)
    assert ((found > 0.0) & (found < 1.0)).all()
    if (found < MOST_BY_CHANCE).all():
        assert (np.diff(np.log(USUAL / found)) >= -1e-9).all()
        before = np.log(USUAL / (strangers / strangers.sum()))
        if (np.diff(before) >= 0.0).all():
            np.testing.assert_allclose(np.log(USUAL / found), before)


def test_some_labels_do_no_harm():
    """Kin that are not known to be kin are no strangers."""
    rng = np.random.default_rng(0)
    letters = list("abcdefghijklmnopqrstuvwxyz")
    stems = ["".join(rng.choice(letters, 12)) for _ in range(150)]
    X = [{"name": stem + more} for stem in stems for more in ("", "s", "es", "ing")]
    truth = np.repeat(np.arange(150), 4)
    some = np.where(rng.random(600) < 0.5, truth, -1)
    schema = pt.Record({"name": pt.Text()})
    f1 = [
        pt.bcubed(truth, pt.SplitSMC(schema.fit_prior(X, labels), random_state=0).fit_predict(X)).f1
        for labels in (None, some, truth)
    ]
    assert f1[0] - 0.01 < f1[1] < f1[2] + 0.05
    assert f1[2] > 0.95


def test_learning_again_begins_anew():
    X = [{"name": f"{name} {k}"} for k in range(20) for name in ("abc", "abd")]
    schema = pt.Record({"name": pt.Text()})
    assert schema.fit_prior(X[:4]).fit_prior(X).to_json() == schema.fit_prior(X).to_json()


def test_all_labels_are_counted():
    """u are the pairs of different values of strangers, by degree; m the usual ones and those of kin."""
    words = [["anna", "annah", "hanna"], ["bernd", "berndt"], ["clara", "klara"], ["dieter"], ["ericsson"]]
    X = [{"name": word} for own in words for word in own]
    labels = np.repeat(np.arange(5), [len(own) for own in words])
    name = pt.Record({"name": pt.Text()}).fit_prior(X, labels).attributes["name"]
    said = [row["name"] for row in X]
    compared = Compared(pt.Text().with_corpus(Counter(said)))
    kin, strangers = np.zeros(LEVELS - 1), np.zeros(LEVELS - 1)
    for i in range(len(said)):
        for j in range(i):
            (kin if labels[i] == labels[j] else strangers)[compared.level(said[i], said[j])] += 1
    strangers = np.maximum(strangers, LEAST_PAIRS)
    usual = (kin + 100.0 * USUAL) / (kin.sum() + 100.0)
    same = (
        100.0 * AGREEMENT[-1] / (5.0 - 1.0 + 100.0)
    )  # 9 values of 5 entities are 4 pairs, of which none is equal
    np.testing.assert_allclose(name.by_chance[:-1], chances(usual, strangers, strangers + kin.sum() * usual))
    np.testing.assert_allclose(name.agreement, [*((1.0 - same) * usual), same])


def test_numbers_that_lie_near_each_other_are_no_spellings():
    X = [{"height": float(k)} for k in range(300)]
    model = pt.Record({"height": pt.Number()}).fit_prior(X)
    assert model.size == 1.0
    assert len(set(pt.SplitSMC(model, random_state=0).fit_predict(X))) == 300
