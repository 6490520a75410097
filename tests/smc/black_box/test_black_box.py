"""Black boxes: the same answers as a compiled model, few evaluations, a cache that only saves time."""

import copy
import math

import numpy as np
import pytest
from scipy.special import gammaln

import partita as pt
from partita.smc.moves import refine as moves
from tests.helpers import oracle
from tests.helpers.oracle import Poisson
from tests.helpers.streams import EXACT, VARIANTS, rows_of

MODEL = pt.Gaussian(shape=2.0, rate=2.0, precision=0.06)
OTHER = pt.Gaussian(shape=3.0, rate=4.0, precision=0.1)  # a surrogate that is not far off
MANY = 10**6


class Closed:
    """A compiled model's density in closed form, as a black box that counts and notes what it is asked."""

    def __init__(self, model=MODEL):
        self.log_marginal = oracle.density(model)
        self.batches = []

    def __call__(self, clusters):
        assert clusters, "a black box need not know what to do with no clusters"
        assert all(clusters)
        self.batches.append([len(c) for c in clusters])
        return [self.log_marginal(np.atleast_2d(np.array(c, float))) for c in clusters]

    def __deepcopy__(self, memo):
        return self  # copies of a sampler ask the same function


def summary(sampler):
    """What a sampler says, in numbers to compare."""
    posterior = sampler.posterior_
    factors = oracle.factors(posterior)
    return posterior.log_density(), sampler.alpha_, factors


def assert_same(a, b, tolerance=1e-9):
    """Two samplers agree in everything but rounding."""
    (density_a, alpha_a, factors_a), (density_b, alpha_b, factors_b) = summary(a), summary(b)
    assert density_a == pytest.approx(density_b, rel=tolerance, abs=tolerance)
    assert alpha_a == pytest.approx(alpha_b, rel=tolerance)
    oracle.assert_same_factors(factors_a, factors_b, tolerance)


def sampler_with(model, variant):
    kind, parameters = VARIANTS[variant]
    return kind(model, random_state=5, **parameters)


SURROGATES = {
    "none": {},
    "itself": {"surrogate": MODEL, "n_proposals": MANY},
    "another": {"surrogate": OTHER, "n_proposals": MANY},
}
each_surrogate = pytest.mark.parametrize("surrogate", SURROGATES)


# ---------------------------------------------------------------------- exactness


@pytest.mark.parametrize("variant", VARIANTS)
@each_surrogate
def test_the_same_as_the_compiled_model(variant, surrogate):
    X = rows_of("gaussian")
    compiled = sampler_with(MODEL, variant).fit(X)
    black = sampler_with(pt.BlackBox(Closed(), **SURROGATES[surrogate]), variant).fit(X)
    assert_same(compiled, black)
    oracle.check_state(black._engine.state)
    probabilities = black.predict_proba(X[:4] + 0.3)
    np.testing.assert_allclose(probabilities, compiled.predict_proba(X[:4] + 0.3), atol=1e-9)
    assert_same(compiled, black)


@pytest.mark.parametrize("variant", EXACT)
@pytest.mark.parametrize("surrogate", ["none", "itself"])
def test_refined_by_hand_the_same_as_the_compiled_model(variant, surrogate, monkeypatch):
    """Kernels replay in orders of their own; by hand the orders are the same for every model."""
    monkeypatch.setattr(moves, "stages_of", lambda engine, n: [])
    X = rows_of("gaussian", 40)
    compiled = sampler_with(MODEL, variant).fit(X).refine(2)
    black = sampler_with(pt.BlackBox(Closed(), **SURROGATES[surrogate]), variant).fit(X).refine(2)
    assert_same(compiled, black)
    oracle.check_state(black._engine.state)


@pytest.mark.parametrize("variant", ["split", "auto, rejuvenation", "greedy"])
@pytest.mark.parametrize("n_proposals", [3, MANY])
def test_a_users_model_as_surrogate(variant, n_proposals):
    X = rows_of("user", 40)
    model = MODELS_OF_COUNTS[0]
    black = pt.BlackBox(Closed(model), surrogate=MODELS_OF_COUNTS[1], n_proposals=n_proposals)
    sampler = sampler_with(black, variant).fit(X)
    oracle.check_invariants(
        sampler, oracle.Scores(model, X, sampler.alpha_), sampler.get_params().get("n_particles", 1)
    )
    if n_proposals == MANY:
        assert_same(sampler_with(model, variant).fit(X), sampler)


