"""Learning to tell entities apart: the second part of the language model's training.

A model that has only read true sets knows how one entity's fragments are alike, but not how alike those of
two can be. So it is confronted with the choices of a sampler: a few entities that share a name, a set of the
fragments of each, and one fragment x more of each, which is to be put where it belongs,

    log w(c) = log |c| + b·[log p(c ∪ x) − log p(c)] − log[orders(c ∪ x) / orders(c)]
    log w(new) = b·log p(x) + offset

What is minimised is −log of the truth's share of the weights, and the −log p a token of true sets along with
it, so that it remains a language model. Labelled data seldom have entities with one name. Some are given one:
a name of theirs becomes that of another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from partita._typing import Array
from partita.neural.corpus import STATE, Encoder, Entities, words_of
from partita.neural.grammar import Grammar
from partita.neural.serialisation import FIRST as NAME
from partita.neural.serialisation import Fragment, log_orders
from partita.neural.tokens import END, NEXT
from partita.neural.training import Plan, train
from partita.neural.transformer import Transformer, forward, log_probabilities

ENTITIES = 5  # in a group
ROWS = ENTITIES * (ENTITIES + 2)  # texts of a group: sets, fragments alone, and each with each
LENGTHS = (256, 256, 256, 768)  # of texts, in turn
KIN = 0.5  # of the entities of a group share a value or a word with the first
NAMESAKES = 0.7  # of the entities of a group get the name of another
COMMON = 200  # entities that have it: such a value is no sign of kinship
SURE = 0.25  # b to begin with
MEASURED = 16  # batches of held-out groups


class Group(NamedTuple):
    """Texts of a group, padded, their sizes, and what each choice's weights have beside log p."""

    rows: Array  # (ROWS, length + 1) tokens and states
    sizes: Array  # (ROWS,)
    fixed: Array  # (choices, ENTITIES + 1); the last is a new cluster
    truth: Array  # (choices,)


