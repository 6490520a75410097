"""Asking a black box ahead: the same result to the last bit, in fewer calls, whatever happens."""

import copy
import math

import numpy as np
import pytest

import partita as pt
from partita.smc.black_box.lookahead import Foresight
from partita.smc.black_box.rehearsal import Rehearsal
from partita.smc.state.state import dismantle
from tests.helpers import oracle
from tests.helpers.effort import effort
from tests.helpers.oracle import Poisson
from tests.helpers.streams import VARIANTS, rows_of

MODEL = pt.Gaussian(shape=2.0, rate=2.0, precision=0.06)
SURROGATES = {
    "none": None,
    "another": pt.Gaussian(shape=3.0, rate=4.0, precision=0.1),
    "a bad one": pt.Gaussian(shape=50.0, rate=1.0, precision=9.0),
    "a user's": Poisson(2.0, 0.1),
}
each_surrogate = pytest.mark.parametrize("surrogate", SURROGATES)
DENSITIES = {}


class Counting:
    """A density in closed form that notes what it is asked, and may be told to fail."""

    def __init__(self, model=MODEL, fails=None):
        self.log_marginal, self.fails, self.batches = oracle.density(model), fails, []
        self.known = DENSITIES.setdefault(repr(model), {})

    def __call__(self, clusters):
        assert clusters
        self.batches.append(len(clusters))
        if self.fails is not None and (answer := self.fails(clusters)) is not None:
            return answer
        return [self._of(np.atleast_2d(np.array(c, float))) for c in clusters]

    def _of(self, rows):
        key = rows.tobytes()
        if key not in self.known:
            self.known[key] = self.log_marginal(rows)
        return self.known[key]

    def __deepcopy__(self, memo):
        return self  # copies of a sampler ask the same function


def sampler_of(variant, surrogate, lookahead, score=None, **parameters):
    kind, settings = VARIANTS[variant]
    black = pt.BlackBox(
        score or Counting(), SURROGATES[surrogate], lookahead=lookahead, **{"n_proposals": 9} | parameters
    )
    return kind(black, random_state=5, **settings)


def contents(sampler, path):
    """The bytes of its file: everything that it knows."""
    sampler.save(path)
    return path.read_bytes()


def calls(sampler):
    return sampler.model_.cache_info().calls


def data_for(surrogate, n=40, seed=3):
    X = rows_of("gaussian", n, seed)
    return np.abs(X).round()[:, :1] if surrogate == "a user's" else X


# ---------------------------------------------------------------------- the same result


@pytest.mark.parametrize("variant", VARIANTS)
@each_surrogate
def test_the_same_bytes_in_fewer_calls(variant, surrogate, path):
    X = data_for(surrogate)
    one = sampler_of(variant, surrogate, 1).fit(X)
    expected = contents(one, path)
    for lookahead in (2, 7, 64, 1000):
        found = sampler_of(variant, surrogate, lookahead).fit(X)
        assert contents(found, path) == expected
        assert calls(found) < calls(one)
        info = found.model_.cache_info()
        assert info.evaluations == info.misses + info.ahead
        assert info.ahead_used <= info.ahead
        assert info.misses + info.ahead_used <= one.model_.cache_info().misses  # less what came again
        oracle.check_state(found._engine.state)


@pytest.mark.parametrize("seed", range(effort(4, 40)))
def test_the_same_through_a_sampler_s_whole_life(seed, path):
    """Batches, predictions, constraints, removals, refinement and files, with caches of any size."""
    rng = np.random.default_rng(seed)
    surrogate = list(SURROGATES)[seed % 4]
    variant = ["split", "auto, rejuvenation", "rejuvenation", "smc", "greedy", "auto"][seed % 6]
    X, new = data_for(surrogate, 45, seed), data_for(surrogate, 9, seed + 100)
    ends = np.sort(rng.choice(np.arange(1, 40), 3, replace=False)).tolist()
    pairs = [sorted(rng.choice(20, 2, replace=False).tolist()) for _ in range(2)]
    parameters = {"n_proposals": int(rng.integers(1, 15)), "cache_size": [10**5, 300, 17, 1, 0][seed % 5]}

    def life(lookahead):
        said = []
        sampler = sampler_of(variant, surrogate, lookahead, **parameters)
        for rows in np.split(X[:40], ends):
            said.append(contents(sampler.partial_fit(rows), path))
        said.append(sampler.predict_proba(new).tolist())
        sampler.constrain(together=pairs[:1], apart=pairs[1:] if set(pairs[0]) != set(pairs[1]) else [])
        said.append(contents(sampler, path))
        sampler.remove(3).partial_fit(X[40:])
        said.append(contents(sampler.refine(2), path))
        loaded = type(sampler).load(path, model=sampler.model)
        said.append(contents(copy.deepcopy(loaded).partial_fit(new), path))
        return said, calls(sampler)

    expected, most = life(1)
    for lookahead in (3, 1000):
        found, fewer = life(lookahead)
        assert found == expected
        assert fewer < most or parameters["cache_size"] < 2


