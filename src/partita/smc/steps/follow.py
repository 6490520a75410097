"""After the four steps, where names are kept: does the best clustering go on under them?

In: the state with x in it. Out: the name of x's cluster in the best clustering, written where all other
observations are in the best clusters they were in; told from the blocks of the subproblems just written alone.
Where more has changed, the stream stops and leaves it to the caller to name what has come out.
"""

from __future__ import annotations

from partita._core.kernel import inner, kernel


@inner
def is_joined_across(state, x, named):
    """Whether blocks of different clusters have just been joined."""
    for k in range(state.n_joined):
        a, b = state.joined[k, 0], state.joined[k, 1]
        if a != x and b != x and named[a] != named[b]:
            return True
    return False


@inner
def is_as_before(state, x, named, marks):
    """Whether all observations but ``x`` are in the best clusters they were in.

    Leaves the name of each cluster of the subproblems just written in ``child``, where ``seen`` is the tick.
    """
    seen, child, cells = state.seen, state.child, state.cells
    state.tick += 1
    if is_joined_across(state, x, named):
        return False
    for k in range(state.n_written):
        sub = state.subproblems[state.written[k]]
        at = sub.cells + sub.columns + sub.clusters
        for j in range(sub.columns):
            block, c = state.blocks[cells[sub.cells + j]], cells[at + j]
            y = block.head if block.head != x else state.observations[x].next
            if y == x:
                continue
            name = named[y]
            if seen[c] == state.tick:
                if child[c] != name:
                    return False
            else:
                if marks[name] == x + 1:
                    return False
                seen[c], child[c], marks[name] = state.tick, name, x + 1
    return True


@inner
def follow(state, x):
    """Name the cluster of ``x``, where all else is as before; returns whether it is."""
    names = state.names
    named = names.of_observation
    named[x] = -1
    if not is_as_before(state, x, named, names.marks):
        return False
    block = state.blocks[state.observations[x].block]
    sub = state.subproblems[block.subproblem]
    c = state.cells[sub.cells + sub.columns + sub.clusters + block.column]
    if state.seen[c] == state.tick:
        named[x] = state.child[c]
    else:
        named[x] = names.next
        names.next += 1
    return True


@kernel
def follow_one(state, x):
    """:func:`follow`, for a model that is not compiled."""
    return follow(state, x)