MODELS_OF_COUNTS = Poisson(1.0, 0.04), Poisson(2.0, 0.1)


@pytest.mark.parametrize("n_proposals", [1, 4, 20])
@pytest.mark.parametrize("variant", ["split", "rejuvenation", "smc", "greedy"])
def test_weights_are_the_black_boxs_whatever_is_proposed(n_proposals, variant):
    X = rows_of("gaussian", 40)
    sampler = sampler_with(pt.BlackBox(Closed(), OTHER, n_proposals), variant).fit(X)
    m = VARIANTS[variant][1].get("n_particles", 1)
    scores = oracle.Scores(MODEL, X, 1.0)
    oracle.check_invariants(sampler, scores, m)
    oracle.check_invariants(sampler.refine(1), scores, m)


def test_the_best_assignments_under_the_surrogate_are_proposed():
    """Without splitting and with one particle: the clusters with the highest |c|·p(x|c)."""
    X, asked = rows_of("gaussian", 50), []

    def score(clusters):
        asked.append([frozenset(map(tuple, c)) for c in clusters])
        return Closed()(clusters)

    sampler = pt.Greedy(pt.BlackBox(score, OTHER, n_proposals=3), 1.0)
    sampler.fit(X[:40])
    scores = oracle.Scores(OTHER, X, 1.0)
    for x in range(40, 50):
        labels = sampler.labels_
        clusters = oracle.partition_of(range(x), labels)
        best = sorted(clusters, key=lambda c: scores.gain(c, x), reverse=True)[:3]
        asked.clear()
        sampler.partial_fit(X[x : x + 1])
        expected = [c | {x} for c in best] + [frozenset({x})]
        assert len(asked) == 1
        assert set(asked[0]) == {frozenset(tuple(X[y]) for y in c) for c in expected}


# ---------------------------------------------------------------------- evaluations


@pytest.mark.parametrize("n_proposals", [1, 5, 12, None])
def test_evaluations_and_calls_of_each_step(n_proposals):
    score = Closed()
    sampler = pt.SplitSMC(pt.BlackBox(score, OTHER, n_proposals), 1.0, 8)
    most = 8 if n_proposals is None else n_proposals
    reached = 0
    for x, row in enumerate(rows_of("gaussian")):
        sampler.partial_fit(row[None])
        assert len(score.batches) == x + 1  # one call
        assert len(score.batches[-1]) <= most + 1
        reached = max(reached, len(score.batches[-1]))
    assert reached > min(most, 4)
    info = sampler.model_.cache_info()
    assert info.evaluations == sum(map(len, score.batches)) == info.misses
    assert info.calls == len(score.batches) == 60


def test_prediction_costs_no_more_and_leaves_nothing_behind():
    score, X = Closed(), rows_of("gaussian")
    sampler = pt.SplitSMC(pt.BlackBox(score, OTHER, 4), 1.0, 8).fit(X)
    before, entries = summary(sampler), sampler.model_.cache_info().entries
    score.batches.clear()
    probabilities = sampler.predict_proba(X[:10])
    assert len(score.batches) == 10
    assert max(map(len, score.batches)) <= 5
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert summary(sampler) == before
    assert sampler.model_.cache_info().entries == entries
    assert len(sampler._engine.scorer.evaluator.observations) == 60


def test_a_replay_finds_some_of_it_in_the_cache():
    score, X = Closed(), rows_of("gaussian", 30)
    sampler = pt.SMC(pt.BlackBox(score, OTHER), 1.0, 50, random_state=0).fit(X).refine(3)
    before = sampler.model_.cache_info()
    sampler.refine(3)
    after = sampler.model_.cache_info()
    hits, misses = after.hits - before.hits, after.misses - before.misses
    assert hits > 0.2 * misses


@pytest.mark.parametrize("cache_size", [0, 1, 17, 300])
@pytest.mark.parametrize("surrogate", ["none", "another"])
def test_a_small_cache_changes_no_answer(cache_size, surrogate):
    X = rows_of("gaussian", 40)

    def fitted(size):
        black = pt.BlackBox(Closed(), **SURROGATES[surrogate] | {"cache_size": size})
        return sampler_with(black, "auto, rejuvenation").fit(X).refine(1)

    roomy, small = fitted(10**6), fitted(cache_size)
    assert summary(small) == summary(roomy)
    few, many = small.model_.cache_info(), roomy.model_.cache_info()
    assert few.entries <= cache_size == few.cache_size
    assert few.evaluations >= many.evaluations
    assert few.hits + few.misses == many.hits + many.misses


