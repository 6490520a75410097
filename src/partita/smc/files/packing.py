"""A state as plain arrays with nothing in them to go wrong twice, for files and databases.

What the state holds more than once, or only for speed, is left out and derived again: links between members
of a block, back references, sizes of clusters, lists of free entries. What remains, in order of the
subproblems' slots:

- ``data``: the observations, as the model has encoded them;
- ``members``: their numbers, block after block, each block from its first member on; ``sizes`` of the blocks;
- ``shapes``: of each subproblem its slot and its numbers of rows, columns and clusters;
- ``free_slots``: the slots that subproblems to come will take, in that order, which decides ties;
- ``cells``: (rows × columns) of each subproblem, clusters numbered within it;
- ``weights`` of the rows, ``scores`` and ``statistics`` of the clusters;
- ``key_counts``: how many keys each observation has, nothing where candidates are not in use; ``keys``: those
  of one observation after the other, each in ascending order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from partita._core.hashing import scramble
from partita._core.kernel import kernel
from partita._core.typing import Array, Integers
from partita.smc.state.index import filled_index, new_index
from partita.smc.state.names import no_names
from partita.smc.state.state import (
    ARRAYS,
    BLOCK,
    CLUSTER,
    COUNTS,
    OBSERVATION,
    SUBPROBLEM,
    TOTALS,
    Settings,
    assemble,
    dismantle,
)
from partita.smc.steps.candidates import kept_keys

PACKED: dict[str, np.dtype[Any]] = {
    "data": np.dtype("<f8"),
    "members": np.dtype("<i8"),
    "sizes": np.dtype("<i8"),
    "shapes": np.dtype("<i8"),
    "free_slots": np.dtype("<i8"),
    "cells": np.dtype("<i4"),
    "weights": np.dtype("<f8"),
    "scores": np.dtype("<f8"),
    "statistics": np.dtype("<f8"),
    "key_counts": np.dtype("<i8"),
    "keys": np.dtype("<i8"),
}
LEFT_OUT = (
    "data",
    "statistics",
)  # of families with tables: numbers that are good for one vocabulary, or pool
DIMENSIONS = {name: 2 if name in ("data", "shapes", "statistics") else 1 for name in PACKED}


def ragged(starts: Integers, lengths: Integers) -> Integers:
    """The indices start, …, start + length − 1 of each piece, one piece after the other."""
    result: Integers = np.repeat(starts - offsets(lengths), lengths) + np.arange(lengths.sum())
    return result


def offsets(lengths: Integers) -> Integers:
    """Where each piece starts when they stand one after the other."""
    result: Integers = np.cumsum(lengths) - lengths
    return result


def chain(first: int, following: Integers) -> list[int]:
    """The entries of a list that is linked through an array and ends with a negative number."""
    found = []
    while first >= 0:
        found.append(first)
        first = int(following[first])
    return found


@kernel
def members_of_blocks(state, blocks):
    """The members of blocks, one block after the other, each from its first member on."""
    n = 0
    for b in blocks:
        n += state.blocks[b].size
    members = np.empty(n, np.int64)
    k = 0
    for b in blocks:
        x = state.blocks[b].head
        for _ in range(state.blocks[b].size):
            members[k] = x
            x = state.observations[x].next
            k += 1
    return members


def pack_slots(state: Any, slots: Integers) -> dict[str, Array]:
    """What :func:`pack` has of the subproblems in some slots; members by their numbers in the state."""
    parts, counts, _, _, _, _ = dismantle(state)
    part, count = dict(zip(ARRAYS, parts, strict=True)), dict(zip(COUNTS, counts.tolist(), strict=True))
    live = part["subproblems"][slots]
    own_blocks = part["cells"][ragged(live["cells"], live["columns"])]
    ids = part["cells"][ragged(live["cells"] + live["columns"], live["clusters"])]
    number = np.zeros(count["n_clusters"], np.int64)
    number[ids] = ragged(np.zeros_like(live["clusters"]), live["clusters"])
    matrices = ragged(live["cells"] + live["columns"] + live["clusters"], live["rows"] * live["columns"])
    return {
        "members": members_of_blocks(state, own_blocks),
        "sizes": part["blocks"]["size"][own_blocks],
        "shapes": np.column_stack([slots, live["rows"], live["columns"], live["clusters"]]),
        "cells": number[part["cells"][matrices]].astype(np.int32),
        "weights": part["weights"][ragged(live["weights"], live["rows"])],
        "scores": part["clusters"]["score"][ids],
        "statistics": part["statistics"][ids],
    }


def live_slots(state: Any) -> Integers:
    """The slots of all subproblems."""
    parts, counts, _, _, _, _ = dismantle(state)
    subproblems = dict(zip(ARRAYS, parts, strict=True))["subproblems"]
    return np.flatnonzero(subproblems["rows"][: counts[COUNTS.index("n_subproblems")]] > 0)


def free_slots(state: Any) -> Integers:
    """The slots that subproblems to come will take, in that order."""
    parts, counts, _, _, _, _ = dismantle(state)
    first = int(counts[COUNTS.index("free_subproblem")])
    return np.array(chain(first, dict(zip(ARRAYS, parts, strict=True))["subproblems"]["cells"]), np.int64)


def pack(state: Any) -> dict[str, Array]:
    """The arrays that :func:`unpack` makes the state from; removed observations leave no gap."""
    parts, counts, _, _, _, _ = dismantle(state)
    part, count = dict(zip(ARRAYS, parts, strict=True)), dict(zip(COUNTS, counts.tolist(), strict=True))
    _, starts, keys = kept_keys(state)
    present = np.flatnonzero(part["observations"]["block"][: count["n_observations"]] >= 0)
    packed = pack_slots(state, live_slots(state))
    return packed | {
        "data": part["data"][present],
        "members": np.searchsorted(present, packed["members"]),
        "free_slots": free_slots(state),
        "key_counts": np.diff(starts)[present] if len(starts) > 1 else np.empty(0, np.int64),
        "keys": keys,
    }


def require(holds: Any, what: str) -> None:
    """Raise ValueError unless all of ``holds``."""
    if not np.all(holds):
        raise ValueError(f"{what} make no sense")


def check(packed: dict[str, Array], weighed: bool = True) -> None:
    """Raise ValueError unless the arrays are a state, whatever kernels may do with it.

    Where it is not ``weighed``, any weights will do: they are to be computed from the scores.
    """
    members, sizes, shapes = packed["members"], packed["sizes"], packed["shapes"]
    require(np.array_equal(np.sort(members), np.arange(len(packed["data"]))), "members")
    require(len(members) > 0 and len(sizes) > 0, "members")
    require((sizes >= 1) & (sizes <= len(members)), "sizes")
    require(sizes.sum() == len(members), "sizes")
    require(shapes.shape[1] == 4 and len(shapes) > 0, "shapes")
    slots, rows, columns, clusters = shapes.T
    taken = np.sort(np.concatenate([slots, packed["free_slots"]]))
    require(np.array_equal(taken, np.arange(len(taken))) and (np.diff(slots) > 0).all(), "slots")
    lengths = (
        (rows, packed["weights"]),
        (columns, sizes),
        (clusters, packed["scores"]),
        (clusters, packed["statistics"]),
    )
    for counts, array in lengths:
        require((counts >= 1) & (counts <= len(array)), "shapes")
        require(counts.sum() == len(array), "shapes")
    require((rows * columns).sum() == len(packed["cells"]), "shapes")
    for name in ("data", "scores", "statistics"):
        require(np.isfinite(packed[name]), name)
    if weighed:
        check_weights(packed["weights"], offsets(rows))
    check_cells(packed["cells"].astype(np.int64), rows, columns, clusters)
    check_keys(packed["key_counts"], packed["keys"], len(members))


def check_weights(weights: Array, starts: Integers) -> None:
    """They are log-weights, normalised and in descending order within each subproblem."""
    require(np.isfinite(weights) & (weights < 1e-6), "weights")
    descends = np.diff(weights, prepend=np.inf) <= 0.0
    descends[starts] = True
    require(descends, "weights")
    require(abs(np.add.reduceat(np.exp(weights), starts) - 1.0) < 1e-6, "weights")


def check_cells(cells: Integers, rows: Integers, columns: Integers, clusters: Integers) -> None:
    """A number stands for the same columns in every row; rows are distinct partitions, columns differ."""
    own = np.repeat(np.arange(len(rows)), rows * columns)
    require((cells >= 0) & (cells < clusters[own]), "cells")
    cluster = cells + offsets(clusters)[own]
    column = ragged(np.repeat(offsets(columns), rows), np.repeat(columns, rows))
    row = np.repeat(np.arange(rows.sum()), np.repeat(columns, rows))
    n_columns, n_clusters = int(columns.sum()), int(clusters.sum())
    pairs = np.unique(cluster * n_columns + column)
    held = np.bincount(pairs // n_columns, minlength=n_clusters)  # columns that the cluster ever holds
    require(held >= 1, "cells")
    present, times = np.unique(row * n_clusters + cluster, return_counts=True)
    require(times == held[present % n_clusters], "cells")
    codes = scramble(np.arange(n_columns))
    of_cluster = np.add.reduceat(codes[pairs % n_columns], offsets(held))
    of_cell = scramble(of_cluster)[cluster]
    of_row = np.add.reduceat(scramble(codes[column] + of_cell), offsets(np.repeat(columns, rows)))
    of_column = np.zeros(n_columns, np.uint64)
    np.add.at(of_column, column, scramble(scramble(row) + of_cell))
    require(len(np.unique(of_row)) == len(of_row), "cells")
    require(len(np.unique(of_column)) == len(of_column), "cells")


def check_keys(counts: Integers, keys: Integers, n: int) -> None:
    """Each observation's keys are distinct and in ascending order, or there are none at all."""
    require(len(counts) in (0, n), "key_counts")
    require((counts >= 0) & (counts <= len(keys)), "key_counts")
    require(counts.sum() == len(keys), "key_counts")
    ascends = keys[1:] > keys[:-1]
    first = offsets(counts)[counts > 0]
    ascends[first[1:] - 1] = True
    require(ascends, "keys")


