"""What every model and every algorithm guarantees: each property once, for all of them.

The list of models is ``MODELS`` in :mod:`tests.helpers.every`, that of algorithms ``VARIANTS`` in
:mod:`tests.helpers.streams`.
"""

import copy
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import partita as pt
from tests.helpers import oracle
from tests.helpers.effort import effort, examples
from tests.helpers.every import MODELS, take
from tests.helpers.streams import EXACT, VARIANTS, answers

ALPHA = 1.3
N = effort(30, 60)  # rows of a stream
each_model = pytest.mark.parametrize("name", MODELS)
each_variant = pytest.mark.parametrize("variant", VARIANTS)
seeds = st.integers(0, 2**32 - 1)


class Scores(oracle.Scores):
    """The scores of clusters of any model's rows, by its closed form."""

    def __init__(self, problem, alpha=ALPHA):
        self.problem, self.X, self.alpha = problem, problem.rows, alpha
        self.known = {frozenset(): 0.0}

    def marginal(self, cluster):
        if cluster not in self.known:
            self.known[cluster] = self.problem.log_marginal(take(self.X, sorted(cluster)))
        return self.known[cluster]


def log_marginal(model, rows):
    """log p(c) of all rows as one cluster, as everybody can ask for it."""
    return float(model.log_likelihood([rows])[0])


# ---------------------------------------------------------------------- what a model is


@each_model
def test_log_p_is_the_closed_form_in_any_order(name):
    """So that clusters are exchangeable: p(c) is a function of the set."""

    @examples(effort(8, 15))
    @given(seeds, st.integers(1, 30))
    def check(seed, n):
        rng = np.random.default_rng(seed)
        problem = MODELS[name].drawn(rng, n)
        expected = problem.log_marginal(problem.rows)
        for order in (np.arange(n), rng.permutation(n)):
            found = log_marginal(problem.model, take(problem.rows, order))
            assert found == pytest.approx(expected, abs=1e-8, rel=1e-10)

    check()


@each_model
def test_gains_are_differences_of_log_p(name):
    """One particle: a further row joins c with weight |c|·p(c ∪ {x}) / p(c), or is alone with α·p(x)."""

    @examples(effort(4, 8))
    @given(seeds)
    def check(seed):
        problem = MODELS[name].drawn(np.random.default_rng(seed), 7)
        sampler = pt.Greedy(problem.model, ALPHA).fit(take(problem.rows, range(6)))
        scores, labels = Scores(problem), sampler.labels_
        clusters = [frozenset(np.flatnonzero(labels == k).tolist()) for k in range(labels.max() + 1)]
        expected = oracle.normalised({c: scores.gain(c, 6) for c in (*clusters, frozenset())})
        found = sampler.predict_proba(take(problem.rows, [6]))
        np.testing.assert_allclose(found[0], list(expected.values()), rtol=1e-7, atol=1e-12)

    check()


@each_model
def test_fitting_leaves_the_model_alone(name):
    problem = MODELS[name].fixed(8)
    before = repr(problem.model.get_params())
    sampler = pt.SplitSMC(problem.model, 1.0, 5, random_state=0).fit(problem.rows).refine(1)
    sampler.predict(problem.rows)
    assert sampler.model is problem.model
    assert repr(problem.model.get_params()) == before
    assert repr(clone(problem.model).get_params()) == before


# ---------------------------------------------------------------------- exactness


def assert_exact(sampler, problem, n):
    """Every answer of the posterior is that of enumeration."""
    scores = Scores(problem)
    exact = {p: scores(p) for p in oracle.all_partitions(n)}
    best, exact = max(exact.values()), oracle.normalised(exact)
    posterior = sampler.posterior_
    assert oracle.product(oracle.factors(posterior)) == pytest.approx(exact, abs=1e-8)
    i, j = np.indices((n, n))
    np.testing.assert_allclose(posterior.together(i, j), oracle.together(exact, n), rtol=0, atol=1e-8)
    counts = dict(zip(*map(np.ndarray.tolist, posterior.n_clusters()), strict=True))
    expected = oracle.cluster_counts(exact)
    assert [counts.get(k, 0.0) for k in expected] == pytest.approx(list(expected.values()), abs=1e-8)
    assert posterior.log_density() == pytest.approx(best, abs=1e-8)
    assert scores(oracle.partition_of(range(n), sampler.labels_)) == pytest.approx(best, abs=1e-8)