def test_the_entry_that_was_used_last_stays():
    evaluator = pt.BlackBox(Closed(), cache_size=2).evaluator()
    numbers = evaluator.add(rows_of("gaussian", 3))
    one, two, three = numbers[:1], numbers[1:2], numbers[2:]
    for sets in ([one], [two], [one], [three], [one], [two]):
        evaluator.log_marginals(sets, "rows")
    info = evaluator.info()
    assert (info.hits, info.misses, info.entries) == (2, 4, 2)


def test_a_set_is_asked_for_once_and_in_one_order():
    asked = []

    def score(clusters):
        asked.extend(map(tuple, clusters))
        return [-float(len(c)) for c in clusters]

    evaluator = pt.BlackBox(score).evaluator()
    numbers = evaluator.add("abcd")
    sets = [numbers[[2, 0]], numbers[[0, 2]], numbers[[3, 1, 0]]]
    assert evaluator.log_marginals(sets, "rows").tolist() == [-2.0, -2.0, -3.0]
    assert asked == [("a", "c"), ("a", "b", "d")]


@pytest.mark.parametrize("surrogate", ["none", "another"])
def test_members_come_in_order_of_arrival(surrogate):
    X = rows_of("gaussian", 40)
    X = np.column_stack([np.arange(40.0) * 1e-9, X])
    closed = Closed()

    def score(clusters):
        for c in clusters:
            times = [row[0] for row in c]
            assert times == sorted(times)
        return closed([[row[1:] for row in c] for c in clusters])

    black = pt.BlackBox(score, **SURROGATES[surrogate])
    sampler_with(black, "auto, rejuvenation").fit(X).refine(2)
    pt.Gibbs(black, max_sweeps=2, random_state=0).fit(X)
    pt.Agglomerative(black).fit(X)


# ---------------------------------------------------------------------- the same answer every time


@pytest.mark.parametrize("surrogate", ["none", "another"])
def test_batching_saving_and_copying_change_nothing(surrogate, path):
    X = rows_of("gaussian", 50)
    black = pt.BlackBox(Closed(), **SURROGATES[surrogate] | {"n_proposals": 6})
    whole = sampler_with(black, "auto, rejuvenation").fit(X)
    pieces = sampler_with(black, "auto, rejuvenation")
    for rows in np.split(X, [1, 2, 10, 30]):
        pieces.partial_fit(rows)
    assert summary(pieces) == summary(whole)
    first = sampler_with(black, "auto, rejuvenation").fit(X[:30])
    first.save(path)
    loaded = type(first).load(path, model=black)
    copied = copy.deepcopy(first)
    for sampler in (first, loaded, copied):
        assert summary(sampler.partial_fit(X[30:])) == summary(whole)
        assert summary(sampler.refine(1)) == summary(copy.deepcopy(whole).refine(1))


def test_each_fit_begins_with_an_empty_cache():
    black = pt.BlackBox(Closed())
    X = rows_of("gaussian", 20)
    sampler = pt.SplitSMC(black, 1.0, 5).fit(X)
    labels = pt.SplitSMC(MODEL, 1.0, 5).fit(X[::-1]).labels_
    assert np.array_equal(sampler.fit(X[::-1]).labels_, labels)
    assert sampler.model_.cache_info().calls == 20
    assert black.cache_info().calls == 0
    assert sampler.model_ is not black


# ---------------------------------------------------------------------- candidates


def one_key(x):
    return ["all"]


def cell(x):
    """Neighbours share a key, most others do not."""
    return [(round(x[0] / 3.0), round(x[1] / 3.0))]


@each_surrogate
def test_a_key_that_all_share_changes_nothing(surrogate):
    X, new = rows_of("gaussian", 40), rows_of("gaussian", 10, seed=8)
    black = pt.BlackBox(Closed(), **SURROGATES[surrogate] | {"n_proposals": 6})
    exact = pt.SplitSMC(black, 1.0, 10, rejuvenation=1, random_state=5).fit(X)
    indexed = pt.SplitSMC(black, 1.0, 10, rejuvenation=1, random_state=5, keys=one_key).fit(X)
    assert summary(indexed) == summary(exact)
    assert np.array_equal(indexed.predict_proba(new), exact.predict_proba(new))
    assert summary(indexed.refine(1)) == summary(exact.refine(1))