def unpack(
    packed: dict[str, Array],
    empty: Array,
    next_alpha: int,
    settings: Settings,
    log_alpha: float,
    random: int,
    constraints: Any,
) -> Any:
    """The state that :func:`pack` has packed.

    Parameters
    ----------
    packed : dict
        Arrays, which have passed :func:`check`.
    empty : array
        Statistics of the empty cluster.
    next_alpha, settings, log_alpha, random, constraints
        What has the same names in the state.
    """
    slots, rows, columns, clusters = packed["shapes"].T
    cells, matrix = _cells(packed["cells"], rows, columns, clusters)
    free = packed["free_slots"]
    subproblems = np.zeros(len(slots) + len(free), SUBPROBLEM)
    for name, values in (("rows", rows), ("columns", columns), ("clusters", clusters)):
        subproblems[name][slots] = values
    subproblems["cells"][slots] = offsets(columns + clusters + rows * columns)
    subproblems["weights"][slots] = offsets(rows)
    subproblems["cells"][free] = np.append(free[1:], -1)[: len(free)]
    counts = dict.fromkeys(COUNTS, -1) | {  # no entry is free but the slots
        "n_observations": len(packed["members"]),
        "n_blocks": len(packed["sizes"]),
        "n_clusters": len(packed["scores"]) + 1,
        "n_subproblems": len(subproblems),
        "free_subproblem": int(free[0]) if len(free) else -1,
        "end_cells": len(cells),
        "end_weights": len(packed["weights"]),
        "live_cells": len(cells),
        "live_weights": len(packed["weights"]),
        "next_alpha": next_alpha,
        "n_removed": 0,
        "n_changes": 0,
    }
    arrays = (
        packed["data"].copy(),
        _observations(packed["members"], packed["sizes"]),
        _blocks(packed["members"], packed["sizes"], slots, columns),
        _clusters(packed["scores"], packed["sizes"], matrix, rows, columns),
        np.concatenate([empty[None], packed["statistics"]]),
        subproblems,
        cells,
        packed["weights"].copy(),
    )
    numbers = np.array(list(counts.values()), np.int64)
    starts = np.append(0, np.cumsum(packed["key_counts"]))
    index = filled_index(starts, packed["keys"]) if len(starts) > 1 else new_index(0)
    options = np.array(settings, np.int64)
    shared = index, constraints, no_names(), np.zeros(len(TOTALS), np.int64)
    return assemble(arrays, numbers, options, log_alpha, np.uint64(random), *shared)


