"""Empirical Bayes for records: each estimate against brute force."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import partita as pt
from partita.learning import records as record_prior
from partita.learning.records import (
    BELIEF,
    LEVELS,
    REFERENCES,
    SHARED,
    Learner,
    counts_among_entities,
    labelled_sample,
    neighbourhoods,
    references,
    values_of_clusters,
)
from partita.models.records.corpus import Corpus
from partita.models.records.kinds.attribute import AGREEMENT
from tests.helpers.effort import examples
from tests.helpers.naive_comparisons import Compared

quick = examples(20)


# ---------------------------------------------------------------------- counts


def test_counts_where_the_sample_shows_everything():
    """A value of two clusters counts twice, one that a cluster repeats once."""
    clusters = [Counter(a=3), Counter(a=1, b=2), Counter(c=1)]
    found = counts_among_entities(Counter(a=4, b=2, c=1), clusters)
    assert found == pytest.approx({"a": 2, "b": 1, "c": 1})


def test_counts_where_the_sample_shows_a_part():
    """The share that was first, of all occurrences; but two occurrences count as two at least."""
    clusters = [Counter(a=4), Counter(b=1)]
    found = counts_among_entities(Counter(a=40, b=2, c=1), clusters)
    assert found == pytest.approx({"a": 10, "b": 2, "c": 1})
    assert counts_among_entities(Counter(a=5), [Counter(a=4)])["a"] == pytest.approx(2.0)


def test_counts_of_what_the_sample_lacks():
    """The share of values that occur about as often, else of all."""
    clusters = [Counter(a=8), Counter(b=8), Counter(c=1)]
    found = counts_among_entities(Counter(a=8, b=8, c=1, like_a=12, rare=1, often=100), clusters)
    assert found["like_a"] == pytest.approx(2.0)  # 12/8, but two at least
    assert found["rare"] == pytest.approx(1.0)
    assert found["often"] == pytest.approx(100 * 3 / 17)


def test_counts_without_a_sample():
    assert counts_among_entities(Counter(a=5, b=1), []) == {"a": 2, "b": 1}


def test_every_cluster_by_itself_gives_the_occurrences():
    occurrences = Counter(a=7, b=2, c=1)
    clusters = [Counter([value]) for value in occurrences.elements()]
    assert counts_among_entities(occurrences, clusters) == pytest.approx(dict(occurrences))


def test_values_of_clusters():
    said = [[(0, "a"), (1, "x")], [(0, "a")], [(1, "y")], []]
    names, facts = values_of_clusters(said, np.array([5, 5, 2, 5]), 2)
    assert names == [Counter(a=2)]
    assert sorted(facts, key=str) == [Counter(x=1), Counter(y=1)]


# ---------------------------------------------------------------------- samples


def test_a_small_set_is_its_own_sample():
    pairs = [[(0, str(k))] for k in range(10)]
    rows, seeds = neighbourhoods(pairs, [Counter(str(k) for k in range(10))])
    assert rows == seeds == list(range(10))


def test_samples_keep_fragments_together_that_share_a_rare_value(monkeypatch):
    monkeypatch.setattr(record_prior, "SAMPLE", 100)
    pairs = [[(0, f"name {k // 3}"), (1, "common")] for k in range(900)]
    occurrences = [Counter(f"name {k // 3}" for k in range(900)), Counter(common=900)]
    rows, seeds = neighbourhoods(pairs, occurrences)
    assert rows == sorted(set(rows))
    assert 100 <= len(rows) < 100 + SHARED
    assert set(Counter(row // 3 for row in rows).values()) == {3}
    assert set(seeds) <= set(rows)
    assert len(seeds) == len(set(seeds)) < len(rows)
    assert (rows, seeds) == neighbourhoods(pairs, occurrences)


def test_references_are_values_of_many_entities():
    few = [Counter(a=3, b=1), Counter(c=1), Counter(a=2)]
    assert sorted(references(few)) == ["a", "a", "b", "c"]
    many = [Counter({f"{k}": 1, f"{k} too": 2}) for k in range(3 * REFERENCES)]
    found = references(many)
    assert len(found) == REFERENCES
    assert len({value.split(" ")[0] for value in found}) == REFERENCES  # one of each
    assert references([]) == ()


def test_labelled_samples_have_whole_clusters(monkeypatch):
    monkeypatch.setattr(record_prior, "SAMPLE", 100)
    codes = np.random.default_rng(0).permutation(np.arange(900) // 3)
    rows = labelled_sample(codes)
    assert rows == sorted(set(rows))
    assert 97 < len(rows) <= 100
    assert set(np.bincount(codes[rows]).tolist()) == {0, 3}


# ---------------------------------------------------------------------- agreement, frequencies, weights

NAMES = ["ada", "adam", "adan", "bob", "bobby", "zoe"]
said = st.lists(st.sampled_from(NAMES), max_size=2, unique=True)


def learner_of(pairs, kinds):
    counts = [Counter(value for own in pairs for b, value in own if b == a) for a in range(len(kinds))]
    attributes = [kind(corpus=Corpus(of)) for kind, of in zip(kinds, counts, strict=True)]
    names = [f"attribute {a}" for a in range(len(kinds))]
    return Learner(names, attributes, pairs, 2.0), attributes


@quick
@given(st.lists(st.tuples(st.integers(0, 2), said, said), min_size=1, max_size=12))
def test_agreement_is_counted_in_clusters(rows):
    """Each pair of values of one cluster's fragments, weighed so that large clusters do not say all."""
    pairs = [
        sorted([(0, value) for value in one] + [(1, value) for value in other]) for _, one, other in rows
    ]
    labels = np.unique([label for label, _, _ in rows], return_inverse=True)[1]
    learner, _ = learner_of(pairs, [pt.Text, pt.Category])
    found = learner.agreement(labels)
    assert found.sum(axis=1) == pytest.approx([1.0, 1.0])
    assert (found > 0.0).all()
    alone = learner.agreement(np.arange(len(rows)))  # nothing to learn from: what is believed
    np.testing.assert_allclose(alone, [AGREEMENT, AGREEMENT])


