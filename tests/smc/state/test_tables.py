"""Families that own tables: every copy has its own, files go without, nothing is shared or lost."""

import copy
import math
import pickle

import numpy as np
import pytest

import partita as pt
from partita._core.kernel import kernel
from partita.models.records import tables
from partita.models.records.corpus import Corpus
from partita.models.scoring.families import log_marginal
from partita.smc.files import storage
from partita.smc.files.storage import FileError
from partita.smc.moves import refine
from partita.smc.state.access import arrays_of, used_clusters
from partita.smc.state.keys import EVERYTHING
from partita.smc.state.state import Settings
from partita.smc.steps.candidates import candidates_of_row
from tests.helpers.files import crafted
from tests.helpers.oracle import factors
from tests.helpers.texts import counted

NAMES = ["anna berg", "bert stone", "carla de souza", "dmitri orlov", "eve li"]


def texts(n=60, seed=0):
    """Names with slips of the pen; each of so many that the pool of tables grows."""
    rng = np.random.default_rng(seed)
    found = []
    for name in rng.choice(NAMES, n):
        at = int(rng.integers(len(name)))
        slip = name[:at] + rng.choice(list("abcdefgh")) + name[at + rng.integers(2) :]
        found.append(str(name if rng.random() < 0.3 else slip))
    return found


def score(clusters):
    """A black box: words of a cluster share letters."""
    found = []
    for cluster in clusters:
        used = set().union(*cluster)
        found.append(-2.0 * len(used) - math.log(len(used)) * sum(map(len, cluster)))
    return found


X = texts()
MODELS = {
    "texts": counted(2, 0.2, NAMES),
    "records": pt.Record({"name": pt.Text()}),  # whose tables have sums beside the counts
    "surrogate": pt.BlackBox(score, surrogate=counted(2, 0.2, NAMES), n_proposals=6),
}


def as_said(kind, some):
    """Texts as observations of a model."""
    return [{"name": [text]} for text in some] if kind == "records" else some


def sampler_of(kind, **parameters):
    return pt.SplitSMC(MODELS[kind], 1.0, 10, random_state=4, **parameters)


each_kind = pytest.mark.parametrize("kind", MODELS)
each_with_tables = pytest.mark.parametrize("kind", ["texts", "records"])


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
    parameters, rows = {"keys": candidates, "rejuvenation": rejuvenation}, as_said(kind, X)
    whole = sampler_of(kind, **parameters).fit(rows)
    between = {
        "go on": lambda sampler: sampler,
        "copy": copy.deepcopy,
        "pickle": lambda sampler: pickle.loads(pickle.dumps(sampler)),
        "file": lambda sampler: reloaded(sampler, path),
    }
    for what, way in between.items():
        sampler = sampler_of(kind, **parameters)
        for first, stop in ((0, 1), (1, 20), (20, 45), (45, 60)):
            sampler = way(sampler.partial_fit(rows[first:stop]))
        assert answers(sampler) == answers(whole), what
        assert np.array_equal(sampler.predict_proba(rows[:5]), whole.predict_proba(rows[:5])), what
        assert answers(sampler.refine(1)) == answers(copy.deepcopy(whole).refine(1)), what
    if kind != "surrogate":
        check_scores(whole.refine(1))
        check_scores(reloaded(whole, path))


@each_kind
def test_a_copy_and_its_original_go_separate_ways(kind):
    rows = as_said(kind, X)
    sampler = sampler_of(kind).fit(rows[:30])
    before, twin = answers(sampler), copy.deepcopy(sampler)
    one, other = sampler._engine.compiled.family.tables, twin._engine.compiled.family.tables
    assert one is not other
    pool, sums, _ = tables.kept_tables(one)
    twin.partial_fit(as_said(kind, texts(40, seed=5))).refine(1)
    assert np.array_equal(tables.kept_tables(one)[0], pool)
    assert np.array_equal(tables.kept_tables(one)[1], sums)
    assert answers(sampler) == before
    assert answers(sampler.partial_fit(rows[30:])) == answers(sampler_of(kind).fit(rows))


@each_kind
@pytest.mark.parametrize("calls", [1, 2])
def test_a_refinement_that_fails_changes_nothing(kind, calls, monkeypatch):
    rows = as_said(kind, X)
    sampler = sampler_of(kind).fit(rows[:40])
    before, left, install = answers(sampler), [calls], refine.install

    def fails(*arguments):
        install(*arguments)
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt

    monkeypatch.setattr(refine, "install", fails)
    with pytest.raises(KeyboardInterrupt):
        sampler.refine(4)
    monkeypatch.undo()
    assert answers(sampler) == before
    assert answers(sampler.partial_fit(rows[40:])) == answers(sampler_of(kind).fit(rows))
    assert sampler._engine.observations == rows