@each_model
@pytest.mark.parametrize("kind", [pt.SplitSMC, pt.SMC], ids=lambda kind: kind.__name__)
def test_with_room_for_every_partition_the_posterior_is_that_of_enumeration(name, kind):
    @examples(effort(2, 3))
    @given(seeds)
    def check(seed):
        n = effort(6, 7)
        problem = MODELS[name].drawn(np.random.default_rng(seed), n)
        sampler = kind(problem.model, ALPHA, oracle.BELL[n]).fit(problem.rows)
        assert_exact(sampler, problem, n)
        assert_exact(sampler.refine(1), problem, n)

    check()


@each_model
def test_a_removed_observation_was_never_there(name):
    """With room for every partition: the posterior is that of the others."""
    n = 6
    for gone in (0, 3, n - 1):
        problem = MODELS[name].drawn(np.random.default_rng(gone), n)
        sampler = pt.SplitSMC(problem.model, ALPHA, oracle.BELL[n]).fit(problem.rows).remove(gone)
        kept = [k for k in range(n) if k != gone]
        assert_exact(sampler, problem._replace(rows=take(problem.rows, kept)), n - 1)


@each_model
def test_seen_again_and_again_every_score_is_that_of_the_members(name):
    """Rows are taken out and put back; no digit is lost on the way."""

    @examples(effort(2, 1))
    @given(seeds, st.integers(1, 12))
    def check(seed, m):
        rng = np.random.default_rng(seed)
        problem = MODELS[name].drawn(rng, 15)
        sampler = pt.SplitSMC(problem.model, ALPHA, m, random_state=0).fit(problem.rows)
        scores = Scores(problem)
        for step in range(effort(60, 150)):
            sampler._engine.observe_again(int(rng.integers(15)))
            if step % 20 == 19:
                sampler._engine._posterior = None
                oracle.check_invariants(sampler, scores, m)

    check()


TWO_MODES = {"Record of a date", "Record of several"}  # whose six rows one at a time cannot get across


@each_model
def test_the_offline_methods_score_their_labels(name):
    """And a chain that begins at the best partition of all goes on and still knows it in the end."""
    problem = MODELS[name].fixed(6)
    scores = Scores(problem)
    best = max(oracle.all_partitions(6), key=scores)
    start = [next(k for k, c in enumerate(best) if x in c) for x in range(6)]
    chain = pt.Gibbs(problem.model, ALPHA, max_sweeps=60, random_state=0).fit(problem.rows)
    knowing = pt.Gibbs(problem.model, ALPHA, init=start, max_sweeps=30, random_state=0).fit(problem.rows)
    merged = pt.Agglomerative(problem.model, ALPHA).fit(problem.rows)
    for fitted in (chain, knowing, merged):
        found = oracle.partition_of(range(6), fitted.labels_)
        assert fitted.log_density() == pytest.approx(scores(found), abs=1e-8)
    assert knowing.log_density() == pytest.approx(scores(best), abs=1e-8)
    if name not in TWO_MODES:
        assert chain.log_density() == pytest.approx(scores(best), abs=1e-8)


# ---------------------------------------------------------------------- the same answer every time


def sampler_of(name, variant):
    kind, parameters = VARIANTS[variant]
    return kind(MODELS[name].fixed(N).model, random_state=5, **parameters)


@cache
def rows_of(name):
    return MODELS[name].fixed(N).rows


def filed(sampler, name, path):
    """The sampler after it went through a file."""
    sampler.save(path)
    return type(sampler).load(path, model=sampler.model if MODELS[name].needs_model else None)


@cache
def uninterrupted(name, variant):
    return answers(sampler_of(name, variant).fit(rows_of(name)))


@each_model
@each_variant
def test_any_batching_gives_the_same_answer_to_the_bit(name, variant):
    rows = rows_of(name)
    rng = np.random.default_rng(len(name) + len(variant))
    cuts = [np.arange(1, len(rows)), *(np.sort(rng.integers(0, len(rows), 4)) for _ in range(effort(1, 10)))]
    for ends in cuts:
        sampler = sampler_of(name, variant)
        for first, end in zip([0, *ends], [*ends, len(rows)], strict=True):
            if first < end:
                sampler.partial_fit(take(rows, range(first, end)))
        assert answers(sampler) == uninterrupted(name, variant)


