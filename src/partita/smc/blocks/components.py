"""Blocks from edges: connected components; where one would be too large the bar is raised, and only there.

The strongest edges come first, and one that would make a block of more than ``MOST`` is left out: that is *cut*.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from partita._core.kernel import inner, kernel
from partita._core.typing import Array, Integers
from partita.smc.blocks.edges import Edges

MOST = 1000  # observations of a block
ROOM = 10_000_000  # edges that are sorted at a time, about
SAMPLED = 64  # of so many, to see where they lie
LOW = (1 << 32) - 1


class Blocks(NamedTuple):
    """Where each observation belongs."""

    block: Integers  # of each observation: the first observation of its block
    cut: Integers  # the edges that were left out


def blocks_of(n: int, edges: Edges, most: int = MOST) -> Blocks:
    """Blocks of n observations, of which none has more than ``most``."""
    root = component_of(n, edges)
    large = np.bincount(root, minlength=n) > most
    of_large = large[root]
    within = np.flatnonzero(of_large)
    root[within] = within  # each alone, for now
    sizes = np.bincount(root, minlength=n)
    for first, second in strongest_first(edges, of_large[edges.first]):
        joins(root, sizes, first, second, most)
    cut = [np.zeros(0, np.int64)]
    for at in range(0, len(edges.first), ROOM):
        first, second = edges.first[at : at + ROOM], edges.second[at : at + ROOM]
        cut.append(at + np.flatnonzero(root[first] != root[second]))
    return Blocks(root, np.concatenate(cut))


def strongest_first(edges: Edges, wanted: Array) -> Iterator[tuple[Integers, Integers]]:
    """Edges in descending order of their odds, of equal ones in that of their observations; some at a time.

    That is what a component of all observations has memory for.
    """
    first, second, odds = edges
    count = int(wanted.sum())
    step = max(ROOM // SAMPLED, 1)
    sample = odds[:0]
    if count > ROOM:
        sample = np.sort(odds[::step][wanted[::step]])[:: SAMPLED // 2 + 1]
    above = np.inf
    for pivot in [*np.unique(sample)[::-1].tolist(), -np.inf]:
        at = np.flatnonzero(wanted & (odds < above) & (odds > pivot))
        at = at[np.lexsort((second[at], first[at], -odds[at]))]
        yield first[at], second[at]
        if pivot > -np.inf:
            equal = wanted & (odds == pivot)
            both = (first[equal].astype(np.int64) << 32) + second[equal]
            both.sort()
            for start in range(0, len(both), ROOM):
                some = both[start : start + ROOM]
                yield some >> 32, some & LOW
        above = pivot


def component_of(n: int, edges: Edges) -> Integers:
    """Of each of n observations the first one of its connected component."""
    root = np.arange(n)
    joins(root, np.ones(n, np.int64), edges.first, edges.second, n)
    return root


@kernel
def joins(root, sizes, first, second, most):
    """Join what edges link, one after the other, unless that has more than ``most``; roots are first observations."""
    for k in range(first.shape[0]):
        a, b = root_of(root, first[k]), root_of(root, second[k])
        if a != b and sizes[a] + sizes[b] <= most:
            low, high = min(a, b), max(a, b)
            root[high] = low
            sizes[low] += sizes[high]
    for x in range(root.shape[0]):
        root[x] = root_of(root, x)


@inner
def root_of(root, x):
    """The root of an observation's tree; the way there is halved."""
    while root[x] != x:
        root[x] = root[root[x]]
        x = root[x]
    return x
