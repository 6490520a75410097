"""Files: what is refused, what is left behind, and that nothing in them is executed."""

import ast
import hashlib
import json
import os
import pickle
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.special import gammaln

import partita as pt
from partita.smc import storage
from partita.smc.packing import PACKED
from partita.smc.storage import FileError

from . import oracle


class Poisson(pt.Model):
    """A user's own model: the example of `partita.Model`."""

    def __init__(self, shape=1.0, rate=1.0):
        self.shape, self.rate = shape, rate

    def statistics(self, X):
        return np.column_stack([X[:, 0], gammaln(X[:, 0] + 1.0)])

    def log_marginal(self, totals, sizes):
        shape, rate = self.shape + totals[:, 0], self.rate + sizes
        return (
            gammaln(shape)
            - gammaln(self.shape)
            - totals[:, 1]
            + self.shape * np.log(self.rate)
            - shape * np.log(rate)
        )


class OtherModel(Poisson):
    """A user's model that the file was not made with."""


RNG = np.random.default_rng(1)
LABEL = RNG.integers(0, 6, 50)
REAL = 5.0 * RNG.normal(size=(6, 2))[LABEL] + RNG.normal(size=(50, 2))
CODES = np.where(RNG.random((50, 4)) < 0.7, RNG.integers(0, 3, (6, 4))[LABEL], RNG.integers(0, 3, (50, 4)))
BITS = (RNG.random((50, 6)) < RNG.beta(0.4, 0.4, (6, 6))[LABEL]).astype(int)
COUNTS = RNG.poisson(np.array([1, 5, 12, 25, 50, 90])[LABEL])[:, None]


def fitted(kind=pt.SplitSMC, **parameters):
    parameters = {"n_particles": 10, "rejuvenation": 1} | parameters if kind is not pt.Greedy else parameters
    return kind(pt.Gaussian(rate=2.0, precision=0.04), alpha=1.0, random_state=3, **parameters).fit(REAL)


def answers(sampler):
    posterior = sampler.posterior_
    return [
        sampler.labels_.tolist(),
        posterior.log_density(),
        [
            (s.observations.tolist(), s.partitions.tolist(), s.probabilities.tolist())
            for s in posterior.subproblems
        ],
    ]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.partita"


@pytest.fixture
def saved(path):
    """A file, and all of its bytes."""
    fitted().save(path)
    return path, path.read_bytes()


def sealed(body):
    """With a checksum that is right."""
    return body + hashlib.sha256(body).digest()


def packed(header, arrays, version=storage.VERSION, extra=b""):
    """A file from its parts, as the module's docstring says, with a checksum that is right."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    parts = [np.ascontiguousarray(arrays[name], dtype).tobytes() for name, dtype in PACKED.items()]
    start = [storage.MAGIC, bytes([version]), len(text).to_bytes(8, "little"), text]
    return sealed(b"".join([*start, *parts, extra]))


def crafted(path, edit):
    """Change a file's header and arrays, and make its checksum right again."""
    header, arrays = storage.read(path)
    edit(header, arrays)
    header["arrays"] = {name: list(array.shape) for name, array in arrays.items()}
    path.write_bytes(packed(header, arrays))


# ---------------------------------------------------------------------- what a file keeps


@pytest.mark.parametrize("kind", [pt.SplitSMC, pt.SMC, pt.Greedy])
def test_a_loaded_sampler_is_the_saved_one(kind, path):
    sampler = fitted(kind)
    before = answers(sampler)
    sampler.save(path)
    loaded = kind.load(path)
    assert type(loaded) is kind
    assert answers(loaded) == answers(sampler) == before
    assert loaded.n_features_in_ == 2
    ours, theirs = sampler.get_params(), loaded.get_params()
    assert str(ours.pop("model")) == str(theirs.pop("model"))
    assert ours == theirs
    assert answers(loaded.fit(REAL)) == before


def test_the_same_state_makes_the_same_file(path, tmp_path):
    fitted().save(path)
    fitted().save(tmp_path / "again.partita")
    pt.SplitSMC.load(path).save(tmp_path / "loaded.partita")
    assert path.read_bytes() == (tmp_path / "again.partita").read_bytes()
    assert path.read_bytes() == (tmp_path / "loaded.partita").read_bytes()


