"""The life of a knowledge base, on SQLite and PostgreSQL alike."""

import json
from collections import defaultdict
from contextlib import ExitStack
from datetime import UTC, datetime

import numpy as np
import pytest
import sqlalchemy as sa

import partita as pt
import partita.kb
from partita.kb import StoreError, ingest
from partita.kb.clustering import Clustering
from partita.kb.store import tables
from partita.models.records.record import Record
from tests.conftest import database
from tests.helpers.people import fragments
from tests.helpers.stores import assert_same

ROWS, TRUTH = fragments(60)


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """Databases with sixty fragments, which are copied and stay as they are; made when first asked for."""
    made = {}
    with ExitStack() as stack:

        def of(kind):
            if kind not in made:
                path = tmp_path_factory.mktemp("filled") / "kb.db"
                url = stack.enter_context(database(kind, path))
                with partita.kb.open(url) as kb:
                    kb.add(ROWS)
                made[kind] = path if kind == "sqlite" else sa.make_url(url).database
            return made[kind]

        yield of


@pytest.fixture
def template(request, filled):
    """An empty database, or for ``kb`` one with sixty fragments."""
    return filled if "kb" in request.fixturenames else lambda kind: None


@pytest.fixture
def kb(url):
    """A knowledge base with sixty fragments."""
    with partita.kb.open(url) as kb:
        yield kb


def clusters(kb, as_of=None):
    """The entities as a set of sets of fragments."""
    return {frozenset(entity.fragments) for entity in kb.entities()}


def as_sets(ids, labels):
    """Labels as a set of sets of ids."""
    held = defaultdict(set)
    for id, label in zip(ids, labels, strict=True):
        held[int(label)].add(id)
    return set(map(frozenset, held.values()))


def plain_sampler(kb):
    """What the knowledge base does, without one: the same model, fragment by fragment."""
    with kb.store.reading() as connection:
        model = Record.from_json(partita.kb.store.database.get(connection, "model"))
    return pt.SplitSMC(model, n_particles=20, keys="auto")


# ---------------------------------------------------------------------- adding


@pytest.fixture
def plain_kb(url, monkeypatch):
    """The same, with nothing looked at again on the way."""
    monkeypatch.setattr(ingest, "STRIDE", 1000)
    with partita.kb.open(url) as kb:
        kb.add(ROWS)
        yield kb


def test_entities_are_the_clusters_of_the_sampler(plain_kb):
    kb = plain_kb
    properties = [row["properties"] for row in ROWS]
    labels = plain_sampler(kb).fit(properties).labels_
    assert clusters(kb) == as_sets([row["id"] for row in ROWS], labels)
    assert kb.labels() == {row["id"]: label for row, label in zip(ROWS, labels.tolist(), strict=True)}


def test_every_moment_is_the_sampler_of_that_moment(plain_kb):
    """The events, fragment by fragment, tell what a sampler that is asked after every one would tell."""
    kb = plain_kb
    sampler, seen = plain_sampler(kb), []
    added = {}
    for event in kb.events():
        added[event.fragment] = event.number  # the last that the fragment has caused
    ids = {event.entity for event in kb.events()} | {event.other for event in kb.events()} - {None}
    for row in ROWS:
        seen.append(row["id"])
        labels = sampler.partial_fit([row["properties"]]).labels_
        found = set()
        for id in ids:
            try:
                found.add(frozenset(kb.entity(id, as_of=added[row["id"]]).fragments))
            except KeyError:
                continue
        assert found == as_sets(seen, labels)


def test_to_close_and_reopen_changes_nothing_that_is_drawn(tmp_path):
    with partita.kb.open(tmp_path / "kb.db") as kb:
        kb.add(ROWS[:40])
        kb.separate("f1", "f2")
    (tmp_path / "other.db").write_bytes((tmp_path / "kb.db").read_bytes())
    with partita.kb.open(tmp_path / "kb.db") as kb:
        kb.add(ROWS[40:])
        kb.refine(2)
        kb.remove("f0")
        for change in (
            lambda other: other.add(ROWS[40:]),
            lambda other: other.refine(1),
            lambda other: other.refine(1),
            lambda other: other.remove("f0"),
        ):
            with partita.kb.open(tmp_path / "other.db") as other:
                change(other)
        with partita.kb.open(tmp_path / "other.db") as other:
            assert_same(kb, other)


