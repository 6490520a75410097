"""Every model there is, with data to cluster and log p(c) in closed form: what the conformance suite runs on.

A new model gets a line in ``MODELS``, a new algorithm one in ``VARIANTS`` of :mod:`tests.helpers.streams`;
then ``tests/test_conformance.py`` asks of it all that is asked of the others.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import partita as pt
from partita.models.records.corpus import Corpus
from tests.helpers import naive_comparisons, naive_urns, oracle, streams
from tests.helpers.stretch import Stretch
from tests.helpers.texts import counted

NUMERIC = [pt.Gaussian, pt.MultivariateGaussian, pt.Categorical, pt.Bernoulli, oracle.Poisson]


class Problem(NamedTuple):
    """A model, data, and the logarithm of p(c) of some of the rows."""

    model: Any
    rows: Any
    log_marginal: Callable[[Any], float]


class Case(NamedTuple):
    """A model: one problem, others with hyperparameters at random, and rows that the model refuses."""

    fixed: Callable[[int], Problem]  # of so many rows, with doubts
    drawn: Callable[[np.random.Generator, int], Problem]
    bad: Any

    @property
    def needs_model(self):
        """Whether a file does not hold the model, so that it must be given again."""
        return not isinstance(self.fixed(1).model, (pt.Record, pt.Ngram, *NUMERIC[:4]))


def take(rows, which):
    """Some of the rows, in this order."""
    return rows[which] if isinstance(rows, np.ndarray) else [rows[k] for k in which]


# ---------------------------------------------------------------------- numbers


def drawn_numbers(kind, rng, n):
    d = 1 if kind is oracle.Poisson else int(rng.integers(1, 4))
    model = oracle.random_model(kind, rng, d)
    rows = oracle.random_data(model, rng, n, d, spread=float(rng.choice([3.0, 30.0])))
    return Problem(model, rows, oracle.density(model))


def numeric(name, kind, bad):
    def fixed(n):
        model = streams.MODELS[name]()
        return Problem(model, streams.rows_of(name, n), oracle.density(model))

    width = streams.rows_of(name, 1).shape[1]
    return Case(fixed, partial(drawn_numbers, kind), np.full((2, width), bad))


# ---------------------------------------------------------------------- texts and records

WORDS = ["a", "b", "ab", "ba", "aab", "abab", "bbb"]
TYPOS = ["anna", "ana", "nana", "hanna", "bob", "rob", "bo", "x" * 70, "x" * 69 + "y"]
DATES = ["1815 12 10", "1815 12", "1815", "1816 01 02", "1816 12 10"]
NUMBERS = [1, 2, 2.5, 1e6, -3, 1999, 2001]
STRENGTHS = [0.05, 0.4, 1.0, 3.0, 25.0]


def words(rng):
    return " ".join(rng.choice(WORDS, rng.integers(1, 4)))


def one_of(values):
    return lambda rng: str(rng.choice(values))


def agreement(rng):
    return tuple(rng.dirichlet([0.8, *[0.4] * 6, 2.0]).clip(1e-3, 0.999).tolist())


def attribute(kind, draw, **more):
    """An attribute whose parameters, frequencies and references are drawn at random."""

    def made(rng):
        plain = kind()
        said = [plain.parse(draw(rng)) for _ in range(rng.integers(1, 12))]
        return kind(
            agreement=agreement(rng),
            weight=float(rng.choice([0.3, 0.8, 1.0])),
            corpus=Corpus({value: float(rng.choice([1.0, 2.0, 3.5, 7.0])) for value in said}),
            references=tuple(said[: rng.integers(0, 12)]),
            kin=float(rng.choice([0.0, 0.2, 1.5])),
            **{name: float(rng.choice(values)) for name, values in more.items()},
        )

    return made, draw


ATTRIBUTES = {  # how one is made, and how its values are drawn
    "text": attribute(pt.Text, words),
    "date": attribute(pt.Date, one_of(DATES)),
    "category": attribute(pt.Category, words),
    "value": attribute(pt.Value, one_of(TYPOS)),
    "number": attribute(pt.Number, lambda rng: float(rng.choice(NUMBERS)), spread=[0.1, 0.5, 3.0]),
    "stretch": attribute(Stretch, lambda rng: int(rng.integers(0, 6)), rate=[0.1, 0.7]),
}


def drawn_records(kinds, rng, n):
    """Records with attributes of these kinds: none, one or several values of each."""
    attributes = {kind: ATTRIBUTES[kind][0](rng) for kind in kinds}
    shares = {kind: float(rng.choice([0.0, 0.2, 0.9])) for kind in kinds}
    presence, types = [(None, None), (shares, None), (None, [(0.6, shares), (0.4, {kinds[0]: 0.7})])][
        rng.integers(3)
    ]
    model = pt.Record(attributes, float(rng.choice([0.0, 0.5, 2.0])), presence, types)
    said = ({kind: rng.integers(0, 4) for kind in kinds} for _ in range(n))  # how many values of each
    rows = [
        {kind: [ATTRIBUTES[kind][1](rng) for _ in range(many)] for kind, many in one.items() if many}
        for one in said
    ]
    return Problem(model, rows, partial(naive_comparisons.record, model=model))


def record(*kinds):
    def fixed(n):
        problem = drawn_records(kinds, np.random.default_rng(13), 60)
        return problem._replace(rows=problem.rows[:n])

    return Case(fixed, partial(drawn_records, kinds), [{kinds[0]: b"bytes"}])


def drawn_texts(rng, n):
    model = counted(int(rng.integers(1, 4)), float(rng.choice(STRENGTHS)), ["ab ba", "bab"])
    rows = [words(rng) + str(rng.choice(["", " zz"])) for _ in range(n)]
    return Problem(model, rows, partial(naive_urns.ngram, model=model))


def some_texts(n):
    model = counted(2, 0.2, ["ada byron", "bob"])
    rng = np.random.default_rng(3)
    rows = rng.choice(["ada", "ada b", "ada byron", "bob", "bobb", "zz", "carl"], 60).tolist()
    return Problem(model, rows[:n], partial(naive_urns.ngram, model=model))


def named(problem):
    """The same texts, as an attribute of fragments that say other things too."""
    model = pt.Ngram(problem.model.n, problem.model.concentration, problem.model.counts, attribute="name")
    rows = [{"name": [text], "noise": [str(k)]} for k, text in enumerate(problem.rows)]
    return Problem(model, rows, lambda some: problem.log_marginal([row["name"][0] for row in some]))


# ---------------------------------------------------------------------- black boxes


class Closed:
    """A model's log p(c) in closed form, as somebody's own function of clusters."""

    def __init__(self, log_marginal):
        self.log_marginal = log_marginal

    def __call__(self, clusters):
        assert all(clusters), "a black box need not know what to do with no clusters"
        return [self.log_marginal(np.atleast_2d(np.array(c, float))) for c in clusters]

    def __deepcopy__(self, memo):
        return self  # copies of a sampler ask the same function


MANY = 10**6  # proposals: all of them
OTHER = pt.Gaussian(shape=3.0, rate=4.0, precision=0.1)  # a surrogate that is not far off


def boxed(problem, surrogate=None, weight=0.0):
    """The problem, but the sampler does not know the model."""

    def pooled(rows):
        return problem.log_marginal(rows) + (weight * oracle.density(surrogate)(rows) if weight else 0.0)

    model = pt.BlackBox(Closed(problem.log_marginal), surrogate, MANY, surrogate_weight=weight)
    return Problem(model, problem.rows, pooled)


def black_box(bad, **options):
    gaussian = numeric("gaussian", pt.Gaussian, np.nan)

    def drawn(rng, n):
        return boxed(drawn_numbers(pt.Gaussian, rng, n), **options)

    return Case(lambda n: boxed(gaussian.fixed(min(n, 30)), **options), drawn, bad)


MODELS = {
    "Gaussian": numeric("gaussian", pt.Gaussian, np.nan),
    "MultivariateGaussian": numeric("multivariate", pt.MultivariateGaussian, np.inf),
    "Categorical": numeric("categorical", pt.Categorical, 9.0),
    "Bernoulli": numeric("bernoulli", pt.Bernoulli, 2.0),
    "a user's own": numeric("user", oracle.Poisson, np.nan),
    "Ngram": Case(some_texts, drawn_texts, ["ab", 3]),
    "Ngram of an attribute": Case(
        lambda n: named(some_texts(n)), lambda rng, n: named(drawn_texts(rng, n)), [{"name": b"bytes"}]
    ),
    **{f"Record of a {kind}": record(kind) for kind in ATTRIBUTES},
    "Record of several": record("text", "category", "date", "number", "stretch"),
    "BlackBox": black_box(3),
    "BlackBox with a surrogate": black_box([[np.nan, 0.0]], surrogate=OTHER),
    "BlackBox with a surrogate that has a say": black_box([[np.nan, 0.0]], surrogate=OTHER, weight=0.5),
}
