"""The questions worth a human's time, by the errors that an answer is expected to remove.

The *doubts* of :mod:`.doubts` are about what the particles of a subproblem disagree in; the *links* of :mod:`.links`
about large entities that all of them agree in, and that would be wrong by many pairs. A list has questions that go
together: each is chosen as if those before it were answered, so that none is moot after the answer to another, and
of the same two entities there is one.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit
from sqlalchemy import Connection

from partita._core.typing import Integers
from partita.kb.clustering import Clustering
from partita.kb.queries.answers import Answer, entity_id
from partita.kb.queries.doubts import Particles, doubts, particles, wrong_pairs
from partita.kb.queries.links import Link, weakest_links, wrong
from partita.kb.store.fragments import ids_of, numbers_of
from partita.smc.reading.particles import partitions
from partita.smc.state.access import changed_since, n_changes

LINKS = 3  # of so many questions one is about a link, at most, while there are doubts
SURE = 0.99  # that the two sides of a link are together; else it is a doubt

Pair = tuple[int, int]  # of observations


@dataclass(frozen=True)
class Question(Answer):
    """Are these two fragments of the same thing?"""

    first: str
    second: str
    probability: float  # that they are
    value: float  # the expected number of wrong pairs that an answer removes, those before it answered
    first_entity: str
    second_entity: str
    first_properties: dict[str, list[Any]]
    second_properties: dict[str, list[Any]]
    kind: str  # "doubt": clusterings disagree; "link": where a large entity would come apart first
    reason: str  # why it is asked, in words
    first_size: int  # fragments of the first one's entity
    second_size: int


class Asked(NamedTuple):
    """A question by its observations."""

    worth: float
    probability: float
    first: int
    second: int
    link: Link | None = None


def questions(
    connection: Connection, clustering: Clustering, judged: Set[frozenset[str]], limit: int
) -> list[Question]:
    """See :meth:`KnowledgeBase.uncertain`; what is ``judged`` of pairs of fragments is taken for answered."""
    numbers = numbers_of(connection, {id for pair in judged for id in pair})
    places = {id: clustering.place(number) for id, number in numbers.items()}
    known = [(places[a], places[b]) for a, b in map(sorted, judged) if a in places and b in places]
    links = sorted(asked_links(clustering, known), key=lambda one: (-one.worth, one.first))
    best = list(islice(mixed(asked_doubts(clustering, known), links, clustering.entity), limit))
    shown = np.array([x for one in best for x in (one.first, one.second)], np.int64)
    ids = ids_of(connection, clustering.numbers[shown])
    entities, counts = np.unique(clustering.entity[clustering.engine.present], return_counts=True)
    size = dict(zip(entities.tolist(), counts.tolist(), strict=True))
    return [in_full(clustering, ids, size, one) for one in best]


def expected_wrong_pairs(clustering: Clustering) -> float:
    """See :meth:`KnowledgeBase.wrong_pairs`."""
    found = in_doubt(clustering)
    return math.fsum(wrong_pairs(of) for of in found.values())


def in_doubt(clustering: Clustering) -> dict[int, Particles]:
    """The particles of the subproblems that have several, by slot; only what has changed is looked at again."""
    state, alpha = clustering.engine.state, clustering.engine.alpha
    since, before = clustering.doubted_at
    if alpha != before:  # which all weights depend on
        since = -1
        clustering.doubted = {}
    changed, freed = changed_since(state, since)
    for s in freed.tolist():
        clustering.doubted.pop(s, None)
    for s in changed.tolist():
        found = partitions(state, s)
        clustering.doubted.pop(s, None)
        if len(found[2]) > 1:
            clustering.doubted[s] = particles(*found)
    clustering.doubted_at = int(n_changes(state)), alpha
    return clustering.doubted


def mixed(doubts: Iterator[Asked], links: list[Asked], entity: Integers) -> Iterator[Asked]:
    """Doubts and links in order of their worth, with no more links than one of ``LINKS`` while there are doubts.

    Of one entity there is no more than one question whether it is several things. ``entity`` is of each observation.
    """
    waiting, doubt, n_links, n = links[::-1], next(doubts, None), 0, 0
    inside: set[int] = set()  # entities that were asked about
    while doubt is not None or waiting:
        turn = doubt is None or n_links * LINKS <= n
        if waiting and turn and (doubt is None or waiting[-1].worth > doubt.worth):
            asked = waiting.pop()
        elif doubt is not None:
            asked, doubt = doubt, next(doubts, None)
        first, second = int(entity[asked.first]), int(entity[asked.second])
        if first == second and first in inside:
            continue
        if first == second:
            inside.add(first)
        n, n_links = n + 1, n_links + (asked.link is not None)
        yield asked


# ---------------------------------------------------------------------- where particles disagree


def asked_doubts(clustering: Clustering, known: Iterable[Pair]) -> Iterator[Asked]:
    """The doubts of all subproblems, those first of which an answer is worth most."""
    engine = clustering.engine
    passed: dict[int, list[Pair]] = defaultdict(list)
    for x, y in known:
        if engine.subproblem_of(x) == engine.subproblem_of(y):
            passed[engine.subproblem_of(x)].append((x, y))
    waiting: list[tuple[float, int, Asked | None, Iterator[Asked]]] = []
    for slot, of in in_doubt(clustering).items():
        # No question is worth more than all that is wrong; so most subproblems need not be looked into.
        more = doubts_of(of, passed[slot], clustering.said)
        waiting.append((-wrong_pairs(of), int(of.members.min()), None, more))
    heapq.heapify(waiting)
    while waiting:
        _, x, asked, more = heapq.heappop(waiting)
        if asked is not None:
            yield asked
        following = next(more, None)
        if following is not None:
            heapq.heappush(waiting, (-following.worth, x, following, more))


def doubts_of(
    of: Any, passed: Iterable[Pair], said: Callable[[int], dict[str, list[Any]]]
) -> Iterator[Asked]:
    """The doubts of one subproblem, by observations."""
    block = dict(zip(of.members.tolist(), of.block.tolist(), strict=True))
    for one in doubts(of, [(block[x], block[y]) for x, y in passed]):
        x, y = sorted(most_telling(of.members[of.block == b], said) for b in (one.first, one.second))
        yield Asked(one.worth, one.probability, x, y)


def most_telling(members: Integers, said: Callable[[int], dict[str, list[Any]]]) -> int:
    """Of some fragments the one that says most, of equal ones the earliest."""
    return int(min(members.tolist(), key=lambda x: (-sum(map(len, said(x).values())), x)))


# ---------------------------------------------------------------------- where all particles agree


def asked_links(clustering: Clustering, known: Iterable[Pair]) -> Iterator[Asked]:
    """The weakest links of large entities, but for those that something is known of, and that are in doubt."""
    pairs = list(known)
    for link in weakest_links(clustering):
        one, other = set(link.one.tolist()), set(link.other.tolist())
        if any((x in one and y in other) or (x in other and y in one) for x, y in pairs):
            continue
        x, y = sorted(most_telling(side, clustering.said) for side in (link.one, link.other))
        if together(clustering, x, y) > SURE:
            yield Asked(link.worth, float(expit(link.nats)), x, y, link)


def together(clustering: Clustering, x: int, y: int) -> float:
    """The probability that two observations of a subproblem are together."""
    members, ids, scores = partitions(clustering.engine.state, clustering.engine.subproblem_of(x))
    weights = np.exp(scores - scores.max())
    same = ids[:, members == x][:, 0] == ids[:, members == y][:, 0]
    return float(weights @ same / weights.sum())


# ---------------------------------------------------------------------- in full


def in_full(clustering: Clustering, ids: dict[int, str], size: dict[int, int], asked: Asked) -> Question:
    """A question as people read it."""
    pair = asked.first, asked.second
    first, second = (int(clustering.entity[x]) for x in pair)
    return Question(
        first=ids[int(clustering.numbers[asked.first])],
        second=ids[int(clustering.numbers[asked.second])],
        probability=asked.probability,
        value=asked.worth,
        first_entity=str(entity_id(first)),
        second_entity=str(entity_id(second)),
        first_properties=clustering.said(asked.first),
        second_properties=clustering.said(asked.second),
        kind="doubt" if asked.link is None else "link",
        reason=reason(first, second, size, asked.link),
        first_size=size[first],
        second_size=size[second],
    )


def reason(first: int, second: int, size: dict[int, int], link: Link | None) -> str:
    """Why a question is asked."""
    one = f"{entity_id(first)} ({counted(size[first])})"
    if link is not None:
        sides = [f"{round(share * size[first]):,}" for share in link.share]
        odds = round(1.0 / float(wrong(np.array(link.nats))))
        return (
            f"{one} comes apart first between {sides[0]} of them and {sides[1]}, which {link.nats:.1f} nats hold "
            f"together; about 1 in {odds:,} such links is wrong"
        )
    if first == second:
        return f"{one} may be several things"
    return f"{one} and {entity_id(second)} ({counted(size[second])}) may be one"


def counted(n: int) -> str:
    """So many fragments."""
    return f"{n:,} fragment{'' if n == 1 else 's'}"