def test_any_batching_gives_the_same(url, tmp_path):
    with partita.kb.open(url) as kb, partita.kb.open(tmp_path / "other.db") as other:
        kb.add(ROWS)
        with other.store.writing() as connection:  # the same model, which the first call would learn
            with kb.store.reading() as reading:
                for name in ("model", "settings"):
                    partita.kb.store.database.put(
                        connection, name, partita.kb.store.database.get(reading, name)
                    )
            partita.kb.store.database.put(
                connection,
                "sampler",
                partita.kb.store.database.get(
                    connection,
                    "nothing",
                    {
                        "log_alpha": (0.0).hex(),
                        "next_alpha": 10,
                        "random": 0,
                        "free_slots": [],
                        "next_entity": 1,
                    },
                ),
            )
        other.close()
        with partita.kb.open(tmp_path / "other.db") as other:
            for start in range(0, 60, 7):
                other.add(ROWS[start : start + 7], batch=3)
            assert_same(kb, other)


def test_what_fragments_have_touched_is_looked_at_again(url, monkeypatch):
    """After every so many fragments, however they are batched; it never makes the posterior worse."""
    seen, look_again = [], Clustering.look_again

    def spy(clustering, after, most):
        seen.append((len(clustering.present), after, most))
        before, steps = clustering.posterior.log_density(), clustering.engine.diagnostics.steps
        outcome = look_again(clustering, after, most)
        assert clustering.posterior.log_density() >= before - 1e-9
        assert clustering.engine.diagnostics.steps - steps <= 2 * most
        return outcome

    refined, refine = [], Clustering.refine
    monkeypatch.setattr(
        Clustering,
        "refine",
        lambda *given, **more: refined.append(more.get("most")) or refine(*given, **more),
    )
    monkeypatch.setattr(Clustering, "look_again", spy)
    monkeypatch.setattr(ingest, "STRIDE", 20)
    with partita.kb.open(url) as kb:
        kb.add(ROWS[:25])
        kb.add(ROWS[25:], batch=7)
        most = ingest.LOOKED_AT
        assert seen == [(20, 0, most), (40, 20, most), (60, 40, most)]
        kb.relearn()
        assert (len(seen), refined) == (3, [ingest.REPLAYED])
        kb.add([{**ROWS[0], "properties": {"name": ["Ada"]}}])  # a new version has a number of its own
        kb.add([{"id": f"g{k}", "properties": {"name": [f"Nobody {k}"]}} for k in range(19)])
        assert seen[3:] == [(79, 60, most)]


def test_adding_again_changes_nothing(kb):
    before = clusters(kb), kb.stats()["events"]
    assert kb.add(ROWS) == (0, 0, 60)
    assert (clusters(kb), kb.stats()["events"]) == before


def test_the_same_id_with_other_content_is_an_update(kb):
    first = {"id": "f0", "name": "Isambard Brunel", "occupation": "engineer"}
    assert kb.add([first]) == (0, 1, 0)
    assert kb.fragment("f0").properties == {"name": ["Isambard Brunel"], "occupation": ["engineer"]}
    assert len(kb.labels()) == 60
    assert kb.search("Isambard")[0].id == kb.entity_of("f0").id
    assert "f0" in {id for entity in kb.entities() for id in entity.fragments}


def test_an_entity_of_one_fragment_outlives_its_update(kb):
    kb.add([{"id": "x", "name": "Zaphod Quill", "occupation": "diver"}])
    entity = kb.entity_of("x")
    assert entity.fragments == ["x"]
    kb.add([{"id": "x", "name": "Zaphod Quilliam", "occupation": "pearl diver"}])
    again = kb.entity_of("x")
    assert (again.id, again.name) == (entity.id, "Zaphod Quilliam")
    assert [event.kind for event in kb.events(entity=entity.id)] == ["created", "updated", "renamed"]
    kb.add([{"id": "x", **ROWS[0]["properties"]}])
    assert kb.entity(entity.id).id == kb.entity_of("x").id


