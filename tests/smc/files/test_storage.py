"""Files: what is kept, what is left behind, and that nothing in them is executed."""

import ast
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import partita as pt
from partita.smc.files import storage
from partita.smc.files.storage import FileError
from tests.helpers.files import BITS, CODES, COUNTS, REAL, fitted, packed
from tests.helpers.oracle import Poisson
from tests.helpers.streams import answers


class OtherModel(Poisson):
    """A user's model that the file was not made with."""


class Positive(pt.Gaussian):
    """A user's compiled model of logarithms, for which zeros are no observations."""

    def encode(self, X):
        if (X <= 0.0).any():
            raise ValueError("sizes are above 0")
        return super().encode(np.log(X))


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


def test_a_model_of_which_a_row_of_zeros_is_no_observation(path):
    X = np.array([[1.0, 2.0], [1.1, 2.1], [50.0, 0.1]])
    sampler = pt.SplitSMC(Positive(), alpha=1.0, n_particles=10).fit(X)
    sampler.save(path)
    loaded = pt.SplitSMC.load(path, model=Positive())
    assert answers(loaded) == answers(sampler)
    assert answers(loaded.partial_fit(X)) == answers(sampler.partial_fit(X))


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
            refused = isinstance(node.value, ast.Constant) and node.value.value is False
            assert node.arg != "allow_pickle" or refused, f"{source.name}:{node.value.lineno}"
            continue
        elif isinstance(node, ast.Attribute):
            names = {node.attr}
        else:
            continue
        assert not FORBIDDEN & names, f"{source.name}:{getattr(node, 'lineno', '?')}"


def test_the_sources_were_found():
    assert {"storage.py", "sampler.py", "__init__.py"} <= {source.name for source in SOURCES}
