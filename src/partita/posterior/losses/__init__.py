"""Expected losses of a clustering under the posterior, and the clusterings that minimise them.

Three losses compare an estimated clustering with the true one. With A = |ĉ|, C = |c| and I = |ĉ ∩ c| for an
estimated cluster ĉ and a true cluster c, and n observations,

    Binder    over pairs:    Σ_ĉ m·A(A−1)/2 + Σ_c s·C(C−1)/2 − Σ_ĉ Σ_c (m+s)·I(I−1)/2
    VI        in nats:       ( Σ_ĉ A log A + Σ_c C log C − 2 Σ_ĉ Σ_c I log I ) / n
    B-cubed   1 − mean F1:   ( n − Σ_ĉ Σ_c 2I²/(A+C) ) / n

where m and s are the costs of a falsely merged and of a falsely separated pair. All are sums over pairs
(ĉ, c), so their expectation needs no more than the probability of each cluster c that occurs in some
particle, and it is a sum over the estimated clusters of

    f(ĉ) = u·t(A) − v·Σ_c P(c)·t(I)·d(A+C),

plus a constant, with the functions t and d tabulated once for all sizes (`Terms`).

Two facts keep the search for a minimiser small. Joining sets that are never together only raises f. And f is
concave in the share of a *block* (observations that are together in every particle) that goes to one of two
clusters, so no minimiser divides a block. Each connected component of blocks is then minimised alone:
exactly, by dynamic programming over the subsets of its blocks, where these are few; else by local search
from the particles that do best.
"""

from ._clusters import Census, Layout, WeightedClusters, grouped, heaviest, take_census
from ._expected import expected_loss, probability
from ._minimise import EXACT_BLOCKS, minimise
from ._terms import BCUBED, BINDER, VI, Loss, named_loss

__all__ = [
    "BCUBED",
    "BINDER",
    "EXACT_BLOCKS",
    "VI",
    "Census",
    "Layout",
    "Loss",
    "WeightedClusters",
    "expected_loss",
    "grouped",
    "heaviest",
    "minimise",
    "named_loss",
    "probability",
    "take_census",
]
