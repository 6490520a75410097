"""Judgements: about entities of any size, cuts inside them, and undoing, to the last fragment."""

import random
import shutil

import numpy as np
import pytest

import partita.kb
from partita.kb import judgements
from tests.helpers.downstream import entities_of
from tests.helpers.people import fragments

SIZES = [71, 43, 160, 120]  # of the large entities
FIRMS = ["Norwind Energy", "Quayside Books", "Lumen Optics", "Tallgrass Yoga"]
CITIES = ["Boston", "Paris", "Chicago", "Seattle"]
FIRST = ["Anna", "Bert", "Carl"]  # of people of the largest
PEOPLE, _ = fragments(30)


def firms():
    """Many rows of few firms, in three spellings, at random among each other."""
    rng, rows = random.Random(1), []
    for size, firm, city in zip(SIZES, FIRMS, CITIES, strict=True):
        for k in range(size):
            name = firm if rng.random() < 0.7 else rng.choice([firm.upper(), firm.replace("e", "a", 1)])
            said = {"id": f"{firm[0]}{k}", "name": name, "city": city}
            rows.append(said | ({"first_name": rng.choice(FIRST)} if rng.random() < 0.9 else {}))
    rng.shuffle(rows)
    return rows


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    path = tmp_path_factory.mktemp("firms") / "kb.db"
    with partita.kb.open(path, n_particles=10) as kb:
        kb.add(firms())
    return path


@pytest.fixture
def kb(built, tmp_path):
    """A knowledge base with four large entities."""
    with partita.kb.open(shutil.copy(built, tmp_path)) as kb:
        assert sorted(len(entity.fragments) for entity in kb.entities(minimum=40)) == sorted(SIZES)
        yield kb


def named(kb, letter):
    """The large entity of a firm."""
    return kb.entity_of(f"{letter}0")


def state(kb):
    """Entities with names and fragments, and the probabilities of all pairs."""
    ids = [row["id"] for row in firms()]
    return entities_of(kb), kb.together(ids, ids)


def assert_is(kb, before):
    """All is as it was."""
    now = state(kb)
    assert now[0] == before[0]
    assert now[1] == pytest.approx(before[1], abs=1e-12)


@pytest.mark.parametrize(("one", "other"), ["NQ", "QT", "LT"])
def test_entities_are_merged_whole_in_one_event(kb, one, other):
    first, second, before = named(kb, one), named(kb, other), state(kb)
    at = kb.events()[-1].number
    kb.confirm(first.id, second.id)
    into, gone = (first, second) if len(first.fragments) > len(second.fragments) else (second, first)
    changes = [event for event in kb.events(since=at) if event.kind not in ("confirmed", "renamed")]
    assert [(e.kind, e.from_entity, e.to_entity) for e in changes] == [("merged", gone.id, into.id)]
    assert sorted(changes[0].fragments) == sorted(gone.fragments)
    assert set(kb.entity(gone.id).fragments) == {*first.fragments, *second.fragments}
    assert kb.entity(gone.id).merged_from == gone.id
    assert kb.together(first.fragments, second.fragments) == pytest.approx(1.0)
    kb.refine()
    assert kb.together(first.fragments, second.fragments) == pytest.approx(1.0)
    kb.undo()
    assert kb.entity(gone.id).fragments == gone.fragments
    kb.confirm(first.id, second.id)
    kb.undo()
    assert {id: kb.entity(id).fragments for id in (first.id, second.id)} == {
        each.id: each.fragments for each in (first, second)
    }
    assert entities_of(kb).keys() == before[0].keys()


def test_to_undo_at_once_leaves_nothing_behind(kb):
    before = state(kb)
    firm, other = named(kb, "L"), named(kb, "N")
    for judge in (
        lambda: kb.confirm(firm.id, other.id),
        lambda: kb.separate(firm.id, other.id),
        lambda: kb.split(firm.id, by="first_name"),
        lambda: kb.split(firm.id, firm.fragments[::3]),
        lambda: kb.separate(firm.fragments[0], firm.id),
        lambda: kb.unsure(firm.id, other.id),
    ):
        judge()
        kb.undo()
        assert_is(kb, before)


