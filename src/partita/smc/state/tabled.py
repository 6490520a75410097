"""Families that own tables: copies of them for copies of an engine, rows made anew for files.

A row of statistics of such a family points into the tables, a struct that kernels change in place
(:mod:`partita.models.records.tables`). So the tables belong to one state: a copy of the state needs a copy of them,
and what is packed goes without rows. Those are made again from the clusters' members.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from partita._core.kernel import inner, kernel
from partita._core.typing import Array, Integers
from partita.models.records.tables import filled_tables, kept_tables
from partita.models.scoring.families import extend

LEFT_OUT = ("data", "statistics")  # of what is packed: numbers that are good for one vocabulary, or one pool


class Kept(NamedTuple):
    """A family's tables as plain arrays; the rest of it is in the model."""

    pool: Integers
    free: Integers


def has_tables(family: Any) -> bool:
    """Whether a family, or None, owns tables."""
    return hasattr(family, "tables")


def detached(family: Any) -> Any:
    """A family, or None, as a copy of an engine keeps it: itself, or a copy of its tables."""
    return Kept(*kept_tables(family.tables)) if has_tables(family) else family


def attached(kept: Any, model: Any, n_features: int) -> Any:
    """The family of ``model`` that :func:`detached` was given, with tables of its own."""
    if not isinstance(kept, Kept):
        return kept
    return model.family(n_features)._replace(tables=filled_tables(*kept))


def without_rows(packed: dict[str, Array]) -> dict[str, Array]:
    """A packed state of a family with tables, as files hold it."""
    return packed | {name: packed[name][:, :0] for name in LEFT_OUT}


def with_room(packed: dict[str, Array], n_encoded: int, width: int) -> dict[str, Array]:
    """What :func:`without_rows` has returned, with room for the data and statistics that it lacks."""
    if any(packed[name].shape[1] for name in LEFT_OUT):
        raise ValueError("data or statistics where there are none")
    n, n_clusters = (len(packed[name]) for name in LEFT_OUT)
    return packed | {"data": np.zeros((n, n_encoded)), "statistics": np.zeros((n_clusters, width))}


@inner
def add_block(state, family, c, size, b):
    """Add the members of block ``b`` to the row of ``c``, a cluster of ``size``; returns its new size."""
    block = state.blocks[b]
    x = block.head
    for _ in range(block.size):
        parent = c if size > 0 else np.int64(0)
        extend(family, state.statistics, c, parent, size, state.data, x)
        size += 1
        x = state.observations[x].next
    return size


@kernel
def rebuild_rows(state, family, slots):
    """Write the clusters' rows of statistics of some subproblems from the members; all else is as it is."""
    size, row = np.zeros(state.n_clusters, np.int64), np.full(state.n_clusters, -1)
    for s in slots:
        sub = state.subproblems[s]
        sub.absent = 0
        at = sub.cells + sub.columns + sub.clusters
        for i in range(sub.rows):
            for j in range(sub.columns):
                c = state.cells[at + i * sub.columns + j]
                if row[c] < 0:
                    row[c] = i  # any row that has it will do
                if row[c] == i:
                    size[c] = add_block(state, family, c, size[c], state.cells[sub.cells + j])
