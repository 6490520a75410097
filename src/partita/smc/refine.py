"""Refinement: look again at what has been seen (DESIGN, "Refinement").

Under exact weights any partition of a subproblem's observations has a computable score, so the m best of old
and new partitions are never a worse approximation. *Replay* finds new ones by running the observations of a
subproblem through the sampler again, in a random order. Run together with those of its *neighbour*, the
subproblem that one of them would fall in otherwise, this also mends clusters divided between the two: such a
pair is joined where partitions that cross it hold more than 1/m of the weight, as in the merge step.
"""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np

from partita._kernel import kernel
from partita._typing import Array, Floats, Integers
from partita.models.families import extend
from partita.smc.bonds import bonds_among
from partita.smc.remove import gain_of
from partita.smc.split import new_block, split
from partita.smc.state import Settings, dismantle, grown, has_room, uniform
from partita.smc.update import find_bounds


def refine(engine: Any) -> None:
    """One sweep: replay every subproblem, alone and with its neighbour, in random order."""
    first = first_members(engine.state)
    engine.need([subproblem_of(engine.state, x) for x in first])
    generator = np.random.default_rng(int(draw(engine.state)))
    for x in generator.permutation(first):
        s = subproblem_of(engine.state, x)
        members = partitions(engine.state, s)[0]
        if len(members) > 1:
            replay(engine, [s], generator)
            s = subproblem_of(engine.state, x)
            members = partitions(engine.state, s)[0]
        other = neighbour(engine, s, int(generator.choice(members)))
        if other >= 0:
            replay(engine, [s, other], generator)


def replay(engine: Any, subproblems: list[int], generator: np.random.Generator) -> None:
    """Run the observations of one or two subproblems again, and keep the best partitions of old and new."""
    old = [partitions(engine.state, s) for s in subproblems]
    members = np.concatenate([observations for observations, _, _ in old])
    order = generator.permutation(len(members))
    labels, scores = run_again(engine, members[order], generator)
    labels[:, order] = labels.copy()
    if len(old) == 1:
        improve(engine, subproblems, members, old[0][1:], (labels, scores))
        return
    border = len(old[0][0])
    crosses = np.array([np.isin(row[:border], row[border:]).any() for row in labels], bool)
    if crosses.any():
        together = product([part[1:] for part in old], engine.particles)
        improve(engine, subproblems, members, together, (labels[crosses], scores[crosses]))


def run_again(
    engine: Any, members: Integers, generator: np.random.Generator, bonds: Any = None
) -> tuple[Integers, Floats]:
    """The best partitions of ``members`` that a fresh sampler finds in this order, and their scores.

    They conform to ``bonds`` among the observations of the engine; to its own, unless others are given.
    """
    _, _, settings, log_alpha, _, _ = dismantle(engine.state)
    quiet = Settings(*settings.tolist())._replace(rejuvenation=0, learn_alpha=0)
    seed = int(generator.integers(2**31))
    fresh = engine.like(quiet, log_alpha, seed)
    fresh.replayed = members
    fresh.bonds = bonds_among(engine.bonds if bonds is None else bonds, members)
    fresh.run(fresh.store(engine.stored(members)))
    found = [partitions(fresh.state, subproblem_of(fresh.state, x)) for x in first_members(fresh.state)]
    labels, scores = product([part[1:] for part in found], engine.particles)
    order = np.concatenate([observations for observations, _, _ in found])
    labels[:, order] = labels.copy()
    return labels, scores


def product(parts: list[tuple[Integers, Floats]], m: int) -> tuple[Integers, Floats]:
    """The m best combinations of one row from each part, side by side, best first."""
    orders = [np.argsort(-scores, kind="stable") for _, scores in parts]
    values = [scores[order] for (_, scores), order in zip(parts, orders, strict=True)]
    heap = [(-sum(float(v[0]) for v in values), (0,) * len(parts), 0)]
    chosen: list[tuple[int, ...]] = []
    scores: list[float] = []
    while heap and len(chosen) < m:
        cost, combination, last = heapq.heappop(heap)
        chosen.append(combination)
        scores.append(-cost)
        for q in range(last, len(parts)):
            k = combination[q]
            if k + 1 < len(values[q]):
                step = float(values[q][k] - values[q][k + 1])
                heapq.heappush(heap, (cost + step, (*combination[:q], k + 1, *combination[q + 1 :]), q))
    rows = np.array(chosen).T
    labels = [matrix[order[index]] for (matrix, _), order, index in zip(parts, orders, rows, strict=True)]
    return np.concatenate(labels, axis=1), np.array(scores)


