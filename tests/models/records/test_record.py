"""Records: what they take and refuse, schemas, priors, files; and two of the shared data sets."""

import copy
import csv
import datetime
import gzip
import io
import json
import math
import time
from decimal import Decimal
from itertools import pairwise
from uuid import UUID

import numpy as np
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import partita as pt
from partita.models.records.corpus import Corpus
from partita.models.records.fragments import check_fragments
from partita.models.records.schema import kind_of
from tests.helpers.effort import examples
from tests.helpers.gauss700 import SHARED
from tests.helpers.messages import all_of
from tests.helpers.oracle import factors

PEOPLE = {
    "Ada Lovelace": ["Ada Lovelace", "A. Lovelace", "Ada Lovelac", "LOVELACE, Ada"],
    "Bob Hoskins": ["Bob Hoskins", "B. Hoskins", "Bob Hoskin", "Hoskins"],
    "Zoë Quux": ["Zoë Quux", "Z. Quux", "Zoe Quux", "Zoé Quux"],
    "Émile Zola": ["Émile Zola", "Emile Zola", "E. Zola", "Zola"],
}


def fragments(n=40, seed=0):
    """Names in variants, dates in several forms, jobs, and some fragments that lack this or that."""
    rng = np.random.default_rng(seed)
    found = []
    for k in rng.integers(0, len(PEOPLE), n):
        person = list(PEOPLE)[k]
        one = {"name": [str(rng.choice(PEOPLE[person])) for _ in range(rng.integers(1, 3))]}
        if rng.random() < 0.6:
            one["born"] = [f"18{10 + k}-12-10", f"10/12/18{10 + k}", f"18{10 + k}"][rng.integers(3)]
        if rng.random() < 0.5:
            one["job"] = ["poet", "actor", "baker", "novelist"][k]
        found.append(one if rng.random() < 0.95 else {})
    return found


X = fragments()
SCHEMA = {"name": pt.Text(), "born": pt.Date(), "job": pt.Category(), "note": None, "*": pt.Category()}
MODEL = pt.Record(SCHEMA, 2.0, {"name": 0.9, "born": 0.6, "job": 0.5})
STRICT = pt.Record({"name": pt.Text(), "born": pt.Date()})


def sampler_of(model=MODEL, **parameters):
    return pt.SplitSMC(model, 1.0, 10, random_state=4, **parameters)


def answers(sampler):
    posterior = sampler.posterior_
    return sampler.labels_.tolist(), posterior.log_density(), factors(posterior)


@pytest.fixture(scope="module")
def whole():
    """The answers of a sampler that nothing interrupted."""
    return answers(sampler_of().fit(X))


# ---------------------------------------------------------------------- what is refused

