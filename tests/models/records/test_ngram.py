"""The paper's n-gram model: its closed form, its prior, and what it refuses."""

import math
from collections import Counter

import numpy as np
import pytest
from scipy.special import gammaln

import partita as pt
from partita.learning import records as record_prior
from partita.learning.empirical_bayes import cluster
from partita.learning.ngrams import evidence, sample
from partita.models.records.corpus import END, START
from partita.models.records.folding import folded
from partita.models.records.ngram import Spelling, grams
from tests.helpers import naive_urns, oracle
from tests.helpers.texts import counted

TEXTS = ["gutenberg", "j gutenberg", "koster", "johannes gutenberg", "laurens koster", "koster l"]
LABELS = np.array([0, 0, 1, 0, 1, 1])


def closed_form(texts, n, c, counts):
    """Σ_context [lnΓ(A) − lnΓ(A + N)] + Σ_letter [lnΓ(a + N) − lnΓ(a)], a = c·(1 + count)."""
    alphabet = sorted({gram[-1] for gram in counts} | {END, "\ufffd"})
    seen = {}
    for text in texts:
        text = "".join(letter if letter in alphabet else "\ufffd" for letter in text)
        padded = START * (n - 1) + text + END
        for at in range(n - 1, len(padded)):
            seen.setdefault(padded[at - n + 1 : at], Counter())[padded[at]] += 1
    total = 0.0
    for context, letters in seen.items():
        a = np.array([c * (1 + counts.get(context + letter, 0)) for letter in alphabet])
        after = np.array([letters[letter] for letter in alphabet])
        total += gammaln(a.sum()) - gammaln(a.sum() + after.sum())
        total += (gammaln(a + after) - gammaln(a)).sum()
    return total


def log_marginal(model, texts):
    return evidence(model, texts, np.zeros(len(texts), np.int64))


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("c", [0.003, 0.5, 40.0])
def test_the_closed_form(n, c):
    model = counted(n, c, TEXTS)
    for texts in (TEXTS, TEXTS[:1], ["zyx gut", "gut", "日本"]):
        expected = closed_form(texts, n, c, model.counts)
        assert log_marginal(model, texts) == pytest.approx(expected, abs=1e-8)
        assert naive_urns.ngram(texts, model) == pytest.approx(expected, abs=1e-8)


def test_the_evidence_is_that_of_all_clusters():
    model = counted(2, 0.1, TEXTS)
    parts = [[text for text, k in zip(TEXTS, LABELS, strict=True) if k == label] for label in (0, 1)]
    expected = sum(closed_form(part, 2, 0.1, model.counts) for part in parts)
    assert evidence(model, TEXTS, LABELS) == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_fit_prior_counts_ngrams(n):
    old = pt.Ngram(n, 0.3, {"x" * n: 5})
    model = old.fit_prior(["Aba", "ab!", "ab"])
    expected = Counter()
    for text in ("aba", "ab", "ab"):
        padded = START * (n - 1) + text + END
        expected.update(padded[k : k + n] for k in range(len(padded) - n + 1))
    assert model.counts == expected
    assert model.n == n
    assert model is not old
    assert old.counts == {"x" * n: 5}
    assert list(grams("ab", 2)) == [START + "a", "ab", "b" + END]


def test_the_concentration_maximises_the_evidence():
    model = pt.Ngram(2, 7.0).fit_prior(TEXTS, ["g", "g", "k", "g", "k", "k"])
    best = evidence(model, TEXTS, LABELS)
    assert 1e-6 < model.concentration < 1e3
    for c in np.geomspace(1e-6, 1e3, 40):
        assert evidence(pt.Ngram(2, float(c), model.counts), TEXTS, LABELS) <= best + 1e-4


def said(texts):
    return [[folded(text)] for text in texts]


def heights(model, texts, concentrations):
    """How well the sampler does with each concentration."""
    found = []
    for c in concentrations:
        now = pt.Ngram(model.n, c, model.counts)
        now.check(1)
        found.append(cluster(now, sample(texts, said(texts)), [np.arange(len(texts))])[0])
    return found


def test_without_labels_the_sampler_does_best_with_the_concentration():
    model = pt.Ngram(2, 7.0).fit_prior(TEXTS)
    around = heights(model, TEXTS, model.concentration * np.array([1.0, 10**-0.25, 10**0.25, 0.1, 10.0]))
    assert max(around) == around[0]
    assert model.concentration == pt.Ngram(2, 0.001).fit_prior(TEXTS).concentration


