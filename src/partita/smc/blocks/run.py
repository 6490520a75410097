"""Blocks through the sampler: each on a stage that is emptied before it, several at the same time.

A *stage* is an engine of its own. What is left on it in the end, the particles of the block's subproblems, is packed as
files have it (:mod:`partita.smc.files.packing`).
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import local
from typing import Any, NamedTuple

import numpy as np

from partita._core.hashing import mixed
from partita._core.kernel import inner, kernel
from partita._core.progress import Watcher, unwatched
from partita._core.typing import Floats, Integers
from partita.smc.moves.concentration import change_alpha
from partita.smc.moves.refine import refine
from partita.smc.moves.replay import empty
from partita.smc.state.index import empty_index, longer
from partita.smc.state.state import Settings, dismantle, doubled
from partita.smc.steps.step import DONE, stream

ALL_MET = (
    64  # observations of a block in which each meets all before it; in larger ones, those that share keys
)
TOGETHER = 512  # observations, at least, whose blocks are run in one call

ALL_DONE, NO_STAGE, NO_PAPER, OBSERVED = range(4)  # how running blocks ends


class Packed(NamedTuple):
    """Subproblems of several blocks, one after the other; see :mod:`partita.smc.files.packing`."""

    members: Integers
    sizes: Integers  # of the blocks of observations that are together in all particles
    shapes: Integers  # (subproblems, 3): rows, columns, clusters
    cells: Any  # int32
    weights: Floats
    scores: Floats


class Task(NamedTuple):
    """What a run of blocks needs."""

    data: Floats  # observations, encoded
    starts: Integers  # where the keys of each begin, and where the last one's end
    keys: Integers
    members: Integers  # block after block, each in ascending order
    ends: Integers  # where each block ends
    names: (
        Integers  # of each observation: the number that it has among all there are, which seeds are made from
    )
    marks: Integers  # numbers of observations from which on another α counts, the first one 0
    log_alphas: Floats  # these α


def task_of(
    data: Floats,
    keys: tuple[Integers, Integers],
    block: Integers,
    names: Integers,
    alphas: tuple[Integers, Floats],
) -> Task:
    """Blocks in the order of their first observations; ``block`` says of each observation which one it is in."""
    members = np.argsort(block, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(block[members])) + 1, len(members))
    starts, codes = keys
    if not len(starts):
        starts = np.zeros(len(block) + 1, np.int64)
    return Task(data, starts, codes, members, ends, names, *alphas)


def run(
    engine: Any, task: Task, seed: int, workers: int, sweeps: int = 0, progress: Watcher = unwatched
) -> Packed:
    """The subproblems of all blocks, in their order.

    Parameters
    ----------
    engine : Engine
        For the same model; it is left as it is, but what is done is counted for it.
    task : Task
    seed : int
    workers : int
        How many threads.
    sweeps : int
        Of refinement, of each block when all of it has been observed.
    progress : callable
    """
    settings = Settings(*dismantle(engine.state)[2].tolist())._replace(rejuvenation=0, learn_alpha=0)
    own, total, stages = local(), len(task.members), []

    def some(blocks: tuple[int, int]) -> tuple[int, Packed]:
        if not hasattr(own, "stage"):
            own.stage = engine.like(settings, 0.0, seed)
            stages.append(own.stage)
        found = run_some(own.stage, engine.family, engine.widths[0], task, blocks, seed, sweeps)
        return int(task.ends[blocks[1] - 1]), found

    parts = []
    with ThreadPoolExecutor(workers) as pool:
        for done, part in pool.map(some, in_portions(task.ends)):
            parts.append(part)
            progress(done, total)
    for stage in stages:
        engine.count_in(stage)
    return joined(parts)


def in_portions(ends: Integers) -> list[tuple[int, int]]:
    """Ranges of blocks that have about ``TOGETHER`` observations."""
    last, portions = 0, []
    marks = np.arange(TOGETHER, int(ends[-1]) + TOGETHER, TOGETHER)
    for stop in np.unique(np.minimum(np.searchsorted(ends, marks, side="left") + 1, len(ends))).tolist():
        if stop > last:
            portions.append((last, stop))
            last = stop
    return portions


def joined(parts: Sequence[Packed]) -> Packed:
    """Packed subproblems one after the other."""
    return Packed(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def run_some(
    stage: Any, family: Any, d: int, task: Task, blocks: tuple[int, int], seed: int, sweeps: int
) -> Packed:
    """Run a range of blocks, with what the family says of the observations and the stage's own tables."""
    if hasattr(family, "tables"):
        family = family._replace(tables=stage.family.tables)
    at, last = blocks
    first = int(task.ends[at - 1]) if at else 0
    n = int(task.ends[last - 1]) - first
    paper, used = blank(n, 4 * n), np.zeros(len(Packed._fields), np.int64)
    while True:
        options = np.uint64(seed), sweeps > 0, paper, used
        status, at = run_blocks(stage.state, family, d, task, at, last, *options)
        if status == ALL_DONE:
            break
        begin = int(task.ends[at - 1]) if at else 0
        if status == NO_STAGE:
            stage.state = doubled(stage.state, int(task.ends[at]) - begin)
        elif status == NO_PAPER:
            paper = longer_paper(paper)
        else:
            for _ in range(sweeps):
                refine(stage)
            while not pack_block(stage.state, task, begin, paper, used):
                paper = longer_paper(paper)
            at += 1
    return Packed(*(part[:length].copy() for part, length in zip(paper, used.tolist(), strict=True)))


