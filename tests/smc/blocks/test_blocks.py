"""Blocks: each of their parts against a naive one, what comes of a block against enumeration, and identity."""

import itertools
import math
from collections import Counter, defaultdict

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import partita as pt
from partita.smc.blocks import components, near
from partita.smc.blocks.edges import CLOSEST, Edges, edges, pairs_among
from partita.smc.blocks.fit import alphas_of, plan
from partita.smc.blocks.run import run, task_of
from partita.smc.files.packing import pack
from partita.smc.state.keys import code
from tests.helpers import oracle
from tests.helpers.effort import examples

quick = examples(40)

# ---------------------------------------------------------------------- near


def naive_near(keys, pairs, together):
    """The keys, and pairs of keys, that each observation is compared by."""
    n = len(keys)

    def rare(keys):
        often = Counter(key for own in keys for key in own)
        limit, made = 1, 0
        for f in sorted({f for f in often.values() if f > 1}):
            made += f * (f - 1) // 2 * sum(1 for g in often.values() if g == f)
            if made > pairs * n:
                break
            limit = f
        return [{key for key in own if 1 < often[key] <= limit} for own in keys], often, limit

    one, often, limit = rare(keys)
    common = [sorted((often[key], key) for key in own if often[key] > limit)[:together] for own in keys]
    twos = [{min(a, b) ^ max(a, b) for (_, a), (_, b) in itertools.combinations(own, 2)} for own in common]
    windows = [set() for _ in keys]
    for key in {key for own in common for _, key in own}:
        holders = [x for x, own in enumerate(common) if key in {key for _, key in own}]
        for place, x in enumerate(holders):
            half = near.WINDOW // 2
            windows[x] |= {(key, 0, place // near.WINDOW), (key, 1, (place + half) // near.WINDOW)}
    return [a | b | c for a, b, c in zip(one, rare(twos)[0], windows, strict=True)]


codes = st.integers(0, 2**40).map(code) | st.sampled_from([code(k) for k in range(6)])
key_sets = st.lists(st.sets(codes), min_size=1, max_size=12)


@quick
@given(key_sets, st.integers(0, 4), st.integers(1, 9))
def test_compared_by_are_keys_up_to_a_frequency_that_makes_so_many_pairs(keys, pairs, rows_at_a_time):
    keys = [sorted(own) for own in keys]
    with pytest.MonkeyPatch.context() as patch, duckdb.connect() as connection:
        patch.setattr(near, "PAIRS", pairs)
        patch.setattr(near, "ROWS", rows_at_a_time)
        numbers = [x for x, own in enumerate(keys) for _ in own]
        rows = {
            "number": np.array(numbers, np.int64),
            "key": np.array(list(itertools.chain(*keys)), np.int64),
        }
        connection.register("keys", rows)
        found = near.near(connection, "keys", len(keys))
    expected = naive_near(keys, pairs, near.TOGETHER)
    holders = defaultdict(set)
    for k, (start, stop) in enumerate(itertools.pairwise(found.starts.tolist())):
        own = found.holders[start:stop].tolist()
        assert own == sorted(own)
        holders[tuple(own)].add(k)
    wanted = Counter()
    for key in set().union(*expected):
        wanted[tuple(x for x, own in enumerate(expected) if key in own)] += 1
    assert {own: len(ks) for own, ks in holders.items()} == dict(wanted)
    first = rows_at_a_time % (len(keys) + 1)
    parts = near.own_of(found, 0, first), near.own_of(found, first, len(keys))
    for x in range(len(keys)):
        part = parts[x >= first]
        own = part.keys[part.starts[x - part.first] : part.starts[x - part.first + 1]]
        assert sorted(own) == [
            k
            for k in range(len(found.starts) - 1)
            if x in found.holders[found.starts[k] : found.starts[k + 1]]
        ]


def test_copies_meet_however_many_there_are():
    """Each key of theirs makes more pairs than there is time for."""
    products = [
        {"name": f"Widget{k} Model{k}X", "maker": f"Firm{k}", "price": 10 + k}
        for _ in range(40)
        for k in range(8)
    ]
    model = pt.Record.infer(products).fit_prior(products)
    labels = pt.SplitSMC(model, keys="auto").fit(products, n_jobs=1).labels_
    assert labels.tolist() == [k for _ in range(40) for k in range(8)]


# ---------------------------------------------------------------------- edges


@quick
@given(st.integers(0, 2**32 - 1), st.integers(1, 3))
def test_edges_are_the_pairs_that_share_most_with_the_odds_of_the_two_alone(seed, workers):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(30, 1)) * 3, 1)
    keys = [sorted({int(k) for k in rng.integers(0, 8, 2)}) for _ in range(30)]
    own = dict(zip(map(tuple, X.tolist()), keys, strict=True))
    model = pt.Gaussian(shape=2.0, rate=0.3, precision=0.1)
    sampler = pt.SplitSMC(model, alpha=0.7, keys=lambda x: own[tuple(x.tolist())])
    engine = sampler._start(X, sampler._settings(), math.log(0.7))
    encoded, found_keys = engine.encode(X), engine.keys(X)
    with duckdb.connect() as connection:
        rows = {"number": np.repeat(np.arange(30), np.diff(found_keys[0])), "key": found_keys[1]}
        connection.register("keys", rows)
        shared = near.near(connection, "keys", 30)
    found = edges(engine, encoded, shared, math.log(0.7), workers)
    _, starts, numbers = near.own_of(shared, 0, 30)
    lists = [set(numbers[starts[x] : starts[x + 1]].tolist()) for x in range(30)]
    expected = {}
    for x in range(30):
        worth = {y: sum(int(shared.worth[k]) for k in lists[x] & lists[y]) for y in range(x)}
        best = sorted((y for y in worth if worth[y]), key=lambda y: (-worth[y], y))[:20]
        for y in best:
            p = [oracle.gaussian(X[rows], 2.0, 0.3, 0.0, 0.1) for rows in ([x, y], [x], [y])]
            odds = p[0] - p[1] - p[2] - math.log(0.7)
            if odds >= -3.0:
                expected[y, x] = odds
    pairs = zip(found.first.tolist(), found.second.tolist(), strict=True)
    assert dict(zip(pairs, found.odds.tolist(), strict=True)) == pytest.approx(expected, abs=1e-9)