@pytest.mark.parametrize(
    ("model", "X"),
    [
        (pt.Gaussian(shape=np.float64(1.5), rate=np.array([0.1, 1 / 3]), mean=[0.1, 2.0], precision=1), REAL),
        (pt.MultivariateGaussian(freedom=5.5, scale=np.array([[1.0, 0.3], [0.3, 2.0]]), mean=1), REAL),
        (pt.MultivariateGaussian(), REAL),
        (pt.Categorical(n_categories=3, concentration=0.1), CODES),
        (pt.Categorical(n_categories=np.array([3, 4, 3, 5]), concentration=0.3), CODES),
        (pt.Categorical([3, 3, 3, 3], [np.array([0.1, 0.2, 0.3])] * 4), CODES),
        (pt.Bernoulli(a=np.full(6, 0.3), b=2), BITS),
    ],
)
def test_built_in_models_are_stored(model, X, path):
    sampler = pt.SplitSMC(model, alpha=np.float32(1.5), n_particles=np.int64(10)).fit(X[:40])
    sampler.save(path)
    for loaded in (pt.SplitSMC.load(path), pt.SplitSMC.load(path, model=model)):
        assert answers(loaded) == answers(sampler)
        for name, value in model.get_params().items():
            stored = loaded.model.get_params()[name]
            if isinstance(value, list) and isinstance(value[0], np.ndarray):
                assert all(np.array_equal(a, b) for a, b in zip(value, stored, strict=True))
            else:
                assert np.array_equal(value, stored)
        loaded.partial_fit(X[40:])
        assert answers(loaded) == answers(pt.SplitSMC(model, alpha=np.float32(1.5), n_particles=10).fit(X))


def test_a_model_learnt_from_the_data_is_stored(path):
    sampler = pt.SplitSMC(alpha=1.0, n_particles=5).fit(REAL[:30])
    sampler.save(path)
    loaded = pt.SplitSMC.load(path)
    assert loaded.model is None
    assert answers(loaded.partial_fit(REAL[30:])) == answers(sampler.partial_fit(REAL[30:]))
    for name, value in sampler.model_.get_params().items():
        assert np.array_equal(value, loaded.model_.get_params()[name])


@pytest.mark.parametrize("seed", [None, 7, np.int64(7), np.uint32(7)])
def test_the_seed_is_stored(seed, path):
    fitted().set_params(random_state=seed).fit(REAL).save(path)
    assert pt.SplitSMC.load(path).random_state == seed


def test_names_of_features_are_stored(path):
    sampler = fitted()
    sampler.feature_names_in_ = np.array(["length", "breite in µm"], dtype=object)
    sampler.save(path)
    loaded = pt.SplitSMC.load(path)
    assert loaded.feature_names_in_.tolist() == ["length", "breite in µm"]
    assert loaded.feature_names_in_.dtype == object


def test_parameters_changed_after_the_fit_do_not_spoil_the_file(path):
    """They count from the next fit on; the stream goes on as it began, through a file or not."""
    sampler = fitted().set_params(n_particles=3, resampling="multinomial", rejuvenation=0)
    sampler.save(path)
    loaded = pt.SplitSMC.load(path)
    assert loaded.n_particles == 3
    assert answers(loaded.partial_fit(REAL[:20])) == answers(sampler.partial_fit(REAL[:20]))
    assert answers(loaded.fit(REAL)) == answers(sampler.fit(REAL))


def test_a_path_may_be_a_string(path):
    sampler = fitted()
    sampler.save(str(path))
    assert answers(pt.SplitSMC.load(str(path))) == answers(sampler)


def test_another_process_reads_the_same(path):
    sampler = fitted()
    sampler.save(path)
    code = (
        "import sys, json, partita as pt; s = pt.SplitSMC.load(sys.argv[1]); s.partial_fit([[0.5, 1.5]]); "
        "print(json.dumps([s.labels_.tolist(), s.posterior_.log_density()]))"
    )
    run = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    sampler.partial_fit([[0.5, 1.5]])
    assert json.loads(run.stdout) == [sampler.labels_.tolist(), sampler.posterior_.log_density()]


