"""Nested urns: the kernels against a naive p(c), draw by draw; every order, removal, unions; exactness."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

import partita as pt
from partita.models.records.corpus import Corpus
from partita.models.records.tables import CAPACITY, COUNT, START, kept_tables
from partita.models.scoring.families import begin, extend, gains, join, log_marginal, reduce
from tests.helpers import naive_urns
from tests.helpers.effort import examples
from tests.helpers.texts import counted

GAIN, EXTEND, REDUCE, JOIN, MARGINAL = range(5)
quick = examples(30)


@njit(error_model="numpy")  # not cached: it would outlive a change of what it calls
def perform(family, statistics, sizes, data, steps, out):
    """Run steps (what, child, one, other) on rows of statistics, of which row 0 is the empty cluster."""
    gain = np.empty(statistics.shape[0])
    begin(family, statistics, np.int64(1))
    for k in range(steps.shape[0]):
        what, child, one, other = steps[k, 0], steps[k, 1], steps[k, 2], steps[k, 3]
        if what == GAIN:
            ids = np.full(1, child, np.int64)
            gains(family, statistics, ids, np.int64(0), np.int64(1), data, one, gain)
            out[k] = gain[child] - math.log(max(sizes[child], 1))
        elif what == EXTEND:
            extend(family, statistics, child, one, sizes[one], data, other)
            sizes[child] = sizes[one] + 1
        elif what == REDUCE:
            reduce(family, statistics, child, one, sizes[one], data, other)
            sizes[child] = sizes[one] - 1
        elif what == JOIN:
            size = sizes[one] + sizes[other]
            join(family, statistics, child, one, other, sizes[one], sizes[other], np.int64(1))
            sizes[child] = size
        else:
            out[k] = log_marginal(family, statistics, child, sizes[child], np.int64(1))


class Rows:
    """Rows of statistics of some clusters of observations."""

    def __init__(self, model, X, n_rows=8):
        model.check(1)
        self.data = model.encode(model.validate(X))
        self.family = model.family(1)
        self.statistics = np.zeros((n_rows, model.width(1)))
        self.sizes = np.zeros(n_rows, np.int64)

    def __call__(self, *steps):
        """Run steps; returns the number that each gives."""
        out = np.full(len(steps), np.nan)
        table = np.array([(*step, 0, 0)[:4] for step in steps], np.int64).reshape(-1, 4)
        perform(self.family, self.statistics, self.sizes, self.data, table, out)
        return out

    def fill(self, row, members):
        """Make a row the cluster of these observations; returns the gains along the way."""
        steps = []
        for k, x in enumerate(members):
            steps += [(GAIN, row if k else 0, x), (EXTEND, row, row if k else 0, x)]
        return self(*steps)[::2]

    def marginal(self, row):
        return float(self((MARGINAL, row))[0])

    def counts(self, row):
        """A row's table, without what it has forgotten."""
        pool = kept_tables(self.family.tables)[0]
        start, capacity = self.statistics[row, [START, CAPACITY]].astype(int)
        entries = pool[start : start + capacity]
        return {int(entry >> 32): int(entry & COUNT) for entry in entries if entry & COUNT}


# ---------------------------------------------------------------------- problems

WORDS = ["a", "b", "ab", "ba", "aab", "abab", "bbb"]
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)
dates = st.tuples(
    st.sampled_from(["1815", "1816"]), st.sampled_from(["01", "12"]), st.sampled_from(["01", "02"])
)
strengths = st.sampled_from([0.05, 0.4, 1.0, 3.0, 25.0])
VALUES = {"name": texts, "note": texts, "job": texts, "born": dates.map(" ".join), "other": texts}


def corpora(values):
    return st.dictionaries(values, st.sampled_from([1, 2, 3.5, 7]), max_size=6).map(Corpus)


