"""Waterfalls: each step by itself, and all of them together, against a naive re-implementation."""

import math
from collections import Counter, defaultdict
from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gammaln, logsumexp
from sqlalchemy import event

import partita as pt
import partita.kb
from partita.kb.clustering import Clustering
from partita.kb.queries.evidence import KIND, PRIOR, REST, AttributesAlone, evidence_of, waterfall
from partita.kb.queries.explain import hypotheses
from partita.kb.store import fragments as store
from partita.kb.store.database import get
from partita.models.records.comparisons.family import CROWDING
from tests.helpers.effort import examples
from tests.helpers.people import fragments

quick = examples(25)
KINDS = {
    "name": pt.Text(),
    "born": pt.Date(),
    "place": pt.Value(),
    "age": pt.Number(),
    "*": pt.Category(),
}


def random_fragments(rng, n):
    """Fragments of all kinds of attributes, some of them not in the schema, some with several values."""
    rows = []
    for _ in range(n):
        row = {"name": [rng.choice(["Ada Lovelace", "A. Lovelace", "Babbage"])]}
        if rng.random() < 0.5:
            row["born"] = [rng.choice(["1815-12-10", "1815", "1791-12-26"])]
        if rng.random() < 0.5:
            row["place"] = [rng.choice(["London", "Londn", "Paris"]), "Turin"][: rng.integers(1, 3)]
        if rng.random() < 0.5:
            row["age"] = [int(rng.integers(20, 24))]
        if rng.random() < 0.5:
            row[rng.choice(["work", "genre"])] = [rng.choice(["maths", "music"])]
        rows.append({key: [v.item() if hasattr(v, "item") else v for v in said] for key, said in row.items()})
    return rows


def clustering_of(rows, rate=2.0, n_particles=20, size=None):
    model = pt.Record(KINDS, rate=rate).fit_prior(rows)
    model = pt.Record(model.attributes, rate, model.presence, None, size)
    clustering = Clustering(model, n_particles, exact=True)
    for _ in clustering.add(list(range(len(rows))), model.validate(rows)):
        pass
    return clustering


def score_of(model, rows, clusters, alpha):
    """The score of a clustering, from the probability of each cluster by itself."""
    total = 0.0
    for cluster in clusters:
        alone = pt.SplitSMC(model, alpha=1e-9, n_particles=1).fit([rows[x] for x in sorted(cluster)])
        alone.constrain(together=[(0, k) for k in range(1, len(cluster))])
        total += alone.posterior_.log_density() - math.log(1e-9) + math.log(alpha)
    return total


@given(st.integers(0, 10_000), st.sampled_from([0.0, 2.0]), st.sampled_from([None, 1.5]), st.booleans())
@quick
def test_steps_add_up_to_the_difference_of_scores(seed, rate, size, one_thing):
    rng = np.random.default_rng(seed)
    rows = random_fragments(rng, 8)
    if one_thing:  # which is compared in another way
        rows = [{"name": row["name"]} for row in rows]
    clustering = clustering_of(rows, rate, size=size)
    assert clustering.model._linked == one_thing
    a, b = rng.choice(8, 2, replace=False).tolist()
    joined, apart, _ = hypotheses(clustering, a, b)
    assert any({a, b} <= cluster for cluster in joined)
    assert not any({a, b} <= cluster for cluster in apart)
    alpha = clustering.engine.alpha
    scores = [score_of(clustering.model, rows, clusters, alpha) for clusters in (joined, apart)]
    steps = waterfall(clustering, joined, apart)
    assert math.fsum(steps.values()) == pytest.approx(scores[0] - scores[1], abs=1e-9)
    assert (KIND in steps) == (rate > 0)


def test_each_step_by_itself():
    """Without an attribute the evidence is less by just that attribute's step."""
    rows = random_fragments(np.random.default_rng(1), 8)
    clustering = clustering_of(rows, rate=0.0)
    joined, apart, _ = hypotheses(clustering, 0, 1)
    steps = waterfall(clustering, joined, apart)
    for name in ("name", "born", "place", "age"):
        less = [{key: said for key, said in row.items() if key != name} for row in rows]
        model = pt.Record(clustering.model.attributes, 0.0, clustering.model.presence)
        alpha = clustering.engine.alpha
        with_it, without = (
            score_of(model, data, joined, alpha) - score_of(model, data, apart, alpha)
            for data in (rows, less)
        )
        assert steps.get(name, 0.0) == pytest.approx(with_it - without, abs=1e-9)
    own = 1.0 - CROWDING
    sizes = [sum(math.log(alpha) + own * gammaln(len(c)) for c in clusters) for clusters in (joined, apart)]
    assert steps[PRIOR] == pytest.approx(sizes[0] - sizes[1], abs=1e-9)


