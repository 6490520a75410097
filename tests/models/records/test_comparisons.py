"""Comparisons of values: the kernels against a naive p(c), value by value; every order, removal, unions, samplers."""

import itertools
import math
from dataclasses import replace

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gammaln

import partita as pt
from partita.models.records import record as columns
from partita.models.records.comparisons import family as settings
from partita.models.records.comparisons import values
from partita.models.records.comparisons.vocabulary import SHAPE, UNKNOWN, discount_of
from partita.models.records.corpus import Corpus
from tests.helpers import naive_comparisons, oracle
from tests.helpers.effort import effort, examples
from tests.helpers.rows import EXTEND, GAIN, JOIN, REDUCE, Rows
from tests.helpers.stretch import Stretch

quick = examples(30)
naive = naive_comparisons.record
ALPHA = 1.3

# ---------------------------------------------------------------------- problems

WORDS = ["a", "b", "ab", "ba", "aab", "abab", "bbb", "ada", "adam"]
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)
VALUES = {
    "name": texts,
    "surname": st.sampled_from(["lovelace", "lovelac", "lovalece", "babbage", "x" * 1200, "x" * 1200 + "y"]),
    "born": st.sampled_from(["1815-12-10", "10.12.1815", "1815", "1816-12-10", "1816", 1791]),
    "job": st.sampled_from(["poet", "Poet", "actor", "baker"]),
    "height": st.sampled_from([1, 2, 2.5, 2.75, 1e6, -3, 0.1, 0]),
    "floor": st.integers(-3, 5),
    "note": texts,
    "town": texts,
    "room": texts,
}
KINDS = {
    "name": pt.Text,
    "surname": pt.Value,
    "born": pt.Date,
    "job": pt.Category,
    "height": pt.Number,
    "floor": Stretch,
    "*": pt.Category,
}
OWN = {"height": {"spread": st.sampled_from([0.1, 0.5, 3.0])}, "floor": {"rate": st.sampled_from([0.1, 0.7])}}
shares = st.floats(0.001, 0.9)


@st.composite
def attributes(draw, name):
    """An attribute with parameters, frequencies and references at random."""
    kind, values = KINDS[name], VALUES["town" if name == "*" else name]
    parsed = values.map(kind().parse).map(lambda value: f"town {value}" if name == "*" else value)
    counts = draw(st.dictionaries(parsed, st.sampled_from([1, 2, 3.5, 7]), max_size=6))
    return kind(
        agreement=draw(st.tuples(*[shares] * 8)),
        weight=draw(st.sampled_from([0.2, 0.7, 1.0])),
        corpus=Corpus(counts),
        references=tuple(draw(st.lists(parsed, max_size=8))),
        kin=draw(st.sampled_from([0.0, 0.3, 2.0])),
        **{own: draw(among) for own, among in OWN.get(name, {}).items()},
    )


@st.composite
def models(draw):
    """Records of all kinds, of which some attributes are in the cluster's fragments and one is ignored."""
    schema = {name: draw(attributes(name)) for name in KINDS} | {"note": None}
    if draw(st.booleans()):
        schema["name"] = replace(schema["name"], by_chance=draw(st.tuples(*[shares] * 8)))
    mentioned = draw(st.dictionaries(st.sampled_from(list(schema)), st.sampled_from([0.0, 0.2, 0.9])))
    types = [(0.6, mentioned), (0.1, {}), (0.3, {"name": 0.7, "job": 0.2})]
    presence, types = draw(st.sampled_from([(None, None), (mentioned, None), (None, types)]))
    size = draw(st.sampled_from([None, 1.0, 2.0, 10.0]))
    return pt.Record(schema, draw(st.sampled_from([0, 0.5, 2.0])), presence, types, size)


records = st.fixed_dictionaries(
    {}, optional={name: st.lists(value, max_size=3) for name, value in VALUES.items()}
)
clusters = st.lists(records, min_size=1, max_size=7)
problems = st.tuples(models(), clusters)


# ---------------------------------------------------------------------- p(c)