@st.composite
def models(draw):
    """Records of all kinds of urns, with hyperparameters and corpora at random."""

    def a_text(kind, split):
        return kind(
            theta=draw(strengths),
            phi=draw(strengths),
            strength=draw(strengths),
            letters=draw(st.integers(1, 3)),
            split=split,
            corpus=draw(corpora(dates.map(" ".join) if kind is pt.Date else texts)),
        )

    attributes = {
        "name": a_text(pt.Text, True),
        "note": a_text(pt.Text, False),
        "job": pt.Category(draw(strengths), draw(corpora(texts))),
        "born": a_text(pt.Date, True),
        "other": None,
    }
    shares = draw(st.dictionaries(st.sampled_from(list(attributes)), st.sampled_from([0.0, 0.2, 0.9])))
    types = [(0.6, shares), (0.1, {}), (0.3, {"name": 0.7, "job": 0.2})]
    presence, types = draw(st.sampled_from([(None, None), (shares, None), (None, types)]))
    return pt.Record(attributes, draw(st.sampled_from([0, 0.5, 2.0])), presence, types)


records = st.fixed_dictionaries(
    {}, optional={name: st.lists(value, max_size=3) for name, value in VALUES.items()}
)


def clusters(largest=6):
    return st.lists(records, min_size=1, max_size=largest)


def spelled_texts(largest=6):
    return st.lists(st.one_of(texts, st.just("zz a")), min_size=1, max_size=largest)


def ngrams():
    counts = st.dictionaries(st.text("ab \x03", min_size=2, max_size=2), st.integers(0, 5), max_size=6)
    return st.builds(pt.Ngram, st.just(2), strengths, st.one_of(st.none(), counts))


def naive(model, X):
    return naive_urns.Scores(model, X, 1.0).marginal(frozenset(range(len(X))))


problems = st.one_of(st.tuples(models(), clusters()), st.tuples(ngrams(), spelled_texts()))


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


@pytest.mark.parametrize("kind", ["split", "whole", "category", "date", "presence", "types", "ngram"])
def test_each_kind_by_itself(kind):
    """Repeats at all levels, in a fixed example: values, words, letters."""
    corpus = Corpus({"ab ba": 3, "ab": 2, "aab b": 1, "bbb": 1})
    said = [["ab ba"], ["ab ba", "ba ab"], ["aab"], ["ab", "bb bb aab", "ab ba"], [], ["zz ab zz"]]
    attribute = {
        "split": pt.Text(0.7, corpus, phi=2.0, strength=0.5, letters=2),
        "whole": pt.Text(0.7, corpus, phi=2.0, strength=0.5, letters=2, split=False),
        "category": pt.Category(0.7, corpus),
        "date": pt.Date(0.7, Corpus({"1815 12 10": 2, "1815 01": 1}), letters=3),
        "presence": pt.Category(1e-9, Corpus({"ab": 2})),
        "types": pt.Category(1e-9, Corpus({"ab": 2})),
    }.get(kind)
    if kind == "date":
        said = [["1815-12-10"], ["10.12.1815", "1815"], ["18151210"], ["1815-01-10"]]
    elif kind in ("presence", "types"):
        said = [["ab"], [], ["ab"]]
    types = [(0.25, {"x": 0.9}), (0.75, {"x": 0.1})] if kind == "types" else None
    model, X = pt.Record({"x": attribute}, 2.0, {"x": 0.4}, types), [{"x": values} for values in said]
    if kind == "ngram":
        model, X = counted(3, 0.3, ["ab ba", "bab"]), ["ab ba", "ab", "zz ab", "ab ba"]
    folded = X
    if kind == "date":
        folded = [{"x": [attribute.parse(value) for value in values]} for values in said]
        assert folded[1]["x"] == ["1815 10 12", "1815"]
    rows = Rows(model, X)
    assert rows.fill(1, range(len(X))).sum() == pytest.approx(naive(model, folded), abs=1e-9)
    assert rows.marginal(1) == pytest.approx(naive(model, folded), abs=1e-9)


