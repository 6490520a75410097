"""Where records would go, against the definition: sums over particles, and probabilities of clusters by themselves."""

import math
import sqlite3
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

import partita as pt
import partita.kb
from partita.kb.clustering import Clustering
from partita.kb.fragments import as_fragment
from partita.kb.queries.evidence import KIND, NETWORK, PRIOR, REST, attribute_scores, waterfall
from partita.kb.queries.match import NEW, evidence, places_for
from partita.smc.files.packing import free_slots, live_slots, pack_slots
from partita.smc.reading.particles import partitions
from partita.smc.reading.snapshot import posterior_of
from tests.helpers.effort import examples
from tests.helpers.language import RecordLM, install, learnt
from tests.helpers.networks import forget
from tests.helpers.people import fragments
from tests.kb.queries.test_explain import clustering_of, random_fragments

quick = examples(20)
ROWS, _ = fragments(60, seed=3)
ADA = {"name": "Ada Lovelace", "born": "1815-12-10"}


def clusters_by_row(clustering, s):
    """Of a subproblem's particles the clusters, as lists of observations, and the normalised log-weights."""
    members, ids, scores = partitions(clustering.engine.state, s)
    rows = [[members[row == c].tolist() for c in dict.fromkeys(row.tolist())] for row in ids]
    return rows, scores - logsumexp(scores)


def naive(clustering, said, rows, slots):
    """The posterior predictive from its definition: a sum over particles and clusters, entity by entity."""
    model, found = clustering.model, Counter()
    log_p = lambda cluster: float(model.log_likelihood([cluster])[0])  # noqa: E731
    found[NEW] = clustering.engine.alpha * math.exp(log_p([said]))
    for s in slots:
        particles, weights = clusters_by_row(clustering, s)
        for clusters, weight in zip(particles, weights.tolist(), strict=True):
            for cluster in clusters:
                fragments = [rows[x] for x in cluster]
                mass = math.exp(weight + log_p([*fragments, said]) - log_p(fragments))
                for x in cluster:  # |c| times it, each member's share to the entity that it is of
                    found[int(clustering.entity[x])] += mass
    total = sum(found.values())
    return {where: mass / total for where, mass in found.items()}


def probabilities(clustering, said):
    """What is found of each entity."""
    places = places_for(clustering, clustering.model.validate([said]))
    numbers = [
        int(clustering.entity[places.members[places.label == k][0]]) for k in range(len(places.clusters))
    ]
    return dict(zip([*numbers, NEW], places.probabilities.tolist(), strict=True)), places


@given(st.integers(0, 10_000), st.sampled_from([0.0, 2.0]), st.sampled_from([None, 1.5]))
@quick
def test_probabilities_are_sums_over_particles(seed, rate, size):
    rows = random_fragments(np.random.default_rng(seed), 9)
    clustering = clustering_of(rows[:8], rate, n_particles=5, size=size)
    found, _ = probabilities(clustering, rows[8])
    expected = naive(clustering, rows[8], rows, live_slots(clustering.engine.state))
    assert found.keys() == expected.keys()
    assert sum(found.values()) == pytest.approx(1.0)
    for where, probability in expected.items():
        assert found[where] == pytest.approx(probability, rel=1e-6, abs=1e-12)


@given(st.integers(0, 10_000))
@quick
def test_candidates_are_those_that_share_a_key(seed):
    rows = random_fragments(np.random.default_rng(seed), 9)
    model = pt.Record.infer(rows).fit_prior(rows[:8])
    clustering = Clustering(model, 5, exact=False)
    for _ in clustering.add(range(8), model.validate(rows[:8])):
        pass
    starts, keys = model.keys(model.validate(rows))
    of = [set(keys[a:b].tolist()) for a, b in pairwise(starts.tolist())]
    slots = {clustering.engine.subproblem_of(x) for x in range(8) if of[x] & of[8]}
    found, _ = probabilities(clustering, rows[8])
    for where, probability in naive(clustering, rows[8], rows, sorted(slots)).items():
        assert found.pop(where) == pytest.approx(probability, rel=1e-6, abs=1e-12)
    assert not found


@given(st.integers(0, 10_000), st.sampled_from([0.0, 2.0]), st.sampled_from([None, 1.5]), st.booleans())
@quick
def test_each_step_is_the_difference_of_two_clusterings(seed, rate, size, one_thing):
    """Observe the record, and explain the best cluster with it against both by themselves."""
    rows = random_fragments(np.random.default_rng(seed), 9)
    if one_thing:
        rows = [{"name": row["name"]} for row in rows]
    clustering = clustering_of(rows[:8], rate, size=size)
    _, places = probabilities(clustering, rows[8])
    alpha = clustering.engine.alpha
    known = list(range(len(places.clusters)))
    found = evidence(clustering, places, known)
    held = [frozenset(places.members[places.label == k].tolist()) for k in known]
    for _ in clustering.add([8], clustering.model.validate(rows[8:])):
        pass
    shift = math.log(clustering.engine.alpha) - math.log(alpha)  # which may have been learnt again
    for cluster, steps in zip(held, found, strict=True):
        expected = waterfall(clustering, frozenset([cluster | {8}]), frozenset([cluster, frozenset([8])]))
        expected[PRIOR] += shift
        assert (KIND in steps) == (rate > 0)
        for name, nats in expected.items():
            assert steps.pop(name, 0.0) == pytest.approx(nats, abs=1e-9)
        assert set(steps) <= {REST}
    assert attribute_scores(clustering, "name", held) is not None


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    path = tmp_path_factory.mktemp("match") / "kb.db"
    with partita.kb.open(path, n_particles=10) as kb:
        kb.add(ROWS)
    return path


