"""The questions worth a human's time: pairs of fragments, by the errors that an answer is expected to remove.

The expected number of wrong pairs of the best clustering is Σ |[i and j are together in it] − p(together)|.
An answer leaves the particles that agree with it, and the best of them. So what a question is worth is known
before it is asked: the present number less p · (that after yes) less (1 − p) · (that after no).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Connection

from partita._core.typing import Array, Floats, Integers
from partita.kb.clustering import Clustering
from partita.kb.queries.answers import Answer, entity_id
from partita.kb.store.fragments import ids_of, numbers_of
from partita.smc.reading.particles import first_members, partitions

PAIRS = 30  # that are weighed up of a subproblem, the least certain ones
LARGEST = 500  # blocks of a subproblem that are looked at


@dataclass(frozen=True)
class Question(Answer):
    """Are these two fragments of the same thing?"""

    first: str
    second: str
    probability: float  # that they are
    value: float  # the expected number of wrong pairs that an answer removes
    first_entity: str
    second_entity: str
    first_properties: dict[str, list[Any]]
    second_properties: dict[str, list[Any]]


def questions(
    connection: Connection, clustering: Clustering, judged: Set[frozenset[str]], limit: int
) -> list[Question]:
    """See :meth:`KnowledgeBase.uncertain`; pairs of blocks that are ``judged`` are not asked about."""
    numbers = numbers_of(connection, {id for pair in judged for id in pair})
    places = {id: clustering.place(number) for id, number in numbers.items()}
    asked = [tuple(places[id] for id in pair) for pair in judged if all(id in places for id in pair)]
    best = heapq.nlargest(limit, _weighed(clustering, asked, limit), key=lambda found: found[0])
    ids = ids_of(connection, clustering.numbers[[x for _, _, *pair in best for x in pair]])
    return [_question(clustering, ids, *found) for found in best]


def _weighed(clustering: Clustering, asked: list[Any], limit: int) -> list[tuple[float, float, int, int]]:
    """Questions of all subproblems that may be among the best: worth, probability, and two observations."""
    engine = clustering.engine
    losses = []
    for x in first_members(engine.state).tolist():
        members, ids, scores = partitions(engine.state, engine.subproblem_of(x))
        if len(scores) > 1:
            blocks, sizes, matrix, weights = as_blocks(ids, scores)
            losses.append((wrong_pairs(matrix, weights, sizes), x, members, blocks, sizes, matrix, weights))
    losses.sort(key=lambda entry: (-entry[0], entry[1]))
    found: list[tuple[float, float, int, int]] = []
    for loss, _, members, blocks, sizes, matrix, weights in losses:
        if len(found) >= limit and loss <= heapq.nlargest(limit, found)[-1][0]:
            break  # no question is worth more than all that is wrong
        found += of_subproblem(loss, members, blocks, sizes, matrix, weights, asked, clustering.said)
    return found


def as_blocks(ids: Integers, scores: Floats) -> tuple[Integers, Floats, Integers, Floats]:
    """Particles by blocks: each member's block, the sizes, the (rows × blocks) clusters, the weights."""
    matrix, blocks, sizes = np.unique(ids, axis=1, return_inverse=True, return_counts=True)
    order = np.argsort(-scores, kind="stable")
    weights = np.exp(scores[order] - scores.max())
    return blocks.ravel(), sizes.astype(float), matrix[order], weights / weights.sum()


def together_in(rows: Integers) -> Array:
    """(rows, blocks, blocks): which blocks are together in each row."""
    same: Array = rows[:, :, None] == rows[:, None, :]
    return same


def wrong_pairs(matrix: Integers, weights: Floats, sizes: Floats) -> float:
    """The expected number of wrong pairs of the first row, the best."""
    if matrix.shape[1] > LARGEST:
        return 0.0
    same = together_in(matrix)
    probability = np.tensordot(weights / weights.sum(), same, 1)
    return float(sizes @ np.abs(same[0] - probability) @ sizes) / 2.0


def of_subproblem(
    loss: float,
    members: Integers,
    blocks: Integers,
    sizes: Floats,
    matrix: Integers,
    weights: Floats,
    asked: list[Any],
    said: Callable[[int], dict[str, list[Any]]],
) -> list[tuple[float, float, int, int]]:
    """What the least certain pairs of blocks of one subproblem are worth."""
    probability = np.tensordot(weights, together_in(matrix), 1)
    first, second = np.triu_indices(len(sizes), 1)
    doubt = np.minimum(probability, 1.0 - probability)[first, second]
    place = {int(x): int(b) for x, b in zip(members, blocks, strict=True)}
    known = {frozenset((place[x], place[y])) for x, y in asked if x in place and y in place}
    found = []
    for k in np.argsort(-doubt, kind="stable")[:PAIRS].tolist():
        i, j = int(first[k]), int(second[k])
        if doubt[k] <= 0.0 or {i, j} in known:
            continue
        yes, p = matrix[:, i] == matrix[:, j], float(probability[i, j])
        after = p * wrong_pairs(matrix[yes], weights[yes], sizes)
        after += (1.0 - p) * wrong_pairs(matrix[~yes], weights[~yes], sizes)
        x, y = sorted(most_telling(members[blocks == b], said) for b in (i, j))
        found.append((loss - after, p, x, y))
    return found


def most_telling(members: Integers, said: Callable[[int], dict[str, list[Any]]]) -> int:
    """Of some fragments the one that says most, of equal ones the earliest."""
    return int(min(members.tolist(), key=lambda x: (-sum(map(len, said(x).values())), x)))


def _question(
    clustering: Clustering, ids: dict[int, str], value: float, probability: float, x: int, y: int
) -> Question:
    return Question(
        first=ids[int(clustering.numbers[x])],
        second=ids[int(clustering.numbers[y])],
        probability=probability,
        value=value,
        first_entity=str(entity_id(int(clustering.entity[x]))),
        second_entity=str(entity_id(int(clustering.entity[y]))),
        first_properties=clustering.said(x),
        second_properties=clustering.said(y),
    )
