"""The language model of fragments: grammar, scores, files, training."""

from __future__ import annotations

import itertools
import json
import math
import pickle
from functools import cache

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import partita as pt
from partita._core.concentration import alpha_for
from partita.neural import SetDiffusion, diffusion, jsonlm, prefixes, weights
from partita.neural.corpus import Batches, Encoder, Entities, Words, text_of
from partita.neural.grammar import N_STATES, Grammar
from partita.neural.jsonlm import Corpus, JsonLM, Pool, divided, learnt
from partita.neural.prefixes import BLOCK, WINDOW, PrefixScorer, Text
from partita.neural.serialisation import canonical, log_orders
from partita.neural.tokens import CLOSE, END, KEY, N_SYMBOLS, NEXT, OPEN, SET, VALUE, VALUES, Tokens, learn
from partita.neural.training import Trained
from partita.neural.transformer import Size, Transformer, forward, log_probabilities
from tests.helpers.effort import examples

TINY = {"width": 16, "layers": 2, "heads": 2, "hidden": 24}
FRAGMENTS = [
    {"name": ["Standard Liège", "Standard"], "sport": "football"},
    {"name": ["Standard Liège"], "country": ["België"], "founded": [1898]},
    {"sport": ["football", "judo"], "name": "Liège"},
    {"name": ["北京"], "population": ["21,893,095"]},
    {"name": ['the "Reds"\\']},
]
texts = st.text(st.sampled_from('ab é京😀"\\{}[],:\x00'), min_size=1, max_size=6).filter(str.strip)
fragments = st.dictionaries(texts, st.lists(texts, min_size=1, max_size=3), min_size=1, max_size=3)


def to_json(items) -> str:
    return json.dumps([dict(item) for item in sorted(items)], ensure_ascii=False, separators=(",", ":"))


@cache
def tokens() -> Tokens:
    return Tokens(learn(["football", "Standard Liège", "name", "population", "sport"] * 3, 290))


@cache
def network(seed: int = 0) -> Transformer:
    found = Transformer(Size(tokens().n_tokens, **TINY), jax.random.key(seed))
    return jax.tree.map(lambda array: 1.5 * array, found)  # so that it has opinions


def model() -> JsonLM:
    return JsonLM(network(), tokens())


@jax.jit
def read_whole(network, ids, allowed):
    """log p of each token but the first of one text, read at once, without blocks or pages."""
    return log_probabilities(network, forward(network, ids[None, :-1]), ids[None, 1:], allowed[None])[0]


def plain(lm: JsonLM, cluster: list) -> float:
    """log p(c) by reading the whole text at once; what follows it cannot matter."""
    found = sorted(filter(None, map(canonical, cluster)))
    ids, states, counts = lm.text(found)
    padded, allowed = np.zeros(257, np.int32), np.ones((256, tokens().n_tokens), bool)
    padded[: len(ids)], allowed[: len(ids) - 1] = ids, lm.grammar.following[states[1:]] >= 0
    values = np.asarray(read_whole(lm.network, padded, allowed), np.float64)[: len(ids) - 1]
    return float(values[counts[1:]].sum()) - log_orders(found)


# ---------------------------------------------------------------------- texts


@given(st.lists(fragments, min_size=1, max_size=4), st.randoms())
def test_the_text_of_a_set_has_one_order_and_is_json(items, random):
    shuffled = [
        {
            key: random.sample(values, len(values))
            for key, values in random.sample(list(item.items()), len(item))
        }
        for item in random.sample(items, len(items))
    ]
    text = to_json([canonical(item) for item in items])
    assert to_json([canonical(item) for item in shuffled]) == text

    def plainly(item):
        return sorted((key, sorted(values)) for key, values in item.items())

    assert sorted(map(plainly, json.loads(text))) == sorted(map(plainly, items))


@given(st.lists(fragments, min_size=1, max_size=3))
@examples(40)
def test_tokens_spell_the_text(items):
    found = sorted(map(canonical, items))
    ids = Encoder(tokens(), grammar(), 100).row(found)
    assert tokens().text(text_of(ids).tokens.tolist()) == to_json(found)


