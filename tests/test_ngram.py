"""The paper's n-gram model: its closed form, its prior, and what it refuses."""

import math
from collections import Counter

import numpy as np
import pytest
from scipy.special import gammaln

import partita as pt
from partita.models import record_prior
from partita.models.corpus import END, START
from partita.models.empirical_bayes import cluster
from partita.models.ngram import Spelling, evidence, grams, sample

from . import naive_urns
from .texts import counted

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


def heights(model, texts, concentrations):
    """How well the sampler does with each concentration."""
    found = []
    for c in concentrations:
        now = pt.Ngram(model.n, c, model.counts)
        now.check(1)
        found.append(cluster(now, sample(texts), [np.arange(len(texts))])[0])
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
    chosen = sample(texts)
    assert 3 <= len(chosen) <= 4
    assert len({text.split()[1] for text in chosen}) == 2
    assert sorted(sample(TEXTS[:2])) == sorted(TEXTS[:2])


def test_labels_must_be_as_many():
    with pytest.raises(ValueError, match="labels has 2 entries, but there are 6 texts"):
        pt.Ngram().fit_prior(TEXTS, [0, 1])


def test_letters_that_the_corpus_lacks_are_one():
    model = counted(2, 0.2, TEXTS)
    assert log_marginal(model, ["xq"]) == pytest.approx(log_marginal(model, ["ζя"]), abs=1e-12)
    assert log_marginal(model, ["xq", "xq"]) == pytest.approx(log_marginal(model, ["xq", "日本"]), abs=1e-12)
    with_prior, without = Spelling(2, 1.0, {"ab": 1}), Spelling(2, 1.0, {})
    assert with_prior.words("abx") == ["\ufffdb\ufffd"]
    assert without.words("abx") == ["abx"]


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


def test_files(path):
    sampler = pt.SplitSMC(counted(2, 0.1, TEXTS), 1.0, 20, random_state=0).fit(TEXTS[:4])
    sampler.save(path)
    loaded = pt.SplitSMC.load(path)
    assert loaded.model.counts == sampler.model.counts
    for each in (loaded, sampler):
        each.partial_fit(TEXTS[4:])
    assert loaded.labels_.tolist() == sampler.labels_.tolist()
    assert loaded.posterior_.log_density() == sampler.posterior_.log_density()