BAD = {
    "a text": ("name", TypeError, ["list of mappings", "str"]),
    "a mapping": ({"name": "Ada"}, TypeError, ["list of mappings", "dict"]),
    "a number": (3, TypeError, ["list of mappings", "int"]),
    "nothing": ([], ValueError, ["no fragment"]),
    "a text among fragments": ([{}, "Ada"], TypeError, ["row 1", "str"]),
    "a list among fragments": ([{}, {}, ["Ada"]], TypeError, ["row 2", "list"]),
    "None": ([None], TypeError, ["row 0", "NoneType"]),
    "a name that is none": ([{}, {3: "Ada"}], TypeError, ["row 1", "3"]),
    "a list in a list": ([{}, {"name": [["Ada"]]}], ValueError, ["row 1", "'name'", "list"]),
    "bytes": ([{}, {"name": b"Ada"}], ValueError, ["row 1", "'name'", "bytes"]),
    "bytes for a date": ([{"born": [b"1815"]}], ValueError, ["row 0", "'born'", "bytes"]),
    "an object": ([{"job": object()}], ValueError, ["row 0", "'job'", "object"]),
    "bytes of another attribute": ([{"town": b"Bath"}], ValueError, ["row 0", "'town'", "bytes"]),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("method", ["fit", "partial_fit", "predict_proba"])
def test_bad_fragments_are_named_and_change_nothing(case, method, whole):
    bad, kind, words = BAD[case]
    sampler = sampler_of().fit(X[:25])
    before = answers(sampler)
    with pytest.raises(kind, match=all_of(*words)):
        getattr(sampler, method)(bad)
    assert answers(sampler) == before
    assert answers(sampler.partial_fit(X[25:])) == whole


def test_one_bad_fragment_among_good_ones_loses_nothing(whole):
    sampler = sampler_of().fit(X[:25])
    with pytest.raises(ValueError, match="row 10, attribute 'name'"):
        sampler.partial_fit([*X[25:35], {"name": b"\xff"}, *X[35:]])
    assert answers(sampler.partial_fit(X[25:])) == whole


def test_unknown_attributes():
    with pytest.raises(ValueError, match=all_of("row 1", "unknown attribute 'town'", "'name', 'born'")):
        sampler_of(STRICT).fit([{"name": "Ada"}, {"town": "Bath"}])
    with_others = pt.Record({"name": pt.Text(), "*": pt.Category()})
    labels = sampler_of(with_others).fit_predict(
        [{"town": "Bath"}, {"x": 3}, {"town": "Bath", "name": "Ada"}]
    )
    assert len(labels) == 3
    ignoring = pt.Record({"name": pt.Text(), "*": None}, rate=0)
    one = sampler_of(ignoring).fit([{"name": "Ada", "town": b"\xff"}, {"name": "Bob"}])
    other = sampler_of(ignoring).fit([{"name": "Ada"}, {"name": "Bob"}])
    assert answers(one) == answers(other)


def test_unknown_attributes_differ_by_name():
    """The town of Bath and a bath in the room have nothing to do with each other."""
    model = pt.Record({"*": pt.Category()}, rate=0)
    sampler = sampler_of(model).fit([{"town": "Bath"}, {"room": "Bath"}, {"town": "Bath"}])
    together = sampler.posterior_.together
    assert together(0, 2) > 2 * together(0, 1)


def test_what_was_never_mentioned_may_still_come():
    model = pt.Record.infer(X).fit_prior(X)
    assert model.presence["*"] == 0
    sampler = sampler_of(model).fit([*X, {"hobby": "chess"}, {"name": "Ada Lovelace", "hobby": "chess"}])
    assert math.isfinite(sampler.posterior_.log_density())


@pytest.mark.parametrize(
    ("model", "kind", "word"),
    [
        (pt.Record(), ValueError, "needs attributes"),
        (pt.Record({}), ValueError, "needs attributes"),
        (pt.Record({"name": None}), ValueError, "not ignored"),
        (pt.Record({"name": "text"}), TypeError, "attribute 'name' must be"),
        (pt.Record({"name": pt.Text}), TypeError, "attribute 'name' must be"),
        (pt.Record(SCHEMA, rate=-1.0), ValueError, "rate"),
        (pt.Record(SCHEMA, rate=math.nan), ValueError, "rate"),
        (pt.Record(SCHEMA, rate="much"), ValueError, "rate"),
        (pt.Record(SCHEMA, presence={"name": -0.1}), ValueError, "presence of 'name'"),
        (pt.Record(SCHEMA, presence={"name": math.nan}), ValueError, "presence of 'name'"),
        (pt.Record({"job": pt.Category(weight=0.0)}), ValueError, "weight of 'job'"),
        (pt.Record(SCHEMA, size=0.5), ValueError, "size must be a number of at least 1"),
        (pt.Record(SCHEMA, size=math.nan), ValueError, "size must be a number of at least 1"),
        (pt.Record(SCHEMA, size="two"), ValueError, "size must be a number of at least 1"),
    ],
)
def test_bad_parameters_are_named(model, kind, word):
    sampler = sampler_of(model)
    with pytest.raises(kind, match=word):
        sampler.fit([{}])
    assert not hasattr(sampler, "_engine")


# ---------------------------------------------------------------------- what is taken


class NAType:
    """As the NA of pandas: neither equal nor unequal to itself."""

    def __ne__(self, other):
        return self

    __hash__ = object.__hash__

    def __bool__(self):
        raise TypeError("boolean value of NA is ambiguous")


MISSING = [
    None,
    "",
    "  ",
    "\t\n",
    math.nan,
    np.nan,
    np.float32("nan"),
    [],
    (),
    set(),
    [None, "", math.nan],
    NAType(),
]


@pytest.mark.parametrize("nothing", MISSING, ids=lambda value: f"{type(value).__name__}{value!s:.9}")
def test_missing_values_say_nothing(nothing):
    assert check_fragments([{"name": nothing, "born": 1815}]) == [{"born": [1815]}]
    assert check_fragments([{"name": nothing}]) == [{}]


def test_values_of_all_types():
    said = {
        "one": "Ada",
        "list": ["Ada", None, 3],
        "tuple": ("Ada", 1.5),
        "set": {"b", "a"},
        "array": np.array(["x", "y"]),
        "numbers": np.array([1.0, math.nan]),
        "scalar": np.int64(3),
        "text": np.str_("Ada"),
        "date": datetime.date(1815, 12, 10),
        "day": np.datetime64("1815-12-10"),
        "bool": True,
    }
    found = check_fragments([said])[0]
    assert found == {
        "one": ["Ada"],
        "list": ["Ada", 3],
        "tuple": ["Ada", 1.5],
        "set": ["a", "b"],
        "array": ["x", "y"],
        "numbers": [1.0],
        "scalar": [3],
        "text": ["Ada"],
        "date": ["1815-12-10"],
        "day": ["1815-12-10"],
        "bool": [True],
    }
    assert json.loads(json.dumps(found)) == found
    model = pt.Record({"*": pt.Text()})
    assert len(sampler_of(model).fit_predict([said, said, {"one": 3}])) == 3


@pytest.mark.parametrize(
    ("raw", "parsed"),
    [
        ("1815-12-10", "1815 12 10"),
        (datetime.date(1815, 12, 10), "1815 12 10"),
        (datetime.datetime(1815, 12, 10, 3, 4), "1815 12 10"),
        ("1815-12-10T03:04:05Z", "1815 12 10"),
        ("1815-12-10 03:04:05", "1815 12 10"),
        ("18151210", "1815 12 10"),
        (18151210, "1815 12 10"),
        ("10.12.1815", "1815 10 12"),
        ("1/2/1815", "1815 01 02"),
        ("1815", "1815"),
        (1815, "1815"),
        (1815.0, "1815"),
        ("1815-12", "1815 12"),
        ("1815 12 10", "1815 12 10"),
        ("10 December 1815", "10 december 1815"),
        ("1815-13-41", "1815 13 41"),
        ("circa 1815", "circa 1815"),
        ("unknown", "unknown"),
    ],
)
def test_dates(raw, parsed):
    assert pt.Date().parse(raw) == parsed
    assert pt.Date().parse(parsed) == parsed


def test_numbers_are_read_as_text():
    assert [pt.Text().parse(raw) for raw in (3, 3.0, np.float64(3.0), "3", True)] == [
        "3",
        "3",
        "3",
        "3",
        "true",
    ]
    assert pt.Text().parse(2.5) == "2 5"


def test_long_texts():
    """Beyond the first 1,000 letters equality still counts; and 100 kB take no time worth mentioning."""
    long = "lorem ipsum dolor sit amet " * 4000
    assert len(long) > 100_000
    kind = pt.Category(corpus=Corpus({"novel": 9}))
    model = pt.Record({"name": pt.Text(), "text": pt.Value(), "kind": kind}, rate=0)
    sampler_of(model, keys="auto").fit([{"name": "compiled"}, {"name": "before"}])
    for name in model.attributes:
        density = {}
        for end in ("", "x"):
            began = time.process_time()
            sampler = sampler_of(model, keys="auto").fit([{name: long}, {name: long + end}])
            assert time.process_time() - began < 5.0
            density[end] = sampler.posterior_.log_density()
        assert density[""] > density["x"] + 0.5


def test_control_characters_and_text_from_right_to_left():
    names = ["\u202eמשה כהן\u202c", "משה\x00כהן", "משה כהן", "محمد علي", "\u200fمحمد علي", "\x1b[31m"]
    X = [{"name": name} for name in names]
    labels = sampler_of(pt.Record({"name": pt.Text()}, rate=0)).fit_predict(X)
    assert labels.tolist() == [0, 0, 0, 1, 1, 2]


def test_empty_fragments_are_observations():
    sampler = sampler_of().fit([{}, {"name": "Ada"}, {}, {"name": None}])
    assert len(sampler.labels_) == 4
    assert math.isfinite(sampler.posterior_.log_density())


def test_an_attribute_that_is_ignored_changes_nothing(whole):
    noted = [one | {"note": [str(k), b"\xff"]} for k, one in enumerate(X)]
    assert answers(sampler_of().fit(noted)) == whole


class Frame:
    """What of a pandas DataFrame is used."""

    def __init__(self, rows):
        self.rows, self.columns = rows, sorted({name for row in rows for name in row})

    def to_dict(self, how):
        assert how == "records"
        return [{name: row.get(name, math.nan) for name in self.columns} for row in self.rows]


def test_a_data_frame_of_pandas():
    flat = [{name: value[0] if isinstance(value, list) else value for name, value in x.items()} for x in X]
    expected = answers(sampler_of().fit(flat))
    assert answers(sampler_of().fit(Frame(flat))) == expected
    frame = pandas.DataFrame(flat)
    assert answers(sampler_of().fit(frame)) == expected
    assert answers(sampler_of().fit(frame.convert_dtypes())) == expected
    assert pt.Record.infer(frame).attributes.keys() == pt.Record.infer(flat).attributes.keys()


# ---------------------------------------------------------------------- batches, copies, files


def test_with_candidates_batches_copies_and_files_make_no_difference(path):
    def filed(sampler):
        sampler.save(path)
        return pt.SplitSMC.load(path)

    expected = answers(sampler_of(keys="auto").fit(X))
    for way in (lambda sampler: sampler, copy.deepcopy, filed):
        sampler = sampler_of(keys="auto")
        for first, stop in ((0, 1), (1, 13), (13, 40)):
            sampler = way(sampler.partial_fit(X[first:stop]))
        assert answers(sampler) == expected
        np.testing.assert_array_equal(
            sampler.predict_proba(X[:3]), sampler_of(keys="auto").fit(X).predict_proba(X[:3])
        )


def test_a_file_holds_the_model(path):
    model = pt.Record.infer(X).fit_prior(X)
    dated = [*X, {"name": "Ada", "born": datetime.date(1810, 12, 10)}]
    sampler = sampler_of(model).fit(dated)
    sampler.save(path)
    loaded = pt.SplitSMC.load(path)
    assert loaded.model.attributes == model.attributes
    assert (loaded.model.rate, loaded.model.types) == (model.rate, model.types)
    assert answers(loaded) == answers(sampler)
    assert answers(pt.SplitSMC.load(path, model=model)) == answers(sampler)
    with pytest.raises(ValueError, match="other hyperparameters"):
        pt.SplitSMC.load(path, model=pt.Record(model.attributes, 3.0, model.presence, model.types))


UNEVEN = (0.2, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, np.float64(0.5))


def fitted():
    corpus = Corpus({"ada": 2, "\ud800 \x7f ü": 1.5})
    attributes = {
        "name": pt.Text(UNEVEN, np.float64(0.3), corpus, ("ada", "bob"), np.float64(0.25)),
        "alias": pt.Text(weight=np.float32(0.5), references=("\ud800 ü",)),
        "job": pt.Category(weight=1, corpus=corpus),
        "born": pt.Date(corpus=Corpus({"1815": 2})),
        "surname": pt.Value(corpus=corpus),
        "height": pt.Number(corpus=Corpus({"180": 2, "170": 1}), spread=0.25, kin=1.5),
        "note": None,
        "*": pt.Category(),
    }
    types = [(np.float64(1.0), {"name": np.float64(0.5)})]
    return pt.Record(attributes, 1, {"name": np.float64(0.5)}, types, np.float64(2.5))


def test_json_round_trip():
    for model in (fitted(), MODEL, STRICT, pt.Record.infer(X).fit_prior(X)):
        kept = model.to_json()
        assert json.loads(json.dumps(kept)) == kept
        again = pt.Record.from_json(json.loads(json.dumps(kept)))
        assert again.attributes == model.attributes
        assert (again.rate, again.presence, again.types, again.size) == (
            model.rate,
            model.presence,
            model.types,
            model.size,
        )
        assert again.to_json() == kept


def test_json_has_all_that_was_learnt():
    kept = fitted().to_json()
    assert kept["size"] == 2.5
    name = kept["attributes"]["name"]
    assert name.keys() == {
        *("kind", "agreement", "weight", "corpus", "references", "kin", "by_chance", "noted"),
        *("missing", "separator"),
    }
    assert (name["references"], name["kin"], name["weight"]) == (["ada", "bob"], 0.25, 0.3)
    assert name["agreement"] == [float(share) for share in UNEVEN]
    learnt = pt.Record.infer(X).fit_prior(X)
    assert learnt.size > 1.0
    told = pt.Record.from_json(json.loads(json.dumps(learnt.to_json())))
    assert told.log_likelihood([X[:9], X[9:]]).tolist() == learnt.log_likelihood([X[:9], X[9:]]).tolist()


@pytest.mark.parametrize(
    "damage",
    [
        lambda kept: kept["attributes"]["name"].update(kind="song"),
        lambda kept: kept["attributes"]["name"].update(weight=-1.0),
        lambda kept: kept["attributes"]["name"].update(weight="1"),
        lambda kept: kept["attributes"]["name"].update(agreement=[0.5, 0.5]),
        lambda kept: kept["attributes"]["name"].update(agreement=[2.0] * 8),
        lambda kept: kept["attributes"]["name"].update(agreement=0.5),
        lambda kept: kept["attributes"]["name"].update(references=[3]),
        lambda kept: kept["attributes"]["name"].update(kin="x"),
        lambda kept: kept["attributes"]["name"].update(kin=-1.0),
        lambda kept: kept["attributes"]["name"].update(kin=math.nan),
        lambda kept: kept.update(size=0.0),
        lambda kept: kept.update(size="x"),
        lambda kept: kept["attributes"]["name"].update(order=2),
        lambda kept: kept["attributes"]["name"]["corpus"].update(ada=-1),
        lambda kept: kept["attributes"]["name"]["corpus"].update(ada=math.inf),
        lambda kept: kept["attributes"]["name"]["corpus"].update(ada=None),
        lambda kept: kept.update(rate="x"),
        lambda kept: kept.update(presence={"name": -1}),
        lambda kept: kept.update(types=[[0.5, {"name": -1}]]),
        lambda kept: kept.update(types=[[2.0, {"name": 1}]]),
        lambda kept: kept.update(types=[]),
        lambda kept: kept.update(attributes={}),
    ],
)
def test_json_that_makes_no_sense(damage):
    kept = fitted().to_json()
    damage(kept)
    with pytest.raises(ValueError, match=r"."):
        pt.Record.from_json(kept)


def test_a_model_of_a_version_that_weighed_otherwise():
    kept = fitted().to_json()
    del kept["attributes"]["name"]["references"]
    with pytest.raises(
        ValueError, match=r"attribute 'name' was learnt by a version .* learn it again from the data"
    ):
        pt.Record.from_json(kept)


def test_clones_and_copies_are_equal():
    model = fitted()
    for other in (clone(model), copy.deepcopy(model), copy.copy(model)):
        assert other is not model
        assert other.to_json() == model.to_json()
    assert clone(sampler_of()).get_params(deep=False)["n_particles"] == 10


def test_fitting_leaves_the_model_alone():
    model = pt.Record(SCHEMA)
    sampler_of(model).fit(X)
    assert not hasattr(model, "_vocabulary")
    assert model.attributes is SCHEMA


def test_the_surrogate_of_a_black_box():
    seen = []

    def score(clusters):
        seen.extend(clusters)
        return [-5.0 * len({tuple(one.get("job", ())) for one in cluster}) for cluster in clusters]

    model = pt.BlackBox(score, surrogate=MODEL, n_proposals=4)
    sampler = sampler_of(model).fit(X[:15])
    assert len(sampler.labels_) == 15
    assert all(isinstance(value, list) for cluster in seen for one in cluster for value in one.values())
    with pytest.raises(ValueError, match="row 0, attribute 'name'"):
        sampler.partial_fit([{"name": b"x"}])
    assert len(sampler.partial_fit(X[15:20]).labels_) == 20


def test_candidates_find_what_shares_a_word():
    sampler = sampler_of(keys="auto").fit(X)
    report = sampler.candidate_report(fragments(10, seed=1), n=10)
    assert report.reached.mean() > 0.9
    model = clone(MODEL)
    model.check(1)
    starts, keys = model.keys(model.validate([X[0], {}, {"name": ["Ada Lovelace", "Lovelace, Ada"]}]))
    assert starts[1] == starts[2]
    for first, stop in pairwise(starts.tolist()):
        assert (np.diff(keys[first:stop]) > 0).all()  # each once, in an order that no process changes


# ---------------------------------------------------------------------- priors


def test_fit_prior_with_and_without_labels():
    model = pt.Record(SCHEMA)
    labels = [list(PEOPLE).index(p) for x in X for p in [owner(x)]]
    for fitted in (
        model.fit_prior(X),
        model.fit_prior(X, labels),
        model.fit_prior(X, [str(k) for k in labels]),
    ):
        assert fitted is not model
        assert fitted.attributes["name"].corpus.counts.keys() >= {"ada lovelace", "b hoskins"}
        assert fitted.attributes["note"] is None
        assert fitted.presence["name"] == pytest.approx(np.mean(["name" in x for x in X]))
        assert fitted.rate > 0.0
        assert sum(weight for weight, _ in fitted.types) == pytest.approx(1.0)
    assert model.attributes is SCHEMA
    assert model.presence is None
    assert not SCHEMA["name"].corpus.counts
    by_labels = model.fit_prior(X, labels)
    assert by_labels.attributes["job"].corpus.counts["poet"] == pytest.approx(1.0)  # one entity's
    assert by_labels.fit_prior(X, labels).to_json() == by_labels.to_json()


def owner(x):
    """Whose fragment it is; those that say nothing are Ada's."""
    names = {name: person for person, names in PEOPLE.items() for name in names}
    return names[x["name"][0]] if "name" in x else "Ada Lovelace"


@pytest.mark.parametrize("labels", [[0, 1], [[0]] * 40, []])
def test_labels_that_do_not_fit(labels):
    with pytest.raises(ValueError, match="labels"):
        pt.Record(SCHEMA).fit_prior(X, labels)


def test_fit_prior_refuses_what_the_sampler_refuses():
    with pytest.raises(ValueError, match="row 1, attribute 'name'"):
        pt.Record(SCHEMA).fit_prior([{}, {"name": b"x"}])


def test_fragments_that_say_nothing_at_all():
    model = STRICT.fit_prior([{}, {}])
    assert model.presence == {"name": 0.0, "born": 0.0}
    assert len(sampler_of(model).fit_predict([{}, {"name": "Ada"}])) == 2
    with pytest.raises(ValueError, match="nothing to infer"):
        pt.Record.infer([{}, {"name": None}])


# ---------------------------------------------------------------------- schemas


def test_toml_round_trip():
    for model in (fitted(), MODEL, pt.Record.infer(X)):
        again = pt.Record.from_toml(model.to_toml())
        assert again.to_toml() == model.to_toml()
        assert list(again.attributes) == list(model.attributes)
        assert again.rate == model.rate
        assert again.presence is None


@examples(60)
@given(st.text(st.characters(exclude_categories=["Cs"])), st.floats(1e-300, 1e300))
def test_any_name_and_number_survives_toml(name, weight):
    again = pt.Record.from_toml(pt.Record({name: pt.Text(weight=weight)}).to_toml())
    assert again.attributes == {name: pt.Text(weight=weight)}


def test_toml_as_one_writes_it():
    model = pt.Record.from_toml(
        'missing = ["?", "-"]\n[attributes.name]\nkind = "text"\nweight = 0.5\n'
        f"agreement = {list(map(float, UNEVEN))}\n"
        '[attributes."*"]\nkind = "ignore"\n[attributes.job]\nkind="category"\nweight = 1\n'
        '[attributes.height]\nkind = "number"\nspread = 2\nmissing = ["-", "none"]\nseparator = "|"\n'
    )
    height = model.attributes["height"]
    assert height == pt.Number(spread=2.0, missing=("?", "-", "none"), separator="|")
    assert model.attributes == {
        "name": pt.Text(weight=0.5, agreement=UNEVEN, missing=("?", "-")),
        "*": None,
        "job": pt.Category(weight=1.0, missing=("?", "-")),
        "height": height,
    }
    assert model.rate == 2.0


NAME = "[attributes.name]\n"
BAD_TOML = {
    "no TOML": ("kind = = 3", "not TOML"),
    "empty": ("", "needs a table"),
    "no table": ("attributes = 3", "needs a table"),
    "another entry": ('colour = "red"\n' + NAME + 'kind = "text"', "unknown entries: colour"),
    "no kind": (NAME + "weight = 1.0", "'name' needs kind"),
    "an attribute that is no table": ("[attributes]\nname = 3", "'name' needs kind"),
    "kind that is no text": (NAME + "kind = 3", "'name' needs kind"),
    "unknown kind": (
        NAME + 'kind = "song"',
        r"kind 'song'; it must be one of 'category', .*'text', .*'ignore'",
    ),
    "unknown parameter": (
        NAME + 'kind = "text"\ncolour = 1',
        "text has no 'colour'; it has agreement, weight",
    ),
    "missing that is no list": (
        'missing = "-"\n' + NAME + 'kind = "text"',
        "missing must be texts in a list",
    ),
    "missing that is no text": (NAME + 'kind = "text"\nmissing = [0]', "missing must be texts in a list"),
    "separator that is no text": (NAME + 'kind = "text"\nseparator = 3', "separator must be a text"),
    "corpus": (NAME + 'kind = "text"\ncorpus = 1', "text has no 'corpus'"),
    "references": (NAME + 'kind = "text"\nreferences = ["a"]', "text has no 'references'"),
    "kin": (NAME + 'kind = "text"\nkin = 1', "text has no 'kin'"),
    "what there was once": (NAME + 'kind = "text"\ntheta = 1', "text has no 'theta'"),
    "one number for many": (NAME + 'kind = "text"\nagreement = 0.5', "agreement"),
    "too few numbers": (NAME + 'kind = "text"\nagreement = [0.5, 0.5]', "agreement of 'name' must be 8"),
    "no number among them": (NAME + 'kind = "text"\nagreement = ["x"]', "agreement must be finite numbers"),
    "a list for a number": (NAME + 'kind = "text"\nweight = [1.0]', "weight must be a finite number"),
    "text for a number": (NAME + 'kind = "text"\nweight = "1"', "weight must be a finite number"),
    "infinity": (NAME + 'kind = "text"\nweight = inf', "weight must be a finite number"),
    "bool for a number": (NAME + 'kind = "text"\nweight = true', "weight must be a finite number, got True"),
    "bad value": (NAME + 'kind = "text"\nweight = -1', "weight of 'name'"),
    "bad rate": ("rate = -1\n" + NAME + 'kind = "text"', "rate must be"),
    "all ignored": (NAME + 'kind = "ignore"', "not ignored"),
}


@pytest.mark.parametrize("case", BAD_TOML)
def test_bad_schemas_are_explained(case):
    text, message = BAD_TOML[case]
    with pytest.raises(ValueError, match=message):
        pt.Record.from_toml(text)


def numbered(n=200):
    """Fragments of many attributes, each with its kind."""
    rng = np.random.default_rng(0)
    first, last = (np.array([f"{letter}{k}" for k in range(150)]) for letter in ("f", "l"))
    found = []
    for k in range(n):
        one, other = str(rng.choice(first)), str(rng.choice(last))
        found.append(
            {
                "full name": f"{one.upper()} {other}",
                "first": one,
                "surname": other,
                "born": f"19{rng.integers(10, 99)}-{rng.integers(1, 13):02d}-{rng.integers(1, 29):02d}",
                "sex": str(rng.choice(["f", "m"])),
                "town": f"town {rng.integers(400)}",
                "height": float(rng.integers(150, 200)) / 100 if k else 2,
            }
        )
        if k % 10 == 0:
            found[-1] |= {"hobby": f"hobby {k}", "married": "2001-02-03"}
    return found


def test_kinds_are_inferred():
    found = pt.Record.infer(numbered())
    assert {name: None if a is None else a.kind for name, a in found.attributes.items()} == {
        "full name": "text",
        "first": "text",
        "surname": "text",
        "born": "date",
        "sex": "text",
        "town": "text",
        "height": "number",
        "hobby": "text",
        "married": "date",
        "*": "category",
    }
    assert found.presence is None


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1815-12-10"] * 5, pt.Date),
        (["1815-12-10"] * 19 + ["unknown"], pt.Date),
        (["1815-12-10"] * 18 + ["unknown"] * 2, pt.Text),
        (["1815"] * 5, pt.Text),  # may be a number of anything
        ([f"name {k}" for k in range(60)], pt.Text),
        (["f", "m"] * 60, pt.Text),
        ([], pt.Text),
        ([1.5, 2, 3.25], pt.Number),
        ([1, 2.0, 3], pt.Text),
        (["1.5", "2"], pt.Number),  # as CSV has them
        ([1.5, "2"], pt.Number),
        (["1.5", "2", "02.5"], pt.Text),  # of codes zeros are a part
        (["1.5", "2", "2 kg"], pt.Text),
        (["1815", "1816"], pt.Text),
        ([True, 1.5], pt.Text),
    ],
)
def test_kinds_of_values(values, kind):
    assert type(kind_of(values)) is kind