@each_surrogate
def test_candidates_the_same_as_with_the_compiled_model(surrogate):
    X, new = rows_of("gaussian", 50), rows_of("gaussian", 25, seed=8)
    parameters = {"keys": cell, "rejuvenation": 1, "random_state": 5}
    compiled = pt.SplitSMC(MODEL, 1.0, 10, **parameters).fit(X)
    black = pt.SplitSMC(pt.BlackBox(Closed(), **SURROGATES[surrogate]), 1.0, 10, **parameters).fit(X)
    assert_same(black, compiled)
    ours, theirs = black.candidate_report(new), compiled.candidate_report(new)
    np.testing.assert_allclose(ours.reached, theirs.reached, atol=1e-9)
    assert np.array_equal(ours.scored, theirs.scored)
    assert 0 < ours.missed.sum() < 25
    np.testing.assert_allclose(black.predict_proba(new), compiled.predict_proba(new), atol=1e-9)
    assert_same(black.refine(1), compiled.refine(1))


@each_surrogate
def test_only_the_candidates_are_asked_for(surrogate):
    closed = Closed()
    black = pt.BlackBox(closed, **SURROGATES[surrogate])
    X = 100.0 * np.arange(60)[:, None] + np.zeros((1, 2))
    sampler = pt.SplitSMC(black, 1.0, 5, keys=lambda x: [round(x[0] / 100)]).fit(X)
    assert sampler.labels_.max() == 59
    assert max(map(len, closed.batches)) == 1  # all are alone, and meet nobody
    closed.batches.clear()
    sampler.partial_fit(X[7:9] + 0.1)
    assert closed.batches == [[1, 2], [1, 2]]
    assert sampler.predict(X[7:8]).tolist() == [7]


def test_candidates_of_words_and_a_file(path):
    """Observations that are no arrays; a file asks for the function, and whether the score is the same."""
    black = pt.BlackBox(letters, surrogate=Letters(), n_proposals=2)
    sampler = pt.SplitSMC(black, 1.0, 10, keys=set, random_state=0).fit(WORDS[:6])
    sampler.save(path)
    loaded = pt.SplitSMC.load(path, model=black, keys=set)
    for each in (sampler, loaded):
        report = each.candidate_report(["teat", "xyz", "zoz", "oo"], n=3, random_state=0)
        assert report.reached.min() > 0.9
        assert report.scored.max() == 1
        assert each.partial_fit(WORDS[6:]).labels_.tolist() == TRUE
    with pytest.raises(pt.smc.files.storage.FileError, match="another score"):
        pt.SplitSMC.load(path, pt.BlackBox(lambda clusters: [-9.0] * len(clusters), Letters(), 2), set)


def test_a_black_box_has_the_keys_of_its_surrogate():
    X = 100.0 * np.arange(30)[:, None]
    black = pt.BlackBox(Closed(), surrogate=pt.Gaussian(rate=0.1, precision=1e-6))
    sampler = pt.SplitSMC(black, 1.0, 5, keys="auto").fit(X)
    assert sampler.candidate_report(X + 0.1).scored.tolist() == [1] * 30
    with pytest.raises(ValueError, match="BlackBox has no keys of its own"):
        pt.SplitSMC(pt.BlackBox(Closed()), keys="auto").fit(X)


# ---------------------------------------------------------------------- observations of any kind


def letters(clusters):
    """Words are spelt with the cluster's letters."""
    found = []
    for words in clusters:
        used = set().union(*words)
        found.append(-3.0 * len(used) - math.log(len(used)) * sum(map(len, words)))
    return found


WORDS = ["tea", "zoo", "ate", "eat", "oz", "tee", "ooze", "zozo", "at"]
TRUE = [0, 1, 0, 0, 1, 0, 1, 1, 0]


@pytest.mark.parametrize("kind", [pt.SplitSMC, pt.SMC, pt.Greedy, pt.Gibbs, pt.Agglomerative])
def test_words(kind):
    words = list(WORDS)
    words.remove("ooze")
    true = [label for label, word in zip(TRUE, WORDS, strict=True) if word != "ooze"]
    estimator = kind(pt.BlackBox(letters), alpha=1.0, random_state=0)
    assert estimator.fit(words).labels_.tolist() == true
    if hasattr(estimator, "predict"):
        assert estimator.predict(["teat", "xyz"]).tolist() == [0, -1]
        assert not hasattr(estimator, "n_features_in_")


