"""Empirical Bayes for records: how frequent values are among entities, and how much entities vary.

Given clusters, each value's count is the number of clusters that have it, for that is how often the base of
an urn was drawn from; the concentrations θ and φ solve the equation of their maximum likelihood, and the
strength s of the letters is searched for; ``types.py`` learns which attributes go together. Without labels,
clustering a sample and learning from its clusters take turns, beginning with plain frequencies. Some
pseudo-observations keep what little data say little about where it was.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import gammaln
from sklearn.base import clone

from partita._core.checks import label_codes
from partita._core.typing import Array, Floats, Integers
from partita.models.records.attributes import Attribute, Text, Value
from partita.models.records.corpus import END, START
from partita.models.records.record import Record
from partita.models.records.types import Types, learnt_types, mentions_of
from partita.models.registry import learn
from partita.smc.sampler import SplitSMC

PASSES = 3  # of clustering and learning in turn
SAMPLE = 2000  # fragments that are clustered to learn from
PARTICLES = 5
EXACT = 500  # fragments up to which a sample is clustered without candidates
PSEUDO = 100.0  # pairs of draws, half of which agree, behind each concentration
STRENGTHS = np.geomspace(0.1, 100.0, 13)
SHARED = 30  # fragments that share a value for it to tie them together in a sample

Pairs = list[list[tuple[int, str]]]


@learn.register(Record)
def fit_prior(model: Any, X: Any, labels: Array | None = None) -> Any:
    """See :meth:`Record.fit_prior`."""
    fragments = model.validate(X)
    reader = clone(model)
    reader.check(1)
    pairs: Pairs = [sorted(set(reader._pairs(fragment))) for fragment in fragments]
    occurrences: list[Counter[str]] = [Counter() for _ in reader._models]
    for said in pairs:
        for a, value in said:
            occurrences[a][value] += 1
    if labels is not None:
        codes = label_codes("labels", labels)
        if len(codes) != len(pairs):
            raise ValueError(f"labels has {len(codes)} entries, but there are {len(pairs)} fragments")
        return learnt(model, pairs, pairs, codes, occurrences)
    rows = neighbourhoods(pairs, occurrences)
    sample, own = [fragments[row] for row in rows], [pairs[row] for row in rows]
    model = learnt(model, pairs, pairs, np.arange(len(pairs)), occurrences, urns=False)
    keys = "auto" if len(rows) > EXACT else None
    for _ in range(PASSES):
        sampler = SplitSMC(model, n_particles=PARTICLES, keys=keys, random_state=0).fit(sample)
        sampler.refine(1)
        model = learnt(model, pairs, own, sampler.labels_, occurrences)
    return model


def neighbourhoods(pairs: Pairs, occurrences: list[Counter[str]]) -> list[int]:
    """Rows of a sample that has many fragments of the same entities: those that share a rare value."""
    if len(pairs) <= SAMPLE:
        return list(range(len(pairs)))
    holders: dict[tuple[int, str], list[int]] = defaultdict(list)
    for row, said in enumerate(pairs):
        for a, value in said:
            if occurrences[a][value] <= SHARED:
                holders[a, value].append(row)
    chosen: dict[int, None] = {}
    for seed in np.random.default_rng(0).permutation(len(pairs)).tolist():
        reached = [seed, *(row for pair in pairs[seed] for row in holders.get(pair, ()))]
        chosen |= dict.fromkeys(reached)
        if len(chosen) >= SAMPLE:
            break
    return sorted(chosen)


def learnt(
    model: Any,
    everything: Pairs,
    said: Pairs,
    labels: Integers,
    occurrences: list[Counter[str]],
    urns: bool = True,
) -> Any:
    """The model with what these clusters teach."""
    names, attributes = model._modelled()
    clusters = values_of_clusters(said, labels, len(attributes))
    fitted = dict(model.attributes)
    for a, (name, attribute) in enumerate(zip(names, attributes, strict=True)):
        counts = counts_among_entities(occurrences[a], clusters[a])
        attribute = attribute.with_corpus(counts)
        fitted[name] = with_urns(attribute, clusters[a]) if urns else attribute
    mentioned = Counter(a for pairs in everything for a in {a for a, _ in pairs})
    presence = {name: mentioned[a] / len(everything) for a, name in enumerate(names)}
    if not urns or model.rate == 0:
        return type(model)(fitted, model.rate, presence)
    types, rate = learnt_types(mentions_of(said, labels, len(names)))
    return type(model)(fitted, rate, presence, named(types, names))


def named(types: Types, names: list[str]) -> list[tuple[float, dict[str, float]]]:
    """Types as :class:`Record` takes them."""
    weights, shares = types.weights.tolist(), types.shares.tolist()
    return [(weight, dict(zip(names, own, strict=True))) for weight, own in zip(weights, shares, strict=True)]


def values_of_clusters(said: Pairs, labels: Integers, n: int) -> list[list[Counter[str]]]:
    """Of each attribute, the values that each cluster has, with their counts."""
    found: list[dict[int, Counter[str]]] = [defaultdict(Counter) for _ in range(n)]
    for pairs, label in zip(said, labels.tolist(), strict=True):
        for a, value in pairs:
            found[a][label][value] += 1
    return [list(of_attribute.values()) for of_attribute in found]


def counts_among_entities(occurrences: Counter[str], clusters: list[Counter[str]]) -> dict[str, float]:
    """In how many entities each value occurs: all its occurrences by the share that was first in its cluster.

    For a value that the sample has not, the share among those that occur about as often. Where the sample
    does not show all occurrences, two count as two: to take values of two entities for one's own joins them.
    """
    holders = Counter(value for cluster in clusters for value in cluster)
    seen: Counter[str] = Counter()
    for cluster in clusters:
        seen.update(cluster)
    of_size: dict[int, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for value, n in seen.items():
        totals = of_size[int(math.log2(occurrences[value]))]
        totals[0] += holders[value]
        totals[1] += n
    share = {size: first / n for size, (first, n) in of_size.items()}
    everywhere = sum(holders.values()) / max(sum(seen.values()), 1)
    counts = {}
    for value, n in occurrences.items():
        first = holders[value] / seen[value] if value in seen else share.get(int(math.log2(n)), everywhere)
        counts[value] = n * first if seen[value] == n else max(n * first, min(n, 2))
    return counts


def with_urns(attribute: Attribute, clusters: list[Counter[str]]) -> Attribute:
    """The attribute with concentrations and strength learnt; a text spelled as a whole keeps its own.

    Where nothing but letters is compared, maximum likelihood is led by the few that always agree.
    """
    if isinstance(attribute, Text) and not attribute.split:
        return attribute
    if isinstance(attribute, Value):
        return attribute.with_distortion(clusters)
    sizes = [sum(cluster.values()) for cluster in clusters]
    changed: dict[str, Any] = {"theta": concentration(sizes, sum(len(cluster) for cluster in clusters))}
    if isinstance(attribute, Text):
        words = [[word for value in cluster for word in attribute.words(value)] for cluster in clusters]
        changed["phi"] = concentration([len(own) for own in words], sum(len(set(own)) for own in words))
        changed["strength"] = best_strength(attribute, words)
    return replace(attribute, **changed)


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


def best_strength(attribute: Text, words: list[list[str]]) -> float:
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


def letter_counts(attribute: Text, words: list[list[str]]) -> tuple[Floats, Floats]:
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
