"""Partitions as rows of labels: written in one way, combined, and the best of them."""

from __future__ import annotations

import heapq

import numpy as np

from partita._core.kernel import kernel
from partita._core.typing import Floats, Integers


def product(parts: list[tuple[Integers, Floats]], m: int) -> tuple[Integers, Floats]:
    """The m best combinations of one row from each part, side by side, best first."""
    orders = [np.argsort(-scores, kind="stable") for _, scores in parts]
    values = [scores[order] for (_, scores), order in zip(parts, orders, strict=True)]
    heap = [(-sum(float(v[0]) for v in values), (0,) * len(parts), 0)]
    chosen: list[tuple[int, ...]] = []
    scores: list[float] = []
    while heap and len(chosen) < m:
        cost, combination, last = heapq.heappop(heap)
        chosen.append(combination)
        scores.append(-cost)
        for q in range(last, len(parts)):
            k = combination[q]
            if k + 1 < len(values[q]):
                step = float(values[q][k] - values[q][k + 1])
                heapq.heappush(heap, (cost + step, (*combination[:q], k + 1, *combination[q + 1 :]), q))
    rows = np.array(chosen).T
    labels = [matrix[order[index]] for (matrix, _), order, index in zip(parts, orders, rows, strict=True)]
    return np.concatenate(labels, axis=1), np.array(scores)


def best_of(
    parts: list[tuple[Integers, Floats]], m: int, longest_odds: int
) -> tuple[Integers, Floats, Integers]:
    """All rows of all parts and their scores, and which are the m best distinct ones, best first.

    Those against which the odds are longer than that, compared with the best one, are not among them; 0 stands for any.
    """
    labels = canonical(np.concatenate([rows for rows, _ in parts]))
    scores = np.concatenate([scores for _, scores in parts])
    _, distinct = np.unique(labels, axis=0, return_index=True)
    distinct.sort()  # of equal rows the first, so old before new
    best = distinct[np.argsort(-scores[distinct], kind="stable")[:m]]
    if longest_odds:
        best = best[scores[best] >= scores[best[0]] - np.log(longest_odds)]
    return labels, scores, best


@kernel
def canonical(ids):
    """Rows of ids renumbered 0, 1, … in order of first appearance."""
    n_rows, n = ids.shape
    top = 0
    for i in range(n_rows):
        for j in range(n):
            top = max(top, ids[i, j])
    number, seen = np.empty(top + 1, np.int64), np.zeros(top + 1, np.int64)
    labels = np.empty((n_rows, n), np.int64)
    for i in range(n_rows):
        count = 0
        for j in range(n):
            if seen[ids[i, j]] != i + 1:
                seen[ids[i, j]] = i + 1
                number[ids[i, j]] = count
                count += 1
            labels[i, j] = number[ids[i, j]]
    return labels
