"""Urns of letters, which n-gram models draw from: the kernels against a naive p(c); every order, removal, unions."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import partita as pt
from tests.helpers import naive_urns
from tests.helpers.effort import examples
from tests.helpers.rows import EXTEND, JOIN, REDUCE, Rows
from tests.helpers.texts import counted

quick = examples(30)


# ---------------------------------------------------------------------- problems

WORDS = ["a", "b", "ab", "ba", "aab", "abab", "bbb"]
words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)
strengths = st.sampled_from([0.05, 0.4, 1.0, 3.0, 25.0])
counts = st.dictionaries(st.text("ab \x03", min_size=2, max_size=2), st.integers(0, 5), max_size=6)
ngrams = st.builds(pt.Ngram, st.just(2), strengths, st.one_of(st.none(), counts))
problems = st.tuples(ngrams, st.lists(st.one_of(words, st.just("zz a")), min_size=1, max_size=6))


def naive(model, X):
    return naive_urns.Scores(model, X, 1.0).marginal(frozenset(range(len(X))))


# ---------------------------------------------------------------------- p(c)


@examples(60)
@given(problems)
def test_log_marginal_and_gains_are_those_of_the_naive_urns(problem):
    model, X = problem
    rows = Rows(model, X)
    gained = rows.fill(1, range(len(X)))
    for k, gain in enumerate(gained):
        more = naive(model, X[: k + 1]) - naive(model, X[:k])
        assert gain == pytest.approx(more, abs=1e-9)
    assert rows.marginal(1) == pytest.approx(naive(model, X), abs=1e-9)


@quick
@given(problems, st.randoms(use_true_random=False))
def test_every_order_gives_the_same(problem, random):
    model, X = problem
    rows = Rows(model, X)
    order = list(range(len(X)))
    expected = rows.fill(1, order).sum()
    random.shuffle(order)
    assert rows.fill(2, order).sum() == pytest.approx(expected, abs=1e-9)
    assert rows.marginal(2) == pytest.approx(rows.marginal(1), abs=1e-9)
    assert rows.marginal(1) == pytest.approx(expected, abs=1e-9)
    assert rows.counts(1) == rows.counts(2)


@quick
@given(problems, st.randoms(use_true_random=False))
def test_removing_undoes_adding(problem, random):
    model, X = problem
    rows = Rows(model, X)
    rows.fill(1, range(len(X)))
    leave = random.sample(range(len(X)), random.randint(0, len(X)))
    stay = [x for x in range(len(X)) if x not in leave]
    rows.fill(2, stay)
    rows(*[(REDUCE, 1, 1, x) for x in leave])
    assert rows.counts(1) == (rows.counts(2) if stay else {})
    assert rows.sizes[1] == len(stay)
    assert rows.marginal(1) == pytest.approx(rows.marginal(2) if stay else 0.0, abs=1e-9)
    rows(*[(EXTEND, 1, 1, x) for x in leave])
    rows.fill(3, range(len(X)))
    assert rows.counts(1) == rows.counts(3)
    if stay and leave:  # into another row, the first one left as it is
        before = rows.counts(1)
        rows((REDUCE, 4, 1, leave[0]))
        assert rows.counts(1) == before
        rows((EXTEND, 4, 4, leave[0]))
        assert rows.counts(4) == before


@quick
@given(problems, st.data())
def test_a_union_is_what_adding_one_by_one_gives(problem, data):
    model, X = problem
    cut = data.draw(st.integers(1, len(X)))
    if cut == len(X):
        return
    rows = Rows(model, X)
    rows.fill(3, range(len(X)))
    for child in (4, 1, 2):
        rows.fill(1, range(cut))
        rows.fill(2, range(cut, len(X)))
        rows((JOIN, child, 1, 2))
        assert rows.counts(child) == rows.counts(3)
        assert rows.sizes[child] == len(X)
        assert rows.marginal(child) == pytest.approx(rows.marginal(3), abs=1e-9)


def test_long_texts_do_not_underflow():
    rng = np.random.default_rng(0)
    long = "".join(rng.choice(list("abcdefgh"), 990))
    model, X = counted(3, 0.01, ["ab ba", "bab"]), [long, long[::-1], long[:500]]
    rows = Rows(model, X)
    gained = rows.fill(1, [0, 1, 2]).sum()
    assert math.isfinite(gained)
    assert gained == pytest.approx(naive(model, X), rel=1e-9)
    assert rows.marginal(1) == pytest.approx(gained, rel=1e-9)