def _observations(members: Integers, sizes: Integers) -> Array:
    """The circular lists of members."""
    first = offsets(sizes)
    following = np.arange(1, len(members) + 1)
    following[first + sizes - 1] = first
    observations = np.zeros(len(members), OBSERVATION)
    observations["block"][members] = np.repeat(np.arange(len(sizes)), sizes)
    observations["next"][members] = members[following]
    observations["previous"][members[following]] = members
    return observations


def _blocks(members: Integers, sizes: Integers, slots: Integers, columns: Integers) -> Array:
    """The blocks, in order of their subproblems and columns."""
    blocks = np.zeros(len(sizes), BLOCK)
    blocks["head"], blocks["size"] = members[offsets(sizes)], sizes
    blocks["subproblem"] = np.repeat(slots, columns)
    blocks["column"] = ragged(np.zeros_like(columns), columns)
    return blocks


def _cells(
    numbers: Integers, rows: Integers, columns: Integers, clusters: Integers
) -> tuple[Integers, Integers]:
    """Blocks, clusters and matrix of each subproblem one after the other, and all matrices alone."""
    own = np.repeat(np.arange(len(rows)), rows * columns)
    matrix = numbers + 1 + offsets(clusters)[own]  # cluster 0 is the empty one
    extent = columns + clusters + rows * columns
    cells, at = np.zeros(extent.sum(), np.int64), offsets(extent)
    parts = (
        (columns, np.arange(columns.sum())),
        (clusters, np.arange(1, clusters.sum() + 1)),
        (rows * columns, matrix),
    )
    for lengths, values in parts:
        cells[ragged(at, lengths)] = values
        at = at + lengths
    return cells, matrix


def _clusters(scores: Array, sizes: Integers, matrix: Integers, rows: Integers, columns: Integers) -> Array:
    """The clusters, the empty one first; a cluster's size is that of its blocks in any row."""
    column = ragged(np.repeat(offsets(columns), rows), np.repeat(columns, rows))
    pairs = np.unique(matrix * len(sizes) + column)
    clusters = np.zeros(len(scores) + 1, CLUSTER)
    clusters["score"][1:] = scores
    np.add.at(clusters["size"], pairs // len(sizes), sizes[pairs % len(sizes)])
    return clusters


def without_rows(packed: dict[str, Array]) -> dict[str, Array]:
    """A packed state of a family with tables, as files hold it."""
    return packed | {name: packed[name][:, :0] for name in LEFT_OUT}


def with_room(packed: dict[str, Array], n_encoded: int, width: int) -> dict[str, Array]:
    """What :func:`without_rows` has returned, with room for the data and statistics that it lacks."""
    if any(packed[name].shape[1] for name in LEFT_OUT):
        raise ValueError("data or statistics where there are none")
    n, n_clusters = (len(packed[name]) for name in LEFT_OUT)
    return packed | {"data": np.zeros((n, n_encoded)), "statistics": np.zeros((n_clusters, width))}
