"""What a subproblem is in doubt of: questions about two of its blocks, each chosen as if those before were answered.

Blocks are fragments that are together in all particles. Two particles disagree about so many pairs of fragments, and
the expected number of wrong pairs of the best one is the mean of that over all. An answer leaves the particles that
agree with it; so what a question is worth follows from which particles say yes, and all pairs of blocks of which the
same say yes are one question.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from partita._core.typing import Array, Floats, Integers

LARGEST = 700  # blocks that are compared, those of most fragments
FEW = 40  # blocks whose pairs are compared one by one
PROBABLE = 0.1  # an answer that must not make another question of the same list moot
OPEN = 0.005  # doubt that a question is not moot with


class Particles(NamedTuple):
    """The particles of a subproblem by blocks, the best first."""

    members: Integers  # the observations
    block: Integers  # of each of them
    sizes: Floats  # of the blocks
    clusters: Integers  # (rows, blocks): which blocks are together in each row
    weights: Floats  # of the rows
    disagreement: Floats  # (rows, rows): the pairs of observations about which two rows disagree


class Doubt(NamedTuple):
    """A question about two blocks."""

    worth: float  # the expected number of wrong pairs that an answer removes
    probability: float  # that the two are together
    first: int  # block
    second: int


def particles(members: Integers, ids: Integers, scores: Floats) -> Particles:
    """Particles as :func:`partita.smc.reading.particles.partitions` has them, by blocks."""
    clusters, block, sizes = np.unique(ids, axis=1, return_inverse=True, return_counts=True)
    order = np.argsort(-scores, kind="stable")
    weights = np.exp(scores[order] - scores.max())
    weights /= weights.sum()
    weighed = sizes.astype(float)
    return Particles(
        members, block.ravel(), weighed, clusters[order], weights, disagreements(clusters[order], weighed)
    )


def disagreements(clusters: Integers, sizes: Floats) -> Floats:
    """Of each two partitions of blocks: the pairs of observations that are together in one of them alone."""
    if clusters.shape[1] <= FEW:
        pairs = (clusters[:, :, None] == clusters[:, None, :]).reshape(len(clusters), -1)
        together = (pairs * np.outer(sizes, sizes).ravel()) @ pairs.T
        own = np.diag(together)
        return np.asarray((own[:, None] + own[None, :]) / 2.0 - together)
    labels = [np.unique(row, return_inverse=True)[1].ravel() for row in clusters]
    squares = [float((np.bincount(row, sizes) ** 2).sum()) for row in labels]
    found = np.zeros((len(labels), len(labels)))
    for i, row in enumerate(labels):
        for j in range(i):
            both = np.bincount(np.unique(row * len(row) + labels[j], return_inverse=True)[1].ravel(), sizes)
            found[i, j] = found[j, i] = (squares[i] + squares[j]) / 2.0 - float((both**2).sum())
    return found


def wrong_pairs(of: Particles) -> float:
    """The expected number of wrong pairs of the best row."""
    return float(of.weights @ of.disagreement[0])


# ---------------------------------------------------------------------- questions, one after the other


def doubts(of: Particles, passed: Iterable[tuple[int, int]]) -> Iterator[Doubt]:
    """The questions of a subproblem, as if those before, and those about the pairs of blocks passed, were answered.

    No two are of the same two entities.
    """
    answers, pairs = different_questions(of)
    cells = np.zeros(len(of.weights), np.int64)  # rows that give the same answers so far
    for first, second in passed:
        cells = divided(cells, of.clusters[:, first] == of.clusters[:, second])
    while len(answers):
        worth = worths(of, answers, cells)
        best = int(worth.argmax())
        if worth[best] <= 0.0:
            return
        yes = answers[best]
        yield Doubt(float(worth[best]), float(of.weights @ yes), *pairs[best])
        cells = divided(cells, yes)
        entities = {of.clusters[0, block] for block in pairs[best]}
        left = np.array(
            [
                entities != {of.clusters[0, block] for block in pair} and are_open(other, yes, of.weights)
                for pair, other in zip(pairs, answers, strict=True)
            ],
            bool,
        )
        answers, pairs = answers[left], [pair for pair, stays in zip(pairs, left, strict=True) if stays]


def different_questions(of: Particles) -> tuple[Array, list[tuple[int, int]]]:
    """(questions, rows) which rows say yes to each question that has two answers, and of which blocks to ask it.

    Of the largest, if there are several.
    """
    large = np.argsort(-of.sizes, kind="stable")[:LARGEST]
    codes = np.zeros((len(large), len(large)), np.int64)
    random = np.random.default_rng(0).integers(-(2**62), 2**62, len(of.weights))
    for row, code in zip(of.clusters[:, large], random.tolist(), strict=True):
        codes += code * (row[:, None] == row[None, :])
    first, second = np.triu_indices(len(large), 1)  # in order of size
    places = np.unique(codes[first, second], return_index=True)[1]
    places.sort()
    one, other = large[first[places]], large[second[places]]
    answers: Array = (of.clusters[:, one] == of.clusters[:, other]).T
    asked = answers.any(axis=1) & ~answers.all(axis=1)
    return answers[asked], list(zip(one[asked].tolist(), other[asked].tolist(), strict=True))


def worths(of: Particles, answers: Array, cells: Integers) -> Floats:
    """How many wrong pairs an answer to each question is expected to remove, given which cell of rows is true."""
    found = np.zeros(len(answers))
    for cell in range(int(cells.max()) + 1):
        here = cells == cell
        found += float((of.weights * here) @ of.disagreement[int(here.argmax())])
        for said in (answers & here, ~answers & here):
            best = said.argmax(axis=1)  # the first, for rows are in order
            found -= ((of.weights * said) * of.disagreement[best]).sum(axis=1)
    return found


def divided(cells: Integers, yes: Array) -> Integers:
    """The cells of rows that also give the same answer to one more question."""
    found: Integers = np.unique(2 * cells + yes, return_inverse=True)[1].ravel()
    return found


def are_open(one: Array, other: Array, weights: Floats) -> bool:
    """Whether no probable answer to one of two questions settles the other."""
    for first, second in ((one, other), (other, one)):
        for answer in (first, ~first):
            share = float(weights @ answer)
            if share < PROBABLE:
                continue
            yes = float(weights @ (answer & second)) / share
            if min(yes, 1.0 - yes) < OPEN:
                return False
    return True
