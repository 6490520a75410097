"""Hyperparameters of attributes from the values of clusters, in closed form or by a search.

The concentrations θ and φ solve the equation of their maximum likelihood, and the strength s of the letters is
searched for. Some pseudo-observations keep what little data say little about where it was.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.special import gammaln

from partita._core.typing import Floats
from partita.models.records.corpus import END, START

PSEUDO = 100.0  # pairs of draws, half of which agree, behind each concentration
STRENGTHS = np.geomspace(0.1, 100.0, 13)


def concentration(sizes: Iterable[int], distinct: int) -> float:
    """The θ of urns that gave so many distinct values in so many draws each (Antoniak 1974)."""
    draws = np.array(list(sizes), np.int64)
    before = np.concatenate([np.arange(1, n) for n in draws]) if len(draws) else np.empty(0)
    wanted = distinct - len(draws) + 0.5 * PSEUDO
    low, high = math.log(1e-4), math.log(1e6)
    for _ in range(50):
        middle = 0.5 * (low + high)
        theta = math.exp(middle)
        if (theta / (theta + before)).sum() + PSEUDO * theta / (theta + 1.0) < wanted:
            low = middle
        else:
            high = middle
    return math.exp(0.5 * (low + high))


def best_strength(attribute: Any, words: list[list[str]]) -> float:
    """The strength that makes the letters of rare words, given those of the common ones, most likely."""
    letters, contexts = letter_counts(attribute, words)
    if not len(contexts):
        return attribute.strength
    q, n, n_common = letters.T
    scores = [
        _rising(s * q, n).sum()
        - _rising(s * q, n_common).sum()
        - _rising(s, contexts[:, 0]).sum()
        + _rising(s, contexts[:, 1]).sum()
        - 0.5 * math.log(s) ** 2  # a weak prior around 1
        for s in STRENGTHS
    ]
    return float(STRENGTHS[int(np.argmax(scores))])


def _rising(x: Any, n: Floats) -> Floats:
    """log x(x + 1)…(x + n − 1)."""
    result: Floats = gammaln(x + n) - gammaln(x)
    return result


def letter_counts(attribute: Any, words: list[list[str]]) -> tuple[Floats, Floats]:
    """Of clusters with rare words: (q, count, count in common words) of letters; the counts of contexts."""
    letters: list[tuple[float, int, int]] = []
    contexts: list[tuple[int, int]] = []
    common = attribute.corpus.words.common
    model, order, known = attribute._letters, attribute.letters, dict[str, float]()
    for own in words:
        distinct = set(own)
        if all(common(word) for word in distinct):
            continue
        counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        for word in distinct:
            text, is_common = START * (order - 1) + word + END, common(word)
            for at in range(order - 1, len(text)):
                for gram in (text[at - order + 1 : at], text[at - order + 1 : at + 1]):
                    counts[gram][0] += 1
                    counts[gram][1] += is_common
        for gram, (n, n_common) in counts.items():
            if len(gram) < order:
                contexts.append((n, n_common))
                continue
            if gram not in known:
                known[gram] = model.probability(gram[:-1], gram[-1])
            letters.append((known[gram], n, n_common))
    return np.array(letters, np.float64).reshape(-1, 3), np.array(contexts, np.float64).reshape(-1, 2)
