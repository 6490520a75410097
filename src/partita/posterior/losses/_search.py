"""Local search for the minimiser where the blocks are too many to try all partitions.

In: a component of blocks, and a partition of it to start from. Out: a partition of which no move of a block,
and no move of a whole cluster into another, lowers the expected loss.
"""

from typing import NamedTuple

import numpy as np

from partita._core.kernel import inner, kernel
from partita._core.typing import Floats, Integers

from ._clusters import WeightedClusters
from ._terms import Terms

BLOCKS, CLUSTERS = 0, 1


class Search(NamedTuple):
    """An estimate under local search. Its clusters are slots, as many as there are blocks, some empty."""

    slot: Integers  # (B,) slot of each block, −1 while it moves
    size: Integers  # (B,) observations in each slot
    first: Integers  # (B,) a linked list of each slot's blocks: the first one, or −1
    following: Integers  # (B,) and for each block the next, or −1
    share: Integers  # (B,) scratch, zero between uses
    change: Floats  # (B,) scratch, infinite between uses
    amount: Integers  # (C,) scratch, zero between uses
    overlap: Integers  # (C,) scratch, zero between uses
    moving: Integers  # (B,) lists, empty between uses
    found: Integers  # (B,)
    touched: Integers  # (B,)
    held: Integers  # (C,)


def new_search(clusters: WeightedClusters) -> Search:
    """Room for an estimate of all blocks, or of any component."""
    n_blocks, n_clusters = len(clusters.block_size), len(clusters.size)
    slot, size, first, following, share, moving, found, touched = np.zeros((8, n_blocks), np.int64)
    amount, overlap, held = np.zeros((3, n_clusters), np.int64)
    change = np.full(n_blocks, np.inf)
    return Search(slot, size, first, following, share, change, amount, overlap, moving, found, touched, held)


def local_minimum(
    terms: Terms,
    clusters: WeightedClusters,
    search: Search,
    blocks: Integers,
    start: Integers,
    tolerance: float,
) -> Integers:
    """Move single blocks, and then whole clusters, until nothing lowers the expected loss.

    `start` names for each of the blocks, all those of one or more components, one block of its cluster, the
    same for the whole cluster; so does the result.
    """
    search.size[blocks] = 0
    search.first[blocks] = -1
    search.slot[blocks] = start
    np.add.at(search.size, start, clusters.block_size[blocks])
    for block, slot in zip(blocks.tolist(), start.tolist(), strict=True):
        search.following[block] = search.first[slot]
        search.first[slot] = block
    while sweep(terms, clusters, search, blocks, BLOCKS, tolerance) or sweep(
        terms, clusters, search, blocks, CLUSTERS, tolerance
    ):
        pass
    return search.slot[blocks]


@kernel
def sweep(
    terms: Terms,
    clusters: WeightedClusters,
    search: Search,
    blocks: Integers,
    unit: int,
    tolerance: float,
) -> bool:
    """Move each block, or all blocks of each slot, to where they cost least; tell whether any moved."""
    improved = False
    for i in range(blocks.shape[0]):
        old, n_moving, added = (
            blocks[i],
            np.int64(0),
            np.int64(0),
        )  # as 0 they would have `join` compiled twice
        if unit == BLOCKS:
            search.moving[0], old = blocks[i], search.slot[blocks[i]]
            n_moving += 1
        else:
            b = search.first[old]
            while b >= 0:
                search.moving[n_moving] = b
                n_moving += 1
                b = search.following[b]
        if n_moving == 0:
            continue

        for m in range(n_moving):
            b = search.moving[m]
            added += clusters.block_size[b]
            search.slot[b] = -1
            if search.first[old] == b:
                search.first[old] = search.following[b]
            else:
                before = search.first[old]
                while search.following[before] != b:
                    before = search.following[before]
                search.following[before] = search.following[b]
        search.size[old] -= added

        n_found = join(terms, clusters, search, n_moving, added)
        best, least = old, 0.0  # what a cluster of its own costs
        if search.size[old] > 0:
            least = search.change[old]
            if least > tolerance * added:
                at = 0
                while search.size[blocks[at]] > 0:
                    at += 1
                best, least = blocks[at], 0.0
        for f in range(n_found):
            k = search.found[f]
            if search.change[k] < least - tolerance * added:
                best, least = k, search.change[k]
            search.change[k] = np.inf

        for m in range(n_moving):
            b = search.moving[m]
            search.slot[b] = best
            search.following[b] = search.first[best]
            search.first[best] = b
        search.size[best] += added
        improved |= best != old
    return improved


