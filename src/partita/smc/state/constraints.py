"""Constraints: observations that must be together, or apart, whatever the data say.

A posterior that is conditioned on constraints is the same posterior over fewer partitions. So they only rule out
where an observation may go: one that must be with another joins its cluster in every particle, one that must
be apart from another joins none that holds it. As nothing but a new observation ever brings clusters
together, what conforms to the constraints goes on to do so as data arrive.

Observations that must be together, directly or through others, form a *group*. A *cut* has two or more sides, and
no cluster may hold observations of several of them: a pair that must be apart is a cut of two sides with one
observation each, and two entities that are different things are one cut, however large they are.
:mod:`partita.smc.moves.constrain` brings a posterior in line with new constraints.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, combinations, product
from typing import Any

import numpy as np
from numba import types
from numba.experimental import structref

from partita._core.kernel import inner, kernel
from partita._core.typing import Integers

Cut = Sequence[Sequence[int]]  # the observations on each of its sides

FIELDS = [
    ("observations", types.int64[::1]),  # those that have constraints, in ascending order
    ("groups", types.int64[::1]),  # the group of each
    ("starts", types.int64[::1]),  # where the cuts of each group begin, and where those of the last one end
    ("sides", types.int64[:, ::1]),  # one group's after the other's, by cuts: a cut, and the side of it
    # The same the other way round:
    (
        "member_starts",
        types.int64[::1],
    ),  # where the observations of each group begin, and where the last ones end
    ("members", types.int64[::1]),  # one group's after the other's
    (
        "cut_starts",
        types.int64[::1],
    ),  # where the groups of each cut begin, and where those of the last one end
    ("cut_sides", types.int64[:, ::1]),  # one cut's after the other's: a group, and the side that it is on
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


def new_constraints(observations: Integers, groups: Integers, starts: Integers, sides: Integers) -> Any:
    """Constraints from the arrays they consist of: the first four fields."""
    n_cuts = int(sides[:, 0].max()) + 1 if len(sides) else 0
    of_cut = np.argsort(sides[:, 0], kind="stable")
    cut_starts = np.searchsorted(sides[of_cut, 0], np.arange(n_cuts + 1))
    owners = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    cut_sides = np.column_stack([owners[of_cut], sides[of_cut, 1]])
    of_group = np.argsort(groups, kind="stable")
    member_starts = np.searchsorted(groups[of_group], np.arange(len(starts)))
    found = (
        observations,
        groups,
        starts,
        sides,
        member_starts,
        observations[of_group],
        cut_starts,
        cut_sides,
    )
    return assembled(*(np.ascontiguousarray(part, np.int64) for part in found))


@kernel
def assembled(observations, groups, starts, sides, member_starts, members, cut_starts, cut_sides):
    """Constraints from all of their fields."""
    constraints = structref.new(CONSTRAINTS)
    constraints.observations, constraints.groups = observations, groups
    constraints.starts, constraints.sides = starts, sides
    constraints.member_starts, constraints.members = member_starts, members
    constraints.cut_starts, constraints.cut_sides = cut_starts, cut_sides
    return constraints


@kernel
def parts_of(constraints):
    """The arrays that :func:`new_constraints` makes constraints of."""
    return constraints.observations, constraints.groups, constraints.starts, constraints.sides


def no_constraints() -> Any:
    """Nothing is ruled out."""
    return constraints_from([], [])


def constraints_from(together: Iterable[tuple[int, int]], cuts: Iterable[Cut]) -> Any:
    """Constraints from pairs that must be together, and cuts; ValueError if that is impossible."""
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
    held: dict[int, dict[int, int]] = {}  # of each group, by its first observation, its side of each cut
    for cut, sides in enumerate(cuts):
        for side, here in enumerate(sides):
            for x in here:
                if held.setdefault(find(x), {}).setdefault(cut, side) != side:
                    other = next(y for y in chain(*sides[:side]) if find(y) == find(x))
                    raise ValueError(f"observations {other} and {x} must be both together and apart")
    observations = np.array(sorted(group), np.int64)
    owners = np.array([find(x) for x in observations.tolist()], np.int64)
    roots, groups = np.unique(owners, return_inverse=True)
    listed = [sorted(held.get(root, {}).items()) for root in roots.tolist()]
    starts = np.cumsum([0, *map(len, listed)]).astype(np.int64)
    flat = np.array(list(chain(*listed)), np.int64).reshape(-1, 2)
    return new_constraints(observations, groups.astype(np.int64).ravel(), starts, flat)


def said_by(constraints: Any) -> tuple[list[tuple[int, int]], list[Cut]]:
    """As few pairs that are together, and observations of cuts, as say the same."""
    observations, groups, starts, sides = parts_of(constraints)
    members = list(zip(observations.tolist(), groups.tolist(), strict=True))
    first = {group: x for x, group in reversed(members)}
    together = [(first[group], x) for x, group in members if first[group] != x]
    cuts: dict[int, dict[int, list[int]]] = {}
    for group, x in sorted(first.items()):
        for cut, side in sides[starts[group] : starts[group + 1]].tolist():
            cuts.setdefault(cut, {}).setdefault(side, []).append(x)
    return together, [list(found.values()) for _, found in sorted(cuts.items()) if len(found) > 1]


def pairs_of(constraints: Any) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """As few pairs as say the same: those that are together, and those that are apart."""
    together, cuts = said_by(constraints)
    crossing = (product(one, other) for sides in cuts for one, other in combinations(sides, 2))
    return together, sorted({(min(pair), max(pair)) for pair in chain(*crossing)})


def constraints_among(constraints: Any, members: Integers) -> Any:
    """The constraints among some observations, by their places in ``members``."""
    observations, groups, *cuts = parts_of(constraints)
    if not len(observations):
        return constraints
    order = np.argsort(members, kind="stable")
    place = np.searchsorted(observations, members[order])
    place[place == len(observations)] = 0
    held = observations[place] == members[order]
    at = np.argsort(order[held], kind="stable")
    return new_constraints(order[held][at], groups[place[held]][at], *cuts)


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
def is_in(state, y, x):
    """Whether an observation other than ``x`` is in the state at present."""
    return y != x and y < state.n_observations and state.observations[y].block >= 0


@inner
def one_of(state, group, x):
    """An observation of a group, other than ``x``, that is in the state; −1 if there is none."""
    constraints = state.constraints
    for k in range(constraints.member_starts[group], constraints.member_starts[group + 1]):
        if is_in(state, constraints.members[k], x):
            return constraints.members[k]
    return np.int64(-1)


@inner
def confine(state, x):
    """Where ``x`` must be with an observation in the state, make the subproblem of that the only candidate.

    Returns that observation; −1 if there is none.
    """
    at = place_of(state.constraints, x)
    if at < 0:
        return np.int64(-1)
    y = one_of(state, state.constraints.groups[at], x)
    if y >= 0:
        state.candidates[0] = state.blocks[state.observations[y].block].subproblem
        state.n_candidates = 1
    return y


@inner
def rule_out(state, x, companion):
    """Set the gains of all clusters that ``x`` must not join to −inf, once it has been scored.

    Of each group on another side of a cut one observation stands for all, as they share their clusters; and of
    observations one after the other that share a block, the first.
    """
    constraints = state.constraints
    at = place_of(constraints, x)
    if at < 0:
        return
    if companion >= 0:
        keep_only(state, companion)
    group, last = constraints.groups[at], np.int64(-1)
    for k in range(constraints.starts[group], constraints.starts[group + 1]):
        cut, side = constraints.sides[k, 0], constraints.sides[k, 1]
        for i in range(constraints.cut_starts[cut], constraints.cut_starts[cut + 1]):
            if constraints.cut_sides[i, 1] != side:
                y = one_of(state, constraints.cut_sides[i, 0], x)
                if y >= 0 and state.observations[y].block != last:
                    last = state.observations[y].block
                    rule_out_block(state, last)


@inner
def rule_out_block(state, b):
    """Set the gains of all clusters that hold a block to −inf."""
    block = state.blocks[b]
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
