"""Empirical Bayes for texts: counts of the corpus, and the concentration.

With labels the concentration c maximises Σ_c log p(c). Without, it is the one with which the sampler does best on the
texts, or on some thousand of them, as for other models (:mod:`partita.learning.empirical_bayes`).
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from partita._core.checks import label_codes, whole
from partita.learning.empirical_bayes import cluster
from partita.learning.records import neighbourhoods
from partita.models.records.corpus import LONGEST
from partita.models.records.ngram import Ngram, grams
from partita.models.registry import learn
from partita.models.scoring.scored import log_p_of

POWERS = (-1.0, -2.0, -3.0, -4.0, 0.0)  # of ten: concentrations to begin with, of equal ones the first
STEPS = (0.5, 0.25)  # then, in both directions


@learn.register(Ngram)
def fit_prior(model: Ngram, X: Any, labels: Any = None) -> Ngram:
    """See :meth:`Ngram.fit_prior`."""
    observations, order = model.validate(X), whole("n", model.n, 1)
    said = [model._values(observation) for observation in observations]
    counts = Counter(gram for values in said for value in values for gram in grams(value[:LONGEST], order))
    if not counts:
        listed = ", ".join(sorted({repr(name) for fragment in observations for name in fragment}))
        raise ValueError(f"no fragment has the attribute {model.attribute!r}; there are {listed or 'none'}")
    if labels is None:
        best = best_concentration(model.with_prior(1.0, counts), sample(observations, said))
        return model.with_prior(best, counts)
    codes = label_codes("labels", labels)
    if len(codes) != len(observations):
        kind = "texts" if model.attribute is None else "fragments"
        raise ValueError(f"labels has {len(codes)} entries, but there are {len(observations)} {kind}")
    found = minimize_scalar(
        lambda log_c: -evidence(model.with_prior(float(np.exp(log_c)), counts), observations, codes),
        bounds=(np.log(1e-6), np.log(1e3)),
        method="bounded",
    )
    return model.with_prior(float(np.exp(found.x)), counts)


def sample(observations: list[Any], said: list[list[str]]) -> list[Any]:
    """Some thousand observations at most, among them many that share rare words, in a random order.

    ``said`` are the texts of each, folded.
    """
    pairs = [[(0, word) for word in {word for text in texts for word in text.split()}] for texts in said]
    occurrences = Counter(word for words in pairs for _, word in words)
    rows = np.random.default_rng(0).permutation(neighbourhoods(pairs, [occurrences])[0])
    return [observations[row] for row in rows]


def best_concentration(model: Ngram, observations: list[Any]) -> float:
    """The c with which the sampler does best: from powers of ten on, by ever smaller steps."""
    heights: dict[float, float] = {}

    def height(log_c: float) -> float:
        if log_c not in heights:
            now = model.with_prior(float(10.0**log_c), model.counts)
            now.check(1)
            heights[log_c] = cluster(now, observations, [np.arange(len(observations))])[0]
        return heights[log_c]

    best = max(POWERS, key=height)
    for step in STEPS:
        best = max((best, best - step, best + step), key=height)
    return float(10.0**best)


def evidence(model: Ngram, observations: list[Any], labels: Any) -> float:
    """Σ_c log p(c) of the clusters that labels give."""
    model.check(1)
    order = np.argsort(labels, kind="stable")
    pieces = np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)
    return float(log_p_of(model, [[observations[x] for x in piece.tolist()] for piece in pieces]).sum())