def test_reopening_finds_everything(url, kb):
    with partita.kb.open(url) as again:
        assert clusters(again) == clusters(kb)
        more, _ = fragments(80)
        again.add(more[60:])
    kb.add(more[60:])  # the other one has done it: nothing is left to do
    assert len(kb.labels()) == 80
    with partita.kb.open(url) as third:
        assert third.labels() == kb.labels()


def test_two_take_turns(url, kb):
    """Each sees what the other has done before it goes on."""
    more, _ = fragments(90)
    with partita.kb.open(url) as other:
        for k, row in enumerate(more[60:]):
            (kb if k % 2 else other).add([row])
    whole = plain_sampler(kb).fit([row["properties"] for row in more])
    assert clusters(kb) == as_sets([row["id"] for row in more], whole.labels_)


def test_a_model_is_learnt_anew_as_data_grow(url):
    with partita.kb.open(url) as kb:
        for row in ROWS[:40]:
            kb.add([row])
        assert kb.settings["learnt_from"] == 27
        assert len(kb.labels()) == 40
        assert any(event.detail.get("relearnt") for event in kb.events())


def test_a_relearnt_knowledge_base_keeps_its_ids(kb):
    before = {entity.id: set(entity.fragments) for entity in kb.entities()}
    kb.relearn()
    after = {entity.id: set(entity.fragments) for entity in kb.entities()}
    for id, held in before.items():
        if id in after and 2 * len(held & after[id]) > len(held):
            assert kb.entity(id).id == id
    assert {x for held in after.values() for x in held} == {row["id"] for row in ROWS}


def learnt_model(kb):
    with kb.store.reading() as connection:
        return partita.kb.store.database.get(connection, "model")


def test_judgements_teach(kb):
    """What was judged, and not undone, of fragments that are present is known when the model is learnt anew."""
    kb.remove("f3")
    kb.relearn()
    without = learnt_model(kb)
    kb.confirm("f1", "f2")
    kb.separate("f5", "f6")
    kb.undo(kb.confirm("f7", "f8"))
    kb.unsure("f9", "f10")
    kb.relearn()
    properties = [row["properties"] for row in ROWS if row["id"] != "f3"]
    pairs = [(1, 2, True), (4, 5, False)]  # one is gone
    assert (
        learnt_model(kb) == Record.infer(properties).fit_prior(properties, pairs=pairs).to_json() != without
    )
    assert kb.together("f1", "f2") == pytest.approx(1.0)
    assert kb.together("f5", "f6") == 0.0


def test_a_refused_fragment_changes_nothing(url):
    schema = '[attributes.name]\nkind = "text"\n[attributes.age]\nkind = "number"\n'
    with partita.kb.open(url, schema=schema) as kb:
        kb.add([{"id": "a", "name": "Ada", "age": 36}])
        with pytest.raises(ValueError, match=r"fragment 'c'.*age"):
            kb.add([{"id": "b", "name": "Bob"}, {"id": "c", "name": "Cy", "age": "old"}])
        with pytest.raises(ValueError, match="unknown attribute 'size'"):
            kb.add([{"id": "d", "size": 3}])
        assert list(kb.labels()) == ["a"]
        kb.add([{"id": "b", "name": "Bob"}])
        assert list(kb.labels()) == ["a", "b"]


def test_odd_text_survives(url):
    rows = [
        {"id": "é", "name": "שלום עולם"},
        {"id": "2", "name": "名前 太郎", "note": "a\x07b\u202e"},
        {"id": "3", "name": "x" * 100_000},
        {"id": "4", "name": "Robert'); DROP TABLE fragments;--", "%s": "{x}"},
    ]
    with partita.kb.open(url) as kb:
        kb.add(rows)
        for row in rows:
            said = {key: [value] for key, value in row.items() if key != "id"}
            assert kb.fragment(row["id"]).properties == said
        assert kb.search("שלום")[0].matches == ["שלום עולם"]


# ---------------------------------------------------------------------- removing