def test_a_file_says_what_it_is(saved):
    path, raw = saved
    assert raw.startswith(b"PARTITA")
    header, arrays = storage.read(path)
    assert raw[len(storage.MAGIC)] == storage.VERSION
    assert header["sampler"] == "SplitSMC"
    assert header["model"] == "Gaussian"
    assert arrays["data"].shape == (50, 2)
    assert raw == packed(header, arrays)  # so the crafted files below differ in what was changed alone


# ---------------------------------------------------------------------- damaged and foreign files


def test_truncation_at_any_length_is_refused(saved):
    path, raw = saved
    lengths = {*range(120), *range(len(raw) - 80, len(raw)), *range(0, len(raw), 97)}
    for length in sorted(lengths):
        path.write_bytes(raw[:length])
        with pytest.raises(FileError, match=r"run\.partita (is damaged.*truncated|is not a saved Partita)"):
            pt.SplitSMC.load(path)


def test_any_changed_byte_is_refused(saved):
    path, raw = saved
    places = {*range(200), *range(len(raw) - 60, len(raw)), *range(0, len(raw), 61)}
    for place in sorted(places):
        for flip in (1, 0x80):
            changed = bytearray(raw)
            changed[place] ^= flip
            path.write_bytes(changed)
            with pytest.raises(FileError, match=r"is (damaged|not a saved Partita)"):
                pt.SplitSMC.load(path)


@pytest.mark.parametrize("extra", [b"\0", b"\n", b"PARTITA\x01" * 9])
def test_a_file_with_something_appended_is_refused(saved, extra):
    path, raw = saved
    path.write_bytes(raw + extra)
    with pytest.raises(FileError, match="damaged"):
        pt.SplitSMC.load(path)
    path.write_bytes(raw)
    header, arrays = storage.read(path)
    path.write_bytes(packed(header, arrays, extra=extra))  # before the checksum
    with pytest.raises(FileError, match="damaged"):
        pt.SplitSMC.load(path)


class Trap:
    """Raises an error wherever it is unpickled."""

    def __reduce__(self):
        return exec, ("raise AssertionError('the file was executed')",)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x89PNG\r\n\x1a\n" + bytes(200),
        b"\x93NUMPY\x01\x00" + bytes(200),
        b"PK\x03\x04" + bytes(200),
        b"SQLite format 3\0" + bytes(200),
        b"label\n0\n1\n",
        pickle.dumps({"sampler": "SplitSMC", "data": list(range(100))}),
        pickle.dumps(Trap()),
        sealed(bytes(500)),
        sealed(pickle.dumps(Trap())),
    ],
)
def test_foreign_files_are_refused(path, content):
    path.write_bytes(content)
    with pytest.raises(FileError, match=r"run\.partita is not a saved Partita sampler"):
        pt.SplitSMC.load(path)


def test_a_file_error_is_a_value_error():
    assert issubclass(FileError, ValueError)


def test_a_missing_file_is_missing(path):
    with pytest.raises(FileNotFoundError):
        pt.SplitSMC.load(path)


@pytest.mark.parametrize("version", [0, 2, 99])
def test_another_version_is_refused_whatever_else_is_in_it(saved, version):
    path, _ = saved
    header, arrays = storage.read(path)
    start = storage.MAGIC + bytes([version])
    for content in (packed(header, arrays, version), sealed(start + bytes(40)), sealed(start + b"new" * 99)):
        path.write_bytes(content)
        with pytest.raises(FileError, match=f"format version {version}.*reads version {storage.VERSION}"):
            pt.SplitSMC.load(path)


@pytest.mark.parametrize(
    ("kind", "other"),
    [(pt.SplitSMC, pt.SMC), (pt.SMC, pt.SplitSMC), (pt.Greedy, pt.SplitSMC), (pt.SMC, pt.Greedy)],
)
def test_the_class_must_be_that_of_the_file(kind, other, path):
    fitted(kind).save(path)
    with pytest.raises(FileError, match=rf"holds a {kind.__name__}: load it with {kind.__name__}\.load"):
        other.load(path)


# ---------------------------------------------------------------------- models