@given(seed=st.integers(0, 10_000))
@quick
def test_log_odds_are_those_of_the_particles(seed):
    """With room for all partitions the log-odds are those of the exact probability."""
    rng = np.random.default_rng(seed)
    rows = random_fragments(rng, 5)
    clustering = clustering_of(rows, n_particles=60)
    _, _, log_odds = hypotheses(clustering, 0, 1)
    p = clustering.posterior.together(0, 1)
    if 0.0 < p < 1.0:
        assert log_odds == pytest.approx(math.log(p) - math.log1p(-p), abs=1e-6)


def test_an_explanation(url):
    rows, _ = fragments(60)
    with partita.kb.open(url) as kb:
        kb.add(rows)
        groups = defaultdict(list)
        for id, label in kb.labels().items():
            groups[label].append(id)
        largest = sorted(groups.values(), key=len)[::-1]
        for a, b in [(largest[0][0], largest[0][1]), (largest[0][0], largest[1][0])]:
            found = kb.explain(a, b)
            assert math.fsum(step.nats for step in found.steps) == pytest.approx(found.log_odds, abs=1e-9)
            p = kb.together(a, b)
            # Across subproblems the posterior says 0; the alternative says how nearly.
            assert found.probability == pytest.approx(p, abs=1e-9 if 0.0 < p < 1.0 else 0.05)
            assert found.together == (kb.entity_of(a).id == kb.entity_of(b).id)
            # The two clusterings are of the same fragments, and differ in where the two are.
            assert sorted(chain(*found.clusters)) == sorted(chain(*found.alternative))
            sides = (found.clusters, found.alternative)
            together = [any({a, b} <= set(c) for c in side) for side in sides]
            assert together == [found.together, not found.together]
            assert {event.fragment for event in found.events} <= {a, b}
            said = {step.attribute: step for step in found.steps}
            assert said["name"].first == kb.fragment(a).properties["name"]
            assert set(said) >= {PRIOR, KIND, "name"}


def test_a_judgement_is_named(url):
    rows, _ = fragments(40)
    with partita.kb.open(url) as kb:
        kb.add(rows)
        number = kb.confirm("f1", "f2")
        other = kb.separate("f2", "f3")
        found = kb.explain("f1", "f2")
        assert found.judgements == [number]
        assert math.fsum(step.nats for step in found.steps) == pytest.approx(found.log_odds, abs=1e-9)
        assert kb.explain("f1", "f3").judgements == [other]
        assert kb.explain("f5", "f6").judgements == []


def test_the_rest_is_what_other_particles_add():
    seen = 0
    for seed in range(8):
        clustering = clustering_of(random_fragments(np.random.default_rng(seed), 7))
        _, _, log_odds = hypotheses(clustering, 0, 1)
        part = next(s for s in clustering.posterior.subproblems if 0 in s.observations)
        if 1 not in part.observations:
            continue
        place = list(part.observations)
        matrix = np.array(part.partitions)
        same = matrix[:, place.index(0)] == matrix[:, place.index(1)]
        weights = np.log(part.probabilities)
        if 0 < same.sum() < len(same):  # else one of the two is not among the particles
            seen += 1
            assert log_odds == pytest.approx(logsumexp(weights[same]) - logsumexp(weights[~same]), abs=1e-9)
    assert seen > 0


def of_pair(clustering, a, b):
    """The evidence of two fragments alone."""
    return evidence_of(
        clustering, frozenset({frozenset({a, b})}), frozenset({frozenset({a}), frozenset({b})})
    )


@given(st.integers(0, 10_000), st.sampled_from([0.0, 2.0]))
@quick
def test_the_pair_by_itself(seed, rate):
    """Its steps but the prior are its Bayes factor, and each attribute's is what is less without the attribute."""
    rng = np.random.default_rng(seed)
    rows = random_fragments(rng, 8)
    clustering = clustering_of(rows, rate)
    a, b = rng.choice(8, 2, replace=False).tolist()
    steps = of_pair(clustering, a, b)

    def factor(model, one, other):
        both, first, second = model.log_likelihood([[one, other], [one], [other]])
        return both - first - second

    bayes_factor = factor(clustering.model, rows[a], rows[b])
    assert math.fsum(steps.values()) - steps[PRIOR] == pytest.approx(bayes_factor, abs=1e-9)
    assert steps[PRIOR] == pytest.approx(-math.log(clustering.engine.alpha))
    model = pt.Record(clustering.model.attributes, 0.0, clustering.model.presence)
    whole = factor(model, rows[a], rows[b])
    for name in ("name", "born", "place", "age"):
        less = [{key: said for key, said in rows[x].items() if key != name} for x in (a, b)]
        if all(less):
            assert steps.get(name, 0.0) == pytest.approx(whole - factor(model, *less), abs=1e-9)