def test_removal(kb):
    size = len(kb.entity_of("f3").fragments)
    with_it = kb.entity_of("f3").id
    kb.remove("f3")
    assert "f3" not in kb.labels()
    if size > 1:
        assert "f3" not in kb.entity(with_it).fragments
    with pytest.raises(KeyError, match="has been removed"):
        kb.fragment("f3")
    with kb.store.reading() as connection:
        text = json.dumps(
            [list(map(str, row)) for row in connection.execute(sa.text("SELECT * FROM fragments"))]
        )
        assert text.count('"f3"') == 1  # that it was there is known, what it said is not
        row = connection.execute(sa.text("SELECT * FROM fragments WHERE id = 'f3'")).one()
        assert row.properties is None
    kb.add([ROWS[3]])
    assert "f3" in kb.labels()


def test_an_entity_keeps_its_name_when_one_of_two_that_give_it_is_removed(url):
    """Also where what its fragments say is fetched only when one of them goes, and is erased."""
    rows = [{"id": f"{name} {k}", "name": name} for name in ("Ada", "Zoe") for k in range(2)]
    with partita.kb.open(url) as kb:
        kb.add(rows)
        assert kb.entity_of("Ada 0").fragments == ["Ada 0", "Ada 1"]
    with partita.kb.open(url) as kb:
        kb.remove("Ada 0")
        assert kb.entity_of("Ada 1").name == "Ada"


def test_removing_everything(url):
    with partita.kb.open(url) as kb:
        kb.add(ROWS[:5])
        kb.remove(*(row["id"] for row in ROWS[:5]))
        assert list(kb.entities()) == []
        with partita.kb.open(url) as again:
            again.add(ROWS[:5])
            assert len(again.labels()) == 5


def test_removing_what_is_not_there_changes_nothing(kb):
    before = clusters(kb)
    with pytest.raises(KeyError, match="no fragment or entity 'nobody'"):
        kb.remove("f1", "nobody")
    assert clusters(kb) == before


def everything_in(kb):
    """All that the tables hold, as one text."""
    with kb.store.reading() as connection:
        names = sa.inspect(connection).get_table_names()
        rows = [
            list(connection.execute(sa.text(f"SELECT * FROM {name}"))) for name in names if name != "about"
        ]
    return repr(rows)


def test_removal_erases_all_versions(kb):
    kb.add([{"id": "x", "name": "Zebedee Quux"}])
    kb.add([{"id": "x", "name": "Xanthippe Grue"}])
    kb.remove("x")
    left = everything_in(kb).lower()
    for word in ("zebedee", "quux", "xanthippe", "grue"):
        assert word not in left


def test_removal_erases_names_that_entities_had_by_other_attributes(tmp_path):
    """Of those that ended, and where a judgement was remembered."""
    people = [{"id": f"p{k}", "first": f"Per{k}", "last": f"Son{k}", "mail": f"{k}@x.org"} for k in range(8)]
    with partita.kb.open(tmp_path / "kb.db", name="first last", n_particles=3) as kb:
        kb.add([*people, {"id": "x", "first": "Zebedee", "last": "Quux", "mail": "zq@y.org"}])
        kb.confirm("x", "p0")
        ended = sa.select(tables.entities.c.name).where(tables.entities.c.ended.is_not(None))
        with kb.store.reading() as connection:
            assert connection.scalars(ended).all() in (["Zebedee Quux"], ["Per0 Son0"])
            merged = connection.scalar(ended)
        kb.confirm("p1", "p2")
        kb.relearn(name="mail")
        kb.confirm("p3", "p4")
        gone = "x" if merged == "Zebedee Quux" else "p0"
        kb.remove(gone, "p3")
        assert merged not in everything_in(kb)
        with kb.store.reading() as connection:
            assert not connection.scalars(sa.select(tables.undoing.c.judgement)).all()
        kb.undo(3)  # which nothing is remembered of


def test_the_same_id_twice_in_one_call(kb):
    twice = [partita.kb.fragments.Fragment("z", None, {"name": [name]}) for name in ("Anna Zed", "Berta Zed")]
    assert kb.add(twice) == (1, 1, 0)
    assert kb.fragment("z").properties == {"name": ["Berta Zed"]}
    assert kb.add([twice[1], twice[1]]) == (0, 0, 2)


def test_nothing_is_exported_over_a_database(kb, tmp_path):
    path = tmp_path / "other.db"
    with partita.kb.open(path) as other:
        other.add(ROWS[:5])
    with pytest.raises(ValueError, match="is a database"):
        kb.export(path, format="csv")
    with partita.kb.open(path) as other:
        assert len(other.labels()) == 5