def cell(x):
    """Neighbours share a key, most others do not."""
    return [(round(x[0] / 3.0), round(x[1] / 3.0))]


@pytest.mark.parametrize("candidates", ["auto", cell])
@pytest.mark.parametrize("rejuvenation", [0, 1])
def test_with_candidates(candidates, rejuvenation, path):
    X, found = rows_of("gaussian", 60), {}
    for lookahead in (1, 8):
        black = pt.BlackBox(Counting(), SURROGATES["another"], 5, lookahead=lookahead)
        sampler = pt.SplitSMC(black, 1.0, 10, keys=candidates, rejuvenation=rejuvenation, random_state=5)
        for rows in np.split(X, [11, 40]):
            sampler.partial_fit(rows)
        found[lookahead] = contents(sampler, path), sampler.refine(1).labels_.tolist(), calls(sampler)
    assert found[8][:2] == found[1][:2]
    assert found[8][2] < found[1][2]


@pytest.mark.parametrize("surrogate", ["none", "another"])
def test_constraints_of_observations_that_come_later(surrogate, path):
    """What must be together or apart counts in a rehearsal, too."""
    X, found = rows_of("gaussian", 40), {}
    for lookahead in (1, 16):
        sampler = sampler_of("split", surrogate, lookahead).fit(X[:20])
        sampler.constrain(together=[(0, 5), (1, 6), (5, 9)], apart=[(0, 1), (2, 3)])
        sampler.partial_fit(X[20:])
        for x in (0, 1, 5, 9):
            sampler._engine.observe_again(x)
        found[lookahead] = contents(sampler, path), calls(sampler)
        assert sampler.labels_[0] == sampler.labels_[5] != sampler.labels_[1]
    assert found[16][0] == found[1][0]
    assert found[16][1] < found[1][1]


def test_a_rehearsal_leaves_everything_as_it_was():
    """Even working memory: what is there is copied before, and compared after."""
    X = rows_of("gaussian", 40)
    for surrogate in ("none", "another"):
        sampler = pt.SplitSMC(pt.BlackBox(Counting(), SURROGATES[surrogate]), 1.0, 10, keys=cell)
        engine = sampler.fit(X[:20])._engine
        engine.store(engine.encode(X[20:]), engine.keys(X[20:]))
        engine.loop.placing = 20, -1
        before, numbers = [part.copy() for part in dismantle(engine.state)[0]], engine.scorer.numbers.copy()
        rest = dismantle(engine.state)[1:5]
        entries = dict(engine.scorer.evaluator.cache)
        rehearsal = Rehearsal(engine)
        assert rehearsal.wanted_until(1000)
        assert rehearsal.engine.n_observations == (40 if surrogate == "another" else 20)
        assert engine.n_observations == 20
        for old, now in zip(before, dismantle(engine.state)[0], strict=True):
            assert old.tobytes() == now.tobytes()
        for old, now in zip(rest, dismantle(engine.state)[1:5], strict=True):
            assert np.array_equal(old, now)
        assert np.array_equal(engine.scorer.numbers, numbers)
        assert dict(engine.scorer.evaluator.cache) == entries
        engine.loop.placing = -1, -1
        engine.run(40)
        whole = pt.SplitSMC(pt.BlackBox(Counting(), SURROGATES[surrogate]), 1.0, 10, keys=cell).fit(X)
        assert np.array_equal(sampler.labels_, whole.labels_)