def test_separated_entities_stay_so_whatever_comes(kb):
    first, second = named(kb, "N"), named(kb, "Q")
    at = kb.events()[-1].number
    kb.separate(first.id, second.id)
    assert [event.kind for event in kb.events(since=at)] == ["separated"]
    kb.add([{"id": f"new{k}", "name": f"{FIRMS[k % 2]}", "city": CITIES[1 - k % 2]} for k in range(6)])
    kb.refine()
    assert (kb.together(first.fragments, second.fragments) == 0.0).all()
    with pytest.raises(ValueError, match=rf"undo one of 1 \(separate '{first.id}' '{second.id}'"):
        kb.confirm(first.id, second.id)
    with pytest.raises(ValueError, match="undo one of 1 "):
        kb.confirm(first.fragments[3], second.fragments[4])


def test_an_entity_is_cut_by_an_attribute(kb):
    firm, before = named(kb, "L"), state(kb)
    kb.split(firm.id, by="first_name")
    said = {id: kb.fragment(id).properties.get("first_name", [None])[0] for id in firm.fragments}
    sides = [[id for id in firm.fragments if said[id] == name] for name in FIRST]
    assert sorted(map(len, kb.judgements()[0].sides)) == sorted(map(len, sides))
    for k, side in enumerate(sides):
        assert all((kb.together(side, other) == 0.0).all() for other in sides[:k])
    parts = [entity for entity in kb.entities() if set(entity.fragments) & set(firm.fragments)]
    assert len(parts) >= 3
    assert firm.id in {part.id for part in parts}
    kb.undo()
    assert_is(kb, before)


def test_an_entity_is_cut_by_naming_who_leaves(kb):
    firm = named(kb, "N")
    leaving = firm.fragments[5:9]
    kb.split(firm.id, leaving)
    staying = [id for id in firm.fragments if id not in leaving]
    assert kb.entity(firm.id).fragments == staying
    assert (kb.together(leaving, staying) == 0.0).all()
    row = kb.judgements()[0]
    assert (row.kind, row.first, row.second) == ("split", firm.id, ", ".join(leaving))
    assert row.sides == [staying, leaving]
    kb.undo()
    kb.split(firm.id, leaving[0])
    assert kb.judgements()[-1].sides[1] == leaving[:1]


def test_what_cannot_be_cut(kb):
    before, firm = state(kb), named(kb, "N")
    for leaving, by, message in (
        ([], None, "say how to split"),
        (["N0"], "city", "say how to split"),
        (["Q0"], None, "fragment 'Q0' is not of"),
        (firm.fragments, None, "all fragments of .* would leave"),
        ([], "city", "say the same: nothing to split"),
        ([], "colour", "says anything of 'colour'; they have city, first_name, name"),
    ):
        with pytest.raises(ValueError, match=message):
            kb.split(firm.id, leaving, by=by)
    with pytest.raises(KeyError, match="there is no entity 'E999'"):
        kb.split("E999", ["N0"])
    assert_is(kb, before)
    assert kb.judgements() == []


def test_what_to_undo(kb):
    with pytest.raises(KeyError, match="there is no judgement to undo"):
        kb.undo()
    kb.unsure("N0", "N1")
    kb.separate("N0", "Q0")
    assert (kb.undo(), kb.undo()) == (2, 1)
    with pytest.raises(ValueError, match="undone already"):
        kb.undo(2)


# ---------------------------------------------------------------------- when other things have happened since


@pytest.fixture
def people(tmp_path):
    with partita.kb.open(tmp_path / "people.db") as kb:
        kb.add(PEOPLE)
        yield kb


def test_undoing_an_earlier_judgement_keeps_to_later_ones(people):
    """What was before the first one has both pairs together, which the second one rules out."""
    kb = people
    members = next(kb.entities()).fragments
    a, b, x, y = members[:4]
    first = kb.separate(a, b)
    kb.confirm(a, x)
    kb.confirm(b, y)
    kb.separate(x, y)  # as they are already
    kb.undo(first)
    assert kb.together(x, y) == 0.0
    assert kb.together(a, x) == pytest.approx(1.0)


