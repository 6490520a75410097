"""What an experiment runs: the data, their orders, the model, and every method with its settings."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import partita as pt
from partita._typing import Floats, Integers
from partita.experiments.files import Fragment, names_of, read_fragments, read_orders, read_points

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

    ``X`` is an array of rows, or a list of what else the model reads. ``orders`` has one row a replication.
    ``published`` are the paper's figures, for its own draw of the data. ``skipped`` says of methods that are
    not run why. ``options`` go to the samplers that split.
    """

    name: str
    X: Any
    truth: Integers | None
    orders: Integers
    model: Any
    alpha: float
    settings: tuple[Setting, ...]
    published: Mapping[str, Published] = {}
    skipped: Mapping[str, str] = {}
    options: Mapping[str, Any] = {}

    def fingerprint(self) -> str:
        """A hash of the data, the model and α, by which results are known to belong here."""
        about = [self.name, type(self.model).__name__, plain(self.model.get_params(deep=False)), self.alpha]
        truth = np.array([]) if self.truth is None else self.truth
        X = self.X if isinstance(self.X, np.ndarray) else as_bytes(plain(self.X))
        return hash_of(X, truth, as_bytes(about + [plain(self.options)] * bool(self.options)))

    def in_order(self, replication: int) -> tuple[Any, Integers | None]:
        """The data and the truth in one of the orders."""
        order = self.orders[replication]
        X = self.X[order] if isinstance(self.X, np.ndarray) else [self.X[k] for k in order]
        return X, None if self.truth is None else self.truth[order]

    def order_code(self, replication: int) -> str:
        """A short hash of one order."""
        return hash_of(self.orders[replication])[:12]


def hash_of(*arrays: Any) -> str:
    """SHA-256 of the contents of arrays."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def as_bytes(value: Any) -> Any:
    """Plain data as an array of bytes."""
    return np.frombuffer(json.dumps(value).encode(), np.uint8)


def plain(value: Any) -> Any:
    """A model's parameter as plain data: the same for equal parameters, whatever it is made of."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    return [type(value).__name__, plain(vars(value)) if hasattr(value, "__dict__") else repr(value)]


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
REPLICATIONS = {"gaussian": 20, "circles": 30, "points": 20, "names": 20, "kb": 10}
TEXT_MODELS = {"names": ("ngram", "record"), "kb": ("record",)}  # the first is the default
MANY = 5_000  # fragments; beyond, samplers that split look at candidates only
MOST = {SMC: 5_000, REFINED: 20_000, GIBBS: 2_000, AGGLOMERATIVE: 2_000}  # observations of text
WHY = {
    SMC: "each of its particles holds all clusters, so that a step scores them all",
    REFINED: "it runs over all observations several times",
    GIBBS: "each of its hundreds of sweeps scores all observations against all clusters",
    AGGLOMERATIVE: "it scores all pairs of clusters",
}


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


def text_settings(n: int, quick: bool) -> tuple[tuple[Setting, ...], dict[str, str]]:
    """The methods and sizes to compare on n texts, and why the others are not."""
    sizes = (10, 100) if quick else (3, 10, 30, 100)
    every = (
        Setting(GREEDY),
        *(Setting(SMC, m) for m in sizes),
        *(Setting(SPLIT, m) for m in sizes),
        Setting(REFINED, 20, sweeps=1 if quick else 3),
        Setting(GIBBS, sweeps=5 if quick else 50),
        Setting(AGGLOMERATIVE),
    )
    skipped = {
        method: f"{n:,} observations are more than {most:,}, and {WHY[method]}"
        for method, most in MOST.items()
        if n > most
    }
    return tuple(setting for setting in every if setting.method not in skipped), skipped


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


def text_model(kind: str, data: Any, labels: Integers | None = None) -> Any:
    """A model of names or of records, its prior fitted to these, with their true entities where given."""
    model = pt.Ngram(n=2) if kind == "ngram" else pt.Record.infer(data)
    return model.fit_prior(data) if labels is None else model.fit_prior(data, labels)


def concentration(X: Any, model: Any, options: Mapping[str, Any]) -> float:
    """α as one pass over the data learns it."""
    return float(pt.SplitSMC(model, alpha="auto", n_particles=20, random_state=0, **options).fit(X).alpha_)


