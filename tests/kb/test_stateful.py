"""Random lives of a knowledge base: whatever is done to it, its rules hold, and a second one agrees."""

import shutil
import tempfile
from functools import cache
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

    @initialize()
    def begin(self):
        self.folder = tempfile.mkdtemp()
        self.path = Path(self.folder) / "kb.db"
        self.kb = partita.kb.open(self.path, n_particles=5, model=self.model)
        self.held = {}  # what the fragments present say
        self.pairs = {}  # judgements that count
        self.known = {}  # of each entity ever seen: its fragments when last seen
        self.undid = False  # whether a judgement was undone just now
        self.kb.add(ROWS[:10])
        self.held = {row["id"]: row["properties"] for row in ROWS[:10]}

    def teardown(self):
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

    @precondition(lambda self: len(self.held) > 1)
    @rule(target=judgements, data=st.data(), kind=st.sampled_from(["confirm", "separate"]))
    def judge(self, data, kind):
        a, b = data.draw(st.lists(st.sampled_from(sorted(self.held)), min_size=2, max_size=2, unique=True))
        before = self.entities()
        try:
            number = getattr(self.kb, kind)(a, b)
        except ValueError:
            assert self.entities() == before
            return None
        self.pairs[number] = kind, a, b
        return number

    @rule(number=consumes(judgements))
    def undo(self, number):
        if number is not None:
            self.kb.undo(number)
            self.undid = True
            del self.pairs[number]

    @rule()
    def refine(self):
        self.kb.refine(1)

    @rule()
    def reopen(self):
        before = self.entities()
        self.kb.close()
        self.kb = partita.kb.open(self.path)
        assert self.entities() == before

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
        """Who is merged is not emptied too, and an event of an entity names one that there was."""
        ended = [
            e.other if e.kind == "merged" else e.entity
            for e in self.kb.events()
            if e.kind in ("merged", "emptied")
        ]
        assert len(ended) == len(set(ended))

    @invariant()
    def judgements_hold(self):
        for kind, a, b in self.pairs.values():
            if a in self.held and b in self.held:
                p = self.kb.together(a, b)
                assert p == pytest.approx(1.0) if kind == "confirm" else p == 0.0

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
