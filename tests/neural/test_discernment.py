"""The part of the training in which the language model learns to tell entities apart."""

from __future__ import annotations

import json
import math
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp

from partita.neural import discernment
from partita.neural.corpus import STATE, Encoder, Entities, Words
from partita.neural.discernment import ENTITIES, Groups, entities_having, losses, namesakes
from partita.neural.jsonlm import Corpus, JsonLM, discerned, log_orders
from partita.neural.serialisation import canonical
from partita.neural.tokens import Tokens, learn
from partita.neural.transformer import Size, Transformer

TINY = {"width": 16, "layers": 2, "heads": 2, "hidden": 24}
NAMES = ["Liège", "Standard", "Reds", "Gent", "Brugge", "Genk", "Antwerp", "Mechelen"]


def fragments_of(n: int) -> tuple[list[dict], list[int]]:
    """Six fragments of each of n entities, whose numbers say which; names are shared by many."""
    label = np.repeat(np.arange(n), 6).tolist()
    rows = [{"name": [NAMES[k % 8]], "number": [f"n{k}"], "part": [str(j % 6)]} for j, k in enumerate(label)]
    return rows, label


def entities_of(n: int) -> list[list]:
    rows, label = fragments_of(n)
    return [[canonical(row) for row, k in zip(rows, label, strict=True) if k == e] for e in range(n)]


@cache
def model() -> JsonLM:
    tokens = Tokens(learn([*NAMES, "name", "number", "part"] * 3, 290))
    return JsonLM(Transformer(Size(tokens.n_tokens, **TINY), jax.random.key(0)), tokens)


def groups(entities: list[list], seed: int = 0, **options) -> Groups:
    return Groups([Entities(entities, **options)], Encoder(model().tokens, model().grammar, 1000), 1, seed)


def fragments_in(row, size) -> list[dict]:
    text = model().tokens.text((row[: size + 1] % STATE).tolist())
    return json.loads(text) if size else []


def test_a_group_holds_sets_fragments_and_each_with_each():
    made = groups(entities_of(30))
    seen = set()
    for step in range(12):
        rows, sizes, fixed, truth = (part[0] for part in made(step))
        texts = [fragments_in(row, size) for row, size in zip(rows, sizes, strict=True)]
        sets, alone = texts[:ENTITIES], [text[0] for text in texts[ENTITIES : 2 * ENTITIES]]
        owners = [item["number"] for item in alone]
        assert len({str(owner) for owner in owners}) == ENTITIES
        for j, x in enumerate(alone):
            assert truth[j] == (j if sets[j] else ENTITIES)
            assert fixed[j, ENTITIES] == 0.0
            for k, members in enumerate(sets):
                assert all(item["number"] == owners[k] for item in members)
                assert x not in members or k != j  # it is one more
                joined = texts[ENTITIES * (2 + j) + k]
                assert sorted(map(str, joined)) == sorted(map(str, [*members, x] if members else []))
                orders = [log_orders([canonical(item) for item in part]) for part in (joined, members)]
                expected = math.log(len(members)) - orders[0] + orders[1] if members else -np.inf
                assert fixed[j, k] == pytest.approx(expected, abs=1e-5)
                seen.add(len(members))
    assert seen == set(range(6))


def test_losses_are_those_of_the_choices():
    rows, sizes, fixed, truth = groups(entities_of(30))(1)
    b, offset = 0.4, 0.7
    module = (model().network, jnp.array([math.log(b), offset]))
    found, read = losses(
        module, jnp.asarray(model().grammar.following), (rows, sizes, fixed, truth), 0.0, None
    )
    texts = [fragments_in(row, size) for row, size in zip(rows[0], sizes[0], strict=True)]
    log_p = model().log_text([text for text in texts if text])
    log_p = dict(zip([k for k, text in enumerate(texts) if text], log_p, strict=True))
    lost = []
    for j in range(ENTITIES):
        weights = [
            fixed[0, j, k] + b * (log_p[ENTITIES * (2 + j) + k] - log_p[k]) if texts[k] else -np.inf
            for k in range(ENTITIES)
        ]
        weights.append(b * log_p[ENTITIES + j] + offset)
        lost.append(logsumexp(weights) - weights[truth[0, j]])
    assert float(found) == pytest.approx(np.mean(lost), rel=1e-4)
    assert 0.0 < float(read) < math.log(model().tokens.n_tokens)


def test_namesakes_bear_a_name_of_the_first():
    entities = [[canonical({"name": [f"Name {k}", "other"], "of": [str(k)]})] * 2 for k in range(5)]
    found = namesakes(entities, np.random.default_rng(3))
    first = {"Name 0", "0", "other"}
    changed = [k for k in range(5) if found[k] != entities[k]]
    assert changed
    for k in range(5):
        names = set(found[k][0][0][1])
        assert found[k][0][1:] == entities[k][0][1:]
        assert names <= {f"Name {k}", "other"} | first
        assert found[k][0] == found[k][1]


def test_words_are_replaced_alike_in_a_group():
    entities = [[canonical({"name": [f"Anna {word}"]})] for word in ("Berg", "Cohn", "Dahl")]
    words = Words(entities * 600)
    found = words.renamed(entities, np.random.default_rng(0))
    assert len({entity[0][0][1][0].split(" ")[0] for entity in found}) == 1


def test_kin_share_something_that_is_not_everywhere():
    entities = [[canonical({"name": ["Anna"], "in": ["Rome" if k < 2 else "Oslo"]})] for k in range(300)]
    assert entities_having(entities) == {("in", "Rome"): [0, 1]}


def test_choosing_is_learnt_and_goes_on_where_it_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(discernment, "LENGTHS", (128,))  # one shape to compile
    corpora = [Corpus(*fragments_of(120))]
    options = {"steps": 24, "batch_tokens": 1, "rate": 3e-3, "every": 8, "dropout": 0.0}
    curves: list[dict] = []
    whole = discerned(model(), corpora, progress=lambda _, figures: curves.append(figures), **options)
    assert curves[-1]["held_out"] < curves[0]["held_out"] - 0.01

    def stop(step, figures):
        if step == 16:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        discerned(model(), corpora, folder=tmp_path, progress=stop, **options)
    assert discerned(model(), corpora, folder=tmp_path, **options).name == whole.name


def test_too_few_entities_are_refused():
    with pytest.raises(ValueError, match="fewer than 5 entities"):
        groups(entities_of(4))
