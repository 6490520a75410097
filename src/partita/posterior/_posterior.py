"""The posterior itself: each method names a question, the other modules of the package answer it."""

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from partita._core.typing import Floats, Integers
from partita.posterior import losses

from . import _counts
from ._entropy import block_entropies
from ._labels import label, sample
from ._pairs import together
from ._particles import Particles
from ._subproblems import Subproblem, Subproblems

if TYPE_CHECKING:
    from numpy.random import RandomState


class Posterior:
    """A distribution over clusterings: a product over subproblems of weighted particles.

    Samplers make these, as ``posterior_``; the parameters are how it is stored, for whoever makes one by hand. The
    arrays are read, never changed. A *block* is a set of observations that are together in all particles, such as
    those of a cluster that nothing speaks against. n observations, S subproblems, B blocks, R particles in all.

    Parameters
    ----------
    observation_block : (n,) int64 array
        The block of each observation, numbered through all subproblems, 0..B−1.
    blocks_start, rows_start, cells_start : (S+1,) int64 arrays
        Subproblem s has blocks ``blocks_start[s]:blocks_start[s+1]``, particles
        ``rows_start[s]:rows_start[s+1]``, heaviest first, and ``cells[cells_start[s]:cells_start[s+1]]``,
        which is particles × blocks.
    cells : int64 array
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
    >>> import numpy as np, partita as pt
    >>> X = np.array([[0.0], [0.4], [7.0], [1.1]])
    >>> posterior = pt.SplitSMC(pt.Gaussian(rate=0.1), alpha=1.0, n_particles=10).fit(X).posterior_
    >>> every = np.arange(posterior.n_observations)
    >>> posterior.together(every[:, None], every).shape  # the co-clustering matrix
    (4, 4)
    >>> draws = posterior.sample(1000, random_state=0)
    >>> bool(abs((draws[:, 0] == draws[:, 1]).mean() - posterior.together(0, 1)) < 0.05)
    True
    >>> bool(posterior.expected_loss(posterior.labels("vi"), "vi") <= posterior.expected_loss([0, 0, 1, 0], "vi"))
    True

    One made by hand, where observations 0 and 1 are surely together, 3 joins them with probability 3/4, and 2 is a
    subproblem of its own:

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
        self._particles = Particles(
            observation_block, blocks_start, rows_start, cells_start, cells, log_weights, row_scores, alpha
        )

    @property
    def n_observations(self) -> int:
        """Number of observations."""
        return len(self._particles.observation_block)

    @property
    def n_subproblems(self) -> int:
        """Number of subproblems."""
        return len(self._particles.rows_start) - 1

    @property
    def subproblems(self) -> Sequence[Subproblem]:
        """The subproblems, a sequence of S, each with three arrays.

        ``observations``, shape (k,), their numbers, ascending; ``partitions``, shape (P, k), one particle a row,
        labels 0..K−1 in order of first appearance, the heaviest particle first; and ``probabilities``, shape (P,),
        the weights of these, which sum to one.
        """
        return Subproblems(self._particles)

    def __repr__(self) -> str:
        n_clusters, size = self.labels().max(initial=-1) + 1, self.log_effective_particles()
        return (
            f"Posterior({self.n_observations} observations, {self.n_subproblems} subproblems, "
            f"{n_clusters} clusters, e^{size:.1f} clusterings)"
        )

    def log_density(self) -> float:
        """Score of the best clustering: Σ over its clusters of ``log α + lgamma(|c|) + log p(c)``.

        Returns
        -------
        float
            The unnormalised log-posterior density (paper, eq. 3) of the heaviest particles together.
        """
        return float(self._particles.row_scores[self._particles.rows_start[:-1]].sum())

    def log_effective_particles(self) -> float:
        """Log of the number of clusterings represented, Σ_s log P_s (paper, appendix A.2.1)."""
        return float(np.log(np.diff(self._particles.rows_start)).sum())

    def labels(
        self, loss: str = "map", *, false_merge_cost: float = 1.0, false_split_cost: float = 1.0
    ) -> Integers:
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
        The minimiser never joins observations that share no cluster in any particle, nor divides those that are
        together in all of them (a block). It is exact wherever at most 12 blocks hang together; else it is the best
        of several local searches, at least as good as every particle.
        """
        chosen = losses.named_loss(loss, false_merge_cost, false_split_cost)
        particles = self._particles
        if loss == "map":
            clusters = particles.cells[losses.heaviest(particles.blocks_start, particles.cells_start)]
        else:
            clusters = losses.minimise(chosen, particles.layout, particles.census)
        return label(clusters[None], particles.order, particles.observation_block)[0]

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
        chosen = losses.named_loss(loss, false_merge_cost, false_split_cost)
        groups = np.asarray(labels)
        if groups.shape != (self.n_observations,):
            raise ValueError(f"labels must have shape ({self.n_observations},), got {groups.shape}")
        groups = np.unique(groups, return_inverse=True)[1]
        particles = self._particles
        if loss == "map":
            probability = losses.probability(
                particles.layout, particles.census, groups, particles.observation_block
            )
            return max(1.0 - probability, 0.0)
        return losses.expected_loss(chosen, particles.census.clusters, groups, particles.observation_block)

    def together(self, i: ArrayLike, j: ArrayLike) -> float | Floats:
        """Probability that observations i and j share a cluster.

        Parameters
        ----------
        i, j : int or integer array
            Observations, 0..n−1. Arrays broadcast.

        Returns
        -------
        float, or float64 array of the broadcast shape
            Exactly 1 where all particles have them together, exactly 0 across subproblems.

        Examples
        --------
        All pairs: ``posterior.together(every[:, None], every)`` with ``every = np.arange(posterior.n_observations)``.
        """
        result = together(self._particles, i, j)
        return float(result) if result.ndim == 0 else result

    def sample(self, n: int, random_state: "int | RandomState | None" = None) -> Integers:
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
        particles = self._particles
        return sample(particles.layout, uniforms, particles.order, particles.observation_block)

    def entropy(self) -> Floats:
        """How unsure it is where each observation belongs, in nats.

        With C(x) the cluster of x in a particle, and M_k the clusters of the best clustering, a companion of
        x drawn at random lies in M_k with probability::

            q_x(k) = Σ_particles w · |(C(x) ∖ x) ∩ M_k| / |C(x) ∖ x|,      q_x(alone) = Σ_{C(x) = {x}} w.

        Doubts about the neighbours of x do not add to it, only doubts about x itself.

        Returns
        -------
        (n,) float64 array
            Shannon entropy of q_x; 0 where all particles agree.
        """
        census, block = self._particles.census, self._particles.observation_block
        return block_entropies(census.clusters, census.best)[block]

    def n_clusters(self) -> tuple[Integers, Floats]:
        """Exact distribution of the number of clusters: the convolution of the subproblems' distributions.

        Returns
        -------
        values : (K,) int64 array
            Consecutive, ascending. Values at either end whose probability is below 1e-300 are left out.
        probabilities : (K,) float64 array
        """
        particles = self._particles
        least, probabilities = _counts.distribution_of_sum(
            particles.census.row_clusters, particles.weights, particles.rows_start
        )
        return least + np.arange(len(probabilities)), probabilities

    def alpha(self, grid: ArrayLike, prior: ArrayLike | None = None) -> Floats:
        """Posterior of the concentration over a grid, with no new evaluations of the model.

        A change of concentration tilts each particle by its number of clusters K alone (paper, eq. 3), so

            p(α′ | x) ∝ prior(α′) · Γ(α′)/Γ(α′+n) · Π_s Σ_i w_{s,i} (α′/α)^{K_{s,i}}.

        As good as the particles represent the clusterings that α′ favours: best near the α of the sampler. Where it
        lies at an end of the grid, fit again with an α from there.

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
        values, weights = _counts.grid_and_prior(grid, prior)
        particles = self._particles
        return _counts.concentration(
            values,
            weights,
            particles.alpha,
            self.n_observations,
            particles.census.row_clusters,
            particles.log_weights,
            particles.rows_start,
        )
