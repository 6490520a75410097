"""Files: what is refused."""

import pickle

import numpy as np
import pytest

import partita as pt
from partita.smc.files import storage
from partita.smc.files.packing import PACKED
from partita.smc.files.storage import FileError
from tests.helpers import oracle
from tests.helpers.files import BITS, CODES, crafted, fitted, packed, sealed
from tests.helpers.streams import answers

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


@pytest.mark.parametrize("version", [0, storage.VERSION + 1, 99])
def test_another_version_is_refused_whatever_else_is_in_it(saved, version):
    path, _ = saved
    header, arrays = storage.read(path)
    start = storage.MAGIC + bytes([version])
    for content in (packed(header, arrays, version), sealed(start + bytes(40)), sealed(start + b"new" * 99)):
        path.write_bytes(content)
        with pytest.raises(
            FileError, match=f"format version {version}.*reads versions 1 to {storage.VERSION}"
        ):
            pt.SplitSMC.load(path)


@pytest.mark.parametrize(
    ("kind", "other"),
    [(pt.SplitSMC, pt.SMC), (pt.SMC, pt.SplitSMC), (pt.Greedy, pt.SplitSMC), (pt.SMC, pt.Greedy)],
)
def test_the_class_must_be_that_of_the_file(kind, other, path):
    fitted(kind).save(path)
    with pytest.raises(FileError, match=rf"holds a {kind.__name__}: load it with {kind.__name__}\.load"):
        other.load(path)


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
        ("settings", [10, 0, 0, 1, 1, 1, 0, 0, 0]),
        ("settings", [0, 0, 0, 1, 1, 1, 0, 0]),
        ("settings", [-1, 0, 0, 1, 1, 1, 0, 0]),
        ("settings", [2**40, 0, 0, 1, 1, 1, 0, 0]),
        ("settings", [2**70, 0, 0, 1, 1, 1, 0, 0]),
        ("settings", ["10", 0, 0, 1, 1, 1, 0, 0]),
        ("settings", [10.5, 0, 0, 1, 1, 1, 0, 0]),
        ("settings", [10, 4, 0, 0, 1, 1, 0, 0]),
        ("settings", [10, -1, 0, 0, 1, 1, 0, 0]),
        ("settings", [10, 1, 0, 1, 1, 1, 0, 0]),
        ("settings", [10, 0, 2, 1, 1, 1, 0, 0]),
        ("settings", [10, 0, 0, 1, 1, -1, 0, 0]),
        ("settings", [10, 0, 0, 1, 1, 1, 0, -1]),
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
def test_a_wrong_shape(path, shape):
    save_with_free_slots(path)
    for name in PACKED:
        header, arrays = storage.read(path)
        header["arrays"][name] = shape
        wrong = path.with_name(f"{name}.partita")
        wrong.write_bytes(packed(header, arrays))
        with pytest.raises(FileError, match=name):
            pt.SplitSMC.load(wrong)


@pytest.mark.parametrize("name", ["members", "sizes", "shapes", "free_slots", "cells", "key_counts"])
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
    """A sampler that had doubts and lost them: its file has two or more free slots, and it has keys."""
    for seed in range(100):
        rng = np.random.default_rng(seed)
        doubts = (
            rng.permutation(np.linspace(-9.0, 9.0, 10)),
            rng.normal(0.0, 4.0, 20),
            rng.normal(0.0, 2.5, 20),
        )
        sampler = pt.SplitSMC(pt.Gaussian(rate=1.0, precision=0.05), 0.5, 4, keys="auto")
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
