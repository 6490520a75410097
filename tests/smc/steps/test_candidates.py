"""Candidates: the index against a plain one, samplers with it against samplers without, and its limits."""

import copy
import itertools
import json
import math
import pickle
from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import partita as pt
from partita.models.numeric import grid
from partita.smc.files import storage
from partita.smc.files.storage import FileError
from partita.smc.moves.reobserve import put_back, take_out
from partita.smc.state.access import subproblem_of
from partita.smc.state.keys import EVERYTHING, code
from partita.smc.state.state import dismantle, grown
from partita.smc.steps.candidates import BUDGET, MOST, candidates_of_row
from tests.helpers import oracle
from tests.helpers.effort import effort, examples
from tests.helpers.files import crafted, packed
from tests.helpers.following import CONTINUOUS, follow, stream
from tests.helpers.streams import MODELS, VARIANTS, answers, each_model, rows_of

seeds = st.integers(0, 2**32 - 1)
quick = examples(8)
SPLITTING = [name for name, (kind, _) in VARIANTS.items() if kind is not pt.SMC]
AUTO = ["gaussian", "multivariate"]


def one_key(x):
    """Everything is found by everything."""
    return ["all"]


def coarse(x):
    """Neighbouring values share keys, distant ones do not."""
    return [(int(x[0]) // 8, 0), ((int(x[0]) + 4) // 8, 1)]


def sampler_of(model, variant, candidates):
    kind, parameters = VARIANTS[variant]
    return kind(MODELS[model](), random_state=5, keys=candidates, **parameters)


def given_keys(X, keys):
    """A function from a row to the keys that it is to have."""
    table = {row.tobytes(): own for row, own in zip(X, keys, strict=True)}
    assert len(table) == len(X)
    return lambda x: table[x.tobytes()]


# ---------------------------------------------------------------------- the oracle


def plain_look_up(own, others, budget=math.inf):
    """The observations that share a key: rarest key first, then the smaller one; latest first within it."""
    found, left = set(), budget
    counts = Counter(key for keys in others for key in keys)
    for key in sorted(set(own), key=lambda key: (counts[key], key)):
        for x in range(len(others) - 1, -1, -1):
            if key in others[x] and left > 0:
                found.add(x)
                left -= 1
    return found


def plain_candidates(own, others, out, home):
    """The subproblems met that share most: each key they share counts −log of its share of all."""
    counts = Counter(key for keys in others for key in keys)
    shared, left = {}, BUDGET
    for key in sorted(set(own), key=lambda key: (counts[key], key)):
        met = {}
        for x in range(len(others) - 1, -1, -1):
            if key in others[x] and left > 0:
                left -= 1
                if x not in out:
                    met[home(x)] = True
        for s in met:
            shared[s] = shared.get(s, 0.0) + math.log((len(others) + 1) / max(counts[key], 1))
    return sorted(sorted(shared, key=lambda s: -shared[s])[:MOST])


class Indexed(oracle.Naive):
    """The naive sampler, let loose on the candidates alone."""

    keys: list

    def observe(self, x):
        met = plain_look_up(self.keys[x], self.keys[:x])
        near = [s for s in self.subproblems if oracle.support(next(iter(s))) & met]
        far = [s for s in self.subproblems if not oracle.support(next(iter(s))) & met]
        self.happened["passed over"] += bool(far)
        self.happened["no candidate"] += not near and x > 0
        self.subproblems = near
        super().observe(x)
        self.subproblems += far


def random_keys(rng, n):
    """Few keys for many rows, some rows without any."""
    return [sorted(set(rng.integers(0, 6, rng.integers(0, 4)).tolist())) for _ in range(n)]


def compare(kind, seed, m, exact=True):
    model, X, alpha = stream(kind, seed)
    naive = Indexed(oracle.Scores(model, X, alpha), m, True, exact)
    naive.keys = random_keys(np.random.default_rng(seed), len(X))
    candidates = given_keys(X, naive.keys)
    weights = None if exact else "marginal"
    follow(pt.SplitSMC(model, alpha, m, weights=weights, keys=candidates), naive, X)
    return naive.happened


@pytest.mark.parametrize("kind", CONTINUOUS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("exact", [True, False], ids=["exact", "marginal"])
def test_every_step_retains_what_the_naive_sampler_retains(kind, exact):
    @quick
    @given(seeds, st.integers(2, 12))
    def check(seed, m):
        try:
            compare(kind, seed, m, exact)
        except oracle.Undecided:
            assume(False)

    check()


def test_the_comparison_has_seen_every_step():
    happened = Counter()
    for seed in range(30):
        try:
            happened += compare(pt.Gaussian, seed, 2 + seed % 7)
        except oracle.Undecided:
            happened["undecided"] += 1
    steps = ("merged", "split", "dropped", "alone", "passed over", "no candidate")
    assert min(happened[step] for step in steps) >= 3
    assert happened["undecided"] <= 1


class Keyed(pt.Gaussian):
    """Rows whose own numbers are their keys, for look-ups at full length."""

    def keys(self, X):
        counts = (X > -1e9).sum(axis=1)
        return np.append(0, np.cumsum(counts)), X[X > -1e9].astype(np.int64)


def test_look_ups_of_common_keys_stop_at_the_budget():
    """Some keys are on thousands of observations, some on one; a few observations are out."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(-4, 0, 4000), rng.integers(0, 40, 4000), rng.integers(50, 4000, 4000)])
    X = X.astype(float)
    X[rng.random(X.shape) < 0.2] = -2e9
    sampler = pt.SplitSMC(Keyed(shape=9.0, rate=1e-3, precision=1e-9), 1e-3, 3, keys="auto").fit(X)
    engine, keys = sampler._engine, [row[row > -1e9].astype(int).tolist() for row in X]
    out = set(rng.choice(4000, 300, replace=False).tolist())
    for x in out:
        while not take_out(engine._state, engine.family, x):
            engine._state = grown(engine._state)
    stopped = 0
    for own in random_rows(rng, 60):
        stopped += plain_look_up(own, keys, BUDGET) != plain_look_up(own, keys)
        expected = plain_candidates(own, keys, out, lambda x: int(subproblem_of(engine._state, x)))
        starts = np.array([0, len(own)])
        found = candidates_of_row(engine._state, starts, np.array(sorted(own), np.int64), 0).tolist()
        assert found == expected
    assert 10 < stopped < 50
    for x in out:
        while not put_back(engine._state, engine.family, x):
            engine._state = grown(engine._state)
    oracle.check_state(engine._state)


def random_rows(rng, n):
    """Keys of new rows: all kinds, or rare ones alone."""
    for k in range(n):
        rare = set(rng.integers(50, 4000, 5).tolist())
        yield rare if k % 2 else rare | {*rng.integers(-4, 0, 2).tolist(), *rng.integers(0, 40, 3).tolist()}


# ---------------------------------------------------------------------- beside exact samplers


EVERY = list(itertools.product(MODELS, SPLITTING))
SOME = [(model, variant) for model, variant in EVERY if model in ("gaussian", "user") or variant == "split"]


@pytest.mark.parametrize(("model", "variant"), effort(SOME, EVERY))
def test_a_key_that_all_share_makes_it_exact(model, variant):
    X = rows_of(model)
    exact = sampler_of(model, variant, None).fit(X)
    indexed = sampler_of(model, variant, one_key).fit(X)
    assert answers(indexed) == answers(exact)
    new = rows_of(model, 20, seed=8)
    assert np.array_equal(indexed.predict_proba(new), exact.predict_proba(new))
    if indexed._engine.exact:
        assert answers(indexed.refine(2)) == answers(exact.refine(2))


def test_few_clusters_are_scored():
    """A user's model is asked for the candidates' clusters only, however many there are."""
    asked = []

    class Counting(oracle.Poisson):
        def log_marginal(self, totals, sizes):
            asked.append(len(sizes))
            return super().log_marginal(totals, sizes)

    X = 1000.0 * np.arange(200)[:, None]
    sampler = pt.SplitSMC(Counting(1.0, 1e-5), 1.0, 5, keys=lambda x: [int(x[0]) // 1000]).fit(X)
    assert sampler.labels_.max() == 199
    asked.clear()
    sampler.partial_fit([[7000.0], [7003.0], [9.9e6]])
    assert max(asked) <= 6


@pytest.mark.parametrize("model", AUTO)
def test_points_of_a_cluster_find_one_another(model):
    """Where clusters are as the prior has them, the model's own keys lose next to nothing."""
    rng = np.random.default_rng(2)
    label = rng.integers(0, 400, 2500)
    X = 300.0 * rng.normal(size=(400, 2))[label] + rng.normal(size=(2500, 2))
    prior = {"precision": 1e-5}
    own = (
        pt.Gaussian(5.0, 5.0, **prior) if model == "gaussian" else pt.MultivariateGaussian(8.0, 8.0, **prior)
    )
    sampler = pt.SplitSMC(own, 10.0, 10, keys="auto").fit(X[:2000])
    report = sampler.candidate_report(X[2000:], n=500)
    assert report.reached.mean() > 0.999
    assert report.missed.mean() < 0.002
    assert report.scored.mean() < 0.05 * report.n_subproblems
    exact = pt.SplitSMC(own, 10.0, 10).fit(X[:2000])
    assert pt.bcubed(exact.labels_, sampler.labels_).f1 > 0.999


@pytest.mark.parametrize("variant", SPLITTING)
def test_what_shares_no_key_is_never_together(variant):
    """Not even equal points; keys chain: 0–1–2 is one component, 7 another, and a point without is alone."""
    rng = np.random.default_rng(1)
    X = np.round(rng.normal(size=(45, 2)), 1)
    X[:, 0] += 1e-9 * np.arange(45)
    keys = [[(0, 1), (1, 2), (7,)][k % 3] for k in range(45)]
    keys[31] = ()
    component = np.array([{0: 0, 1: 0, 2: 1}[k % 3] for k in range(45)])
    component[31] = 2
    sampler = sampler_of("gaussian", variant, given_keys(X, keys)).fit(X)
    if sampler._engine.exact:
        sampler.refine(2)
    together = sampler.posterior_.together(np.arange(45)[:, None], np.arange(45))
    assert (together[component[:, None] != component] == 0.0).all()
    assert (together[component[:, None] == component] > 0.0).mean() > 0.1


@pytest.mark.parametrize("model", ["gaussian", "categorical", "user"])
@pytest.mark.parametrize("rejuvenation", [0, 2])
def test_invariants_hold_while_observations_leave_and_return(model, rejuvenation):
    X, own = rows_of(model, 40), MODELS[model]()
    candidates = coarse if model == "user" else lambda x: [(int(x[0]), int(x[1]))]
    sampler = pt.SplitSMC(own, 1.0, 8, rejuvenation=rejuvenation, keys=candidates, random_state=3).fit(X)
    scores = oracle.Scores(own, X, 1.0)
    assert len(oracle.check_invariants(sampler, scores, 8)) > 1
    for x in range(0, 40, 3):
        sampler._engine.observe_again(x)
    sampler._engine._posterior = None
    oracle.check_invariants(sampler, scores, 8)
    before = sampler.posterior_.log_density()
    oracle.check_invariants(sampler.refine(2), scores, 8)
    assert sampler.posterior_.log_density() >= before - 1e-9


# ---------------------------------------------------------------------- the same answer every time


def candidates_for(model):
    return "auto" if model in AUTO else coarse


def reloaded(sampler, path):
    sampler.save(path)
    own = sampler.model if isinstance(sampler.model, oracle.Poisson) else None
    given = sampler.keys if callable(sampler.keys) else None
    return type(sampler).load(path, model=own, keys=given)


@each_model
@pytest.mark.parametrize("variant", ["auto, rejuvenation", "optimal", "greedy"])
def test_batches_files_and_copies_make_no_difference(model, variant, tmp_path):
    X = rows_of(model)
    whole = answers(sampler_of(model, variant, candidates_for(model)).fit(X))

    @examples(4)
    @given(st.lists(st.tuples(st.integers(1, 59), st.sampled_from(["go on", "file", "copy"])), max_size=6))
    def check(stops):
        sampler, seen = sampler_of(model, variant, candidates_for(model)), 0
        for stop, between in sorted({stop: (stop, between) for stop, between in stops}.values()):
            sampler.partial_fit(X[seen:stop])
            seen = stop
            if between == "file":
                sampler = reloaded(sampler, tmp_path / "run.partita")
            elif between == "copy":
                sampler = copy.deepcopy(sampler)
        assert answers(sampler.partial_fit(X[seen:])) == whole

    check()


def test_a_pickle_goes_on():
    X = rows_of("gaussian")
    sampler = sampler_of("gaussian", "split", one_key).fit(X[:30])
    again = pickle.loads(pickle.dumps(sampler)).partial_fit(X[30:])
    assert answers(again) == answers(sampler.partial_fit(X[30:]))


def test_a_model_that_fails_midway_leaves_the_index_as_it_was():
    class Fragile(oracle.Poisson):
        def log_marginal(self, totals, sizes):
            if (totals[:, 0] > 5000).any():
                raise ArithmeticError("too much")
            return super().log_marginal(totals, sizes)

    X = rows_of("user", 40).astype(float)
    sampler = pt.SplitSMC(Fragile(1.0, 0.04), 1.0, 10, keys=coarse).fit(X[:20])
    with pytest.raises(ArithmeticError):
        sampler.partial_fit([*X[20:30], [6000.0]])
    whole = pt.SplitSMC(Fragile(1.0, 0.04), 1.0, 10, keys=coarse).fit(X)
    assert answers(sampler.partial_fit(X[20:])) == answers(whole)


def test_prediction_and_reports_change_nothing():
    X = rows_of("gaussian")
    sampler = sampler_of("gaussian", "rejuvenation", "auto").fit(X[:40])
    before = answers(sampler)
    sampler.predict_proba(X[40:])
    sampler.candidate_report(X[40:])
    assert answers(sampler) == before
    whole = sampler_of("gaussian", "rejuvenation", "auto").fit(X)
    assert answers(sampler.partial_fit(X[40:])) == answers(whole)


# ---------------------------------------------------------------------- prediction and the report


def masses(sampler, X, x):
    """By brute force: of a further row x, α·p(x), and per subproblem the mass that each label gets."""
    rows = np.vstack([X, x])
    scores, new = oracle.Scores(sampler.model_, rows, sampler.alpha_), len(X)
    found = {}
    for observations, particles in oracle.factors(sampler.posterior_).items():
        mass = Counter()
        for partition, probability in particles.items():
            for c in partition:
                for y in c:
                    gain = math.exp(scores.gain(c, new))
                    mass[int(sampler.labels_[y])] += probability * gain / len(c)
        found[observations] = mass
    return math.exp(scores.gain(frozenset(), new)), found


@pytest.mark.parametrize("model", ["gaussian", "user"])
def test_prediction_and_report_by_brute_force(model):
    X, fresh = rows_of(model, 40), rows_of(model, 25, seed=4)
    candidates = coarse if model == "user" else lambda x: [(round(x[0] / 3), round(x[1] / 3))]
    sampler = pt.SplitSMC(MODELS[model](), 1.0, 10, keys=candidates).fit(X)
    report = sampler.candidate_report(fresh)
    assert report.rows.tolist() == list(range(25))
    assert report.n_subproblems == len(sampler.posterior_.subproblems)
    probabilities = sampler.predict_proba(fresh)
    keys = [set(candidates(x)) for x in X]
    for k, x in enumerate(fresh):
        new, found = masses(sampler, X, x)
        met = plain_look_up([key for key in candidates(x) if any(key in own for own in keys)], keys)
        near = [mass for observations, mass in found.items() if observations & met]
        everything, reached = Counter({-1: new}), Counter({-1: new})
        for mass in found.values():
            everything.update(mass)
        for mass in near:
            reached.update(mass)
        total, within = sum(everything.values()), sum(reached.values())
        assert report.reached[k] == pytest.approx(within / total, abs=1e-9)
        assert report.missed[k] == (max(everything, key=everything.get) not in reached)
        assert report.scored[k] == len(near)
        expected = np.zeros(probabilities.shape[1])
        for label, value in reached.items():
            expected[label] = value / within
        np.testing.assert_allclose(probabilities[k], expected, atol=1e-9)
    assert 0 < report.missed.sum() < 25
    assert 0 < report.scored.mean() < report.n_subproblems


def test_a_report_on_some_of_many_rows():
    X = rows_of("gaussian")
    sampler = sampler_of("gaussian", "split", None).fit(X)
    report = sampler.candidate_report(X, n=7, random_state=1)
    assert len(np.unique(report.rows)) == len(report.rows) == len(report.reached) == 7
    assert (report.reached > 1.0 - 1e-9).all()  # without candidates nothing is missed
    assert not report.missed.any()
    assert (report.scored == report.n_subproblems).all()
    assert "probability reached: 100.0 %" in str(report)
    assert "0.0 % of 7 rows" in str(report)
    with pytest.raises(ValueError, match="n must be a whole number"):
        sampler.candidate_report(X, n=0)


# ---------------------------------------------------------------------- keys


def test_codes_are_the_same_everywhere_and_distinct():
    assert code("gutenberg") == -8817119378361512255
    assert code(("born", 1400)) == 1358376077118300130
    different = [
        "1",
        1,
        b"1",
        ("1",),
        (1,),
        ("1", ""),
        ("", "1"),
        -1,
        2**80,
        "",
        b"",
        (),
        ((),),
        "ab",
        ("ab",),
    ]
    different += [("a", "bc"), ("ab", "c"), ("a", ("b",)), (("a",), "b"), "\ud800"]
    assert len({code(key) for key in different}) == len(different)
    assert code(np.int32(7)) == code(7)
    assert code(np.str_("x")) == code("x")
    assert all(-(2**63) <= code(key) < 2**63 for key in different)


@pytest.mark.parametrize("bad", [1.5, None, True, ["a"], ("a", 2.0), {"a"}, np.zeros(2)])
def test_what_can_be_no_key(bad):
    X = rows_of("gaussian")
    sampler = sampler_of("gaussian", "split", lambda x: ["fine", bad] if x[0] == X[17, 0] else ["fine"])
    with pytest.raises(TypeError, match=r"row 17: .* can be no key"):
        sampler.fit(X)
    assert not hasattr(sampler, "labels_")
    sampler.partial_fit(X[:10])
    before = answers(sampler)
    with pytest.raises(TypeError, match=r"row 7: .* can be no key"):
        sampler.partial_fit(X[10:])
    with pytest.raises(TypeError, match=r"row 7: .* can be no key"):
        sampler.predict_proba(X[10:])
    assert answers(sampler) == before


@pytest.mark.parametrize("bad", ["a word", b"bytes", 7, None])
def test_a_function_must_return_several_keys(bad):
    with pytest.raises(TypeError, match="row 0: keys must return several keys"):
        sampler_of("gaussian", "split", lambda x: bad).fit(rows_of("gaussian"))


@pytest.mark.parametrize("bad", ["grid", 3, ["a"], True])
def test_what_candidates_may_be(bad):
    with pytest.raises(ValueError, match='keys must be None, "auto" or a function'):
        sampler_of("gaussian", "split", bad).fit(rows_of("gaussian"))


def test_keys_may_come_twice_in_any_order_and_from_a_generator():
    X = rows_of("gaussian")
    plain = sampler_of("gaussian", "split", lambda x: [int(x[0]), int(x[1]), "last"]).fit(X)
    other = sampler_of("gaussian", "split", lambda x: iter(["last", int(x[1]), "last", int(x[0])])).fit(X)
    assert answers(plain) == answers(other)


@pytest.mark.parametrize("model", ["categorical", "bernoulli", "user"])
def test_a_model_without_keys_asks_for_a_function(model):
    with pytest.raises(ValueError, match="has no keys of its own: give a function"):
        sampler_of(model, "split", "auto").fit(rows_of(model))


@pytest.mark.parametrize("kind", CONTINUOUS)
def test_points_of_many_dimensions_need_a_function(kind):
    X = np.random.default_rng(0).normal(size=(12, 4))
    with pytest.raises(ValueError, match="up to 3 columns, not 4: give a function"):
        pt.SplitSMC(kind(), keys="auto").fit(X)
    assert len(pt.SplitSMC(kind(), keys="auto").fit(X[:, :3]).labels_) == 12


@pytest.mark.parametrize(
    "keys",
    [
        (np.array([0, 1]), np.zeros(60, np.int64)),
        (np.arange(61), np.zeros(59, np.int64)),
        (np.arange(61), np.zeros(60)),
        (np.arange(61)[::-1].copy(), np.zeros(60, np.int64)),
        (np.append(np.arange(1, 61), 60), np.zeros(60, np.int64)),
        (np.append([0, 5, 2], np.full(58, 60)), np.zeros(60, np.int64)),
    ],
)
def test_a_model_whose_keys_have_the_wrong_form(keys):
    class Wrong(pt.Gaussian):
        def keys(self, X):
            return keys

    with pytest.raises(ValueError, match=r"Wrong\.keys must return"):
        pt.SplitSMC(Wrong(), keys="auto").fit(rows_of("gaussian"))


@quick
@given(seeds, st.integers(1, 3), st.floats(0.1, 30.0))
def test_points_within_reach_share_a_cell(seed, d, distance):
    rng = np.random.default_rng(seed)
    at = rng.normal(scale=10.0 * distance, size=(50, d))
    away = rng.uniform(-1.0, 1.0, size=(50, d)) * distance
    _, a = grid.grid_keys("points", at, distance)
    _, near = grid.grid_keys("points", at + 0.999 * away, distance)
    _, finer = grid.grid_keys("points", at + 0.249 * away, distance)
    _, far = grid.grid_keys("points", at + np.sign(away) * 2.001 * distance, distance)
    a, near, finer, far = (keys.reshape(50, -1) for keys in (a, near, finer, far))
    assert a.shape[1] == 2 * 2**d
    for k in range(50):
        assert set(a[k]) & set(near[k])
        assert len(set(a[k]) & set(finer[k])) >= 2
        assert not set(a[k]) & set(far[k])
        assert (a[k, 1:] > a[k, :-1]).all()


def test_far_away_points_have_cells():
    starts, keys = grid.grid_keys("points", np.array([[1e300], [-1e300], [0.0]]), 1.0)
    assert starts.tolist() == [0, 4, 8, 12]
    assert not set(keys[:4]) & set(keys[4:8])


# ---------------------------------------------------------------------- files


def test_a_function_is_given_again(path):
    X = rows_of("gaussian")
    sampler = sampler_of("gaussian", "split", one_key).fit(X[:30])
    sampler.save(path)
    for given_again in ({}, {"keys": "auto"}):
        with pytest.raises(FileError, match=r"function for its keys: pass it"):
            pt.SplitSMC.load(path, **given_again)
    again = pt.SplitSMC.load(path, keys=one_key)
    assert again.keys is one_key
    assert answers(again.partial_fit(X[30:])) == answers(sampler.partial_fit(X[30:]))


@pytest.mark.parametrize("candidates", [None, "auto"])
def test_a_file_made_without_a_function_takes_none(path, candidates):
    sampler_of("gaussian", "split", candidates).fit(rows_of("gaussian")).save(path)
    with pytest.raises(FileError, match=f"made with keys={candidates!r}"):
        pt.SplitSMC.load(path, keys=one_key)
    assert pt.SplitSMC.load(path, keys=candidates).keys == candidates


def test_a_parameter_set_since_the_last_fit_is_kept(path):
    X = rows_of("gaussian")
    sampler = sampler_of("gaussian", "split", "auto").fit(X[:30]).set_params(keys=one_key)
    sampler.save(path)
    again = pt.SplitSMC.load(path, keys=one_key)
    assert again.keys is one_key
    assert answers(again.partial_fit(X[30:])) == answers(sampler.partial_fit(X[30:]))


def test_a_file_of_version_1_is_read(path):
    X = rows_of("gaussian")
    sampler = sampler_of("gaussian", "rejuvenation", None).fit(X[:30])
    sampler.save(path)
    header, arrays = storage.read(path)
    del header["candidates"], header["parameters"]["candidates"]
    del header["settings"][-1], header["parameters"]["longest_odds"]
    for name in ("keys", "key_counts"):
        del header["arrays"][name]
    path.write_bytes(packed(header, arrays, version=1))
    again = pt.SplitSMC.load(path)
    assert again.keys is None
    assert answers(again.partial_fit(X[30:])) == answers(sampler.partial_fit(X[30:]))


def descending_keys(header, arrays):
    arrays["keys"][[0, 1]] = arrays["keys"][[1, 0]]


def double_keys(header, arrays):
    arrays["keys"][5] = arrays["keys"][4]


def no_keys(header, arrays):
    arrays["keys"] = arrays["key_counts"] = np.zeros(0, np.int64)


def keys_without_use(header, arrays):
    header["candidates"] = None


def another_word(header, arrays):
    header["candidates"] = "grid"


def not_split(header, arrays):
    header["settings"][4] = 0


@pytest.mark.parametrize(
    "edit", [descending_keys, double_keys, no_keys, keys_without_use, another_word, not_split]
)
def test_keys_that_make_no_sense(path, edit):
    sampler_of("gaussian", "split", "auto").fit(rows_of("gaussian")).save(path)
    pt.SplitSMC.load(path)
    crafted(path, edit)
    with pytest.raises(FileError, match="damaged"):
        pt.SplitSMC.load(path)


def test_a_header_holds_no_function(path):
    sampler_of("gaussian", "split", one_key).fit(rows_of("gaussian")).save(path)
    header, arrays = storage.read(path)
    assert json.dumps(header)
    assert header["candidates"] == "function"
    assert len(arrays["key_counts"]) == 60


# ---------------------------------------------------------------------- where they do not apply


def test_smc_has_no_candidates():
    with pytest.raises(TypeError, match="keys"):
        pt.SMC(keys="auto")
    assert "keys" not in pt.SMC().get_params()
    assert "keys" in pt.Greedy().get_params()
    sampler = pt.SMC(pt.Gaussian(), 1.0, 5).fit([[0.0], [1.0]])
    assert dismantle(sampler._engine.state)[1][0] == 2
    assert len(candidates_of_row(sampler._engine.state, *EVERYTHING, 0)) == 1


def test_the_old_name_of_keys_works_for_now(path):
    X = rows_of("gaussian")
    new = sampler_of("gaussian", "split", one_key).fit(X)
    old = pt.SplitSMC(new.model, new.alpha, new.n_particles, random_state=5, candidates=one_key)
    with pytest.warns(DeprecationWarning, match="now called keys") as warned:
        old.fit(X)
    assert warned[0].filename == __file__  # or Python would not show it
    assert answers(old) == answers(new)
    new.save(path)
    with pytest.warns(DeprecationWarning, match="now called keys") as warned:
        again = pt.SplitSMC.load(path, candidates=one_key)
    assert warned[0].filename == __file__
    assert answers(again) == answers(new)
    with pytest.raises(ValueError, match="not both"):
        pt.SplitSMC(keys="auto", candidates="auto").fit(X)
