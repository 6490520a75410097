"""Fragments: what is read as one, what its id is, what is refused."""

import csv
import datetime
import io
import json
from decimal import Decimal
from uuid import UUID

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.kb.fragments import EmptyFragment, Fragment, FragmentReader, as_fragment, as_fragments

TEXTS = st.text(min_size=1).filter(lambda text: text.strip() and not set(text) & {"\0"})
VALUES = st.one_of(TEXTS, st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.booleans())
PROPERTIES = st.dictionaries(TEXTS, st.lists(VALUES, min_size=1, max_size=3), min_size=1, max_size=4)


# ---------------------------------------------------------------------- forms


def test_the_nested_form():
    given = {"properties": {"name": ["Standard Liège"], "sport": "football"}, "id": "a", "source": "web"}
    expected = Fragment("a", "web", {"name": ["Standard Liège"], "sport": ["football"]})
    assert as_fragment(given, 0) == expected


def test_the_flat_form():
    given = {
        "id": "a",
        "name": "Ada",
        "born": 1815,
        "aliases": ["A.", "", None],
        "died": None,
        "x": float("nan"),
    }
    assert as_fragment(given, 0) == Fragment("a", None, {"name": ["Ada"], "born": [1815], "aliases": ["A."]})


@given(PROPERTIES.filter(lambda properties: not {"id", "source", "properties"} & set(properties)))
def test_both_forms_of_the_same_are_the_same_fragment(properties):
    nested, flat = as_fragment({"properties": properties}, 0), as_fragment(properties, 0)
    assert nested == flat == Fragment(nested.digest, None, properties)


def test_beside_nested_properties_nothing_is_a_property():
    given = {"properties": {"name": "Ada", "id": 3}, "entity_id": "Q1", "group": 4}
    assert as_fragment(given, 0).properties == {"name": ["Ada"], "id": [3]}


def test_a_column_called_properties_is_one():
    assert as_fragment({"properties": "a house", "rooms": 3}, 0).properties == {
        "properties": ["a house"],
        "rooms": [3],
    }


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (None, None),
        ("", None),
        ([], None),
        ("web", "web"),
        (["a", None, "b"], "a; b"),
        (7, "7"),
        ("a\0", "a�"),
    ],
)
def test_sources(source, expected):
    assert as_fragment({"name": "Ada", "source": source}, 0).source == expected


def test_other_fields_for_id_and_source_and_fields_to_ignore():
    given = {"key": 7, "file": "a.csv", "id": "x", "name": "Ada", "note": "?"}
    found = as_fragment(given, 0, id_field="key", source_field="file", ignore=["note"])
    assert found == Fragment("7", "a.csv", {"id": ["x"], "name": ["Ada"]})
    found = as_fragment(given, 0, id_field=None, source_field=None)
    assert found.source is None
    assert found.id == found.digest
    assert found.properties["id"] == ["x"]
    nested = {"properties": {"name": "Ada", "note": "?"}, "key": 7}
    assert as_fragment(nested, 0, id_field="key", ignore={"note"}) == Fragment("7", None, {"name": ["Ada"]})


def test_values_that_are_plain_as_text():
    given = {
        "day": datetime.date(1815, 12, 10),
        "time": datetime.time(1, 2),
        "price": Decimal("1.50"),
        "key": UUID(int=5),
        "count": np.int64(3),
        "ratio": np.float32(0.5),
        "flag": np.bool_(True),
        "many": np.array([1, 2]),
        "when": pd.Timestamp("2020-01-01"),
        "never": pd.NaT,
        "nothing": pd.NA,
    }
    assert as_fragment(given, 0).properties == {
        "day": ["1815-12-10"],
        "time": ["01:02:00"],
        "price": ["1.50"],
        "key": ["00000000-0000-0000-0000-000000000005"],
        "count": [3],
        "ratio": [0.5],
        "flag": [True],
        "many": [1, 2],
        "when": ["2020-01-01 00:00:00"],
    }


# ---------------------------------------------------------------------- mappings within mappings


def test_nested_fields_have_dotted_names():
    given = {"_id": {"$oid": 7}, "name": "Ada", "at": {"city": "Paris", "geo": {"lat": 1.5}}, "x": {"y": 1}}
    assert as_fragment(given, 0, "_id.$oid", ignore=["x"]) == Fragment(
        "7", None, {"name": ["Ada"], "at.city": ["Paris"], "at.geo.lat": [1.5]}
    )
    assert "at.city" not in as_fragment(given, 0, "_id.$oid", ignore=["at.city"]).properties
    reader = FragmentReader("_id.$oid")
    assert [fragment.id for fragment in reader.read([(1, given), (2, given)])] == ["7"]
    assert reader.repeated == 1


