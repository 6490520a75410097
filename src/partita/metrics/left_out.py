"""What one attribute says of pairs clustered without it; :mod:`partita.metrics.unlabelled` has the formulas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from partita._core.typing import Array, Floats, Integers

EDGES = np.array([0.02, 0.5, 0.95])  # of the bins of probabilities; the last ends at 1
FINE = np.array([1e-3, 0.02, 0.2, 0.5, 0.8, 0.98])  # of those without an attribute
DEGREES = np.array([0.3, 0.6, 0.85, 0.999])  # between the degrees of likeness, of which the last is equality
NEVER = FINE[0]  # a probability below this is none
CERTAIN = (0.98, 0.9)  # probabilities that are certain, the second where the first is seldom
ENOUGH = 20  # pairs that are certain, and pairs that mention an attribute
GROUPS = 10  # that the pairs must come from; those of one entity are all alike
STRANGERS = 100  # that must be known to see how alike they are
NEAREST = 200  # pairs, by how alike they are in the others, from which m and u are
LEAST = 0.1  # of the certain pairs, those least alike in the others, are not compared with
APART = 0.4  # m − u at least, for an attribute to tell
GAP = 0.15  # m − u at least, for a share to be estimated at all
KNOWN = 0.7  # of the pairs of a bin that must not be ruled out without the attribute
ERROR = 0.1  # standard error at most
DRAWS = 30  # of the bootstrap, over groups


@dataclass(frozen=True)
class AttributeReliability:
    """What one attribute says of the pairs of each bin; ``reason`` is why it says nothing, if so.

    ``within`` and ``between`` are m and u, how alike values are within entities and between them, over the pairs of
    all bins; ``share`` and ``error`` are not numbers where the attribute cannot tell, and ``reasons`` says why. The
    error is of the pairs asked about, by a bootstrap over groups; that of m and u is not in it.
    """

    name: str
    reason: str
    within: float
    between: float
    share: Floats
    error: Floats
    reasons: tuple[str, ...]


class Pairs(NamedTuple):
    """Pairs of records."""

    first: Integers
    second: Integers
    probability: Floats  # that they are together
    without: Floats  # the same, without an attribute
    alike: Floats  # how alike they are in it, not a number where one of them does not mention it
    others: Floats  # how alike they are in all others

    def at(self, chosen: Array) -> Pairs:
        """Some of them."""
        return Pairs._make(column[chosen] for column in self)


def told_by(name: str, pairs: Pairs, n_records: int) -> AttributeReliability:
    """What an attribute that was left out says of the pairs of each bin."""
    group = groups(pairs, n_records)
    mention = ~np.isnan(pairs.alike)
    apart = pairs.at(mention & (pairs.without < NEVER) & (pairs.probability < NEVER))
    sure, n_groups = pairs.at(mention & (pairs.without >= CERTAIN[0])), 0
    for certain in CERTAIN:
        held = mention & (pairs.without >= certain)
        sure, n_groups = pairs.at(held), len(np.unique(group[held]))
        if len(sure.alike) >= ENOUGH and n_groups >= GROUPS:
            break
    else:
        what = f"pairs that are certain without it: {len(sure.alike)}, groups of them: {n_groups}"
        return silent(name, f"{what}; it takes {ENOUGH} and {GROUPS}")
    if len(apart.alike) < STRANGERS:
        return silent(
            name, f"pairs that are certainly apart without it: {len(apart.alike)}; it takes {STRANGERS}"
        )
    usual = nearby(apart, sure.others)[:, 0]
    most = sure.alike[sure.others >= np.quantile(sure.others, 2 / 3)].mean()
    if most <= usual.mean():
        return silent(
            name, f"values of one entity ({most:.2f}) are no more alike than others ({usual.mean():.2f})"
        )
    pure = float(np.clip((sure.alike - usual).sum() / (most - usual).sum(), 0.0, 1.0))

    chosen = pairs.without >= NEVER
    asked, of, speaks = pairs.at(chosen), group[chosen], mention[chosen]
    # Of the certain pairs, those least alike in the others are the ones that are wrong: there is no m to be had.
    least = np.quantile(sure.others, LEAST)
    within, between = nearby(sure, np.maximum(asked.others, least)), nearby(apart, asked.others)
    apart_by = np.where(speaks, within[:, 0] - between[:, 0], 0.0)
    beyond = np.where(speaks, asked.alike - between[:, 0], 0.0)
    degree = 1 + np.searchsorted(DEGREES, np.nan_to_num(asked.alike), side="right")
    line = np.arange(len(degree))
    ratio = np.where(speaks, within[line, degree] / between[line, degree], 1.0)
    fine, coarse = np.searchsorted(FINE, asked.without, side="right") - 1, bins_of(asked.probability)
    gap = mean_of(apart_by[speaks], fine[speaks], len(FINE))
    centre, used = mean_of(asked.without, fine, len(FINE)), gap >= GAP
    if not used.any():
        return silent(name, f"m − u is {np.nanmax(gap, initial=-1.0):.2f} at best; it takes {APART}")
    known = used[fine] & (coarse >= 0)

    def share(weights: Floats) -> Floats:
        """Of each bin, if each pair counts so much."""
        above = np.bincount(fine, weights * beyond, len(FINE))
        below = np.bincount(fine, weights * apart_by, len(FINE))
        shares = np.clip(pure * above[used] / below[used], 0.001, 0.999)
        true = np.interp(asked.without, centre[used], shares)
        by_bayes = true * ratio / (true * ratio + 1.0 - true)
        return mean_of(by_bayes[known], coarse[known], len(EDGES), weights[known])

    rng = np.random.default_rng(0)
    draws = [share(rng.exponential(size=n_records)[of]) for _ in range(DRAWS)]
    found, error = share(np.ones(len(of))), np.std(draws, axis=0)
    told = speaks & (coarse >= 0)
    bin_gap = mean_of(apart_by[told], coarse[told], len(EDGES))
    reached = np.bincount(coarse[known], minlength=len(EDGES)) / np.maximum(counts(pairs.probability), 1)
    reasons = []
    for b in range(len(EDGES)):
        n_groups = len(np.unique(of[told & (coarse == b)]))
        if n_groups < GROUPS:
            reasons.append(f"groups whose pairs mention it: {n_groups}; it takes {GROUPS}")
        elif bin_gap[b] < APART:
            reasons.append(f"m − u is {bin_gap[b]:.2f}; it takes {APART}")
        elif reached[b] < KNOWN:
            reasons.append(f"without it, {1 - reached[b]:.0%} of the pairs are ruled out")
        elif error[b] > ERROR:
            reasons.append(f"standard error {error[b]:.2f}; at most {ERROR}")
        else:
            reasons.append("")
    tells = np.array([not reason for reason in reasons])
    m, u = (float(side[told, 0].mean()) if told.any() else float("nan") for side in (within, between))
    found, error = np.where(tells, found, np.nan), np.where(tells, error, np.nan)
    return AttributeReliability(name, "", m, u, found, error, tuple(reasons))


def silent(name: str, reason: str) -> AttributeReliability:
    """An attribute that cannot tell anything."""
    nothing = np.full(len(EDGES), np.nan)
    return AttributeReliability(
        name, reason, float("nan"), float("nan"), nothing, nothing, (reason,) * len(EDGES)
    )


def groups(pairs: Pairs, n_records: int) -> Integers:
    """The group of each pair: records that hang together, with the attribute or without."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    held = np.maximum(pairs.probability, pairs.without) >= NEVER
    edges = (np.ones(held.sum()), (pairs.first[held], pairs.second[held]))
    of = connected_components(coo_matrix(edges, (n_records, n_records)), directed=False)[1]
    found: Integers = of[pairs.first].astype(np.int64)
    return found


