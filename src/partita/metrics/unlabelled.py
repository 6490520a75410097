"""How honest are probabilities, where nobody knows the truth? Leave an attribute out, and ask it.

Cluster the records without attribute a, and take the pairs that are together with a probability near z then. Let g,
from 0 to 1, say how alike their values of a are, m how alike they are within entities, u between them. If a share s(z)
of the pairs is of one entity, the mean of g is s·m + (1 − s)·u, hence

    s(z) = Σ (g − u) / Σ (m − u).

m is from pairs that are certain to be together without a, u from pairs that are certainly apart. Both are from pairs
about as alike in the *other* attributes as the pair at hand: where a follows from the others, as a city does from its
street, strangers with like streets have like cities, m − u vanishes, and a cannot tell. What is certain need not be
true: m is corrected by how much more alike the third of these pairs is that is most alike in the others.

This is about clustering without a. A pair with s and g is of one entity with the probability (Bayes)

    t = s·f_m(g) / [s·f_m(g) + (1 − s)·f_u(g)],

f_m and f_u being the densities of g within and between entities, and the mean of t over the pairs that the posterior
with all attributes holds together with a probability near p is the share of these that are of one entity.

Given the truth, a is taken to be independent of the others. What is left of dependence between strangers makes a too
sure, so the lowest of the attributes counts; where attributes contradict one another, the answer is that nobody can
tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from partita._core.checks import whole
from partita._core.typing import Floats, Integers
from partita.metrics.compared import compare, probability_without, sampled_rows
from partita.metrics.left_out import (
    EDGES,
    ENOUGH,
    AttributeReliability,
    Pairs,
    bins_of,
    counts,
    mean_of,
    silent,
    told_by,
)

if TYPE_CHECKING:
    from partita.models.records.record import Record
    from partita.posterior import Posterior

CONTRADICTION = 0.25  # between the attributes, at most
TELLERS = 2  # attributes at least


@dataclass(frozen=True)
class Reliability:
    """The share of pairs that are of one entity, among those that a posterior gives about the same probability.

    Attributes
    ----------
    edges : (B + 1,) array
        The bins of probabilities.
    count : (B,) array
        Pairs in each bin, among the records looked at.
    probability : (B,) array
        Their mean probability; not a number where there are none.
    share, error : (B,) arrays
        The estimated share that are of one entity, and its standard error; not a number where it cannot tell.
    reasons : tuple of str
        Of each bin: why it cannot tell; empty where it can.
    attributes : tuple of AttributeReliability
    n_records : int
        How many records were looked at.
    """

    edges: Floats
    count: Integers
    probability: Floats
    share: Floats
    error: Floats
    reasons: tuple[str, ...]
    attributes: tuple[AttributeReliability, ...]
    n_records: int

    @property
    def can_tell(self) -> bool:
        """Whether it can tell anything."""
        return bool(np.isfinite(self.share).any())

    @property
    def calibration_error(self) -> float:
        """Mean distance of probability and share, over the pairs of which it can tell; else not a number."""
        known = np.isfinite(self.share)
        if not known.any():
            return float("nan")
        distance = np.abs(self.share - self.probability)[known]
        return float(np.average(distance, weights=self.count[known]))

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it, None where it cannot tell."""
        return {
            "records": self.n_records,
            "can tell": self.can_tell,
            "calibration error": _number(self.calibration_error),
            "bins": [
                {
                    "from": float(self.edges[b]),
                    "to": float(self.edges[b + 1]),
                    "pairs": int(self.count[b]),
                    "probability": _number(self.probability[b]),
                    "share": _number(self.share[b]),
                    "error": _number(self.error[b]),
                    "reason": self.reasons[b],
                }
                for b in range(len(self.count))
            ],
            "attributes": [
                {
                    "name": asked.name,
                    "reason": asked.reason,
                    "within": _number(asked.within),
                    "between": _number(asked.between),
                    "share": [_number(x) for x in asked.share],
                    "error": [_number(x) for x in asked.error],
                    "reasons": list(asked.reasons),
                }
                for asked in self.attributes
            ],
        }


