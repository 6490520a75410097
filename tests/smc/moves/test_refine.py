"""Refinement and rejuvenation: never worse, always a valid posterior, and better where the order misled."""

import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

import partita as pt
from tests.helpers import oracle
from tests.helpers.effort import examples
from tests.helpers.people import fragments

KINDS = [pt.Gaussian, pt.MultivariateGaussian, pt.Categorical, pt.Bernoulli, oracle.Poisson]
SAMPLERS = [pt.SplitSMC, pt.SMC, pt.Greedy]
seeds = st.integers(0, 2**32 - 1)
quick = examples(6)
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
every_sampler = pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: sampler.__name__)


def draw_problem(kind, seed, n=24):
    """A model with random hyperparameters, data, and their scores for α = 1.3."""
    rng = np.random.default_rng(seed)
    d = 1 if kind is oracle.Poisson else int(rng.integers(1, 3))
    model = oracle.random_model(kind, rng, d)
    X = oracle.random_data(model, rng, n, d)
    return model, X, oracle.Scores(model, X, 1.3)


def make(sampler, model, m, **options):
    """A sampler with m particles, or with one if it is greedy; and how many it has."""
    if sampler is pt.Greedy:
        return pt.Greedy(model, 1.3, **options), 1
    return sampler(model, 1.3, m, **options), m


def mass(found, scores):
    """Log of the unnormalised posterior mass on all clusterings that the particles stand for.

    Of all distributions on them the exact weights are nearest the posterior, KL(p̂‖p) = −log of this share.
    """
    return sum(logsumexp([scores(p) for p in particles]) for particles in found.values())


@every_sampler
@every_kind
def test_refining_never_makes_it_worse(kind, sampler):
    @quick
    @given(seeds, st.integers(1, 15))
    def check(seed, m):
        model, X, scores = draw_problem(kind, seed)
        fitted, m = make(sampler, model, m, random_state=seed % 1000)
        found = oracle.check_invariants(fitted.fit(X), scores, m)
        density, before = fitted.posterior_.log_density(), mass(found, scores)
        for _ in range(3):
            assert fitted.refine() is fitted
            found = oracle.check_invariants(fitted, scores, m)
            assert fitted.posterior_.log_density() >= density - 1e-9
            density = fitted.posterior_.log_density()
            if sampler is pt.SMC:  # one subproblem: nothing is ever joined
                assert mass(found, scores) >= before - 1e-9
                before = mass(found, scores)

    check()


@every_kind
def test_the_stream_goes_on_after_refining(kind):
    """What refinement writes is a state like any other: later observations go through it."""
    for seed in range(3):
        model, X, scores = draw_problem(kind, seed)
        sampler = pt.SplitSMC(model, 1.3, 8, random_state=0).fit(X[:14])
        for x in range(14, len(X)):
            sampler.refine()
            sampler.partial_fit(X[x : x + 1])
            oracle.check_invariants(sampler, scores, 8)


@every_sampler
def test_refining_does_improve(sampler):
    """Over twenty streams, with two particles, it finds better clusterings in a good part of them."""
    better = 0
    for seed in range(20):
        model, X, _ = draw_problem(pt.Gaussian, seed, 40)
        fitted, _ = make(sampler, model, 2, random_state=0)
        before = fitted.fit(X).posterior_.log_density()
        better += fitted.refine(2).posterior_.log_density() > before + 1e-6
    assert better >= 5


HARD = {  # orders in which small sets of particles lose the best clustering on the way
    "moved": [-1.0, 1.8, 0.8, 0.2, 1.7, -0.4, 1.2, 0.0],
    "joined": [0.1, -2.7, -0.7, -1.7, -1.3, 4.7, -0.9, 1.5],
    "divided": [-2.3, 3.1, -0.5, -1.2, -1.2, 0.0, -4.1, -1.8],
}


@every_sampler
@pytest.mark.parametrize("case", HARD)
def test_refining_finds_the_optimum_that_the_order_hid(case, sampler):
    X = np.array(HARD[case])[:, None]
    model = pt.Gaussian(2.0, 0.2, 0.0, 0.05)
    scores = oracle.Scores(model, X, 1.3)
    optimum = max(map(scores, oracle.all_partitions(len(X))))
    fitted, m = make(sampler, model, 2, random_state=0)
    assert fitted.fit(X).posterior_.log_density() < optimum - 0.3
    fitted.refine(10)
    oracle.check_invariants(fitted, scores, m)
    assert fitted.posterior_.log_density() == pytest.approx(optimum, abs=1e-9)
    assert scores(oracle.partition_of(range(len(X)), fitted.labels_)) == pytest.approx(optimum, abs=1e-9)


def test_an_exact_posterior_stays_exact():
    """Where every partition is kept there is nothing to find."""
    X = np.array(HARD["moved"][:6])[:, None]
    model = pt.Gaussian(2.0, 0.2, 0.0, 0.05)
    exact = oracle.posterior(oracle.Scores(model, X, 1.3))
    sampler = pt.SplitSMC(model, 1.3, oracle.BELL[6]).fit(X).refine(2)
    (found,) = oracle.factors(sampler.posterior_).values()
    assert found == pytest.approx(exact, abs=1e-9)


