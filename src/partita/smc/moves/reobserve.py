"""Re-observation: take an observation out and let it come in anew; it may cross into another subproblem."""

from __future__ import annotations

from partita._core.kernel import kernel
from partita.smc.moves.remove import remove, room_to_remove
from partita.smc.state.index import delete
from partita.smc.state.state import uniform
from partita.smc.steps.candidates import find_candidates
from partita.smc.steps.step import extend_created, note, observe_at_random, weigh_options


@kernel
def choose(state):
    """An observation of the subproblem that changed last: the next member in turn of a random block."""
    sub = state.subproblems[state.blocks[state.observations[state.n_observations - 1].block].subproblem]
    block = state.blocks[state.cells[sub.cells + int(uniform(state) * sub.columns)]]
    x = block.head
    block.head = state.observations[x].next
    return x


@kernel
def take_out(state, family, x):
    """Take observation ``x`` out of its subproblem; false if there is no room."""
    if not room_to_remove(state, x):
        return False
    remove(state, family, x)
    return True


@kernel
def leave_out(state, x):
    """Count an observation that has been taken out as removed for good."""
    if state.index.on:
        delete(state.index, x)
    state.n_removed += 1


@kernel
def put_back(state, family, x):
    """Let an observation that has been taken out come in anew; false if there is no room."""
    if state.observations[x].block >= 0:
        return True  # it never was out, or is in again
    find_candidates(state, x)
    weigh_options(state, family, x)
    happened = observe_at_random(state, family, x)  # which draws only where that is asked for
    if happened.done:
        extend_created(state, family, x)
        note(state, happened)
    return happened.done