def reliability_without_labels(
    model: Record,
    X: Any,
    posterior: Posterior,
    *,
    n_records: int = 1000,
    n_attributes: int = 10,
    n_particles: int = 5,
    random_state: int = 0,
) -> Reliability:
    """Estimate the reliability curve of a posterior over clusterings of records, from the records alone.

    Of all pairs that the posterior gives a probability near p, which share is of one entity? See
    :mod:`partita.metrics.unlabelled` for how it is found out. It takes some seconds an attribute.

    Parameters
    ----------
    model : Record
        Fitted, as the sampler has it.
    X : list of mappings
        All records that the posterior is about, in its order.
    posterior : Posterior
    n_records : int
        How many are looked at: whole subproblems, and their neighbours.
    n_attributes : int
        How many attributes are left out, in turn; those that most pairs mention.
    n_particles : int
        Of the sampler that clusters without an attribute.
    random_state : int

    Returns
    -------
    Reliability
        Where it cannot tell, it says why: agreement on an attribute that says little, too few pairs or entities,
        fewer than two attributes that can tell, or attributes that contradict one another.

    Examples
    --------
    >>> import partita as pt
    >>> records = [{"name": f"n{k // 2}"} for k in range(20)]
    >>> sampler = pt.SplitSMC(pt.Record({"name": pt.Text()}).fit_prior(records), random_state=0).fit(records)
    >>> found = pt.metrics.reliability_without_labels(sampler.model_, records, sampler.posterior_)
    >>> found.can_tell, found.reasons[-1]
    (False, 'there is one attribute; it takes two that can tell')
    """
    from partita.models.records.record import Record

    if not isinstance(model, Record):
        raise TypeError(
            f"model must be a Record, whose attributes can be left out, got {type(model).__name__}"
        )
    fragments = model.validate(X)
    if len(fragments) != posterior.n_observations:
        raise ValueError(
            f"X has {len(fragments)} records, the posterior {posterior.n_observations} observations"
        )
    rows = sampled_rows(
        posterior, [f.pairs for f in fragments], whole("n_records", n_records, 2), random_state
    )
    sample = [fragments[row] for row in rows]
    first, second = np.triu_indices(len(rows), 1)
    probability = np.asarray(posterior.together(rows[first], rows[second]))
    names, compared = compare(model, [fragment.pairs for fragment in sample])
    spoken = [int((~np.isnan(alike) & (probability >= EDGES[0])).sum()) for alike in compared]
    chosen = sorted(range(len(names)), key=lambda a: -spoken[a])[: whole("n_attributes", n_attributes, 1)]
    known = np.array([~np.isnan(alike) for alike in compared]).sum(axis=0) if names else 0
    total = np.nansum(compared, axis=0) if names else 0.0
    asked = []
    for a, name in enumerate(names):
        if len(names) < TELLERS:
            asked.append(silent(name, "it is the only attribute"))
        elif spoken[a] < ENOUGH:
            asked.append(silent(name, f"pairs that mention it: {spoken[a]}; it takes {ENOUGH}"))
        elif a not in chosen:
            asked.append(silent(name, f"was not left out: {len(chosen)} others are mentioned more often"))
        else:
            without = probability_without(
                model, name, sample, posterior._particles.alpha, n_particles, first, second, random_state
            )
            mine = ~np.isnan(compared[a])
            others = (total - np.where(mine, compared[a], 0.0)) / np.maximum(known - mine, 1)
            pairs = Pairs(first, second, probability, without, compared[a], others)
            asked.append(told_by(name, pairs, len(rows)))
    return combined(asked, probability, len(rows))


# ---------------------------------------------------------------------- all attributes


def combined(asked: Sequence[AttributeReliability], probability: Floats, n_records: int) -> Reliability:
    """The lowest of what the attributes say, if at least two can tell and they do not contradict one another.

    Each has the benefit of its standard error: the lowest of several guesses is too low by about as much.
    """
    share, error, reasons = np.full(len(EDGES), np.nan), np.full(len(EDGES), np.nan), []
    count = counts(probability)
    for b in range(len(EDGES)):
        telling = [one for one in asked if np.isfinite(one.share[b])]
        reason = ""
        if len(asked) < TELLERS:
            reason = f"there is {'one attribute' if asked else 'no attribute'}; it takes two that can tell"
        elif count[b] == 0:
            reason = "no pair has such a probability"
        elif len(telling) < TELLERS:
            reason = f"only {telling[0].name} can tell; it takes two" if telling else "no attribute can tell"
        else:
            low, high = (choose(telling, key=lambda one: one.share[b]) for choose in (min, max))
            if high.share[b] - low.share[b] > CONTRADICTION:
                both = f"{low.name} says {low.share[b]:.0%}, {high.name} {high.share[b]:.0%}"
                reason = f"{both}: they contradict one another"
            else:
                lowest = min(telling, key=lambda one: one.share[b] + one.error[b])
                share[b] = min(lowest.share[b] + lowest.error[b], 1.0)
                error[b] = lowest.error[b]
        reasons.append(reason)
    held = bins_of(probability)
    mean = mean_of(probability[held >= 0], held[held >= 0], len(EDGES))
    edges = np.append(EDGES, 1.0)
    return Reliability(edges, count, mean, share, error, tuple(reasons), tuple(asked), n_records)


def _number(value: Any) -> float | None:
    """As JSON can hold it."""
    return float(value) if np.isfinite(value) else None
