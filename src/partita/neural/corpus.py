"""Training data of the language model: sets of fragments of one entity, drawn anew each time.

Of each entity's n fragments k are drawn, log k uniform from 0 to log n, so that all sizes of sets are seen, and
single fragments often: what one is worth by itself is what it is worth to be alone.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from partita._typing import Integers
from partita.neural.grammar import CLOSED, EMPTY_KEY, OPENING, START, Grammar
from partita.neural.prefixes import Text
from partita.neural.serialisation import Fragment
from partita.neural.tokens import END, NEXT, OPEN, SET, Tokens

STATE = 1 << 16  # a token and the grammar's state before it are kept in one number
FIRST, OPENED, FOLLOWED, ENDED = (
    place * 8 * STATE + symbol
    for place, symbol in ((START, SET), (OPENING, OPEN), (CLOSED, NEXT), (CLOSED, END))
)
LENGTHS = (32, 64, 128, 256, 512, 1024, 2048)  # of the rows of a batch


class Entities(NamedTuple):
    """The fragments of each entity in order, as :func:`encoded`, and how often it is seen in an epoch."""

    fragments: list[list[Integers]]
    repeats: int = 1


def encoded(fragment: Fragment, tokens: Tokens, grammar: Grammar) -> Integers:
    """A fragment's tokens after the symbol that opens it, each with the grammar's state before it."""
    ids = np.array(tokens.of_fragment(fragment), np.int32)
    return ids + STATE * grammar.states(ids, 8 * EMPTY_KEY)


def joined(fragments: Sequence[Integers]) -> Integers:
    """The tokens of a set with their states, given those of its fragments in order."""
    parts: list[Any] = [[FIRST]]
    for k, fragment in enumerate(fragments):
        parts += [[FOLLOWED if k else OPENED], fragment]
    return np.concatenate([*parts, [ENDED]]).astype(np.int32)


def text_of(row: Integers) -> Text:
    """Tokens and states apart. How many fragments there are is given, so that symbols between do not count."""
    counts = (row != FOLLOWED) & (row != ENDED)
    return Text(row % STATE, row // STATE, counts)


def drawn(fragments: list[Integers], rng: np.random.Generator) -> Integers:
    """A random set of one entity's fragments."""
    n = len(fragments)
    k = min(int(np.exp(rng.random() * np.log(n + 1))), n)
    chosen = np.sort(rng.choice(n, k, replace=False)) if k < n else np.arange(n)
    return joined([fragments[j] for j in chosen])[: LENGTHS[-1] + 1]


class Batches:
    """Batches by the number of the step, each of rows of about the same length.

    Parameters
    ----------
    sources : sequence of Entities
    n_tokens : int
        About so many in a batch.
    seed : int
    """

    def __init__(self, sources: Sequence[Entities], n_tokens: int, seed: int) -> None:
        self.sources, self.n_tokens, self.seed = sources, n_tokens, seed
        self.lock = threading.Lock()
        self.epoch, self.first = -1, 0  # the epoch at hand, and its first step
        self.waiting: dict[int, list[Integers]] = {length: [] for length in LENGTHS}
        self.ready: dict[int, list[Integers]] = {}  # rows of the steps to come

    def __call__(self, step: int) -> tuple[Integers, int]:
        """Rows of tokens with their states, padded with the end symbol, and how many tokens of each to learn."""
        with self.lock:
            while step >= self.first:
                self._draw_epoch()
            rows = self.ready.pop(step)
        length = next(length for length in LENGTHS if length + 1 >= max(map(len, rows)))
        batch = np.full((self._rows(length), length + 1), ENDED, np.int32)
        sizes = np.zeros(len(batch), np.int32)
        for k, row in enumerate(rows):
            batch[k, : len(row)], sizes[k] = row, len(row) - 1
        return batch, sizes

    def _rows(self, length: int) -> int:
        return max(self.n_tokens // length, 1)

    def whole_epoch(self) -> list[tuple[Integers, int]]:
        """All batches of the first epoch, with those that are not full."""
        self._draw_epoch(to_the_last=True)
        return [self(step) for step in range(self.first)]

    def _draw_epoch(self, to_the_last: bool = False) -> None:
        self.epoch += 1
        rng = np.random.default_rng((self.seed, self.epoch))
        full = []
        for source in self.sources:
            for fragments in source.fragments:
                for _ in range(source.repeats):
                    row = drawn(fragments, rng)
                    length = next(length for length in LENGTHS if length + 1 >= len(row))
                    self.waiting[length].append(row)
        for length, rows in self.waiting.items():
            rng.shuffle(rows)  # type: ignore[arg-type]
            size = self._rows(length)
            while len(rows) >= (1 if to_the_last else size):
                full.append([rows.pop() for _ in range(min(size, len(rows)))])
        rng.shuffle(full)  # type: ignore[arg-type]
        for rows in full:
            self.ready[self.first] = rows
            self.first += 1