def improve(
    engine: Any,
    subproblems: list[int],
    members: Integers,
    old: tuple[Integers, Floats],
    new: tuple[Integers, Floats],
) -> None:
    """Replace subproblems by the m best of old and new partitions, where new ones matter.

    For one subproblem any new partition among the m best does; to join two, those that cross the border must
    hold more than 1/m of the weight, or the best of all be one of them.
    """
    labels, scores, best = best_of([old, new], engine.particles)
    weight = np.exp(scores[best] - scores[best[0]])
    share = weight[best >= len(old[0])].sum() / weight.sum()
    enough = 0.0 if len(subproblems) == 1 else 1.0 / engine.particles
    if share > enough or best[0] >= len(old[0]):
        install(engine, subproblems, members, labels[best], scores[best])


def best_of(parts: list[tuple[Integers, Floats]], m: int) -> tuple[Integers, Floats, Integers]:
    """All rows of all parts and their scores, and which are the m best distinct ones, best first."""
    labels = canonical(np.concatenate([rows for rows, _ in parts]))
    scores = np.concatenate([scores for _, scores in parts])
    _, distinct = np.unique(labels, axis=0, return_index=True)
    distinct.sort()  # of equal rows the first, so old before new
    return labels, scores, distinct[np.argsort(-scores[distinct], kind="stable")[:m]]


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


def neighbour(engine: Any, s: int, x: int) -> int:
    """The candidate other than ``s`` with the best cluster for observation ``x``; −1 if there is none."""
    engine.weigh(x)
    return int(best_other(engine.state, s))


@kernel
def draw(state):
    """A seed for a generator."""
    return int(uniform(state) * 2147483648.0)


@kernel
def subproblem_of(state, x):
    """The subproblem of observation ``x``."""
    return state.blocks[state.observations[x].block].subproblem


@kernel
def first_members(state):
    """One observation of each subproblem."""
    found = np.empty(state.n_subproblems, np.int64)
    count = 0
    for s in range(state.n_subproblems):
        if state.subproblems[s].rows > 0:
            found[count] = state.blocks[state.cells[state.subproblems[s].cells]].head
            count += 1
    return found[:count]


@kernel
def partitions(state, s):
    """The observations of subproblem ``s``, their cluster ids in each row, and the rows' scores."""
    sub, cells = state.subproblems[s], state.cells
    n = 0
    for j in range(sub.columns):
        n += state.blocks[cells[sub.cells + j]].size
    members, ids = np.empty(n, np.int64), np.empty((sub.rows, n), np.int64)
    scores = np.zeros(sub.rows)
    at = sub.cells + sub.columns + sub.clusters
    k = 0
    for j in range(sub.columns):
        block = state.blocks[cells[sub.cells + j]]
        x = block.head
        for _ in range(block.size):
            members[k] = x
            for i in range(sub.rows):
                ids[i, k] = cells[at + i * sub.columns + j]
            x = state.observations[x].next
            k += 1
    for i in range(sub.rows):
        state.tick += 1
        for j in range(sub.columns):
            c = cells[at + i * sub.columns + j]
            if state.seen[c] != state.tick:
                state.seen[c] = state.tick
                scores[i] += state.log_alpha + state.clusters[c].score
    return members, ids, scores


@kernel
def canonical(ids):
    """Rows of ids renumbered 0, 1, … in order of first appearance."""
    n_rows, n = ids.shape
    top = 0
    for i in range(n_rows):
        for j in range(n):
            top = max(top, ids[i, j])
    number, seen = np.empty(top + 1, np.int64), np.zeros(top + 1, np.int64)
    labels = np.empty((n_rows, n), np.int64)
    for i in range(n_rows):
        count = 0
        for j in range(n):
            if seen[ids[i, j]] != i + 1:
                seen[ids[i, j]] = i + 1
                number[ids[i, j]] = count
                count += 1
            labels[i, j] = number[ids[i, j]]
    return labels


@kernel
def best_other(state, s):
    """Given the gains, the candidate other than ``s`` with the largest one; −1 if there is none."""
    find_bounds(state)
    best = -1
    for q in range(state.n_candidates):
        other = state.candidates[q]
        if other != s and (best < 0 or state.bound[other] > state.bound[best]):
            best = other
    return best


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
def fill(state, family, ids, ends, members):
    """Compute the statistics and scores of clusters from their members, which stand one after the other."""
    start = 0
    for k in range(ids.shape[0]):
        c, total, parent = ids[k], 0.0, np.int64(0)
        for at in range(start, ends[k]):
            x = members[at]
            total += gain_of(state, family, parent, x)
            extend(family, state.statistics, c, parent, at - start, state.data, x)
            parent = c
        state.clusters[c].size = ends[k] - start
        state.clusters[c].score = total
        start = ends[k]


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
