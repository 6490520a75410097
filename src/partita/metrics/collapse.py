"""Signs that learning has collapsed: what a clustering looks like when its probabilities are not to be believed.

Learning from one's own clusters has several fixed points. If everything is alone, every repeated value looks common,
which keeps everything alone; if everything that shares a value is together, the value looks rare.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from partita.metrics.probabilities import pairs_for_calibration
from partita.metrics.unlabelled import Reliability

if TYPE_CHECKING:
    from partita.posterior import Posterior

LARGE = 3  # the largest cluster holds more than one part in so many
MANY = 30  # rows, for a cluster of a third of them to be strange
REPEATS = 5  # rows that repeat another one, for it to matter what becomes of them
BOUND = 100.0  # α beyond so many times the rows, or below one part in so many
LIKELY, CERTAIN, CERTAINLY = 0.5, 0.95, 0.1  # of the pairs that are likely so many should be certain
PAIRS, FEW = 20_000, 20  # pairs to look at, and too few to say anything
CONTRADICTION = 0.1  # of a probability and the share that is true, beyond two standard errors


class Sign(NamedTuple):
    """One sign of a collapse: what kind, what is strange, and what to do."""

    kind: str
    message: str
    advice: str


def signs_of_collapse(X: Any, posterior: Posterior, reliability: Reliability | None = None) -> list[Sign]:
    """What is strange about a clustering, with what to do about it; empty if nothing is.

    Parameters
    ----------
    X : sequence of mappings, or of rows
        The observations, in the order of the posterior.
    posterior : Posterior
    reliability : Reliability, optional
        What :func:`reliability_without_labels` has found, to be compared with the probabilities.

    Examples
    --------
    >>> import partita as pt
    >>> rows = [{"name": name} for name in "abcde"] * 3
    >>> model = pt.Record({"name": pt.Category()}).fit_prior(rows)
    >>> alone = pt.SplitSMC(model, alpha=1e9, random_state=0).fit(rows)
    >>> [sign.kind for sign in signs_of_collapse(rows, alone.posterior_)]
    ['identical rows apart', 'alpha at a bound', 'hardly any pair certain']
    """
    if len(X) != posterior.n_observations:
        raise ValueError(f"X has {len(X)} rows, the posterior {posterior.n_observations} observations")
    found = [
        identical_apart(X, posterior),
        alpha_at_a_bound(posterior),
        one_large_cluster(int(np.bincount(posterior.labels()).max()), posterior.n_observations),
        hardly_any_certain(posterior),
    ]
    contradicted = [] if reliability is None else contradicted_bins(reliability)
    return [sign for sign in found if sign is not None] + contradicted


def identical_apart(X: Any, posterior: Posterior) -> Sign | None:
    """Most rows that say exactly what another one says are apart from it."""
    first: dict[str, int] = {}
    repeats = []
    for row, said in enumerate(X):
        text = json.dumps(said if isinstance(said, Mapping) else list(said), sort_keys=True, default=str)
        if first.setdefault(text, row) != row:
            repeats.append((first[text], row))
    if len(repeats) < REPEATS:
        return None
    together = np.asarray(posterior.together(*np.array(repeats).T))
    apart = int((together < 0.5).sum())
    if 2 * apart <= len(repeats):
        return None
    return Sign(
        "identical rows apart",
        f"{apart} of {len(repeats)} rows that say exactly what an earlier one says are held to be of another entity",
        "if they are of one entity, confirm some of these pairs, or drop columns that all rows share and learn anew",
    )


def alpha_at_a_bound(posterior: Posterior) -> Sign | None:
    """The concentration says that all are alone, or all together."""
    alpha, n = posterior._particles.alpha, posterior.n_observations
    if alpha > BOUND * n:
        what = f"α is {alpha:.3g} for {n} rows: hardly any two are expected to be of one entity"
        advice = (
            "right for a table without duplicates; else confirm some pairs, give more rows, and learn anew"
        )
    elif alpha < 1.0 / (BOUND * np.log(n + 1.0)):
        what = f"α is {alpha:.3g} for {n} rows: all are expected to be of one entity"
        advice = "ignore columns that all rows share, separate some pairs, and learn anew"
    else:
        return None
    return Sign("alpha at a bound", what, advice)


def one_large_cluster(largest: int, n: int) -> Sign | None:
    """One cluster, of so many of all rows, holds a third of everything."""
    if n < MANY or LARGE * largest <= n:
        return None
    return Sign(
        "one large cluster",
        f"one entity holds {largest} of {n} rows",
        "look at what its rows share: ignore that column, or give it another kind, and learn anew",
    )


def hardly_any_certain(posterior: Posterior) -> Sign | None:
    """No pair is likely, or hardly any of the likely ones is certain."""
    if posterior.n_observations < 2:
        return None
    probability = np.zeros(0)
    if posterior.n_subproblems < posterior.n_observations:
        probability = np.asarray(posterior.together(*pairs_for_calibration(posterior, PAIRS)))
    likely = probability[probability >= LIKELY]
    certain = int((likely > CERTAIN).sum())
    advice = "more columns would decide it; until then answer the questions that are worth most, or confirm some pairs"
    if not len(likely):
        return Sign("hardly any pair certain", "no two rows are likely to be of one entity", advice)
    if len(likely) < FEW or certain >= CERTAINLY * len(likely):
        return None
    what = (
        f"of {len(likely)} pairs that are likely to be of one entity, {certain} are certain (above {CERTAIN})"
    )
    return Sign("hardly any pair certain", what, advice)


def contradicted_bins(reliability: Reliability) -> list[Sign]:
    """Bins whose probability is far from the share that is true."""
    found = []
    for said, share, error in zip(reliability.probability, reliability.share, reliability.error, strict=True):
        if not abs(share - said) > CONTRADICTION + 2.0 * error:  # nor where it cannot tell
            continue
        sure = share < said
        what = f"pairs of probability {said:.2f} are of one entity {share:.0%} of the time, as far as can be seen"
        advice = (
            "too sure: ignore columns that repeat one another, or separate some of the pairs that are wrong"
            if sure
            else "too unsure: confirm some of these pairs"
        )
        found.append(Sign("too sure" if sure else "too unsure", what, advice))
    return found