class Letters(pt.Model):
    """A model of words whose statistics are counts of letters: a surrogate for texts."""

    reads_rows = False

    def validate(self, X):
        for row, word in enumerate(X):
            if not isinstance(word, str):
                raise ValueError(f"row {row} is no string")
        return list(X)

    def statistics(self, X):
        return np.array([[word.count(letter) for letter in "aeotz"] for word in X], float)

    def log_marginal(self, totals, sizes):
        return (gammaln(totals + 0.5) - gammaln(0.5)).sum(axis=1) - gammaln(totals.sum(axis=1) + 2.5)


def test_words_with_a_surrogate_and_a_file(path):
    black = pt.BlackBox(letters, surrogate=Letters(), n_proposals=2)
    sampler = pt.SplitSMC(black, 1.0, 10, random_state=0).fit(WORDS[:5])
    assert sampler.labels_.tolist() == TRUE[:5]
    with pytest.raises(ValueError, match="row 1 is no string"):
        sampler.partial_fit(["tea", 3])
    sampler.save(path)
    loaded = pt.SplitSMC.load(path, model=black)
    assert loaded.fit_predict(WORDS).tolist() == sampler.fit_predict(WORDS).tolist()


@pytest.mark.parametrize(
    "observations",
    [
        np.arange(6),
        np.arange(6.0) / 3.0,
        np.arange(12, dtype=np.int32).reshape(6, 2),
        np.arange(24.0).reshape(6, 2, 2),
        [1.5, 2, True, None, math.nan, "x"],
        [{"name": ["a", "b"], "n": 1}, {}, [], [[1]], "ü\u2028", -0.0],
    ],
)
def test_observations_come_back_from_a_file(observations, path):
    seen = []

    def score(clusters):
        seen.extend(clusters)
        return [-float(len(c)) for c in clusters]

    black = pt.BlackBox(score)
    sampler = pt.SplitSMC(black, 1.0, 5).fit(observations)
    sampler.save(path)
    loaded = pt.SplitSMC.load(path, model=black)
    kept, back = sampler._engine.observations, loaded._engine.observations
    assert [type(x) for x in kept] == [type(x) for x in back]
    assert repr(kept) == repr(back)
    assert all(isinstance(c, list) for c in seen)


@pytest.mark.parametrize("wrong", [(1, 2), {1: 2}, object(), {"a": {2}}, 1j, b"bytes"])
def test_observations_that_cannot_be_saved_are_named(wrong, path):
    sampler = pt.SplitSMC(pt.BlackBox(lambda clusters: [-float(len(c)) for c in clusters]), 1.0, 5)
    sampler.fit(["fine", wrong])
    with pytest.raises(ValueError, match=r"row 1: cannot save"):
        sampler.save(path)
    assert not path.exists()


@pytest.mark.parametrize(
    "X", ["text", b"bytes", {"a": 1}, {1, 2}, 3, None, np.float64(1.0), [], np.empty((0, 2))]
)
def test_what_is_no_sequence_is_refused(X):
    sampler = pt.SplitSMC(pt.BlackBox(letters))
    with pytest.raises((TypeError, ValueError), match="X "):
        sampler.fit(X)
    assert not hasattr(sampler, "model_")


def test_later_changes_to_the_array_do_not_matter():
    for surrogate in (None, OTHER):
        X = rows_of("gaussian", 30)
        sampler = pt.SplitSMC(pt.BlackBox(Closed(), surrogate), 1.0, 5).fit(X[:20])
        twin = copy.deepcopy(sampler)
        rest = X[20:].copy()
        X[:] = 0.0
        assert summary(sampler.partial_fit(rest)) == summary(twin.partial_fit(rest))


# ---------------------------------------------------------------------- failures


class Fused(Closed):
    """Fails at one chosen call."""

    def __init__(self):
        super().__init__()
        self.calls, self.remaining, self.failure = 0, math.inf, "raise"

    def __call__(self, clusters):
        self.calls += 1
        self.remaining -= 1
        result = np.array(super().__call__(clusters))
        if self.remaining != 0:
            return result
        if self.failure == "raise":
            raise ZeroDivisionError("the black box fails")
        if self.failure in ("nan", "inf"):
            result[-1] = float(self.failure)
            return result
        return {"shape": np.append(result, 0.0), "text": ["x"] * len(result), "none": None}[self.failure]


