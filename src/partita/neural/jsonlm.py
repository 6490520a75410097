"""A language model of sets of fragments: log p(c) is that of their JSON text (paper, appendix D.2.1).

The text of a set has one order (:mod:`~partita.neural.serialisation`), so it says how likely the set is. Its
fragments could have come in n!/∏(repeats!) orders, all alike; a cluster's likelihood is that of its fragments
in the order in which they did come,

    log p(c) = Σ_t log p(token_t | tokens before, grammar) / temperature − log(n! / ∏ repeats!) + offset

How many fragments there are is given: the symbols between them do not count. What the network believes has a
temperature, since it is too sure of itself; the number of orders is a fact, and has none.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from partita._core.checks import label_codes, whole
from partita._core.concentration import alpha_for
from partita._core.typing import Floats, Integers
from partita.learning.calibration import maximise, questions
from partita.models.black_box import BlackBox
from partita.models.records.record import Record
from partita.neural import weights
from partita.neural.corpus import STATE, Batches, Encoder, Entities, Words, text_of
from partita.neural.grammar import Grammar
from partita.neural.prefixes import PrefixScorer, Text
from partita.neural.serialisation import Fragment, canonical, log_orders
from partita.neural.tokens import N_SYMBOLS, Tokens, learn, strings_of
from partita.neural.training import Plan, Progress, train
from partita.neural.transformer import Size, Transformer, forward, log_probabilities

KIND = "partita JsonLM 1"
HELD_OUT = 20  # one entity in so many
ENOUGH = 500  # fragments to calibrate with
REMEMBERED = 200_000  # fragments whose tokens are kept
ROWS = {"cpu": 16}  # blocks computed at once; more on an accelerator
PAGES = {"cpu": 2_000}  # blocks remembered
AHEAD = {"cpu": 4}  # observations to propose for at once; some of what more would ask for is in vain
MANY_ROWS, MANY_PAGES, FAR_AHEAD = 128, 40_000, 32


class Corpus(NamedTuple):
    """Labelled fragments to learn from, and how often each entity is seen in an epoch."""

    fragments: Sequence[Mapping[str, Any]]
    labels: Any
    repeats: int = 1


class Pool(NamedTuple):
    """How a black box is to be made of the model where records have a say: its parameters."""

    temperature: float = 1.0
    surrogate_weight: float = 0.0
    offset: float = 0.0


ALONE = Pool()  # as if they had none


class JsonLM:
    """A likelihood of fragments of entities: a transformer that reads their JSON.

    It is called with a list of clusters, each a list of fragments, and returns their log-likelihoods. Use it
    in a :class:`~partita.BlackBox`, with a surrogate to aim it.

    Parameters
    ----------
    network : Transformer
    tokens : Tokens
    temperature, offset : float
    pool : Pool
        What labelled fragments call for: :meth:`calibrate`.

    Examples
    --------
    >>> import partita as pt
    >>> from partita.neural import JsonLM
    >>> model = pt.BlackBox(JsonLM.pretrained(), pt.Ngram(attribute="name"))  # doctest: +SKIP
    >>> pt.SplitSMC(model, n_particles=20).fit_predict(fragments)  # doctest: +SKIP

    Together with records, which know how common each value is in these fragments:

    >>> record = pt.Record.infer(fragments).fit_prior(fragments)  # doctest: +SKIP
    >>> model = JsonLM.pretrained().with_records(record)  # doctest: +SKIP
    """

    def __init__(
        self,
        network: Transformer,
        tokens: Tokens,
        temperature: float = 1.0,
        offset: float = 0.0,
        pool: Pool = ALONE,
    ) -> None:
        self.network, self.tokens = network, tokens
        self.temperature, self.offset, self.pool = temperature, offset, pool
        self.lookahead = AHEAD.get(jax.default_backend(), FAR_AHEAD)  # of a black box
        self.grammar = Grammar(tokens)
        self._encoder = Encoder(tokens, self.grammar, REMEMBERED)
        self._ordered: dict[int, tuple[Mapping[str, Any], Fragment]] = {}
        self._scorer: PrefixScorer | None = None

    # ------------------------------------------------------------------ scores

    def __call__(self, clusters: Sequence[Sequence[Mapping[str, Any]]]) -> Floats:
        """log p(c) of each cluster."""
        found = self._canonical(clusters)
        return self._log_text(found) / self.temperature - orders_of(found) + self.offset

    def with_records(self, record: Record) -> BlackBox:
        """A black box in which the model and records both have a say, as calibrated; records propose, too."""
        return BlackBox(self, record, **self.pool._asdict())

    def log_text(self, clusters: Sequence[Sequence[Mapping[str, Any]]]) -> Floats:
        """log p of each cluster's text, as the network says."""
        return self._log_text(self._canonical(clusters))

    def _log_text(self, sets: list[list[Fragment]]) -> Floats:
        """The same of sets of canonical fragments, which are in order."""
        return self.scorer(list(map(self.text, sets)))

    def _canonical(self, clusters: Sequence[Sequence[Mapping[str, Any]]]) -> list[list[Fragment]]:
        """The fragments of each cluster that say something, in order; ValueError names one that is none."""
        found = []
        for k, cluster in enumerate(clusters):
            if not cluster:
                raise ValueError(f"cluster {k} is empty: it must have a fragment")
            members = (self._member(k, j, fragment) for j, fragment in enumerate(cluster))
            found.append(sorted(filter(None, members)))
        return found

    def _member(self, k: int, j: int, fragment: Mapping[str, Any]) -> Fragment:
        try:
            return self._in_order(fragment)
        except ValueError as error:
            raise ValueError(f"cluster {k}, fragment {j}: {error}") from error

    def _in_order(self, fragment: Mapping[str, Any]) -> Fragment:
        """The fragment in its one order, found by where it is if it still says what it said."""
        known = self._ordered.get(id(fragment))
        if known is not None and known[0] == fragment:
            return known[1]
        found = canonical(fragment)
        texts = {k: v if isinstance(v, str) else list(v) for k, v in fragment.items() if is_text(v)}
        if len(texts) == len(fragment):  # of equal numbers, 1 and True say different things
            if len(self._ordered) >= REMEMBERED:
                self._ordered.clear()
            self._ordered[id(fragment)] = texts, found
        return found

    def text(self, fragments: Sequence[Fragment]) -> Text:
        """The tokens of a set of canonical fragments, which are in order."""
        return text_of(self._encoder.row(fragments))

    @property
    def scorer(self) -> PrefixScorer:
        """Scores texts and remembers their beginnings."""
        if self._scorer is None:
            device = jax.default_backend()
            pages, rows = PAGES.get(device, MANY_PAGES), ROWS.get(device, MANY_ROWS)
            self._scorer = PrefixScorer(self.network, self.grammar.following, pages, rows)
        return self._scorer

    # ------------------------------------------------------------------ files

    def about(self) -> dict[str, Any]:
        """What a file says beside the weights."""
        size = self.network.size._asdict()
        calibration = {"temperature": self.temperature, "offset": self.offset, "pool": self.pool}
        return {"kind": KIND, "size": size, "bpe": self.tokens.bpe, **calibration}

    def save(self, path: str | Path) -> None:
        """Write a safetensors file, the weights in 16 bits."""
        weights.save(Path(path), weights.halved(weights.arrays_of(self.network)), self.about())

    @classmethod
    def load(cls, path: str | Path) -> JsonLM:
        """What :meth:`save` has written; ValueError if it is something else."""
        about = weights.about(Path(path), KIND)
        try:
            size, tokens, pool = Size(**about["size"]), Tokens(about["bpe"]), Pool(*about["pool"])
            temperature, offset = float(about["temperature"]), float(about["offset"])
        except (LookupError, TypeError, ValueError) as error:
            raise ValueError(f"{path} does not say what its weights are of: {error!r}") from error
        network = weights.load(Path(path), eqx.filter_eval_shape(Transformer, size, jax.random.key(0)))
        return cls(network, tokens, temperature, offset, pool)

    @classmethod
    def pretrained(cls) -> JsonLM:
        """The model that Partita comes with; its card, jsonlm.md, is beside it."""
        file = resources.files("partita.neural") / "pretrained" / "jsonlm.safetensors"
        with resources.as_file(file) as path:
            return cls.load(path)

    @cached_property
    def name(self) -> str:
        """A hash of everything that decides its scores."""
        return weights.fingerprint(self.about(), weights.arrays_of(self.network))

    def __repr__(self) -> str:
        return f"JsonLM({self.name})"

    def __getstate__(self) -> dict[str, Any]:
        """For copies and other processes: without what is remembered."""
        return self.__dict__ | {"_scorer": None, "_ordered": {}}

    # ------------------------------------------------------------------ learning

    @classmethod
    def train(
        cls,
        fragments: Sequence[Mapping[str, Any]],
        labels: Any,
        *,
        folder: str | Path | None = None,
        steps: int = 5_000,
        progress: Progress = lambda step, figures: None,
        **options: Any,
    ) -> JsonLM:
        """Learn from labelled fragments; one in twenty entities is held out, to measure and to calibrate.

        Parameters
        ----------
        fragments : sequence of mappings
        labels : sequence
            The entity of each.
        folder : path, optional
            For checkpoints; training goes on from the one that is there.
        steps : int
        progress : callable
            Told the number of steps done, and the last figures.
        **options
            Of :func:`learnt`.
        """
        model = learnt([Corpus(fragments, labels)], folder=folder, steps=steps, progress=progress, **options)
        codes = label_codes("labels", labels)
        held = np.flatnonzero(np.isin(codes, held_out_codes(codes.max() + 1)))
        held = np.random.default_rng(0).permutation(held)[:ENOUGH]
        if len(np.unique(codes[held])) < 2:
            warnings.warn(
                f"not calibrated: of {codes.max() + 1} entities too few are held out. Have "
                f"{2 * HELD_OUT} or more, or calibrate with others",
                stacklevel=2,
            )
            return model
        return model.calibrate([fragments[k] for k in held.tolist()], codes[held])

    def calibrate(
        self,
        fragments: Sequence[Mapping[str, Any]],
        labels: Any,
        record: Record | None = None,
        n_alternatives: int = 10,
        random_state: int = 0,
    ) -> JsonLM:
        """The same model with the temperature and offset that labelled fragments call for, and the pool.

        They are for a concentration that suits the data, such as ``alpha="auto"`` finds.

        Parameters
        ----------
        fragments : sequence of mappings
            A few hundred, in a random order; the more alike their entities are, the more is learnt.
        labels : sequence
            The entity of each.
        record : Record, optional
            Chooses the entities that a fragment is confronted with, and is the other voice in the pool; one
            that is learnt from the fragments, without their labels, unless given.
        n_alternatives, random_state : int
            As for :meth:`partita.BlackBox.fit_prior`.
        """
        n_entities = int(label_codes("labels", labels).max()) + 1
        if n_entities < 2:
            raise ValueError("labels are all the same: with one entity there is nothing to tell apart")
        record = Record.infer(fragments).fit_prior(fragments) if record is None else record
        asked = questions(BlackBox(self.log_text, record), fragments, labels, n_alternatives, random_state)
        orders = orders_of(self._canonical(asked.clusters))
        # How many entities there are is not the model's to say: α is what the labels call for.
        log_alpha = math.log(alpha_for(n_entities, len(fragments)))
        (b,), offset = maximise(asked.choices, asked.log_p[None], log_alpha, -orders)
        columns = np.array([b * asked.log_p - orders + offset, asked.surrogate()])
        (c, weight), further = maximise(asked.choices, columns, log_alpha)
        return type(self)(self.network, self.tokens, 1.0 / b, offset, Pool(1.0 / c, weight, further))


