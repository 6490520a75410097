"""Comparisons of values: the kernels against a naive p(c), value by value; every order, removal, unions, samplers."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import partita as pt
from partita.models.records.comparisons import family as settings
from partita.models.records.comparisons.vocabulary import SHAPE, UNKNOWN
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
    shares = draw(st.dictionaries(st.sampled_from(list(schema)), st.sampled_from([0.0, 0.2, 0.9])))
    types = [(0.6, shares), (0.1, {}), (0.3, {"name": 0.7, "job": 0.2})]
    presence, types = draw(st.sampled_from([(None, None), (shares, None), (None, types)]))
    return pt.Record(schema, draw(st.sampled_from([0, 0.5, 2.0])), presence, types)


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
    assert rows.marginal(1) == pytest.approx(naive(X, model, exact=True), abs=1e-2)


@quick
@given(models(), st.lists(records, min_size=1, max_size=4), records)
def test_a_gain_is_the_same_from_one_cluster_and_from_many(model, X, new):
    rows = Rows(model, [*X, new])
    n = len(X)
    for row in range(1, n + 1):
        rows.fill(row, [row - 1])
    found = rows(*[(GAIN, row, n) for row in range(1, n + 1)])
    assert found.tolist() == pytest.approx([naive([x, new], model) - naive([x], model) for x in X], abs=1e-9)


def test_numbers_that_can_be_checked_by_hand():
    """Two equal values are worth log m/u; of n of them the evidence is n − 1 times as much."""
    job = pt.Category(agreement=(0.3, *[0.01] * 6, 0.64), corpus=Corpus({"poet": 5, "actor": 1, "baker": 10}))
    model = pt.Record({"job": job}, rate=0)
    same, others = math.log(0.64 / (4 / 16)), math.log(0.3 / UNKNOWN[0])
    rows = [{"job": "poet"}, {"job": "poet"}, {"job": "poet"}, {"job": "actor"}]
    found = model.log_likelihood([rows[:1], rows[:2], rows[:3], rows[2:]])
    # of u there are no references: SHAPE / (SHAPE / UNKNOWN)
    assert found.tolist() == pytest.approx([0.0, same, 2 * same, others], abs=1e-5)
    halved = pt.Record({"job": replace(job, weight=0.5)}, rate=0)
    more = 1.5 ** (settings.COHESION / 2)
    assert halved.log_likelihood([rows[:2], rows[:3]]).tolist() == pytest.approx(
        [0.5 * same, 0.5 * 2 * more * same], abs=1e-5
    )


def test_what_the_oracle_takes_for_granted():
    """The constants of the formulas."""
    ours = naive_comparisons
    assert settings.BOUNDS.tolist() == ours.BOUNDS
    assert (settings.LEVELS, settings.SHARPNESS, settings.COHESION, SHAPE) == (
        ours.LEVELS,
        ours.SHARPNESS,
        ours.COHESION,
        ours.SHAPE,
    )
    assert UNKNOWN.tolist() == ours.UNKNOWN
    assert sum(ours.UNKNOWN) == pytest.approx(1.0)


@quick
@given(models(), records)
def test_a_fragment_by_itself_has_no_evidence(model, one):
    """Nothing but what it mentions, and what a kernel of its own says of it."""
    alone = pt.Record(model.attributes | {"floor": None}, rate=0)
    rows = Rows(alone, [one])
    assert rows.fill(1, [0]).tolist() == [0.0]
    assert rows.marginal(1) == 0.0


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


def test_large_clusters():
    """More values than there is room for at first, and pairs that compete for a place in the memory."""
    random = np.random.default_rng(0)
    cluster = [
        {"name": "".join(random.choice(list("abcde"), 6)), "born": float(x % 90) + 0.5}
        for x in range(effort(120, 500))
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


def people(n, seed=0):
    """Fragments of all kinds that are easily confused."""
    rng = np.random.default_rng(seed)
    names = ["ada lovelace", "a lovelace", "charles babbage", "babbage", "ada byron", "c babbage"]
    found = []
    for _ in range(n):
        one = {"name": rng.choice(names, rng.integers(1, 3), replace=False).tolist()}
        if rng.random() < 0.7:
            one["born"] = str(rng.choice(["1815-12-10", "1815", "1791"]))
        if rng.random() < 0.5:
            one["height"] = float(rng.choice([1.5, 1.7, 2.5, 8.1]))
        if rng.random() < 0.5:
            one["floor"] = int(rng.integers(0, 4))
        if rng.random() < 0.5:
            one["job"] = str(rng.choice(["poet", "engineer"]))
        found.append(one)
    return found


@pytest.fixture(scope="module", params=[True, False], ids=["labels", "no labels"])
def fitted(request):
    said = people(40)
    kinds = {name: KINDS[name]() for name in ("name", "born", "height", "floor", "job")}
    return pt.Record(kinds).fit_prior(said, np.arange(40) // 4 if request.param else None), said


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
    said = people(6, seed)
    scores = naive_comparisons.Scores(model, said, ALPHA)
    exact = {partition: scores(partition) for partition in oracle.all_partitions(6)}
    best = max(exact, key=exact.get)
    sampler = pt.SplitSMC(model, ALPHA, oracle.BELL[6]).fit(said)
    assert oracle.partition_of(range(6), sampler.labels_) == best
    assert sampler.posterior_.log_density() == pytest.approx(exact[best], abs=1e-8)
    assert oracle.product(oracle.factors(sampler.posterior_)) == pytest.approx(
        oracle.normalised(exact), abs=1e-8
    )