@examples(100)
@given(problems)
def test_log_p_and_gains_are_those_of_the_naive_comparisons(problem):
    model, X = problem
    rows = Rows(model, X)
    gained = rows.fill(1, range(len(X)))
    expected = [naive(X[:k], model) for k in range(len(X) + 1)]
    assert gained.tolist() == pytest.approx(np.diff(expected).tolist(), abs=1e-9)
    assert rows.marginal(1) == pytest.approx(expected[-1], abs=1e-9)


@quick
@given(models(), st.lists(records, min_size=1, max_size=4), records)
def test_a_gain_is_the_same_from_one_cluster_and_from_many(model, X, new):
    rows = Rows(model, [*X, new])
    n = len(X)
    for row in range(1, n + 1):
        rows.fill(row, [row - 1])
    found = rows(*[(GAIN, row, n) for row in range(1, n + 1)])
    assert found.tolist() == pytest.approx([naive([x, new], model) - naive([x], model) for x in X], abs=1e-9)


POET, ACTOR = {"job": "poet"}, {"job": "actor"}
JOB = pt.Category(
    agreement=(0.3, *[0.01] * 6, 0.64), corpus=Corpus({"poet": 5, "actor": 1, "baker": 10, "smith": 2})
)
BY_CHANCE = 1 - (1 + 4) / (1 + 2 * 1 + 5)  # 1 − d: one value has one entity, one has two
POETS = math.log(0.64 / ((4 - 1 + BY_CHANCE) / (18 + 1)))  # four others of eighteen
ACTORS = math.log(0.64 / (BY_CHANCE / (18 + 1)))  # no other, which counts as one
DIFFER = math.log(0.3 / UNKNOWN[0])  # without references: SHAPE / (SHAPE / UNKNOWN)


def evidence_of(model, clusters):
    """log p(c) but for what its size says."""
    sizes = np.array([len(cluster) for cluster in clusters])
    return model.log_likelihood(clusters) + naive_comparisons.crowding(model) * gammaln(sizes)


def test_numbers_that_can_be_checked_by_hand():
    """Two values say e, and n equal ones n − 1 times as much, whatever q is."""
    clusters = [[POET], [POET] * 2, [POET] * 3, [POET] * 9, [ACTOR] * 2, [POET, ACTOR]]
    expected = [0.0, POETS, 2 * POETS, 8 * POETS, ACTORS, DIFFER]
    for weight in (1.0, 0.5, 0.01):
        model = pt.Record({"job": replace(JOB, weight=weight)}, rate=0)
        found = evidence_of(model, clusters)
        assert found.tolist() == pytest.approx([weight * e for e in expected], abs=1e-9)


def test_several_trees_by_hand():
    """Of three values there are three trees, of four sixteen."""
    q = columns.ALONE
    model = pt.Record({"job": JOB}, rate=0)
    poet, actor, differ = (math.exp(q * e) for e in (POETS, ACTORS, DIFFER))
    two_and_one = math.log((2 * poet * differ + differ**2) / 3) / q
    pairs = (math.log(differ) + math.log((poet + differ) / 2) + math.log((actor + differ) / 2)) / q
    found = evidence_of(model, [[POET, ACTOR, POET], [POET, POET, ACTOR, ACTOR], [ACTOR, POET] * 2])
    assert found.tolist() == pytest.approx([two_and_one, pairs, pairs], abs=1e-9)


def test_q_grows_with_the_columns():
    """With a power of their weights; what few fragments mention is none, nor what has no name."""
    heavy = {name: pt.Category(weight=w) for name, w in (("a", 1.0), ("b", 0.64), ("c", 0.36), ("*", 1.0))}

    def q(presence=None, types=None, attributes=heavy):
        model = pt.Record(attributes, 2.0, presence, types)
        model.check(1)
        assert model.family(1).sharpness == pytest.approx(naive_comparisons.sharpness(model), rel=1e-12)
        return model.family(1).sharpness / 0.6

    assert q() == pytest.approx(2.0**0.65)
    assert q({"a": 0.5, "b": 0.49, "c": 0.9}) == pytest.approx(1.36**0.65)
    assert q({"a": 0.9, "*": 0.8}) == pytest.approx(2.0**0.65)  # if most have one it is a column
    assert q({"b": 0.1}) == pytest.approx(0.5**0.65)  # no column at all
    assert q({}) == pytest.approx(0.5**0.65)
    assert q(None, [(1.0, {"a": 0.1})]) == pytest.approx(2.0**0.65)  # types say nothing of it
    light = {"a": pt.Category(weight=0.04), "b": pt.Category(weight=0.04)}
    assert q(attributes=light) == pytest.approx(0.5**0.65)
    assert q(attributes=light | {"b": None}) == pytest.approx(1.0 / 0.6)  # a single one