def test_names_come_first_and_numbers_are_text():
    text = to_json([canonical({"born": 1967, "name": ["B", "A"], "age": 3.0, "gone": None, "empty": []})])
    assert text == '[{"name":["A","B"],"age":["3"],"born":["1967"]}]'
    with pytest.raises(ValueError, match="must be text, a number or a date"):
        canonical({"name": [{"first": "A"}]})


# ---------------------------------------------------------------------- grammar


@cache
def grammar() -> Grammar:
    return Grammar(tokens())


class Pairs(dict):
    """What JSON writes as an object with these pairs, equal keys and all."""

    def __init__(self, pairs: list) -> None:
        super().__init__(pairs)
        self.pairs = pairs

    def items(self):
        return self.pairs


def is_document(ids: tuple[int, ...]) -> bool:
    """The slow reference: symbols and strings apart, strings decoded, the JSON parsed and looked at."""
    parts: list = []
    for token in ids:
        if token < N_SYMBOLS:
            parts.append(token)
        elif parts and isinstance(parts[-1], bytes):
            parts[-1] += tokens().bytes_of(token)
        else:
            parts.append(tokens().bytes_of(token))
    spelt = {
        SET: "[",
        OPEN: '{"',
        VALUES: '":["',
        VALUE: '","',
        KEY: '"],"',
        CLOSE: '"]}',
        NEXT: ',{"',
        END: "]",
    }
    try:
        text = "".join(
            spelt[part] if isinstance(part, int) else json.dumps(part.decode("utf-8"))[1:-1] for part in parts
        )
        found = json.loads(text, object_pairs_hook=list)
    except (UnicodeDecodeError, json.JSONDecodeError):
        return False
    if not (isinstance(found, list) and found and all(isinstance(item, list) and item for item in found)):
        return False
    if not all(
        pair[0] and isinstance(pair[1], list) and pair[1] and all(pair[1]) for item in found for pair in item
    ):
        return False
    if text != json.dumps([Pairs(item) for item in found], separators=(",", ":")):
        return False  # JSON allows for spaces, this does not
    expected = [SET]
    for k, item in enumerate(found):
        expected.append(NEXT if k else OPEN)
        for j, (_, values) in enumerate(item):
            expected += [KEY] * (j > 0) + [VALUES] + [VALUE] * (len(values) - 1)
        expected.append(CLOSE)
    return [*expected, END] == [part for part in parts if isinstance(part, int)]  # no symbol within a string


@cache
def byte_tokens() -> dict[int, int]:
    return {
        tokens().bytes_of(t)[0]: t
        for t in range(N_SYMBOLS, tokens().n_tokens)
        if len(tokens().bytes_of(t)) == 1
    }


@cache
def completions() -> list[tuple[int, ...]]:
    """Ends that some unfinished document might have: bytes of a character, then what closes the rest."""
    more = [byte_tokens()[byte] for byte in (0x80, 0x90, 0xA0, 0xBF)]
    x = byte_tokens()[ord("x")]
    closing = [
        (), (END,), (CLOSE, END), (x, CLOSE, END), (VALUES, x, CLOSE, END), (x, VALUES, x, CLOSE, END),
        (OPEN, x, VALUES, x, CLOSE, END), (SET, OPEN, x, VALUES, x, CLOSE, END),
    ]  # fmt: skip
    bytes_ = [tail for n in range(4) for tail in itertools.product(more, repeat=n)]
    return [(*first, *last) for first in bytes_ for last in closing]


def may_begin(ids: tuple[int, ...]) -> bool:
    return any(is_document((*ids, *end)) for end in completions())


@given(st.lists(fragments, min_size=1, max_size=2), st.data())
@examples(12)
def test_masks_are_those_of_a_slow_parser(items, data):
    ids = text_of(Encoder(tokens(), grammar(), 100).row(sorted(map(canonical, items)))).tokens.tolist()
    cut = data.draw(st.integers(0, len(ids)))
    prefix = tuple(ids[:cut])
    if data.draw(st.booleans()):  # a character that is not finished
        prefix = (
            *ids[: ids.index(VALUES) + 1],
            byte_tokens()[data.draw(st.sampled_from([0xC3, 0xE0, 0xED, 0xF0, 0xF4]))],
        )
    state = 0
    for token in prefix:
        state = int(grammar().following[state, token])
    candidates = [
        *range(N_SYMBOLS),
        *data.draw(st.lists(st.integers(N_SYMBOLS, tokens().n_tokens - 1), max_size=8)),
    ]
    for token in candidates:
        assert (grammar().following[state, token] >= 0) == may_begin((*prefix, token)), (prefix, token)


