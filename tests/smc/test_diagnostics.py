"""A sampler says what it has done."""

import threading

import numpy as np
import pytest

import partita as pt
from tests.helpers.streams import rows_of, sampler_of


def test_totals_of_a_stream_that_merges_and_splits():
    X = rows_of("gaussian")
    sampler = sampler_of("gaussian", "split").fit(X)
    found = sampler.diagnostics_
    assert found.steps == len(X)
    assert found.candidates >= len(X) - 1  # each but the first met a subproblem
    assert found.kept <= found.pooled
    assert found.kept <= found.steps * sampler.n_particles
    # Every observation begins a subproblem or joins one; what is merged is one less, what is split off one more.
    born = found.steps - sum_of_joins(sampler, X)
    assert len(sampler.posterior_.subproblems) == born - found.merged + found.split
    sampler.refine()
    assert sampler.diagnostics_.steps > found.steps
    assert "steps: " in str(sampler.diagnostics_)


def sum_of_joins(sampler, X):
    """How many observations did not begin a subproblem of their own, told by watching one after the other."""
    again, joins = type(sampler)(**sampler.get_params(deep=False)), 0
    for x in X:
        before = again.diagnostics_ if hasattr(again, "_engine") else None
        n = 0 if before is None else len(again.posterior_.subproblems)
        again.partial_fit(x[None])
        after = again.diagnostics_
        merged = after.merged - (before.merged if before else 0)
        split = after.split - (before.split if before else 0)
        joins += len(again.posterior_.subproblems) - n - split + merged == 0
    return joins


@pytest.mark.parametrize("model", ["gaussian", "user"])
def test_totals_do_not_depend_on_batches(model):
    X = rows_of(model)
    whole = sampler_of(model, "split").fit(X).diagnostics_
    parts = sampler_of(model, "split").partial_fit(X[:7]).partial_fit(X[7:]).diagnostics_
    assert parts == whole


def test_a_black_box_counts_what_it_was_asked():
    box = pt.BlackBox(lambda clusters: [-2.0 - 1.5 * len(c) - 5.0 * len(c) * np.var(c) for c in clusters])
    sampler = pt.SplitSMC(box, alpha=1.0, n_particles=5).fit(np.array([[0.0], [0.2], [7.0], [0.1], [7.1]]))
    assert sampler.diagnostics_.evaluations == sampler.model_.cache_info().evaluations > 0


def test_mappings_without_a_model_are_records():
    fragments = [
        {"name": "Ada Lovelace", "born": "1815"},
        {"name": "C. Babbage"},
        {"name": "Ada Lovelace"},
    ] * 4
    sampler = pt.SplitSMC(n_particles=5, random_state=0).fit(fragments)
    assert isinstance(sampler.model_, pt.Record)
    model = pt.Record.infer(fragments).fit_prior(fragments)
    given = pt.SplitSMC(model, n_particles=5, random_state=0).fit(fragments)
    assert sampler.labels_.tolist() == given.labels_.tolist()
    assert sampler.partial_fit(fragments[:2]).labels_.shape == (14,)


def test_another_thread_may_ask_while_a_fit_goes_on():
    X = np.repeat(rows_of("gaussian"), 4, axis=0)
    expected = sampler_of("gaussian", "rejuvenation").fit(X).labels_
    sampler, stop = sampler_of("gaussian", "rejuvenation").fit(X[:10]), threading.Event()

    def poll():
        while not stop.is_set():
            assert sampler.diagnostics_.steps >= 10

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        sampler.partial_fit(X[10:])
    finally:
        stop.set()
        thread.join()
    assert sampler.labels_.tolist() == expected.tolist()


def test_points_and_mappings_are_told_apart():
    with pytest.raises(TypeError, match="mappings, which Gaussian cannot read"):
        pt.SplitSMC(pt.Gaussian()).fit([{"a": 1}])
