"""Questions to a factorised posterior.

A `Posterior` is a frozen snapshot of the sampler's approximation (paper, section 3.2): the observations are
divided into subproblems, each with its own weighted particles, and a clustering of all observations is one
particle of every subproblem, chosen independently. Observations that are together in all particles form a
*block*; everything below works on blocks, and on the distinct clusters with their total weights, so that no
answer costs time in the number of whole clusterings, the product of the subproblems' numbers of particles.
"""

from ._posterior import Posterior
from ._subproblems import Subproblem

__all__ = ["Posterior", "Subproblem"]