def test_the_nested_form_stays_and_its_properties_are_flattened():
    given = {
        "id": "1",
        "meta": {"by": "x"},
        "properties": {"name": ["Ada"], "at": [{"city": "Paris"}, "Rome"]},
    }
    assert as_fragment(given, 0).properties == {"name": ["Ada"], "at.city": ["Paris"], "at": ["Rome"]}


# ---------------------------------------------------------------------- ids


@pytest.mark.parametrize(
    ("raw", "expected"),
    [("a b", "a b"), (7, "7"), (7.0, "7"), (np.int64(7), "7"), (UUID(int=0), str(UUID(int=0)))],
)
def test_ids_are_text(raw, expected):
    assert as_fragment({"id": raw, "name": "Ada"}, 0).id == expected


@pytest.mark.parametrize("raw", [True, [1], 1.5, b"x"])
def test_what_cannot_be_an_id(raw):
    with pytest.raises(ValueError, match="row 4: an id is text or a whole number"):
        as_fragment({"id": raw, "name": "Ada"}, 4)


@pytest.mark.parametrize("missing", [{}, {"id": None}, {"id": ""}, {"id": " "}, {"id": float("nan")}])
def test_without_an_id_the_digest_serves(missing):
    found = as_fragment({"name": "Ada", **missing}, 0)
    assert found.id == found.digest == "ed92fc82fc7a9521b3fa"


@given(PROPERTIES, PROPERTIES, st.sampled_from([None, "a"]), st.sampled_from([None, "a"]))
def test_digests_are_equal_where_contents_are(first, second, here, there):
    """By type too: a truth value is no number, and the order of attributes says nothing."""
    digests = [Fragment("x", here, first).digest, Fragment("y", there, second).digest]
    contents = [json.dumps([here, sorted(first.items())]), json.dumps([there, sorted(second.items())])]
    assert (digests[0] == digests[1]) == (contents[0] == contents[1])
    assert Fragment("x", here, dict(reversed(first.items()))).digest == digests[0]


# ---------------------------------------------------------------------- what is refused, what is mended


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"name": {1: "Ada"}}, "row 3, attribute 'name': attributes are named by text, got 1"),
        ({"id": {"oid": "7"}, "name": "Ada"}, "row 3: the field 'id' has fields of its own.*id.oid"),
        ({"name": [["Ada"]]}, "row 3, attribute 'name': must be text, a number or a date, not list"),
        (
            {"name": [[{"first": "Ada"}]]},
            "row 3, attribute 'name': must be text, a number or a date, not list",
        ),
        ({"name": b"Ada"}, "row 3, attribute 'name': must be text, a number or a date, not bytes"),
        ({"born": float("inf")}, "row 3, attribute 'born': inf is not a number"),
        ({"na\0me": "Ada"}, "row 3: the name 'na.x00me' has a NUL"),
        ({"na\ud800me": "Ada"}, "row 3: the name .* a lone surrogate"),
        ({"id": "a\0", "name": "Ada"}, "row 3: the id 'a.x00' has a NUL"),
        ({"id": "\udfff", "name": "Ada"}, "row 3: the id .* a lone surrogate"),
        ({}, "row 3: no property says anything"),
        ({"id": 1, "source": "x", "name": " "}, "row 3: no property says anything"),
        ({"properties": {}}, "row 3: no property says anything"),
    ],
)
def test_what_cannot_be_a_fragment(given, message):
    with pytest.raises((TypeError, ValueError), match=message):
        as_fragment(given, 3)


@pytest.mark.parametrize("given", [{"name": "Ada", 3: "x"}, ["name"], "name", None])
def test_what_does_not_map_names_to_values(given):
    with pytest.raises(TypeError, match="row 3"):
        as_fragment(given, 3)


def test_rows_with_more_fields_than_the_header():
    rows = csv.DictReader(io.StringIO("name,town\nAda,London\nLovelace, Ada,London\n"))
    with pytest.raises(ValueError, match="row 1: more fields than the header has; is a field"):
        list(as_fragments(rows))