def test_a_users_model_must_be_given(path):
    sampler = pt.SplitSMC(Poisson(1.0, 0.05), 1.0, 10).fit(COUNTS)
    sampler.save(path)
    with pytest.raises(FileError, match=r"model of your own.*model=Poisson\("):
        pt.SplitSMC.load(path)
    with pytest.raises(FileError, match="Poisson, not OtherModel"):
        pt.SplitSMC.load(path, model=OtherModel(1.0, 0.05))
    with pytest.raises(FileError, match="Poisson, not Gaussian"):
        pt.SplitSMC.load(path, model=pt.Gaussian())
    assert answers(pt.SplitSMC.load(path, model=Poisson(1.0, 0.05))) == answers(sampler)


@pytest.mark.parametrize("wrong", [Poisson(1.0, 0.06), Poisson(2.0, 0.05)])
def test_a_users_model_must_have_the_same_hyperparameters(wrong, path):
    pt.SplitSMC(Poisson(1.0, 0.05), 1.0, 10).fit(COUNTS).save(path)
    with pytest.raises(FileError, match="hyperparameters"):
        pt.SplitSMC.load(path, model=wrong)


def test_a_users_model_may_have_the_name_of_a_built_in_one(path):
    namesake = type("Gaussian", (Poisson,), {"__init__": Poisson.__init__})
    sampler = pt.SplitSMC(namesake(1.0, 0.05), 1.0, 10).fit(COUNTS)
    sampler.save(path)
    with pytest.raises(FileError, match="model of your own"):
        pt.SplitSMC.load(path)
    with pytest.raises(FileError, match="model"):
        pt.SplitSMC.load(path, model=pt.Gaussian())
    assert answers(pt.SplitSMC.load(path, model=namesake(1.0, 0.05))) == answers(sampler)


TWO_RATES = pt.Gaussian(rate=[1.0, 2.0])


@pytest.mark.parametrize(
    ("right", "wrong", "X"),
    [
        (pt.Gaussian(), pt.Gaussian(shape=2.5), REAL),
        (pt.Gaussian(), pt.Gaussian(rate=0.4), REAL),
        (pt.Gaussian(), pt.Gaussian(precision=0.02), REAL),
        (pt.Gaussian(), pt.Gaussian(mean=1.0), REAL),
        (TWO_RATES, pt.Gaussian(rate=[2.0, 1.0]), REAL),
        (TWO_RATES, pt.MultivariateGaussian(), REAL),
        (TWO_RATES, pt.Gaussian(rate=[1.0, 2.0, 3.0]), REAL),
        (pt.MultivariateGaussian(), pt.MultivariateGaussian(freedom=7.0), REAL),
        (pt.MultivariateGaussian(), pt.MultivariateGaussian(scale=2.0), REAL),
        (pt.MultivariateGaussian(), pt.MultivariateGaussian(scale=np.diag([0.5, 2.0])), REAL),
        (pt.MultivariateGaussian(), pt.MultivariateGaussian(mean=[0.0, 1.0]), REAL),
        (pt.Categorical(3), pt.Categorical(4), CODES),
        (pt.Categorical(3), pt.Categorical(3, concentration=0.5), CODES),
        (pt.Categorical([3, 3, 4, 3]), pt.Categorical([3, 3, 3, 4]), CODES),
        (pt.Bernoulli(), pt.Bernoulli(a=0.5), BITS),
        (pt.Bernoulli(), pt.Bernoulli(a=2.0, b=2.0), BITS),
    ],
)
def test_a_model_with_other_hyperparameters_is_refused(right, wrong, X, path):
    pt.SplitSMC(right, 1.0, 10).fit(X).save(path)
    with pytest.raises(FileError, match=r"run\.partita.*(hyperparameters|model)"):
        pt.SplitSMC.load(path, model=wrong)
    pt.SplitSMC.load(path, model=right)


@pytest.mark.parametrize("model", [3, "Gaussian", pt.Gaussian])
def test_a_model_that_is_none_is_refused(saved, model):
    with pytest.raises((TypeError, FileError), match="model"):
        pt.SplitSMC.load(saved[0], model=model)


# ---------------------------------------------------------------------- crafted files


def refused(path, edit, words="damaged"):
    crafted(path, edit)
    with pytest.raises(FileError, match=words):
        pt.SplitSMC.load(path)


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b"null", b"3", b'"header"', b"\xff\xfe", b"{}", b"{" * 100_000]
)
def test_a_header_that_is_none(saved, text):
    path, _ = saved
    _, arrays = storage.read(path)
    path.write_bytes(packed(text, arrays))
    with pytest.raises(FileError, match=r"run\.partita"):
        pt.SplitSMC.load(path)