# ---------------------------------------------------------------------- what it costs


def test_a_fraction_of_the_calls_for_a_few_evaluations_more():
    rng = np.random.default_rng(0)
    X = 30.0 * rng.normal(size=(12, 2))[rng.integers(12, size=150)] + rng.normal(size=(150, 2))
    found = {}
    for lookahead in (1, 16):
        score = Counting()
        black = pt.BlackBox(score, SURROGATES["another"], 6, lookahead=lookahead)
        info = pt.SplitSMC(black, 1.0, 20, random_state=0).fit(X).model_.cache_info()
        assert max(score.batches) <= lookahead * 7
        assert (info.calls, info.evaluations) == (len(score.batches), sum(score.batches))
        found[lookahead] = info
    assert found[16].calls < found[1].calls / 5
    assert found[16].evaluations < 1.5 * found[1].evaluations
    assert found[1].ahead == 0
    assert found[16].ahead_used > 0.6 * found[16].ahead


@each_surrogate
def test_nothing_is_asked_for_twice(surrogate):
    asked = set()

    def twice(clusters):
        for c in clusters:
            members = tuple(map(id, c))
            assert members not in asked
            asked.add(members)

    score = Counting(fails=twice)
    sampler_of("auto, rejuvenation", surrogate, 8, score).fit(data_for(surrogate)).refine(1)
    assert len(asked) == sum(score.batches)


def test_a_bad_surrogate_is_soon_distrusted():
    """Where little can be foreseen, little is asked for."""
    X = rows_of("gaussian", 60)
    one, many = (sampler_of("smc", "a bad one", lookahead).fit(X) for lookahead in (1, 1000))
    assert many.model_.cache_info().evaluations < 6 * one.model_.cache_info().evaluations


def test_how_far_to_look():
    foresight = Foresight(16)
    assert foresight.reach(None, 100) == 16
    for _ in range(20):
        reach = foresight.reach(1, 100)
    assert reach == 2
    for _ in range(20):
        reach = foresight.reach(reach, 100)
    assert reach == 16
    assert foresight.reach(16, 3) == 3
    assert foresight.trust == 1.0


def test_rows_one_by_one_cost_what_they_did():
    X = rows_of("gaussian", 40)
    found = {}
    for lookahead in (1, 16):
        sampler = sampler_of("split", "another", lookahead)
        for row in X:
            sampler.partial_fit(row[None])
        found[lookahead] = sampler.model_.cache_info()
    assert found[1] == found[16]


@each_surrogate
def test_predictions_are_made_together(surrogate):
    X, new = data_for(surrogate), data_for(surrogate, 10, seed=8)
    one, many = (sampler_of("split", surrogate, lookahead).fit(X) for lookahead in (1, 4))
    score, entries = many.model.score, many.model_.cache_info().entries
    score.batches.clear()
    assert many.predict_proba(new).tolist() == one.predict_proba(new).tolist()
    assert len(score.batches) == 3
    assert many.model_.cache_info().entries == entries
    assert len(many._engine.scorer.evaluator.observations) == 40
    assert many.predict_proba(new[:1]).tolist() == one.predict_proba(new[:1]).tolist()


# ---------------------------------------------------------------------- how it is set


class Eager(Counting):
    lookahead = 5


def test_the_function_may_say_how_far_to_look():
    assert pt.BlackBox(Counting()).reach == 1
    assert pt.BlackBox(Eager()).reach == 5
    assert pt.BlackBox(Eager(), lookahead=2).reach == 2
    X = rows_of("gaussian", 40)
    own, given = (
        pt.SplitSMC(black, 1.0, 10, random_state=0).fit(X).model_.cache_info()
        for black in (
            pt.BlackBox(Eager(), SURROGATES["another"]),
            pt.BlackBox(Counting(), SURROGATES["another"], lookahead=5),
        )
    )
    assert own == given
    assert own.calls < 40


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "many", True, math.nan])
def test_bad_lookaheads(wrong):
    with pytest.raises(ValueError, match="lookahead must be a whole number of at least 1"):
        pt.SplitSMC(pt.BlackBox(Counting(), lookahead=wrong)).fit(rows_of("gaussian", 5))
    score = Counting()
    score.lookahead = wrong
    with pytest.raises(ValueError, match="lookahead"):
        pt.SplitSMC(pt.BlackBox(score)).fit(rows_of("gaussian", 5))