def test_the_pair_beside_its_groups(url):
    rows, _ = fragments(80)
    with partita.kb.open(url) as kb:
        kb.add(rows)
        entities = [entity for entity in kb.entities() if len(entity.fragments) > 2]
        asked = [(entities[0].id, entities[1].id), tuple(entities[0].fragments[:2])]
        with kb.store.reading() as connection:
            model = pt.Record.from_json(get(connection, "model"))
        said = {row["id"]: row["properties"] for row in rows}
        for one, other in asked:
            found = kb.explain(one, other)
            a, b = found.first, found.second
            assert found.asked == [one, other]
            assert found.entities == [kb.entity_of(a).id, kb.entity_of(b).id]
            assert {one, other} <= {a, b, *found.entities}
            pairs = [step.pair for step in found.steps]
            assert math.fsum(pairs) == pytest.approx(found.pair_log_odds, abs=1e-9)
            both, first, second = model.log_likelihood([[said[a], said[b]], [said[a]], [said[b]]])
            evidence = math.fsum(step.pair for step in found.steps if step.attribute not in (PRIOR, REST))
            assert evidence == pytest.approx(both - first - second, abs=1e-9)
            apart = found.alternative if found.together else found.clusters
            assert sorted([found.first_group, found.second_group]) <= sorted(apart)
            assert a in found.first_group
            assert b in found.second_group
            assert not found.of_pair
            for step in found.steps:
                for ids, summary in zip(
                    (found.first_group, found.second_group),
                    (step.first_group, step.second_group),
                    strict=True,
                ):
                    counts = Counter(value for id in ids for value in said[id].get(step.attribute, []))
                    assert summary == dict(counts.most_common(5))


def test_two_fragments_alone_have_no_other_groups(url):
    with partita.kb.open(url, schema=pt.Record({"name": pt.Text()})) as kb:
        kb.add([{"id": "a", "name": "Ada Lovelace"}, {"id": "b", "name": "Charles Babbage"}])
        found = kb.explain("a", "b")
        assert found.of_pair
        assert [step.pair for step in found.steps if step.attribute != REST] == pytest.approx(
            [step.nats for step in found.steps if step.attribute != REST]
        )


def test_an_explanation_asks_the_store_and_the_model_once(tmp_path, monkeypatch):
    """Else it takes too long where many ask: what groups say comes in one call, and so do its scores."""
    with partita.kb.open(tmp_path / "kb.db") as kb:
        kb.add(fragments(60)[0])
    fetched, scored = [], []
    properties_of, scores = store.properties_of, AttributesAlone.scores
    monkeypatch.setattr(
        store, "properties_of", lambda *given: fetched.append(given[1]) or properties_of(*given)
    )
    monkeypatch.setattr(AttributesAlone, "scores", lambda *given: scored.append(given[1]) or scores(*given))
    with partita.kb.open(tmp_path / "kb.db") as kb:
        large = max(kb.entities(), key=lambda entity: len(entity.fragments))
        found = kb.explain(*large.fragments[:2])
        assert len(large.fragments) > 3
        assert len(found.steps) > 3
        assert len(fetched) <= 2  # for the sampler, and for people
        assert len(scored) == 1
        again = kb.explain(*large.fragments[:2])
        assert again == found
        assert len(fetched) <= 2


def test_what_an_explanation_looks_up_is_sent_as_it_is(tmp_path):
    """For what SQLAlchemy does around a statement takes longer than the statement."""
    with partita.kb.open(tmp_path / "kb.db") as kb:
        kb.add(fragments(30)[0])
        large = max(kb.entities(), key=lambda entity: len(entity.fragments))
        expected = kb.explain(*large.fragments[:2])
        assert [event.number for event in expected.events] == sorted(
            event.number for event in kb.events() if event.fragment in large.fragments[:2]
        )
        sent = []
        event.listen(kb.store._engine, "before_execute", lambda *given: sent.append(str(given[1])))
        assert kb.explain(*large.fragments[:2]) == expected
    assert sent == []
