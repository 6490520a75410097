"""What else an entity may be: the particles of its subproblem, as they are; what is at risk, and what was foretold."""

from itertools import chain, pairwise

import numpy as np
import pytest

import partita.kb
from partita.kb.queries import alternatives as module
from tests.helpers.people import fragments


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    with partita.kb.open(tmp_path_factory.mktemp("alternatives") / "kb.db") as kb:
        kb.add(fragments(60)[0])
        yield kb


def doubtful(kb):
    """The entity that is least sure, of several fragments."""
    return next(kb.entities(sort="sure", minimum=2))


def test_the_matrix_is_what_together_says(kb):
    for entity in kb.entities(limit=5):
        found = kb.matrix(entity.id)
        assert set(entity.fragments) <= set(found.fragments)
        assert found.total == len(found.fragments)
        expected = kb.together(found.fragments, found.fragments)
        assert np.abs(np.array(found.matrix) - expected).max() < 1e-4


def test_what_belongs_together_stands_together(kb):
    found = kb.matrix(doubtful(kb).id)
    own = [kb.entity_of(id).id for id in found.fragments]
    changes = sum(one != other for one, other in pairwise(own))
    assert changes == len(set(own)) - 1


def test_clusterings_are_all_there_with_their_probabilities(kb):
    id = doubtful(kb).id
    found = kb.alternatives(id, 1000)
    assert sum(one.probability for one in found.clusterings) == pytest.approx(1.0)
    assert found.other == 0.0
    matrix = np.zeros((len(found.fragments),) * 2)
    for one in found.clusterings:
        assert sorted(chain(*one.clusters)) == sorted(found.fragments)
        place = {id: k for k, cluster in enumerate(one.clusters) for id in cluster}
        labels = np.array([place[id] for id in found.fragments])
        matrix += one.probability * (labels[:, None] == labels[None, :])
    assert np.abs(matrix - kb.together(found.fragments, found.fragments)).max() < 1e-9
    best, *rest = found.clusterings
    assert best.differs == []
    assert {frozenset(cluster) for cluster in best.clusters} == {
        frozenset(kb.entity_of(id).fragments) for id in found.fragments
    }
    assert all(one.differs for one in rest)
    assert set(best.clusters[0]) == set(kb.entity(id).fragments)


def test_what_is_not_listed_is_the_rest(kb):
    id = doubtful(kb).id
    whole, some = kb.alternatives(id, 1000), kb.alternatives(id, 2)
    assert some.clusterings == whole.clusterings[:2]
    assert some.other == pytest.approx(1.0 - sum(one.probability for one in some.clusterings))


def test_of_a_large_subproblem_some_is_shown(kb, monkeypatch):
    entity = next(one for one in kb.entities() if kb.matrix(one.id).total > len(one.fragments))
    n = len(entity.fragments)
    matrix = kb.matrix(entity.id, limit=n)
    assert set(matrix.fragments) == set(entity.fragments)
    assert matrix.total > n
    monkeypatch.setattr(module, "SHOWN", n)
    found = kb.alternatives(entity.id, 1000)
    assert set(found.fragments) == set(entity.fragments)
    assert sum(one.probability for one in found.clusterings) == pytest.approx(1.0)
    assert len({str(one.clusters) for one in found.clusterings}) == len(found.clusterings)


def test_an_entity_that_is_none(kb):
    for ask in (kb.alternatives, kb.matrix):
        with pytest.raises(KeyError, match="there is no entity 'E999'"):
            ask("E999")


# ---------------------------------------------------------------------- at risk


def expected_risk(kb, entity):
    """Pairs with a fragment of an entity: wrongly together, or wrongly apart."""
    everybody = [id for one in kb.entities() for id in one.fragments]
    own = set(entity.fragments)
    matrix = kb.together(entity.fragments, everybody)
    inside = np.array([id in own for id in everybody])
    return float((1.0 - matrix[:, inside]).sum() / 2.0 + matrix[:, ~inside].sum())


def test_entities_at_risk_by_pairs(kb):
    found = kb.at_risk(1000)
    assert len(found) > 1
    risks = {one.id: one.expected_wrong_pairs for one in found}
    for entity in kb.entities():
        assert risks.get(entity.id, 0.0) == pytest.approx(expected_risk(kb, entity), abs=1e-9)
    assert [one.id for one in kb.at_risk(2)] == [one.id for one in found[:2]]
    assert found[0].size == len(kb.entity(found[0].id).fragments)


# ---------------------------------------------------------------------- foretold


def test_what_was_foretold_is_what_was_said_before_the_judgement(tmp_path):
    with partita.kb.open(tmp_path / "kb.db") as kb:
        kb.add(fragments(60)[0])
        assert kb.foretold() is None
        said = []
        for same in (True, False, False):
            question = next(one for one in kb.uncertain() if one.kind == "doubt")
            said.append((kb.together(question.first, question.second), same))
            (kb.confirm if same else kb.separate)(question.first, question.second)
        kb.unsure("f0", "f1")
        found = kb.foretold(1)
        assert found.bin_count.tolist() == [3]
        assert found.bin_probability[0] == pytest.approx(np.mean([p for p, _ in said]), abs=0.02)
        assert found.bin_frequency[0] == pytest.approx(1.0 / 3.0)
        kb.undo()
        kb.undo()
        assert kb.foretold(1).bin_count.tolist() == [2]
        kb.relearn()
        assert kb.foretold() is None


def test_what_changes_is_looked_at_again(tmp_path):
    """The particles in doubt that are remembered are those that there are."""
    with partita.kb.open(tmp_path / "kb.db") as kb:
        kb.add(fragments(40)[0])
        rows = fragments(30, seed=5)[0]
        for k in range(6):
            kb.wrong_pairs()
            kb.add([row | {"id": f"{k} {row['id']}"} for row in rows[5 * k : 5 * k + 5]])
            if k % 2:
                question = kb.uncertain(1)[0]
                kb.confirm(question.first, question.second)
            with partita.kb.open(tmp_path / "kb.db") as other:
                assert kb.wrong_pairs() == pytest.approx(other.wrong_pairs(), rel=1e-9)
                assert [one.id for one in kb.at_risk(5)] == [one.id for one in other.at_risk(5)]
