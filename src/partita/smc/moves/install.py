"""Writing partitions in the place of subproblems."""

from __future__ import annotations

from typing import Any

import numpy as np

from partita._core.kernel import kernel
from partita._core.typing import Array, Floats, Integers
from partita.smc.state.state import grown, has_room
from partita.smc.steps.split import new_block, split


def install(engine: Any, subproblems: list[int], members: Integers, labels: Integers, scores: Floats) -> None:
    """Write partitions, given as rows of labels of ``members``, in the place of subproblems."""
    _, first, block = np.unique(labels, axis=1, return_index=True, return_inverse=True)
    labels = np.ascontiguousarray(labels[:, first])  # one column a block
    matrix = np.empty_like(labels)
    number: dict[bytes, int] = {}
    clusters: list[Array] = []  # of each, the blocks in it
    for i, row in enumerate(labels):
        for label in range(row.max() + 1):
            held = row == label
            key = held.tobytes()
            if key not in number:
                number[key] = len(clusters)
                clusters.append(held)
            matrix[i, held] = number[key]
    old = np.array(subproblems, np.int64)
    block = np.ascontiguousarray(block.ravel(), np.int64)
    while not room_for(engine.state, len(labels), len(first), len(clusters)):
        engine.state = grown(engine.state)
    ids = take_clusters(engine.state, len(clusters))
    engine.fill_all(ids, [members[held[block]] for held in clusters])
    commit(engine.state, old, members, block, ids[matrix], scores.copy())


@kernel
def room_for(state, n_rows, n_blocks, n_clusters):
    """Whether there is room for so many new rows, blocks and clusters."""
    cells = n_blocks * (n_rows + 1) + n_clusters
    return has_room(state, cells, n_rows * n_blocks, n_clusters, n_blocks, n_blocks)


@kernel
def take_clusters(state, n):
    """Ids of n new clusters, to be filled in."""
    ids = np.empty(n, np.int64)
    for k in range(n):
        ids[k] = state.free_cluster
        if ids[k] >= 0:
            state.free_cluster = state.clusters[ids[k]].size
        else:
            ids[k] = state.n_clusters
            state.n_clusters += 1
    return ids


@kernel
def commit(state, old, members, block, matrix, weight):
    """Put the members into new blocks and write the new rows."""
    for s in old:
        sub = state.subproblems[s]
        for j in range(sub.columns):
            b = state.cells[sub.cells + j]
            state.blocks[b].size, state.blocks[b].head = 0, state.free_block
            state.free_block = b
    blocks = np.full(matrix.shape[1], -1)
    for k in range(members.shape[0]):
        x, b = members[k], blocks[block[k]]
        if b < 0:
            blocks[block[k]] = new_block(state, x)
            continue
        head = state.blocks[b].head
        tail = state.observations[head].previous
        observation = state.observations[x]
        observation.block, observation.next, observation.previous = b, head, tail
        state.observations[tail].next = x
        state.observations[head].previous = x
        state.blocks[b].size += 1
    split(state, old, blocks, matrix, weight)


def scores_of_sets(engine: Any, clusters: list[Integers]) -> Floats:
    """lgamma(|c|) + log p(c) of sets of observations, which need not be in any particle."""
    while not room_for(engine.state, 0, 0, len(clusters)):
        engine.state = grown(engine.state)
    ids = take_clusters(engine.state, len(clusters))
    try:
        engine.fill_all(ids, clusters)
        return scores_of(engine.state, ids)
    finally:
        give_back(engine.state, ids)


@kernel
def scores_of(state, ids):
    """The scores of clusters."""
    scores = np.empty(ids.shape[0])
    for k in range(ids.shape[0]):
        scores[k] = state.clusters[ids[k]].score
    return scores


@kernel
def give_back(state, ids):
    """Free clusters that no particle holds."""
    for k in range(ids.shape[0] - 1, -1, -1):
        state.clusters[ids[k]].size = state.free_cluster
        state.free_cluster = ids[k]