def test_what_cannot_be_read_gets_no_schema():
    with pytest.raises(ValueError, match="row 1, attribute 'x': must be text, a number or a date, not bytes"):
        pt.Record.infer([{"x": "a", "y": "b"}, {"x": b"c"}])


def test_what_databases_return_is_text():
    number, key = Decimal("1.50"), UUID(int=7)
    said = pt.Record({"a": pt.Text(), "b": None}).validate([{"a": [number, key], "b": object()}])
    assert said == [{"a": ["1.50", str(key)]}]


def test_attributes_are_checked_before_fragments():
    for wrong in ("ignore", pt.Text):
        with pytest.raises(TypeError, match="attribute 'b' must be"):
            pt.Record({"a": pt.Text(), "b": wrong}).fit_prior([{"a": "x", "b": "y"}])
    with pytest.raises(ValueError, match="weight of 'a'"):
        pt.Record({"a": pt.Text(weight=-1.0)}).fit_prior([{"a": "x"}])
    with pytest.raises(ValueError, match="columns of the same name"):
        pt.Record({"a": pt.Text()}).validate(pandas.DataFrame([["x", "y"]], columns=["a", "a"]))


def test_beside_a_single_attribute_others_may_come():
    found = pt.Record.infer([{"name": 1.5}, {"name": 2.5}])
    assert {name: kind.kind for name, kind in found.attributes.items()} == {"name": "number", "*": "category"}
    assert found.validate([{"x": 3}]) == [{"x": [3]}]


