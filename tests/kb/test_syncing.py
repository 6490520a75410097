"""Sync: the knowledge base holds exactly the latest rows of each source, all of it at once or not at all."""

import os
import signal
import tempfile
import time
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

import partita.kb
from partita.kb import StoreError, ingest
from partita.kb.fragments import Fragment, digest_of
from partita.kb.syncing import TooMuchGone
from tests.helpers.effort import examples
from tests.helpers.people import fragments

PEOPLE, _ = fragments(24, seed=4)
SOURCES = ("crm", "letters", None)


def row(k, version=0, source=None, with_id=True):
    """Row k of a file, in one of two versions; flat, as of a CSV file."""
    said = {name: values[0] for name, values in PEOPLE[k]["properties"].items()}
    said |= {"occupation": "poet"} if version else {}
    return said | ({"id": f"r{k}"} if with_id else {}) | ({} if source is None else {"source": source})


def named(rows):
    """Rows by the ids that they get, told anew: an id, or the digest, and how often it has come before."""
    found, met = {}, {}
    for given_row in rows:
        said = {k: [v] for k, v in given_row.items() if k not in ("id", "source")}
        id = given_row.get("id")
        if id is None:
            digest = digest_of(said, given_row.get("source"))
            met[digest] = met.get(digest, 0) + 1
            id = digest if met[digest] == 1 else f"{digest}-{met[digest]}"
        found[id] = (said, given_row.get("source"))
    return found


def held_by(kb):
    """What a knowledge base holds, by id."""
    with kb.store.reading() as connection:
        ids = [r[0] for r in connection.execute(sa.text("SELECT id FROM fragments WHERE gone IS NULL"))]
    found = {id: kb.fragment(id) for id in ids}
    return {id: (fragment.properties, fragment.source) for id, fragment in found.items()}


def members(kb):
    return {e.id: frozenset(e.fragments) for e in kb.entities()}


@st.composite
def files(draw):
    """A file of some of the sources; each row is of one of them, with or without an id."""
    sources = draw(st.lists(st.sampled_from(SOURCES), min_size=1, max_size=2, unique=True))
    chosen = draw(st.lists(st.integers(0, 23), min_size=2, max_size=8, unique=True))
    with_id = draw(st.booleans())
    return [row(k, draw(st.integers(0, 1)), draw(st.sampled_from(sources)), with_id) for k in chosen]


@given(steps=st.lists(files(), min_size=2, max_size=4))
@examples(6)
def test_it_holds_the_latest_rows_of_each_source(steps):
    with tempfile.TemporaryDirectory() as folder, partita.kb.open(Path(folder, "kb.db"), n_particles=3) as kb:
        kb.add([row(k, source="crm") for k in range(4)])
        expected = named([row(k, source="crm") for k in range(4)])
        for rows in steps:
            new, sources = named(rows), {r.get("source") for r in rows}
            gone = {id for id, (_, source) in expected.items() if source in sources and id not in new}
            updated = {id for id in new if id in expected and expected[id] != new[id]}
            before, stats = members(kb), kb.stats()
            foreseen = kb.sync(rows, dry_run=True)
            assert kb.stats() == stats
            assert set(foreseen.removed) == gone
            assert set(foreseen.updated) == updated
            assert set(foreseen.added) == new.keys() - expected.keys()
            assert foreseen.unchanged == len(new) - len(updated) - len(foreseen.added)
            for entity in foreseen.entities:
                own = before[entity.entity]
                assert (entity.fragments, entity.removed) == (len(own), len(own & gone))
                assert entity.updated == len(own & updated)
            touched = {id for id, own in before.items() if own & (gone | updated)}
            assert {entity.entity for entity in foreseen.entities} == touched
            assert kb.sync(rows, confirmed=True) == foreseen
            expected = {id: said for id, said in expected.items() if id not in gone} | new
            assert held_by(kb) == expected
            assert sorted(id for own in members(kb).values() for id in own) == sorted(expected)
            assert len(kb.labels()) == len(expected)
            stats = kb.stats()
            assert not kb.sync(rows).changes_anything
            assert kb.stats() == stats, "a second sync of the same rows changes something"


# ---------------------------------------------------------------------- what is refused


@pytest.fixture
def kb(url):
    """A knowledge base of two sources, twelve fragments each."""
    with partita.kb.open(url, n_particles=5) as kb:
        kb.add([row(k, source=SOURCES[k % 2]) for k in range(24)])
        yield kb


def crm(numbers, version=0):
    return [row(k, version, "crm") for k in numbers]


def test_what_would_empty_a_source_is_refused(kb):
    before = held_by(kb), kb.stats()
    with pytest.raises(TooMuchGone, match="7 of the 12 fragments of 'crm' would be removed, more than half"):
        kb.sync(crm(range(0, 10, 2)))
    for confirmed in (False, True):
        with pytest.raises(ValueError, match="there is no row"):
            kb.sync([], source="crm", confirmed=confirmed)
    with pytest.raises(ValueError, match="'r0' is there twice"):
        kb.sync([Fragment("r0", "crm", {"name": [name]}) for name in ("Ada", "Bob")])
    assert (held_by(kb), kb.stats()) == before
    kb.sync(crm(range(0, 12, 2)))  # half of it
    assert len(held_by(kb)) == 18
    kb.sync(crm([0]), confirmed=True)
    assert len(held_by(kb)) == 13


