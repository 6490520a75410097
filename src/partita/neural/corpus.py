"""Training data of the language model: sets of fragments of one entity, drawn anew each time.

Of each entity's n fragments k are drawn, k the whole part of a number whose logarithm is uniform from 0 to
log(n + 1), so that all sizes of sets are seen, and single fragments often: what one is worth by itself is
what it is worth to be alone.

Names are few, and soon known by heart. So in some sets the words of the names are replaced by words of other
names, the same by the same: what is left to learn is how the names of one entity are alike.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from partita._core.typing import Array
from partita.neural.grammar import CLOSED, EMPTY_KEY, OPENING, START, Grammar
from partita.neural.prefixes import Text
from partita.neural.serialisation import FIRST as NAME
from partita.neural.serialisation import Fragment
from partita.neural.tokens import END, NEXT, OPEN, SET, Tokens
from partita.neural.training import AHEAD

STATE = 1 << 16  # a token and the grammar's state before it are kept in one number
FIRST, OPENED, FOLLOWED, ENDED = (
    place * 8 * STATE + symbol
    for place, symbol in ((START, SET), (OPENING, OPEN), (CLOSED, NEXT), (CLOSED, END))
)
BEGIN, FINISH = np.array([FIRST], np.int32), np.array([ENDED], np.int32)
LENGTHS = (32, 64, 128, 256, 512, 1024, 2048)  # of the rows of a batch
COMMON = 1 / 500  # of the words in names: such as are no names themselves


class Encoder:
    """Fragments as arrays of tokens, each with the grammar's state before it."""

    def __init__(self, tokens: Tokens, grammar: Grammar, remembered: int) -> None:
        self.tokens, self.grammar, self.remembered = tokens, grammar, remembered
        self.known: dict[Fragment, Array] = {}

    def __call__(self, fragment: Fragment) -> Array:
        """The tokens of a fragment that is not the first."""
        found = self.known.get(fragment)
        if found is None:
            ids = np.array(self.tokens.of_fragment(fragment), np.int32)
            states = self.grammar.states(ids, 8 * EMPTY_KEY)
            found = np.concatenate([[FOLLOWED], ids + STATE * states]).astype(np.int32)
            if len(self.known) >= self.remembered:
                self.known.clear()
            self.known[fragment] = found
        return found

    def row(self, fragments: Sequence[Fragment]) -> Array:
        """The tokens of a set of fragments, which are in order."""
        found = np.concatenate([BEGIN, *map(self, fragments), FINISH])
        if fragments:
            found[1] = OPENED
        return found


