"""Many records at once: clustered in shards, with the same answer however they are divided (docs/scale.md).

:func:`cluster` reads records, learns a model on a sample of them, plans which may be of one entity, and runs the
sampler in shards: on all cores of this machine (:mod:`.local`) or on Spark (:mod:`.spark`). What it has done so far
is in a directory, so that a run that was killed goes on (:mod:`.work`).
"""

from partita.bulk.clustering import Entities, cluster, plan
from partita.bulk.report import Report, Rest

__all__ = ["Entities", "Report", "Rest", "cluster", "plan"]
