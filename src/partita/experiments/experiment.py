"""What an experiment is: the methods with their settings, the data, their orders and the model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

import partita as pt
from partita._core.typing import Integers
from partita.neural.named import Network

SPLIT, SMC, GREEDY = "split SMC", "SMC", "greedy"
REFINED, GIBBS, METROPOLIS = "split SMC, refined", "Gibbs", "Metropolis-within-Gibbs"
AGGLOMERATIVE = "agglomerative"
METHODS = (GREEDY, SMC, SPLIT, REFINED, GIBBS, METROPOLIS, AGGLOMERATIVE)
ONLINE = (GREEDY, SMC, SPLIT)
ABLATION = "ablation"  # of m′, as if it were a method
SHORT = {  # names for the command line
    "greedy": GREEDY,
    "smc": SMC,
    "split": SPLIT,
    "refined": REFINED,
    "gibbs": GIBBS,
    "metropolis": METROPOLIS,
    "agglomerative": AGGLOMERATIVE,
    "ablation": ABLATION,
}
NONE = "none"  # in place of a surrogate


class Setting(NamedTuple):
    """One method with one size: of particles, of a batch of pairs, or None where it has none.

    The last five are for black boxes: m′, which is the number of particles unless given; which surrogate
    proposes, the experiment's own unless named, ``NONE``, or another; whether that surrogate clusters alone;
    for how many observations the black box is asked ahead, what it says itself unless given; and whether the
    surrogate's likelihood counts beside its own.
    """

    method: str
    size: int | None = None
    sweeps: int = 0  # of refinement, or of Gibbs without improvement before it stops
    proposals: int | None = None
    surrogate: str = ""
    alone: bool = False
    lookahead: int | None = None
    pooled: bool = False

    @property
    def name(self) -> str:
        """The method, and what it does not share with others of the same name."""
        unit = "batch" if self.method == AGGLOMERATIVE else "m"
        parts = [self.method] + ([] if self.size is None else [f"{unit}={self.size}"])
        parts += [] if self.proposals is None else [f"m′={self.proposals}"]
        if self.alone:
            parts.append(f"{self.surrogate or 'surrogate'} alone")
        elif self.pooled:
            parts.append(f"with {self.surrogate}")
        elif self.surrogate:
            parts.append("no surrogate" if self.surrogate == NONE else f"surrogate {self.surrogate}")
        parts += [] if self.lookahead is None else [f"lookahead {self.lookahead}"]
        return ", ".join(parts)

    @property
    def once(self) -> bool:
        """Whether one order is enough: how far a sampler looks ahead changes what it costs, nothing else."""
        return self.lookahead is not None

    @property
    def usual(self) -> bool:
        """Whether it differs from others of its method in size alone."""
        return self[3:] == (None, "", False, None, False)


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

    Of black boxes: ``ablation`` are settings that vary m′, ``surrogates`` those that settings name, each with
    the concentration for it alone, where "" is the model's own. ``max_minutes`` is the most that an offline
    method may take. ``notes`` are for the report.
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
    ablation: tuple[Setting, ...] = ()
    surrogates: Mapping[str, tuple[Any, float]] = {}
    max_minutes: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def neural(self) -> bool:
        """Whether the likelihood is a black box, so that wall time is what counts."""
        return isinstance(self.model, pt.BlackBox)

    def fingerprint(self) -> str:
        """A hash of the data, the model and α, by which results are known to belong here."""
        about = [self.name, type(self.model).__name__, plain(self.model.get_params(deep=False)), self.alpha]
        if self.neural:  # fitted on one machine, drawn on another
            about = rounded(about)
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
    if isinstance(value, Network):  # how far to look ahead depends on the machine, and changes no result
        return [value.kind, value.name]
    if isinstance(value, pt.Model):  # which may also hold what it has derived from its parameters
        return [type(value).__name__, plain(value.get_params(deep=False))]
    return [type(value).__name__, plain(vars(value)) if hasattr(value, "__dict__") else repr(value)]


def rounded(value: Any) -> Any:
    """Plain data with numbers of four digits."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    return [rounded(each) for each in value] if isinstance(value, list) else value