@given(st.lists(st.integers(0, 289), max_size=8))
@examples(40)
def test_forbidden_texts_are_refused(ids):
    state, allowed = 0, True
    for token in ids:
        state = int(grammar().following[state, token]) if allowed else -1
        allowed = allowed and state >= 0
    assert allowed == may_begin(tuple(ids))
    if not allowed:
        with pytest.raises(ValueError, match="may not stand there"):
            grammar().states(np.array(ids))


def test_there_are_no_spaces_between_symbols():
    space = byte_tokens()[ord(" ")]
    state = 0
    for token, may in ((SET, False), (OPEN, False), (None, True)):  # before each; at last within a string
        assert (grammar().following[state, space] >= 0) == may
        state = state if token is None else int(grammar().following[state, token])
    assert [may_begin((*ids, space)) for ids in ((), (SET,), (SET, OPEN))] == [False, False, True]


def test_continuations_sum_to_one():
    lm = model()
    ids = lm.text([canonical(FRAGMENTS[1])]).tokens
    states = grammar().states(ids)
    for cut in (1, 2, 5, 9, len(ids) - 1):
        following = np.flatnonzero(grammar().following[states[cut]] >= 0)
        whole = [
            Text(np.append(ids[:cut], t), np.append(states[:cut], states[cut]), np.arange(cut + 1) == cut)
            for t in following
        ]
        assert np.exp(lm.scorer(whole)).sum() == pytest.approx(1.0, abs=1e-5)


# ---------------------------------------------------------------------- scores

CLUSTERS = [
    [FRAGMENTS[k] for k in chosen] for n in (1, 2, 3, 5) for chosen in itertools.combinations(range(5), n)
]


def test_batched_cached_and_plain_scores_agree():
    lm = model()
    together = lm(CLUSTERS)
    np.testing.assert_allclose(together, [plain(lm, cluster) for cluster in CLUSTERS], atol=1e-4)
    again = lm(CLUSTERS)  # beginnings are known now
    one_by_one = [model()([cluster])[0] for cluster in CLUSTERS[:8]]
    assert lm.scorer.reused > 0
    assert np.array_equal(together, again)
    assert np.array_equal(together[:8], one_by_one)


@given(st.randoms())
@examples(6)
def test_orders_of_fragments_keys_and_values_do_not_matter(random):
    def shuffled(item):
        pairs = random.sample(list(item.items()), len(item))
        return {k: random.sample(v, len(v)) if isinstance(v, list) else v for k, v in pairs}

    clusters = [[shuffled(item) for item in random.sample(cluster, len(cluster))] for cluster in CLUSTERS]
    assert np.array_equal(shared()(clusters), shared()(CLUSTERS))


@cache
def shared() -> JsonLM:
    return model()


def forgetful() -> JsonLM:
    """A model with as few pages as possible."""
    lm = model()
    lm._scorer = PrefixScorer(lm.network, lm.grammar.following, 0, lm.scorer.rows)
    return lm


def test_scores_do_not_depend_on_what_is_remembered():
    rng = np.random.default_rng(0)
    long = [{"name": ["".join(rng.choice(list("abc"), 40))]} for _ in range(30)]
    clusters = [long[:k] for k in (1, 5, 30, 17)] + [long[k:] for k in (10, 25)]
    assert len(model().text(sorted(map(canonical, long))).tokens) > BLOCK * (WINDOW + 1) / 2
    free, tight = model(), forgetful()
    expected = free(clusters)
    for order in (range(6), reversed(range(6))):
        for k in order:
            assert tight([clusters[k]])[0] == expected[k]
    assert np.array_equal(tight(clusters), expected)


def test_texts_longer_than_anything_sees_have_scores():
    long = [{"name": [f"a{k:04d}" * 10]} for k in range(80)]
    lm = model()
    assert len(lm.text(sorted(map(canonical, long))).tokens) > BLOCK * (WINDOW + 2)
    tight = forgetful()
    assert np.array_equal(lm([long, long[1:]]), tight([long, long[1:]]))


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=5))
def test_orders_are_counted(letters):
    found = [((("name"), (letter,)),) for letter in letters]
    assert math.exp(log_orders(found)) == pytest.approx(len(set(itertools.permutations(letters))))


