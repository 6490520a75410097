"""Shards: blocks packed so that each has about as many records; and what comes of them, together again."""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from partita._core.typing import Integers
from partita.smc.blocks.run import Packed, joined
from partita.smc.files.packing import offsets, ragged

RECORDS = 25_000  # of a shard, about


class Shard(NamedTuple):
    """Records that are clustered in one go."""

    number: int
    members: Integers  # in ascending order
    block: Integers  # of each: the first record of its block


def shards_of(block: Integers, count: int | None = None) -> list[Shard]:
    """Blocks in so many shards: the longest first, each to the shard that has least so far."""
    roots, sizes = np.unique(block, return_counts=True)
    count = min(max(-(-len(block) // RECORDS) if count is None else count, 1), len(roots))
    held = [(0, k) for k in range(count)]
    shard = np.empty(len(roots), np.int64)
    for at in np.lexsort((roots, -sizes)).tolist():
        size, k = heapq.heappop(held)
        shard[at] = k
        heapq.heappush(held, (size + int(sizes[at]), k))
    of_record = shard[np.searchsorted(roots, block)]
    order = np.argsort(of_record, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(of_record, minlength=count))[:-1])
    return [Shard(k, members, block[members]) for k, members in enumerate(parts)]


def in_order(parts: list[Packed], block: Integers) -> Packed:
    """What comes of shards as one, block after block, so that it does not matter how they were divided."""
    found = joined(parts)
    rows, columns, clusters = found.shapes.T
    held = np.add.reduceat(found.sizes, offsets(columns))
    order = np.argsort(block[found.members[offsets(held)]], kind="stable")

    def taken(lengths: Integers) -> Integers:
        return ragged(offsets(lengths)[order], lengths[order])

    return Packed(
        found.members[taken(held)],
        found.sizes[taken(columns)],
        found.shapes[order],
        found.cells[taken(rows * columns)],
        found.weights[taken(rows)],
        found.scores[taken(clusters)],
    )