def everything(kb, path):
    """All that the sampler has, and all that the file has."""
    clustering = kb._session.live
    state = clustering.engine.state
    packed = {name: part.tolist() for name, part in pack_slots(state, live_slots(state)).items()}
    packed.pop("statistics")
    entropy = posterior_of(state).log_density()
    with sqlite3.connect(path) as connection:
        dumped = list(connection.iterdump())
    return (
        packed,
        clustering.to_numbers(),
        free_slots(state).tolist(),
        clustering.numbers.tolist(),
        clustering.entity.tolist(),
        entropy,
        dumped,
    )


def test_nothing_is_added(built):
    with partita.kb.open(built) as kb:
        kb.labels()  # loads the sampler
        contents, before = built.read_bytes(), everything(kb, built)
        first = [kb.match(row, limit=100) for row in ROWS[:20]]
        assert [matched.matches for matched in kb.match_all(ROWS[:20], limit=100)] == first
        assert kb.match({"name": "Nobody Else"})[0].entity == NEW
        assert everything(kb, built) == before
        assert built.read_bytes() == contents
    with partita.kb.open(built) as kb:  # and what is loaded piece by piece says the same
        assert [kb.match(row, limit=100) for row in reversed(ROWS[:20])] == first[::-1]


@pytest.mark.parametrize("seed", range(5))
def test_what_is_added_joins_what_matched(built, tmp_path, seed):
    path = tmp_path / "kb.db"
    path.write_bytes(built.read_bytes())
    more, _ = fragments(12, seed=100 + seed)
    sure = 0
    with partita.kb.open(path) as kb:
        for row in more:
            row = {**row, "id": f"more {row['id']}"}
            best = kb.match(row)[0]
            there = {entity.id for entity in kb.entities()}
            kb.add([row])
            if best.probability > 0.95:
                sure += 1
                now = kb.entity_of(row["id"]).id
                assert now == best.entity or (best.entity == NEW and now not in there)
    assert sure > 3


def test_an_answer(built):
    with partita.kb.open(built) as kb:
        found = kb.match(ADA | {"id": "f1"}, limit=3)  # whatever the id
        assert len(found) == 3
        best = found[0]
        assert [place.probability for place in found] == sorted((p.probability for p in found), reverse=True)
        assert best.name == kb.entity(best.entity).name
        assert best.log_odds == pytest.approx(math.fsum(step.nats for step in best.steps))
        everywhere = {place.entity: place.probability for place in kb.match(ADA, limit=1000)}
        assert sum(everywhere.values()) == pytest.approx(1.0)
        assert best.log_odds == pytest.approx(math.log(best.probability / everywhere[NEW]), abs=1e-6)
        [name] = [step for step in best.steps if step.attribute == "name"]
        assert name.record == ["Ada Lovelace"]
        assert "Ada Lovelace" in name.entity
        assert kb.match(as_fragment(ADA, 0), limit=3) == found
        assert len(kb.match(ADA, limit=1)) == 1


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({}, "no property says anything"),
        ({"name": [[1]]}, "must be text, a number or a date"),
        ("Ada", "must map attributes to values"),
    ],
)
def test_what_is_no_record(built, record, said):
    with partita.kb.open(built) as kb, pytest.raises((TypeError, ValueError), match=said):
        kb.match(record)


def test_bad_questions(built, tmp_path):
    with partita.kb.open(built) as kb:
        with pytest.raises(ValueError, match="limit"):
            kb.match(ADA, limit=0)
        with pytest.raises(ValueError, match="limit"):
            kb.match_all([ADA], limit=0)  # at once
    schema = '[attributes.name]\nkind = "text"\n[attributes.place]\nkind = "value"'
    with partita.kb.open(tmp_path / "kb.db", schema=schema) as kb:
        with pytest.raises(ValueError, match="empty"):
            kb.match(ADA)
        kb.add([{"id": "1", "name": "Ada", "place": "London"}, {"id": "2", "name": "Bo", "place": "Oslo"}])
        with pytest.raises(ValueError, match=r"the record: .* no attribute 'plaice'; did you mean 'place'\?"):
            kb.match({"name": "Ada", "plaice": "London"})
        with pytest.raises(ValueError, match=r"record '7': .* no attribute 'xyz'; there are 'name', 'place'"):
            kb.match({"id": "7", "xyz": "London"})
        kb.remove("1", "2")
        assert [place.entity for place in kb.match({"name": "Ada"})] == [NEW]


def test_with_a_language_model(tmp_path, monkeypatch):
    """It knows what records know and a little more, which is a step of its own."""
    install(monkeypatch, RecordLM(learnt(ROWS[:20]), extra=lambda cluster: 0.5 * (len(cluster) - 1)))
    path = tmp_path / "kb.db"
    with partita.kb.open(path, n_particles=5, model="jsonlm") as kb:
        kb.add(ROWS[:20])
        kb.labels()
        before = everything(kb, path)
        found = kb.match(ADA)
        assert everything(kb, path) == before
        best = found[0]
        assert best.entity != NEW
        assert NETWORK in {step.attribute for step in best.steps}
        assert best.log_odds == pytest.approx(math.fsum(step.nats for step in best.steps))
        kb.add([ADA | {"id": "ada"}])
        assert kb.entity_of("ada").id == best.entity
    forget()