def test_fragments_that_say_nothing_count_for_nothing():
    lm = shared()
    with_nothing = lm([[FRAGMENTS[0], {}], [FRAGMENTS[0]], [{}, {"name": [""]}]])
    assert with_nothing[0] == with_nothing[1]
    assert with_nothing[2] == 0.0


def test_a_fragment_that_changes_is_read_again():
    lm, fragment, number = model(), {"name": ["Liège"]}, {"name": [1]}
    before = lm([[fragment], [number]])
    fragment["name"][0], number["name"][0] = "Gent", True
    assert np.array_equal(lm([[fragment], [number]]), lm([[{"name": ["Gent"]}], [{"name": ["True"]}]]))
    assert (lm([[fragment], [number]]) != before).all()


def test_the_temperature_is_that_of_the_network_alone():
    lm = JsonLM(network(), tokens(), temperature=2.0, offset=3.0)
    orders = [log_orders(sorted(map(canonical, cluster))) for cluster in CLUSTERS]
    assert lm(CLUSTERS) == pytest.approx((shared()(CLUSTERS) + orders) / 2.0 - orders + 3.0)


def test_calibration_makes_the_labels_most_likely():
    rng = np.random.default_rng(0)
    label = np.repeat(np.arange(6), 3)
    data = [{"name": ["abcdef"[k] * int(rng.integers(2, 5))]} for k in label]
    order = rng.permutation(len(data))
    data, label = [data[k] for k in order], label[order]
    found = model().calibrate(data, label, n_alternatives=6)
    alpha = alpha_for(6, len(data))

    def evidence(lm):  # log p of each one's cluster given those before it, computed plainly
        total = 0.0
        for x in range(len(data)):
            before = [[data[k] for k in range(x) if label[k] == c] for c in range(6)]
            weights = [math.log(alpha) + lm([[data[x]]])[0]]
            weights += [math.log(len(b)) + lm([[*b, data[x]]])[0] - lm([b])[0] for b in before if b]
            place = [c for c in range(6) if before[c]]
            own = 1 + place.index(label[x]) if label[x] in place else 0
            total += weights[own] - np.logaddexp.reduce(weights)
        return total

    best = evidence(found)
    for factor, shift in ((1.2, 0.0), (0.8, 0.0), (1.0, 0.3), (1.0, -0.3)):
        other = JsonLM(found.network, found.tokens, found.temperature * factor, found.offset + shift)
        assert evidence(other) < best


def test_it_clusters():
    names = [f"{word} {k}" for word in ("Liège", "Standard") for k in range(4)]
    data = [{"name": [name]} for name in names]
    sampler = pt.SplitSMC(pt.BlackBox(shared()), alpha=1.0, n_particles=3).fit(data)
    score = sum(math.lgamma(n) for n in np.bincount(sampler.labels_))
    clusters = [
        [data[k] for k in np.flatnonzero(sampler.labels_ == c)] for c in range(sampler.labels_.max() + 1)
    ]
    assert sampler.posterior_.log_density() == pytest.approx(score + shared()(clusters).sum())


# ---------------------------------------------------------------------- files and training


def test_files_keep_scores(tmp_path):
    lm = JsonLM(network(), tokens(), temperature=1.5, offset=-2.0)
    lm.save(tmp_path / "lm.safetensors")
    found = JsonLM.load(tmp_path / "lm.safetensors")
    np.testing.assert_allclose(found(CLUSTERS), lm(CLUSTERS), rtol=2e-2)  # 16 bits
    again = JsonLM.load(tmp_path / "lm.safetensors")
    assert found.name == again.name == lm.name
    assert np.array_equal(found(CLUSTERS), again(CLUSTERS))
    assert JsonLM(network(1), tokens()).name != JsonLM(network(), tokens()).name


def test_files_and_other_processes_keep_everything(tmp_path):
    lm = JsonLM(network(), tokens(), temperature=1.5, offset=-2.0, pool=Pool(2.0, 0.5, 0.1))
    lm.save(tmp_path / "lm.safetensors")
    assert JsonLM.load(tmp_path / "lm.safetensors").pool == lm.pool
    found = pickle.loads(pickle.dumps(lm))
    assert (found.name, found.pool) == (lm.name, lm.pool)
    assert np.array_equal(found(CLUSTERS), lm(CLUSTERS))


