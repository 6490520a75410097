"""Comparisons: what records keep of a cluster, and the evidence for it; :mod:`.family` has the formulas."""

from partita.models.records.comparisons.family import ComparisonFamily
from partita.models.records.comparisons.gains import gains
from partita.models.records.comparisons.log_p import log_marginal
from partita.models.records.comparisons.rows import begin, extend, join, reduce
from partita.models.scoring.families import Kernels

KERNELS = Kernels(begin, gains, extend, reduce, join, log_marginal)

__all__ = ["KERNELS", "ComparisonFamily"]
