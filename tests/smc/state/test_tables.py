"""Families that own tables: every copy has its own, files go without, nothing is shared or lost."""

import copy
import math
import pickle

import numpy as np
import pytest

import partita as pt
from partita._core.kernel import kernel
from partita.models.base import CompiledModel
from partita.models.records import tables
from partita.models.records.vocabulary import Vocabulary
from partita.models.scoring.families import log_marginal
from partita.smc.files import storage
from partita.smc.files.storage import FileError
from partita.smc.moves import refine
from partita.smc.state.access import arrays_of, used_clusters
from partita.smc.state.keys import EVERYTHING, codes_of_rows
from partita.smc.state.state import Settings
from partita.smc.steps.candidates import candidates_of_row
from tests.helpers.files import crafted
from tests.helpers.oracle import factors


class Attribute:
    """Texts of words; a word of the corpus is common, any other one is spelled."""

    phi, order, long = 1.0, 2, 4

    def __init__(self, theta, corpus):
        self.theta, self.corpus = theta, set(corpus)

    def words(self, value):
        return value.split()

    def value_base(self, value):
        return value in self.corpus, -4.0

    def word_base(self, word):
        return word in self.corpus, -2.0

    def context_weight(self, context):
        return 3.0

    def letter_weight(self, context, letter):
        return 3.0 / 30.0


class Texts(CompiledModel):
    """A fake: one attribute, a corpus for a parameter."""

    reads_rows = False

    def __init__(self, theta=0.5, corpus=()):
        self.theta, self.corpus = theta, corpus

    @property
    def vocabulary(self):
        if not hasattr(self, "_vocabulary"):
            self._vocabulary = Vocabulary([Attribute(self.theta, self.corpus)])
        return self._vocabulary

    def validate(self, X):
        for row, text in enumerate(X):
            if not isinstance(text, str):
                raise ValueError(f"row {row} is no text")
        return list(X)

    def kept_tables(self, family):
        return tables.kept_tables(family.tables)

    def with_tables(self, family, pool, free):
        return family._replace(tables=tables.filled_tables(pool, free))

    def encoded_width(self, X):
        return 2

    def encode(self, X):
        return self.vocabulary.encode([[(0, text)] for text in X])

    def family(self, n_features):
        return self.vocabulary.family()

    def after_encoding(self, family):
        return self.vocabulary.family(family.tables)

    def width(self, n_features):
        return tables.WIDTH

    def keys(self, X):
        return codes_of_rows(str.split, X)

    def to_json(self):
        return {"theta": self.theta, "corpus": sorted(self.corpus)}

    @classmethod
    def from_json(cls, kept):
        return cls(kept["theta"], tuple(kept["corpus"]))


NAMES = ["anna berg", "bert stone", "carla de souza", "dmitri orlov", "eve li"]
CORPUS = ("anna", "bert", "stone", "carla")


def texts(n=60, seed=0):
    """Names with slips of the pen; each of so many that the pool of tables grows."""
    rng = np.random.default_rng(seed)
    found = []
    for name in rng.choice(NAMES, n):
        at = int(rng.integers(len(name)))
        slip = name[:at] + rng.choice(list("abcdefgh")) + name[at + rng.integers(2) :]
        found.append(str(name if rng.random() < 0.3 else slip))
    return found


X = texts()
MODEL = Texts(corpus=CORPUS)


def score(clusters):
    """A black box: words of a cluster share letters."""
    found = []
    for cluster in clusters:
        used = set().union(*cluster)
        found.append(-2.0 * len(used) - math.log(len(used)) * sum(map(len, cluster)))
    return found


def sampler_of(kind, **parameters):
    model = MODEL if kind == "texts" else pt.BlackBox(score, surrogate=MODEL, n_proposals=6)
    return pt.SplitSMC(model, 1.0, 10, random_state=4, **parameters)


each_kind = pytest.mark.parametrize("kind", ["texts", "surrogate"])


def answers(sampler):
    posterior = sampler.posterior_
    return sampler.labels_.tolist(), posterior.log_density(), factors(posterior)