class Groups:
    """Batches of groups, by the number of the step.

    Parameters
    ----------
    sources : sequence of Entities
        Their repeats are how often they are chosen, compared with others.
    encoder : Encoder
    n_tokens : int
        About so many in a batch.
    seed : int
    """

    def __init__(self, sources: Sequence[Entities], encoder: Encoder, n_tokens: int, seed: int) -> None:
        self.encoder, self.n_tokens, self.seed = encoder, n_tokens, seed
        fitting = [source._replace(fragments=self._fitting(source.fragments)) for source in sources]
        self.sources = [source for source in fitting if len(source.fragments) >= ENTITIES]
        if not self.sources:
            raise ValueError(f"fewer than {ENTITIES} entities: there is little to tell apart")
        shares = np.array([len(source.fragments) * source.repeats for source in self.sources], float)
        self.shares = shares / shares.sum()
        self.having = [entities_having(source.fragments) for source in self.sources]

    def __call__(self, step: int) -> Group:
        """The groups of a step, one after the other."""
        rng = np.random.default_rng((self.seed, step))
        length = LENGTHS[step % len(LENGTHS)]
        n = max(self.n_tokens // (ROWS * length), 1)
        numbers = rng.choice(len(self.shares), n, p=self.shares).tolist()
        groups = [self._group(number, length, rng) for number in numbers]
        return Group(*(np.stack(part) for part in zip(*groups, strict=True)))

    def _fitting(self, entities: list[list[Fragment]]) -> list[list[Fragment]]:
        """Entities without the fragments that are too long for two in a text."""
        most = min(LENGTHS) // 2
        short = [[each for each in entity if len(self.encoder(each)) < most] for entity in entities]
        return [entity for entity in short if entity]

    def _group(self, number: int, length: int, rng: np.random.Generator) -> Group:
        """A group of a source's entities, in texts of so many tokens."""
        source = self.sources[number]
        entities = namesakes([source.fragments[k] for k in self._entities(number, rng)], rng)
        if source.words is not None and rng.random() < source.renamed:
            entities = source.words.renamed(entities, rng)
        share = rng.random()  # of the stream that has passed
        drawn = [self._drawn(entity, share, length, rng) for entity in entities]
        texts: list[list[Fragment]] = [members for members, _ in drawn] + [[x] for _, x in drawn]
        fixed = np.full((ENTITIES, ENTITIES + 1), -np.inf, np.float32)
        fixed[:, ENTITIES] = 0.0
        for j, (_, x) in enumerate(drawn):
            for k, (members, _) in enumerate(drawn):
                joined = sorted([*members, x]) if members else []
                texts.append(joined)
                if members:
                    fixed[j, k] = math.log(len(members)) - log_orders(joined) + log_orders(members)
        rows, sizes = np.zeros((ROWS, length + 1), np.int32), np.zeros(ROWS, np.int32)
        for k, text in enumerate(texts):
            if text:
                row = self.encoder.row(text)
                rows[k, : len(row)], sizes[k] = row, len(row) - 1
        truth = [j if members else ENTITIES for j, (members, _) in enumerate(drawn)]
        return Group(rows, sizes, fixed, np.array(truth, np.int32))

    def _entities(self, number: int, rng: np.random.Generator) -> list[int]:
        """Different entities of a source, kin of the first among them."""
        entities, having = self.sources[number].fragments, self.having[number]
        chosen = [int(rng.integers(len(entities)))]
        marks = marks_of(entities[chosen[0]])
        while len(chosen) < ENTITIES:
            other = int(rng.integers(len(entities)))
            if rng.random() < KIN:
                alike = having.get(marks[rng.integers(len(marks))], [])
                other = alike[rng.integers(len(alike))] if alike else other
            if other not in chosen:
                chosen.append(other)
        return chosen

    def _drawn(
        self, entity: list[Fragment], share: float, length: int, rng: np.random.Generator
    ) -> tuple[list[Fragment], Fragment]:
        """A set of about a share of an entity's fragments, in order, and one more of them.

        They come as in a stream: of n fragments the last is the first of its entity with probability 1/n.
        """
        order = rng.permutation(len(entity)).tolist()
        k = int(rng.binomial(len(entity) - 1, share))
        members, left = [], length - min(LENGTHS) // 2 - 2  # so that there is room for any entity's fragment
        for fragment in (entity[j] for j in order[1 : 1 + k]):
            left -= len(self.encoder(fragment))
            if left >= 0:
                members.append(fragment)
        return sorted(members), entity[order[0]]


def entities_having(entities: Sequence[list[Fragment]]) -> dict[Any, list[int]]:
    """Which entities share a value or a word of a name, where they are not too many."""
    found: dict[Any, list[int]] = {}
    for k, entity in enumerate(entities):
        for mark in set(marks_of(entity)):
            found.setdefault(mark, []).append(k)
    return {mark: alike for mark, alike in found.items() if 1 < len(alike) <= COMMON}


def marks_of(entity: list[Fragment]) -> list[Any]:
    """The words of an entity's names, and the values that it has."""
    words = [word for fragment in entity for word in words_of(fragment)]
    values = [(attribute, value) for fragment in entity for attribute, values in fragment for value in values]
    return words + values


def namesakes(entities: list[list[Fragment]], rng: np.random.Generator) -> list[list[Fragment]]:
    """Entities some of which bear a name of the first, in place of one of theirs."""
    first = names_of(entities[0])
    if not first:
        return entities
    shared = first[rng.integers(len(first))]
    if rng.random() < 0.3:
        shared = shared.split(" ")[-1]  # a surname, often
    found = []
    for entity in entities:
        own = sorted(set(names_of(entity)))
        if own and rng.random() < NAMESAKES:
            old = own[rng.integers(len(own))]
            entity = [with_name(fragment, old, shared) for fragment in entity]
        found.append(entity)
    return found


def names_of(entity: list[Fragment]) -> list[str]:
    """The names of an entity, as often as they occur."""
    return [name for fragment in entity if fragment[0][0] == NAME for name in fragment[0][1]]


def with_name(fragment: Fragment, old: str, new: str) -> Fragment:
    """A fragment in which one name is replaced."""
    if fragment[0][0] != NAME:
        return fragment
    return ((NAME, tuple(sorted(new if name == old else name for name in fragment[0][1]))), *fragment[1:])


def discerning(
    network: Transformer,
    grammar: Grammar,
    groups: Groups,
    held_out: Groups | None,
    plan: Plan,
    dropout: float,
    **options: Any,
) -> Transformer:
    """The network after it has learnt to choose.

    ``options`` are those of :func:`~partita.neural.training.train`; ``held_out`` are groups to measure with.
    """
    following = jnp.asarray(grammar.following)
    start = jnp.array([math.log(SURE), 0.0])  # log b, and the offset
    measured = [] if held_out is None else [held_out(step) for step in range(MEASURED)]

    def loss(module: Any, group: Any, key: Any) -> Any:
        chosen, read = losses(module, following, group, dropout, key)
        return chosen + read

    measure = eqx.filter_jit(lambda module, group: losses(module, following, group, 0.0, None))

    def validate(module: Any) -> dict[str, float]:
        if not measured:
            return {}
        found = np.mean([np.array(measure(module, group)) for group in measured], axis=0)
        b, offset = np.asarray(module[1], float).tolist()
        figures = {"held_out": found[0], "nats_a_token": found[1], "b": math.exp(b), "offset": offset}
        return {name: float(value) for name, value in figures.items()}

    found = train((network, start), loss, groups, plan, validate=validate, **options)
    module: Transformer = found.module[0]
    return module


def losses(module: Any, following: Any, group: Any, dropout: float, key: Any) -> tuple[Any, Any]:
    """−log of the true choices' shares, on average, and −log p a token of sets and fragments."""
    network, scale = module
    rows, sizes, fixed, truth = group
    n, length = len(rows), rows.shape[-1]
    flat = rows.reshape(-1, length)
    tokens, states = flat % STATE, flat // STATE
    x = forward(network, tokens[:, :-1], dropout=dropout, key=key, fast=jax.default_backend() == "gpu")
    found = log_probabilities(network, x, tokens[:, 1:], following[states[:, 1:]] >= 0)
    there = jnp.arange(length - 1) < sizes.reshape(-1, 1)
    between = (tokens[:, 1:] == NEXT) | (tokens[:, 1:] == END)  # how many fragments there are is given
    log_p = jnp.where(there & ~between, found, 0.0).sum(axis=1).reshape(n, ROWS)
    sets, alone = log_p[:, :ENTITIES], log_p[:, ENTITIES : 2 * ENTITIES]
    joined = log_p[:, 2 * ENTITIES :].reshape(n, ENTITIES, ENTITIES)
    b = jnp.exp(scale[0])
    gains = jnp.concatenate([b * (joined - sets[:, None]), b * alone[..., None] + scale[1]], axis=-1)
    shares = jax.nn.log_softmax(jnp.where(jnp.isfinite(fixed), gains + fixed, -jnp.inf), axis=-1)
    chosen = -jnp.take_along_axis(shares, truth[..., None], axis=-1).mean()
    true = there.reshape(n, ROWS, -1)[:, : 2 * ENTITIES]
    read = -jnp.where(true, found.reshape(n, ROWS, -1)[:, : 2 * ENTITIES], 0.0).sum() / true.sum()
    return chosen, read