def test_of_very_many_values_it_is_a_bound_from_below():
    """Tree by tree where there are few: the mean of the logarithm is below the logarithm of the mean."""
    weights = np.exp(np.random.default_rng(0).normal(0.0, 2.0, (5, 5)))
    weights = weights + weights.T
    trees = [
        math.fsum(math.log(weights[i][j]) for i, j in edges) for edges in naive_comparisons.labelled_trees(5)
    ]
    assert naive_comparisons.mean_log_by_pairs(weights) == pytest.approx(np.mean(trees))
    assert np.mean(trees) < naive_comparisons.log_mean_by_trees(weights)


@pytest.mark.parametrize("n", range(2, 7))
def test_the_mean_over_all_trees_is_a_determinant(n):
    """The two ways of the oracle, and numpy's, which share nothing."""
    rng = np.random.default_rng(n)
    for spread in (0.1, 1.0, 5.0):
        weights = np.exp(spread * rng.normal(size=(n, n)))
        weights = weights + weights.T
        by_trees = naive_comparisons.log_mean_by_trees(weights.tolist())
        assert naive_comparisons.log_mean_by_determinant(weights) == pytest.approx(by_trees, abs=1e-10)
        laplacian = np.diag(weights.sum(axis=1)) - weights
        minor = np.linalg.slogdet(laplacian[:-1, :-1])[1] - (n - 2) * math.log(n)
        assert minor == pytest.approx(by_trees, abs=1e-6)
    trees = [frozenset(map(frozenset, edges)) for edges in naive_comparisons.labelled_trees(n)]
    assert len(set(trees)) == len(trees) == n ** (n - 2)
    assert {len(tree) for tree in trees} == {n - 1}


@numba.njit
def joined_by_linkage(evidence, sizes, chosen, m):
    return values.linked(evidence, sizes, chosen, m)