def blank(n: int, m: int) -> Packed:
    """Room for so many observations, and for m cells."""
    whole, half = (np.int64, np.float64)
    return Packed(
        np.empty(n, whole),
        np.empty(n, whole),
        np.empty((n, 3), whole),
        np.empty(m, np.int32),
        np.empty(m, half),
        np.empty(m, half),
    )


def longer_paper(paper: Packed) -> Packed:
    """The same with twice the room for cells, weights and scores."""
    return Packed(*paper[:3], *(np.concatenate([part, np.empty_like(part)]) for part in paper[3:]))


# ---------------------------------------------------------------------- kernels


@kernel
def run_blocks(stage, family, d, task, at, last, seed, stops, paper, used):
    """Run blocks until the last, or until one is on the stage, if it ``stops`` there and there is more than one
    observation; returns how that ended, and at which block."""
    while at < last:
        first = task.ends[at - 1] if at > 0 else np.int64(0)
        end = task.ends[at]
        if stage.data.shape[0] < end - first or stage.observations.shape[0] < end - first:
            return NO_STAGE, at
        own = mixed(seed, task.names[task.members[first]])
        empty(stage, family, task.log_alphas[0], d, own)
        put_on(stage, task, first, end)
        before = stage.totals.copy()
        if not observe_all(stage, family, task, first, end):
            stage.totals[:] = before  # it is run again, where there is more room, and counts once
            return NO_STAGE, at
        if stops and end > first + 1:
            return OBSERVED, at
        if not pack_stage(stage, task, first, paper, used):
            stage.totals[:] = before
            return NO_PAPER, at
        at += 1
    return ALL_DONE, at


@inner
def observe_all(stage, family, task, first, end):
    """Observe a block that is stored, with the α of each observation's time; false if there is no room."""
    at, k = first, 0
    while at < end:
        x = task.names[task.members[at]]
        while k + 1 < task.marks.shape[0] and task.marks[k + 1] <= x:
            k += 1
        until = at
        while until < end and (
            k + 1 == task.marks.shape[0] or task.names[task.members[until]] < task.marks[k + 1]
        ):
            until += 1
        change_alpha(stage, task.log_alphas[k])
        if stream(stage, family, until - first) != DONE:
            return False
        at = until
    change_alpha(stage, task.log_alphas[-1])
    return True


@inner
def put_on(stage, task, first, end):
    """Store a block's observations on the stage, and their keys if it is large."""
    n, index = end - first, stage.index
    for k in range(n):
        x = task.members[first + k]
        for j in range(task.data.shape[1]):
            stage.data[k, j] = task.data[x, j]
    index.on = n > ALL_MET and task.keys.shape[0] > 0
    if not index.on:
        return
    count = np.int64(0)
    for k in range(n):
        count += task.starts[task.members[first + k] + 1] - task.starts[task.members[first + k]]
    index.starts, index.keys = longer(index.starts, n + 1), longer(index.keys, count)
    empty_index(index)
    at = np.int64(0)
    for k in range(n):
        x = task.members[first + k]
        for p in range(task.starts[x], task.starts[x + 1]):
            index.keys[at] = task.keys[p]
            at += 1
        index.starts[k + 1] = at


@kernel
def pack_block(stage, task, first, paper, used):
    """:func:`pack_stage`, for Python."""
    return pack_stage(stage, task, first, paper, used)


@inner
def pack_stage(stage, task, first, paper, used):
    """Append all subproblems of the stage to the paper; false, with nothing appended, if there is no room."""
    cells = rows = clusters = np.int64(0)
    for s in range(stage.n_subproblems):
        sub = stage.subproblems[s]
        if sub.rows > 0:
            cells += sub.rows * sub.columns
            rows += sub.rows
            clusters += sub.clusters
    if (
        used[3] + cells > paper.cells.shape[0]
        or used[4] + rows > paper.weights.shape[0]
        or used[5] + clusters > paper.scores.shape[0]
    ):
        return False
    for s in range(stage.n_subproblems):
        if stage.subproblems[s].rows > 0:
            pack_subproblem(stage, stage.subproblems[s], task, first, paper, used)
    return True


@inner
def pack_subproblem(stage, sub, task, first, paper, used):
    """Append one subproblem to the paper, for which there is room."""
    at = used[2]
    paper.shapes[at, 0], paper.shapes[at, 1], paper.shapes[at, 2] = sub.rows, sub.columns, sub.clusters
    used[2] += 1
    for j in range(sub.columns):
        block = stage.blocks[stage.cells[sub.cells + j]]
        paper.sizes[used[1]] = block.size
        used[1] += 1
        x = block.head
        for _ in range(block.size):
            paper.members[used[0]] = task.members[first + x]
            used[0] += 1
            x = stage.observations[x].next
    for k in range(sub.clusters):
        c = stage.cells[sub.cells + sub.columns + k]
        stage.child[c] = k
        paper.scores[used[5]] = stage.clusters[c].score
        used[5] += 1
    start = sub.cells + sub.columns + sub.clusters
    for k in range(start, start + sub.rows * sub.columns):
        paper.cells[used[3]] = stage.child[stage.cells[k]]
        used[3] += 1
    for i in range(sub.rows):
        paper.weights[used[4]] = stage.weights[sub.weights + i]
        used[4] += 1