def test_agreement_is_learnt():
    """Values that agree make agreement likely, those that differ make it unlikely, near what is believed."""
    same = [[(0, f"name {k // 2}")] for k in range(200)]
    differ = [[(0, f"{'abcdefghij'[k % 10] * 3} {k}")] for k in range(200)]
    labels = np.arange(200) // 2
    faithful, careless = (
        learner_of(pairs, [pt.Category])[0].agreement(labels)[0] for pairs in (same, differ)
    )
    assert faithful[-1] > 0.9 > 0.1 > careless[-1]
    assert careless[0] > 0.8
    shrunk = BELIEF / (100 + BELIEF)  # towards all columns together, and these towards what is believed
    assert faithful[:-1].tolist() == pytest.approx([shrunk**2 * share for share in AGREEMENT[:-1]])


@quick
@given(st.lists(st.tuples(st.integers(0, 3), said), min_size=2, max_size=12))
def test_strangers_are_those_of_other_clusters(rows):
    pairs = [[(0, value) for value in sorted(own)] for _, own in rows]
    labels = np.unique([label for label, _ in rows], return_inverse=True)[1]
    learner, (attribute,) = learner_of(pairs, [pt.Text])
    items = learner.of[0]
    holders, log_u = learner.strangers(0, items, labels)
    values = list(dict.fromkeys(value for own in pairs for _, value in own))
    of_clusters = [
        {value for k, own in enumerate(pairs) if labels[k] == c for _, value in own} for c in set(labels)
    ]
    assert holders.tolist() == [sum(value in own for own in of_clusters) for value in values]
    assert np.isfinite(log_u).all()
    for value, found in zip(values, np.exp(log_u), strict=True):
        others = sum(value in own for own in of_clusters) - 1
        compared = Compared(attribute)
        total = 0.0  # of values of other clusters than one that has it
        for own in of_clusters:
            if value in own:
                total += sum(len(of) for of in of_clusters if of is not own) / (others + 1)
        assert found[-1] == pytest.approx(max(others, 1) / max(total, 2))
        assert compared.level(value, value) == LEVELS - 2


def test_columns_that_say_the_same_count_for_less():
    """A city and its postcode beside a name: what two columns repeat, neither counts whole."""
    rng = np.random.default_rng(0)
    people, towns = [f"{k:03d} {rng.integers(10**6)}" for k in range(100)], rng.integers(0, 12, 100)
    pairs = [
        [(0, people[k]), (1, f"town {towns[k]}"), (2, f"code {towns[k]}")]
        for k in np.repeat(np.arange(100), 3)
    ]
    labels = np.repeat(np.arange(100), 3)
    learner, _ = learner_of(pairs, [pt.Category] * 3)
    name, town, code = learner.prior(labels).weights
    assert town == pytest.approx(code, rel=0.05)
    assert town < 0.7 * name
    assert 0.0 < town < name <= 1.0


def test_labels_teach_how_many_fragments_an_entity_has():
    X = [{"name": f"name {k // 4}"} for k in range(80)]
    model = pt.Record({"name": pt.Text()}).fit_prior(X, np.arange(80) // 4)
    assert model.size == pytest.approx(4.0)
    mixed = pt.Record({"name": pt.Text()}).fit_prior(X[:6], [0, 0, 0, 0, 1, 2])
    assert mixed.size == pytest.approx(2.0)  # six fragments of three
    attribute = model.attributes["name"]
    assert attribute.kin == pytest.approx(len(attribute.references) * 4.0 / 80)
    assert attribute.corpus.counts == {f"name {k}": 1.0 for k in range(20)}
    assert sorted(attribute.references) == sorted(attribute.corpus.counts)


@pytest.mark.parametrize("each", [1, 2, 5])
def test_without_labels_the_size_of_entities_is_found(each):
    rng = np.random.default_rng(each)
    names = [" ".join("".join(rng.choice(list("abcdefghijklmnop"), 6)) for _ in range(2)) for _ in range(60)]
    X = [{"name": name, "town": f"town {k % 7}"} for k, name in enumerate(names) for _ in range(each)]
    model = pt.Record({"name": pt.Text(), "town": pt.Category()}).fit_prior(X)
    assert model.size == pytest.approx(each, rel=0.1)


def test_learning_does_not_depend_on_the_order_of_labels():
    X = [{"name": f"name {k // 4}", "job": "abc"[k % 3]} for k in range(40)]
    kinds = pt.Record({"name": pt.Text(), "job": pt.Category()})
    one, other = (kinds.fit_prior(X, labels) for labels in (np.arange(40) // 4, 9 - np.arange(40) // 4))
    for name in ("name", "job"):
        assert one.attributes[name].agreement == pytest.approx(other.attributes[name].agreement)
        assert one.attributes[name].corpus == other.attributes[name].corpus
    assert one.size == other.size


def test_attributes_of_others_learn_their_own_parameters():
    """Kinds with a kernel of their own see what clusters say."""
    seen = []

    class Seeing(pt.Category):
        def learnt_from(self, clusters):
            seen.append(clusters)
            return self

    X = [{"job": "poet"}, {"job": "poet"}, {"job": "actor"}]
    pt.Record({"job": Seeing()}).fit_prior(X, [0, 0, 1])
    assert sorted(seen[0], key=str) == [Counter(actor=1), Counter(poet=2)]