@every_sampler
@every_kind
@pytest.mark.parametrize("rejuvenation", [1, 3])
def test_rejuvenation_keeps_the_invariants(kind, sampler, rejuvenation):
    for seed in range(2):
        model, X, scores = draw_problem(kind, seed)
        fitted, m = make(sampler, model, 6, rejuvenation=rejuvenation, random_state=seed)
        for x in range(len(X)):
            oracle.check_invariants(fitted.partial_fit(X[x : x + 1]), scores, m)


@every_kind
def test_the_seed_determines_the_result(kind):
    """Rejuvenation and refinement depend on the data, the settings and random_state, not on the batches."""
    model, X, _ = draw_problem(kind, 1)

    def run(seed, batches=1):
        sampler = pt.SplitSMC(model, 1.3, 5, rejuvenation=2, random_state=seed)
        for batch in np.array_split(X, batches):
            sampler.partial_fit(batch)
        rejuvenated = oracle.factors(sampler.posterior_)
        return rejuvenated, oracle.factors(sampler.refine(2).posterior_)

    for seed in range(3):
        assert run(seed) == run(seed) == run(seed, batches=5)


def test_different_seeds_go_different_ways():
    differ = 0
    for problem in range(10):
        model, X, _ = draw_problem(pt.Gaussian, problem, 40)
        samplers = [pt.SplitSMC(model, 1.3, 2, rejuvenation=1, random_state=seed) for seed in range(5)]
        found = [sampler.fit(X).posterior_.log_density() for sampler in samplers]
        differ += max(found) > min(found) + 1e-6
    assert differ >= 2


def test_rejuvenation_helps_on_average():
    """With four particles on twenty streams, three re-observations a step gain more than they lose."""
    gains = []
    for seed in range(20):
        model, X, _ = draw_problem(pt.Gaussian, seed, 40)
        plain = pt.SplitSMC(model, 1.3, 4).fit(X).posterior_.log_density()
        more = pt.SplitSMC(model, 1.3, 4, rejuvenation=3, random_state=0).fit(X).posterior_.log_density()
        gains.append(more - plain)
    assert np.mean(gains) > 0
    assert sum(gain > 1e-6 for gain in gains) > 2 * sum(gain < -1e-6 for gain in gains)


def test_refine_learns_nothing_about_alpha():
    """With α learnt along the stream, refinement leaves it alone, and weights are scores under it."""
    model, X, _ = draw_problem(pt.Gaussian, 3)
    sampler = pt.SplitSMC(model, "auto", 5, random_state=0).fit(X)
    alpha, density = sampler.alpha_, sampler.posterior_.log_density()
    sampler.refine(2)
    assert sampler.alpha_ == alpha
    assert sampler.posterior_.log_density() >= density - 1e-9
    oracle.check_invariants(sampler, X, 5)


@pytest.mark.parametrize(
    "options",
    [{"resampling": scheme} for scheme in ("multinomial", "stratified", "optimal")]
    + [{"weights": "marginal"}],
)
def test_refine_needs_exact_weights(options):
    X = np.array([[0.0], [1.0], [5.0]])
    sampler = pt.SplitSMC(pt.Gaussian(), 1.0, 4, random_state=0, **options).fit(X)
    before = oracle.factors(sampler.posterior_)
    with pytest.raises(ValueError, match="refine needs exact weights"):
        sampler.refine()
    assert oracle.factors(sampler.posterior_) == before


def test_refine_takes_a_whole_number_of_sweeps():
    sampler = pt.SplitSMC(pt.Gaussian(), 1.0, 4).fit([[0.0], [1.0]])
    before = oracle.factors(sampler.posterior_)
    assert oracle.factors(sampler.refine(0).posterior_) == before
    for bad in (-1, 1.5, True, "2"):
        with pytest.raises(ValueError, match="sweeps"):
            sampler.refine(bad)


def test_refine_of_one_observation_changes_nothing():
    sampler = pt.SplitSMC(pt.Gaussian(), 1.0, 4).fit([[0.0]])
    density = sampler.posterior_.log_density()
    assert sampler.refine().posterior_.log_density() == density


# ---------------------------------------------------------------------- of some


def slots_of(sampler, rows):
    """The subproblems of some observations, each as a set."""
    found = [frozenset(s.observations) for s in sampler.posterior_.subproblems]
    return {s for s in found if s & set(rows)}


@every_kind
def test_refining_some_is_never_worse_and_leaves_the_others(kind):
    @quick
    @given(seeds, st.integers(1, 15), st.lists(st.integers(0, 23), max_size=5))
    def check(seed, m, of):
        model, X, scores = draw_problem(kind, seed)
        fitted, m = make(pt.SplitSMC, model, m, random_state=seed % 1000)
        fitted.fit(X)
        touched, others = slots_of(fitted, of), slots_of(fitted, range(24)) - slots_of(fitted, of)
        density = fitted.posterior_.log_density()
        fitted.refine(of=of)
        oracle.check_invariants(fitted, scores, m)
        assert fitted.posterior_.log_density() >= density - 1e-9
        gone = others - slots_of(fitted, range(24))
        assert len(gone) <= len(touched)  # each may have taken in one neighbour

    check()


