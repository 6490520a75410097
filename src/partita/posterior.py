"""Questions to a factorised posterior.

A `Posterior` is a frozen snapshot of the sampler's approximation (paper, section 3.2): the observations are
divided into subproblems, each with its own weighted particles, and a clustering of all observations is one
particle of every subproblem, chosen independently. Observations that are together in all particles form a
*block*; everything below works on blocks, and on the distinct clusters with their total weights, so that no
answer costs time in the number of whole clusterings, the product of the subproblems' numbers of particles.
"""

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from . import losses
from .losses import Cells, Floats, Ints, Layout, Loss, WeightedClusters

if TYPE_CHECKING:
    from numpy.random import RandomState

__all__ = ["Posterior", "Subproblem"]

LOSSES = {"map": -1, "bcubed": losses.BCUBED, "vi": losses.VI, "binder": losses.BINDER}
#: Probabilities below this are dropped from the ends of the distribution of the number of clusters.
NEGLIGIBLE = 1e-300


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

    observations: Ints
    partitions: Ints
    probabilities: Floats


class Subproblems(Sequence[Subproblem]):
    """The subproblems of a posterior, built when asked for."""

    def __init__(self, posterior: "Posterior") -> None:
        self._posterior = posterior

    def __len__(self) -> int:
        return self._posterior.n_subproblems

    @overload
    def __getitem__(self, index: int) -> Subproblem: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Subproblem]: ...
    def __getitem__(self, index: int | slice) -> Subproblem | Sequence[Subproblem]:
        chosen = range(len(self))[index]
        if isinstance(chosen, range):
            return [self._posterior._subproblem(s) for s in chosen]
        return self._posterior._subproblem(chosen)

    def __repr__(self) -> str:
        return f"<{len(self)} subproblems>"


