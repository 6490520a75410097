"""The paper's experiments with networks: a diffusion model of circles, a language model of fragments.

A surrogate proposes what they are asked: a Gaussian for circles, a bigram of the names for fragments. Greedy
clustering goes without one on circles, and has m′ = 100 on fragments, as in the paper (appendix C.1).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import partita as pt
from partita.experiments.experiment import (
    AGGLOMERATIVE,
    GIBBS,
    GREEDY,
    METROPOLIS,
    NONE,
    ONLINE,
    REFINED,
    SMC,
    SPLIT,
    Published,
    Setting,
)
from partita.neural.named import WEIGHTS, Network

KINDS = {"diffusion": "SetDiffusion", "jsonlm": "JsonLM"}
BUDGET = 10_000.0 / 60.0  # minutes of an offline method, in the paper
FEW = 500  # fragments; of more, the paper's offline methods came to nothing within their time
PAPER: dict[str, dict[str, Published]] = {  # Table 1; on circles its MCMC is Metropolis-within-Gibbs
    "circles": {
        GREEDY: Published(-906, 175, 0.46, 0.06, 1.4),
        SMC: Published(-202, 92, 0.73, 0.04, 1.6),
        SPLIT: Published(10, 74, 0.82, 0.05, 5.1),
        METROPOLIS: Published(187, 15, 0.81, 0.02, 54.7),
        AGGLOMERATIVE: Published(-81, 48, 0.73, 0.04, 54.7),
    },
    "REBEL-50": {
        GREEDY: Published(-8674, 27, 0.66, 0.01, 1.4),
        SMC: Published(-8791, 52, 0.65, 0.01, 1.4),
        SPLIT: Published(-8644, 17, 0.68, 0.01, 1.6),
        METROPOLIS: Published(-8709, 19, 0.63, 0.01, 172.8),
        AGGLOMERATIVE: Published(-8543, 0, 0.63, 0.00, 172.2),
    },
    "REBEL-200": {
        GREEDY: Published(-35382, 115, 0.69, 0.01, 6.6),
        SMC: Published(-36096, 137, 0.69, 0.01, 18.5),
        SPLIT: Published(-35297, 108, 0.70, 0.01, 11.0),
    },
}
WALL = (
    "Seconds are those of a clock on the wall, since the processor's do not count what another device does; "
    "a network's first calls in each process include its compilation."
)
OTHER_NETWORK = (
    "The paper's figures are for its own network: log-posteriors of different likelihoods do not compare, "
    "F1 and minutes do as far as machines do."
)


def is_network(kind: str, models: tuple[str, ...]) -> bool:
    """Whether a model is a network: one that comes with Partita, or a file of weights for such a one."""
    return (kind in KINDS and kind in models) or (
        kind.endswith(WEIGHTS) and any(model in KINDS for model in models)
    )


def network(kind: str, models: tuple[str, ...], default: str = "") -> Network:
    """The network that a name or a file of weights stands for; ValueError says what does without."""
    own = kind if kind in KINDS else next(model for model in models if model in KINDS)
    kept = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "partita" / "jax"
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(kept))  # for the processes that come later
    try:
        return Network(KINDS[own], kind if kind.endswith(WEIGHTS) else default)
    except ImportError as error:
        others = " or ".join(f"--model {model}" for model in models if model not in KINDS)
        raise ValueError(f"{error}; {others} works without") from error


def settings(
    score: Network, sizes: tuple[int, ...] | None, quick: bool, greedy: Setting, others: tuple[Setting, ...]
) -> tuple[Setting, ...]:
    """The methods and sizes to compare: samplers, then ``others``, and one sampler that never asks ahead."""
    sizes = sizes or ((10,) if quick else (3, 10, 30, 100))
    most = max(sizes)
    return (
        greedy,
        *(Setting(SMC, m) for m in sizes),
        *(Setting(SPLIT, m) for m in sizes),
        Setting(REFINED, min(20, most), sweeps=1 if quick else 3),
        *others,
        *([Setting(SPLIT, most, lookahead=1)] if score.lookahead > 1 else []),
    )


def offline(quick: bool, batches: tuple[int, ...]) -> tuple[Setting, ...]:
    """The methods that see all data at once; none where it has to be quick."""
    if quick:
        return ()
    return (
        Setting(GIBBS, sweeps=500),
        Setting(METROPOLIS, sweeps=500),
        Setting(AGGLOMERATIVE),
        *(Setting(AGGLOMERATIVE, size) for size in batches),
    )


def ablation(n_particles: int, proposals: tuple[int, ...]) -> tuple[Setting, ...]:
    """How much of a costly likelihood is worth paying for: m fixed, m′ varied (appendix A.3).

    Ends with the surrogate alone, which asks the black box for nothing.
    """
    sizes = {GREEDY: None, SMC: n_particles, SPLIT: n_particles}
    varied = [
        Setting(method, sizes[method], proposals=None if number == (sizes[method] or 1) else number)
        for number in proposals
        for method in ONLINE
    ]
    return (*varied, *(Setting(method, sizes[method], alone=True) for method in ONLINE))


def circles(
    score: Network, sizes: tuple[int, ...] | None, quick: bool
) -> tuple[tuple[Setting, ...], tuple[Setting, ...]]:
    """The settings for circles, and those of the ablation."""
    main = settings(score, sizes, quick, Setting(GREEDY, surrogate=NONE), offline(quick, (10, 100, 1000)))
    return main, () if quick else ablation(50, (1, 5, 10, 25, 50, 100, 200))


def fragments(
    score: Network, n: int, sizes: tuple[int, ...] | None, quick: bool
) -> tuple[tuple[Setting, ...], tuple[Setting, ...], dict[str, str]]:
    """The settings for n fragments, those of the ablation, and why other methods are not run."""
    few, most = n <= FEW, max(sizes or (10 if quick else 100,))
    others = (*with_records(score, most, quick), *(offline(quick, ()) if few else ()))
    main = settings(score, sizes, quick, Setting(GREEDY, proposals=100), others)
    why = f"{n:,} fragments are more than {FEW}, of which the paper's offline methods made nothing in time"
    skipped = {} if few else dict.fromkeys((GIBBS, METROPOLIS, AGGLOMERATIVE), why)
    alone = Setting(SPLIT, 10, surrogate="record", alone=True)
    return main, () if quick else (*ablation(10, (1, 5, 10, 20, 50, 100)), alone), skipped


def with_records(score: Network, most: int, quick: bool) -> tuple[Setting, ...]:
    """Records propose for the language model; have their say beside it, if it says how; and do without it."""
    split = Setting(SPLIT, most, surrogate="record")
    refined = Setting(REFINED, min(20, most), 1 if quick else 3, surrogate="record")
    both = [split._replace(pooled=True), refined._replace(pooled=True)] if score.pool else []
    return (split, *both, split._replace(alone=True), refined._replace(alone=True))


def published(name: str, n_clusters: int, quick: bool) -> tuple[Mapping[str, Published], tuple[str, ...]]:
    """The paper's figures for data of this kind and size, and notes to them."""
    if quick:
        return {}, (WALL,)
    if name == "circles":
        return PAPER["circles"], (WALL, OTHER_NETWORK)
    if name == "kb" and 25 <= n_clusters <= 400:
        rebel = "REBEL-50" if n_clusters <= 100 else "REBEL-200"
        own = f"The paper's figures are for {rebel}, which is built in the same way but of other data."
        return PAPER[rebel], (WALL, own, OTHER_NETWORK)
    return {}, (WALL,)


def bigram() -> Any:
    """The paper's surrogate for fragments."""
    return pt.Ngram(n=2, attribute="name")