def orders_of(sets: list[list[Fragment]]) -> Floats:
    """The logarithms of the numbers of orders that sets of fragments may have come in."""
    return np.array(list(map(log_orders, sets)))


def is_text(value: Any) -> bool:
    """Whether a value is a text, or a list of texts."""
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(v, str) for v in value))


def learnt(
    corpora: Sequence[Corpus],
    *,
    folder: str | Path | None = None,
    steps: int = 5_000,
    size: Mapping[str, int] | None = None,
    n_tokens: int = 3_072,
    batch_tokens: int = 32_768,
    rate: float = 1e-3,
    renamed: float = 0.5,
    dropout: float = 0.15,
    weight_decay: float = 0.1,
    every: int = 500,
    seed: int = 0,
    progress: Progress = lambda step, figures: None,
) -> JsonLM:
    """A model of several corpora, without calibration.

    Parameters
    ----------
    corpora : sequence of Corpus
    folder, steps, progress
        As for :meth:`JsonLM.train`.
    size : mapping, optional
        Parameters of the network other than the usual ones (:class:`~partita.neural.transformer.Size`).
    n_tokens : int
        Of the vocabulary.
    batch_tokens : int
        In a batch.
    rate, dropout, weight_decay : float
    renamed : float
        In how many of the sets the words of names are replaced (:mod:`~partita.neural.corpus`).
    every : int
        Steps between checkpoints.
    seed : int
    """
    for name, number in {"steps": steps, "batch_tokens": batch_tokens, "every": every}.items():
        whole(name, number, 1)
    whole("n_tokens", n_tokens, N_SYMBOLS + 256)  # every byte has one
    learning, held_out = zip(*(divided(corpus) for corpus in corpora), strict=True)
    if not any(learning):
        raise ValueError("there is nothing to learn from: no fragment has a value")
    strings = strings_of(fragment for entities in learning for entity in entities for fragment in entity)
    tokens = Tokens(learn(strings, n_tokens))
    grammar = Grammar(tokens)
    encoder = Encoder(tokens, grammar, REMEMBERED)
    sources = [
        Entities(entities, corpus.repeats, Words(entities), renamed)
        for entities, corpus in zip(learning, corpora, strict=True)
    ]
    batches = Batches(sources, encoder, batch_tokens, seed)
    network = Transformer(Size(tokens.n_tokens, **size or {}), jax.random.key(seed))
    following = jnp.asarray(grammar.following)
    plan = Plan(steps, rate, min(1_000, steps // 10), weight_decay=weight_decay, seed=seed)
    data = repr((learning, held_out, [corpus.repeats for corpus in corpora]))
    config = {
        "size": network.size._asdict(), "batch": batch_tokens, "dropout": dropout, "renamed": renamed,
        "data": blake2b(data.encode(), digest_size=8).hexdigest(),
    }  # fmt: skip

    def loss(network: Any, batch: Any, key: Any) -> Any:
        total, count = nats(network, following, batch, dropout, key)
        return total / count

    found = train(
        network, loss, batches, plan, folder=None if folder is None else Path(folder), config=config,
        validate=held_out_bits(held_out, encoder, batch_tokens), every=every, progress=progress,
    )  # fmt: skip
    return JsonLM(jax.tree.map(weights.rounded, found.module), tokens)


def divided(corpus: Corpus) -> tuple[list[list[Fragment]], list[list[Fragment]]]:
    """The fragments of the entities to learn from, and of one in twenty to be held out."""
    codes = label_codes("labels", corpus.labels)
    if len(codes) != len(corpus.fragments):
        raise ValueError(f"there are {len(codes)} labels, but {len(corpus.fragments)} fragments")
    entities: list[list[Fragment]] = [[] for _ in range(codes.max() + 1)]
    for row, code in enumerate(codes.tolist()):
        try:
            fragment = canonical(corpus.fragments[row])
        except ValueError as error:
            raise ValueError(f"fragment {row}: {error}") from error
        if fragment:
            entities[code].append(fragment)
    held = set(held_out_codes(len(entities)).tolist())
    return (
        [entity for k, entity in enumerate(entities) if entity and k not in held],
        [entity for k, entity in enumerate(entities) if entity and k in held],
    )


def held_out_codes(n: int) -> Integers:
    """Which of n entities, in order of their labels, are held out."""
    return np.random.default_rng(0).permutation(n)[: n // HELD_OUT]


def held_out_bits(
    held_out: Sequence[list[list[Fragment]]], encoder: Encoder, n_tokens: int
) -> Callable[[Transformer], dict[str, float]]:
    """A function from a network to its bits a token on random sets of held-out entities, always the same."""
    fixed = [fixed_batches(Entities(entities), encoder, n_tokens) for entities in held_out]
    following = jnp.asarray(encoder.grammar.following)
    measure = eqx.filter_jit(lambda network, batch: nats(network, following, batch, 0.0, None))

    def validate(network: Transformer) -> dict[str, float]:
        figures: dict[str, float] = {}
        for number, measured in enumerate(filter(None, fixed)):
            found = np.sum([np.array(measure(network, batch)) for batch in measured], axis=0)
            figures[f"held_out_{number}"] = float(found[0] / found[1] / math.log(2.0))
        return figures | ({"held_out": float(np.mean(list(figures.values())))} if figures else {})

    return validate


def fixed_batches(held_out: Entities, encoder: Encoder, n_tokens: int) -> list[Any]:
    """Random sets of each entity, in batches that are always the same."""
    repeats = max(1, min(4_000 // max(len(held_out.fragments), 1), 10))
    return Batches([held_out._replace(repeats=repeats)], encoder, n_tokens, seed=1).whole_epoch()


def nats(network: Any, following: Any, batch: Any, dropout: float, key: Any) -> tuple[Any, Any]:
    """The sum of −log p of the tokens of a batch, and their number."""
    rows, sizes = batch
    tokens, states = rows % STATE, rows // STATE
    fast = jax.default_backend() == "gpu"
    x = forward(network, tokens[:, :-1], dropout=dropout, key=key, fast=fast)
    counts = jnp.arange(tokens.shape[1] - 1) < sizes[:, None]
    found = log_probabilities(network, x, tokens[:, 1:], following[states[:, 1:]] >= 0)
    return -jnp.where(counts, found, 0.0).sum(), counts.sum()