@quick
@given(st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_linkage_joins_the_nearest_first(n, seed):
    """With no two means alike: the kernel, the chains of the oracle, and the nearest of all one after the other."""
    evidence = np.random.default_rng(seed).normal(size=(n, n)) * 5.0
    evidence = evidence + evidence.T
    expected = naive_comparisons.linked_greedily(evidence.tolist())
    chosen = np.column_stack([np.arange(n), np.arange(n) % 3 + 1])
    repeated = (chosen[:, 1] - 1) @ np.diag(evidence)
    assert naive_comparisons.linked_by_chains(evidence.tolist()) == pytest.approx(expected, abs=1e-9)
    found = joined_by_linkage(evidence.copy(), np.empty(n), chosen, n)
    assert found == pytest.approx(expected + repeated, abs=1e-9)


def test_what_the_oracle_takes_for_granted():
    """The constants of the formulas."""
    ours = naive_comparisons
    assert settings.BOUNDS.tolist() == ours.BOUNDS
    assert (settings.LEVELS, settings.SHARPNESS, SHAPE) == (ours.LEVELS, ours.SHARPNESS, ours.SHAPE)
    assert (columns.COLUMN, columns.LEAST_COLUMNS) == (ours.COLUMN, ours.LEAST_COLUMNS)
    assert (columns.GROWTH, values.MOST) == (ours.GROWTH, ours.MOST)
    assert UNKNOWN.tolist() == ours.UNKNOWN
    assert sum(ours.UNKNOWN) == pytest.approx(1.0)


@quick
@given(models(), records)
def test_a_fragment_with_one_value_of_each_has_no_evidence(model, one):
    """Nothing but what it mentions, and what a kernel of its own says of it."""
    alone = pt.Record(model.attributes | {"floor": None, "*": None}, rate=0)
    rows = Rows(alone, [{name: values[:1] for name, values in one.items()}])
    assert rows.fill(1, [0]).tolist() == [0.0]
    assert rows.marginal(1) == 0.0


@quick
@given(models(), records)
def test_values_of_one_fragment_are_as_those_of_several(model, one):
    """So that what a fragment says by itself is a constant factor."""
    model = pt.Record(model.attributes | {"floor": None}, 0, model.presence)
    names = [name for name, attribute in model.attributes.items() if attribute is not None]
    apart = []
    for a, value in sorted(set(model.validate([one])[0].pairs)):
        name, value = value.split(" ", 1) if names[a] == "*" else (names[a], value)
        apart.append({name: value})
    if apart:
        found = evidence_of(model, [[one], apart])
        assert found[0] == pytest.approx(found[1], abs=1e-9)


@quick
@given(problems, st.randoms(use_true_random=False))
def test_every_order_gives_the_same_to_the_last_bit(problem, random):
    model, X = problem
    rows = Rows(model, X)
    order = list(range(len(X)))
    rows.fill(1, order)
    for _ in range(3):
        random.shuffle(order)
        gained = rows.fill(2, order)
        assert rows.table(1) == rows.table(2)
        assert rows.marginal(2) == rows.marginal(1)
        assert gained.sum() == pytest.approx(rows.marginal(1), abs=1e-9)


@examples(60)
@given(problems, st.lists(records, max_size=6), st.randoms(use_true_random=False))
def test_what_else_a_vocabulary_holds_does_not_matter_to_the_last_bit(problem, others, random):
    """Or else a record would be worth something else in another shard."""
    model, X = problem
    alone = Rows(model, X).fill(1, range(len(X)))
    every = list(range(len(others) + len(X)))
    random.shuffle(every)
    place = {row: at for at, row in enumerate(every)}
    among = Rows(model, [(others + X)[row] for row in every])
    gained = among.fill(1, [place[len(others) + x] for x in range(len(X))])
    assert gained.tolist() == alone.tolist()


def test_which_values_came_first_does_not_matter_to_the_last_bit():
    """Or else a sampler that is loaded, which numbers values anew, would break ties another way."""
    rng = np.random.default_rng(0)
    model, found = pt.Record({"name": pt.Text(), "height": pt.Number()}, rate=0), []
    for _ in range(effort(30, 300)):
        X = [
            {"name": "".join(rng.choice(list("abc"), 5)), "height": x / 8} for x in range(rng.integers(2, 9))
        ]
        for order in (range(len(X)), rng.permutation(len(X)).tolist()):
            rows = Rows(model, [X[x] for x in order])
            rows.fill(1, range(len(X)))
            found.append(rows.marginal(1))
    assert found[::2] == found[1::2]


def test_the_order_of_names_and_values_within_a_record_does_not_matter():
    model = pt.Record({"x": pt.Text(corpus=Corpus({"ab ba": 2, "ab": 2, "bb": 1})), "y": pt.Category()})
    said, other = ["ab ba", "ab aab", "bb ab"], {"x": ["ab", "ab ba"], "y": "q"}
    for order in itertools.permutations(said):
        rows = Rows(model, [other, {"x": said, "y": "q"}, {"y": "q", "x": list(order)}])
        rows.fill(1, [0, 1])
        rows.fill(2, [0, 2])
        assert rows.table(1) == rows.table(2)
        assert rows.marginal(1) == rows.marginal(2)


# ---------------------------------------------------------------------- clusters that change


@quick
@given(problems, st.randoms(use_true_random=False))
def test_removing_undoes_adding_to_the_last_bit(problem, random):
    model, X = problem
    rows = Rows(model, X)
    rows.fill(1, range(len(X)))
    whole, density = rows.table(1), rows.marginal(1)
    leave = random.sample(range(len(X)), random.randint(0, len(X)))
    stay = [x for x in range(len(X)) if x not in leave]
    rows.fill(2, stay)
    rows(*[(REDUCE, 1, 1, x) for x in leave])
    assert rows.table(1) == (rows.table(2) if stay else {})
    assert rows.sizes[1] == len(stay)
    assert rows.marginal(1) == (rows.marginal(2) if stay else 0.0)
    rows(*[(EXTEND, 1, 1, x) for x in leave])
    assert rows.table(1) == whole
    assert rows.marginal(1) == density
    if leave:  # into another row, the first one left as it is
        rows((REDUCE, 4, 1, leave[0]))
        assert rows.table(1) == whole
        rows((EXTEND, 4, 4, leave[0]))
        assert rows.table(4) == whole


@quick
@given(problems, st.data())
def test_a_union_is_what_adding_one_by_one_gives(problem, data):
    model, X = problem
    X = [*X, X[0]]
    cut = data.draw(st.integers(1, len(X) - 1))
    rows = Rows(model, X)
    rows.fill(3, range(len(X)))
    for child in (4, 1, 2):
        rows.fill(1, range(cut))
        rows.fill(2, range(cut, len(X)))
        rows((JOIN, child, 1, 2))
        assert rows.table(child) == rows.table(3)
        assert rows.sizes[child] == len(X)
        assert rows.marginal(child) == rows.marginal(3)


@quick
@given(problems, st.data())
def test_whatever_clusters_go_through_they_are_as_new(problem, data):
    """Rows that are extended, reduced, copied and joined in any order, against rows that are filled at once."""
    model, X = problem
    rows = Rows(model, X)
    held = {1: [], 2: [], 3: []}
    for _ in range(data.draw(st.integers(1, 12))):
        what = data.draw(st.sampled_from([EXTEND, REDUCE, JOIN]))
        child, one, other = data.draw(st.permutations([1, 2, 3]))
        child = data.draw(st.sampled_from([child, one]))
        if what == JOIN and held[one] and held[other] and not set(held[one]) & set(held[other]):
            rows((JOIN, child, one, other))
            held[child] = held[one] + held[other]
        elif what == REDUCE and held[one]:
            x = data.draw(st.sampled_from(held[one]))
            rows((REDUCE, child, one, x))
            held[child] = [y for y in held[one] if y != x]
        elif rest := [x for x in range(len(X)) if x not in held[one]]:
            x = data.draw(st.sampled_from(rest))
            rows((EXTEND, child, one if held[one] else 0, x))
            held[child] = [*held[one], x]
    for row, members in held.items():
        if members:
            rows.fill(4, sorted(members))
            assert rows.table(row) == rows.table(4)
            assert rows.marginal(row) == rows.marginal(4)
            assert rows.marginal(row) == pytest.approx(
                naive([X[x] for x in sorted(members)], model), abs=1e-9
            )


def test_a_union_into_a_row_that_has_forgotten_values():
    """What was taken out leaves entries without a count, which must not count again."""
    model = pt.Record({"name": pt.Text(), "floor": Stretch()})
    X = [{"name": [f"ada {k}", "ada"], "floor": k} for k in range(8)]
    rows = Rows(model, X)
    rows.fill(1, range(8))
    rows(*[(REDUCE, 1, 1, x) for x in (1, 3, 5, 7)])
    rows.fill(2, [1, 3])
    rows((JOIN, 1, 1, 2))
    rows.fill(3, [0, 1, 2, 3, 4, 6])
    assert rows.table(1) == rows.table(3)
    assert rows.marginal(1) == rows.marginal(3)


@pytest.mark.parametrize("n", [120, 150, *effort([], [500])])
def test_large_clusters(n):
    """More values than there is room for at first, and than trees are counted of; pairs compete for a place."""
    random = np.random.default_rng(0)
    cluster = [
        {"name": "".join(random.choice(list("abcde"), 6)), "born": float(x % 90) + 0.5} for x in range(n)
    ]
    model = pt.Record({"name": pt.Value(), "born": pt.Number()}).fit_prior(
        cluster, np.arange(len(cluster)) // 3
    )
    rows = Rows(model, cluster)
    gained = rows.fill(1, range(len(cluster)))
    expected = naive(cluster, model)
    assert gained.sum() == pytest.approx(expected, rel=1e-10)
    assert rows.marginal(1) == pytest.approx(expected, rel=1e-10)
    rows(*[(REDUCE, 1, 1, x) for x in range(1, len(cluster))])
    rows.fill(2, [0])
    assert rows.table(1) == rows.table(2)


# ---------------------------------------------------------------------- what evidence says


def nats(attribute, one, other):
    """What it says of two fragments that they have these values."""
    return float(pt.Record({"x": attribute}, rate=0).log_likelihood([[{"x": one}, {"x": other}]])[0])


def test_the_more_alike_the_more_evidence():
    letters = np.random.default_rng(0).choice(list("abcdefghijklmnop"), (100, 12))
    said = ["catherine jones", "margaret hill", *("".join(row) for row in letters)] * 2
    learnt = pt.Record({"x": pt.Value()}, rate=0).fit_prior(
        [{"x": value} for value in said], np.arange(204) % 102
    )
    attribute = learnt.attributes["x"]
    typo = nats(attribute, "catherine jones", "cathrine jones")
    same = nats(attribute, "catherine jones", "catherine jones")
    other = nats(attribute, "catherine jones", "margaret hill")
    assert same > 2.0
    assert typo > 1.0
    assert other < -1.0


def test_rare_values_say_more():
    attribute = pt.Category().with_corpus({"smith": 500, "quux": 2, "jones": 498})
    assert nats(attribute, "quux", "quux") > nats(attribute, "smith", "smith") + 5.0
    assert nats(attribute, "quux", "quux") == nats(attribute, "unseen", "unseen")  # of one other, at least


def test_the_weight_counts():
    for kind in (pt.Text, pt.Category, pt.Date, pt.Value):
        whole, half = nats(kind(), "ada", "ada"), nats(kind(weight=0.5), "ada", "ada")
        assert half == pytest.approx(0.5 * whole)
        assert whole > 0.0


def test_values_of_many_references_say_less():
    """A name that resembles those of many strangers is no evidence of being one of them."""
    alone = pt.Text(references=("quux", "zola", "hoskins", "babbage"))
    among = pt.Text(references=("ada king", "ada kind", "ada ling", "ada kong"))
    assert nats(alone, "ada king", "ada kin") > nats(among, "ada king", "ada kin") + 0.5


# numbers from 0 on are alike to each other at least a little, and so are those from 10 on; the two are not at all
near, far = (
    st.lists(st.sampled_from([x + k / 20 for k in range(15)]), min_size=1, max_size=6) for x in (0, 10)
)
inner = st.tuples(*[st.floats(p, 0.99) for p in naive_comparisons.UNKNOWN[1:]])  # says something for it


def of_numbers(cost, alike, weight):
    """A model in which all that is near says something for, all else costs so much against being one entity."""
    agreement = (UNKNOWN[0] * math.exp(-cost), *alike)
    return pt.Record({"x": pt.Number(agreement=agreement, weight=weight)}, rate=0)


@examples(60)
@given(st.floats(0.01, 6.0), inner, near, far, st.sampled_from([0.05, 0.5, 1.0]))
def test_to_join_clusters_that_differ_costs_at_least_what_one_pair_costs(cost, alike, one, other, weight):
    """However much they agree within: no tree can do without a pair that differs, and all have fewer that agree."""
    model = of_numbers(cost, alike, weight)
    one, other = ([{"x": x} for x in values] for values in (one, other))
    first, second, both = evidence_of(model, [one, other, one + other])
    assert min(first, second) >= -1e-9
    assert both - first - second <= -weight * cost + 1e-9


@examples(60)
@given(st.floats(0.01, 6.0), inner, near, far)
def test_evidence_is_at_most_that_of_the_best_pair_for_each_further_value(cost, alike, one, other):
    """And at least that of the worst: it is a mean over trees, which have n − 1 pairs each."""
    model, values = of_numbers(cost, alike, 1.0), [*one, *other]
    compared = naive_comparisons.Compared.of(model.attributes["x"])
    texts = [pt.Number().parse(value) for value in values]
    pairs = [compared.evidence(v, w) for v, w in itertools.combinations(texts, 2)]
    found = evidence_of(model, [[{"x": value} for value in values]])[0]
    n = len(values) - 1
    assert n * min(pairs) - 1e-9 <= found <= n * max(pairs) + 1e-9


@examples(60)
@given(
    st.dictionaries(
        st.sampled_from(WORDS), st.sampled_from([0.5, 1, 1.5, 2, 2.4, 2.5, 3.5, 700]), min_size=1
    ),
    st.sampled_from([*WORDS, "unseen"]),
    shares,
    st.integers(2, 6),
)
def test_agreement_is_bounded_by_how_many_entities_are_known(counts, value, share, n):
    """An attribute that all entities have to themselves says log(m·(E + 1)/(1 − d)), others less; never more."""
    attribute = pt.Category(agreement=(*[0.1] * 7, share), corpus=Corpus(counts))
    d, entities = naive_comparisons.discount(counts.values()), sum(counts.values())
    assert discount_of(np.array(list(counts.values()))) == pytest.approx(d, rel=1e-12)
    assert 0.0 < d < 1.0
    bound = math.log(share * (entities + 1) / (1 - d))
    found = evidence_of(pt.Record({"x": attribute}, rate=0), [[{"x": value}] * n])[0] / (n - 1)
    assert found <= bound + 1e-9
    if counts.get(value, 0) <= 2:
        assert found == pytest.approx(bound, abs=1e-9)


def test_the_discount_by_hand():
    """Where hardly any value is shared, sharing one is hardly ever chance."""
    assert discount_of(np.zeros(0)) == pytest.approx(0.8)
    assert discount_of(np.ones(95)) == pytest.approx(0.99)
    assert discount_of(np.array([1.0, 1.4, 1.5, 2.0, 2.4, 2.5, 90.0])) == pytest.approx(6 / 13)
    assert discount_of(np.full(100, 2.0)) == pytest.approx(4 / 205)


def test_references_with_the_same_words_in_another_order_are_alike_but_not_equal():
    """They are compared as what is as alike as can be without being equal, so they are to be counted there."""
    said, other = "ada king lovelace", "lovelace ada king"
    strangers = ("charles babbage", "bob hoskins", "emile zola", "george sand")
    alone = pt.Text(corpus=Corpus({said: 1, other: 1, **dict.fromkeys(strangers, 1)}))
    few, many = (replace(alone, references=(*strangers, *[other] * n)) for n in (0, 4))
    level = settings.LEVELS - 2
    overall = naive_comparisons.Compared(many).overall
    u = max(naive_comparisons.Compared(many).u(value)[level] for value in (said, other))
    assert naive_comparisons.Compared(many).strangers(said)[level] == 4
    assert overall[level] < u
    assert nats(many, said, other) == pytest.approx(math.log(alone.agreement[level] / u), abs=1e-9)
    assert nats(many, said, other) < nats(few, said, other) - 0.5


def test_references_of_the_same_category_do_not_differ():
    """So that to differ says less where few do."""
    corpus = Corpus({"m": 50, "f": 50})
    job = pt.Category(corpus=corpus, references=("m",) * 50 + ("f",) * 50)
    overall = (100 * 50 + UNKNOWN[0]) / (100 * 99 + 1)
    u = (50 + SHAPE) / (100 + SHAPE / overall)
    assert nats(job, "m", "f") == pytest.approx(math.log(job.agreement[0] / u), abs=1e-9)


@pytest.mark.parametrize("kind", [pt.Text, pt.Value, pt.Category, pt.Date, pt.Number])
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"weight": 0.0}, "weight of 'x'"),
        ({"weight": -1.0}, "weight of 'x'"),
        ({"weight": math.nan}, "weight of 'x'"),
        ({"weight": math.inf}, "weight of 'x'"),
        ({"agreement": (0.5, 0.5)}, "agreement of 'x' must be 8 numbers"),
        ({"agreement": (0.0, *[0.1] * 7)}, "agreement of 'x' must be 8 numbers"),
        ({"agreement": (*[0.1] * 7, 1.0)}, "agreement of 'x' must be 8 numbers"),
        ({"agreement": (*[0.1] * 7, math.nan)}, "agreement of 'x' must be 8 numbers"),
        ({"agreement": (*[0.1] * 7, "0.1")}, "agreement of 'x' must be 8 numbers"),
    ],
)
def test_hyperparameters_of_attributes_are_checked(kind, parameters, message):
    with pytest.raises(ValueError, match=message):
        pt.SplitSMC(pt.Record({"x": kind(**parameters)})).fit([{"x": 3}])


