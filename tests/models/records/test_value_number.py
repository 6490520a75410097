"""Attributes with one true value, and numbers: what is read, how far apart is alike, and extremes."""

import datetime
import math

import numpy as np
import pytest

import partita as pt
from partita.models.records.kinds.number import as_number, resolution_of


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
    assert pt.Record.from_toml(model.to_toml()).attributes["born"].weight == model.attributes["born"].weight


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
    ("counts", "spread", "expected"),
    [
        ({}, 0.5, 1.0),
        ({"7": 3}, 0.5, 1.0),  # no nearer than one step
        ({"1.25": 1, "1.5": 9}, 0.01, 0.01),
        ({str(k): 1 for k in range(0, 1000, 10)}, 0.5, 0.5 * 500 / 1.349),
        ({"0": 1, "500": 2, "1000": 1}, 2.0, 2.0 * 500 / 1.349),
    ],
)
def test_how_far_apart_numbers_may_lie(counts, spread, expected):
    """Relative to the quartiles of the corpus, and by a step of the numbers at least."""
    assert pt.Number(spread=spread).with_corpus(counts).scale == pytest.approx(expected)


def test_near_numbers_say_more_than_far_ones():
    number = pt.Number(spread=0.5).with_corpus({str(k): 1 for k in range(0, 1000, 10)})
    pairs = [[{"x": 500}, {"x": x}] for x in (500, 501, 590, 900)]
    same, near, farther, far = pt.Record({"x": number}, rate=0).log_likelihood(pairs)
    assert same > near > farther > far


@pytest.mark.parametrize("spread", [0.0, -1.0, math.nan, math.inf])
def test_spreads_that_make_no_sense_are_refused(spread):
    with pytest.raises(ValueError, match="spread of 'a'"):
        pt.Record({"a": pt.Number(spread=spread)}).check(1)


@pytest.mark.parametrize("value", [1e99, -1e99, 1e-90])
def test_extreme_numbers_have_a_density(value):
    said = [{"a": value}, {"a": 3.0}, {"a": value}]
    model = pt.Record({"a": pt.Number()}).fit_prior(said, labels=[0, 1, 0])
    sampler = pt.SplitSMC(model, alpha=1.0).fit(said)
    assert math.isfinite(sampler.posterior_.log_density())
    assert sampler.posterior_.together(0, 2) > sampler.posterior_.together(0, 1)


def test_long_values_have_a_density():
    said = [{"a": "word " * 2000}, {"a": "word " * 1999 + "end"}, {"a": "漢" * 500}]
    model = pt.Record({"a": pt.Value()}).fit_prior(said, labels=[0, 0, 1])
    assert math.isfinite(pt.SplitSMC(model, alpha=1.0).fit(said).posterior_.log_density())


def test_values_are_expected_to_be_the_same_more_often_than_texts():
    assert pt.Value().agreement[-1] > pt.Text().agreement[-1]
    for kind in (pt.Value, pt.Text):
        assert sum(kind().agreement) == pytest.approx(1.0)
