"""Mappings within mappings: every value is there, under the path that leads to it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.models.records.fragments import check_fragment
from partita.models.records.nesting import DEEPEST, flattened

NAMES = st.text("abc.", min_size=1, max_size=2)
SCALARS = st.integers(0, 9) | st.text("xy", min_size=1, max_size=2)
NESTED = st.recursive(
    SCALARS | st.lists(SCALARS, max_size=3),
    lambda inner: (
        st.dictionaries(NAMES, inner, max_size=3)
        | st.lists(st.dictionaries(NAMES, inner, max_size=2), max_size=3)
    ),
    max_leaves=10,
)


def leaves(path, value):
    """Naively, each value with its path."""
    if isinstance(value, dict):
        return [leaf for name, inner in value.items() for leaf in leaves([*path, name], inner)]
    if isinstance(value, list):
        return [leaf for inner in value for leaf in leaves(path, inner)]
    return [(".".join(path), value)]


@given(st.dictionaries(NAMES, NESTED, max_size=4))
def test_every_value_has_the_name_of_its_path(fragment):
    expected = {}
    for name, value in leaves([], fragment):
        expected.setdefault(name, []).append(value)
    found = check_fragment("row 0", fragment)
    assert {name: sorted(map(repr, values)) for name, values in found.items()} == {
        name: sorted(map(repr, values)) for name, values in expected.items()
    }


def test_what_is_flat_is_left_as_it_is():
    fragment = {"name": ["Ada"], "born": 1815}
    assert flattened("row 0", fragment) is fragment
    kept = {"properties": {"name": {"first": "Ada"}}}
    assert flattened("row 0", kept, kept="properties") is kept


def test_what_is_too_deep_is_refused():
    deep = {"x": 1}
    for _ in range(DEEPEST + 2):
        deep = {"x": deep}
    with pytest.raises(ValueError, match=r"row 7, .*more than 100 mappings"):
        flattened("row 7", deep)
