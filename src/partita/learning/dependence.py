"""Whether what is joined is one thing: given an entity, its attributes are independent.

A family that is taken for one person has records of several, and of these it holds that who agrees in the first name
agrees in the date of birth as well, and who does not, does not: agreement in one attribute tells that in others. Of one
person's records it hardly does. So where clusters grow and attributes come to depend on one another within them,
strangers have been joined who share things.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from partita._core.typing import Array, Floats, Integers

MOST_PAIRS = 300  # of a cluster that are looked at
FEWEST = 20.0  # pairs that tell whether two attributes depend on one another


def dependence(
    values: Integers, labels: Integers, agree: Any, most: int = MOST_PAIRS, fewest: float = FEWEST
) -> float:
    """How much agreement in each attribute tells of that in the others, in nats a pair, within clusters.

    Σ over pairs of attributes of their mutual information, corrected for its bias (Miller 1955) and by the share of
    the pairs of records that mention both. A cluster of n records counts as n − 1 pairs, however many it has.

    Parameters
    ----------
    values : (n, attributes) int array
        What each record says of each attribute; −1 if nothing.
    labels : (n,) int array
        The clusters.
    agree : callable
        From an attribute and two arrays of its values to whether these agree.
    """
    first, second, weights = pairs_within(labels, most)
    if not len(first):
        return 0.0
    said = (values[first] >= 0) & (values[second] >= 0)
    same = np.zeros_like(said)
    for a in range(values.shape[1]):
        same[said[:, a], a] = agree(a, values[first[said[:, a]], a], values[second[said[:, a]], a])
    kinds = [(said & ~same).astype(float), same.astype(float)]
    counts = np.array([[(one * weights[:, None]).T @ other for other in kinds] for one in kinds])
    return float(np.triu(mutual_information(counts, fewest), 1).sum() / weights.sum())


def pairs_within(labels: Integers, most: int) -> tuple[Integers, Integers, Floats]:
    """Pairs of records of one cluster, a sample of ``most`` where there are more; n − 1 is the weight of a cluster."""
    generator, order = np.random.default_rng(0), np.argsort(labels, kind="stable")
    found: list[Array] = []
    for members in np.split(order, np.flatnonzero(np.diff(labels[order])) + 1):
        one, other = np.triu_indices(len(members), 1)
        if len(one) > most:
            some = generator.choice(len(one), most, replace=False)
            one, other = one[some], other[some]
        weights = np.full(len(one), (len(members) - 1.0) / max(len(one), 1))
        found.append(np.array([members[one], members[other], weights]))
    first, second, weights = np.concatenate(found, axis=1)
    return first.astype(np.int64), second.astype(np.int64), weights


def mutual_information(counts: Floats, fewest: float) -> Floats:
    """n times the mutual information of two indicators, from (2, 2, …) tables of counts with n in them; 0 of few."""
    total = counts.sum(axis=(0, 1))
    share = counts / np.maximum(total, 1.0)
    by_chance = share.sum(axis=1, keepdims=True) * share.sum(axis=0, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(counts > 0.0, share * np.log(share / by_chance), 0.0)
    bias = 0.5 / np.maximum(total, 1.0)
    found: Floats = np.where(total >= fewest, total * np.maximum(terms.sum(axis=(0, 1)) - bias, 0.0), 0.0)
    return found