def test_a_named_field_must_be_there():
    with pytest.raises(
        ValueError, match="row 2: there is no field 'key' for the id; there are 'name', 'town'"
    ):
        as_fragment({"name": "Ada", "town": "London"}, 2, id_field="key")
    with pytest.raises(ValueError, match="row 2: there is no field 'file' for the source"):
        as_fragment({"name": "Ada"}, 2, source_field="file")
    assert as_fragment({"name": "Ada", "key": ""}, 2, id_field="key").id == "ed92fc82fc7a9521b3fa"


@given(st.text(st.characters(exclude_categories=())).filter(str.strip))
def test_text_is_kept_but_for_what_cannot_be_stored(text):
    (found,) = as_fragment({"name": text}, 0).properties["name"]
    found.encode()
    assert "\0" not in found
    assert len(found) == len(text)
    for before, after in zip(text, found, strict=True):
        assert after == before or (after == "�" and (before == "\0" or 0xD800 <= ord(before) < 0xE000))


# ---------------------------------------------------------------------- streams


ROWS = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from("ab")},
        optional={"id": st.sampled_from([1, 2]), "source": st.sampled_from("xy")},
    )
)


@given(ROWS)
def test_streams_against_an_oracle(rows):
    said = {}
    clash = False
    for row in rows:
        if "id" in row:
            clash |= said.setdefault(row["id"], row) != row
    if clash:
        with pytest.raises(ValueError, match="have the same id"):
            list(as_fragments(rows))
        return
    found = list(as_fragments(rows))
    assert len({fragment.id for fragment in found}) == len(found)
    assert len(found) == len(said) + sum("id" not in row for row in rows)
    assert list(as_fragments(rows)) == found


def test_identical_rows_are_fragments_of_their_own_and_numbered():
    found = list(as_fragments([{"name": "Ada"}, {"name": "Bob"}, {"name": "Ada"}, {"name": "Ada"}]))
    first = found[0].digest
    assert [fragment.id for fragment in found] == [first, found[1].digest, f"{first}-2", f"{first}-3"]
    assert found[2].digest == first


def test_an_id_twice():
    same = [{"id": 1, "name": "Ada"}, {"id": "1", "name": ["Ada"]}]
    reader = FragmentReader()
    assert len(list(reader.read(enumerate(same)))) == 1
    assert reader.repeated == 1
    message = r"row 2 and row 0 have the same id, '1', and say .* 'id' is not unique.*--id COLUMN.*--no-id"
    with pytest.raises(ValueError, match=message):
        list(as_fragments([*same, {"id": 1, "name": "Bob"}]))
    assert len(list(as_fragments([*same, {"id": 1, "name": "Bob"}], id_field=None))) == 3


def test_a_reader_goes_on_where_it_stopped():
    reader = FragmentReader()
    (first,) = reader.read([(1, {"name": "Ada"})])
    (second,) = reader.read([(1, {"name": "Ada"})])
    assert second.id == f"{first.id}-2"
    assert len(list(reader.read([(1, {"id": 5, "name": "Ada"})]))) == 1
    with pytest.raises(ValueError, match="row 1 and row 1"):
        list(reader.read([(1, {"id": 5, "name": "Bob"})]))


def test_empty_rows_are_refused_or_skipped_and_counted():
    rows = [{"name": "Ada"}, {"id": 4, "name": ""}, {}]
    with pytest.raises(EmptyFragment, match="row 1"):
        list(as_fragments(rows))
    reader = FragmentReader(skip_empty=True)
    assert len(list(reader.read(enumerate(rows)))) == 1
    assert reader.skipped == 2


def test_fragments_come_one_by_one():
    def rows():
        yield {"name": "Ada"}
        raise AssertionError("read ahead")

    assert next(as_fragments(rows())).properties == {"name": ["Ada"]}


def test_a_data_frame_is_a_stream():
    frame = pd.DataFrame({"id": [1, None], "name": ["Ada", "Bob"], "born": [1815, np.nan]})
    first, second = as_fragments(frame)
    assert first == Fragment("1", None, {"name": ["Ada"], "born": [1815.0]})
    assert second == Fragment(second.digest, None, {"name": ["Bob"]})


@pytest.mark.parametrize("given", ["name", {"name": "Ada"}, 5, None])
def test_what_is_no_stream(given):
    with pytest.raises(TypeError, match="must be a list of mappings or a table"):
        as_fragments(given)


def test_a_field_within_another_may_be_ignored():
    reader = FragmentReader(ignore=["address.city", "address.town"])
    [found] = reader.read([(1, {"id": 1, "address": {"city": "Paris", "zip": "75001"}})])
    assert found.properties == {"address.zip": ["75001"]}
    assert reader.unseen == {"address.town"}