def test_other_files_are_refused(tmp_path):
    (tmp_path / "text").write_text("no weights")
    with pytest.raises(ValueError, match="holds no weights"):
        JsonLM.load(tmp_path / "text")
    JsonLM(network(), tokens()).save(tmp_path / "lm")
    with pytest.raises(ValueError, match="no 'partita SetDiffusion 1', but 'partita JsonLM 1'"):
        SetDiffusion.load(tmp_path / "lm")
    arrays = weights.arrays_of(network())
    for kind, model in ((jsonlm.KIND, JsonLM), (diffusion.KIND, SetDiffusion)):
        weights.save(tmp_path / "short", arrays, {"kind": kind})
        with pytest.raises(ValueError, match="does not say what its weights are of: KeyError"):
            model.load(tmp_path / "short")


@pytest.mark.parametrize(
    ("fragment", "why"),
    [
        ({"name": {"first": "x"}}, "attribute 'name': must be text, a number or a date, not dict"),
        ({"name": ["x"], 1: "y"}, "attribute 1 has no text for a name"),
        ({"name": np.array(["a", "b"])}, "attribute 'name': must be text, a number or a date, not ndarray"),
        ("text", "it must map attributes to values, got str"),
    ],
)
def test_bad_fragments_are_named(fragment, why):
    with pytest.raises(ValueError, match=f"cluster 1, fragment 2: {why}"):
        model()([[FRAGMENTS[0]], [FRAGMENTS[1], FRAGMENTS[2], fragment]])
    with pytest.raises(ValueError, match=f"fragment 1: {why}"):
        learnt([Corpus([FRAGMENTS[0], fragment], [0, 1])])
    with pytest.raises(ValueError, match="cluster 1 is empty"):
        model()([[FRAGMENTS[0]], []])


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_call_that_fails_leaves_nothing_wrong_behind(monkeypatch, error):
    texts = [[{"name": [f"{word} {k}" * 40]} for k in range(4)] for word in ("Liège", "Standard", "Reds")]
    right, lm = model()(texts), model()
    compute, calls = prefixes.compute, []

    def failing(*given):
        calls.append(compute(*given))
        if len(calls) == 3:
            raise error
        return calls[-1]

    monkeypatch.setattr(prefixes, "compute", failing)
    with pytest.raises(error):
        lm(texts)
    assert np.array_equal(lm(texts), right)
    assert len(calls) > 3


def labelled(n: int) -> tuple[list[dict], list[int]]:
    rng = np.random.default_rng(0)
    words = ["Liège", "Standard", "Reds", "Gent", "Brugge", "Genk", "Antwerp", "Mechelen"]
    label = np.repeat(np.arange(n), 2)
    names = [str(rng.choice(words)) for _ in range(n)]
    return [{"name": [names[k]], "sport": [["football", "judo"][k % 2]]} for k in label], label.tolist()


OPTIONS = {"size": TINY, "n_tokens": 280, "batch_tokens": 128, "every": 4}


@pytest.mark.usefixtures("unoptimised")
def test_training_learns_and_goes_on_where_it_stopped(tmp_path):
    data, label = labelled(40)
    curves: list[dict] = []
    whole = JsonLM.train(
        data, label, steps=12, folder=tmp_path / "a", progress=lambda s, f: curves.append(f), **OPTIONS
    )
    assert curves[-1]["held_out"] < curves[0]["held_out"]

    def stop(step, figures):
        if step == 8:
            raise KeyboardInterrupt

    corpora = [Corpus(data, label)]
    with pytest.raises(KeyboardInterrupt):
        learnt(corpora, steps=12, folder=tmp_path / "b", progress=stop, **OPTIONS)
    resumed = learnt(corpora, steps=12, folder=tmp_path / "b", **OPTIONS)
    assert resumed.name == JsonLM(whole.network, whole.tokens).name != whole.name
    with pytest.raises(ValueError, match="another plan"):
        learnt(corpora, steps=13, folder=tmp_path / "b", **OPTIONS)


