"""Entities in any order, those of which something is said, and their fragments, against naive answers."""

from collections import Counter

import pytest

import partita.kb
from partita.kb.queries.listing import SORTS
from partita.models.records.folding import folded, words_of
from tests.helpers.people import fragments

ROWS, _ = fragments(60)
ROWS[7]["properties"]["place"] = ["London", "Turin"]
ROWS[9]["properties"]["age"] = [36]


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    with partita.kb.open(tmp_path_factory.mktemp("kb") / "kb.db") as kb:
        kb.add(ROWS)
        kb.remove("f3")
        yield kb


def last_event(kb, entity):
    """The last that took a fragment to an entity and left it there."""
    held = set(entity.fragments)
    ways = [event for event in kb.events() if event.to_entity == entity.id and held & set(event.fragments)]
    return max(event.number for event in ways)


def test_orders(kb):
    found = list(kb.entities())
    number = {entity.id: int(entity.id[1:]) for entity in found}
    keys = {
        "size": lambda e: -len(e.fragments),
        "sure": lambda e: (round(e.probability, 12), -len(e.fragments)),
        "recent": lambda e: -last_event(kb, e),
        "name": lambda e: words_of(e.name),
    }
    assert set(keys) == set(SORTS)
    for sort, key in keys.items():
        listed = [entity.id for entity in kb.entities(sort=sort)]
        assert listed == [e.id for e in sorted(found, key=lambda e: (key(e), number[e.id]))]
        assert [entity.id for entity in kb.entities(sort=sort, limit=3)] == listed[:3]
        large = [entity.id for entity in kb.entities(sort=sort, minimum=3)]
        assert large == [id for id in listed if len(kb.entity(id).fragments) >= 3]


@pytest.mark.parametrize(
    "where",
    [
        {"place": "LONDON"},
        {"place": "Villers Cotterets"},
        {"place": ["london", "turin"]},
        {"occupation": "novelist", "place": "Nuneaton"},
        {"age": 36},
        {"name": "lovelace"},
        {"place": "Londo"},
        {"place": "…"},
    ],
)
@pytest.mark.parametrize("sort", ["size", "name"])
def test_of_which_something_is_said(kb, where, sort):
    wanted = [
        (attribute, folded(str(value)))
        for attribute, values in where.items()
        for value in (values if isinstance(values, list) else [values])
    ]

    def says(entity, attribute, value):
        return value in {folded(str(each.value)) for each in entity.properties.get(attribute, [])}

    expected = [
        entity.id
        for entity in kb.entities(sort=sort)
        if all(says(entity, attribute, value) for attribute, value in wanted)
    ]
    assert [entity.id for entity in kb.entities(sort=sort, where=where)] == expected
    assert [entity.id for entity in kb.entities(sort=sort, where=where, limit=1)] == expected[:1]


def test_what_cannot_be_listed(kb):
    with pytest.raises(KeyError, match="'plaec'; did you mean 'place'"):
        list(kb.entities(where={"plaec": "London"}))
    with pytest.raises(ValueError, match="sort must be one of 'size'"):
        list(kb.entities(sort="age"))
    with pytest.raises(ValueError, match="minimum"):
        list(kb.entities(minimum=0))


def test_rows(kb):
    for entity in kb.entities(limit=4):
        rows = kb.rows(entity.id)
        assert [row.id for row in rows] == entity.fragments
        for row in rows:
            assert row.properties == kb.fragment(row.id).properties
            assert row.source == kb.fragment(row.id).source
        for name in entity.properties:
            counts = Counter(folded(str(v)) for row in rows for v in set(row.properties.get(name, [])))
            most = max(counts.values())
            same = [row for row in rows if name in row.properties and name not in row.differs]
            # Those that do not differ all say the same, and no value is more common.
            shared = set.intersection(*({folded(str(v)) for v in row.properties[name]} for row in same))
            assert most in {counts[value] for value in shared}
            assert len(same) == most
        assert all(set(row.differs) <= set(row.properties) for row in rows)
    assert sum(row.probability for row in rows) / len(rows) == pytest.approx(entity.probability)
