"""Random lives of a knowledge base: whatever is done to it, its rules hold, and a second one agrees."""

import shutil
import tempfile
from functools import cache
from itertools import chain
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    precondition,
    rule,
)

import partita.kb
from tests.helpers.downstream import Follower, entities_of
from tests.helpers.effort import effort, examples
from tests.helpers.language import RecordLM, install, learnt
from tests.helpers.networks import forget
from tests.helpers.people import fragments

ROWS, _ = fragments(40, seed=2)
VERSIONS = [ROWS, [{**row, "properties": row["properties"] | {"occupation": ["poet"]}} for row in ROWS]]
LEARNT = cache(lambda: learnt(ROWS[:10]))  # when it is first asked for
which = st.integers(0, 39)


class Life(RuleBasedStateMachine):
    """A knowledge base beside a plain account of what it must hold."""

    judgements = Bundle("judgements")
    model = None

    @initialize(bulk=st.booleans())
    def begin(self, bulk):
        self.folder = tempfile.mkdtemp()
        self.path = Path(self.folder) / "kb.db"
        self.kb = partita.kb.open(self.path, n_particles=5, model=self.model)
        self.held = {}  # what the fragments present say
        self.follower = Follower()
        self.binding = {}  # judgements that count: whether they join, and the fragments on their sides
        self.known = {}  # of each entity ever seen: its fragments when last seen
        self.undid = False  # whether a judgement was undone just now
        self.kb.add(ROWS[:10], bulk=bulk and self.model is None)
        self.held = {row["id"]: row["properties"] for row in ROWS[:10]}

    def teardown(self):
        latecomer = Follower()
        latecomer.catch_up(self.kb)
        assert latecomer.entities() == entities_of(self.kb)
        self.kb.close()
        shutil.rmtree(self.folder)

    @rule(chosen=st.lists(which, min_size=1, max_size=5, unique=True), version=st.sampled_from(VERSIONS))
    def add(self, chosen, version):
        rows = [version[k] for k in chosen]
        new = [row for row in rows if row["id"] not in self.held]
        other = [row for row in rows if self.held.get(row["id"], row["properties"]) != row["properties"]]
        done = self.kb.add(rows)
        assert done == (len(new), len(other), len(rows) - len(new) - len(other))
        self.held |= {row["id"]: row["properties"] for row in rows}

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def remove(self, data):
        id = data.draw(st.sampled_from(sorted(self.held)))
        self.kb.remove(id)
        del self.held[id]

    @rule(chosen=st.lists(which, max_size=5, unique=True))
    def add_again(self, chosen):
        """What is known changes nothing at all."""
        before = self.moment()
        rows = [{"id": f"f{k}", "properties": self.held[f"f{k}"]} for k in chosen if f"f{k}" in self.held]
        sources = {row["id"]: row["source"] for row in ROWS}
        self.kb.add([row | {"source": sources[row["id"]]} for row in rows], sweeps=1)
        self.kb.finish()
        assert self.moment() == before

    @precondition(lambda self: len(self.held) > 1)
    @rule(target=judgements, data=st.data(), kind=st.sampled_from(["confirm", "separate", "unsure"]))
    def judge(self, data, kind):
        """Of fragments, entities, or both."""
        names = sorted(self.held) if data.draw(st.booleans()) else sorted(self.entities())
        some = sorted(self.held) if data.draw(st.booleans()) else sorted(self.entities())
        a, b = data.draw(st.sampled_from(names)), data.draw(st.sampled_from(some))
        return self.say(lambda: getattr(self.kb, kind)(a, b), data.draw(st.booleans()))

    @precondition(lambda self: self.held)
    @rule(target=judgements, data=st.data(), by=st.sampled_from([None, "name", "born", "occupation"]))
    def split(self, data, by):
        entity, members = data.draw(st.sampled_from(sorted(self.entities().items())))
        leaving = [] if by else data.draw(st.lists(st.sampled_from(sorted(members)), min_size=1, unique=True))
        return self.say(lambda: self.kb.split(entity, leaving, by=by), data.draw(st.booleans()))

    def say(self, judge, regret):
        """Judge; what is refused, or taken back at once, leaves all as it was."""
        before, sure = entities_of(self.kb), self.sure()
        try:
            number = judge()
        except ValueError:
            assert entities_of(self.kb) == before
            return None
        if not regret:
            row = self.kb.judgements()[-1]
            if row.kind != "unsure":
                self.binding[number] = row.kind == "confirm", row.sides
            return number
        self.kb.undo()
        self.undid = True
        assert entities_of(self.kb) == before
        assert self.sure() == pytest.approx(sure, abs=1e-9)
        return None

    @rule(number=consumes(judgements))
    def undo(self, number):
        if number is not None:
            self.kb.undo(number)
            self.undid = True
            self.binding.pop(number, None)

    @precondition(lambda self: self.held)
    @rule()
    def relearn(self):
        self.kb.relearn()

    @rule(version=st.sampled_from(VERSIONS))
    def build(self, version):
        """As the command does it, interrupted before or within the refinement, or not."""
        row = version[len(self.held) % 40]
        self.kb.add([row], sweeps=2)
        self.held[row["id"]] = row["properties"]
        if len(self.held) % 2:
            self.reopen()
        self.kb.finish()
        assert self.kb.finish() == 0

    @rule()
    def refine(self):
        self.kb.refine(1)

    @rule()
    def reopen(self):
        before = self.entities()
        self.kb.close()
        self.kb = partita.kb.open(self.path)
        assert self.entities() == before

    def moment(self):
        """What tells whether anything has been written."""
        with self.kb.store.reading() as connection:
            return (
                self.kb.stats()["events"],
                connection.scalar(sa.text("SELECT max(number) FROM fragments")),
                [tuple(row) for row in connection.execute(sa.text("SELECT * FROM about ORDER BY name"))],
            )

    def sure(self):
        """How sure all pairs are."""
        return self.kb.together(sorted(self.held), sorted(self.held)) if self.held else 0.0

    def entities(self):
        return {entity.id: frozenset(entity.fragments) for entity in self.kb.entities()}

    @invariant()
    def every_fragment_is_of_one_entity(self):
        held = [id for members in self.entities().values() for id in members]
        assert sorted(held) == sorted(self.held)
        for id, said in self.held.items():
            assert self.kb.fragment(id).properties == said

    @invariant()
    def the_tables_say_what_the_sampler_says(self):
        if self.held:
            groups = {}
            for id, label in self.kb.labels().items():
                groups.setdefault(label, set()).add(id)
            assert set(map(frozenset, groups.values())) == set(self.entities().values())

    @invariant()
    def probabilities_are_those_of_the_sampler(self):
        with self.kb.store.reading() as connection:
            kept = dict(connection.execute(sa.text("SELECT fragment, probability FROM entity_members")).all())
        for members in self.entities().values():
            ids = sorted(members)
            found = self.kb.together(ids, ids)
            for row, id in zip(found, ids, strict=True):
                sure = (row.sum() - 1.0) / (len(ids) - 1) if len(ids) > 1 else 1.0
                assert kept[id] == pytest.approx(sure, abs=1e-4)

    @invariant()
    def events_are_consistent(self):
        """Entities come once, and go once, and come back only where a judgement is undone."""
        alive, gone = set(), set()
        for e in self.kb.events():
            come = e.entity if e.kind == "created" else e.other if e.kind == "split" else None
            if come is not None:
                assert come not in alive
                assert come not in gone or "undone" in e.detail
                alive.add(come)
            if e.kind in ("merged", "emptied"):
                ended = e.other if e.kind == "merged" else e.entity
                assert ended in alive
                alive.remove(ended)
                gone.add(ended)
        assert alive == set(self.entities())

    @invariant()
    def who_follows_the_events_is_in_step(self):
        self.follower.catch_up(self.kb)
        assert self.follower.entities() == entities_of(self.kb)

    @invariant()
    def judgements_hold(self):
        for joined, sides in self.binding.values():
            present = [[id for id in side if id in self.held] for side in sides]
            for k, side in enumerate(present):
                others = list(chain(*(present[k:] if joined else present[k + 1 :])))
                if side and others:
                    found = self.kb.together(side, others)
                    assert found == pytest.approx(1.0) if joined else (found == 0.0).all()

    @invariant()
    def ids_obey_their_rules(self):
        """An id is kept, or leads to a live one, or to nothing, when all is removed; only undoing brings one back."""
        now = self.entities()
        for id, before in self.known.items():
            if id in now:
                assert before is not None or self.undid, f"{id} has come back"
                continue
            try:
                led_to = self.kb.entity(id)
            except KeyError:
                continue
            assert led_to.id in now
            assert led_to.merged_from == id
        self.known = {id: now.get(id) for id in self.known | now}
        self.undid = False

    @invariant()
    def the_past_stays_as_it_was(self):
        """The memberships of all moments are a partition of what was there then."""
        events = self.kb.events()
        if not events:
            return
        last = events[-1].number
        for id, members in self.entities().items():
            then = self.kb.entity(id, as_of=last)
            assert frozenset(then.fragments) == members
            assert then.name == self.kb.entity(id).name


class LifeWithALanguageModel(Life):
    """The same with a black box, which likes company somewhat more than records do."""

    model = "jsonlm"

    def __init__(self):
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        install(self.patch, RecordLM(LEARNT(), extra=lambda cluster: 0.3 * (len(cluster) - 1)))

    def teardown(self):
        super().teardown()
        self.patch.undo()
        forget()


USUAL = examples(
    8,
    phases=[Phase.explicit, Phase.generate],
    stateful_step_count=12,
    suppress_health_check=list(HealthCheck),
)
TestLife = Life.TestCase
TestLife.settings = USUAL
TestLifeWithALanguageModel = LifeWithALanguageModel.TestCase
TestLifeWithALanguageModel.settings = settings(USUAL, max_examples=effort(3, 30))
