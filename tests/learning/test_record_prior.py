"""Empirical Bayes for records: each estimate against brute force."""

import math
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import partita as pt
from partita.learning import records as record_prior
from partita.learning.guesses import (
    CORRELATION,
    LEAST,
    REFERENCES,
    REPEATED,
    bold,
    careful,
    first_guess,
    references,
)
from partita.learning.known import whole_clusters
from partita.learning.learner import (
    AGREE_FROM,
    BELIEF,
    EVEN,
    FARTHEST,
    FEW,
    FEWEST_AKIN,
    LEAST_GAIN,
    NEVER,
    OF_FACTS,
    ROUNDS,
    STEP,
    WORTH,
    Learner,
    probably_kin,
)
from partita.learning.pairs import count_akin, count_given_others, count_levels
from partita.learning.records import (
    GUESS,
    MORE,
    SHARED,
    counts_among_entities,
    learnt,
    neighbourhoods,
    values_of_clusters,
)
from partita.models.records.comparisons.family import LEVELS
from partita.models.records.corpus import Corpus
from partita.models.records.kinds.attribute import AGREEMENT, SILENT
from tests.helpers.effort import effort, examples
from tests.helpers.naive_comparisons import SHAPE, UNKNOWN, Compared, discount

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


def test_labelled_samples_have_whole_clusters():
    codes = np.random.default_rng(0).permutation(np.arange(900) // 3)
    rows = whole_clusters(codes, 100, np.random.default_rng(1)).tolist()
    assert rows == sorted(set(rows))
    assert 97 < len(rows) <= 100
    assert set(np.bincount(codes[rows]).tolist()) == {0, 3}


# ---------------------------------------------------------------------- agreement, frequencies, weights

NAMES = ["ada", "adam", "adan", "ada bob", "bob ada", "bob", "bobby", "zoe"]
said = st.lists(st.sampled_from(NAMES), max_size=2, unique=True)
labelled = st.lists(st.tuples(st.integers(0, 3), said, said), min_size=1, max_size=12)


def learner_of(pairs, kinds):
    counts = [Counter(value for own in pairs for b, value in own if b == a) for a in range(len(kinds))]
    attributes = [kind(corpus=Corpus(of)) for kind, of in zip(kinds, counts, strict=True)]
    names = [f"attribute {a}" for a in range(len(kinds))]
    return Learner(names, attributes, pairs), attributes


def learner_from(rows):
    """Of two attributes, how they are compared, what each record says of each, and the labels."""
    pairs = [
        sorted([(0, value) for value in one] + [(1, value) for value in other]) for _, one, other in rows
    ]
    labels = np.unique([label for label, _, _ in rows], return_inverse=True)[1]
    learner, attributes = learner_of(pairs, [pt.Text, pt.Category])
    records = [[[value for b, value in own if b == a] for a in range(2)] for own in pairs]
    return learner, [Compared(attribute) for attribute in attributes], records, labels


def naive_within(compared, records, labels, a):
    """How alike values of different records of one cluster are; a cluster of n values has n − 1 pairs, in all."""
    counts = np.zeros(LEVELS)
    for c in set(labels.tolist()):
        items = [(k, v) for k, record in enumerate(records) if labels[k] == c for v in record[a]]
        for (j, v), (k, w) in combinations(items, 2):
            if j != k:
                counts[compared.level(v, w)] += 2 / len(items)
    return counts


@quick
@given(labelled)
def test_agreement_is_counted_in_clusters(rows):
    """Near that of all columns, or of all facts, and that near what is believed."""
    learner, compared, records, labels = learner_from(rows)
    counts = [naive_within(compared[a], records, labels, a) for a in range(2)]
    is_column = [np.mean([bool(record[a]) for record in records]) >= 0.5 for a in range(2)]
    for a, found in enumerate(learner.agreement(labels)):
        alike = [counts[b] for b in range(2) if is_column[b] == is_column[a]]
        common = np.sum(alike, axis=0) + BELIEF * np.array(AGREEMENT if is_column[a] else OF_FACTS)
        expected = counts[a] + BELIEF * common / common.sum()
        np.testing.assert_allclose(found, expected / expected.sum(), rtol=1e-12)
    alone = learner.agreement(np.arange(len(rows)))  # nothing to learn from: what is believed
    np.testing.assert_allclose(alone, [AGREEMENT if column else OF_FACTS for column in is_column])


def test_what_is_believed_of_agreement_sums_to_one():
    assert sum(AGREEMENT) == pytest.approx(1.0)
    assert sum(OF_FACTS) == pytest.approx(1.0)


def test_agreement_is_learnt():
    """Values that agree make agreement likely, those that differ make it unlikely, near what is believed."""
    same = [[(0, f"name {k // 2}")] for k in range(2000)]
    differ = [[(0, f"{'abcdefghij'[k % 10] * 3} {k}")] for k in range(2000)]
    labels = np.arange(2000) // 2
    faithful, careless = (
        learner_of(pairs, [pt.Category])[0].agreement(labels)[0] for pairs in (same, differ)
    )
    assert faithful[-1] > 0.95
    assert careless[-1] < 0.05
    assert careless[0] > 0.9
    shrunk = BELIEF / (1000 + BELIEF)  # towards all columns together, and these towards what is believed
    assert faithful[:-1].tolist() == pytest.approx([shrunk**2 * share for share in AGREEMENT[:-1]])


@quick
@given(labelled)
def test_strangers_are_those_of_other_clusters(rows):
    """Of a value that several clusters have, as seen from each of these, on average."""
    learner, compared, records, labels = learner_from(rows)
    for a in range(2):
        found = np.exp(learner.log_u(a, learner.of[a], labels))
        values = list(dict.fromkeys(value for record in records for value in sorted(record[a])))
        clusters = [
            {value for k, record in enumerate(records) if labels[k] == c for value in record[a]}
            for c in sorted(set(labels.tolist()))
        ]
        holders = {value: sum(value in own for own in clusters) for value in values}
        counts = {value: np.zeros(LEVELS) for value in values}
        for value in values:
            for k, own in enumerate(clusters):
                if value in own:
                    for other in (w for j, of in enumerate(clusters) if j != k for w in of):
                        counts[value][compared[a].level(value, other)] += 1 / holders[value]
        overall = sum((holders[value] * counts[value] for value in values), np.zeros(LEVELS))
        overall = (overall + 0.5 / LEVELS) / (overall.sum() + 0.5)
        assert len(found) == len(values)
        for value, row in zip(values, found, strict=True):
            own = counts[value]
            expected = (own + SHAPE) / (own.sum() + SHAPE / overall)
            assert own[-1] == pytest.approx(holders[value] - 1)
            expected[-1] = (max(own[-1], 1.0) - discount(holders.values())) / (own.sum() + 1.0)
            np.testing.assert_allclose(row, expected, rtol=1e-9)


def best_levels(compared, records):
    """Of each pair of records, and each attribute of which both speak: how alike the most alike values are."""
    for one, other in combinations(records, 2):
        yield {
            a: max(of.level(v, w) for v in one[a] for w in other[a])
            for a, of in enumerate(compared)
            if one[a] and other[a]
        }


def akin_naively(pairs, information, enough, evidence):
    """Of pairs that agree in enough: what all else says, and whether they agree in as much as they differ in."""
    for levels in pairs:
        agree = [a for a, level in levels.items() if level >= AGREE_FROM]
        if sum(information[a] for a in agree) < enough:
            continue
        differ = {a: (1 - math.exp(-information[a])) * (1 if a in agree else -1) for a in levels}
        most = max(agree, key=lambda a: (information[a], -a))
        rest = sum(evidence[a][level] for a, level in levels.items() if a != most)
        yield most, rest, sum(differ.values()) >= 0.0, {a: of for a, of in levels.items() if a != most}


@quick
@given(
    labelled,
    st.tuples(st.floats(0.0, 3.0), st.floats(0.0, 3.0)),
    st.floats(0.01, 4.0),
    st.integers(0, 2**31),
)
def test_pairs_that_agree_are_counted(rows, information, enough, seed):
    learner, compared, records, _ = learner_from(rows)
    pairs = list(best_levels(compared, records))
    levels, expected = np.zeros((2, LEVELS)), np.zeros((2, LEVELS))
    count_levels(learner.sample, levels)
    for of in pairs:
        for a, level in of.items():
            expected[a, level] += 1
    np.testing.assert_array_equal(levels, expected)
    evidence = (
        np.random.default_rng(seed).integers(-9, 9, (2, LEVELS)).astype(float)
    )  # whole, so in the middle of steps
    counted, expected = np.zeros((2, 21, 2)), np.zeros((2, 21, 2))
    levels, expected_levels = np.zeros((2, LEVELS)), np.zeros((2, LEVELS))
    count_akin(learner.sample, AGREE_FROM, np.array(information), enough, evidence, 0.5, counted, levels)
    for most, rest, balanced, else_ in akin_naively(pairs, information, enough, evidence):
        expected[most, int(np.clip(2 * rest, -10, 10)) + 10] += [1, balanced]
        for a, level in else_.items():
            expected_levels[a, level] += 1
    np.testing.assert_array_equal(counted, expected)
    np.testing.assert_array_equal(levels, expected_levels)


@quick
@given(labelled)
def test_how_many_are_akin_is_guessed(rows):
    """By what else is said of pairs that agree in something rare, of those that agree in as much as they differ in."""
    learner, compared, records, _ = learner_from(rows)
    pairs, n = list(best_levels(compared, records)), len(records)
    columns = [bool(np.mean([bool(record[a]) for record in records]) >= 0.5) for a in range(2)]
    information, evidence, by_chance, usual = [], [], [], []
    for a in range(2):
        levels = [of[a] for of in pairs if a in of]
        agree = sum(level >= AGREE_FROM for level in levels)
        information.append(-math.log((agree + 1) / (len(levels) + 2)))
        by_chance.append(agree / max(len(levels), 1))
        columns[a] = columns[a], columns[a] and agree >= NEVER * n
        usual.append(AGREEMENT if columns[a][0] else OF_FACTS)
    enough = 0.5 * max([information[a] for a in range(2) if columns[a][1]] or information)
    for a in range(2):  # u of strangers, who do not agree in the other attribute, or not in enough
        other = 1 - a
        levels = [
            of[a]
            for of in pairs
            if a in of and (of.get(other, 0) >= AGREE_FROM) * information[other] < enough
        ]
        strangers = [(levels.count(k) + FEW * UNKNOWN[k]) / (len(levels) + FEW) for k in range(LEVELS)]
        evidence.append([math.log(m / u) for m, u in zip(usual[a], strangers, strict=True)])
    among = [Counter(), Counter()]
    for *_, else_ in akin_naively(pairs, information, enough, evidence):
        for a, level in else_.items():
            among[a][level] += 1
    shares = []
    for a in range(2):
        met = among[a].total()
        beyond = sum(count for level, count in among[a].items() if level >= AGREE_FROM) - met * by_chance[a]
        shares.append(beyond / ((met + FEW) * max(sum(usual[a][AGREE_FROM:]) - by_chance[a], LEAST_GAIN)))
    for a in range(2):
        if columns[a][0] and shares[a] < WORTH * max(*shares, 0.0):
            evidence[a] = [0.0] * LEVELS
    met = [of[:3] for of in akin_naively(pairs, information, enough, evidence)]
    others = 0.0
    for a in range(2):
        rest = np.array(
            [np.clip(np.round(said / STEP), -FARTHEST, FARTHEST) * STEP for most, said, _ in met if most == a]
        )
        balanced = np.array([agrees for most, _, agrees in met if most == a])
        share = EVEN
        for _ in range(ROUNDS - 1):
            share = (share * np.exp(rest) / (share * np.exp(rest) + 1 - share)).mean() if len(rest) else 0.0
        others += (share * np.exp(rest) / (share * np.exp(rest) + 1 - share) * balanced).sum()
    others *= 2 / n / REPEATED
    assert learner.akin == pytest.approx(min(max(others, FEWEST_AKIN), max(n / 4, FEWEST_AKIN)), rel=1e-6)


@quick
@given(labelled, st.integers(0, 2**31))
def test_pairs_are_counted_by_what_all_other_attributes_say(rows, seed):
    learner, compared, records, _ = learner_from(rows)
    evidence = np.random.default_rng(seed).integers(-9, 9, (2, LEVELS)).astype(float)
    counted, expected = np.zeros((2, 21, 2)), np.zeros((2, 21, 2))
    count_given_others(learner.sample, evidence, 0.5, counted)
    for of in best_levels(compared, records):
        for a, level in of.items():
            rest = sum(evidence[b][other] for b, other in of.items() if b != a)
            expected[a, int(np.clip(2 * rest, -10, 10)) + 10] += [1, level]
    np.testing.assert_array_equal(counted, expected)


def people(n, copies, rng):
    """Records with a name, a town and a work, each person several times."""
    return [
        {"name": f"name {who}", "town": f"town {who * 7 % 31}", "work": f"work {who * 11 % 37}"}
        for who in rng.permutation(np.repeat(np.arange(n), copies)).tolist()
    ]


def silent(rows):
    """The names of the columns that say nothing."""
    names = list(rows[0])
    kinds = pt.Record({name: pt.Category() for name in names})
    pairs = [sorted(set(fragment.pairs)) for fragment in kinds.validate(rows)]
    learner, _ = learner_of(pairs, [pt.Category] * len(names))
    return [names[a] for a in np.flatnonzero(learner.survey.silent)]


@pytest.mark.parametrize("seed", range(3))
def test_columns_that_say_nothing_are_found_and_count_for_nothing(seed):
    rng = np.random.default_rng(seed)
    rows = people(60, 4, rng)
    assert silent(rows) == []
    useless = {
        "number of the row": lambda k: f"r{k}",
        "at random": lambda k: f"flag {rng.integers(8)}",
        "constant": lambda k: "yes",
    }
    for name, value in useless.items():
        more = [row | {name: value(k)} for k, row in enumerate(rows)]
        assert silent(more) == [name]
        learnt_of = pt.Record({column: pt.Category() for column in more[0]}).fit_prior(more)
        assert learnt_of.attributes[name].weight == SILENT
        assert str(learnt_of.describe()).count("so it counts for nothing") == 1
        assert pt.SplitSMC(learnt_of, alpha="auto").fit(more).labels_.max() + 1 == 60


@pytest.mark.parametrize("seed", range(3))
def test_what_tells_strangers_apart_is_not_silent(seed):
    """Everybody is another; and in households first names differ where all else is the same."""
    rng = np.random.default_rng(seed)
    strangers = [
        {"name": f"n{rng.integers(50)}", "born": f"b{rng.integers(90)}", "town": f"t{rng.integers(20)}"}
        for _ in range(200)
    ]
    assert silent(strangers) == []
    households = [
        {"first": f"f{rng.integers(60)}", "last": f"l{k // 3}", "street": f"s{k // 3}", "phone": f"p{k // 3}"}
        for k in range(180)
    ]
    assert silent(households) == []


@pytest.mark.parametrize("different", [3, 6, 1000])
def test_a_column_at_random_does_not_hide_who_is_akin(different):
    rng = np.random.default_rng(0)
    rows = [row | {"seen": f"{rng.integers(different)}"} for row in numbered(40, 4)]
    kinds = pt.Record(dict(KINDS.attributes) | {"seen": pt.Category()})
    pairs = [sorted(set(fragment.pairs)) for fragment in kinds.validate(rows)]
    learner, _ = learner_of(pairs, [pt.Text, pt.Category, pt.Category])
    assert learner.akin > 0.9 * guessed(numbered(40, 4))[1].akin


def test_strangers_who_share_a_name_are_not_akin():
    """Three people of each name, of whom all else differs: told by it, as they are not by how often names repeat."""
    rng = np.random.default_rng(0)
    rows = [
        {"name": f"name {k // 3}", "town": f"town {rng.integers(60)}", "work": f"work {rng.integers(60)}"}
        for k in range(150)
    ]
    kinds = pt.Record({name: pt.Category() for name in ("name", "town", "work")})

    def akin_of(rows):
        pairs = [sorted(set(fragment.pairs)) for fragment in kinds.validate(rows)]
        return learner_of(pairs, [pt.Category] * 3)[0].akin

    assert akin_of(rows) == FEWEST_AKIN
    assert akin_of([row | {"town": rows[k // 3]["town"]} for k, row in enumerate(rows)]) > 1.0


@pytest.mark.parametrize("share", [0.05, 0.5, 0.9])
def test_the_share_of_one_entity_is_found(share):
    """Of numbers about 1 and about −1, whose log-likelihood ratio is twice the number."""
    rng = np.random.default_rng(0)
    own = rng.random(20_000) < share
    evidence = 2.0 * rng.normal(np.where(own, 1.0, -1.0))
    probable = probably_kin(evidence, np.ones(len(own)))
    assert probable.mean() == pytest.approx(share, abs=0.02)
    shares = np.linspace(0.001, 0.999, 999)  # the likeliest of these is next to it
    heights = [np.log(tried * np.exp(evidence) + 1 - tried).sum() for tried in shares]
    assert probable.mean() == pytest.approx(shares[np.argmax(heights)], abs=2e-3)
    for low, high in ((0.1, 0.4), (0.4, 0.6), (0.6, 0.9)):
        some = (probable > low) & (probable < high)
        assert own[some].mean() == pytest.approx(probable[some].mean(), abs=0.12)


def numbered(n, each):
    """Of n entities so many records each, which say the same."""
    rng = np.random.default_rng(n)
    names = [" ".join("".join(rng.choice(list("abcdefghijklmnop"), 6)) for _ in range(2)) for _ in range(n)]
    return [{"name": name, "town": f"town {k % 7}"} for k, name in enumerate(names) for _ in range(each)]


KINDS = pt.Record({"name": pt.Text(), "town": pt.Category()})


def guessed(X):
    pairs = [sorted(set(fragment.pairs)) for fragment in KINDS.validate(X)]
    learner, _ = learner_of(pairs, [pt.Text, pt.Category])
    occurrences = [Counter(value for own in pairs for b, value in own if b == a) for a in range(2)]
    return first_guess(KINDS, learner, occurrences, GUESS * learner.akin), learner, occurrences


@pytest.mark.parametrize("each", [1, 3, 6])
def test_records_of_one_entity_are_guessed_to_be_akin(each):
    """Those who share a town and nothing else are not."""
    _, learner, _ = guessed(numbered(40, each))
    assert learner.akin == pytest.approx(max((each - 1) / REPEATED, FEWEST_AKIN))


def test_the_first_guess():
    """A value of as many records as an entity has is taken to be of one entity, for which two stand."""
    X = [*numbered(20, 4), {"name": "zoe"}, {"name": "zoe"}, {}]
    model, learner, occurrences = guessed(X)
    others, shares = GUESS * learner.akin, [82 / 83, 80 / 83]
    assert model.size == pytest.approx(1 + others)
    assert model.presence == pytest.approx({"name": 82 / 83, "town": 80 / 83})
    assert model.types is None
    for a, (name, share) in enumerate(zip(("name", "town"), shares, strict=True)):
        attribute = model.attributes[name]
        assert attribute.weight == pytest.approx(1 / (1 + CORRELATION * (sum(shares) - 1)))
        assert attribute.agreement == AGREEMENT
        expected = {value: max(n - others * share * REPEATED, 2) for value, n in occurrences[a].items()}
        assert attribute.corpus.counts == pytest.approx(expected)
        assert attribute.corpus.counts.keys() == occurrences[a].keys()
        assert Counter(attribute.references) == occurrences[a]  # there is room for all
        assert attribute.kin == pytest.approx(len(attribute.references) * (1 + others) / 83)
    assert KINDS.attributes == {"name": pt.Text(), "town": pt.Category()}


def test_a_careful_guess_counts_no_column_for_more_and_expects_less():
    """All who agree in one column agree in the other: as strangers they say one thing, not two."""
    guess, learner, _ = guessed(numbered(20, 4))
    first = careful(guess, learner)
    for name in ("name", "town"):
        usual = guess.attributes[name].weight
        assert LEAST * usual <= first.attributes[name].weight < usual
        assert first.attributes[name].corpus == guess.attributes[name].corpus
    share = sum(first.attributes[name].weight for name in ("name", "town")) / (2 * usual)
    assert first.size == pytest.approx(1 + (guess.size - 1) * share**2)


def test_a_bold_model_has_learnt_but_how_rare_values_are_and_how_large_entities():
    guess, learner, occurrences = guessed(numbered(20, 4))
    alone = np.arange(learner.n)
    current = learnt(KINDS, learner, alone, alone >= 0, occurrences, learner.n, np.ones(2))
    found = bold(current, guess)
    assert found.size == guess.size != current.size
    for name in ("name", "town"):
        for field in ("corpus", "references", "kin"):
            assert getattr(found.attributes[name], field) == getattr(guess.attributes[name], field)
        assert found.attributes[name].corpus != current.attributes[name].corpus
        for field in ("agreement", "weight"):
            assert getattr(found.attributes[name], field) == getattr(current.attributes[name], field)


def spelt(n, each, seed=0):
    """Names of n entities in so many spellings each, a letter or a word apart, of which the first is twice there."""
    rng = np.random.default_rng(seed)
    letters = list("abcdefghijklmnopqrstuvwxyz")
    said = []
    for _ in range(n):
        words = ["".join(rng.choice(letters, 7)) for _ in range(2)]
        for k in range(each):
            changed = list(words)
            if k:
                changed[k % 2] = (
                    changed[k % 2][: 3 + k % 3] + "".join(rng.choice(letters, 1)) + changed[k % 2][4:]
                )
            said += [{"name": " ".join(changed)}] * (2 if k == 0 else 1)
    return said


@pytest.mark.parametrize("n", [20, 300])
def test_strangers_of_one_attribute_have_no_other_spellings(n):
    X = spelt(n, 1)
    model = pt.Record.infer(X).fit_prior(X)
    assert model.size == pytest.approx(2.0)
    assert model.attributes["name"].agreement[-1] > 0.9
    assert len(set(pt.SplitSMC(model, random_state=0).fit_predict(X))) == n


@pytest.mark.parametrize("each", [4, 6])
def test_spellings_of_one_attribute_are_guessed_from_how_alike_values_are(each):
    """Within a factor of two: there is nothing else to go by."""
    X = spelt(100, each)
    model = pt.Record.infer(X).fit_prior(X)
    assert (each + 1) / 2 < model.size < 2 * (each + 1)
    assert model.attributes["name"].agreement == pytest.approx(AGREEMENT)
    truth = np.repeat(np.arange(100), each + 1)
    found = pt.SplitSMC(model, n_particles=20, keys="auto", random_state=0).fit_predict(X)
    equal = np.unique([fragment["name"] for fragment in X], return_inverse=True)[1]
    assert pt.bcubed(truth, found).precision > 0.99
    assert pt.bcubed(truth, found).recall > pt.bcubed(truth, equal).recall


def test_what_is_said_beside_the_only_attribute_may_be_anything():
    X = [{"note": "x"}, *spelt(30, 1), {}]
    model = pt.Record.infer(X).fit_prior(X)
    assert model.attributes["name"].agreement[-1] > 0.9
    assert model.attributes["note"].agreement == AGREEMENT
    assert len(set(pt.SplitSMC(model, random_state=0).fit_predict(spelt(30, 1)))) == 30


@quick
@given(labelled)
def test_what_clusters_teach_makes_sense(rows):
    learner, _, _, labels = learner_from(rows)
    agreement, weights = learner.prior(labels)
    np.testing.assert_array_equal(agreement, learner.agreement(labels))
    assert agreement.shape == (2, LEVELS)
    assert (agreement > 0.0).all()
    assert weights.shape == (2,)
    assert ((weights > 0.0) & (weights <= 1.0)).all()


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
    _, (name, town, code) = learner.prior(labels)
    assert town == pytest.approx(code, rel=0.05)
    assert town < 0.7 * name
    assert 0.0 < town < name <= 1.0


def test_labels_teach_how_many_fragments_an_entity_has():
    kinds = pt.Record({"name": pt.Text(), "code": pt.Category()})
    X = [{"name": f"name {k // 4}", "code": k // 4} for k in range(80)]
    model = kinds.fit_prior(X, np.arange(80) // 4)
    assert model.size == pytest.approx(4.0 + MORE)
    mixed = kinds.fit_prior(X[:6], [0, 0, 0, 0, 1, 2])
    assert mixed.size == pytest.approx(2.0 + MORE)  # six fragments of three
    attribute = model.attributes["name"]
    assert attribute.kin == pytest.approx(len(attribute.references) * (4.0 + MORE) / 80)
    assert attribute.corpus.counts == {f"name {k}": 1.0 for k in range(20)}
    assert sorted(attribute.references) == sorted(attribute.corpus.counts)


# ---------------------------------------------------------------------- without labels

LETTERS = list("abcdefghijklmnoprstuvw")
PERSON = pt.Record({"first": pt.Text(), "last": pt.Text(), "born": pt.Date(), "town": pt.Category()})


def word(rng, n):
    return "".join(rng.choice(LETTERS, n))


def mistyped(text, rng):
    """With one letter of two texts wrong."""
    at = int(rng.integers(len(text)))
    return text if rng.random() < 0.5 else text[:at] + str(rng.choice(LETTERS)) + text[at + 1 :]


def persons(n, low, high, seed, spelt=mistyped):
    """Records of n people, ``low`` to ``high`` of each, in any order, and whose each is."""
    rng = np.random.default_rng(seed)
    towns, firsts = ([word(rng, 7) for _ in range(many)] for many in (12, 25))
    X, truth = [], []
    for person in range(n):
        first, last, town = str(rng.choice(firsts)), word(rng, 8), str(rng.choice(towns))
        born = f"19{rng.integers(10, 99)}-{rng.integers(1, 13):02d}-{rng.integers(1, 29):02d}"
        for _ in range(rng.integers(low, high + 1)):
            known = {"born": born} if spelt is not mistyped or rng.random() < 0.9 else {}
            X.append({"first": spelt(first, rng), "last": spelt(last, rng), "town": town, **known})
            truth.append(person)
    order = rng.permutation(len(X)).tolist()
    return [X[k] for k in order], [truth[k] for k in order]


def clustered(X):
    """The model that is learnt without labels, and what it finds."""
    model = PERSON.fit_prior(X)
    return model, pt.SplitSMC(model, n_particles=10, random_state=0).fit(X).refine(1).labels_


@pytest.mark.parametrize("seed", range(effort(2, 10)))
def test_people_with_typos_are_recovered(seed):
    X, truth = persons(40, 3, 5, seed)
    model, labels = clustered(X)
    assert pt.bcubed(truth, labels).f1 > 0.97
    assert model.size == pytest.approx(len(X) / 40 + MORE, rel=0.1)
    assert model.attributes["last"].agreement[-1] < model.attributes["town"].agreement[-1]


@pytest.mark.parametrize("seed", range(effort(2, 10)))
def test_strangers_stay_alone(seed):
    """In a table without duplicates nobody is found twice, though they share names and towns."""
    X, _ = persons(300, 1, 1, seed)
    model, labels = clustered(X)
    assert np.mean(np.bincount(labels)[labels] == 1) >= 0.99
    assert model.size == pytest.approx(1 + MORE, rel=0.02)


@pytest.mark.parametrize(("low", "high"), [(2, 2), (1, 3), (4, 4)])
def test_verbatim_duplicates_are_together(low, high):
    X, truth = persons(60, low, high, 0, spelt=lambda text, rng: text)
    _, labels = clustered(X)
    assert len(set(zip(truth, labels.tolist(), strict=True))) == len(set(truth)) == labels.max() + 1


@pytest.mark.parametrize("each", [1, 2, 5])
def test_without_labels_the_size_of_entities_is_found(each):
    model = KINDS.fit_prior(numbered(60, each))
    assert model.size == pytest.approx(each + MORE, rel=0.1)


def test_learning_twice_gives_the_same():
    X, _ = persons(15, 1, 4, 0)
    assert PERSON.fit_prior(X).to_json() == PERSON.fit_prior(X).to_json()


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

    X = [{"job": "poet", "age": 30}, {"job": "poet", "age": 30}, {"job": "actor", "age": 40}]
    pt.Record({"job": Seeing(), "age": pt.Category()}).fit_prior(X, [0, 0, 1])
    assert sorted(seen[0], key=str) == [Counter(actor=1), Counter(poet=2)]