# ---------------------------------------------------------------------- samplers


PERSONS = [  # names, when they were born, how tall they are, on what floors they may be found, and what they do
    (["ada lovelace", "a lovelace", "ada byron"], ["1815-12-10", "1815"], 1.5, 0, "poet"),
    (["charles babbage", "babbage", "c babbage"], ["1791-12-26", "1791"], 1.7, 3, "engineer"),
    (["george babbage", "g babbage", "babbage"], ["1815-02-03", "1815"], 1.8, 2, "engineer"),
    (["emile zola", "e zola", "zola"], ["1840-04-02", "1840"], 8.1, 6, "poet"),
]


def people(n, seed=0):
    """Fragments of all kinds of some who are easily confused, and whose each is."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(len(PERSONS), size=n)
    found = []
    for names, born, height, floor, job in (PERSONS[k] for k in truth):
        one = {"name": rng.choice(names, rng.integers(1, 3), replace=False).tolist()}
        if rng.random() < 0.7:
            one["born"] = str(rng.choice(born))
        if rng.random() < 0.5:
            one["height"] = height + 0.1 * float(rng.integers(2))
        if rng.random() < 0.5:
            one["floor"] = floor + int(rng.integers(2))
        if rng.random() < 0.5:
            one["job"] = job
        found.append(one)
    return found, truth


@pytest.fixture(scope="module", params=[True, False], ids=["labels", "no labels"])
def fitted(request):
    said, truth = people(40)
    kinds = {name: KINDS[name]() for name in ("name", "born", "height", "floor", "job")}
    return pt.Record(kinds).fit_prior(said, truth if request.param else None), said


def assert_scored(log_density, labels, model, said):
    scores = naive_comparisons.Scores(model, said, ALPHA)
    expected = scores(oracle.partition_of(range(len(said)), labels))
    assert log_density == pytest.approx(expected, abs=1e-8)


def test_samplers_report_the_oracles_scores(fitted):
    model, said = fitted
    for particles in (1, 10):
        sampler = pt.SplitSMC(model, ALPHA, particles, random_state=0).fit(said)
        assert_scored(sampler.posterior_.log_density(), sampler.labels_, model, said)
        sampler.refine(2)
        assert_scored(sampler.posterior_.log_density(), sampler.labels_, model, said)
        sampler.remove(7)
        rest = [one for k, one in enumerate(said) if k != 7]
        assert_scored(sampler.posterior_.log_density(), sampler.labels_, model, rest)
    counts = {sampler.labels_.max() + 1}
    for offline in (pt.Gibbs(model, ALPHA, random_state=0), pt.Agglomerative(model, ALPHA)):
        offline.fit(said)
        assert_scored(offline.log_density(), offline.labels_, model, said)
        counts.add(offline.labels_.max() + 1)
    assert any(1 < n < len(said) for n in counts)


@pytest.mark.parametrize("seed", range(effort(3, 20)))
def test_with_enough_particles_the_best_partition_is_found(fitted, seed):
    model, _ = fitted
    said, _ = people(6, seed)
    scores = naive_comparisons.Scores(model, said, ALPHA)
    exact = {partition: scores(partition) for partition in oracle.all_partitions(6)}
    best = max(exact, key=exact.get)
    sampler = pt.SplitSMC(model, ALPHA, oracle.BELL[6]).fit(said)
    assert oracle.partition_of(range(6), sampler.labels_) == best
    assert sampler.posterior_.log_density() == pytest.approx(exact[best], abs=1e-8)
    assert oracle.product(oracle.factors(sampler.posterior_)) == pytest.approx(
        oracle.normalised(exact), abs=1e-8
    )
