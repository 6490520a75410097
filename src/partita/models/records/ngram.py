"""Character n-grams with Dirichlet priors: the paper's model of names (appendix on text data).

log p(c) = Σ_context [log Γ(A) − log Γ(A + n)] + Σ_letter [log Γ(a + n) − log Γ(a)], with pseudo-counts
a = c·(1 + count in the corpus) of each letter after each context, and A their sum.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from partita._core.checks import positive_number, whole
from partita._core.typing import Array
from partita.models import registry
from partita.models.base import plain
from partita.models.records.corpus import END, LONGEST, START, UNKNOWN
from partita.models.records.folding import folded
from partita.models.records.fragments import as_text, check_fragments
from partita.models.records.text_model import TextModel
from partita.models.records.urns import KERNELS, UrnFamily
from partita.models.records.urns.vocabulary import SpeltTexts
from partita.models.registry import register


@register
class Ngram(TextModel):
    """Texts, spelled letter by letter: each letter depends on the n − 1 before it, and on the cluster.

    With an ``attribute`` it reads the texts that fragments of entities have there: the paper's surrogate for
    a neural model of whole fragments.

    Parameters
    ----------
    n : int
        2 is the paper's bigram.
    concentration : float
        The c of the pseudo-counts c·(1 + count): the larger, the closer all clusters are to the corpus.
        ``fit_prior`` learns it.
    counts : mapping from n-gram to number, optional
        How often each n-gram occurs in the corpus; ``fit_prior`` counts them.
    attribute : str, optional
        Observations are then no texts but fragments, as for :class:`Record`: mappings from attribute to a
        value or a list of values. The distinct values of this attribute are spelled, all else is ignored. A
        fragment that has none says nothing, and fits all clusters alike.

    Examples
    --------
    >>> import partita as pt
    >>> names = ["Gutenberg", "J. Gutenberg", "Koster", "Johannes Gutenberg", "Laurens Koster"]
    >>> pt.SplitSMC(pt.Ngram(n=2).fit_prior(names), alpha=1.0).fit_predict(names)
    array([0, 0, 1, 0, 1])

    As the surrogate of a black box that reads whole fragments:

    >>> fragments = [{"name": name, "died": 1468 if "G" in name else 1484} for name in names]
    >>> surrogate = pt.Ngram(attribute="name").fit_prior(fragments)
    >>> def score(clusters):
    ...     return [-3.0 * len({fragment["died"][0] for fragment in c}) ** 2 for c in clusters]
    >>> pt.SplitSMC(pt.BlackBox(score, surrogate), alpha=1.0).fit_predict(fragments)
    array([0, 0, 1, 0, 1])
    """

    family_class = UrnFamily
    kernels = KERNELS

    def __init__(
        self,
        n: int = 2,
        concentration: float = 0.01,
        counts: Mapping[str, float] | None = None,
        attribute: str | None = None,
    ) -> None:
        self.n = n
        self.concentration = concentration
        self.counts = counts
        self.attribute = attribute

    def check(self, n_features: int) -> None:
        order, concentration = whole("n", self.n, 1), positive_number("concentration", self.concentration)
        counts = self.counts or {}
        for gram, count in counts.items():
            if not isinstance(gram, str) or len(gram) != order:
                raise ValueError(f"counts must be those of n-grams of {order} letters, got {gram!r}")
            if not 0.0 <= count < np.inf:
                raise ValueError(f"counts of {gram!r} must be a number of at least 0, got {count!r}")
        if self.attribute is not None and not isinstance(self.attribute, str):
            raise ValueError(f"attribute must be the name of one, or None, got {self.attribute!r}")
        self._vocabulary = SpeltTexts(Spelling(order, concentration, counts))

    def validate(self, X: Any) -> list[Any]:
        return check_texts(X) if self.attribute is None else check_values(X, self.attribute)

    def _pairs(self, observation: Any) -> Iterable[tuple[int, str]]:
        return [(0, value) for value in self._values(observation)]

    def _values(self, observation: Any) -> list[str]:
        """What is spelled of a validated observation, each text once."""
        if self.attribute is None:
            return [folded(observation)]
        return list(dict.fromkeys(folded(as_text(value)) for value in observation.get(self.attribute, ())))

    def fit_prior(self, X: Any, labels: Array | None = None) -> Ngram:
        """Counts of the n-grams of the observations ``X``, and the concentration.

        With labels c maximises Σ_c log p(c). Without, it is the one with which the sampler does best on them,
        or on some thousand of them, as for other models (:mod:`partita.learning.empirical_bayes`).
        """
        fitted: Ngram = registry.taught(self, X, labels)
        return fitted

    def with_prior(self, concentration: float, counts: Mapping[str, float] | None) -> Ngram:
        """The same model with another prior."""
        return Ngram(int(self.n), concentration, None if counts is None else dict(counts), self.attribute)

    def to_json(self) -> dict[str, Any]:
        """The parameters, as JSON can hold them."""
        counts = None if self.counts is None else dict(self.counts)
        kept: dict[str, Any] = plain({"n": self.n, "concentration": self.concentration, "counts": counts})
        return kept if self.attribute is None else kept | {"attribute": self.attribute}

    @classmethod
    def from_json(cls, contents: dict[str, Any]) -> Ngram:
        """The model that :meth:`to_json` describes."""
        model = cls(**contents)
        model.check(1)
        return model


class Spelling:
    """How a model spells texts: what the vocabulary asks of it."""

    def __init__(self, order: int, concentration: float, counts: Mapping[str, float]) -> None:
        self.order, self.concentration, self.counts = order, concentration, counts
        self.totals: Counter[str] = Counter()
        for gram, n in counts.items():
            self.totals[gram[:-1]] += n  # type: ignore[assignment]
        self.alphabet = {gram[-1] for gram in counts} | {END, UNKNOWN}

    def words(self, text: str) -> list[str]:
        """The words that a text is found by."""
        return text[:LONGEST].split(" ")

    def spelt(self, text: str) -> str:
        """The letters of a text, those that the corpus has not replaced by one that stands for them."""
        if not self.counts:
            return text[:LONGEST]
        return "".join(letter if letter in self.alphabet else UNKNOWN for letter in text[:LONGEST])

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


def check_values(X: Any, attribute: str) -> list[dict[str, list[Any]]]:
    """Fragments; TypeError or ValueError for what is none, or has something else than texts there."""
    fragments = check_fragments(X)
    for row, fragment in enumerate(fragments):
        for value in fragment.get(attribute, ()):
            try:
                as_text(value)
            except ValueError as error:
                raise ValueError(f"row {row}, attribute {attribute!r}: {error}") from None
    return fragments
