"""The weakest link of an entity: where it would come apart first, though no clustering that is kept divides it.

A large entity that two groups of fragments share by a thin bridge is wrong by many pairs, if it is wrong. What holds
the two sides of a division together is score(entity) − score(one side) − score(other side), in nats. All divisions are
tried that average linkage of the evidence of its pairs gives, and that counts for which most pairs are expected to
be wrong; then single fragments change sides while that makes it more.

Evidence that many fragments share is counted again and again, so large entities are held together by less than their
probabilities say. How often they are wrong was measured on entities of four fragments and more, in nine tables whose
truth is known (kb50, fodors_zagat, amazon_google, cora, ecb_mentions_a, webnlg_conf2, fake1000, inventors_stream and
historical50k, 600 records of each: 291 entities, of which 26 are wrong there). Of links up to 4 nats one in five was
wrong, of those of 4 to 7 nats one in twelve, beyond 10 none; ``DOUBT`` and ``HONESTY`` are the logistic curve.
"""

from __future__ import annotations

import heapq
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.special import expit

from partita._core.typing import Floats, Integers
from partita.kb.clustering import Clustering

LARGE = 4  # fragments of an entity that is looked at
ENTITIES = 30  # that are looked at, the largest ones
MEMBERS = 30  # fragments of an entity that are looked at
MOVES = 10  # of single fragments from one side to the other
DOUBT = 0.54  # log-odds against a link of 0 nats being wrong
HONESTY = 0.37  # log-odds against it that each of its nats is worth


class Link(NamedTuple):
    """What holds two sides of an entity together."""

    worth: float  # the expected number of wrong pairs, if the two sides are different things
    nats: float
    one: Integers  # observations of each side; of a large entity some
    other: Integers
    share: tuple[float, float]  # of the entity's fragments on each side


def weakest_links(clustering: Clustering) -> list[Link]:
    """The weakest links of the largest entities, in no order."""
    if clustering.network is not None:
        return []  # a language model would have to read all of them
    engine = clustering.engine
    entity = clustering.entity[engine.present]
    numbers, counts = np.unique(entity, return_counts=True)
    large = [
        (int(n), number) for number, n in zip(numbers.tolist(), counts.tolist(), strict=True) if n >= LARGE
    ]
    found = {}
    for _, number in heapq.nlargest(ENTITIES, large, key=lambda one: (one[0], -one[1])):
        members = engine.present[entity == number]
        key = engine.alpha, members.tobytes()
        found[key] = clustering.links.get(key) or weakest_link(engine, members)
    clustering.links = found  # which are not sought again while nothing has changed
    return list(found.values())


def weakest_link(engine: Any, members: Integers) -> Link:
    """The link of an entity by which most pairs are expected to be wrong."""
    engine.need(sorted({engine.subproblem_of(x) for x in members.tolist()}))
    some = members
    if len(members) > MEMBERS:
        some = np.sort(np.random.default_rng(0).permutation(members)[:MEMBERS])
    whole = float(engine.scores([some])[0])
    best = best_link(engine, some, whole, divisions(engine, some))
    for _ in range(MOVES):  # for a strong bridge is joined first, and then both its ends are on one side
        moved = [np.setxor1d(best.one, some[k : k + 1]) for k in range(len(some))]
        better = best_link(engine, some, whole, [side for side in moved if 0 < len(side) < len(some)])
        if better.worth <= best.worth:
            break
        best = better
    scale = (len(members) / len(some)) ** 2
    return best._replace(worth=best.worth * scale)


def best_link(engine: Any, members: Integers, whole: float, sides: list[Integers]) -> Link:
    """That of some divisions by which most pairs are expected to be wrong; ``whole`` is the score of all."""
    rest = [np.setdiff1d(members, side) for side in sides]
    nats = whole - engine.scores(sides) - engine.scores(rest) - float(np.log(engine.alpha))
    sizes = np.array([len(side) for side in sides])
    worth = wrong(nats) * sizes * (len(members) - sizes)
    k = int(worth.argmax())
    share = float(sizes[k]) / len(members)
    return Link(float(worth[k]), float(nats[k]), sides[k], rest[k], (share, 1.0 - share))


def divisions(engine: Any, members: Integers) -> list[Integers]:
    """One side of each division of some observations that average linkage of the evidence of pairs gives."""
    pairs = list(combinations(range(len(members)), 2))
    alone = engine.scores([members[k : k + 1] for k in range(len(members))])
    evidence = engine.scores([members[list(pair)] for pair in pairs]) - np.array(
        [alone[i] + alone[j] for i, j in pairs]
    )
    groups = [[k] for k in range(len(members))]
    for first, second, *_ in linkage(evidence.max() - evidence, "average"):
        groups.append(groups[int(first)] + groups[int(second)])
    return [
        members[sorted(group)] for group in groups[:-2]
    ]  # the last is all; the one before, what another leaves


def wrong(nats: Floats) -> Floats:
    """How probably a link of so many nats is wrong, as far as that was measured."""
    found: Floats = expit(-(DOUBT + HONESTY * np.asarray(nats)))
    return found