def test_a_schema_is_inferred_from_many_fragments_in_no_time():
    many = numbered(50) * 200
    began = time.process_time()
    assert pt.Record.infer(many).attributes.keys() == pt.Record.infer(many[:50]).attributes.keys()
    assert time.process_time() - began < 5.0


# ---------------------------------------------------------------------- shared data

HIDDEN = {"cluster_id", "entity_id", "record_id", "id"}


def read_fragments(name):
    """Fragments and true clusters of a shared data set."""
    folder = SHARED / "data" / name
    if not folder.is_dir():
        pytest.skip(f"no data at {folder}")
    if (folder / "fragments.jsonl").is_file():
        rows = [json.loads(line) for line in (folder / "fragments.jsonl").read_text("utf-8").splitlines()]
        return [row["properties"] for row in rows], [row["entity_id"] for row in rows]
    with gzip.open(folder / "records.csv.gz", "rt", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    said = [{key: value for key, value in row.items() if key not in HIDDEN} for row in rows]
    return said, [row["cluster_id"] for row in rows]


@pytest.mark.parametrize(("name", "floor"), [("kb50", 0.85), ("rldata500", 0.98)])
def test_shared_data(name, floor):
    said, truth = read_fragments(name)
    model = pt.Record.infer(said).fit_prior(said)
    sampler = pt.SplitSMC(model, n_particles=20, random_state=0).fit(said).refine(1)
    assert pt.bcubed(truth, sampler.labels_).f1 > floor


# ---------------------------------------------------------------------- what strangers gave


def test_a_schema_is_text_or_the_path_of_a_file(tmp_path):
    model = pt.Record({"name": pt.Text(), "born": pt.Date()})
    path = tmp_path / "schema.toml"
    path.write_text(model.to_toml(), encoding="utf-8")
    assert pt.Record.from_toml(path).to_toml() == model.to_toml()
    for wrong in (model.to_toml().encode(), None, {"attributes": {}}):
        with pytest.raises(TypeError, match=r"TOML as a str, or the pathlib\.Path of a file with it, got"):
            pt.Record.from_toml(wrong)


def test_ragged_rows_of_a_csv_file_are_named():
    rows = list(csv.DictReader(io.StringIO("name,born\nAda,1815\nBob,1900,London\n")))
    with pytest.raises(TypeError, match=r"row 1: \['London'\] has no attribute; .*csv.DictReader"):
        pt.Record.infer(rows)


@pytest.mark.parametrize("kind", [pt.Number, pt.Category, pt.Text, pt.Value, pt.Date])
def test_integers_without_end_are_refused(kind):
    model = pt.Record({"n": kind()})
    with pytest.raises(ValueError, match="row 1, attribute 'n': an integer of more than a thousand digits"):
        model.fit_prior([{"n": 1}, {"n": 10**5000}])


def test_large_integers():
    with pytest.raises(ValueError, match=r"attribute 'n': .* below 1e\+100, got 1000.*… of 401 digits"):
        pt.Record({"n": pt.Number()}).validate([{"n": 10**400}])
    sampler = pt.SplitSMC(pt.Record({"n": pt.Category()}), 1.0)
    assert sampler.fit_predict([{"n": 10**400}, {"n": 10**400}]).tolist() == [0, 0]


def test_batches_without_rows_are_refused_and_change_nothing():
    fragments = [{"name": "Ada"}, {"name": "Bob"}]
    records = pt.SplitSMC(pt.Record({"name": pt.Text()}), 1.0).fit(fragments)
    points = pt.SplitSMC(pt.Gaussian(), 1.0).fit(np.zeros((3, 2)))
    for sampler, message in ((records, "there is no fragment"), (points, "X has no rows")):
        before = sampler.labels_.tolist()
        for call in (sampler.partial_fit, sampler.predict_proba, sampler.fit):
            with pytest.raises(ValueError, match=message):
                call([])
        assert sampler.labels_.tolist() == before


def test_what_is_read_again_reads_the_same():
    model = pt.Record({"color": pt.Category(separator="; "), "year": pt.Number()})
    said = [
        {"color": "red; blue", "year": "1"},
        {"color": ["red; blue", "red"], "year": 1},
        {"color": "red; blue"},
    ]
    first, second, third = model.validate(said)
    assert first["color"] == third["color"] == ["red", "blue"]
    assert second["color"] == ["red", "blue", "red"]
    assert first.pairs[:2] == third.pairs == [(0, "red"), (0, "blue")]
    assert (first["year"], second["year"]) == (["1"], [1])
