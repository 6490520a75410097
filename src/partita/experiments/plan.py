"""What an experiment runs: the data, their orders, the model, and every method with its settings."""

from __future__ import annotations

import csv
import hashlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import partita as pt
from partita._typing import Floats, Integers

SPLIT, SMC, GREEDY = "split SMC", "SMC", "greedy"
REFINED, GIBBS, AGGLOMERATIVE = "split SMC, refined", "Gibbs", "agglomerative"
METHODS = (GREEDY, SMC, SPLIT, REFINED, GIBBS, AGGLOMERATIVE)
ONLINE = (GREEDY, SMC, SPLIT)


class Setting(NamedTuple):
    """One method with one size: of particles, of a batch of pairs, or None where it has none."""

    method: str
    size: int | None = None
    sweeps: int = 0  # of refinement, or of Gibbs without improvement before it stops

    @property
    def name(self) -> str:
        """The method, and its size where it has one."""
        unit = "batch" if self.method == AGGLOMERATIVE else "m"
        return self.method if self.size is None else f"{self.method}, {unit}={self.size}"


class Published(NamedTuple):
    """A row of the paper's Table 1: means, standard deviations and minutes."""

    log_density: float
    log_density_sd: float
    f1: float
    f1_sd: float
    minutes: float


class Experiment(NamedTuple):
    """Everything that decides the results but the machine.

    ``orders`` has one row a replication. ``published`` are the paper's figures, for its own draw of the data.
    """

    name: str
    X: Floats
    truth: Integers | None
    orders: Integers
    model: Any
    alpha: float
    settings: tuple[Setting, ...]
    published: dict[str, Published] = {}  # noqa: RUF012  a named tuple's default, never changed

    def fingerprint(self) -> str:
        """A hash of the data, the model and α, by which results are known to belong here."""
        parameters = {name: np.asarray(value).tolist() for name, value in self.model.get_params().items()}
        about = json.dumps([self.name, type(self.model).__name__, parameters, self.alpha])
        truth = np.array([]) if self.truth is None else self.truth
        return hash_of(self.X, truth, np.frombuffer(about.encode(), np.uint8))

    def order_code(self, replication: int) -> str:
        """A short hash of one order."""
        return hash_of(self.orders[replication])[:12]


def hash_of(*arrays: Any) -> str:
    """SHA-256 of the contents of arrays."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


GAUSS700 = "6d7059d4a65684012ac6bf24a60604d446fdeea7269be3a149e877e040cdcedf"  # of the paper's own points
PAPER = {  # Table 1; its circles were clustered with a diffusion model, ours here with the surrogate alone
    "gaussian": {
        GREEDY: Published(-1539, 34, 0.78, 0.03, 0.2),
        SMC: Published(-1497, 30, 0.81, 0.03, 0.4),
        SPLIT: Published(-1424, 7, 0.88, 0.01, 1.7),
        GIBBS: Published(-1428, 2, 0.88, 0.01, 54.4),
        AGGLOMERATIVE: Published(-1425, 0, 0.87, 0.00, 239.9),
    },
}
REPLICATIONS = {"gaussian": 20, "circles": 30, "points": 20}


def settings(quick: bool) -> tuple[Setting, ...]:
    """The methods and sizes to compare."""
    sizes = (10, 30, 100) if quick else (3, 10, 30, 100, 300, 1000)
    batches = (100,) if quick else (10, 100, 1000)
    return (
        Setting(GREEDY),
        *(Setting(SMC, m) for m in sizes),
        *(Setting(SPLIT, m) for m in sizes),
        Setting(REFINED, 20, sweeps=1 if quick else 3),
        Setting(GIBBS, sweeps=10 if quick else 500),
        Setting(AGGLOMERATIVE),
        *(Setting(AGGLOMERATIVE, size) for size in batches),
    )


def gaussian(quick: bool = False) -> tuple[Floats, Integers, Any, float]:
    """The paper's Gaussian mixture, drawn anew, with its prior (appendix D.2)."""
    X, truth = pt.datasets.gaussian_mixture(n_points=300 if quick else 700, rate=2.0, random_state=0)
    return X, truth, pt.Gaussian(shape=2.0, rate=0.5, mean=0.0, precision=2e-4), 20.0


def circles(_: bool = False) -> tuple[Floats, Integers, Any, float]:
    """The paper's circles, drawn anew, with the surrogate's prior fitted to simulated circles."""
    X, truth = pt.datasets.circles(radius=0.6, random_state=0)
    return X, truth, pt.Gaussian(shape=100.0, rate=18.0, precision=0.02), 1.0


