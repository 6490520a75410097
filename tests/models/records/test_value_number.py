"""Attributes with one true value, and numbers: kernels against the formulas, written once more in Python."""

import datetime
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import partita as pt
from partita._core.kernel import kernel
from partita.models.records.kinds.number import as_number, resolution_of
from partita.models.records.kinds.value import edit_distance
from partita.models.records.tables import CAPACITY, COUNT, START, kept_tables
from partita.models.scoring.families import extend, gains, join, log_marginal, reduce
from partita.offline.sweeps import new_rows
from tests.helpers.effort import examples
from tests.helpers.naive_values import naive_distance, naive_numbers, naive_values

quick = examples(20)
TEXTS = [
    "anna",
    "ana",
    "nana",
    "hanna",
    "anan",
    "bob",
    "rob",
    "bo",
    "ro",
    "漢字",
    "字",
    "x" * 70,
    "x" * 69 + "y",
    "y" + "x" * 80,
]
NUMBERS = [1, 2, 2.5, 1e6, -3, 0, 1999, 2001, 0.1]
CORPUS = {"anna": 5, "ana": 2, "bob": 3, "rob": 1, "eve": 4}

fragments = st.fixed_dictionaries(
    {},
    optional={
        "name": st.lists(st.sampled_from(TEXTS), min_size=1, max_size=3),
        "born": st.lists(st.sampled_from(NUMBERS), min_size=1, max_size=3),
        "town": st.lists(st.sampled_from(["old york", "new york", "york"]), min_size=1, max_size=2),
    },
)
clusters = st.lists(fragments, min_size=1, max_size=7)


def record(rate=0.0):
    number = pt.Number(theta=0.7).with_corpus({"1": 3, "2.5": 1, "1999": 4, "2001": 2.5, "-3": 1})
    return pt.Record(
        {"name": pt.Value(distortion=0.1).with_corpus(CORPUS), "born": number, "town": pt.Text()}, rate=rate
    )


def rows_for(cluster, rate=0.0, n_rows=4):
    model = record(rate)
    model.check(1)
    return new_rows(model, model.validate(cluster), n_rows), model


@kernel
def play(rows, c, order, gain):
    """Add the observations to row c, one by one; returns log p(c)."""
    ids = np.zeros(1, np.int64)
    for size in range(order.shape[0]):
        gains(rows.family, rows.statistics, ids, 0, 1, rows.data, order[size], rows.gain)
        gain[size] = rows.gain[ids[0]] - (math.log(size) if size > 0 else 0.0)
        extend(rows.family, rows.statistics, c, ids[0], size, rows.data, order[size])
        ids[0] = c
    return log_marginal(rows.family, rows.statistics, c, order.shape[0], rows.data.shape[1])


@kernel
def take_out(rows, child, parent, size, x):
    if not reduce(rows.family, rows.statistics, child, parent, size, rows.data, x):
        return np.nan
    return log_marginal(rows.family, rows.statistics, child, size - 1, rows.data.shape[1])


@kernel
def united(rows, child, first, second, n_first, n_second):
    join(rows.family, rows.statistics, child, first, second, n_first, n_second, rows.data.shape[1])
    return log_marginal(rows.family, rows.statistics, child, n_first + n_second, rows.data.shape[1])


@kernel
def distance(parts, n):
    return edit_distance(parts, np.int64(0), n, n, parts.shape[0] - n)


def counts(rows, c):
    start, capacity = rows.statistics[c, [START, CAPACITY]].astype(int)
    table = kept_tables(rows.family.tables)[0][start : start + capacity]
    return {int(entry >> 32): int(entry & COUNT) for entry in table if entry & COUNT}


@quick
@given(st.text("ab", max_size=64), st.text("abé漢", max_size=64))
def test_the_edit_distance_allows_exchanged_neighbours(u, v):
    parts = np.array([ord(letter) for letter in u + v], np.int64)
    assert distance(parts, len(u)) == naive_distance(u, v)


@quick
@given(clusters, st.randoms(use_true_random=False))
def test_p_is_what_the_formulas_say(cluster, random):
    bare = [{name: said for name, said in fragment.items() if name != "town"} for fragment in cluster]
    rows, model = rows_for(bare)
    gain = np.empty(len(bare))
    order = random.sample(range(len(bare)), len(bare))
    found = play(rows, 1, np.array(order), gain)
    names = [v for fragment in bare for v in sorted(set(fragment.get("name", [])))]
    born = [v for fragment in bare for v in sorted(set(map(float, fragment.get("born", []))))]
    expected = naive_values(model.attributes["name"], names) + naive_numbers(model.attributes["born"], born)
    assert found == pytest.approx(expected, rel=1e-10, abs=1e-9)
    assert gain.sum() == pytest.approx(found, rel=1e-11, abs=1e-9)