OPERATIONS = {
    "a batch": lambda sampler, X: sampler.partial_fit(X),
    "fit": lambda sampler, X: sampler.fit(X),
    "refine": lambda sampler, X: sampler.refine(1),
    "predict": lambda sampler, X: sampler.predict_proba(X),
}


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("failure", ["raise", "nan", "inf", "shape", "text", "none"])
@pytest.mark.parametrize("surrogate", [None, OTHER])
def test_a_failing_black_box_changes_nothing(operation, failure, surrogate):
    first, batch, last = np.split(rows_of("gaussian", 36), [24, 29])
    fuse = Fused()
    sampler = pt.SplitSMC(
        pt.BlackBox(fuse, surrogate, cache_size=50), 1.0, 6, rejuvenation=1, random_state=2
    ).fit(first)
    before, twin = summary(sampler), copy.deepcopy(sampler)
    fuse.calls = 0
    OPERATIONS[operation](copy.deepcopy(sampler), batch)
    calls, fuse.failure = fuse.calls, failure
    for k in sorted({1, 2, 3, min(5, calls)}):  # later ones may come to nothing: much is remembered
        fuse.remaining = k
        error = ZeroDivisionError if failure == "raise" else ValueError
        with pytest.raises(error, match="fails" if failure == "raise" else "score") as caught:
            OPERATIONS[operation](sampler, batch)
        note = caught.value.__notes__[0] if failure == "raise" else str(caught.value)
        assert note.startswith(("row ", "observation "))
        fuse.remaining = math.inf
        assert summary(sampler) == before
    # Other rows now have the places of those that failed, and nothing is remembered of those.
    assert summary(sampler.partial_fit(last)) == summary(twin.partial_fit(last))
    assert len(sampler._engine.scorer.evaluator.observations) <= 24 + 7


def test_the_row_at_which_it_fails_is_named():
    fuse, X = Fused(), rows_of("gaussian", 20)
    sampler = pt.SplitSMC(pt.BlackBox(fuse), 1.0, 5).fit(X[:10])
    fuse.remaining, fuse.failure = 4, "nan"
    with pytest.raises(ValueError, match=r"row 3: score returned nan for a cluster of \d+"):
        sampler.partial_fit(X[10:])
    for kind in (pt.Gibbs, pt.Agglomerative):
        fuse.remaining = 1
        with pytest.raises(ValueError, match=r"row 19: score returned nan for a cluster of 1"):
            kind(pt.BlackBox(fuse)).fit(X)


def test_minus_infinity_rules_a_cluster_out():
    def pairs(clusters):
        return [-np.inf if len(c) > 2 else float(len(c)) for c in clusters]

    for kind in (pt.SplitSMC, pt.Greedy, pt.Gibbs, pt.Agglomerative):
        labels = kind(pt.BlackBox(pairs), alpha=0.1, random_state=0).fit(list("abcdef")).labels_
        assert np.bincount(labels).max() == 2
    sampler = pt.SplitSMC(pt.BlackBox(pairs), 0.1, 20, rejuvenation=2, random_state=0).fit(
        ["a", "b", "c", "d", "e"]
    )
    assert max(np.bincount(row).max() for s in sampler.posterior_.subproblems for row in s.partitions) == 2
    couples = pt.BlackBox(lambda clusters: [0.0 if len(c) < 3 or "z" in c else -np.inf for c in clusters])
    couples = pt.SplitSMC(couples, 0.1, 5, rejuvenation=3, random_state=0)
    with pytest.raises(ValueError, match="impossible without this observation"):
        couples.fit(list("abzcdefghi"))
    impossible = pt.SplitSMC(pt.BlackBox(lambda clusters: [-np.inf if "c" in c else 0.0 for c in clusters]))
    with pytest.raises(ValueError, match="row 2: impossible under the model"):
        impossible.fit(list("abcd"))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"score": 3}, "score must be a function"),
        ({"surrogate": "gaussian"}, "surrogate must be a partita model"),
        ({"surrogate": pt.BlackBox(letters)}, "no black box itself"),
        ({"n_proposals": 0}, "n_proposals"),
        ({"cache_size": -1}, "cache_size"),
        ({"temperature": 0.0}, "temperature"),
        ({"offset": math.nan}, "offset"),
        ({"surrogate": pt.Gaussian(rate=-1.0)}, "rate"),
    ],
)
def test_parameters_that_make_no_sense(parameters, message):
    for estimator in (pt.SplitSMC, pt.Gibbs):
        with pytest.raises((TypeError, ValueError), match=message):
            estimator(pt.BlackBox(**{"score": Closed()} | parameters)).fit(rows_of("gaussian", 10))


