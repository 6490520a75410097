"""Blocks from edges: connected components; where one would be too large the bar is raised, and only there.

The strongest edges come first, and one that would make a block of more than ``MOST`` is left out: that is *cut*.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partita._core.kernel import inner, kernel
from partita._core.typing import Integers
from partita.smc.blocks.edges import Edges

MOST = 1000  # observations of a block


class Blocks(NamedTuple):
    """Where each observation belongs."""

    block: Integers  # of each observation: the first observation of its block
    cut: Integers  # the edges that were left out


def blocks_of(n: int, edges: Edges, most: int = MOST) -> Blocks:
    """Blocks of n observations, of which none has more than ``most``."""
    root = component_of(n, edges)
    large = np.bincount(root, minlength=n) > most
    of_large = np.flatnonzero(large[root[edges.first]])
    within = np.flatnonzero(large[root])
    root[within] = within  # each alone, for now
    order = of_large[np.lexsort((edges.second[of_large], edges.first[of_large], -edges.odds[of_large]))]
    sizes = np.bincount(root, minlength=n)
    joins(root, sizes, edges.first[order], edges.second[order], most)
    apart = root[edges.first] != root[edges.second]
    return Blocks(root, np.flatnonzero(apart))


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
