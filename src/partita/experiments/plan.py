"""What an experiment runs: the data, their orders, the model, and every method with its settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import partita as pt
from partita._core.typing import Floats, Integers
from partita.experiments import neural
from partita.experiments.experiment import (
    AGGLOMERATIVE,
    GIBBS,
    GREEDY,
    REFINED,
    SMC,
    SPLIT,
    Experiment,
    Published,
    Setting,
)
from partita.experiments.files import Fragment, names_of, read_fragments, read_orders, read_points

GAUSS700 = "6d7059d4a65684012ac6bf24a60604d446fdeea7269be3a149e877e040cdcedf"  # of the paper's own points
PAPER = {  # Table 1; of experiments with networks see neural
    "gaussian": {
        GREEDY: Published(-1539, 34, 0.78, 0.03, 0.2),
        SMC: Published(-1497, 30, 0.81, 0.03, 0.4),
        SPLIT: Published(-1424, 7, 0.88, 0.01, 1.7),
        GIBBS: Published(-1428, 2, 0.88, 0.01, 54.4),
        AGGLOMERATIVE: Published(-1425, 0, 0.87, 0.00, 239.9),
    },
}
REPLICATIONS = {"gaussian": 20, "circles": 30, "points": 20, "names": 20, "kb": 10}
TEXT_MODELS = {"names": ("ngram", "record", "jsonlm"), "kb": ("record", "jsonlm")}
MODELS = TEXT_MODELS | {"circles": ("diffusion", "gaussian")}  # the first is the default
MANY = 5_000  # fragments; beyond, samplers that split look at candidates only
MOST = {SMC: 5_000, REFINED: 20_000, GIBBS: 2_000, AGGLOMERATIVE: 2_000}  # observations of text
WHY = {
    SMC: "each of its particles holds all clusters, so that a step scores them all",
    REFINED: "it runs over all observations several times",
    GIBBS: "each of its hundreds of sweeps scores all observations against all clusters",
    AGGLOMERATIVE: "it scores all pairs of clusters",
}


def settings(quick: bool, particles: tuple[int, ...] | None = None) -> tuple[Setting, ...]:
    """The methods and sizes to compare."""
    sizes = particles or ((10, 30, 100) if quick else (3, 10, 30, 100, 300, 1000))
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


def text_settings(
    n: int, quick: bool, particles: tuple[int, ...] | None = None
) -> tuple[tuple[Setting, ...], dict[str, str]]:
    """The methods and sizes to compare on n texts, and why the others are not."""
    sizes = particles or ((10, 100) if quick else (3, 10, 30, 100))
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


def gaussian(few: bool = False) -> tuple[Floats, Integers, Any, float]:
    """The paper's Gaussian mixture, drawn anew, with its prior (appendix D.2)."""
    X, truth = pt.datasets.gaussian_mixture(n_points=300 if few else 700, rate=2.0, random_state=0)
    return X, truth, pt.Gaussian(shape=2.0, rate=0.5, mean=0.0, precision=2e-4), 20.0