class Posterior:
    """A distribution over clusterings: a product over subproblems of weighted particles.

    The sampler makes these; the arrays are read, never changed. S subproblems, B blocks, R particles in all.

    Parameters
    ----------
    observation_block : (n,) int64 array
        The block of each observation.
    blocks_start, rows_start, cells_start : (S+1,) int64 arrays
        Subproblem s has blocks ``blocks_start[s]:blocks_start[s+1]``, particles
        ``rows_start[s]:rows_start[s+1]``, heaviest first, and ``cells[cells_start[s]:cells_start[s+1]]``,
        which is particles × blocks.
    cells : int32 array
        The cluster of each block in each particle, any non-negative ids. An id stands for one set of
        observations, in whichever particles it occurs.
    log_weights : (R,) float64 array
        Log weights, normalised within each subproblem.
    row_scores : (R,) float64 array
        Σ over the particle's clusters of log α + lgamma(\\|c\\|) + log p(c) (paper, eq. 3).
    alpha : float
        The concentration under which the weights were computed.

    Examples
    --------
    Observations 0 and 1 are surely together, 3 joins them with probability 3/4, 2 is a subproblem of its own.

    >>> posterior = Posterior(observation_block=[0, 0, 2, 1], blocks_start=[0, 2, 3], rows_start=[0, 2, 3],
    ...                       cells_start=[0, 4, 5], cells=[0, 0, 1, 2, 3], alpha=1.0,
    ...                       log_weights=np.log([0.75, 0.25, 1.0]), row_scores=[-1.0, -2.1, -0.5])
    >>> posterior
    Posterior(4 observations, 2 subproblems, 2 clusters, e^0.7 clusterings)
    >>> posterior.log_density()
    -1.5
    >>> posterior.labels().tolist()
    [0, 0, 1, 0]
    >>> posterior.labels("binder", false_merge_cost=5.0).tolist()
    [0, 0, 1, 2]
    >>> posterior.together(0, [1, 2, 3]).tolist()
    [1.0, 0.0, 0.75]
    >>> values, probabilities = posterior.n_clusters()
    >>> values.tolist(), probabilities.tolist()
    ([2, 3], [0.75, 0.25])
    >>> posterior.subproblems[0].partitions.tolist()
    [[0, 0, 0], [0, 0, 1]]
    """

    def __init__(
        self,
        *,
        observation_block: ArrayLike,
        blocks_start: ArrayLike,
        rows_start: ArrayLike,
        cells_start: ArrayLike,
        cells: ArrayLike,
        log_weights: ArrayLike,
        row_scores: ArrayLike,
        alpha: float,
    ) -> None:
        self._observation_block: Ints = flat(observation_block, np.int64)
        self._blocks_start: Ints = flat(blocks_start, np.int64)
        self._rows_start: Ints = flat(rows_start, np.int64)
        self._cells_start: Ints = flat(cells_start, np.int64)
        self._cells: Cells = flat(cells, np.int32)
        self._log_weights: Floats = flat(log_weights, np.float64)
        self._row_scores: Floats = flat(row_scores, np.float64)
        self._alpha = float(alpha)
        self._check()

    def _check(self) -> None:
        """Refuse arrays that do not fit together, before a kernel reads past an end."""
        starts = (self._blocks_start, self._rows_start, self._cells_start)
        if len({len(start) for start in starts}) != 1 or any(list(start[:1]) != [0] for start in starts):
            raise ValueError("blocks_start, rows_start and cells_start must have S+1 entries, the first 0")
        blocks, rows = np.diff(self._blocks_start), np.diff(self._rows_start)
        if np.any(blocks < 1) or np.any(rows < 1):
            raise ValueError("every subproblem must have at least one block and one particle")
        if np.any(np.diff(self._cells_start) != blocks * rows) or len(self._cells) != self._cells_start[-1]:
            raise ValueError("cells must hold particles × blocks entries for every subproblem")
        if not len(self._log_weights) == len(self._row_scores) == self._rows_start[-1]:
            raise ValueError("log_weights and row_scores must have one entry per particle")
        n_blocks = self._blocks_start[-1]
        inside = (self._observation_block >= 0) & (self._observation_block < n_blocks)
        if not inside.all() or np.any(np.bincount(self._observation_block, minlength=n_blocks) == 0):
            raise ValueError(f"observation_block must name blocks 0..{n_blocks - 1}, each at least once")
        if len(self._cells) and self._cells.min() < 0:
            raise ValueError("cells must hold non-negative cluster ids")
        if not 0.0 < self._alpha < math.inf:
            raise ValueError(f"alpha must be positive and finite, got {self._alpha}")

    @property
    def n_observations(self) -> int:
        """Number of observations."""
        return len(self._observation_block)

    @property
    def n_subproblems(self) -> int:
        """Number of subproblems."""
        return len(self._rows_start) - 1

    @property
    def subproblems(self) -> Sequence[Subproblem]:
        """The subproblems, each with ``.observations``, ``.partitions`` and ``.probabilities``."""
        return Subproblems(self)

    def __repr__(self) -> str:
        n_clusters, size = len(np.unique(self._best_cells)), self.log_effective_particles()
        return (
            f"Posterior({self.n_observations} observations, {self.n_subproblems} subproblems, "
            f"{n_clusters} clusters, e^{size:.1f} clusterings)"
        )

    def log_density(self) -> float:
        """Score of the best clustering: Σ over its clusters of log α + lgamma(|c|) + log p(c).

        Returns
        -------
        float
            The unnormalised log-posterior density (paper, eq. 3) of the heaviest particles together.
        """
        return float(self._row_scores[self._rows_start[:-1]].sum())

    def log_effective_particles(self) -> float:
        """Log of the number of clusterings represented, Σ_s log P_s (paper, appendix A.2.1)."""
        return float(np.log(np.diff(self._rows_start)).sum())

    def labels(
        self, loss: str = "map", *, false_merge_cost: float = 1.0, false_split_cost: float = 1.0
    ) -> Ints:
        """Labels of the clustering with the least posterior expected loss.

        Parameters
        ----------
        loss : {"map", "bcubed", "vi", "binder"}
            0–1 loss (the heaviest particles); 1 − mean B-cubed F1 (paper, section 4); variation of
            information; or Binder's loss, the cost of all pairs falsely merged or falsely separated.
        false_merge_cost, false_split_cost : float
            Binder's cost of a pair; positive. Only their ratio matters here.

        Returns
        -------
        (n,) int64 array
            Labels 0..K−1 in order of first appearance.

        Notes
        -----
        The minimiser never joins observations that share no cluster in any particle, nor divides a block
        (`partita.losses`). It is exact wherever at most 12 blocks hang together; else it is the best of
        several local searches, at least as good as every particle.
        """
        chosen = parse_loss(loss, false_merge_cost, false_split_cost)
        if loss == "map":
            ids, keys = np.unique(self._best_cells, return_inverse=True)
            return first_appearance(keys, len(ids), self._observation_block)
        keys = losses.minimise(chosen, self._layout, self._clusters)
        return first_appearance(keys, len(keys), self._observation_block)

    def expected_loss(
        self,
        labels: ArrayLike,
        loss: str = "map",
        *,
        false_merge_cost: float = 1.0,
        false_split_cost: float = 1.0,
    ) -> float:
        """Posterior expected loss of any clustering.

        Parameters
        ----------
        labels : (n,) array
            Equal labels mean the same cluster. They may cross subproblems.
        loss, false_merge_cost, false_split_cost
            As in `labels`.

        Returns
        -------
        float
            "map": the probability that the clustering is not exactly this one. "bcubed": 1 − expected mean
            F1, in [0, 1]. "vi": in nats. "binder": the expected total cost of pairs.
        """
        chosen = parse_loss(loss, false_merge_cost, false_split_cost)
        groups = np.asarray(labels)
        if groups.shape != (self.n_observations,):
            raise ValueError(f"labels must have shape ({self.n_observations},), got {groups.shape}")
        _, groups, counts = np.unique(groups, return_inverse=True, return_counts=True)
        if loss == "map":
            return max(1.0 - self._probability(groups, counts), 0.0)
        start = np.concatenate(([0], np.cumsum(counts)))
        order = np.argsort(groups, kind="stable")
        return float(losses.expected_loss(chosen, self._clusters, order, start, self._observation_block))

    def together(self, i: ArrayLike, j: ArrayLike) -> float | Floats:
        """Probability that observations i and j share a cluster.

        Parameters
        ----------
        i, j : int or integer array
            Observations, 0..n−1. Arrays broadcast.

        Returns
        -------
        float, or float64 array of the broadcast shape
            Exactly 1 within a block, exactly 0 across subproblems.
        """
        one, other = np.broadcast_arrays(self._numbers(i), self._numbers(j))
        layout, block = self._layout, self._observation_block
        result: Floats = pair_probabilities(
            layout, self._block_subproblem, block[one.ravel()], block[other.ravel()]
        ).reshape(one.shape)
        return float(result) if result.ndim == 0 else result

    def sample(self, n: int, random_state: "int | RandomState | None" = None) -> Ints:
        """Draw whole clusterings, exactly and independently, from the product of the subproblems.

        Parameters
        ----------
        n : int
            How many.
        random_state : int, RandomState or None
            As everywhere in scikit-learn. A longer draw from the same seed begins with the shorter one.

        Returns
        -------
        (n, n_observations) int64 array
            Each row labels 0..K−1 in order of first appearance.
        """
        from sklearn.utils import check_random_state

        n = operator.index(n)
        if n < 0:
            raise ValueError(f"n must not be negative, got {n}")
        uniforms = check_random_state(random_state).random_sample((n, self.n_subproblems))
        keys = draw_particles(self._layout, uniforms)
        return first_appearance(keys, len(self._clusters.size), self._observation_block)

    def entropy(self) -> Floats:
        """How unsure it is where each observation belongs, in nats.

        With C(x) the cluster of x in a particle, and M_k the clusters of the best clustering, a companion of
        x drawn at random lies in M_k with probability

            q_x(k) = Σ_particles w · |(C(x) ∖ x) ∩ M_k| / |C(x) ∖ x|,      q_x(alone) = Σ_{C(x) = {x}} w.

        Doubts about the neighbours of x do not add to it, only doubts about x itself.

        Returns
        -------
        (n,) float64 array
            Shannon entropy of q_x; 0 where all particles agree.
        """
        best = self._layout.cells[self._best_cell_index]
        result: Floats = block_entropies(self._clusters, best)[self._observation_block]
        return result

    def n_clusters(self) -> tuple[Ints, Floats]:
        """Exact distribution of the number of clusters: the convolution of the subproblems' distributions.

        Returns
        -------
        values : (K,) int64 array
            Consecutive, ascending. Values at either end whose probability is below 1e-300 are left out.
        probabilities : (K,) float64 array
        """
        least, probabilities = distribution_of_sum(self._row_clusters, self._layout.weights, self._rows_start)
        return least + np.arange(len(probabilities)), probabilities

    def alpha(self, grid: ArrayLike, prior: ArrayLike | None = None) -> Floats:
        """Posterior of the concentration over a grid, with no new evaluations of the model.

        A change of concentration tilts each particle by its number of clusters K alone (paper, eq. 3), so

            p(α′ | x) ∝ prior(α′) · Γ(α′)/Γ(α′+n) · Π_s Σ_i w_{s,i} (α′/α)^{K_{s,i}}.

        Valid where weights are the particles' scores, as they are by default, not for the paper's marginal
        weights; and as good as the particles represent the clusterings that α′ favours.

        Parameters
        ----------
        grid : (G,) array
            Positive concentrations.
        prior : (G,) array, optional
            Their prior weights, not necessarily normalised; uniform over the grid points if not given.

        Returns
        -------
        (G,) float64 array
            Probabilities.
        """
        values = np.array(grid, dtype=np.float64)
        if values.ndim != 1 or values.size == 0 or not (np.isfinite(values) & (values > 0)).all():
            raise ValueError("grid must be a non-empty 1-D array of positive, finite concentrations")
        weights = np.ones_like(values) if prior is None else np.asarray(prior, dtype=np.float64)
        if weights.shape != values.shape:
            raise ValueError(f"prior must have shape {values.shape} like grid, got {weights.shape}")
        if not (np.isfinite(weights) & (weights >= 0)).all() or not weights.any():
            raise ValueError("prior must be finite and non-negative, and positive somewhere")
        logs = log_evidence(
            values, self._alpha, self.n_observations, self._row_clusters, self._log_weights, self._rows_start
        )
        logs[weights == 0] = -np.inf
        result: Floats = weights * np.exp(logs - logs.max())
        result /= result.sum()
        return result

    # What the questions share. All of it is derived once, when first needed.

    @cached_property
    def _block_subproblem(self) -> Ints:
        return np.repeat(np.arange(self.n_subproblems), np.diff(self._blocks_start))

    @cached_property
    def _best_cell_index(self) -> Ints:
        """Where the heaviest particle keeps each block's cluster."""
        s = self._block_subproblem
        result: Ints = self._cells_start[s] + np.arange(len(s)) - self._blocks_start[s]
        return result

    @property
    def _best_cells(self) -> Cells:
        return self._cells[self._best_cell_index]

    @cached_property
    def _layout(self) -> Layout:
        """The particles, with clusters numbered as they appear and weights that sum to one."""
        cells = self._cells.copy()
        if len(cells) and cells.max() > 4 * len(cells):  # sparse ids: no table as long as the largest
            cells = np.unique(cells, return_inverse=True)[1].astype(np.int32)
        losses.renumber(cells, np.full(cells.max(initial=-1) + 1, -1, np.int32))
        weights = np.exp(self._log_weights)
        if self.n_subproblems:
            sums = np.add.reduceat(weights, self._rows_start[:-1])
            weights /= np.repeat(sums, np.diff(self._rows_start))
        sizes = np.bincount(self._observation_block, minlength=self._blocks_start[-1])
        return Layout(self._blocks_start, self._rows_start, self._cells_start, cells, weights, sizes)

    @cached_property
    def _clusters(self) -> WeightedClusters:
        n_clusters = int(self._layout.cells.max(initial=-1)) + 1
        result: WeightedClusters = losses.weigh_clusters(self._layout, n_clusters)
        return result

    @cached_property
    def _row_clusters(self) -> Ints:
        result: Ints = clusters_per_row(self._layout, self._clusters)
        return result

    @cached_property
    def _members(self) -> tuple[Ints, Ints]:
        """Observations sorted by subproblem, and where each subproblem's begin."""
        subproblem = self._block_subproblem[self._observation_block]
        counts = np.bincount(subproblem, minlength=self.n_subproblems)
        return np.argsort(subproblem, kind="stable"), np.concatenate(([0], np.cumsum(counts)))

    def _subproblem(self, s: int) -> Subproblem:
        layout, (order, start) = self._layout, self._members
        observations = order[start[s] : start[s + 1]]
        blocks = self._observation_block[observations] - self._blocks_start[s]
        cells = layout.cells[self._cells_start[s] : self._cells_start[s + 1]]
        keys = (cells - cells.min()).reshape(-1, self._blocks_start[s + 1] - self._blocks_start[s])
        partitions = first_appearance(keys, int(keys.max()) + 1, blocks)
        weights = layout.weights[self._rows_start[s] : self._rows_start[s + 1]]
        return Subproblem(observations.copy(), partitions, weights.copy())

    def _probability(self, groups: Ints, counts: Ints) -> float:
        """Probability of exactly this clustering: of the particles all of whose clusters are groups."""
        if self.n_observations == 0:
            return 1.0
        clusters, layout = self._clusters, self._layout
        low, high = np.full(len(layout.block_size), len(counts)), np.full(len(layout.block_size), -1)
        np.minimum.at(low, self._observation_block, groups)
        np.maximum.at(high, self._observation_block, groups)
        low = np.minimum.reduceat(low[clusters.blocks], clusters.start[:-1])
        high = np.maximum.reduceat(high[clusters.blocks], clusters.start[:-1])
        is_group = (low == high) & (counts[low] == clusters.size)
        widths = np.repeat(np.diff(self._blocks_start), np.diff(self._rows_start))
        row_starts = np.concatenate(([0], np.cumsum(widths)[:-1]))
        matches = np.logical_and.reduceat(is_group[layout.cells], row_starts)
        return float(np.add.reduceat(layout.weights * matches, self._rows_start[:-1]).prod())

    def _numbers(self, numbers: ArrayLike) -> Ints:
        """Observation numbers as an array, checked."""
        result = np.asarray(numbers)
        if result.size == 0:
            return result.astype(np.int64)
        if result.dtype.kind not in "iu":
            raise TypeError(f"observations are numbered by integers, got {result.dtype}")
        outside = (result < 0) | (result >= self.n_observations)
        if outside.any():
            first, n = result[outside].flat[0], self.n_observations
            raise IndexError(f"observation {first} is out of range: the posterior holds {n}, numbered from 0")
        return result.astype(np.int64)