@quick
@given(st.lists(st.sets(st.integers(0, 30)), min_size=1, max_size=40), st.integers(1, 4))
def test_the_closest_pairs_in_sql_are_those_of_the_kernel(keys, most):
    n, counts = len(keys), [len(own) for own in keys]
    codes = np.array([code(key) for own in keys for key in own], np.int64)
    with pytest.MonkeyPatch.context() as patch, duckdb.connect() as connection:
        patch.setattr("partita.smc.blocks.near.PAIRS", 10)
        connection.register("keys", {"number": np.repeat(np.arange(n), counts), "key": codes})
        tables = near.InDuckDB(connection)
        expected = pairs_among(near.near(connection, "keys", n), 0, n, 2)
        pairs = near.closest(tables, near.selected(tables, "keys", n), n, CLOSEST)
        found = tables.fetch(f"SELECT first, second FROM {pairs} ORDER BY second, place")
        fewer = near.closest(tables, near.selected(tables, "keys", n), n, most)
        of_each = tables.fetch(f"SELECT max(place) AS places FROM {fewer} GROUP BY second")["places"]
    assert found["first"].tolist() == expected[0].tolist()
    assert found["second"].tolist() == expected[1].tolist()
    assert all(places <= most for places in of_each.tolist())


# ---------------------------------------------------------------------- components

links = st.lists(
    st.tuples(st.integers(0, 11), st.integers(0, 11), st.sampled_from([-1.0, 0.0, 2.0, 5.0])).filter(
        lambda link: link[0] < link[1]
    ),
    max_size=25,
    unique_by=lambda link: link[:2],
)


