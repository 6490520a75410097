"""Entities in any order, those of which something is said, and their fragments, against naive answers."""

from collections import Counter

import pytest

import partita.kb
from partita.kb.judgements import parts_by
from partita.kb.queries.listing import SORTS
from partita.models.records.folding import folded, words_of
from partita.models.records.kinds import PersonName
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
    with pytest.raises(KeyError, match=r"'plaec'; did you mean 'place'\? There are"):
        list(kb.entities(where={"plaec": "London"}))
    with pytest.raises(KeyError, match=r"has an attribute 'zzzz'\. There are"):
        list(kb.entities(where={"zzzz": "London"}))
    with pytest.raises(ValueError, match="sort must be one of 'size'"):
        list(kb.entities(sort="age"))
    with pytest.raises(ValueError, match="minimum"):
        list(kb.entities(minimum=0))


def said(attribute, value):
    """What a value says, told anew: of people's names, "Smith, John" is "John Smith"."""
    return PersonName().parse(value) if attribute == "name" else folded(str(value))


def test_rows(kb):
    for entity in kb.entities(limit=4):
        rows = kb.rows(entity.id)
        assert [row.id for row in rows] == entity.fragments
        for row in rows:
            assert row.properties == kb.fragment(row.id).properties
            assert row.source == kb.fragment(row.id).source
        for name in entity.properties:
            counts = Counter(said(name, v) for row in rows for v in set(row.properties.get(name, [])))
            most = max(counts.values())
            same = [row for row in rows if name in row.properties and name not in row.differs]
            # Those that do not differ all say the same, and no value is more common.
            shared = set.intersection(*({said(name, v) for v in row.properties[name]} for row in same))
            assert most in {counts[value] for value in shared}
            assert len(same) == most
        assert all(set(row.differs) <= set(row.properties) for row in rows)
    assert sum(row.probability for row in rows) / len(rows) == pytest.approx(entity.probability)


SCHEMA = """
[attributes.name]
kind = "text"
[attributes.tags]
kind = "category"
separator = "; "
[attributes.age]
kind = "number"
unreadable = "nothing"
"""
SAID = [
    ("red; blue", "n/a"),
    ("blue; Red", "n/a"),
    ("n/a", "36"),
    ("red; blue; green", "none"),
    ("grey", "37"),
]


@pytest.fixture
def lists(tmp_path):
    with partita.kb.open(tmp_path / "kb.db", schema=SCHEMA) as kb:
        kb.add(
            [{"id": f"f{k}", "name": "Ada", "tags": tags, "age": age} for k, (tags, age) in enumerate(SAID)]
        )
        for k in range(1, len(SAID)):
            if kb.entity_of("f0").id != kb.entity_of(f"f{k}").id:
                kb.confirm("f0", f"f{k}")
        yield kb


def test_a_value_in_a_list_is_found(lists):
    [entity] = lists.entities()
    for tag, there in (("green", True), ("RED", True), ("red; blue", True), ("redder", False), ([], True)):
        assert list(lists.entities(where={"tags": tag})) == ([entity] if there else [])


def test_what_says_nothing_does_not_differ(lists):
    differing = [row.differs for row in lists.rows(lists.entity_of("f0").id)]
    assert differing == [[], [], [], ["tags"], ["tags", "age"]]


def test_a_cut_by_what_is_said(lists):
    ids = [f"f{k}" for k in range(len(SAID))]
    with lists.store.reading() as connection:
        assert parts_by(connection, "E1", ids, "tags") == [["f0", "f1", "f3"], ["f4"]]
        assert parts_by(connection, "E1", ids, "age") == [["f2"], ["f4"]]
