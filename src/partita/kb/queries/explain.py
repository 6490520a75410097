"""Why two fragments are together, or apart: a waterfall of evidence that adds up to the log-odds.

Two clusterings are compared: the best in which the fragments are together, and the best in which they are
apart. One of them is what the knowledge base holds, the other its strongest alternative. The difference of
their scores (paper, eq. 3) is a sum, over the clusters that only one of them has, of what the prior says of
sizes, what mentioning just these attributes says of the kind of thing, and what each attribute's values say.
Where the particles hold several clusterings of either kind, what the others add is a step of its own. So
the steps sum to the log-odds of the probability that the two are together.

Those clusters are whole groups of fragments. So beside the evidence of the *groups* stands that of the *pair*
alone, log p({a, b}) − log p({a}) − log p({b}), attribute by attribute, as if there were nothing else; and
what most of each group says, for that is where the two differ.

A language model says how likely whole clusters are, and not by which attribute. There the attributes'
evidence is what the records say, and a step of its own is how far the language model's differs from theirs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
from sqlalchemy import Connection

from partita._core.typing import Floats, Integers
from partita.kb.clustering import Clustering
from partita.kb.queries.answers import ENTITIES, Answer, Event, caused_by, two_fragments
from partita.kb.queries.evidence import REST, Cluster, evidence_of, fragments_of, only, scores_of
from partita.kb.store.fragments import ids_of, numbers_of
from partita.kb.store.judgements import standing
from partita.models.records.fragments import as_text
from partita.models.records.record import OTHER
from partita.smc.moves.constrain import explore
from partita.smc.reading.particles import partitions
from partita.smc.state.constraints import constraints_from, said_by

SUMMARY = 5  # values that sum up what a group says


@dataclass(frozen=True)
class Step(Answer):
    """One step of a waterfall."""

    attribute: str  # or PRIOR, KIND, NETWORK or REST
    nats: float  # of the groups that are compared; above 0: for being together
    pair: float  # nats of the two fragments alone
    first: list[Any]  # what the two fragments say
    second: list[Any]
    first_group: dict[str, int]  # what most of each group say, and how many do
    second_group: dict[str, int]


@dataclass(frozen=True)
class Explanation(Answer):
    """Why two fragments are together, or apart."""

    first: str  # their ids
    second: str
    probability: float  # that they are together
    log_odds: float  # the sum of the steps
    pair_log_odds: float  # of the two fragments alone, as if there were no others
    together: bool  # in the best clustering
    steps: list[Step]
    clusters: list[
        list[str]
    ]  # of the best clustering, those that the alternative has not, as ids of fragments
    alternative: list[list[str]]  # of the strongest alternative, those that the best clustering has not
    judgements: list[int]  # that have decided it, whatever the evidence
    events: list[Event]  # that the two fragments have caused
    asked: list[str]  # ids that were asked for: of an entity, the surest fragment stands for it
    entities: list[str]  # that the two fragments are of
    first_group: list[str]  # ids of the fragments that are together with each of the two when they are apart
    second_group: list[str]

    @property
    def of_pair(self) -> bool:
        """Whether nothing is compared but the two fragments."""
        return len(self.first_group) == len(self.second_group) == 1 and all(
            set(ids) <= {self.first, self.second} for ids in self.clusters + self.alternative
        )


def explain(connection: Connection, clustering: Clustering, one: str, other: str) -> Explanation:
    """See :meth:`KnowledgeBase.explain`."""
    first, second = two_fragments(connection, one, other)
    numbers = numbers_of(connection, [first, second])
    a, b = (clustering.place(numbers[id]) for id in (first, second))
    joined, apart, log_odds = hypotheses(clustering, a, b)
    both, each = frozenset([frozenset({a, b})]), frozenset([frozenset({a}), frozenset({b})])
    scores = scores_of(clustering, (joined ^ apart) | both | each)
    steps = evidence_of(clustering, joined, apart, scores)
    pair = evidence_of(clustering, both, each, scores)
    rest = log_odds - math.fsum(steps.values())
    if rest != 0.0 and abs(rest) > 1e-12 * max(1.0, abs(log_odds)):
        steps[REST] = rest
    together = bool(clustering.entity[a] == clustering.entity[b])
    groups = [next(cluster for cluster in apart if x in cluster) for x in (a, b)]
    ids = ids_of(connection, clustering.numbers[sorted(set().union(*joined, *apart))])
    held, against = (joined, apart) if together else (apart, joined)
    members = [[ids[int(clustering.numbers[x])] for x in sorted(group)] for group in groups]
    return Explanation(
        first=first,
        second=second,
        probability=1.0 / (1.0 + math.exp(-log_odds)) if log_odds > -700.0 else 0.0,
        log_odds=log_odds,
        pair_log_odds=math.fsum(pair.values()),
        together=together,
        steps=steps_of(clustering, steps, pair, (a, b), groups),
        clusters=named(clustering, held - against, ids),
        alternative=named(clustering, against - held, ids),
        judgements=deciding(connection, clustering, a, b),
        events=caused_by(connection, first, second),
        asked=[one, other],
        entities=[f"{ENTITIES}{clustering.entity[x]}" for x in (a, b)],
        first_group=members[0],
        second_group=members[1],
    )


def steps_of(
    clustering: Clustering,
    steps: dict[str, float],
    pair: dict[str, float],
    both: tuple[int, int],
    groups: Sequence[Cluster],
) -> list[Step]:
    """The steps, with what the two fragments and their groups say."""
    said = fragments_of(clustering, set().union(*groups))
    found = []
    for name, nats in steps.items():
        values = {x: values_of(clustering, fragment, name) for x, fragment in said.items()}
        one, other = (most_said(values[x] for x in group) for group in groups)
        first, second = (values[x] for x in both)
        found.append(Step(name, nats, pair.get(name, 0.0), first, second, one, other))
    return found


# ---------------------------------------------------------------------- the two clusterings


def hypotheses(
    clustering: Clustering, a: int, b: int
) -> tuple[frozenset[Cluster], frozenset[Cluster], float]:
    """The best clusterings with ``a`` and ``b`` together and apart, and the log-odds of being together."""
    engine = clustering.engine
    with engine.lock:
        slots = sorted({engine.subproblem_of(x) for x in (a, b)})
        generator = np.random.default_rng(0)
        found = {}
        for kind in (True, False):
            found[kind] = held(engine, slots, a, b, kind) or alternative(engine, slots, a, b, kind, generator)
    (joined, with_scores), (apart, without_scores) = found[True], found[False]
    log_odds = float(np.logaddexp.reduce(with_scores) - np.logaddexp.reduce(without_scores))
    return joined, apart, log_odds


def held(
    engine: Any, slots: list[int], a: int, b: int, together: bool
) -> tuple[frozenset[Cluster], Floats] | None:
    """The best clustering of a kind that the particles hold, and the scores of all of that kind."""
    parts = [partitions(engine.state, s) for s in slots]
    if len(parts) == 1:
        members, ids, scores = parts[0]
        same = ids[:, members == a][:, 0] == ids[:, members == b][:, 0]
        kind = same == together
        if not kind.any():
            return None
        best = np.flatnonzero(kind)[scores[kind].argmax()]
        return clusters_of(members, ids[best]), scores[kind]
    if together:
        return None
    best_rows = [clusters_of(members, ids[scores.argmax()]) for members, ids, scores in parts]
    totals = np.add.outer(parts[0][2], parts[1][2]).ravel()
    return best_rows[0] | best_rows[1], totals


def alternative(
    engine: Any, slots: list[int], a: int, b: int, together: bool, generator: np.random.Generator
) -> tuple[frozenset[Cluster], Floats]:
    """The best clustering of a kind that the particles do not hold, and its score."""
    bound, cuts = said_by(engine.constraints)
    extra_bound, extra_cuts = ([(a, b)], []) if together else ([], [[[a], [b]]])
    try:
        constraints = constraints_from([*bound, *extra_bound], [*cuts, *extra_cuts])
    except ValueError:  # a judgement rules it out; this is what would be without it
        constraints = constraints_from(extra_bound, extra_cuts)
    found = explore(engine, slots, constraints, generator)
    return clusters_of(found.members, found.labels[0]), found.scores[:1]


def clusters_of(members: Integers, labels: Integers) -> frozenset[Cluster]:
    """A row of labels as a set of clusters."""
    clusters: dict[int, list[int]] = {}
    for x, label in zip(members.tolist(), labels.tolist(), strict=True):
        clusters.setdefault(label, []).append(x)
    return frozenset(map(frozenset, clusters.values()))


# ---------------------------------------------------------------------- in words


def values_of(clustering: Clustering, fragment: dict[str, list[Any]], name: str) -> list[Any]:
    """What a fragment says of one step's attribute."""
    if name not in clustering.model.numbers:
        return []
    said = only(clustering.model, fragment, name)
    if name == OTHER:
        return [f"{key}: {value}" for key, values in said.items() for value in values]
    return said.get(name, [])