def test_a_source_that_no_row_is_of_loses_nothing_to_others_unless_confirmed(kb):
    before = held_by(kb), kb.stats()
    rows = [row(k, 1, "news") for k in (0, 2)]  # both are of the CRM
    with pytest.raises(
        TooMuchGone, match="2 of the 12 fragments of 'crm' would be replaced by rows of another source"
    ):
        kb.sync(rows)
    assert (held_by(kb), kb.stats()) == before
    plan = kb.sync(rows, confirmed=True)
    assert [(each.source, each.before, each.rows, each.taken) for each in plan.sources] == [
        ("news", 0, 2, 0),
        ("crm", 12, 0, 2),
    ]
    assert len(held_by(kb)) == 24
    kb.sync([row(k, 0, "crm") for k in range(0, 24, 2)] + [row(24 - 1, 0, "news")], confirmed=True)
    assert kb.fragment("r0").source == "crm", "rows that change between the sources of a file are no surprise"


def test_a_failure_in_the_middle_changes_nothing(kb, monkeypatch):
    before = held_by(kb), kb.events(), members(kb)
    monkeypatch.setattr(ingest.erasing, "erase", lambda *given: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        kb.sync(crm(range(0, 20, 2), version=1))
    assert (held_by(kb), kb.events(), members(kb)) == before


def test_another_writer_meanwhile_is_noticed(kb, url):
    def rows():
        yield from crm(range(2, 24, 2))
        with partita.kb.open(url) as other:
            other.add([row(3, 1, "letters")])

    with pytest.raises(StoreError, match="changed by another process"):
        kb.sync(rows())
    assert len(held_by(kb)) == 24


# ---------------------------------------------------------------------- what it means


def test_a_source_can_be_given_for_all_rows(kb):
    rows = [row(k) for k in range(0, 24, 2)]
    assert not kb.sync(rows, source="crm").changes_anything
    assert kb.sync([Fragment("x", None, {"name": ["Ada"]})], source="new").added == ["x"]
    assert kb.fragment("x").source == "new"
    found = kb.sync([row(0, with_id=False)], source="a"), kb.sync([row(0, with_id=False)], source="b")
    assert found[0].added != found[1].added, "rows of two sources that say the same are two"


def test_what_is_removed_is_erased_also_where_it_was_named_in_the_same_sync(kb, url):
    kb.sync([*crm(range(0, 24, 2)), {"id": "secret", "name": "Xenia Q", "source": "crm"}])
    only = next(e for e in kb.entities() if "secret" in e.fragments)
    kb.sync(crm(range(0, 24, 2), version=1))
    with kb.store.reading() as connection:
        for table in ("fragments", "said", "words", "entities", "events"):
            for line in connection.execute(sa.text(f"SELECT * FROM {table}")):
                assert "Xenia" not in str(tuple(line)), f"{table} still has it"
    if only.fragments == ["secret"]:
        with pytest.raises(KeyError, match="no fragments any more"):
            kb.entity(only.id)


def test_judgements_apply_again_when_a_fragment_comes_back(kb):
    kb.separate("r0", "r2")
    kb.sync(crm(range(2, 24, 2)))
    kb.sync(crm(range(0, 24, 2)))
    assert kb.together("r0", "r2") == 0.0
    kb.undo()
    kb.confirm("r0", "r2")
    kb.sync(crm(range(2, 24, 2)))
    kb.sync(crm(range(0, 24, 2)))
    assert kb.together("r0", "r2") == pytest.approx(1.0)


def test_a_row_without_an_id_that_changes_leaves_its_entity_the_id(tmp_path):
    """The new row comes before the old one goes."""
    rows = [{"name": "Ada Lovelace", "city": "London"}, {"name": "Bo Diddley", "city": "Chicago"}]
    rows += [{"name": f"Person {k} Number{k}", "city": f"Town {k}"} for k in range(10)]
    with partita.kb.open(tmp_path / "kb.db") as kb:
        kb.sync(rows)
        (old,) = (e.id for e in kb.entities() if e.name == "Ada Lovelace")
        synced = kb.sync([rows[0] | {"born": "1815"}, *rows[1:]])
        assert (len(synced.added), len(synced.removed), synced.unchanged) == (1, 1, 11)
        assert [change.as_dict() for change in synced.entities] == [
            {"entity": old, "fragments": 1, "removed": 1, "updated": 0}
        ]
        assert kb.entity(old).fragments == synced.added


# ---------------------------------------------------------------------- killed


def sync_as_a_child(url, rows):
    """Sync in a process of its own; its id."""
    child = os.fork()
    if child == 0:
        with partita.kb.open(url) as kb:
            kb.sync(rows, confirmed=True)
        os._exit(0)
    return child


@pytest.mark.parametrize("seconds", [0.02, 0.1, 0.25])
def test_killed_it_leaves_what_was_before_or_what_was_to_be(url, seconds):
    before, after = crm(range(12)), crm(range(4, 20), version=1)
    with partita.kb.open(url, n_particles=3) as kb:
        kb.sync(before)
    child = sync_as_a_child(url, after)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with partita.kb.open(url) as kb:
        assert held_by(kb) in (named(before), named(after))
        assert sorted(kb.labels()) == sorted(held_by(kb))
        kb.sync(after, confirmed=True)
        assert held_by(kb) == named(after)
