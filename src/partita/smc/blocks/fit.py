"""All observations at once, in blocks: what fills an engine that has seen none.

A stream learns α at marks, from the clusters so far and from the size that the model expects of them. While blocks
are run α is what the expected size makes of it at each mark, for each observation that of the mark before it in the
stream. In the end it is learnt from what has come out, at the last mark, in ``ROUNDS`` steps of EM. So nothing in it
depends on how the blocks were divided among workers.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from partita._core.concentration import alpha_for
from partita._core.progress import Watcher, unwatched
from partita._core.typing import Array, Floats, Integers
from partita.smc.blocks.components import Blocks, blocks_of
from partita.smc.blocks.edges import Edges, edges
from partita.smc.blocks.near import near
from partita.smc.blocks.run import Packed, run, task_of
from partita.smc.files.packing import unpack
from partita.smc.moves.concentration import learn_alpha_at, marks_to
from partita.smc.state.keys import Keys
from partita.smc.state.rebuild import rebuild_rows
from partita.smc.state.state import Settings, dismantle, new_seed, shared_of

ROUNDS = 5  # of learning α


class Plan(NamedTuple):
    """What is linked, and the blocks that it makes."""

    edges: Edges
    blocks: Blocks


def fit_in_blocks(engine: Any, X: Any, workers: int, progress: Watcher = unwatched) -> Plan:
    """Let an engine that has observed nothing observe X, in blocks.

    Parameters
    ----------
    engine : Engine
        Of a compiled model, with exact weights.
    X : validated observations
    workers : int
        How many threads.
    progress : callable
        Told how many observations are clustered, and of how many.
    """
    found = fit_encoded(engine, engine.encode(X), engine.keys(X), workers, progress)
    engine.keep(X)
    return found


def fit_encoded(
    engine: Any, encoded: Floats, keys: Keys, workers: int, progress: Watcher = unwatched
) -> Plan:
    """:func:`fit_in_blocks`, for observations that the engine has encoded; they are not kept otherwise."""
    n, alphas = len(encoded), alphas_of(engine, len(encoded))
    found = plan(engine, encoded, keys, float(alphas[1][-1]), workers)
    task = task_of(encoded, keys, found.blocks.block, np.arange(n), alphas)
    seed = int(new_seed(engine.state))
    packed = run(engine, task, seed, workers, progress=progress)
    totals = shared_of(engine.state)[3].copy()
    engine.state = state_of(engine, packed, encoded, keys, alphas)
    shared_of(engine.state)[3][:] = totals
    return found


def alphas_of(engine: Any, n: int) -> tuple[Integers, Floats]:
    """Numbers of observations from which on α is another, and its logarithms: as given, or as the model expects."""
    if not (engine.learns_alpha and engine.size):
        return np.zeros(1, np.int64), np.array([math.log(engine.alpha)])
    marks = marks_to(n)
    clusters = np.maximum(marks / engine.size, 1.0)
    return marks, np.array(
        [math.log(alpha_for(k, max(mark, 1))) for k, mark in zip(clusters, marks, strict=True)]
    )


def plan(engine: Any, encoded: Floats, keys: Keys, log_alpha: float, workers: int) -> Plan:
    """The blocks of observations that are encoded, and have these keys."""
    import duckdb  # here, for most samplers do without

    n, (starts, codes) = len(encoded), keys
    rows = {"number": np.repeat(np.arange(n), np.diff(starts)), "key": codes}
    with duckdb.connect(config={"threads": workers}) as connection:
        connection.register("keys", rows)
        found = near(connection, "keys", n)
    linked = edges(engine, encoded, found, log_alpha, workers)
    return Plan(linked, blocks_of(n, linked))


def state_of(
    engine: Any,
    found: Packed,
    encoded: Floats,
    keys: Keys,
    alphas: tuple[Integers, Floats],
    statistics: bool = True,
) -> Any:
    """A state with these subproblems and observations, for which α is learnt; with ``statistics`` or without."""
    _, _, settings, _, random, _ = dismantle(engine.state)
    options, (starts, codes) = Settings(*settings.tolist()), keys
    packed: dict[str, Array] = found._asdict() | {
        "data": encoded,
        "shapes": np.column_stack([np.arange(len(found.shapes)), found.shapes]),
        "free_slots": np.empty(0, np.int64),
        "statistics": np.zeros((len(found.scores), engine.scorer.width if statistics else 0)),
        "key_counts": np.diff(starts),
        "keys": codes,
    }
    empty = dismantle(engine.state)[0][4][0, : packed["statistics"].shape[1]]
    constraints = shared_of(engine.state)[1]
    marks, log_alphas = alphas
    state = unpack(packed, empty, 0, options, float(log_alphas[-1]), int(random), constraints)
    if options.learn_alpha:
        learn_alpha_at(state, engine.size, engine.belief, int(marks[-1]) or len(encoded), ROUNDS)
    if statistics:
        rebuild_rows(state, engine.family, np.arange(len(found.shapes)))
    return state