@pytest.mark.parametrize("length", [0, 1, 2**20, 2**40, 2**63, 2**64 - 1])
def test_a_wrong_length_of_the_header(saved, length):
    path, raw = saved
    path.write_bytes(sealed(raw[:8] + length.to_bytes(8, "little") + raw[16:-32]))
    with pytest.raises(FileError, match=r"run\.partita"):
        pt.SplitSMC.load(path)


KEYS = [
    "sampler",
    "parameters",
    "model",
    "model_parameters",
    "learnt_model",
    "n_features",
    "feature_names",
    "next_alpha",
    "settings",
    "log_alpha",
    "random",
    "arrays",
]


@pytest.mark.parametrize("key", KEYS)
def test_a_header_that_lacks_something(saved, key):
    path, _ = saved
    header, arrays = storage.read(path)
    del header[key]
    path.write_bytes(packed(header, arrays))
    with pytest.raises(FileError, match=r"run\.partita"):
        pt.SplitSMC.load(path)


def test_the_keys_of_the_header_are_known(saved):
    assert set(storage.read(saved[0])[0]) >= set(KEYS)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("sampler", None),
        ("sampler", ["SplitSMC"]),
        ("parameters", None),
        ("parameters", {"alpha": 1.0, "particles": 3}),
        ("parameters", {"model": None}),
        ("model", None),
        ("model", ["Gaussian"]),
        ("model_parameters", None),
        ("model_parameters", {"colour": "red"}),
        ("model_parameters", {"shape": -1.0}),
        ("model_parameters", {"shape": "large"}),
        ("n_features", 0),
        ("n_features", -1),
        ("n_features", 1),
        ("n_features", 3),
        ("n_features", 2.0),
        ("n_features", "2"),
        ("n_features", None),
        ("feature_names", ["one"]),
        ("feature_names", 3),
        ("next_alpha", None),
        ("next_alpha", -1),
        ("next_alpha", 2.5),
        ("next_alpha", 2**70),
        ("settings", None),
        ("settings", [10, 0, 0, 1, 1]),
        ("settings", [10, 0, 0, 1, 1, 1, 0, 0]),
        ("settings", [0, 0, 0, 1, 1, 1, 0]),
        ("settings", [-1, 0, 0, 1, 1, 1, 0]),
        ("settings", [2**40, 0, 0, 1, 1, 1, 0]),
        ("settings", [2**70, 0, 0, 1, 1, 1, 0]),
        ("settings", ["10", 0, 0, 1, 1, 1, 0]),
        ("settings", [10.5, 0, 0, 1, 1, 1, 0]),
        ("settings", [10, 4, 0, 0, 1, 1, 0]),
        ("settings", [10, -1, 0, 0, 1, 1, 0]),
        ("settings", [10, 1, 0, 1, 1, 1, 0]),
        ("settings", [10, 0, 2, 1, 1, 1, 0]),
        ("settings", [10, 0, 0, 1, 1, -1, 0]),
        ("log_alpha", None),
        ("log_alpha", "high"),
        ("log_alpha", "nan"),
        ("log_alpha", "inf"),
        ("random", None),
        ("random", "x"),
        ("random", -1),
        ("random", 2**64),
        ("random", 1.5),
        ("arrays", None),
        ("arrays", {}),
    ],
)
def test_a_header_with_something_wrong(saved, key, value):
    path, _ = saved
    header, arrays = storage.read(path)
    header[key] = value
    path.write_bytes(packed(header, arrays))
    with pytest.raises(FileError, match=r"run\.partita"):
        pt.SplitSMC.load(path)


@pytest.mark.parametrize(
    "shape", [None, [], [-1], [-1, 2], [0], [2**40], [2**32, 2**32], [2**64], ["2"], [1.5], [1, 1, 1], 3]
)
def test_a_wrong_shape(saved, shape):
    path, _ = saved
    for name in PACKED:
        header, arrays = storage.read(path)
        header["arrays"][name] = shape
        wrong = path.with_name(f"{name}.partita")
        wrong.write_bytes(packed(header, arrays))
        with pytest.raises(FileError, match=name):
            pt.SplitSMC.load(wrong)


