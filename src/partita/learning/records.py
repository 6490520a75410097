"""Empirical Bayes for records: how frequent values are among entities, and how much entities vary.

Given clusters, each value's count is the number of clusters that have it, for that is how often the base of
an urn was drawn from; each attribute learns its own hyperparameters (``Attribute.learnt_from``), and
:mod:`partita.models.records.entity_types` which attributes go together. Without labels, clustering a sample and
learning from its clusters take turns, beginning with plain frequencies.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from typing import Any

import numpy as np
from sklearn.base import clone

from partita._core.checks import label_codes
from partita._core.typing import Array, Integers
from partita.models.records.entity_types import Types, learnt_types, mentions_of
from partita.models.records.record import Record
from partita.models.registry import learn
from partita.smc.sampler import SplitSMC

PASSES = 3  # of clustering and learning in turn
SAMPLE = 2000  # fragments that are clustered to learn from
PARTICLES = 5
EXACT = 500  # fragments up to which a sample is clustered without candidates
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
        fitted[name] = attribute.learnt_from(clusters[a]) if urns else attribute
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
