"""Pairs of records: which to look at, how alike they are, how probable without an attribute."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from partita._core.typing import Floats, Integers

if TYPE_CHECKING:
    from partita.models.records.record import Record
    from partita.posterior import Posterior

SHARED = 30  # records that share a value for it to make them neighbours
VALUES = 5  # of a record and attribute that are compared


def sampled_rows(
    posterior: Posterior, said: Sequence[list[tuple[int, str]]], n_records: int, random_state: int
) -> Integers:
    """Rows of whole subproblems: half drawn at random, half those that share most rare values with them."""
    n = posterior.n_observations
    if n <= n_records:
        return np.arange(n)
    particles = posterior._particles
    of = particles.block_subproblem[particles.observation_block]
    order = np.argsort(of, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(of))[:-1])
    rng = np.random.default_rng(random_state)
    chosen: dict[int, None] = {}

    def take(candidates: Sequence[int], limit: int) -> None:
        for s in candidates:
            if s not in taken and len(chosen) + len(members[s]) <= limit:
                taken.add(s)
                chosen.update(dict.fromkeys(members[s].tolist()))

    taken: set[int] = set()
    take(rng.permutation(len(members)).tolist(), n_records // 2)
    holders: dict[tuple[int, str], list[int]] = defaultdict(list)
    for row, pairs in enumerate(said):
        for pair in pairs:
            holders[pair].append(row)
    reached: Counter[int] = Counter()
    for row in chosen:
        for pair in said[row]:
            if len(holders[pair]) <= SHARED:
                reached.update(int(of[other]) for other in holders[pair])
    take([s for s, _ in reached.most_common()], n_records)
    take(rng.permutation(len(members)).tolist(), n_records)
    if len(chosen) < n_records // 2:  # one subproblem holds nearly all
        return np.sort(rng.permutation(n)[:n_records])
    return np.array(sorted(chosen))


def compare(model: Record, said: list[list[tuple[int, str]]]) -> tuple[list[str], list[Floats]]:
    """The attributes that the records mention, and how alike each pair is in each of them."""
    names, _ = model._modelled()
    values: dict[int, list[list[str]]] = {}
    for row, pairs in enumerate(said):
        for a, value in pairs:
            values.setdefault(a, [[] for _ in said])[row].append(value)
    mentioned = sorted(values)
    return [names[a] for a in mentioned], [likeness(values[a]) for a in mentioned]


def likeness(values: list[list[str]]) -> Floats:
    """Of each pair of records the share of trigrams that its most alike values have in common (Dice); 1 if equal.

    >>> likeness([["ada", "countess"], ["ada"], ["adam"], []]).round(2).tolist()  # (0,1), (0,2), (0,3), (1,2), …
    [1.0, 0.57, nan, 0.57, nan, nan]
    """
    from sklearn.feature_extraction.text import CountVectorizer

    number: dict[str, int] = {}
    items = [[number.setdefault(value, len(number)) for value in said[:VALUES]] for said in values]
    trigrams = CountVectorizer(analyzer="char_wb", ngram_range=(3, 3), binary=True, lowercase=False)
    held = trigrams.fit_transform([value if value.strip() else "(empty)" for value in number]).astype(float)
    size = np.asarray(held.sum(axis=1)).ravel()
    alike = 2.0 * (held @ held.T).toarray() / np.maximum(size[:, None] + size, 1.0)
    np.fill_diagonal(alike, 1.0)
    rows = np.array([row for row, own in enumerate(items) if own])
    starts = np.cumsum([0, *(len(items[row]) for row in rows)])[:-1]
    flat = np.concatenate([items[row] for row in rows])
    best = np.maximum.reduceat(np.maximum.reduceat(alike[np.ix_(flat, flat)], starts, axis=0), starts, axis=1)
    found = np.full((len(values), len(values)), np.nan)
    found[np.ix_(rows, rows)] = best
    return found[np.triu_indices(len(values), 1)]


def probability_without(
    model: Record,
    name: str,
    sample: list[Any],
    alpha: float,
    n_particles: int,
    first: Integers,
    second: Integers,
    random_state: int,
) -> Floats:
    """The probability that pairs are together if an attribute is left out; nothing else is learnt anew."""
    from partita.smc.sampler import SplitSMC

    parameters = model.get_params(deep=False)
    parameters["attributes"] = {**(model.attributes or {}), name: None}
    sampler = SplitSMC(type(model)(**parameters), alpha, n_particles, random_state=random_state)
    posterior = sampler.fit([dict(fragment) for fragment in sample]).refine(1).posterior_
    return np.asarray(posterior.together(first, second))