@inner
def join(terms: Terms, clusters: WeightedClusters, search: Search, n_moving: int, added: int) -> int:
    """Find the slots ĉ that are ever together with the detached blocks d, of `added` observations.

    Counts them, and sets change[k] to f(ĉ ∪ d) − f(ĉ) − f(d). With B = |d|, J = |d ∩ c| that is

        u·L_t(A, B) − v·Σ_c P(c) { L_t(I, J)·d(A+B+C) − t(I)·D(A+C, B) − t(J)·D(B+C, A) },

    where L_t(x, y) = t(x+y) − t(x) − t(y) and D(x, y) = d(x) − d(x+y).
    """
    n_held = np.int64(0)
    for m in range(n_moving):
        b = search.moving[m]
        for h in range(clusters.block_start[b], clusters.block_start[b + 1]):
            c = clusters.holders[h]
            if search.amount[c] == 0:
                search.held[n_held] = c
                n_held += 1
            search.amount[c] += clusters.block_size[b]
    n_found = 0
    for i in range(n_held):
        c = search.held[i]
        n_touched = 0
        for at in range(clusters.start[c], clusters.start[c + 1]):
            b = clusters.blocks[at]
            k = search.slot[b]
            if k >= 0:
                if search.share[k] == 0:
                    search.touched[n_touched] = k
                    n_touched += 1
                search.share[k] += clusters.block_size[b]
        for j in range(n_touched):
            k = search.touched[j]
            size = search.size[k]
            if search.change[k] == np.inf:
                search.found[n_found] = k
                n_found += 1
                both = terms.value[size + added] - terms.value[size] - terms.value[added]
                search.change[k] = terms.size_cost * both
                if terms.dilutes:
                    search.change[k] += terms.overlap_cost * dilution(
                        terms, clusters, search, k, n_held, added
                    )
            one, other = search.share[k], search.amount[c]
            both = terms.value[one + other] - terms.value[one] - terms.value[other]
            discount = terms.discount[size + added + clusters.size[c]]
            search.change[k] -= terms.overlap_cost * clusters.weight[c] * both * discount
            search.share[k] = 0
    for i in range(n_held):
        search.amount[search.held[i]] = 0
    return n_found


@inner
def dilution(
    terms: Terms, clusters: WeightedClusters, search: Search, k: int, n_held: int, added: int
) -> float:
    """Σ_c P(c) { t(I)·D(A+C, B) + t(J)·D(B+C, A) }: what the overlaps lose as slot k and d grow together."""
    total, size = 0.0, search.size[k]
    for i in range(n_held):
        c = search.held[i]
        apart = terms.discount[added + clusters.size[c]] - terms.discount[added + size + clusters.size[c]]
        total += clusters.weight[c] * terms.value[search.amount[c]] * apart
    b = search.first[k]
    while b >= 0:
        for h in range(clusters.block_start[b], clusters.block_start[b + 1]):
            search.overlap[clusters.holders[h]] += clusters.block_size[b]
        b = search.following[b]
    b = search.first[k]
    while b >= 0:
        for h in range(clusters.block_start[b], clusters.block_start[b + 1]):
            c = clusters.holders[h]
            if search.overlap[c] > 0:
                apart = (
                    terms.discount[size + clusters.size[c]] - terms.discount[added + size + clusters.size[c]]
                )
                total += clusters.weight[c] * terms.value[search.overlap[c]] * apart
                search.overlap[c] = 0
        b = search.following[b]
    return total