def test_numbers_of_a_value_that_can_be_checked_by_hand():
    model = pt.Record({"x": pt.Category(2.0, Corpus({"a": 3, "b": 1}))}, rate=0)
    rows = Rows(model, [{"x": "a"}, {"x": "a"}, {"x": "b"}])
    rows.fill(1, [0, 1, 2])
    base_a, base_b = 3.5 / 6.5, 1.5 / 6.5
    assert rows.marginal(1) == pytest.approx(math.log(base_a * (1 / 3) * (2 / 4) * base_b), abs=1e-12)


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


def test_the_order_of_names_and_values_within_a_record_does_not_matter():
    corpus = Corpus({"ab ba": 2, "ab": 2, "bb": 1})
    model = pt.Record({"x": pt.Text(corpus=corpus), "y": pt.Category()})
    said = ["ab ba", "ab aab", "bb ab"]
    for order in itertools.permutations(said):
        rows = Rows(model, [{"x": said, "y": "q"}, {"y": "q", "x": list(order)}])
        assert rows((GAIN, 0, 0), (GAIN, 0, 1)).tolist() == pytest.approx(
            [rows((GAIN, 0, 0))[0]] * 2, abs=1e-12
        )


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


@quick
@given(models(), clusters(4), records)
def test_a_gain_is_the_same_from_one_cluster_and_from_many(model, X, new):
    """Attributes that a cluster lacks are scored once, by the empty one."""
    rows = Rows(model, [*X, new])
    n = len(X)
    for row, x in enumerate(range(n), 1):
        rows.fill(row, [x])
    pairs = [naive(model, [X[x], new]) - naive(model, [X[x]]) for x in range(n)]
    found = rows(*[(GAIN, row, n) for row in range(1, n + 1)])
    assert found.tolist() == pytest.approx(pairs, abs=1e-9)


def test_probabilities_of_a_category():
    """Those of the first value sum to 1. Later a new value that happens to be an old one is not counted."""
    model = pt.Record({"x": pt.Category(0.7, Corpus({"a": 3, "b": 2}))}, rate=0)
    rows = Rows(model, [{"x": value} for value in ["a", "b", "zz", "a"]])
    assert np.exp(rows((GAIN, 0, 0), (GAIN, 0, 1), (GAIN, 0, 2))).sum() == pytest.approx(1.0)
    rows.fill(1, [0, 3])
    lost = 0.7 / 2.7 * 3.5 / 7.5
    assert np.exp(rows((GAIN, 1, 0), (GAIN, 1, 1), (GAIN, 1, 2))).sum() == pytest.approx(1.0 - lost)


def test_long_texts_do_not_underflow():
    rng = np.random.default_rng(0)
    long = "".join(rng.choice(list("abcdefgh "), 990))
    model = pt.Record({"x": pt.Text(), "y": pt.Text(split=False, strength=0.01)}, rate=0)
    X = [{"x": [*long.split(" "), long], "y": long}, {"x": long[::-1], "y": long[::-1]}, {"x": long}]
    folded = [
        {k: [" ".join(t.split()) for t in ([v] if isinstance(v, str) else v) if t] for k, v in x.items()}
        for x in X
    ]
    rows = Rows(model, X)
    gained = rows.fill(1, [0, 1, 2]).sum()
    assert math.isfinite(gained)
    assert gained == pytest.approx(naive(model, folded), rel=1e-9)
    assert rows.marginal(1) == pytest.approx(gained, rel=1e-9)


def test_hyperparameters_of_attributes_are_checked():
    for name in ("theta", "phi", "strength"):
        for bad in (0.0, -1.0, math.nan, math.inf):
            model = pt.Record({"x": replace(pt.Text(), **{name: bad})})
            with pytest.raises(ValueError, match=f"{name} of 'x'"):
                pt.SplitSMC(model).fit([{"x": "a"}])
    with pytest.raises(ValueError, match="letters of 'x'"):
        pt.SplitSMC(pt.Record({"x": pt.Text(letters=0)})).fit([{"x": "a"}])