def test_names_without_labels():
    rng = np.random.default_rng(0)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    people = ["".join(rng.choice(letters, 9)) for _ in range(30)]
    truth = rng.integers(30, size=200)
    names = []
    for person in truth:
        at = rng.integers(9)
        names.append(people[person][:at] + rng.choice(letters) + people[person][at + 1 :])
    model = pt.Ngram().fit_prior(names)
    found = pt.SplitSMC(model, alpha="auto", n_particles=20, random_state=0).fit_predict(names)
    assert pt.bcubed(truth, found).f1 > 0.9


def test_samples_are_texts_that_share_words(monkeypatch):
    monkeypatch.setattr(record_prior, "SAMPLE", 3)
    texts = [f"name{k} of{k // 2}" for k in range(20)]
    chosen = sample(texts, said(texts))
    assert 3 <= len(chosen) <= 4
    assert len({text.split()[1] for text in chosen}) == 2
    assert sorted(sample(TEXTS[:2], said(TEXTS[:2]))) == sorted(TEXTS[:2])


def test_labels_must_be_as_many():
    with pytest.raises(ValueError, match="labels has 2 entries, but there are 6 texts"):
        pt.Ngram().fit_prior(TEXTS, [0, 1])


def test_letters_that_the_corpus_lacks_are_one():
    model = counted(2, 0.2, TEXTS)
    assert log_marginal(model, ["xq"]) == pytest.approx(log_marginal(model, ["ζя"]), abs=1e-12)
    assert log_marginal(model, ["xq", "xq"]) == pytest.approx(log_marginal(model, ["xq", "日本"]), abs=1e-12)
    with_prior, without = Spelling(2, 1.0, {"ab": 1}), Spelling(2, 1.0, {})
    assert with_prior.spelt("abx") == "\ufffdb\ufffd"
    assert without.spelt("abx") == "abx"


def test_texts_are_folded_first():
    model = counted(3, 0.2, TEXTS)
    assert log_marginal(model, ["Gütenberg, J."]) == log_marginal(model, ["gutenberg j"])


def test_clusters_of_names():
    labels = pt.SplitSMC(counted(2, 0.1, TEXTS), alpha=1.0, n_particles=20).fit_predict(TEXTS)
    assert labels.tolist() == [0, 0, 1, 0, 1, 1]


