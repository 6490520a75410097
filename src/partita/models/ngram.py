"""Character n-grams with Dirichlet priors: the paper's model of names (appendix on text data).

log p(c) = Σ_context [log Γ(A) − log Γ(A + n)] + Σ_letter [log Γ(a + n) − log Γ(a)], with pseudo-counts
a = c·(1 + count in the corpus) of each letter after each context, and A their sum.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from partita._estimator import whole
from partita._kernel import kernel
from partita._labels import label_codes
from partita._typing import Array
from partita.models.base import plain, positive_number
from partita.models.corpus import END, LONGEST, START, UNKNOWN
from partita.models.empirical_bayes import cluster
from partita.models.families import begin, extend, log_marginal
from partita.models.folding import folded
from partita.models.record import TextModel
from partita.models.record_prior import neighbourhoods
from partita.models.vocabulary import Vocabulary

POWERS = (-1.0, -2.0, -3.0, -4.0, 0.0)  # of ten: concentrations to begin with, of equal ones the first
STEPS = (0.5, 0.25)  # then, in both directions


class Ngram(TextModel):
    """Texts, spelled letter by letter: each letter depends on the n − 1 before it, and on the cluster.

    Parameters
    ----------
    n : int
        2 is the paper's bigram.
    concentration : float
        The c of the pseudo-counts c·(1 + count): the larger, the closer all clusters are to the corpus.
        ``fit_prior`` learns it.
    counts : mapping from n-gram to number, optional
        How often each n-gram occurs in the corpus; ``fit_prior`` counts them.

    Examples
    --------
    >>> import partita as pt
    >>> names = ["Gutenberg", "J. Gutenberg", "Koster", "Johannes Gutenberg", "Laurens Koster"]
    >>> pt.SplitSMC(pt.Ngram(n=2).fit_prior(names), alpha=1.0).fit_predict(names)
    array([0, 0, 1, 0, 1])
    """

    def __init__(
        self, n: int = 2, concentration: float = 0.01, counts: Mapping[str, float] | None = None
    ) -> None:
        self.n = n
        self.concentration = concentration
        self.counts = counts

    def check(self, n_features: int) -> None:
        order, concentration = whole("n", self.n, 1), positive_number("concentration", self.concentration)
        counts = self.counts or {}
        for gram, count in counts.items():
            if not isinstance(gram, str) or len(gram) != order:
                raise ValueError(f"counts must be those of n-grams of {order} letters, got {gram!r}")
            if not 0.0 <= count < np.inf:
                raise ValueError(f"counts of {gram!r} must be a number of at least 0, got {count!r}")
        self._vocabulary = Vocabulary([Spelling(order, concentration, counts)])

    def validate(self, X: Any) -> list[Any]:
        return check_texts(X)

    def _pairs(self, observation: str) -> Iterable[tuple[int, str]]:
        return [(0, folded(observation))]

    def fit_prior(self, X: Any, labels: Array | None = None) -> Ngram:
        """Counts of the n-grams of the texts ``X``, and the concentration.

        With labels c maximises Σ_c log p(c). Without, it is the one with which the sampler does best on the
        texts, or on some thousand of them, as for other models (:mod:`partita.models.empirical_bayes`).
        """
        texts, order = self.validate(X), whole("n", self.n, 1)
        counts = Counter(gram for text in texts for gram in grams(folded(text)[:LONGEST], order))
        fitted = Ngram(order, self.concentration, dict(counts))
        if labels is None:
            return Ngram(order, best_concentration(fitted, sample(texts)), fitted.counts)
        codes = label_codes("labels", labels)
        if len(codes) != len(texts):
            raise ValueError(f"labels has {len(codes)} entries, but there are {len(texts)} texts")
        found = minimize_scalar(
            lambda log_c: -evidence(Ngram(order, float(np.exp(log_c)), fitted.counts), texts, codes),
            bounds=(np.log(1e-6), np.log(1e3)),
            method="bounded",
        )
        return Ngram(order, float(np.exp(found.x)), fitted.counts)

    def to_json(self) -> dict[str, Any]:
        """The parameters, as JSON can hold them."""
        counts = None if self.counts is None else dict(self.counts)
        kept: dict[str, Any] = plain({"n": self.n, "concentration": self.concentration, "counts": counts})
        return kept

    @classmethod
    def from_json(cls, contents: dict[str, Any]) -> Ngram:
        """The model that :meth:`to_json` describes."""
        model = cls(**contents)
        model.check(1)
        return model


def sample(texts: list[str]) -> list[str]:
    """Some thousand texts at most, among them many that share rare words, in a random order."""
    pairs = [[(0, word) for word in set(folded(text).split())] for text in texts]
    occurrences = Counter(word for said in pairs for _, word in said)
    rows = np.random.default_rng(0).permutation(neighbourhoods(pairs, [occurrences]))
    return [texts[row] for row in rows]


def best_concentration(model: Ngram, texts: list[str]) -> float:
    """The c with which the sampler does best: from powers of ten on, by ever smaller steps."""
    heights: dict[float, float] = {}

    def height(log_c: float) -> float:
        if log_c not in heights:
            now = Ngram(model.n, float(10.0**log_c), model.counts)
            now.check(1)
            heights[log_c] = cluster(now, texts, [np.arange(len(texts))])[0]
        return heights[log_c]

    best = max(POWERS, key=height)
    for step in STEPS:
        best = max((best, best - step, best + step), key=height)
    return float(10.0**best)


class Spelling:
    """What the vocabulary asks of an attribute, for texts without urns."""

    theta = phi = -1.0

    def __init__(self, order: int, concentration: float, counts: Mapping[str, float]) -> None:
        self.order, self.concentration, self.counts = order, concentration, counts
        self.totals: Counter[str] = Counter()
        for gram, n in counts.items():
            self.totals[gram[:-1]] += n  # type: ignore[assignment]
        self.alphabet = {gram[-1] for gram in counts} | {END, UNKNOWN}

    def words(self, value: str) -> list[str]:
        """The whole text, letters that the corpus has not replaced by one that stands for them."""
        if not self.counts:
            return [value[:LONGEST]]
        return ["".join(letter if letter in self.alphabet else UNKNOWN for letter in value[:LONGEST])]

    def value_base(self, value: str) -> tuple[bool, float]:
        """All texts are composed."""
        return False, 0.0

    def word_base(self, word: str) -> tuple[bool, float]:
        """And all are spelled."""
        return False, 0.0

    def context_weight(self, context: str) -> float:
        """A = c·Σ (1 + count)."""
        letters = len(self.alphabet) if self.counts else 100
        return self.concentration * (letters + self.totals[context])

    def letter_weight(self, context: str, letter: str) -> float:
        """a = c·(1 + count)."""
        return self.concentration * (1.0 + self.counts.get(context + letter, 0))


def grams(text: str, order: int) -> Iterable[str]:
    """The n-grams of a text, the ends included."""
    padded = START * (order - 1) + text + END
    return (padded[at - order + 1 : at + 1] for at in range(order - 1, len(padded)))


def check_texts(X: Any) -> list[str]:
    """Texts; TypeError or ValueError for what is none, or says nothing."""
    if isinstance(X, str | bytes) or not isinstance(X, Iterable):
        raise TypeError(f"texts must be a list of str, got {type(X).__name__}")
    texts = list(X)
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"row {row} must be a str, got {type(text).__name__}")
        if not text.strip():
            raise ValueError(f"row {row} is empty; drop it")
    if not texts:
        raise ValueError("there is no text: at least one is needed")
    return texts


@kernel
def log_evidence(family, statistics, data, labels, order):
    """Σ_c log p(c) of clusters given by labels; ``order`` has the observations cluster by cluster."""
    begin(family, statistics, np.int64(1))
    total, size, parent = 0.0, np.int64(0), np.int64(0)
    for k in range(order.shape[0]):
        x = order[k]
        extend(family, statistics, np.int64(1), parent, size, data, x)
        size, parent = size + 1, np.int64(1)
        if k + 1 == order.shape[0] or labels[order[k + 1]] != labels[x]:
            total += log_marginal(family, statistics, np.int64(1), size, np.int64(1))
            size, parent = np.int64(0), np.int64(0)
    return total


def evidence(model: Ngram, texts: list[str], labels: Any) -> float:
    """Σ_c log p(c) of the clusters that labels give."""
    model.check(1)
    data = model.encode(texts)
    statistics = np.zeros((2, model.width(1)))
    return float(log_evidence(model.family(1), statistics, data, labels, np.argsort(labels, kind="stable")))
