"""Partitions against which the odds are too long go, and nothing else."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import partita as pt
from partita.smc.files import storage
from partita.smc.sampler import ODDS
from partita.smc.state.state import LONGEST
from tests.helpers import oracle
from tests.helpers.effort import examples
from tests.helpers.files import packed
from tests.helpers.people import fragments
from tests.helpers.streams import answers, rows_of, sampler_of, saved_and_loaded

KINDS = [pt.Gaussian, pt.Categorical, oracle.Poisson]
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


def draw_problem(kind, seed, n):
    """A model with random hyperparameters, data, and their scores for α = 1.3."""
    rng = np.random.default_rng(seed)
    d = 1 if kind is oracle.Poisson else int(rng.integers(1, 3))
    model = oracle.random_model(kind, rng, d)
    X = oracle.random_data(model, rng, n, d)
    return model, X, oracle.Scores(model, X, 1.3)


def kept(scores, n, odds):
    """The partitions of n observations that are left where those too improbable go after each of them."""
    found = [frozenset()]
    for x in range(n):
        found = [oracle.extended(partition, c, x) for partition in found for c in (*partition, frozenset())]
        values = [scores(partition) for partition in found]
        least = max(values) - math.log(odds)
        found = [partition for partition, value in zip(found, values, strict=True) if value >= least]
    return set(found)


@every_kind
@pytest.mark.parametrize("odds", [1, 2, 30, ODDS])
def test_what_is_kept_is_what_enumeration_keeps(kind, odds):
    """One subproblem, and room for all: each step drops just the partitions that are too improbable."""

    @examples(8)
    @given(st.integers(0, 2**32 - 1))
    def check(seed):
        model, X, scores = draw_problem(kind, seed, 6)
        sampler = pt.SMC(model, 1.3, oracle.BELL[6], longest_odds=odds).fit(X)
        (particles,) = oracle.check_invariants(sampler, scores, oracle.BELL[6]).values()
        assert set(particles) == kept(scores, 6, odds)

    check()


@every_kind
@pytest.mark.parametrize("m", [3, 20])
def test_no_partition_of_a_subproblem_is_too_improbable(kind, m):
    """Also after refinement, re-observation, removal and conditioning."""

    @examples(6)
    @given(st.integers(0, 2**32 - 1), st.integers(0, 2))
    def check(seed, rejuvenation):
        model, X, scores = draw_problem(kind, seed, 20)
        options = {"rejuvenation": rejuvenation, "random_state": 0}
        sampler = pt.SplitSMC(model, 1.3, m, longest_odds=30, **options)
        for x in range(len(X)):
            assert_likely(sampler.partial_fit(X[x : x + 1]), scores, m)
        assert_likely(sampler.refine(2), scores, m)

    check()


def assert_likely(sampler, scores, m, odds=30):
    for particles in oracle.check_invariants(sampler, scores, m).values():
        values = [scores(partition) for partition in particles]
        assert max(values) - min(values) <= math.log(odds) + 1e-9


@pytest.mark.parametrize("model", ["gaussian", "multivariate", "categorical", "bernoulli", "user"])
def test_odds_that_nothing_has_change_nothing(model):
    X = rows_of(model)
    plain, odds = sampler_of(model, "split"), sampler_of(model, "split").set_params(longest_odds=LONGEST)
    assert answers(plain.fit(X)) == answers(odds.fit(X))
    assert answers(plain.refine()) == answers(odds.refine())


def people(n=60):
    """What is said of people, and a model of it."""
    said = [row["properties"] for row in fragments(n)[0]]
    return said, pt.Record.infer(said).fit_prior(said)


@pytest.mark.parametrize("keys", [None, "auto"])
def test_odds_that_nothing_has_change_nothing_in_records(keys):
    said, model = people()
    options = {"n_particles": 8, "keys": keys, "random_state": 0}
    plain, odds = (pt.SplitSMC(model, longest_odds=odds, **options).fit(said) for odds in (None, LONGEST))
    assert answers(plain) == answers(odds)
    assert answers(plain.refine()) == answers(odds.refine())


def test_records_keep_fewer_partitions_and_the_same_best_one():
    said, model = people()
    every, likely = (
        pt.SplitSMC(model, n_particles=20, keys="auto", longest_odds=odds, random_state=0).fit(said)
        for odds in (None, ODDS)
    )
    assert likely.labels_.tolist() == every.labels_.tolist()
    counts = [sum(len(s.partitions) for s in sampler.posterior_.subproblems) for sampler in (likely, every)]
    assert counts[0] < counts[1]
    assert likely.diagnostics_.scored < every.diagnostics_.scored


@pytest.mark.parametrize("bad", [0, -1, 1.5, True, "long", LONGEST + 1])
def test_odds_are_whole_numbers(bad):
    with pytest.raises(ValueError, match="longest_odds must be a whole number"):
        pt.SplitSMC(pt.Gaussian(), longest_odds=bad).fit([[0.0], [1.0]])


@pytest.mark.parametrize("options", [{"weights": "marginal"}, {"resampling": "optimal"}])
def test_odds_need_exact_weights(options):
    with pytest.raises(ValueError, match="longest_odds needs exact weights"):
        pt.SplitSMC(pt.Gaussian(), longest_odds=10, **options).fit([[0.0], [1.0]])


def test_files_keep_the_odds():
    X = rows_of("gaussian")
    sampler = sampler_of("gaussian", "split").set_params(longest_odds=30).fit(X[:30])
    loaded = saved_and_loaded(sampler)
    assert loaded.longest_odds == 30
    assert answers(loaded) == answers(sampler)
    assert answers(loaded.partial_fit(X[30:])) == answers(sampler.partial_fit(X[30:]))


def test_files_of_the_version_before_load_without_odds(tmp_path):
    """Version 3 had no odds, neither among the settings nor among the parameters."""
    X = rows_of("gaussian")
    sampler = sampler_of("gaussian", "split").fit(X[:30])
    path = tmp_path / "old.partita"
    sampler.save(path)
    header, arrays = storage.read(path)
    header["settings"].pop()
    del header["parameters"]["longest_odds"]
    path.write_bytes(packed(header, arrays, 3))
    loaded = pt.SplitSMC.load(path)
    assert loaded.longest_odds is None
    assert answers(loaded.partial_fit(X[30:])) == answers(sampler.partial_fit(X[30:]))