def test_any_two_judgements_can_be_undone_in_any_order(people):
    kb, before = people, entities_of(people)
    large = [entity.id for entity in kb.entities()][:4]
    numbers = [kb.confirm(*large[:2]), kb.split(large[2], kb.entity(large[2]).fragments[:1])]
    between = entities_of(kb)
    for number in numbers:
        kb.undo(number)
    assert entities_of(kb) == before != between


@pytest.mark.parametrize(
    "change",
    [
        lambda kb, ids: kb.add([{"id": "new", "properties": kb.fragment(ids[0]).properties}]),
        lambda kb, ids: kb.remove(ids[0]),
        lambda kb, ids: kb.add([{"id": ids[0], "properties": {"name": ["Ada Lovelace"]}}]),
        lambda kb, ids: kb.relearn(),
        lambda kb, ids: kb.refine(2),
    ],
)
def test_after_changes_an_undone_judgement_binds_no_more(people, change):
    kb = people
    one, other = list(kb.entities())[:2]
    kb.confirm(one.id, other.id)
    change(kb, one.fragments)
    rest = one.fragments[1:]
    assert kb.together(rest, other.fragments) == pytest.approx(1.0)
    kb.undo()
    kb.refine(2)
    assert kb.together(rest, other.fragments).min() < 0.5
    kept = {id for entity in kb.entities() for id in entity.fragments}
    assert kept >= {*rest, *other.fragments}


def test_what_was_judged_of_a_fragment_that_comes_back_leaves_others_alone(people):
    """Judgements that have nothing to do with it can still be undone exactly."""
    kb, before = people, entities_of(people)
    large = list(kb.entities())[:4]
    number = kb.confirm(large[0].id, large[1].id)
    leaving = large[2].fragments[0]
    kb.separate(leaving, large[3].fragments[0])
    kb.remove(leaving)
    row = next(row for row in PEOPLE if row["id"] == leaving)
    kb.add([row])
    kb.undo(number)
    now = entities_of(kb)
    assert {now[each.id] for each in large[:2]} == {before[each.id] for each in large[:2]}
    assert np.isclose(kb.together(leaving, large[3].fragments[0]), 0.0)


def test_who_was_drawn_to_strangers_by_a_fragment_returns_when_that_goes(kb):
    """No judgement is left that binds them, only what one has made of them."""
    home = named(kb, "Q").id
    kb.confirm("N0", "Q0")
    if kb.entity_of("Q0").id == home:  # the other was drawn
        kb.remove("Q0")
        assert kb.entity_of("N0").id == kb.entity_of("N1").id
    else:
        kb.remove("N0")
        assert kb.entity_of("Q0").id == home


def test_parts_are_joined_through_what_they_have_in_common(tmp_path):
    said = {"a": "xy", "b": "z", "c": "w", "d": "zv", "e": "yz", "f": "", "g": "w"}
    rows = [{"id": id, "name": "Ada", **({"tag": list(tags)} if tags else {})} for id, tags in said.items()]
    with partita.kb.open(tmp_path / "parts.db") as kb:
        kb.add(rows)
        with kb.store.reading() as connection:
            assert judgements.parts_by(connection, "E1", list(said), "tag") == [
                ["a", "b", "d", "e"],
                ["c", "g"],
            ]


def test_judgements_are_read_once_however_many_fragments_go(tmp_path, monkeypatch):
    with partita.kb.open(tmp_path / "kb.db") as kb:
        kb.add(PEOPLE[:20])
        for k in range(0, 12, 2):
            kb.separate(f"f{k}", f"f{k + 1}")
        asked, binding = [], judgements.rows.binding
        monkeypatch.setattr(
            judgements.rows, "binding", lambda c, ids=None: asked.append(ids) or binding(c, ids)
        )
        kb.remove(*(f"f{k}" for k in range(10)))
        assert asked.count(None) == 1
        monkeypatch.undo()
        assert kb.together("f10", "f11") == 0.0
        assert set(kb.labels()) == {f"f{k}" for k in range(10, 20)}
