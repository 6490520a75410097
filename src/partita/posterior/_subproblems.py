"""The subproblems of a posterior as objects of their own."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

from partita._core.typing import Floats, Integers

from ._labels import label
from ._particles import Particles


@dataclass(frozen=True, eq=False)
class Subproblem:
    """Observations that share clusters with no others, and the particles over them.

    Attributes
    ----------
    observations : (n,) int64 array
        Their numbers, ascending.
    partitions : (P, n) int64 array
        One particle a row: labels 0..K−1 in order of first appearance, heaviest particle first.
    probabilities : (P,) float64 array
        The particles' weights; they sum to one.
    """

    observations: Integers
    partitions: Integers
    probabilities: Floats


class Subproblems(Sequence[Subproblem]):
    """The subproblems of a posterior, built when asked for."""

    def __init__(self, particles: Particles) -> None:
        self._particles = particles

    def __len__(self) -> int:
        return len(self._particles.rows_start) - 1

    @overload
    def __getitem__(self, index: int) -> Subproblem: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Subproblem]: ...
    def __getitem__(self, index: int | slice) -> Subproblem | Sequence[Subproblem]:
        chosen = range(len(self))[index]
        return [self._build(s) for s in chosen] if isinstance(chosen, range) else self._build(chosen)

    def __repr__(self) -> str:
        return f"<{len(self)} subproblems>"

    def _build(self, s: int) -> Subproblem:
        particles, layout = self._particles, self._particles.layout
        members, start = particles.members
        observations = members[start[s] : start[s + 1]]
        weights = layout.weights[layout.rows_start[s] : layout.rows_start[s + 1]]
        cells = particles.census.cells[layout.cells_start[s] : layout.cells_start[s + 1]]
        clusters = (cells - cells[0]).reshape(len(weights), -1)  # whose numbers begin with the first one's
        first, end = layout.blocks_start[s], layout.blocks_start[s + 1]
        order = particles.order_by_subproblem[first:end]
        partitions = label(clusters, order - first, particles.observation_block[observations] - first)
        return Subproblem(observations.copy(), partitions, weights.copy())