@pytest.mark.parametrize("name", ["members", "sizes", "shapes", "free_slots", "cells"])
@pytest.mark.parametrize("value", [-1, -(2**30), 2**30, 0, 10**6, "+1"])
def test_a_wrong_number_anywhere_is_refused(path, name, value):
    """One at a time, in every entry."""
    header, arrays = save_with_free_slots(path)
    numbers = arrays[name].ravel()
    for entry, old in enumerate(numbers.tolist()):
        new = old + 1 if value == "+1" else value
        if new == old:
            continue
        changed = numbers.copy()
        changed[entry] = new
        path.write_bytes(packed(header, arrays | {name: changed.reshape(arrays[name].shape)}))
        try:
            loaded = pt.SplitSMC.load(path)
        except FileError as error:
            assert "damaged" in str(error)  # noqa: PT017
        else:  # it may be another state, but must be one
            assert name == "cells"
            oracle.check_state(loaded._engine.state)


def save_with_free_slots(path):
    """A sampler that had doubts and lost them: its file has two or more free slots."""
    for seed in range(100):
        rng = np.random.default_rng(seed)
        doubts = (
            rng.permutation(np.linspace(-9.0, 9.0, 10)),
            rng.normal(0.0, 4.0, 20),
            rng.normal(0.0, 2.5, 20),
        )
        sampler = pt.SplitSMC(pt.Gaussian(rate=1.0, precision=0.05), 0.5, 4)
        sampler.fit(np.concatenate(doubts)[:, None]).save(path)
        header, arrays = storage.read(path)
        if len(arrays["free_slots"]) > 1 and len(arrays["shapes"]) > 1:
            return header, arrays
    raise AssertionError("no such sampler; change the data")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["data", "weights", "statistics", "scores"])
def test_numbers_that_are_none(saved, name, value):
    def edit(header, arrays):
        arrays[name].flat[5] = value

    refused(saved[0], edit)


@pytest.mark.parametrize("change", [0.1, -0.1, 1e-3])
def test_weights_must_be_normalised(saved, change):
    def edit(header, arrays):
        arrays["weights"] += change

    refused(saved[0], edit)


@pytest.mark.parametrize("name", PACKED)
def test_arrays_of_another_length(path, name):
    def longer(header, arrays):
        more = np.zeros((1, *arrays[name].shape[1:]), arrays[name].dtype)
        arrays[name] = np.concatenate([arrays[name], more])

    def shorter(header, arrays):
        assert len(arrays[name])
        arrays[name] = arrays[name][:-1]

    for edit in (longer, shorter):
        save_with_free_slots(path)
        refused(path, edit)


@pytest.mark.parametrize("columns", [0, 1, 3, 50])
def test_data_of_another_width(saved, columns):
    def edit(header, arrays):
        arrays["data"] = np.zeros((50, columns))

    refused(saved[0], edit, "run.partita")


@pytest.mark.parametrize("code", [-1.0, 3.0, 1000.0, 1e18, 0.5, np.nan])
def test_codes_out_of_range(path, code):
    """The kernels look levels up by these."""

    def edit(header, arrays):
        arrays["data"][9, 2] = code

    pt.SplitSMC(pt.Categorical(3), 1.0, 10).fit(CODES).save(path)
    refused(path, edit)


@pytest.mark.parametrize("value", [-1.0, 2.0, 0.5])
def test_bits_out_of_range(path, value):
    def edit(header, arrays):
        arrays["data"][9, 2] = value

    pt.SplitSMC(pt.Bernoulli(), 1.0, 10).fit(BITS).save(path)
    refused(path, edit)


def test_weights_must_descend(saved):
    def edit(header, arrays):
        rows = arrays["shapes"][:, 1]
        assert rows[0] > 1
        arrays["weights"][: rows[0]] = arrays["weights"][: rows[0]][::-1]

    refused(saved[0], edit)


def test_more_rows_than_particles(saved):
    refused(saved[0], lambda header, arrays: header["settings"].__setitem__(0, 3))