@kernel
def log_marginals_of(state, family, ids):
    """log p(c) as the rows of statistics have it."""
    out = np.empty(ids.shape[0])
    for k in range(ids.shape[0]):
        out[k] = log_marginal(family, state.statistics, ids[k], state.clusters[ids[k]].size, 1)
    return out


def check_scores(sampler):
    """Under a model with tables, every row says what the score of its cluster says."""
    engine = sampler._engine
    candidates_of_row(engine.state, *EVERYTHING, 0)
    ids = used_clusters(engine.state)[1:]
    clusters = arrays_of(engine.state)[1][ids]
    expected = clusters["score"] - [math.lgamma(size) for size in clusters["size"]]
    np.testing.assert_allclose(log_marginals_of(engine.state, engine.family, ids), expected, rtol=1e-9)


def reloaded(sampler, path):
    sampler.save(path)
    given = sampler.keys if callable(sampler.keys) else None
    return pt.SplitSMC.load(path, model=sampler.model, keys=given)


# ---------------------------------------------------------------------- copies


@each_kind
@pytest.mark.parametrize("candidates", [None, "auto"])
@pytest.mark.parametrize("rejuvenation", [0, 1])
def test_batches_files_and_copies_make_no_difference(kind, candidates, rejuvenation, path):
    parameters = {"keys": candidates, "rejuvenation": rejuvenation}
    whole = sampler_of(kind, **parameters).fit(X)
    between = {
        "go on": lambda sampler: sampler,
        "copy": copy.deepcopy,
        "pickle": lambda sampler: pickle.loads(pickle.dumps(sampler)),
        "file": lambda sampler: reloaded(sampler, path),
    }
    for what, way in between.items():
        sampler = sampler_of(kind, **parameters)
        for first, stop in ((0, 1), (1, 20), (20, 45), (45, 60)):
            sampler = way(sampler.partial_fit(X[first:stop]))
        assert answers(sampler) == answers(whole), what
        assert np.array_equal(sampler.predict_proba(X[:5]), whole.predict_proba(X[:5])), what
        assert answers(sampler.refine(1)) == answers(copy.deepcopy(whole).refine(1)), what
    if kind == "texts":
        check_scores(whole.refine(1))
        check_scores(reloaded(whole, path))


@each_kind
def test_a_copy_and_its_original_go_separate_ways(kind):
    sampler = sampler_of(kind).fit(X[:30])
    before, twin = answers(sampler), copy.deepcopy(sampler)
    one, other = sampler._engine.compiled.family.tables, twin._engine.compiled.family.tables
    assert one is not other
    pool = tables.kept_tables(one)[0]
    twin.partial_fit(texts(40, seed=5)).refine(1)
    assert np.array_equal(tables.kept_tables(one)[0], pool)
    assert answers(sampler) == before
    assert answers(sampler.partial_fit(X[30:])) == answers(sampler_of(kind).fit(X))


@each_kind
@pytest.mark.parametrize("calls", [1, 4])
def test_a_refinement_that_fails_changes_nothing(kind, calls, monkeypatch):
    sampler = sampler_of(kind).fit(X[:40])
    before, left, improve = answers(sampler), [calls], refine.improve

    def fails(*arguments):
        improve(*arguments)
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt

    monkeypatch.setattr(refine, "improve", fails)
    with pytest.raises(KeyboardInterrupt):
        sampler.refine(2)
    monkeypatch.undo()
    assert answers(sampler) == before
    assert answers(sampler.partial_fit(X[40:])) == answers(sampler_of(kind).fit(X))
    assert sampler._engine.observations == X


def test_a_black_box_that_fails_leaves_the_tables_of_its_surrogate():
    left = [math.inf]

    def fused(clusters):
        left[0] -= 1
        if left[0] == 0:
            raise ZeroDivisionError
        return score(clusters)

    sampler = pt.SplitSMC(pt.BlackBox(fused, surrogate=MODEL, n_proposals=6), 1.0, 10, random_state=4)
    before = answers(sampler.fit(X[:30]))
    left[0] = 8
    with pytest.raises(ZeroDivisionError):
        sampler.partial_fit(texts(20, seed=7))
    assert answers(sampler) == before
    assert answers(sampler.partial_fit(X[30:])) == answers(sampler_of("surrogate").fit(X))


