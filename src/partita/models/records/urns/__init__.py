"""Urns of letters: what :class:`Ngram` keeps of a cluster, and how likely it is; :mod:`.family` has the formulas."""

from partita.models.records.urns.family import UrnFamily
from partita.models.records.urns.gains import gains
from partita.models.records.urns.log_p import log_marginal
from partita.models.records.urns.rows import begin, extend, join, reduce
from partita.models.scoring.families import Kernels

KERNELS = Kernels(begin, gains, extend, reduce, join, log_marginal)

__all__ = ["KERNELS", "UrnFamily"]