def nearby(reference: Pairs, others: Floats) -> Floats:
    """How alike pairs are in an attribute if they are about so alike in the others.

    Returns
    -------
    (n, 1 + degrees) array
        The mean likeness, and the share of each degree, of the nearest pairs of the reference.
    """
    degree = np.searchsorted(DEGREES, reference.alike, side="right")
    columns = np.column_stack([reference.alike, np.eye(len(DEGREES) + 1)[degree]])
    order = np.argsort(reference.others, kind="stable")
    sums = np.vstack([np.zeros(columns.shape[1]), np.cumsum(columns[order], axis=0)])
    n = min(NEAREST, len(order))
    start = np.clip(np.searchsorted(reference.others[order], others) - n // 2, 0, len(order) - n)
    found: Floats = (sums[start + n] - sums[start]) / n
    overall = columns[:, 1:].mean(axis=0)  # as good as two of them, so that no degree is impossible
    found[:, 1:] = (n * found[:, 1:] + 2.0 * overall + 0.05) / (n + 2.0 + 0.05 * len(overall))
    return found


# ---------------------------------------------------------------------- bins


def bins_of(probability: Floats) -> Integers:
    """The bin of each probability; −1 if it is below all."""
    found: Integers = np.searchsorted(EDGES, probability, side="right") - 1
    return found


def counts(probability: Floats) -> Integers:
    """How many probabilities each bin has."""
    held = bins_of(probability)
    found: Integers = np.bincount(held[held >= 0], minlength=len(EDGES))
    return found


def mean_of(values: Floats, bins: Integers, n: int, weights: Floats | None = None) -> Floats:
    """The mean of each bin; not a number where it is empty."""
    weights = np.ones(len(values)) if weights is None else weights
    total = np.bincount(bins, weights, n)
    found: Floats = np.bincount(bins, weights * values, n) / np.where(total > 0.0, total, np.nan)
    return found
