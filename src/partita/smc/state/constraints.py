"""Constraints: observations that must be together, or apart, whatever the data say.

A posterior that is conditioned on constraints is the same posterior over fewer partitions. So they only rule out
where an observation may go: one that must be with another joins its cluster in every particle, one that must
be apart from another joins none that holds it. As nothing but a new observation ever brings clusters
together, what conforms to the constraints goes on to do so as data arrive.

Observations that must be together, directly or through others, form a *group*; two groups may have to be
apart. :mod:`partita.smc.moves.constrain` brings a posterior in line with new constraints.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numba import types
from numba.experimental import structref

from partita._core.kernel import inner, kernel
from partita._core.typing import Integers

FIELDS = [
    ("observations", types.int64[::1]),  # those that have constraints, in ascending order
    ("groups", types.int64[::1]),  # the group of each
    ("apart", types.int64[:, ::1]),  # pairs of groups, each pair both ways round
]


@structref.register
class ConstraintsType(types.StructRef):  # type: ignore[misc]
    """Numba's type of :class:`Constraints`."""

    def preprocess_fields(self, fields):
        """Fields are declared with their final types."""
        return fields


class Constraints(structref.StructRefProxy):  # type: ignore[misc]
    """The constraints, as kernels see them; ``FIELDS`` says what is in it."""


structref.define_boxing(ConstraintsType, Constraints)
CONSTRAINTS = ConstraintsType(FIELDS)


@kernel
def new_constraints(observations, groups, apart):
    """Constraints from the arrays they consist of."""
    constraints = structref.new(CONSTRAINTS)
    constraints.observations, constraints.groups, constraints.apart = observations, groups, apart
    return constraints


@kernel
def parts_of(constraints):
    """The arrays that constraints consist of."""
    return constraints.observations, constraints.groups, constraints.apart


def no_constraints() -> Any:
    """Nothing is ruled out."""
    return new_constraints(np.empty(0, np.int64), np.empty(0, np.int64), np.empty((0, 2), np.int64))


def constraints_from(together: Iterable[tuple[int, int]], apart: Iterable[tuple[int, int]]) -> Any:
    """Constraints from pairs of observations; ValueError for a pair that must be both together and apart."""
    group: dict[int, int] = {}

    def find(x: int) -> int:
        root = group.setdefault(x, x)
        while group[root] != root:
            root = group[root]
        while group[x] != root:
            group[x], x = root, group[x]
        return root

    for x, y in together:
        first, second = sorted((find(x), find(y)))
        group[second] = first
    pairs: set[tuple[int, int]] = set()
    for x, y in apart:
        first, second = find(x), find(y)
        if first == second:
            raise ValueError(f"observations {x} and {y} must be both together and apart")
        pairs |= {(first, second), (second, first)}
    observations = np.array(sorted(group), np.int64)
    groups = np.array([find(x) for x in observations.tolist()], np.int64)
    return new_constraints(observations, groups, np.array(sorted(pairs), np.int64).reshape(-1, 2))


def pairs_of(constraints: Any) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """As few pairs as say the same: those that are together, and those that are apart."""
    observations, groups, apart = parts_of(constraints)
    members = list(zip(observations.tolist(), groups.tolist(), strict=True))
    first = {group: x for x, group in reversed(members)}
    together = [(first[group], x) for x, group in members if first[group] != x]
    pairs = [(first[a], first[b]) for a, b in apart.tolist() if a < b and a in first and b in first]
    return together, sorted((min(pair), max(pair)) for pair in pairs)


def constraints_among(constraints: Any, members: Integers) -> Any:
    """The constraints among some observations, by their places in ``members``."""
    observations, groups, apart = parts_of(constraints)
    if not len(observations):
        return constraints
    order = np.argsort(members, kind="stable")
    place = np.searchsorted(observations, members[order])
    place[place == len(observations)] = 0
    held = observations[place] == members[order]
    at = np.argsort(order[held], kind="stable")
    return new_constraints(order[held][at], groups[place[held]][at], apart)


@inner
def place_of(constraints, x):
    """Where ``x`` is among the observations that have constraints; −1 if it has none."""
    low, high = 0, constraints.observations.shape[0]
    while low < high:
        middle = (low + high) // 2
        if constraints.observations[middle] < x:
            low = middle + 1
        else:
            high = middle
    found = low < constraints.observations.shape[0] and constraints.observations[low] == x
    return low if found else -1


@inner
def must_be_apart(constraints, first, second):
    """Whether two groups must be apart."""
    for k in range(constraints.apart.shape[0]):
        if constraints.apart[k, 0] == first and constraints.apart[k, 1] == second:
            return True
    return False


@inner
def is_in(state, y, x):
    """Whether an observation other than ``x`` is in the state at present."""
    return y != x and y < state.n_observations and state.observations[y].block >= 0


@inner
def confine(state, x):
    """Where ``x`` must be with an observation in the state, make the subproblem of that the only candidate.

    Returns that observation; −1 if there is none.
    """
    constraints = state.constraints
    at = place_of(constraints, x)
    if at >= 0:
        for k in range(constraints.observations.shape[0]):
            y = constraints.observations[k]
            if constraints.groups[k] == constraints.groups[at] and is_in(state, y, x):
                state.candidates[0] = state.blocks[state.observations[y].block].subproblem
                state.n_candidates = 1
                return y
    return np.int64(-1)


@inner
def rule_out(state, x, companion):
    """Set the gains of all clusters that ``x`` must not join to −inf, once it has been scored."""
    constraints = state.constraints
    at = place_of(constraints, x)
    if at < 0:
        return
    if companion >= 0:
        keep_only(state, companion)
    for k in range(constraints.observations.shape[0]):
        y = constraints.observations[k]
        if is_in(state, y, x) and must_be_apart(constraints, constraints.groups[at], constraints.groups[k]):
            block = state.blocks[state.observations[y].block]
            sub = state.subproblems[block.subproblem]
            first = sub.cells + sub.columns + sub.clusters + block.column
            for i in range(sub.rows):
                state.gain[state.cells[first + i * sub.columns]] = -np.inf


@inner
def keep_only(state, companion):
    """Set the gains of all clusters of a subproblem to −inf, but those that hold ``companion``."""
    block = state.blocks[state.observations[companion].block]
    sub = state.subproblems[block.subproblem]
    first = sub.cells + sub.columns + sub.clusters + block.column
    state.tick += 1
    for i in range(sub.rows):
        state.seen[state.cells[first + i * sub.columns]] = state.tick
    state.gain[0] = -np.inf
    for k in range(sub.cells + sub.columns, sub.cells + sub.columns + sub.clusters):
        if state.seen[state.cells[k]] != state.tick:
            state.gain[state.cells[k]] = -np.inf