def test_a_black_box_that_fails_leaves_the_tables_of_its_surrogate():
    left = [math.inf]

    def fused(clusters):
        left[0] -= 1
        if left[0] == 0:
            raise ZeroDivisionError
        return score(clusters)

    model = pt.BlackBox(fused, surrogate=MODELS["texts"], n_proposals=6)
    sampler = pt.SplitSMC(model, 1.0, 10, random_state=4)
    before = answers(sampler.fit(X[:30]))
    left[0] = 8
    with pytest.raises(ZeroDivisionError):
        sampler.partial_fit(texts(20, seed=7))
    assert answers(sampler) == before
    assert answers(sampler.partial_fit(X[30:])) == answers(sampler_of("surrogate").fit(X))


@each_with_tables
def test_an_engine_like_another_has_tables_of_its_own(kind):
    engine = sampler_of(kind).fit(as_said(kind, X))._engine
    fresh = engine.like(Settings(5), 0.0, 1)
    assert len(tables.kept_tables(fresh.family.tables)[0]) == 0
    assert [np.shape(field) for field in fresh.family[:-2]] == [
        np.shape(field) for field in engine.family[:-2]
    ]


@each_with_tables
def test_tables_come_back_whole(kind):
    engine = sampler_of(kind, rejuvenation=2).fit(as_said(kind, texts(200)))._engine
    pool, sums, free = tables.kept_tables(engine.family.tables)
    assert len(pool) > 1024  # it has grown
    assert (free >= 0).any()
    assert len(sums) == (len(pool) if kind == "records" else 0)
    again = tables.kept_tables(tables.filled_tables(pool, sums, free, kind == "records"))
    for kept, original in zip(again, (pool, sums, free), strict=True):
        assert np.array_equal(kept, original)


# ---------------------------------------------------------------------- files


@each_kind
def test_a_file_holds_observations_and_neither_rows_nor_numbers(kind, path):
    rows = as_said(kind, X)
    sampler = sampler_of(kind).fit(rows[:30])
    sampler.predict(as_said(kind, ["someone else"]))  # learns words that the file does not need
    sampler.partial_fit(rows[30:])
    sampler.save(path)
    raw = path.read_bytes()
    header, arrays = storage.read(path)
    assert arrays["data"].shape == (60, 0)
    assert arrays["statistics"].shape == (len(arrays["scores"]), 0)
    assert header["observations"]["values"] == rows
    loaded = pt.SplitSMC.load(path, model=sampler.model)
    assert answers(loaded) == answers(sampler)
    loaded.save(path)
    assert path.read_bytes() == raw


@each_with_tables
def test_the_model_is_made_from_the_file(kind, path):
    rows, new = as_said(kind, X), as_said(kind, texts(10, seed=9))
    sampler = sampler_of(kind).fit(rows)
    sampler.save(path)
    loaded = pt.SplitSMC.load(path)
    assert loaded.model_.to_json() == sampler.model.to_json()
    assert loaded.model_ is not loaded.model
    assert np.array_equal(loaded.predict_proba(new), sampler.predict_proba(new))
    assert answers(loaded.fit(rows[::-1])) == answers(sampler.fit(rows[::-1]))


OTHERS = {
    "texts": [counted(2, 0.3, NAMES), counted(2, 0.2, NAMES[:2]), pt.Gaussian()],
    "records": [
        pt.Record({"name": pt.Text(weight=0.5)}),
        pt.Record({"name": pt.Text(corpus=Corpus({"anna": 2.0}))}),
        pt.Gaussian(),
    ],
}


@each_with_tables
@pytest.mark.parametrize("other", range(3))
def test_another_model_is_refused(kind, other, path):
    sampler_of(kind).fit(as_said(kind, X)).save(path)
    with pytest.raises(FileError, match=r"made with (other hyperparameters|another model)"):
        pt.SplitSMC.load(path, model=OTHERS[kind][other])


@each_kind
@pytest.mark.parametrize("change", ["number", "fewer", "none", "no list", "data", "statistics"])
def test_a_file_with_something_wrong_is_refused(kind, change, path):
    rows = as_said(kind, X)
    sampler = sampler_of(kind).fit(rows)
    sampler.save(path)

    def edit(header, arrays):
        if change in arrays:
            arrays[change] = np.zeros((len(arrays[change]), 2))
        elif change == "none":
            del header["observations"]
        else:
            values = {"number": [3, *rows[1:]], "fewer": rows[1:], "no list": {}}[change]
            header["observations"]["values"] = values

    crafted(path, edit)
    with pytest.raises(FileError, match="damaged"):
        pt.SplitSMC.load(path, model=sampler.model)


# ---------------------------------------------------------------------- candidates of what is no array


def words(row):
    """The words of a text, or of a record's name."""
    return (row if isinstance(row, str) else row["name"][0]).split()


@each_kind
@pytest.mark.parametrize("candidates", ["auto", words])
def test_candidates_of_texts(kind, candidates, path):
    rows, new = as_said(kind, X), as_said(kind, texts(20, seed=3))
    sampler = sampler_of(kind, keys=candidates).fit(rows)
    report = sampler.candidate_report(new, n=10)
    assert len(report.reached) == 10
    assert 0.3 < report.reached.mean() <= 1.0 + 1e-9
    again = reloaded(sampler, path).candidate_report(new, n=10)
    assert np.array_equal(report.reached, again.reached)
