"""Scoring sequences block by block, so that what sequences have in common is computed once.

A sequence is read in blocks of fixed length. A block's keys, values and log-probability depend on the tokens
up to its end alone, and are kept by them, keys and values in a pool of pages; the least recently used are
given up first. Blocks are always computed in the same shapes, so a score is the same to the last bit whether
a prefix was known or not, and whatever else was asked for along with it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from partita._core.typing import Array, Floats
from partita.neural.transformer import Transformer, log_probabilities, read_block

BLOCK = 16  # tokens
WINDOW = 128  # blocks that a block sees, with itself; nothing is seen beyond


class Text(NamedTuple):
    """A sequence of tokens, the grammar's state before each, and whether its probability counts."""

    tokens: Array
    states: Array
    counts: Array


class Block:
    """A block of a text: its inputs, its targets, and what was found of it."""

    __slots__ = ("counts", "inputs", "key", "log_probability", "page", "states", "targets")

    def __init__(self, key: bytes, text: Text, at: int) -> None:
        after = slice(at + 1, at + 1 + BLOCK)
        self.key = key
        self.targets, self.states, self.counts = (part[after] for part in text)
        self.inputs = text.tokens[at : at + len(self.targets)]
        self.page, self.log_probability = 0, 0.0

    @property
    def whole(self) -> bool:
        """Whether another text may go on from it."""
        return len(self.targets) == BLOCK


class Job(NamedTuple):
    """A block to compute, and the blocks before it."""

    block: Block
    before: list[Block]


@partial(jax.jit, donate_argnums=1)
def compute(network: Transformer, pool: Any, following: Any, texts: Any, pages: Any, where: Any) -> Any:
    """The log-probabilities of some blocks' targets, and the pool with the blocks' keys and values in it."""
    inputs, targets, states = texts
    with jax.default_matmul_precision("highest"):
        x, pool = read_block(network, pool, inputs, pages, *where)
        return log_probabilities(network, x, targets, following[states] >= 0), pool


class PrefixScorer:
    """log p of texts, with a memory of their beginnings.

    Parameters
    ----------
    network : Transformer
    following : (states, tokens) array
        The grammar.
    n_pages : int
        How many blocks to remember; one of the shipped model takes 0.3 MB. More than a text may look back on.
    rows : int
        How many blocks are computed at once.
    """

    def __init__(self, network: Transformer, following: Array, n_pages: int, rows: int) -> None:
        self.network, self.following = network, jnp.asarray(following)
        self.n_pages, self.rows = max(n_pages, WINDOW + rows), rows
        self.computed = self.reused = 0  # blocks
        self.forget()

    def forget(self) -> None:
        """Begin with an empty memory."""
        self.pool: Any = None  # made when it is first needed, and never two at a time
        self.known: OrderedDict[bytes, Block] = OrderedDict()  # used last comes last
        self.free = list(range(self.rows, self.rows + self.n_pages))

    def __call__(self, texts: Sequence[Text]) -> Floats:
        """log p of each text."""
        try:
            return self._scored(texts)
        except BaseException:  # some blocks have their pages, but not what belongs there
            self.forget()
            raise

    def _scored(self, texts: Sequence[Text]) -> Floats:
        result = np.empty(len(texts))
        for group in self._groups(texts):
            jobs: dict[bytes, Job] = {}
            chains = [self._chain(texts[k], jobs) for k in group]
            self.reused += sum(map(len, chains)) - len(jobs)
            self._use(chains)
            self._compute(list(jobs.values()))
            self._use(chains)
            for k, chain in zip(group, chains, strict=True):
                result[k] = sum(block.log_probability for block in chain)
        return result

    def _groups(self, texts: Sequence[Text]) -> Iterator[list[int]]:
        """Texts whose blocks all have room in the pool, those that begin alike together."""
        group: list[int] = []
        room = self.n_pages
        for k in sorted(range(len(texts)), key=lambda k: texts[k].tokens.tobytes()):
            needed = len(texts[k].tokens) // BLOCK + 1
            if needed > room and group:
                yield group
                group, room = [], self.n_pages
            if needed > self.n_pages:  # its own beginning will have to go, and nothing else may be in the way
                self.free += [block.page for block in self.known.values()]
                self.known.clear()
            group.append(k)
            room -= needed
        if group:
            yield group

    def _chain(self, text: Text, jobs: dict[bytes, Job]) -> list[Block]:
        """A text's blocks; those that are not known become jobs."""
        chain: list[Block] = []
        digest = blake2b(digest_size=16)
        for at in range(0, len(text.tokens) - 1, BLOCK):
            targets = text.tokens[at + 1 : at + 1 + BLOCK]
            digest.update(text.tokens[at : at + len(targets)].tobytes())
            key = digest.digest() + targets[-1:].tobytes()
            block = self.known.get(key)
            if block is None:
                if key not in jobs:
                    jobs[key] = Job(Block(key, text, at), list(chain))
                block = jobs[key].block
            chain.append(block)
        return chain

    def _use(self, chains: list[list[Block]]) -> None:
        """Note that blocks are in use; beginnings are to be given up last."""
        for chain in chains:
            for block in reversed(chain):
                if block.key in self.known:
                    self.known.move_to_end(block.key)

    def _compute(self, jobs: list[Job]) -> None:
        """Compute blocks, those before first, as many as possible at once."""
        jobs.sort(key=lambda job: len(job.before))  # those with as much to look back on together
        batches = [jobs[first : first + self.rows] for first in range(0, len(jobs), self.rows)]
        for batch, dispatched in [(batch, self._dispatch(batch)) for batch in batches]:
            values = np.asarray(dispatched, np.float64)
            for row, (block, _) in enumerate(batch):
                block.log_probability = float(values[row, : len(block.targets)][block.counts].sum())
        self.computed += len(jobs)

    def _dispatch(self, jobs: list[Job]) -> Any:
        """Have some blocks computed, without waiting for it."""
        texts = np.zeros((3, self.rows, BLOCK), np.int32)
        pages = np.zeros((self.rows, WINDOW), np.int32)
        past, written = np.zeros(self.rows, np.int32), np.arange(self.rows, dtype=np.int32)
        for row, (block, before) in enumerate(jobs):
            texts[:, row, : len(block.inputs)] = block.inputs, block.targets, block.states
            block.page = row
            if block.whole:
                block.page = self._page()
                self.known[block.key] = block
            seen = [*before, block][-WINDOW:]
            pages[row, : len(seen)] = [each.page for each in seen]
            past[row], written[row] = len(before) * BLOCK, block.page
        if self.pool is None:
            size = self.network.size
            # The first pages are for blocks that no text goes on from, one a row.
            shape = size.layers, self.rows + self.n_pages, 2, size.heads, BLOCK, size.width // size.heads
            self.pool = jnp.zeros(shape)
        found, self.pool = compute(self.network, self.pool, self.following, texts, pages, (past, written))
        return found

    def _page(self) -> int:
        """A free page, that of the least recently used block if there is none."""
        if not self.free:
            self.free.append(self.known.popitem(last=False)[1].page)
        return self.free.pop()