def plan(
    name: str,
    data: Path | None = None,
    orders: Path | None = None,
    replications: int | None = None,
    quick: bool = False,
    *,
    labels: str | None = None,
    model: str | None = None,
    prior: Path | None = None,
) -> Experiment:
    """Put an experiment together.

    Parameters
    ----------
    name : {"gaussian", "circles", "points", "names", "kb"}
        The first two come with the paper's prior and with generated data; the others take any data and fit
        a prior to them.
    data : path, optional
        For points a CSV file with a header: numbers, and the true clusters in a column called ``label``, if
        known. For names and kb a file of fragments (:func:`read_fragments`).
    orders : path, optional
        A NumPy file of permutations, one row a replication; random orders unless given.
    replications : int, optional
        How many; the paper's number unless given.
    quick : bool
        Fewer replications, sizes and sweeps.
    labels : str, optional
        The field of the true entity in a file of fragments.
    model : {"ngram", "record"}, optional
        Of names: the paper's bigrams, or records with the name as their only attribute.
    prior : path, optional
        A file of labelled fragments to fit the prior to, as the paper does; the data themselves, without
        their labels, unless given.
    """
    if name not in REPLICATIONS:
        raise ValueError(f"there is no experiment {name}: choose one of {', '.join(REPLICATIONS)}")
    if data is None and name not in GENERATED:
        raise ValueError(f"{name} needs data: give a file with --data")
    wanted = replications or (3 if quick else REPLICATIONS[name])
    if name in TEXT_MODELS:
        return plan_text(name, data or Path(), orders, wanted, quick, labels, model, prior)
    for option, value in (("--labels", labels), ("--model", model), ("--prior", prior)):
        if value is not None:
            raise ValueError(f"{option} is for {' and '.join(TEXT_MODELS)}, not for {name}")
    return plan_points(name, data, orders, wanted, quick)


def plan_points(name: str, data: Path | None, orders: Path | None, wanted: int, quick: bool) -> Experiment:
    """An experiment on rows of numbers."""
    truth: Integers | None
    if name in GENERATED:
        X, truth, model, alpha = GENERATED[name](quick)
    if data is not None:
        X, truth = read_points(data)
    given = orders_for(orders, wanted, len(X))
    if name not in GENERATED:
        model, alpha = points(X)
    model.check(X.shape[1])
    return Experiment(
        name, X, truth, given, model, alpha, settings(quick), {} if quick else PAPER.get(name, {})
    )


def plan_text(
    name: str,
    data: Path,
    orders: Path | None,
    wanted: int,
    quick: bool,
    labels: str | None,
    model: str | None,
    prior: Path | None,
) -> Experiment:
    """An experiment on fragments of entities: the paper's on TweetNERD (names) and REBEL (kb)."""
    kind = model or TEXT_MODELS[name][0]
    if kind not in TEXT_MODELS[name]:
        raise ValueError(f"there is no model {kind} of {name}: choose {' or '.join(TEXT_MODELS[name])}")
    fragments, truth = read_fragments(data, labels)
    X = observations(name, kind, fragments)
    given = orders_for(orders, wanted, len(X))
    if prior is None:
        fitted = text_model(kind, X)
    else:
        others, entities = read_fragments(prior, labels)
        fitted = text_model(kind, observations(name, kind, others), entities)
    options = {"candidates": "auto"} if kind == "record" and len(X) > MANY else {}
    chosen, skipped = text_settings(len(X), quick)
    alpha = concentration([X[k] for k in given[0]], fitted, options)
    return Experiment(name, X, truth, given, fitted, alpha, chosen, skipped=skipped, options=options)


def observations(name: str, kind: str, fragments: list[Fragment]) -> list[Any]:
    """What the model reads of the fragments: names alone, as texts or as records, or all of them."""
    if name == "kb":
        return fragments
    names = names_of(fragments)
    return names if kind == "ngram" else [{"name": each} for each in names]


def orders_for(path: Path | None, n: int, length: int) -> Integers:
    """So many orders from a file, or random ones."""
    return random_orders(n, length) if path is None else read_orders(path, n, length)


def random_orders(n: int, length: int) -> Integers:
    """So many permutations, the same ones every time."""
    generator = np.random.default_rng(0)
    return np.array([generator.permutation(length) for _ in range(n)])