# ---------------------------------------------------------------------- judging


def pair(kb, together):
    """Two fragments that are together, or apart."""
    groups = [entity.fragments for entity in kb.entities() if len(entity.fragments) > 1]
    return (groups[0][0], groups[0][1]) if together else (groups[0][0], groups[1][0])


def test_separate_and_undo(kb):
    a, b = pair(kb, together=True)
    number = kb.separate(a, b, user="ann")
    assert kb.together(a, b) == 0.0
    assert kb.entity_of(a).id != kb.entity_of(b).id
    judgement = kb.judgements()[0]
    assert (judgement.kind, judgement.first, judgement.second, judgement.user) == ("separate", a, b, "ann")
    kb.undo(number, user="bob")
    assert kb.judgements()[0].undone_by == "bob"
    assert kb.together(a, b) > 0.0
    with pytest.raises(ValueError, match="undone already, by bob"):
        kb.undo(number)
    with pytest.raises(KeyError, match="no judgement 9"):
        kb.undo(9)


def test_confirm_across_entities_survives_data_and_reopening(url, kb):
    a, b = pair(kb, together=False)
    kb.confirm(a, b)
    assert kb.together(a, b) == pytest.approx(1.0)
    assert kb.entity_of(a).id == kb.entity_of(b).id
    more, _ = fragments(90)
    with partita.kb.open(url) as again:
        again.add(more)
        again.refine(1)
        assert again.together(a, b) == pytest.approx(1.0)
        again.relearn()
        assert again.together(a, b) == pytest.approx(1.0)


def test_judgements_of_a_fragment_that_comes_back(kb):
    a, b = pair(kb, together=True)
    kb.separate(a, b)
    kb.remove(a)
    kb.add(ROWS)
    assert kb.together(a, b) == 0.0
    kb.add([{"id": b, "name": "Somebody Else"}])
    assert kb.together(a, b) == 0.0


def test_removal_undoes_what_was_judged_of_the_fragment(url):
    rows = [
        {"id": id, "name": f"{id * 3} Miller", "born": born} for id, born in zip("abc", "123", strict=True)
    ]
    with partita.kb.open(url) as kb:
        kb.add([*ROWS, *rows])
        kb.confirm("a", "b")
        kb.confirm("b", "c")
        assert kb.together("a", "c") == pytest.approx(1.0)
        kb.remove("b")
        assert kb.together("a", "c") < 0.99
        with pytest.raises(ValueError, match="contradicts"):  # it may come back
            kb.separate("a", "c")
        kb.add([*ROWS, *rows])
        assert kb.together("a", "c") == pytest.approx(1.0)


def test_contradictions_are_refused(kb):
    kb.confirm("f1", "f2")
    kb.confirm("f2", "f3")
    before = clusters(kb)
    with pytest.raises(ValueError, match=r"contradicts earlier judgements; undo one of 1 .*'f1' 'f2'"):
        kb.separate("f1", "f3")
    assert clusters(kb) == before
    assert len(kb.judgements()) == 2
    with pytest.raises(ValueError, match="name two different ones"):
        kb.confirm("f1", "f1")


def test_entities_can_be_judged(kb):
    first, second = list(kb.entities())[:2]
    kb.confirm(first.id, second.id)
    judgement = kb.judgements()[0]
    assert (judgement.first, judgement.second) == (first.id, second.id)
    assert kb.together(first.fragments, second.fragments) == pytest.approx(1.0)
    assert kb.entity(second.id).id == first.id
    kb.undo()
    assert [entity.fragments for entity in list(kb.entities())[:2]] == [first.fragments, second.fragments]


def test_unsure_is_not_asked_again(kb):
    question = kb.uncertain(1)[0]
    before = clusters(kb)
    kb.unsure(question.first, question.second)
    assert clusters(kb) == before
    asked = [(q.first, q.second) for q in kb.uncertain(50)]
    assert (question.first, question.second) not in asked


# ---------------------------------------------------------------------- asking


