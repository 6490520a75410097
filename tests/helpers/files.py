"""Saved samplers, and files crafted from them."""

import hashlib
import json
from pathlib import Path

import numpy as np

import partita as pt
from partita.smc.files import storage
from partita.smc.files.packing import PACKED

ROOT = Path(__file__).resolve().parents[2]  # of the repository
RNG = np.random.default_rng(1)
LABEL = RNG.integers(0, 6, 50)
REAL = 5.0 * RNG.normal(size=(6, 2))[LABEL] + RNG.normal(size=(50, 2))
CODES = np.where(RNG.random((50, 4)) < 0.7, RNG.integers(0, 3, (6, 4))[LABEL], RNG.integers(0, 3, (50, 4)))
BITS = (RNG.random((50, 6)) < RNG.beta(0.4, 0.4, (6, 6))[LABEL]).astype(int)
COUNTS = RNG.poisson(np.array([1, 5, 12, 25, 50, 90])[LABEL])[:, None]


def fitted(kind=pt.SplitSMC, **parameters):
    parameters = {"n_particles": 10, "rejuvenation": 1} | parameters if kind is not pt.Greedy else parameters
    return kind(pt.Gaussian(rate=2.0, precision=0.04), alpha=1.0, random_state=3, **parameters).fit(REAL)


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