def most_said(said: Iterable[list[Any]]) -> dict[str, int]:
    """The values that most fragments of a group have, and how many have each, the commonest first."""
    counts = Counter(value for values in said for value in dict.fromkeys(map(as_text, values)))
    return dict(counts.most_common(SUMMARY))


def named(clustering: Clustering, clusters: Iterable[Cluster], ids: dict[int, str]) -> list[list[str]]:
    """Clusters as ids of fragments, the largest first."""
    listed = [[ids[int(clustering.numbers[x])] for x in sorted(cluster)] for cluster in clusters]
    return sorted(listed, key=lambda cluster: (-len(cluster), cluster))


def deciding(connection: Connection, clustering: Clustering, a: int, b: int) -> list[int]:
    """The judgements that make two fragments be together, or apart."""
    together, cuts = said_by(clustering.engine.constraints)
    group = {x: x for pair in together for x in pair} | {x: first for first, x in together}
    own = [group.get(x, x) for x in (a, b)]
    sides = [{group.get(x, x): k for k, side in enumerate(cut) for x in side} for cut in cuts]
    apart = any(own[0] in side and own[1] in side and side[own[0]] != side[own[1]] for side in sides)
    if own[0] != own[1] and not apart:
        return []
    rows = [row for row in standing(connection) if row.kind != "unsure"]
    numbers = numbers_of(connection, {id for row in rows for id in row.fragments})
    found = []
    for row in rows:
        places = [[clustering.place(numbers[id]) for id in side if id in numbers] for side in row.sides]
        reached = [{group.get(x, x) for x in side} for side in places]
        if row.kind == "confirm":
            decides = own[0] == own[1] and sum(map(len, places)) > 1 and own[0] in set().union(*reached)
        else:
            decides = any({own[0]} <= one and {own[1]} <= other for one, other in permutations(reached, 2))
        if decides:
            found.append(row.number)
    return found