def test_two_particles_that_are_one(path):
    """Under two sets of numbers for the same clusters."""

    def edit(header, arrays):
        _, _, columns, clusters = arrays["shapes"][0]
        first = arrays["cells"][:columns]
        arrays["cells"] = np.concatenate([first, first + clusters])
        arrays["weights"] = np.log([0.5, 0.5])
        header["settings"][0] = 2
        arrays["shapes"][0, 1:] = 2, columns, 2 * clusters
        for name in ("scores", "statistics"):
            arrays[name] = np.concatenate([arrays[name]] * 2)

    sampler = pt.SMC(pt.Gaussian(rate=1.0, precision=0.05), 1.0, 1).fit([[0.0], [9.0], [0.1]])
    sampler.save(path)
    crafted(path, edit)
    with pytest.raises(FileError, match="cells"):
        pt.SMC.load(path)


def test_slots_decide_ties_after_loading_too(path):
    """Discrete data have many equal weights; a stream through a file must break them as one without."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (120, 3))
    whole = pt.SplitSMC(pt.Categorical(2, 0.3), 2.0, 8).fit(X)
    parts = pt.SplitSMC(pt.Categorical(2, 0.3), 2.0, 8).fit(X[:1])
    for x in X[1:]:
        parts.save(path)
        parts = pt.SplitSMC.load(path).partial_fit([x])
    assert answers(parts) == answers(whole)


# ---------------------------------------------------------------------- writing


def test_saving_into_a_missing_folder_leaves_nothing_behind(tmp_path):
    sampler = fitted()
    before = answers(sampler)
    with pytest.raises(FileNotFoundError):
        sampler.save(tmp_path / "missing" / "run.partita")
    assert not list(tmp_path.iterdir())
    assert answers(sampler) == before


def test_saving_over_a_folder_leaves_nothing_behind(tmp_path):
    (tmp_path / "run.partita").mkdir()
    with pytest.raises(OSError, match=r"run\.partita"):
        fitted().save(tmp_path / "run.partita")
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.partita"]
    assert not list((tmp_path / "run.partita").iterdir())


def test_a_disk_that_is_full_spares_the_old_file(saved):
    """Simulated by a limit on the size of files."""
    path, raw = saved
    larger = fitted().partial_fit(REAL)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            larger.save(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == raw
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    larger.save(path)
    assert answers(pt.SplitSMC.load(path)) == answers(larger)


def test_saving_over_a_file_replaces_it_in_one_step(saved):
    """Who has the old file open goes on to read the old one, whole."""
    path, raw = saved
    larger = fitted().partial_fit(REAL)
    with path.open("rb") as reader:
        start = reader.read(100)
        larger.save(path)
        assert start + reader.read() == raw
    assert path.read_bytes() != raw
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_a_name_of_any_kind(tmp_path):
    sampler = fitted()
    for name in ("run", "a b.c.d", "läuft.partita", ".hidden"):
        sampler.save(tmp_path / name)
        assert answers(pt.SplitSMC.load(tmp_path / name)) == answers(sampler)
    assert len(list(tmp_path.iterdir())) == 4


def test_saving_follows_no_leftover_of_another_process(saved, tmp_path):
    """A partial file of a process that died is in nobody's way."""
    path, _ = saved
    leftover = path.with_name(f"{path.name}.{os.getpid()}.partial")
    leftover.write_bytes(b"half a file")
    fitted().save(path)
    assert answers(pt.SplitSMC.load(path)) == answers(fitted())


# ---------------------------------------------------------------------- nothing is executed

SOURCES = sorted(Path(pt.__file__).parent.rglob("*.py"))
FORBIDDEN = {
    "pickle",
    "cPickle",
    "_pickle",
    "dill",
    "cloudpickle",
    "joblib",
    "shelve",
    "marshal",
    "jsonpickle",
}


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_no_pickle_anywhere(source):
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Import):
            names = {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names = {(node.module or "").split(".")[0], *(alias.name for alias in node.names)}
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in {"eval", "exec", "compile"}, f"{source.name}:{node.lineno}"
            names = {arg.value for arg in node.args[:1] if isinstance(arg, ast.Constant)}
        elif isinstance(node, ast.keyword):
            assert node.arg != "allow_pickle", f"{source.name}:{node.value.lineno}"
            continue
        elif isinstance(node, ast.Attribute):
            names = {node.attr}
        else:
            continue
        assert not FORBIDDEN & names, f"{source.name}:{getattr(node, 'lineno', '?')}"


def test_the_sources_were_found():
    assert {"storage.py", "sampler.py", "__init__.py"} <= {source.name for source in SOURCES}