def text_of(row: Array) -> Text:
    """Tokens and states apart. How many fragments there are is given, so symbols between do not count."""
    counts: Array = (row != FOLLOWED) & (row != ENDED)
    return Text(row % STATE, row // STATE, counts)


class Words:
    """Words of names, to replace others by.

    Parameters
    ----------
    entities : iterable of lists of fragments
    """

    def __init__(self, entities: Iterable[list[Fragment]]) -> None:
        counts = Counter(
            word for fragments in entities for fragment in fragments for word in words_of(fragment)
        )
        most = COMMON * sum(counts.values())
        words = [word for word, count in counts.items() if count < most and is_name(word)]
        self.words = sorted(words)
        self.replaceable = set(words)

    def renamed(self, fragments: list[Fragment], rng: np.random.Generator) -> list[Fragment]:
        """The fragments with other words in their names, the same for the same, in order."""
        words = {word for fragment in fragments for word in words_of(fragment)} & self.replaceable
        other = {word: self.words[rng.integers(len(self.words))] for word in sorted(words)}
        return sorted(with_words(fragment, other) for fragment in fragments)


def words_of(fragment: Fragment) -> list[str]:
    """The words of a fragment's names."""
    if not fragment or fragment[0][0] != NAME:
        return []
    return [word for name in fragment[0][1] for word in name.split(" ")]


def is_name(word: str) -> bool:
    """Whether a word looks like a name: a capital and more letters, or a script without capitals."""
    return len(word) > 2 and word.isalpha() and not word.islower()


def with_words(fragment: Fragment, other: dict[str, str]) -> Fragment:
    """A fragment with words of its names replaced."""
    if not fragment or fragment[0][0] != NAME:
        return fragment
    names = (" ".join(other.get(word, word) for word in name.split(" ")) for name in fragment[0][1])
    return ((NAME, tuple(sorted(names))), *fragment[1:])


class Entities(NamedTuple):
    """The fragments of each entity, how often it is seen in an epoch, and how often with another name."""

    fragments: list[list[Fragment]]
    repeats: int = 1
    words: Words | None = None  # for other names
    renamed: float = 0.0


class Batches:
    """Batches by the number of the step, each of rows of about the same length.

    Parameters
    ----------
    sources : sequence of Entities
    encoder : Encoder
    n_tokens : int
        About so many in a batch.
    seed : int
    """

    def __init__(self, sources: Sequence[Entities], encoder: Encoder, n_tokens: int, seed: int) -> None:
        self.sources, self.encoder, self.n_tokens, self.seed = sources, encoder, n_tokens, seed
        self.lock = threading.Lock()
        self.epoch, self.first = -1, 0  # the epoch at hand, and the step after it
        self.waiting: dict[int, list[Array]] = {length: [] for length in LENGTHS}
        self.ready: dict[int, list[Array]] = {}  # rows of the steps to come

    def __call__(self, step: int) -> tuple[Array, Array]:
        """Rows of tokens with their states, padded with the end symbol, and how many of each to learn."""
        with self.lock:
            while step >= self.first:
                self._draw_epoch()
                for passed in [each for each in self.ready if each < step - AHEAD]:
                    del self.ready[passed]  # where training goes on from a later step
            rows = self.ready.pop(step)
        length = next(length for length in LENGTHS if length + 1 >= max(map(len, rows)))
        batch = np.full((self._rows(length), length + 1), ENDED, np.int32)
        sizes = np.zeros(len(batch), np.int32)
        for k, row in enumerate(rows):
            batch[k, : len(row)], sizes[k] = row, len(row) - 1
        return batch, sizes

    def whole_epoch(self) -> list[tuple[Array, Array]]:
        """All batches of the first epoch, with those that are not full."""
        self._draw_epoch(to_the_last=True)
        return [self(step) for step in range(self.first)]

    def _rows(self, length: int) -> int:
        return max(self.n_tokens // length, 1)

    def _draw_epoch(self, to_the_last: bool = False) -> None:
        self.epoch += 1
        rng = np.random.default_rng((self.seed, self.epoch))
        for source in self.sources:
            for fragments in source.fragments:
                for _ in range(source.repeats):
                    row = self._drawn(source, fragments, rng)
                    length = next(length for length in LENGTHS if length + 1 >= len(row))
                    self.waiting[length].append(row)
        full = []
        for length, rows in self.waiting.items():
            rng.shuffle(rows)
            size = self._rows(length)
            while len(rows) >= (1 if to_the_last else size):
                full.append([rows.pop() for _ in range(min(size, len(rows)))])
        rng.shuffle(full)
        for rows in full:
            self.ready[self.first] = rows
            self.first += 1

    def _drawn(self, source: Entities, fragments: list[Fragment], rng: np.random.Generator) -> Array:
        """A random set of one entity's fragments."""
        n = len(fragments)
        k = min(int(np.exp(rng.random() * np.log(n + 1))), n)
        chosen = [fragments[j] for j in rng.permutation(n)[:k].tolist()]
        if source.words is not None and rng.random() < source.renamed:
            chosen = source.words.renamed(chosen, rng)
        else:
            chosen.sort()
        return self.encoder.row(chosen)[: LENGTHS[-1] + 1]