def test_a_checkpoint_is_of_the_data(monkeypatch):
    kept = []

    def noted(network, *_, config, **__):
        kept.append(config)
        return Trained(network, [])

    monkeypatch.setattr(jsonlm, "train", noted)
    data, label = labelled(5)
    same, other = Corpus(data, label), [*data[1:], {"name": ["Liège"]}]
    for corpus in (same, same, Corpus(other, label), Corpus(data, label, repeats=2)):
        learnt([corpus], **OPTIONS)
    assert kept[0] == kept[1]
    assert len({config["data"] for config in kept}) == 3


def test_too_few_entities_are_not_calibrated_with(monkeypatch):
    monkeypatch.setattr(jsonlm, "learnt", lambda *_, **__: model())
    data, label = labelled(5)
    with pytest.warns(UserWarning, match="not calibrated: of 5 entities too few"):
        found = JsonLM.train(data, label)
    assert (found.temperature, found.pool) == (model().temperature, Pool())
    with pytest.raises(ValueError, match="labels are all the same"):
        found.calibrate(data, [0] * len(data))


def test_there_must_be_something_to_learn_from():
    with pytest.raises(ValueError, match="nothing to learn from: no fragment has a value"):
        learnt([Corpus([{"name": ""}, {}], ["a", "b"])])
    for name in ("steps", "batch_tokens", "every"):
        with pytest.raises(ValueError, match=f"{name} must be a whole number of at least 1"):
            learnt([Corpus(*labelled(5))], **{name: 0})


def test_going_on_keeps_no_batches_that_have_passed():
    data = [[canonical({"name": [f"e{e}"]})] for e in range(40)]
    whole = Batches([Entities(data)], Encoder(tokens(), grammar(), 100), 64, seed=0)
    later = Batches([Entities(data)], Encoder(tokens(), grammar(), 100), 64, seed=0)
    expected = [whole(step) for step in range(201)][200]
    assert np.array_equal(later(200)[0], expected[0])
    assert min(later.ready, default=200) > 200 - 10


def test_labels_must_fit():
    with pytest.raises(ValueError, match="3 labels, but 2 fragments"):
        learnt([Corpus(FRAGMENTS[:2], [0, 1, 2])])


def test_held_out_entities_are_not_learnt_from():
    data, label = labelled(60)
    for k, fragment in enumerate(data):
        fragment["name"] = [f"entity {label[k]}"]
    learning, held_out = divided(Corpus(data, label))
    names = [{fragment[0][1] for entity in part for fragment in entity} for part in (learning, held_out)]
    assert len(names[1]) == 3
    assert not names[0] & names[1]
    assert len(names[0] | names[1]) == 60


def test_batches_hold_sets_of_one_entity_and_all_sizes():
    data = [[canonical({"name": [f"e{e}"], "number": [k]}) for k in range(9)] for e in range(50)]
    encoder = Encoder(tokens(), grammar(), 1000)
    batches = Batches([Entities(data, 20)], encoder, 2048, seed=0)
    sizes = set()
    for rows, lengths in batches.whole_epoch():
        for row, length in zip(rows, lengths, strict=True):
            if length:
                ids = text_of(row[: length + 1]).tokens.tolist()
                found = json.loads(tokens().text(ids))
                assert len({tuple(item["name"]) for item in found}) == 1
                assert len({tuple(item["number"]) for item in found}) == len(found)
                sizes.add(len(found))
    assert sizes == set(range(1, 10))


def test_other_names_are_the_same_for_the_same():
    entity = [
        canonical({"name": ["John Logan", "Logan"]}),
        canonical({"name": ["Logan of York"], "born": [1961]}),
    ]
    others = [[canonical({"name": [f"Word{chr(97 + k)}"]})] for k in range(20)] * 2
    pool = [[canonical({"name": [letters]})] for letters in ("Anna", "Bert", "Cleo", "Dora", "Emil")]
    words = Words([entity, *others, *pool, *[[canonical({"name": ["of the of the"]})]] * 500])
    found = words.renamed(entity, np.random.default_rng(1))
    (both,) = [dict(f)["name"] for f in found if "born" not in dict(f)]
    (born,) = [dict(f) for f in found if "born" in dict(f)]
    surname = min(both, key=len)
    assert " " not in surname
    assert all(name.endswith(surname) for name in both)
    assert born["name"][0].startswith(f"{surname} of ")
    assert born["born"] == ("1961",)


def test_states_fit_their_type():
    assert grammar().following.max() < N_STATES <= 127