@quick
@given(clusters, st.randoms(use_true_random=False), st.sampled_from([0.0, 2.0]))
def test_order_does_not_matter_and_removal_undoes(cluster, random, rate):
    rows, _ = rows_for(cluster, rate)
    n, gain = len(cluster), np.empty(len(cluster))
    orders = [np.arange(n), np.array(random.sample(range(n), n))]
    found = [play(rows, c + 1, order, gain) for c, order in enumerate(orders)]
    assert found[0] == pytest.approx(found[1], abs=1e-9)
    assert gain.sum() == pytest.approx(found[1], abs=1e-9)
    assert counts(rows, 1) == counts(rows, 2)
    if n > 1:
        x = random.randrange(n)
        without = play(rows, 2, np.array([y for y in range(n) if y != x]), gain)
        assert take_out(rows, 3, 1, n, x) == pytest.approx(without, abs=1e-9)
        assert counts(rows, 3) == counts(rows, 2)
        assert take_out(rows, 1, 1, n, x) == pytest.approx(without, abs=1e-9)
        assert counts(rows, 1) == counts(rows, 2)


@quick
@given(clusters, clusters)
def test_a_union_is_what_adding_one_by_one_gives(one, other):
    rows, _ = rows_for(one + other, 2.0)
    n, gain = len(one) + len(other), np.empty(len(one) + len(other))
    whole = play(rows, 1, np.arange(n), gain)
    play(rows, 2, np.arange(len(one)), gain)
    play(rows, 3, np.arange(len(one), n), gain)
    assert united(rows, 3, 2, 3, len(one), len(other)) == pytest.approx(whole, abs=1e-9)
    assert counts(rows, 3) == counts(rows, 1)


def test_large_clusters():
    """More values than there is room for at first, and pairs that compete for a place in the memory."""
    random = np.random.default_rng(0)
    cluster = [{"name": "".join(random.choice(list("abcde"), 6)), "born": float(x % 90)} for x in range(150)]
    rows, model = rows_for(cluster)
    gain = np.empty(150)
    found = play(rows, 1, np.arange(150), gain)
    expected = naive_values(model.attributes["name"], [fragment["name"] for fragment in cluster])
    expected += naive_numbers(model.attributes["born"], [fragment["born"] for fragment in cluster])
    assert found == pytest.approx(expected, rel=1e-10)
    assert gain.sum() == pytest.approx(found, rel=1e-10)


@given(st.sampled_from(["abcde", "abc", "zz"]), st.sampled_from([0.1, 0.9]))
def test_typos_are_less_than_a_probability(y, rho):
    """Over all strings of three letters, up to a length."""
    letters, total = 3, 0.0
    for length in range(6):
        for v in map("".join, itertools.product("abc", repeat=length)):
            if d := naive_distance(v, y):
                typo = (1 - rho) * rho ** (d - 1)
                total += typo / math.prod(letters * (2 * (len(y) + k) + 1) for k in range(d))
    assert 0.0 < total < 1.0


def test_a_typo_is_evidence_and_another_value_is_not():
    corpus = {"catherine": 3, "margaret": 3, "elizabeth": 3, "susan": 20}
    model = pt.Record({"name": pt.Value().with_corpus(corpus)}, rate=0.0)
    model.check(1)
    names = ["catherine", "cahterine", "catherine", "margaret", "susan"]
    rows = new_rows(model, model.validate([{"name": name} for name in names]), 2)
    gain = np.empty(2)
    evidence = []
    for x in range(1, len(names)):
        play(rows, 1, np.array([0, x]), gain)
        together = gain[1]
        play(rows, 1, np.array([x]), gain)
        evidence.append(together - gain[0])
    typo, same, other, frequent = evidence
    assert min(typo, same) > 2.0  # a typo of a rare name says more than the same common one again
    assert max(other, frequent) < -2.0