@examples(200)
@given(links, st.integers(1, 12), st.sampled_from([1, 4, 1000]), st.sampled_from([1, 2, 64]))
def test_components_with_the_strongest_links_first_where_they_would_be_too_large(links, most, room, sampled):
    n = 12
    given_links = Edges(*map(np.array, zip(*links, strict=True))) if links else no_edges()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(components, "ROOM", room)  # links that are sorted at a time
        patch.setattr(components, "SAMPLED", sampled)
        found = components.blocks_of(n, given_links, most)
    block = {x: {x} for x in range(n)}

    def join(links, most):
        for a, b, _ in links:
            if block[a] is not block[b] and len(block[a] | block[b]) <= most:
                both = block[a] | block[b]
                for x in both:
                    block[x] = both

    join(links, n)
    for x, own in list(block.items()):
        if len(own) > most:
            block[x] = {x}
    join(sorted(links, key=lambda link: (-link[2], link[0], link[1])), most)
    assert found.block.tolist() == [min(block[x]) for x in range(n)]
    assert [links[k] for k in found.cut] == [link for link in links if link[1] not in block[link[0]]]


def no_edges():
    return Edges(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))


# ---------------------------------------------------------------------- the whole


def blobs(seed, n=60):
    rng = np.random.default_rng(seed)
    return np.round(rng.normal(scale=0.2, size=(n, 1)) + 10.0 * rng.integers(0, n // 4, n)[:, None], 2)


def cells(x):
    """Grid cells, that neighbours share."""
    return [int(np.floor(x[0] / 5)), int(np.floor(x[0] / 5 + 0.5)) + 10**6]


def numbers_of(sampler):
    packed = pack(sampler._engine.state)
    return [packed[name].tobytes() for name in ("members", "sizes", "shapes", "cells", "weights", "scores")]


def test_what_comes_of_each_block_is_what_enumeration_says():
    X = blobs(0, 24)
    model = pt.Gaussian(shape=2.0, rate=0.1, precision=0.01)
    sampler = pt.SplitSMC(model, alpha=0.5, n_particles=4000, keys=cells).fit(X, n_jobs=2)
    posterior = sampler.posterior_
    engine = sampler._engine
    block = plan(engine, engine.encode(X), engine.keys(X), math.log(0.5), 1).blocks.block
    assert 1 < len(set(block.tolist())) < 24
    for root in set(block.tolist()):
        own = np.flatnonzero(block == root)
        if len(own) > 7:
            continue
        scores = {
            partition: sum(
                math.log(0.5) + math.lgamma(len(c)) + oracle.gaussian(X[own[sorted(c)]], 2.0, 0.1, 0.0, 0.01)
                for c in partition
            )
            for partition in oracle.all_partitions(len(own))
        }
        top = max(scores.values())
        total = sum(math.exp(score - top) for score in scores.values())
        for i, j in itertools.combinations(range(len(own)), 2):
            p = sum(
                math.exp(score - top)
                for partition, score in scores.items()
                if any({i, j} <= c for c in partition)
            )
            assert posterior.together([own[i]], [own[j]])[0] == pytest.approx(p / total, abs=1e-6)


PEOPLE = [
    {"name": name, "town": town, "born": str(1900 + 7 * k % 60)}
    for k, (name, town) in enumerate(
        itertools.product(
            ["Ada Lovelace", "Ada Lovelac", "Charles Babbage", "C Babbage", "Mary Somerville", "M Somervile",
             "Grace Hopper", "Grace Hoper", "Alan Turing", "A Turing", "Emmy Noether", "E Noether"],
            ["London", "Londn", "York", "Paris", "Bonn", "Rome", "Oslo", "Lund"],
        )
    )
]  # fmt: skip


@pytest.fixture(scope="module")
def record_model():
    return pt.Record.infer(PEOPLE).fit_prior(PEOPLE)


@pytest.mark.parametrize("kind", ["points", "records"])
def test_the_same_to_the_last_bit_for_any_number_of_workers(kind, record_model):
    X, model, keys = (
        (blobs(1), pt.Gaussian(rate=0.1), cells) if kind == "points" else (PEOPLE, record_model, "auto")
    )

    def fitted(n_jobs):
        return pt.SplitSMC(model, n_particles=10, keys=keys, random_state=3).fit(X, n_jobs=n_jobs)

    expected = fitted(1)
    assert expected.diagnostics_.steps == len(X)
    for n_jobs in (2, 3, -1):
        assert fitted(n_jobs).diagnostics_ == expected.diagnostics_
        assert numbers_of(fitted(n_jobs)) == numbers_of(expected)
        assert fitted(n_jobs).alpha_ == expected.alpha_


@pytest.mark.parametrize("sweeps", [0, 2])
def test_a_block_comes_out_the_same_whatever_else_there_is(record_model, sweeps):
    """With another vocabulary, other numbers of observations, and other blocks before it on the stage."""
    sampler = pt.SplitSMC(record_model, n_particles=10, keys="auto")
    X = sampler._validated(PEOPLE, True)

    def outcome(rows, block, sweeps):
        engine = sampler._start(X, sampler._settings(), 0.0)
        some = [X[row] for row in rows]
        task = task_of(
            engine.encode(some), engine.keys(some), block, np.array(rows), alphas_of(engine, len(X))
        )
        found = run(engine, task, 7, 1, sweeps)
        return found, np.array(rows)[found.members]

    block = np.arange(len(X)) // 12
    whole, members = outcome(range(len(X)), block, sweeps)
    for b in (0, 3, 7):
        rows = np.flatnonzero(block == b)
        alone, its_members = outcome(rows.tolist(), np.zeros(len(rows), np.int64), sweeps)
        at = [k for k, x in enumerate(members.tolist()) if x in set(rows.tolist())]
        assert members[at].tolist() == its_members.tolist()
        weights = whole.weights.tolist()
        own = alone.weights.tolist()
        assert any(weights[k : k + len(own)] == own for k in range(len(weights) - len(own) + 1))
        scores, own = whole.scores.tolist(), alone.scores.tolist()
        assert any(scores[k : k + len(own)] == own for k in range(len(scores) - len(own) + 1))


def test_a_stream_goes_on_from_blocks_as_from_a_stream(record_model, tmp_path):
    sampler = pt.SplitSMC(record_model, n_particles=10, keys="auto").fit(PEOPLE[:80], n_jobs=2)
    assert sampler.posterior_.n_observations == 80
    sampler.save(tmp_path / "sampler")
    loaded = pt.SplitSMC.load(tmp_path / "sampler")
    for each in (sampler, loaded):
        each.partial_fit(PEOPLE[80:]).remove(3)
        each.refine(1)
    assert numbers_of(loaded) == numbers_of(sampler)
    checked = pt.SplitSMC(record_model, n_particles=10, keys="auto").fit(PEOPLE)
    agree = np.mean(
        np.equal.outer(sampler.labels_, sampler.labels_)
        == np.equal.outer(*[np.delete(checked.labels_, 3)] * 2)
    )
    assert agree > 0.9


def test_progress_is_told(record_model):
    seen = []
    pt.SplitSMC(record_model, keys="auto").fit(PEOPLE, n_jobs=2, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == len(PEOPLE)


@pytest.mark.parametrize(
    ("parameters", "n_jobs", "message"),
    [
        ({}, 0, "n_jobs"),
        ({"keys": None}, 2, "give keys"),
        ({"rejuvenation": 1}, 2, "rejuvenation"),
        ({"merging": "multinomial"}, 2, "exact weights"),
        ({"resampling": "multinomial"}, 2, "exact weights"),
    ],
)
def test_what_blocks_cannot_do_is_refused(parameters, n_jobs, message, record_model):
    sampler = pt.SplitSMC(record_model, **({"keys": "auto"} | parameters))
    with pytest.raises(ValueError, match=message):
        sampler.fit(PEOPLE, n_jobs=n_jobs)
    assert not hasattr(sampler, "_engine")


def test_black_boxes_are_refused():
    box = pt.BlackBox(lambda clusters: [0.0 for _ in clusters], pt.Gaussian())
    with pytest.raises(ValueError, match="compiled"):
        pt.SplitSMC(box, keys=lambda x: [1]).fit(np.zeros((3, 1)), n_jobs=2)
