"""What candidates miss: the share of each row's predictive that lies where they allow it to go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from partita._core.typing import Array, Floats, Integers
from partita.smc.reading.predict import predictive
from partita.smc.steps.candidates import candidates_of_row


@dataclass(frozen=True)
class CandidateReport:
    """How near candidates come to scoring everything, on some rows; printing it gives a summary.

    Attributes
    ----------
    rows : array of shape (n,)
        The rows looked at.
    reached : array of shape (n,)
        Of each, the exact probability of the clusters among its candidates and of a new one: at best 1.
    missed : array of bool, shape (n,)
        Whether the row's best place of all is a cluster that is not among its candidates.
    scored : array of shape (n,)
        How many subproblems its candidates are.
    n_subproblems : int
        How many there are in all.
    """

    rows: Integers
    reached: Floats
    missed: Array
    scored: Integers
    n_subproblems: int

    def __str__(self) -> str:
        return (
            f"probability reached: {100 * self.reached.mean():.1f} %\n"
            f"best cluster missed: {100 * self.missed.mean():.1f} % of {len(self.rows)} rows\n"
            f"subproblems scored: {self.scored.mean():.1f} of {self.n_subproblems}"
        )


def candidate_report(engine: Any, rows: Integers, X: Any, labels: Integers) -> CandidateReport:
    """Compare the candidates of the rows ``X`` with everything; ``rows`` are their numbers elsewhere."""
    encoded, keys = engine.encode(X), engine.keys(X)
    reached, missed, scored = np.empty(len(X)), np.zeros(len(X), bool), np.empty(len(X), np.int64)
    with engine.lock:
        first = engine.present[np.unique(labels, return_index=True)[1]]
        home = np.array([engine.subproblem_of(x) for x in first.tolist()])  # of each cluster
        for k in range(len(X)):
            exact = predictive(engine, encoded[k : k + 1], labels)[0]
            met = candidates_of_row(engine.state, *keys, k)
            within = np.append(np.isin(home, met), True)  # a new cluster is always possible
            reached[k] = exact[within].sum()
            missed[k] = not within[exact.argmax()]
            scored[k] = len(met)
    return CandidateReport(rows, reached, missed, scored, len(np.unique(home)))