def test_refining_all_as_some_finds_what_refining_all_finds():
    X = np.random.default_rng(0).normal(0.0, 4.0, (60, 1))
    every, some = (pt.SplitSMC(pt.Gaussian(rate=0.1), 1.0, 5, random_state=0).fit(X) for _ in range(2))
    before = every.posterior_.log_density()
    every.refine(4)
    some.refine(4, of=range(60))
    assert min(every.posterior_.log_density(), some.posterior_.log_density()) > before
    assert some.posterior_.log_density() == pytest.approx(every.posterior_.log_density(), abs=2.0)


def test_the_cost_of_refining_some_is_bounded():
    """No more than 2·n·most observations are made again, and larger subproblems stay as they are."""
    X = np.random.default_rng(1).normal(0.0, 4.0, (120, 1))
    sampler = pt.SplitSMC(pt.Gaussian(rate=0.1), 1.0, 5, random_state=0).fit(X)
    before, largest = (
        sampler.diagnostics_.steps,
        max(len(s.observations) for s in sampler.posterior_.subproblems),
    )
    assert largest > 8
    of = list(range(100, 120))
    large = {s for s in slots_of(sampler, range(120)) if len(s) > 8}
    sampler.refine(of=of, most=8)
    assert 0 < sampler.diagnostics_.steps - before <= 2 * len(of) * 8
    assert large <= slots_of(sampler, range(120))
    density = sampler.posterior_.log_density()
    sampler.refine(of=[])
    assert sampler.posterior_.log_density() == density


def test_refining_some_after_a_removal_counts_those_that_are_left():
    X = np.random.default_rng(2).normal(0.0, 4.0, (30, 1))
    sampler = pt.SplitSMC(pt.Gaussian(rate=0.1), 1.0, 5, random_state=0).fit(X).remove(3)
    sampler.refine(of=range(29))
    assert len(sampler.labels_) == 29
    with pytest.raises(ValueError, match="no observation 29: there are 29"):
        sampler.refine(of=[29])
    with pytest.raises(ValueError, match="of must be a sequence of observations' numbers"):
        sampler.refine(of=[0.5])
    with pytest.raises(ValueError, match="most"):
        sampler.refine(of=[0], most=0)


# ---------------------------------------------------------------------- by several


def in_digits(sampler):
    """The posterior, to the last bit."""
    return [
        (s.observations.tolist(), s.partitions.tolist(), [p.hex() for p in s.probabilities.tolist()])
        for s in sampler.posterior_.subproblems
    ]


def test_any_number_of_workers_finds_the_same():
    """In more subproblems than are looked at at the same time, with some of them constrained."""
    X = np.random.default_rng(5).normal(0.0, 300.0, (400, 1))
    found = []
    for n_jobs in (None, 1, 2, 3, -1):
        sampler = pt.SplitSMC(pt.Gaussian(rate=0.1, precision=1e-5), 50.0, 5, random_state=0).fit(X)
        sampler.constrain(together=[(0, 1)], apart=[(2, 3)])
        assert len(sampler.posterior_.subproblems) > 50
        found.append((in_digits(sampler.refine(2, n_jobs=n_jobs)), sampler.diagnostics_))
    assert all(other == found[0] for other in found)


@pytest.mark.parametrize("longest_odds", [None, 1000])
def test_any_number_of_workers_finds_the_same_in_records(longest_odds):
    said = [row["properties"] for row in fragments(150)[0]]
    model = pt.Record.infer(said).fit_prior(said)
    found = []
    for n_jobs in (1, 2, 3):
        options = {"keys": "auto", "longest_odds": longest_odds, "random_state": 0}
        sampler = pt.SplitSMC(model, 10.0, 8, **options).fit(said)
        found.append(in_digits(sampler.refine(n_jobs=n_jobs)))
        found.append(in_digits(sampler.refine(of=range(100, 150), most=20, n_jobs=n_jobs)))
    assert found[0] == found[2] == found[4]
    assert found[1] == found[3] == found[5]


def test_stages_are_kept_and_change_nothing():
    """A sampler that has refined goes on as one that was saved, or copied, in between."""
    X = np.random.default_rng(6).normal(0.0, 4.0, (60, 1))
    one, other = (pt.SplitSMC(pt.Gaussian(rate=0.1), 1.0, 5, random_state=0).fit(X) for _ in range(2))
    one.refine(2)
    other = copy.deepcopy(other.refine())
    assert in_digits(other.refine()) == in_digits(one)


@pytest.mark.parametrize("bad", [0, -2, 1.5, True, "all"])
def test_workers_are_counted_in_whole_numbers(bad):
    sampler = pt.SplitSMC(pt.Gaussian(), 1.0, 4).fit([[0.0], [1.0]])
    before = in_digits(sampler)
    with pytest.raises(ValueError, match="n_jobs must be a whole number of at least 1"):
        sampler.refine(n_jobs=bad)
    assert in_digits(sampler) == before