def test_questions_are_those_whose_answers_are_worth_most(kb):
    """The first one of each subproblem; the others depend on those before."""
    found, seen = [one for one in kb.uncertain(20) if one.kind == "doubt"], set()
    assert len(found) > 3
    for question in found:
        part = frozenset(subproblem_of(kb, question.first))
        p = kb.together(question.first, question.second)
        assert question.probability == pytest.approx(p, abs=1e-9)
        if part not in seen:
            assert question.value == pytest.approx(worth(kb, question.first, question.second, p), abs=1e-6)
        seen.add(part)
        assert {question.first_entity, question.second_entity} == {
            kb.entity_of(question.first).id,
            kb.entity_of(question.second).id,
        }
        assert question.first_size == len(kb.entity_of(question.first).fragments)
        assert f"{question.first_entity} ({question.first_size} fragment" in question.reason
    entities = [frozenset((one.first_entity, one.second_entity)) for one in found]
    assert len(set(entities)) == len(entities)


def subproblem_of(kb, id):
    """The places of the fragments that are in a subproblem with one."""
    place = list(kb.labels()).index(id)
    parts = kb._session.live.posterior.subproblems
    return next(part.observations.tolist() for part in parts if place in part.observations)


def test_the_wrong_pairs_that_are_expected(kb):
    found, posterior = kb.wrong_pairs(), kb._session.live.posterior
    best, expected = posterior.labels(), 0.0
    for i in range(len(best)):
        together = np.asarray(posterior.together(i, np.arange(i)))
        expected += np.abs((best[:i] == best[i]) - together).sum()
    assert found == pytest.approx(expected)
    question = kb.uncertain(1)[0]
    kb.separate(question.first, question.second)
    assert kb.wrong_pairs() != pytest.approx(expected)


def worth(kb, a, b, p):
    """The expected number of wrong pairs that an answer removes, from the posterior's particles."""
    ids = list(kb.labels())
    posterior = kb._session.live.posterior
    i, j = ids.index(a), ids.index(b)
    part = next(s for s in posterior.subproblems if i in s.observations)
    rows, weights = np.array(part.partitions), np.array(part.probabilities)
    place = {int(x): k for k, x in enumerate(part.observations)}
    same = rows[:, place[i]] == rows[:, place[j]]

    def wrong(chosen):
        w = weights[chosen] / weights[chosen].sum()
        kept = rows[chosen]
        pairs = kept[:, :, None] == kept[:, None, :]
        return np.abs(pairs[w.argmax()] - np.tensordot(w, pairs, 1)).sum() / 2

    return wrong(np.ones(len(rows), bool)) - p * wrong(same) - (1 - p) * wrong(~same)


@pytest.mark.parametrize("loss", ["map", "bcubed", "vi", "binder"])
def test_labels_for_several_losses(kb, loss):
    found = kb.labels(loss)
    assert list(found) == [row["id"] for row in ROWS]


def test_search(kb):
    assert {"Ada Lovelace", "A. Lovelace", "Lovelace", "Lovelace, Ada", "Ade Lovelace"} & set(
        kb.search("lovelace")[0].matches
    )
    assert kb.search("LOVEL")  # a beginning
    assert kb.search("Lovelase")  # a misspelling
    assert kb.search("zzzzzzz") == []
    with pytest.raises(ValueError, match="nothing to search for"):
        kb.search("  ")


def test_who_has_all_words_comes_before_a_misspelling_of_one(tmp_path):
    """Willims and williams58 are rare, and begin as asked for, but that says no more than Williams does."""
    rows = [{"id": f"o{k}", "name": f"Bob Williams{'' if k % 2 else k}"} for k in range(20)]
    rows += [{"id": f"k{k}", "name": f"Kate Nobody{k}"} for k in range(10)]
    rows.append({"id": "odd", "name": "Bob Willims", "email": "b.williams58@acme.example"})
    rows.append({"id": "her", "name": "Kate Williams"})
    with partita.kb.open(tmp_path / "kb.db") as kb:
        kb.add(rows)
        for text in ("kate wil", "wil kate", "kate williams"):
            assert kb.search(text)[0].id == kb.entity_of("her").id