BAD = {
    "a text": ("gutenberg", TypeError, "list of str, got str"),
    "bytes": (b"gutenberg", TypeError, "list of str, got bytes"),
    "a number": (3, TypeError, "list of str, got int"),
    "no text": ([], ValueError, "at least one"),
    "a number among texts": (["a", 3], TypeError, "row 1 must be a str, got int"),
    "None": (["a", "b", None], TypeError, "row 2 must be a str, got NoneType"),
    "NaN": ([math.nan], TypeError, "row 0 must be a str, got float"),
    "empty": (["a", ""], ValueError, "row 1 is empty"),
    "blank": (["  \t"], ValueError, "row 0 is empty"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_texts_are_named_and_change_nothing(case):
    X, kind, message = BAD[case]
    model = counted(2, 0.1, TEXTS)
    with pytest.raises(kind, match=message):
        model.fit_prior(X)
    sampler = pt.SplitSMC(model, 1.0, 20, random_state=0).fit(TEXTS[:3])
    before = sampler.labels_.tolist(), sampler.posterior_.log_density()
    with pytest.raises(kind, match=message):
        sampler.partial_fit(X)
    assert (sampler.labels_.tolist(), sampler.posterior_.log_density()) == before
    assert sampler.partial_fit(TEXTS[3:]).labels_.tolist() == [0, 0, 1, 0, 1, 1]


@pytest.mark.parametrize(
    ("parameters", "word"),
    [
        ({"n": 0}, "n must be"),
        ({"n": 1.5}, "n must be"),
        ({"concentration": 0.0}, "concentration"),
        ({"concentration": math.nan}, "concentration"),
        ({"counts": {"abc": 2}}, "n-grams of 2 letters, got 'abc'"),
        ({"counts": {"ab": -1}}, "counts of 'ab'"),
        ({"counts": {"ab": math.nan}}, "counts of 'ab'"),
    ],
)
def test_bad_parameters_are_named(parameters, word):
    with pytest.raises(ValueError, match=word):
        pt.SplitSMC(pt.Ngram(**parameters)).fit(TEXTS)


# ---------------------------------------------------------------------- one attribute of fragments


FRAGMENTS = [
    {"name": ["Johannes Gutenberg", "J. Gutenberg"], "award": ["none"]},
    {"name": "Laurens Koster", "born": 1370},
    {"award": ["none"]},
    {"name": ["Gutenberg"], "trade": ("printer", "goldsmith")},
    {"name": ["Koster", "L. Koster", "KOSTER"], "born": None},
    {"name": "  "},
    {"name": {"Gutenberg, Johannes"}, "born": [1400.0]},
]
PEOPLE = ["g", "k", "g", "g", "k", "k", "g"]
VALUES = [
    ["johannes gutenberg", "j gutenberg"],
    ["laurens koster"],
    [],
    ["gutenberg"],
    ["koster", "l koster"],
    [],
    ["gutenberg johannes"],
]


def of_names(concentration=0.1):
    model = counted(2, concentration, [text for texts in VALUES for text in texts])
    return pt.Ngram(2, concentration, model.counts, attribute="name")


@pytest.mark.parametrize("c", [0.003, 0.5])
def test_a_cluster_is_what_its_fragments_are_called(c):
    """The evidence of all values as texts; those without one add nothing."""
    model = of_names(c)
    fragments = model.validate(FRAGMENTS)
    rng = np.random.default_rng(0)
    for _ in range(20):
        labels = rng.integers(3, size=len(fragments))
        expected = 0.0
        for label in range(3):
            texts = [text for k in np.flatnonzero(labels == label) for text in VALUES[k]]
            expected += closed_form(texts, 2, c, model.counts)
        assert evidence(model, fragments, labels) == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("kind", [pt.SplitSMC, pt.SMC, pt.Greedy])
def test_weights_of_clusters_of_fragments(kind):
    """The sampler's scores are those of the closed form, with fragments that say nothing among them."""
    model = of_names()
    settings = {} if kind is pt.Greedy else {"n_particles": 900}
    sampler = kind(model, 0.7, random_state=0, **settings).fit(FRAGMENTS)
    oracle.check_invariants(sampler, Scores(model), 900)
    if kind is pt.SMC:  # all 877 partitions
        expected = oracle.posterior(Scores(model))
        found = oracle.product(oracle.factors(sampler.posterior_))
        assert len(found) == len(expected) == 877
        for partition, probability in expected.items():
            assert found[partition] == pytest.approx(probability, abs=1e-10)


class Scores(oracle.Scores):
    """Of clusters of FRAGMENTS."""

    def __init__(self, model):
        self.X, self.alpha, self.known, self.model = FRAGMENTS, 0.7, {frozenset(): 0.0}, model

    def marginal(self, cluster):
        if cluster not in self.known:
            texts = [text for k in sorted(cluster) for text in VALUES[k]]
            self.known[cluster] = closed_form(texts, 2, self.model.concentration, self.model.counts)
        return self.known[cluster]


@pytest.mark.parametrize("labels", [None, PEOPLE])
def test_fit_prior_counts_the_letters_of_an_attribute(labels):
    model = pt.Ngram(2, 3.0, attribute="name").fit_prior(FRAGMENTS, labels)
    texts = [text for texts in VALUES for text in texts]
    assert model.counts == counted(2, 1.0, texts).counts
    assert (model.n, model.attribute) == (2, "name")
    if labels is not None:
        codes = np.unique(labels, return_inverse=True)[1]
        fragments = model.validate(FRAGMENTS)
        best = evidence(model, fragments, codes)
        for c in np.geomspace(1e-6, 1e3, 40):
            assert evidence(of_names(float(c)), fragments, codes) <= best + 1e-4


def test_a_single_name_each_is_the_same_as_texts():
    fragments = [{"name": text, "noise": str(k)} for k, text in enumerate(TEXTS)]
    plain = pt.SplitSMC(counted(2, 0.1, TEXTS), 1.0, 20, random_state=0)
    read = pt.SplitSMC(pt.Ngram(2, 0.1, plain.model.counts, "name"), 1.0, 20, random_state=0)
    for candidates in (None, "auto"):
        plain.set_params(keys=candidates).fit(TEXTS)
        read.set_params(keys=candidates).fit(fragments)
        assert read.labels_.tolist() == plain.labels_.tolist()
        assert read.posterior_.log_density() == plain.posterior_.log_density()
        assert np.array_equal(read.predict_proba(fragments), plain.predict_proba(TEXTS))
    for labels in (None, LABELS):
        one, other = plain.model.fit_prior(TEXTS, labels), read.model.fit_prior(fragments, labels)
        assert (one.concentration, one.counts) == (other.concentration, other.counts)


def test_keys_are_words_of_the_attribute():
    model = of_names()
    model.check(1)
    starts, keys = model.keys(model.validate(FRAGMENTS))
    own = [set(keys[starts[k] : starts[k + 1]].tolist()) for k in range(len(FRAGMENTS))]
    assert not own[2]
    assert not own[5]
    assert own[0] & own[3] & own[6]
    assert own[1] & own[4]
    assert not own[0] & own[1]
    labels = pt.SplitSMC(model, 0.1, 20, keys="auto", random_state=0).fit(FRAGMENTS).labels_
    assert len({labels[k] for k in (0, 3, 6)}) == 1
    assert labels[1] == labels[4] != labels[0]


def test_attribute_in_files(path):
    sampler = pt.SplitSMC(of_names(), 1.0, 20, random_state=0).fit(FRAGMENTS[:4])
    sampler.save(path)
    loaded = pt.SplitSMC.load(path)
    assert loaded.model.attribute == "name"
    assert loaded.model.counts == sampler.model.counts
    for each in (loaded, sampler):
        each.partial_fit(FRAGMENTS[4:])
    assert loaded.labels_.tolist() == sampler.labels_.tolist()
    assert loaded.posterior_.log_density() == sampler.posterior_.log_density()
    assert "attribute" not in counted(2, 0.1, TEXTS).to_json()  # as in files from before there was one
    other = pt.Ngram(2, 0.1, sampler.model.counts, "trade")
    with pytest.raises(ValueError, match="other hyperparameters"):
        pt.SplitSMC.load(path, model=other)


def shared_words(clusters):
    """A black box that reads whole fragments."""
    found = []
    for c in clusters:
        assert all(isinstance(values, list) for fragment in c for values in fragment.values())
        words = {word for fragment in c for values in fragment.values() for word in str(values).split()}
        found.append(-float(len(words)) - 0.5 * len(c))
    return found


@pytest.mark.parametrize("kind", [pt.SplitSMC, pt.SMC, pt.Greedy])
@pytest.mark.parametrize("lookahead", [1, 4])
def test_the_surrogate_of_a_black_box_that_reads_whole_fragments(kind, lookahead, path):
    surrogate = pt.Ngram(n=2, attribute="name").fit_prior(FRAGMENTS, PEOPLE)
    black = pt.BlackBox(shared_words, surrogate=surrogate, n_proposals=3, lookahead=lookahead)
    sampler = kind(black, alpha=1.0, random_state=0).fit(FRAGMENTS[:5])
    sampler.save(path)
    loaded = kind.load(path, model=black)
    for each in (sampler, loaded):
        each.partial_fit(FRAGMENTS[5:])
    assert loaded.labels_.tolist() == sampler.labels_.tolist()
    assert sampler._engine.observations[0] == {
        "name": ["Johannes Gutenberg", "J. Gutenberg"],
        "award": ["none"],
    }
    assert sampler.predict_proba([{"name": "Koster"}, {"award": "none"}]).shape[0] == 2
    plain = kind(pt.BlackBox(shared_words, surrogate, 3), alpha=1.0, random_state=0).fit(FRAGMENTS)
    assert plain.labels_.tolist() == sampler.labels_.tolist()
    assert plain.refine(1).labels_.tolist() == sampler.refine(1).labels_.tolist()


BAD_FRAGMENTS = {
    "texts": (["Gutenberg"], TypeError, "row 0 must map attributes to values, got str"),
    "a fragment": ({"name": "Gutenberg"}, TypeError, "list of mappings or a table, got dict"),
    "nothing": ([], ValueError, "at least one"),
    "a number for a name": ([{3: "x"}], TypeError, "row 0: attributes are named by text"),
}


@pytest.mark.parametrize("case", BAD_FRAGMENTS)
def test_bad_fragments_are_named_and_change_nothing(case):
    X, kind, message = BAD_FRAGMENTS[case]
    sampler = pt.SplitSMC(of_names(), 1.0, 20, random_state=0).fit(FRAGMENTS[:3])
    before = sampler.posterior_.log_density()
    with pytest.raises(kind, match=message):
        sampler.model.fit_prior(X)
    with pytest.raises(kind, match=message):
        sampler.partial_fit(X)
    assert sampler.posterior_.log_density() == before


def test_an_attribute_that_nobody_has():
    with pytest.raises(ValueError, match="no fragment has the attribute 'nmae'; there are 'award', 'born'"):
        pt.Ngram(attribute="nmae").fit_prior(FRAGMENTS)
    with pytest.raises(ValueError, match="labels has 2 entries, but there are 7 fragments"):
        pt.Ngram(attribute="name").fit_prior(FRAGMENTS, [0, 1])
    with pytest.raises(ValueError, match="attribute must be the name of one"):
        pt.SplitSMC(pt.Ngram(attribute=3)).fit(FRAGMENTS)