# ---------------------------------------------------------------------- files


def test_a_file_needs_the_same_black_box(path):
    black = pt.BlackBox(Closed(), OTHER, 5)
    pt.SplitSMC(black, 1.0, 5).fit(rows_of("gaussian", 20)).save(path)
    with pytest.raises(ValueError, match=r"pass it, load\(path, model=BlackBox"):
        pt.SplitSMC.load(path)
    others = [
        pt.BlackBox(Closed(OTHER), OTHER, 5),
        pt.BlackBox(Closed(), MODEL, 5),
        pt.BlackBox(Closed(), None, 5),
        pt.BlackBox(Closed(), OTHER, 6),
        pt.BlackBox(Closed(), OTHER, 5, temperature=2.0),
        pt.BlackBox(Closed(), OTHER, 5, offset=2.0),
        MODEL,
    ]
    for other in others:
        with pytest.raises(ValueError, match="was made with"):
            pt.SplitSMC.load(path, model=other)
    loaded = pt.SplitSMC.load(path, model=pt.BlackBox(Closed(), OTHER, 5, cache_size=7))
    assert loaded.n_features_in_ == 2
    assert loaded.model_.cache_info().evaluations == 16


def test_a_file_without_what_has_been_removed(path):
    X = rows_of("gaussian", 30)
    sampler = sampler_with(pt.BlackBox(Closed(), OTHER, 5), "split").fit(X[:20])
    sampler.remove(7).remove(0)
    sampler.save(path)
    loaded = pt.SplitSMC.load(path, model=sampler.model)
    assert [row.tolist() for row in loaded._engine.observations] == np.delete(X[:20], [0, 7], 0).tolist()
    assert summary(loaded.partial_fit(X[20:])) == summary(sampler.partial_fit(X[20:]))


# ---------------------------------------------------------------------- offline


@pytest.mark.parametrize("surrogate", [None, OTHER, MODELS_OF_COUNTS[1]])
@pytest.mark.parametrize("cache_size", [0, 10**6])
def test_gibbs_is_the_same_as_with_the_compiled_model(surrogate, cache_size):
    X = np.abs(rows_of("gaussian", 30)).round()[:, :1]
    given = {"surrogate": surrogate, "max_sweeps": 15, "random_state": 1}
    compiled = pt.Gibbs(MODEL, 1.0, **given).fit(X)
    black = pt.Gibbs(pt.BlackBox(Closed(), cache_size=cache_size), 1.0, **given).fit(X)
    np.testing.assert_allclose(black.history_.score, compiled.history_.score, rtol=1e-9)
    assert np.array_equal(black.labels_, compiled.labels_)
    if surrogate is not None and cache_size:
        info = black.model_.cache_info()
        assert info.evaluations <= 30 + 2 * 15 * 30  # the paper: one or two an update


@pytest.mark.parametrize("batch_size", [None, 20])
def test_agglomerative_is_the_same_as_with_the_compiled_model(batch_size):
    X = rows_of("gaussian", 40)
    compiled = pt.Agglomerative(MODEL, 1.0, batch_size=batch_size, random_state=1).fit(X)
    for black in (pt.BlackBox(Closed()), pt.BlackBox(Closed(), OTHER, cache_size=0)):
        found = pt.Agglomerative(black, 1.0, batch_size=batch_size, random_state=1).fit(X)
        assert np.array_equal(found.children_, compiled.children_)
        assert found.log_density() == pytest.approx(compiled.log_density(), rel=1e-9)


# ---------------------------------------------------------------------- calibration