def test_evaluation(kb):
    found = kb.evaluate(TRUTH)
    truth = [TRUTH[id] for id in kb.labels()]
    expected = pt.bcubed(truth, list(kb.labels().values()))
    assert found["f1"] == pytest.approx(expected.f1)
    assert found["f1"] > 0.7
    with pytest.raises(ValueError, match="none of the ids"):
        kb.evaluate({"x": 1})


def test_as_of_a_time(kb):
    then = datetime.now(UTC)
    id, before = kb.entity_of("f1").id, kb.entity_of("f1").fragments
    kb.remove("f1")
    assert kb.entity(id, as_of=then).fragments == before
    with pytest.raises(KeyError, match="had no fragments"):
        kb.entity(id, as_of=0)


def test_values_have_sources_and_probabilities(kb):
    entity = next(kb.entities())
    with kb.store.reading() as connection:
        query = sa.text("SELECT * FROM entity_values WHERE entity = :number")
        rows = list(connection.execute(query, {"number": int(entity.id[1:])}))
    assert {(row.attribute, row.value) for row in rows} == {
        (name, str(value.value)) for name, values in entity.properties.items() for value in values
    }
    for row in rows:
        value = next(v for v in entity.properties[row.attribute] if str(v.value) == row.value)
        assert value.probability == pytest.approx(row.probability)
        assert len(value.sources) == row.sources
        assert 0.0 <= value.probability <= 1.0


def test_probabilities_are_those_of_the_posterior(kb):
    for entity in list(kb.entities())[:5]:
        for id in entity.fragments:
            others = [kb.together(id, other) for other in entity.fragments if other != id]
            with kb.store.reading() as connection:
                query = sa.text("SELECT probability FROM entity_members WHERE fragment = :id")
                kept = connection.scalar(query, {"id": id})
            assert kept == pytest.approx(np.mean(others) if others else 1.0, abs=1e-4)


@pytest.mark.parametrize("what", ["entities", "golden", "fragments", "clusters", "ftm", "samples"])
@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
def test_exports_can_be_read(kb, tmp_path, what, suffix):
    path = tmp_path / f"out.{suffix}"
    n = kb.export(path, what, samples=3)
    from partita.kb.io import read

    rows = [row for _, row in read([str(path)])]
    assert len(rows) == n
    wanted = {"fragments": 60, "clusters": 60, "samples": 180}
    assert n == wanted.get(what, len(clusters(kb)))


def test_an_exported_entity(kb, tmp_path):
    kb.export(tmp_path / "out.jsonl")
    first = json.loads((tmp_path / "out.jsonl").read_text().splitlines()[0])
    entity = next(kb.entities())
    assert (first["id"], first["fragments"]) == (entity.id, entity.fragments)
    assert set(first["properties"]["name"][0]) == {"value", "probability", "sources"}
    with pytest.raises(ValueError, match="cannot export 'all'"):
        kb.export(tmp_path / "out.jsonl", "all")


def test_what_there_is_none_of(url):
    with partita.kb.open(url) as kb:
        assert list(kb.entities()) == []
        assert kb.events() == []
        for ask in (kb.uncertain, lambda: kb.labels(), lambda: kb.explain("a", "b")):
            with pytest.raises(ValueError, match="empty"):
                ask()
        with pytest.raises(KeyError, match="no entity"):
            kb.entity("E1")
        for id in ("", "E", "x", "E-1", "E" + "9" * 30):
            with pytest.raises(KeyError):
                kb.entity(id)


def test_a_schema_is_kept(url):
    schema = '[attributes.name]\nkind = "text"\n[attributes."*"]\nkind = "category"\n'
    with partita.kb.open(url, schema=schema) as kb:
        kb.add(ROWS[:10])
        assert set(Record.from_toml(kb.schema).attributes) == {"name", "*"}
        with pytest.raises(ValueError, match="has a schema already"):
            partita.kb.open(url, schema=schema)
        kb.relearn(schema=schema.replace("category", "text"))
        assert "text" in kb.schema.split("*")[1]
        with pytest.raises(ValueError, match="TOML"):
            kb.relearn(schema="][")


def test_open_only_what_is_there(tmp_path):
    with pytest.raises(StoreError, match="no knowledge base"):
        partita.kb.open(tmp_path / "none.db", create=False)
    assert not (tmp_path / "none.db").exists()
