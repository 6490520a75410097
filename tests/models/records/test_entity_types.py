"""Types of entities: learnt from what clusters mention, and used where they matter."""

import math

import numpy as np
import pytest

import partita as pt
from partita.models.records import entity_types as learning
from partita.models.records.entity_types import Types, learnt_types, log_mentions, mentions_of
from tests.helpers import naive_comparisons


def mentioned(shares, n_entities, rng, size=6):
    """Fragments of entities of types with these shares, as attributes and values, and their entities."""
    said, labels, kinds = [], [], []
    for entity in range(n_entities):
        kinds.append(int(rng.integers(len(shares))))
        for _ in range(size):
            said.append([(a, "x") for a, f in enumerate(shares[kinds[-1]]) if rng.random() < f])
            labels.append(entity)
    return said, np.array(labels), np.array(kinds)


def test_types_are_found():
    """Two types of which each mentions its own attributes: what is learnt never mixes them."""
    shares = [[0.9, 0.6, 0.5, 0.0, 0.0], [0.9, 0.0, 0.0, 0.6, 0.5]]
    said, labels, _ = mentioned(shares, 120, np.random.default_rng(0))
    types, rate = learnt_types(mentions_of(said, labels, 5))
    assert len(types.weights) > 1
    assert types.weights.sum() == pytest.approx(1.0)
    assert rate in learning.RATES
    for share in types.shares[types.weights > 0.05]:  # one that nobody is of has the shares of all
        assert min(share[1:3].sum(), share[3:].sum()) < 0.1 * share.sum()


def test_one_type_where_attributes_are_independent():
    said, labels, _ = mentioned([[0.9, 0.5, 0.3]], 200, np.random.default_rng(1))
    types, rate = learnt_types(mentions_of(said, labels, 3))
    assert types.weights.tolist() == [1.0]
    assert types.shares[0] == pytest.approx([0.9, 0.5, 0.3], abs=0.05)
    assert rate == learning.RATES[-1]  # entities do not differ


def test_the_likelihood_is_that_of_the_kernels():
    """What a cluster mentions is as likely as what is learnt from, draw by draw and all at once."""
    names = ["a", "b", "c"]
    shares = [(0.4, {"a": 0.5, "b": 0.1, "c": 0.3}), (0.6, {"a": 0.2, "b": 0.9, "c": 0.01})]
    model = pt.Record(dict.fromkeys(names, pt.Category()), 3.0, None, shares)
    X = [{"a": ["x"], "b": ["x"]}, {}, {"b": ["x"]}, {"b": ["x"], "c": ["x"]}]
    said = [[(names.index(name), "x") for name in x] for x in X]
    table = Types(np.array([0.4, 0.6]), np.array([[own[name] for name in names] for _, own in shares]))
    found = log_mentions(mentions_of(said, np.zeros(4, np.int64), 3), table, 3.0)
    mentioned = [[name in x for x in X] for name in names]
    assert found.tolist() == pytest.approx([naive_comparisons.presence(mentioned, names, model)], abs=1e-9)
    assert model.log_likelihood([X, X[::-1]]).tolist() == pytest.approx(
        [naive_comparisons.record(X, model)] * 2
    )


def test_attributes_of_one_type_are_evidence_once():
    """Two films that share nothing but being films: with a type for films they need not be one."""
    film = {"name": 0.9, **{f"film{k}": 0.5 for k in range(6)}}
    attributes = dict.fromkeys(film, pt.Category())
    few = {name: 0.05 * share for name, share in film.items()} | {"name": 0.9}
    X = [{f"film{k}": f"{side}{k}" for k in range(6)} for side in "ab"]

    def together(types):
        model = pt.Record(attributes, 4.0, few, types)
        return float(pt.SplitSMC(model, alpha=1.0, random_state=0).fit(X).posterior_.together(0, 1))

    assert together([(0.05, film), (0.95, few)]) < 0.5 * together(None)


def test_nothing_mentioned_and_few_entities():
    types, _ = learnt_types(mentions_of([[], []], np.array([0, 1]), 2))
    assert types.weights.tolist() == [1.0]
    assert math.isfinite(np.log(types.shares).sum())
    said = [[(0, "x")]] * 3 + [[]] * 200
    types, _ = learnt_types(mentions_of(said, np.arange(203), 2))
    assert math.isclose(types.weights.sum(), 1.0)


@pytest.mark.parametrize("types", [[], [(0.0, {})], [(1.5, {})], [("x", {})], [(0.5, {}), (0.4, {})]])
def test_types_that_make_no_sense(types):
    with pytest.raises(ValueError, match="types must have weights"):
        pt.SplitSMC(pt.Record({"name": pt.Text()}, types=types)).fit([{"name": "Ada"}])


def test_presence_can_be_switched_off():
    X = [{"name": "Ada"}, {"job": "poet"}] * 20
    model = pt.Record({"name": pt.Text(), "job": pt.Category()}, rate=0).fit_prior(X)
    assert (model.rate, model.types) == (0, None)


def test_what_none_has_mentioned_is_no_evidence():
    """A new column in a later file must not hold together whoever has it."""
    said = [{"name": f"person {k // 2}", "born": f"19{k // 2:02}"} for k in range(60)]
    model = pt.Record.infer(said).fit_prior(said)
    model.check(1)
    new = model.numbers["*"]

    def for_one(with_new):
        alone, both = np.ones(len(model.numbers), np.int64), np.full(len(model.numbers), 2)
        alone[new], both[new] = with_new, 2 * with_new
        return model.log_presence(both, 2) - 2.0 * model.log_presence(alone, 1)

    assert for_one(1) == pytest.approx(for_one(0), abs=1e-9)
    clusters = [[{"x": "a"}], [{"x": "b"}], [{"x": "a"}, {"x": "b"}]]
    alone, other, both = model.log_likelihood([model.validate(cluster) for cluster in clusters])
    assert both - alone - other < 1.0