@each_model
@each_variant
def test_files_and_copies_go_on_to_the_bit(name, variant, path):
    """At some points the sampler goes through a file, at others it is copied; the copied one stays."""
    rows = rows_of(name)
    sampler, ends = sampler_of(name, variant), [1, 2, len(rows) // 2, len(rows)]
    for first, end in zip([0, *ends], ends, strict=False):
        sampler.partial_fit(take(rows, range(first, end)))
        before, old = answers(sampler), sampler
        sampler = filed(sampler, name, path) if end % 2 else copy.deepcopy(sampler)
        assert answers(sampler) == before
        if end == 2:
            sampler.partial_fit(take(rows, [0]))
            assert answers(old) == before
            sampler = filed(old, name, path)
    assert answers(sampler) == uninterrupted(name, variant)


@each_model
@pytest.mark.parametrize("variant", EXACT)
def test_refining_never_lowers_the_density_and_goes_on_from_a_file(name, variant, path):
    sampler = sampler_of(name, variant).fit(rows_of(name))
    loaded, before = filed(sampler, name, path), sampler.posterior_.log_density()
    again = take(rows_of(name), [0, 3])
    for each in (sampler.refine(2), loaded.refine(1).refine(1)):
        assert each.posterior_.log_density() >= before - 1e-9
    loaded = filed(loaded, name, path)
    one, other = (answers(each.partial_fit(again)) for each in (sampler, loaded))
    if name.startswith(("Record", "Ngram")):  # a file has no tables: they are counted anew, and rounded anew
        assert one["log_density"] == pytest.approx(other["log_density"], abs=1e-9)
    else:
        assert one == other


@each_model
@each_variant
def test_fit_forgets_what_was_fitted_before(name, variant):
    sampler = sampler_of(name, variant).fit(take(rows_of(name), range(9, 0, -1)))
    for _ in range(2):
        assert answers(sampler.fit(rows_of(name))) == uninterrupted(name, variant)


# ---------------------------------------------------------------------- calls that change nothing


@each_model
@pytest.mark.parametrize("variant", ["split", "auto, rejuvenation", "smc", "greedy"])
def test_prediction_changes_nothing(name, variant, tmp_path):
    """Neither what the sampler says, nor what it keeps, nor what it will say; and each row is by itself."""
    rows, half = rows_of(name), len(rows_of(name)) // 2
    sampler = sampler_of(name, variant).fit(take(rows, range(half)))
    before, new = answers(sampler), take(rows, [half, 0, half + 1])
    sampler.save(tmp_path / "before")
    found = sampler.predict_proba(new)
    assert found.shape == (3, sampler.labels_.max() + 2)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(found, [sampler.predict_proba(take(new, [k]))[0] for k in range(3)])
    sampler.predict(new)
    assert answers(sampler) == before
    sampler.save(tmp_path / "after")
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()
    for k in range(half, len(rows)):
        sampler.partial_fit(take(rows, [k])).predict_proba(new)
    assert answers(sampler) == uninterrupted(name, variant)


@each_model
@pytest.mark.parametrize("method", ["fit", "partial_fit", "predict_proba", "predict"])
def test_rows_that_are_refused_change_nothing(name, method):
    rows, half = rows_of(name), len(rows_of(name)) // 2
    sampler = sampler_of(name, "auto, rejuvenation").fit(take(rows, range(half)))
    before = answers(sampler)
    with pytest.raises((ValueError, TypeError)):
        getattr(sampler, method)(MODELS[name].bad)
    assert answers(sampler) == before
    rest = take(rows, range(half, len(rows)))
    assert answers(sampler.partial_fit(rest)) == uninterrupted(name, "auto, rejuvenation")


# ---------------------------------------------------------------------- that all this says something


@each_model
def test_the_streams_have_doubts(name):
    """Or else the comparisons above would show little: most algorithms differ from one another."""
    distinct = {str(uninterrupted(name, variant)["probabilities"]) for variant in VARIANTS}
    assert len(distinct) >= 6
    assert max(map(len, uninterrupted(name, "split")["probabilities"])) > 10
    assert {len(p) for p in uninterrupted(name, "greedy")["probabilities"]} == {1}


@each_model
def test_the_seed_matters_where_something_is_drawn(name):
    found = {
        str(answers(sampler_of(name, "optimal").set_params(random_state=seed).fit(rows_of(name))))
        for seed in range(4)
    }
    assert len(found) > 1