def test_temperature_and_offset():
    X = rows_of("gaussian", 30)
    closed = Closed()

    def hot(clusters):
        return 3.0 * np.array(closed(clusters)) - 2.0

    plain = pt.SplitSMC(pt.BlackBox(closed), 1.0, 20).fit(X)
    tempered = pt.SplitSMC(pt.BlackBox(hot, temperature=3.0, offset=2.0 / 3.0), 1.0, 20).fit(X)
    assert_same(plain, tempered)
    shifted = pt.SplitSMC(pt.BlackBox(closed, offset=math.log(5.0)), 1.0, 20).fit(X)
    expected = pt.SplitSMC(pt.BlackBox(closed), 5.0, 20).fit(X)
    oracle.assert_same_factors(summary(shifted)[2], summary(expected)[2])


def normal(sharpness):
    """log p(c) of numbers around a normal mean, more certain than it should be."""

    def score(clusters):
        n = np.array([len(c) for c in clusters], float)
        total = np.array([np.sum(c) for c in clusters])
        squares = np.array([np.sum(np.square(c)) for c in clusters])
        return sharpness * 0.5 * (9.0 * total**2 / (1.0 + 9.0 * n) - squares - np.log1p(9.0 * n))

    return score


@pytest.mark.parametrize("sharpness", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("surrogate", [None, pt.Gaussian(5.0, 5.0, 0.0, 1.0 / 9.0)])
def test_calibration_recovers_temperature_and_concentration(sharpness, surrogate):
    found = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        label = pt.DirichletProcess(15.0).sample(500, random_state=seed)
        X = 3.0 * rng.normal(size=500)[label] + rng.normal(size=500)
        calls = []

        def score(clusters, calls=calls):
            calls.append(len(clusters))
            return normal(sharpness)(clusters)

        model = pt.BlackBox(score, surrogate, 7, temperature=9.0)
        fitted = model.fit_prior(X[:, None], label, n_alternatives=8, random_state=seed)
        assert len(calls) == 1  # one batched pass
        assert calls[0] < 500 * (8 + 4)
        assert (model.temperature, fitted.n_proposals, fitted.score) == (9.0, 7, score)
        found.append([math.log(fitted.temperature / sharpness), fitted.offset - math.log(15.0)])
    error = np.mean(found, axis=0)
    assert abs(error[0]) < 0.2
    assert abs(error[1]) < 0.5


def test_calibration_makes_the_truth_score_highest():
    """A score that is far too flat merges what it should not; calibrated, it finds the labels."""
    rng = np.random.default_rng(1)
    label = np.repeat(np.arange(8), 12)
    X = 20.0 * np.arange(8.0)[label] + rng.normal(size=96)

    def wide(clusters):
        return [-0.002 * len(c) * np.var(c) - 0.1 for c in clusters]

    order = rng.permutation(96)
    black = pt.BlackBox(wide)
    assert pt.SplitSMC(black, 1.0, 5).fit(X[order]).labels_.max() < 7
    fitted = black.fit_prior(X[order], label[order])
    truth = pt.Gibbs(fitted, 1.0, init=label[order], max_sweeps=0).fit(X[order])
    sampler = pt.SplitSMC(fitted, 1.0, 20, random_state=0).fit(X[order]).refine(3)
    assert pt.bcubed(label[order], sampler.labels_).f1 == 1.0
    assert sampler.posterior_.log_density() == pytest.approx(truth.log_density())


def test_calibration_with_words_and_bad_labels():
    black = pt.BlackBox(letters)
    fitted = black.fit_prior(WORDS, TRUE)
    assert fitted.temperature > 0.0
    for X, labels, message in (
        (WORDS, None, "labelled data"),
        (WORDS, TRUE[:-1], "one label each"),
        (WORDS[:1], [0], "alone says nothing"),
    ):
        with pytest.raises(ValueError, match=message):
            black.fit_prior(X, labels)
    with pytest.raises(ValueError, match="alpha"):
        black.fit_prior(WORDS, TRUE, alpha=0.0)


def test_a_black_box_expects_clusters_as_large_as_its_surrogate_does():
    assert pt.BlackBox(Closed(), pt.Record({"name": pt.Text()}, size=3.0)).expected_size == 3.0
    assert pt.BlackBox(Closed(), pt.Gaussian()).expected_size is None
    assert pt.BlackBox(Closed()).expected_size is None
    assert pt.BlackBox(Closed(), pt.Record({"name": pt.Text()}, size=3.0)).size_belief == 1.0
    assert pt.BlackBox(Closed()).size_belief == pt.BlackBox(Closed(), pt.Gaussian()).size_belief == 0.75