def flat(values: ArrayLike, dtype: Any) -> NDArray[Any]:
    """A one-dimensional array the kernels can take; copied only where it is not one already."""
    result = np.require(values, dtype, ["C_CONTIGUOUS", "WRITEABLE"])
    if result.ndim != 1:
        raise ValueError(f"expected a one-dimensional array, got shape {result.shape}")
    return result


def parse_loss(loss: str, false_merge_cost: float, false_split_cost: float) -> Loss:
    if loss not in LOSSES:
        raise ValueError(f"loss must be one of {', '.join(map(repr, LOSSES))}; got {loss!r}")
    for name, cost in (("false_merge_cost", false_merge_cost), ("false_split_cost", false_split_cost)):
        if not 0.0 < cost < math.inf:
            raise ValueError(f"{name} must be positive and finite, got {cost}")
        if cost != 1.0 and loss != "binder":
            raise ValueError(f"{name} belongs to loss='binder'; loss={loss!r} has no costs")
    return Loss(LOSSES[loss], float(false_merge_cost), float(false_split_cost))


def first_appearance(keys: NDArray[np.integer[Any]], n_keys: int, observation_block: Ints) -> Ints:
    """Labels of the observations, 0..K−1 as they first appear, from a key per block; or rows of labels."""
    rows = np.atleast_2d(keys).astype(np.int32, copy=False)
    labels: Ints = label_rows(rows, n_keys, observation_block)
    return labels.reshape(keys.shape[:-1] + observation_block.shape)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def label_rows(keys: Cells, n_keys: int, observation_block: Ints) -> Ints:
    labels = np.empty((len(keys), len(observation_block)), np.int64)
    label = np.empty(n_keys, np.int64)
    last_row = np.full(n_keys, -1, np.int64)
    for row in range(len(keys)):
        n_labels = 0
        for x in range(len(observation_block)):
            key = keys[row, observation_block[x]]
            if last_row[key] != row:
                last_row[key] = row
                label[key] = n_labels
                n_labels += 1
            labels[row, x] = label[key]
    return labels


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def pair_probabilities(layout: Layout, block_subproblem: Ints, one: Ints, other: Ints) -> Floats:
    """Probability that the blocks one[i] and other[i] share a cluster."""
    result = np.zeros(len(one))
    for i in range(len(one)):
        a, b = one[i], other[i]
        s = block_subproblem[a]
        if a == b:
            result[i] = 1.0
        elif s == block_subproblem[b]:
            width = layout.blocks_start[s + 1] - layout.blocks_start[s]
            cell = layout.cells_start[s] + a - layout.blocks_start[s]
            for row in range(layout.rows_start[s], layout.rows_start[s + 1]):
                if layout.cells[cell] == layout.cells[cell + b - a]:
                    result[i] += layout.weights[row]
                cell += width
            result[i] = min(result[i], 1.0)
    return result


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def draw_particles(layout: Layout, uniforms: Floats) -> Cells:
    """For each row of uniforms the cluster of every block, with one particle drawn per subproblem."""
    keys = np.empty((len(uniforms), len(layout.block_size)), np.int32)
    for s in range(len(layout.rows_start) - 1):
        first, width = layout.blocks_start[s], layout.blocks_start[s + 1] - layout.blocks_start[s]
        cumulative = np.cumsum(layout.weights[layout.rows_start[s] : layout.rows_start[s + 1]])
        for draw in range(len(uniforms)):
            row = np.searchsorted(cumulative, uniforms[draw, s] * cumulative[-1], side="right")
            cell = layout.cells_start[s] + min(row, len(cumulative) - 1) * width
            for b in range(width):
                keys[draw, first + b] = layout.cells[cell + b]
    return keys


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def block_entropies(clusters: WeightedClusters, best: Cells) -> Floats:
    """Entropy of q_x for the members x of each block, where best[b] is the block's cluster M_k."""
    target = np.empty(len(clusters.blocks), np.int64)  # for each cluster the k of the M_k it meets
    overlap = np.zeros(len(clusters.blocks), np.int64)  # and how many observations they share
    n_targets = np.zeros(len(clusters.size), np.int64)
    position = np.full(len(clusters.size), -1, np.int64)
    for c in range(len(clusters.size)):
        for b in clusters.blocks[clusters.start[c] : clusters.start[c + 1]]:
            k = best[b]
            if position[k] < clusters.start[c]:
                position[k] = clusters.start[c] + n_targets[c]
                target[position[k]] = k
                n_targets[c] += 1
            overlap[position[k]] += clusters.block_size[b]

    entropy = np.zeros(len(clusters.block_size))
    q = np.zeros(len(clusters.size))
    for b in range(len(entropy)):
        alone = 0.0
        for c in clusters.holders[clusters.block_start[b] : clusters.block_start[b + 1]]:
            if clusters.size[c] == 1:
                alone += clusters.weight[c]
                continue
            for at in range(clusters.start[c], clusters.start[c] + n_targets[c]):
                companions = overlap[at] - (target[at] == best[b])
                q[target[at]] += clusters.weight[c] * companions / (clusters.size[c] - 1)
        total = -losses.xlogx(alone)
        for c in clusters.holders[clusters.block_start[b] : clusters.block_start[b + 1]]:
            for k in target[clusters.start[c] : clusters.start[c] + n_targets[c]]:
                total -= losses.xlogx(q[k])
                q[k] = 0.0
        entropy[b] = max(total, 0.0)
    return entropy


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def clusters_per_row(layout: Layout, clusters: WeightedClusters) -> Ints:
    """Number of clusters of every particle: of blocks that are the first of their cluster."""
    counts = np.zeros(len(layout.weights), np.int64)
    for s in range(len(layout.rows_start) - 1):
        cell = layout.cells_start[s]
        for row in range(layout.rows_start[s], layout.rows_start[s + 1]):
            for b in range(layout.blocks_start[s], layout.blocks_start[s + 1]):
                counts[row] += clusters.blocks[clusters.start[layout.cells[cell]]] == b
                cell += 1
    return counts


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def distribution_of_sum(values: Ints, weights: Floats, start: Ints) -> tuple[int, Floats]:
    """Least value and probabilities of a sum of independent integers, one from each weighted group."""
    least = 0
    begin = np.zeros(len(start), np.int64)
    probabilities = np.zeros(len(values) + values.sum())
    n_terms = 0
    for s in range(len(start) - 1):
        group = values[start[s] : start[s + 1]]
        low, high = group.min(), group.max()
        least += low
        if high > low:
            for row in range(start[s], start[s + 1]):
                probabilities[begin[n_terms] + values[row] - low] += weights[row]
            n_terms += 1
            begin[n_terms] = begin[n_terms - 1] + high - low + 1
    if n_terms == 0:
        return least, np.ones(1)
    while True:
        probabilities, begin, n_terms, trimmed = convolve_neighbours(probabilities, begin, n_terms)
        least += trimmed
        if n_terms == 1:
            return least, probabilities[: begin[1]].copy()


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def convolve_neighbours(flat: Floats, begin: Ints, n_terms: int) -> tuple[Floats, Ints, int, int]:
    """Convolve the terms two by two, directly, and trim what is negligible; the last result counts the
    entries trimmed from lower ends."""
    result = np.zeros(begin[n_terms])
    ends = np.zeros((n_terms + 1) // 2 + 1, np.int64)
    trimmed = 0
    for pair in range((n_terms + 1) // 2):
        term = flat[begin[2 * pair] : begin[2 * pair + 1]]
        if 2 * pair + 1 < n_terms:
            other = flat[begin[2 * pair + 1] : begin[2 * pair + 2]]
            joint = np.zeros(len(term) + len(other) - 1)
            for i in range(len(term)):
                for j in range(len(other)):
                    joint[i + j] += term[i] * other[j]
            term = joint
        low, high = 0, len(term)
        while term[low] < NEGLIGIBLE:
            low += 1
        while term[high - 1] < NEGLIGIBLE:
            high -= 1
        trimmed += low
        ends[pair + 1] = ends[pair] + high - low
        for i in range(low, high):
            result[ends[pair] + i - low] = term[i]
    return result, ends, len(ends) - 1, trimmed


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def log_evidence(
    grid: Floats, alpha: float, n: int, counts: Ints, log_weights: Floats, start: Ints
) -> Floats:
    """log Γ(α′)/Γ(α′+n) Π_s Σ_i w_{s,i} (α′/α)^{K_{s,i}} for every α′ of the grid."""
    result = np.empty(len(grid))
    for g in range(len(grid)):
        ratio = math.log(grid[g]) - math.log(alpha)
        result[g] = math.lgamma(grid[g]) - math.lgamma(grid[g] + n)
        for s in range(len(start) - 1):
            tilted = log_weights[start[s] : start[s + 1]] + ratio * counts[start[s] : start[s + 1]]
            largest = tilted.max()
            result[g] += largest + math.log(np.exp(tilted - largest).sum())
    return result