def points(X: Floats) -> tuple[Any, float]:
    """A prior and a concentration for any data, by empirical Bayes."""
    model = pt.Gaussian().fit_prior(X)
    return model, float(pt.SplitSMC(model, alpha="auto").fit(X).alpha_)


GENERATED: dict[str, Callable[[bool], tuple[Floats, Integers, Any, float]]] = {
    "gaussian": gaussian,
    "circles": circles,
}


def plan(
    name: str,
    data: Path | None = None,
    orders: Path | None = None,
    replications: int | None = None,
    quick: bool = False,
) -> Experiment:
    """Put an experiment together.

    Parameters
    ----------
    name : {"gaussian", "circles", "points"}
        The first two come with the paper's prior and with generated data; the third takes any data and fits
        a prior to them.
    data : path, optional
        A CSV file with a header: numbers, and the true clusters in a column called ``label``, if known.
    orders : path, optional
        A NumPy file of permutations, one row a replication; random orders unless given.
    replications : int, optional
        How many; the paper's number unless given.
    quick : bool
        Fewer replications, sizes and sweeps.
    """
    if name not in REPLICATIONS:
        raise ValueError(f"there is no experiment {name}: choose one of {', '.join(REPLICATIONS)}")
    if data is None and name not in GENERATED:
        raise ValueError(f"{name} needs data: give a CSV file with --data")
    truth: Integers | None
    if name in GENERATED:
        X, truth, model, alpha = GENERATED[name](quick)
    if data is not None:
        X, truth = read_points(data)
    wanted = replications or (3 if quick else REPLICATIONS[name])
    given = random_orders(wanted, len(X)) if orders is None else read_orders(orders, wanted, len(X))
    if name not in GENERATED:
        model, alpha = points(X)
    model.check(X.shape[1])
    return Experiment(
        name, X, truth, given, model, alpha, settings(quick), {} if quick else PAPER.get(name, {})
    )


def random_orders(n: int, length: int) -> Integers:
    """So many permutations, the same ones every time."""
    generator = np.random.default_rng(0)
    return np.array([generator.permutation(length) for _ in range(n)])


def read_orders(path: Path, n: int, length: int) -> Integers:
    """The first n permutations of a file."""
    try:
        orders = np.load(path)
    except ValueError as error:
        raise ValueError(f"{path} is not a NumPy file of permutations") from error
    if getattr(orders, "shape", ())[1:] != (length,) or len(orders) < n:
        raise ValueError(f"{path} must hold {n} or more permutations of the {length} observations")
    if not (np.sort(orders, axis=1) == np.arange(length)).all():
        raise ValueError(f"{path}: each row must be a permutation of the {length} observations")
    result: Integers = orders[:n].astype(np.int64)
    return result


def read_points(path: Path) -> tuple[Floats, Integers | None]:
    """Observations from a CSV file with a header, and the true clusters if it has a column ``label``."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = [(number, row) for number, row in enumerate(csv.reader(file), start=1) if any(row)]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path} is not a CSV file in UTF-8") from error
    header = [name.strip() for name in rows[0][1]] if rows else []
    columns = [k for k, name in enumerate(header) if name.lower() != "label"]
    if len(rows) < 2 or not columns:
        raise ValueError(f"{path} has no observations: it needs a header and rows of numbers")
    if len(columns) < len(header) - 1:
        raise ValueError(f"{path} has more than one column label")
    if all(is_number(name) for name in header):
        raise ValueError(f"{path}, line 1: a header is missing, with the names of the columns")
    values, labels = [], []
    for number, row in rows[1:]:
        if len(row) != len(header):
            raise ValueError(f"{path}, line {number}: {len(row)} fields, but the header has {len(header)}")
        values.append([_number(path, number, header[k], row[k]) for k in columns])
        labels += [row[k] for k in range(len(header)) if k not in columns]
    truth = np.unique(labels, return_inverse=True)[1].astype(np.int64) if labels else None
    return np.array(values), truth


def is_number(text: str) -> bool:
    """Whether a field of a file is one."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _number(path: Path, line: int, column: str, text: str) -> float:
    if not is_number(text):
        raise ValueError(f"{path}, line {line}, column {column}: {text!r} is not a number")
    if not math.isfinite(float(text)):
        raise ValueError(f"{path}, line {line}, column {column}: {text!r} is not finite")
    return float(text)