def test_records_with_values_and_numbers_are_clustered():
    said = [
        {"name": "Catherine Jones", "born": 1931, "size": "1,250.5"},
        {"name": "Margaret Hill", "born": 1988, "size": 700},
        {"name": "Cathrine Jones", "born": "1931"},
        {"name": ["Margaret Hill", "Magaret Hill"], "size": "700.0"},
        {"name": "Susan Wu", "born": 1954, "size": 91.25},
    ]
    kinds = {"name": pt.Value(), "born": pt.Number(), "size": pt.Number()}
    model = pt.Record(kinds).fit_prior(said, labels=[0, 1, 0, 1, 2])
    assert pt.SplitSMC(model, alpha=1.0).fit_predict(said).tolist() == [0, 1, 0, 1, 2]
    again = pt.Record.from_json(model.to_json())
    assert again.attributes == model.attributes
    assert pt.Record.from_toml(model.to_toml()).attributes["born"].theta == model.attributes["born"].theta


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (3, 3.0), (2.5, 2.5), (np.float32(0.5), 0.5), (np.int64(7), 7.0), (-0.0, 0.0),
        (" 12 ", 12.0), ("-.5", -0.5), ("7.", 7.0), ("−4", -4.0), ("+1e3", 1000.0), ("1234567", 1234567.0),
        ("1,234,567.5", 1234567.5), ("1 000", 1000.0), ("1'000", 1000.0), ("1_000", 1000.0),
        ("1\u202f000", 1000.0),
    ],
)  # fmt: skip
def test_numbers_that_are_read(raw, expected):
    assert as_number(raw) == expected
    assert math.copysign(1.0, as_number(raw)) == math.copysign(1.0, expected)
    assert float(pt.Number().parse(raw)) == expected


@pytest.mark.parametrize(
    "raw",
    [
        "12 kg", "$5", "1,5", "12,34", "1,000 000", "", ".", "e5", "1.2.3", "abc", "nan", "inf", "1e400",
        "0x10", math.nan, math.inf, True, np.True_, None, [1], 10**400, 1j, datetime.date(2000, 1, 1),
    ],
)  # fmt: skip
def test_what_is_no_number_is_refused(raw):
    with pytest.raises(ValueError, match="number"):
        pt.Number().parse(raw)


def test_the_same_number_is_the_same_value():
    parse = pt.Number().parse
    assert parse("1,000.0") == parse(1000) == parse(1e3) == "1000"
    assert parse(0.1) == parse("0.10") == parse(".1") == "0.1"
    assert parse(1e22) == parse("1e22")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], 1.0),
        ([0, 0], 1.0),
        ([1, 2, 3], 1.0),
        ([0.25, 1.5], 0.01),
        ([1000, 20], 10.0),
        ([1234567890.1], 0.1),
    ],
)
def test_the_resolution_is_found(values, expected):
    assert resolution_of(values) == pytest.approx(expected)


@pytest.mark.parametrize(
    "attribute",
    [
        pt.Value(distortion=0.0),
        pt.Value(typo=1.0),
        pt.Value(letters=0),
        pt.Number(spread=-1.0),
        pt.Number(theta=0.0),
    ],
)
def test_hyperparameters_that_make_no_sense_are_refused(attribute):
    with pytest.raises(ValueError, match="of 'a'"):
        pt.Record({"a": attribute}).check(1)


@pytest.mark.parametrize("value", [1e99, -1e99, 1e-90])
def test_extreme_numbers_have_a_density(value):
    model = pt.Record({"a": pt.Number()}).fit_prior([{"a": value}, {"a": 3.0}], labels=[0, 1])
    assert math.isfinite(
        pt.SplitSMC(model, alpha=1.0).fit([{"a": value}, {"a": 3.0}]).posterior_.log_density()
    )


def test_long_values_have_a_density():
    said = [{"a": "word " * 2000}, {"a": "word " * 1999 + "end"}, {"a": "漢" * 500}]
    model = pt.Record({"a": pt.Value()}).fit_prior(said, labels=[0, 0, 1])
    assert math.isfinite(pt.SplitSMC(model, alpha=1.0).fit(said).posterior_.log_density())


def test_distortion_is_learnt():
    value = pt.Value()
    faithful = value.learnt_from([{"a": 100}, {"b": 50}, {"c": 1}])
    careless = value.learnt_from([{"a": 60, "b": 30, "c": 10}, {"d": 1}])
    assert faithful.distortion < 0.01 < 0.3 < careless.distortion < 0.4