def test_a_file_may_be_read_with_another_lookahead(path):
    X = rows_of("gaussian", 40)
    first = sampler_of("split", "another", 16).fit(X[:30])
    first.save(path)
    other = sampler_of("split", "another", 1).model
    loaded = pt.SplitSMC.load(path, model=other)
    assert loaded._engine.at_once == 1
    assert loaded.partial_fit(X[30:]).labels_.tolist() == first.partial_fit(X[30:]).labels_.tolist()


# ---------------------------------------------------------------------- failures


def holding(row, answer):
    """Fail where a cluster holds a certain row."""

    def fails(clusters):
        held = [any(np.array_equal(x, row) for x in c) for c in clusters]
        if not any(held):
            return None
        if answer == "raise":
            raise ZeroDivisionError("the black box fails")
        found = np.array(Counting()(clusters))
        if answer == "shape":
            return found[1:]
        found[held] = answer
        return found

    return fails


@pytest.mark.parametrize("answer", ["raise", "shape", math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("surrogate", ["none", "another"])
@pytest.mark.parametrize("rejuvenation", [0, 1])
def test_the_row_that_fails_is_named_though_it_was_asked_for_before(answer, surrogate, rejuvenation, path):
    X = rows_of("gaussian", 40)
    score = Counting(fails=holding(X[33], answer))
    variant = "rejuvenation" if rejuvenation else "split"
    sampler = sampler_of(variant, surrogate, 16, score).fit(X[:20])
    before = contents(sampler, path)
    with pytest.raises(ZeroDivisionError if answer == "raise" else ValueError) as caught:
        sampler.partial_fit(X[20:])
    message = caught.value.__notes__[0] if answer == "raise" else str(caught.value)
    assert message.startswith("row 13: ")
    assert contents(sampler, path) == before
    # Without that row, all is as if it had never been tried.
    plain = sampler_of(variant, surrogate, 1).fit(X[:20])
    for each in (sampler, plain):
        each.partial_fit(np.delete(X[20:], 13, axis=0))
    assert contents(sampler, path) == contents(plain, path)


def test_an_error_in_a_prediction_names_its_row():
    X, new = rows_of("gaussian", 30), rows_of("gaussian", 8, seed=9)
    for answer, kind in (("raise", ZeroDivisionError), (math.nan, ValueError), (-math.inf, ValueError)):
        score = Counting()
        sampler = sampler_of("split", "another", 16, score).fit(X)
        score.fails = holding(new[5], answer)
        with pytest.raises(kind) as caught:
            sampler.predict_proba(new)
        message = caught.value.__notes__[0] if answer == "raise" else str(caught.value)
        assert message.startswith("row 5: ")
        assert len(sampler._engine.scorer.evaluator.observations) == 30
        assert len(sampler.predict_proba(new[:5])) == 5


def test_a_batch_that_is_too_large_is_no_error(path):
    """Say, for the memory of a GPU: what is needed is asked for by itself."""

    def full(clusters):
        if len(clusters) > 12:
            raise MemoryError("too many clusters")

    X = rows_of("gaussian", 40)
    score = Counting(fails=full)
    sampler = sampler_of("split", "another", 16, score).fit(X)
    one = sampler_of("split", "another", 1).fit(X)
    assert contents(sampler, path) == contents(one, path)
    assert max(score.batches) > 12
    assert calls(sampler) < 2 * calls(one)


class Stopping(BaseException):
    """As Ctrl-C does."""


def test_an_interruption_is_none_of_its_business(path):
    def stop(clusters):
        raise Stopping

    X, score = rows_of("gaussian", 40), Counting()
    sampler = sampler_of("split", "another", 16, score).fit(X[:20])
    before = contents(sampler, path)
    score.fails = stop
    with pytest.raises(Stopping):
        sampler.partial_fit(X[20:])
    score.fails = None
    assert contents(sampler, path) == before
    whole = sampler_of("split", "another", 1).fit(X)
    assert contents(sampler.partial_fit(X[20:]), path) == contents(whole, path)