def circles(few: bool = False) -> tuple[Floats, Integers, Any, float]:
    """The paper's circles, drawn anew, with the surrogate's prior fitted to simulated circles."""
    smaller: dict[str, Any] = {"n_clusters": 3, "sizes": (5, 8), "box": 1.2} if few else {}
    X, truth = pt.datasets.circles(radius=0.6, random_state=0, **smaller)
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
    model: Any = pt.Record.infer(data) if kind == "record" else neural.bigram()
    if kind == "ngram":
        model = pt.Ngram(n=2)
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
    particles: tuple[int, ...] | None = None,
    max_minutes: float | None = None,
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
    model : str, optional
        Of circles "diffusion", the paper's network, or "gaussian", its surrogate alone. Of names "ngram", the
        paper's bigrams, or "record", records with the name as their only attribute. Of names and kb "jsonlm",
        the paper's language model. A file with weights stands for a network of one's own.
    prior : path, optional
        A file of labelled fragments to fit the prior to, as the paper does; the data themselves, without
        their labels, unless given. Of a language model it is the surrogate that has a prior.
    particles : tuple of int, optional
        Sizes of the samplers, instead of the usual ones.
    max_minutes : float, optional
        The most that an offline method may take; the paper's 10,000 seconds with a network.
    """
    if name not in REPLICATIONS:
        raise ValueError(f"there is no experiment {name}: choose one of {', '.join(REPLICATIONS)}")
    if data is None and name not in GENERATED:
        raise ValueError(f"{name} needs data: give a file with --data")
    for option, value, names in (
        ("--labels", labels, TEXT_MODELS),
        ("--model", model, MODELS),
        ("--prior", prior, TEXT_MODELS),
    ):
        if value is not None and name not in names:
            raise ValueError(f"{option} is for {' and '.join(names)}, not for {name}")
    kind = model or MODELS.get(name, ("",))[0]
    network = neural.is_network(kind, MODELS.get(name, ()))
    if name in MODELS and kind not in MODELS[name] and not network:
        raise ValueError(f"there is no model {kind} of {name}: choose {' or '.join(MODELS[name])}")
    wanted = replications or ((1 if network else 3) if quick else REPLICATIONS[name])
    score = neural.network(kind, MODELS[name], name if name == "circles" else "") if network else None
    if name in TEXT_MODELS:
        given = TextInput(data or Path(), labels, prior, orders, wanted)
        if score is None:
            made = plan_text(name, kind, given, quick, particles)
        else:
            made = plan_language(name, score, given, quick, particles)
    else:
        few = quick and (network or name != "circles")  # which are quick enough without a network
        made = plan_points(name, data, orders, wanted, quick, particles, few)
        if score is not None:
            made = with_diffusion(made, score, quick, particles)
    limit = max_minutes or (None if score is None else neural.BUDGET)
    return made._replace(max_minutes=limit)


def plan_points(
    name: str,
    data: Path | None,
    orders: Path | None,
    wanted: int,
    quick: bool,
    particles: tuple[int, ...] | None,
    few: bool,
) -> Experiment:
    """An experiment on rows of numbers, few of them if they are drawn."""
    truth: Integers | None
    if name in GENERATED:
        X, truth, model, alpha = GENERATED[name](few)
    if data is not None:
        X, truth = read_points(data)
    given = orders_for(orders, wanted, len(X))
    if name not in GENERATED:
        model, alpha = points(X)
    model.check(X.shape[1])
    return Experiment(
        name, X, truth, given, model, alpha, settings(quick, particles), {} if quick else PAPER.get(name, {})
    )


def with_diffusion(
    cheap: Experiment, score: Any, quick: bool, particles: tuple[int, ...] | None
) -> Experiment:
    """The same points under a diffusion model, with the model that they had as its surrogate."""
    main, ablation = neural.circles(score, particles, quick)
    n_clusters = 0 if cheap.truth is None else int(cheap.truth.max()) + 1
    published, notes = neural.published(cheap.name, n_clusters, quick)
    return cheap._replace(
        model=pt.BlackBox(score, cheap.model),
        settings=main,
        ablation=ablation,
        surrogates={"": (cheap.model, cheap.alpha)},
        published=published,
        notes=notes,
    )


class TextInput(NamedTuple):
    """The files of an experiment on fragments, and how many orders are wanted."""

    data: Path
    labels: str | None
    prior: Path | None
    orders: Path | None
    wanted: int

    def read(self, name: str, kind: str) -> tuple[list[Any], Integers | None, Integers]:
        """What the model reads, the true entities, and the orders."""
        fragments, truth = read_fragments(self.data, self.labels)
        X = observations(name, kind, fragments)
        return X, truth, orders_for(self.orders, self.wanted, len(X))

    def fitted(self, name: str, kind: str, X: list[Any]) -> Any:
        """A model whose prior is fitted to labelled fragments, or without them to the data."""
        if self.prior is None:
            return text_model(kind, X)
        others, entities = read_fragments(self.prior, self.labels)
        return text_model(kind, observations(name, kind, others), entities)


def plan_text(
    name: str, kind: str, given: TextInput, quick: bool, particles: tuple[int, ...] | None
) -> Experiment:
    """An experiment on fragments of entities: the paper's on TweetNERD (names) and REBEL (kb)."""
    X, truth, orders = given.read(name, kind)
    fitted = given.fitted(name, kind, X)
    options = {"keys": "auto"} if kind == "record" and len(X) > MANY else {}
    chosen, skipped = text_settings(len(X), quick, particles)
    alpha = concentration([X[k] for k in orders[0]], fitted, options)
    return Experiment(name, X, truth, orders, fitted, alpha, chosen, skipped=skipped, options=options)


def plan_language(
    name: str, score: Any, given: TextInput, quick: bool, particles: tuple[int, ...] | None
) -> Experiment:
    """The same under a language model, with bigrams of the names as its surrogate, or records."""
    X, truth, orders = given.read(name, "jsonlm")
    first = [X[k] for k in orders[0]]
    surrogates = {}
    for key, kind in (("", "bigram"), ("record", "record")):
        # Records are to know how common each value is in these data.
        fitted = text_model(kind, X) if kind == "record" else given.fitted(name, kind, X)
        surrogates[key] = (fitted, concentration(first, fitted, {}))
    model = pt.BlackBox(score, surrogates[""][0])
    alpha = surrogates["record"][1]  # as records have learnt it, at little cost
    main, ablation, skipped = neural.fragments(score, len(X), particles, quick)
    published, notes = neural.published(name, 0 if truth is None else int(truth.max()) + 1, quick)
    return Experiment(
        name,
        X,
        truth,
        orders,
        model,
        alpha,
        main,
        published,
        skipped,
        ablation=ablation,
        surrogates=surrogates,
        notes=notes,
    )


def observations(name: str, kind: str, fragments: list[Fragment]) -> list[Any]:
    """What the model reads of the fragments: names alone, as texts or as records, or all of them."""
    if name == "kb":
        return fragments
    names = names_of(fragments)
    return names if kind == "ngram" else [{"name": each} for each in names]  # records, or of a network


def orders_for(path: Path | None, n: int, length: int) -> Integers:
    """So many orders from a file, or random ones."""
    return random_orders(n, length) if path is None else read_orders(path, n, length)


def random_orders(n: int, length: int) -> Integers:
    """So many permutations, the same ones every time."""
    generator = np.random.default_rng(0)
    return np.array([generator.permutation(length) for _ in range(n)])