def test_an_engine_like_another_has_tables_of_its_own():
    engine = sampler_of("texts").fit(X)._engine
    fresh = engine.like(Settings(5), 0.0, 1)
    assert len(tables.kept_tables(fresh.family.tables)[0]) == 0
    assert len(fresh.family.kind) == len(engine.family.kind)


def test_tables_come_back_whole():
    engine = sampler_of("texts", rejuvenation=2).fit(X)._engine
    pool, free = tables.kept_tables(engine.family.tables)
    assert len(pool) > 1024  # it has grown
    assert (free >= 0).any()
    again = tables.kept_tables(tables.filled_tables(pool, free))
    assert np.array_equal(again[0], pool)
    assert np.array_equal(again[1], free)


# ---------------------------------------------------------------------- files


@each_kind
def test_a_file_holds_observations_and_neither_rows_nor_numbers(kind, path):
    sampler = sampler_of(kind).fit(X[:30])
    sampler.predict(["someone else"])  # learns words that the file does not need
    sampler.partial_fit(X[30:])
    sampler.save(path)
    raw = path.read_bytes()
    header, arrays = storage.read(path)
    assert arrays["data"].shape == (60, 0)
    assert arrays["statistics"].shape == (len(arrays["scores"]), 0)
    assert header["observations"]["values"] == X
    loaded = pt.SplitSMC.load(path, model=sampler.model)
    assert answers(loaded) == answers(sampler)
    loaded.save(path)
    assert path.read_bytes() == raw


def test_the_model_is_made_from_the_file(path, monkeypatch):
    sampler = sampler_of("texts").fit(X)
    monkeypatch.setitem(storage.MODELS, "Texts", Texts)
    sampler.save(path)
    loaded = pt.SplitSMC.load(path)
    assert (loaded.model_.theta, set(loaded.model_.corpus)) == (0.5, set(CORPUS))
    assert loaded.model_ is not loaded.model
    new = texts(10, seed=9)
    assert np.array_equal(loaded.predict_proba(new), sampler.predict_proba(new))
    assert answers(loaded.fit(X[::-1])) == answers(sampler.fit(X[::-1]))


@pytest.mark.parametrize("given", [Texts(0.6, CORPUS), Texts(0.5, CORPUS[:2]), pt.Gaussian()])
def test_another_model_is_refused(given, path):
    sampler_of("texts").fit(X).save(path)
    with pytest.raises(FileError, match=r"made with (other hyperparameters|another model)"):
        pt.SplitSMC.load(path, model=given)


@each_kind
@pytest.mark.parametrize("change", ["number", "fewer", "none", "no list", "data", "statistics"])
def test_a_file_with_something_wrong_is_refused(kind, change, path):
    sampler = sampler_of(kind).fit(X)
    sampler.save(path)

    def edit(header, arrays):
        if change in arrays:
            arrays[change] = np.zeros((len(arrays[change]), 2))
        elif change == "none":
            del header["observations"]
        else:
            values = {"number": [3, *X[1:]], "fewer": X[1:], "no list": {}}[change]
            header["observations"]["values"] = values

    crafted(path, edit)
    with pytest.raises(FileError, match="damaged"):
        pt.SplitSMC.load(path, model=sampler.model)


# ---------------------------------------------------------------------- candidates of what is no array


@each_kind
@pytest.mark.parametrize("candidates", ["auto", str.split])
def test_candidates_of_texts(kind, candidates, path):
    new = texts(20, seed=3)
    sampler = sampler_of(kind, keys=candidates).fit(X)
    report = sampler.candidate_report(new, n=10)
    assert len(report.reached) == 10
    assert 0.3 < report.reached.mean() <= 1.0 + 1e-9
    again = reloaded(sampler, path).candidate_report(new, n=10)
    assert np.array_equal(report.reached, again.reached)
