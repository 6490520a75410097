"""The reliability curve without labels: against the truth of what it assumes, and when it must not answer."""

import json

import numpy as np
import pytest

import partita as pt
from partita.metrics.compared import likeness, sampled_rows
from partita.metrics.left_out import EDGES, AttributeReliability, Pairs, bins_of, told_by
from partita.metrics.unlabelled import combined
from tests.helpers.posteriors import certain_posterior

N = 3000  # pairs in question
STRANGERS = 20_000


def generated(rng, share, within=0.8, between=0.1, spread=0.1):
    """Pairs as the formulas assume them, each of a group of its own, and whether they are true.

    Without the attribute they have probability z, of which share(z) are true; the attribute agrees at rates ``within``
    and ``between``, and the whole posterior is Bayes' rule with these rates.
    """
    z = np.concatenate([rng.beta(0.6, 0.6, N), np.full(N, 0.995), np.zeros(STRANGERS)])
    true = rng.random(len(z)) < np.where(z > 0.0, share(z), 0.0)
    agree = rng.random(len(z)) < np.where(true, within, between)
    alike = np.where(agree, 1.0, rng.uniform(0.0, 0.3, len(z)))
    ratio = np.where(agree, within / between, (1 - within) / (1 - between))
    odds = np.where(z > 0.0, z, 1e-9) / (1.0 - z) * ratio
    others = np.clip(np.where(true, 0.7, 0.4) + spread * rng.standard_normal(len(z)), 0.0, 1.0)
    first = 2 * np.arange(len(z))
    return Pairs(first, first + 1, odds / (1.0 + odds), z, alike, others), true


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("power", [0.4, 1.0, 2.0])
def test_the_share_is_that_of_true_pairs_if_the_assumptions_hold(seed, power):
    """Too unsure, honest, too sure."""
    rng = np.random.default_rng(seed)
    pairs, true = generated(rng, lambda z: z**power)
    found = told_by("a", pairs, 2 * len(pairs.first))
    held = bins_of(pairs.probability)
    assert found.reasons == ("",) * len(EDGES)
    for b in range(len(EDGES)):
        assert found.share[b] == pytest.approx(true[held == b].mean(), abs=0.1)
    assert found.within == pytest.approx(0.83, abs=0.05)
    assert found.between == pytest.approx(0.23, abs=0.05)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_certain_need_not_be_true(seed):
    """A fifth of the certain pairs is wrong, which those that are most alike in the others give away."""
    rng = np.random.default_rng(seed)
    pairs, true = generated(rng, lambda z: 0.8 * z, spread=0.05)
    found = told_by("a", pairs, 2 * len(pairs.first))
    held = bins_of(pairs.probability)
    certain = len(EDGES) - 1
    assert found.share[certain] < 0.92
    assert found.share[certain] == pytest.approx(true[held == certain].mean(), abs=0.1)


def test_an_attribute_that_follows_from_the_others_cannot_tell():
    """Streets tell the city: strangers with like streets have like cities."""
    rng = np.random.default_rng(0)
    pairs, _ = generated(rng, lambda z: z)
    pairs = pairs._replace(alike=pairs.others, others=np.round(pairs.others, 1))
    found = told_by("city", pairs, 2 * len(pairs.first))
    assert not np.isfinite(found.share).any()
    assert found.reason or all("m − u" in reason or "groups" in reason for reason in found.reasons)


def test_pairs_of_few_groups_cannot_tell():
    """All pairs of one entity are one case."""
    rng = np.random.default_rng(0)
    pairs, _ = generated(rng, lambda z: z)
    one = np.where(pairs.without > 0.0, 0, pairs.first)
    found = told_by("a", pairs._replace(first=one), 2 * len(pairs.first))
    assert "groups of them: 1" in found.reason


# ---------------------------------------------------------------------- together


def said(name, share, error=0.01):
    share = np.array(share, float)
    reasons = tuple("too few" if np.isnan(x) else "" for x in share)
    return AttributeReliability(name, "", 0.9, 0.1, share, np.full(len(share), error), reasons)


def test_the_lowest_attribute_counts():
    probability = np.array([0.3, 0.7, 0.99, 0.99])
    found = combined([said("a", [0.3, 0.8, 0.95]), said("b", [0.2, 0.7, 0.9])], probability, 10)
    np.testing.assert_allclose(found.share, [0.21, 0.71, 0.91])
    np.testing.assert_array_equal(found.count, [1, 1, 2])
    assert found.calibration_error == pytest.approx((0.09 + 0.01 + 2 * 0.08) / 4)
    assert found.reasons == ("", "", "")


def test_when_nobody_can_tell():
    probability = np.array([0.3, 0.7])
    found = combined([said("a", [0.3, np.nan, 0.95]), said("b", [0.9, 0.7, 0.9])], probability, 10)
    assert not found.can_tell
    assert np.isnan(found.calibration_error)
    assert "a says 30%, b 90%" in found.reasons[0]
    assert found.reasons[1] == "only b can tell; it takes two"
    assert found.reasons[2] == "no pair has such a probability"
    assert "one attribute" in combined([said("a", [0.3, 0.5, 0.9])], probability, 10).reasons[0]


# ---------------------------------------------------------------------- records


def records(rng, n_entities=120, n_each=3, attributes=4, wrong=0.15):
    """Random codes of independent attributes, some of which are replaced by others."""
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    rows, labels = [], []
    for entity in range(n_entities):
        true = ["".join(rng.choice(letters, 6)) for _ in range(attributes)]
        for _ in range(n_each):
            shown = [v if rng.random() > wrong else "".join(rng.choice(letters, 6)) for v in true]
            rows.append({f"a{k}": value for k, value in enumerate(shown)})
            labels.append(entity)
    order = rng.permutation(len(rows))
    return [rows[k] for k in order], np.array(labels)[order]


@pytest.fixture(scope="module")
def clustered():
    rows, labels = records(np.random.default_rng(0))
    model = pt.Record({f"a{k}": pt.Text() for k in range(4)}).fit_prior(rows)
    return rows, labels, pt.SplitSMC(model, n_particles=10, random_state=0).fit(rows).refine(1)


def test_records_without_labels(clustered):
    rows, labels, sampler = clustered
    found = pt.metrics.reliability_without_labels(sampler.model_, rows, sampler.posterior_)
    first, second = np.triu_indices(len(rows), 1)
    probability = sampler.posterior_.together(first, second)
    held = bins_of(probability)
    assert found.can_tell
    assert np.isfinite(found.share[-1])
    for b in np.flatnonzero(np.isfinite(found.share)):
        assert found.count[b] == (held == b).sum()
        true = (labels[first] == labels[second])[held == b].mean()
        assert found.share[b] == pytest.approx(true, abs=0.1 + 2 * found.error[b])
    assert [one.name for one in found.attributes] == ["a0", "a1", "a2", "a3"]
    document = json.loads(json.dumps(found.as_dict()))
    assert document["bins"][-1]["share"] == pytest.approx(found.share[-1])
    assert document["can tell"] is True


def test_a_posterior_that_is_too_sure_is_found_out(clustered):
    """Of pairs said to be certain half are drawn at random."""
    rows, labels, sampler = clustered
    rng = np.random.default_rng(1)
    merged = labels.copy()
    joined = rng.permutation(labels.max() + 1)[:80].reshape(-1, 2)
    for one, other in joined:
        merged[labels == other] = one
    too_sure = certain_posterior(np.unique(merged, return_inverse=True)[1], sampler.alpha_)
    found = pt.metrics.reliability_without_labels(sampler.model_, rows, too_sure)
    assert not found.share[-1] > 0.75  # so low, or cannot tell
    for one in found.attributes:
        assert not one.share[-1] > 0.8
    first, second = np.triu_indices(len(rows), 1)
    assert (labels[first] == labels[second])[merged[first] == merged[second]].mean() < 0.6


def test_a_sample_is_of_whole_subproblems(clustered):
    rows, _, sampler = clustered
    posterior = sampler.posterior_
    fragments = sampler.model_.validate(rows)
    chosen = sampled_rows(posterior, [fragment.pairs for fragment in fragments], 100, 0)
    assert 50 <= len(chosen) <= 100
    assert (np.diff(chosen) > 0).all()
    for subproblem in posterior.subproblems:
        assert np.isin(subproblem.observations, chosen).all() in (
            True,
            np.isin(subproblem.observations, chosen).any(),
        )
    found = pt.metrics.reliability_without_labels(sampler.model_, rows, posterior, n_records=100)
    assert found.n_records == len(chosen)


def test_attributes_that_few_mention_say_so(clustered):
    rows, _, sampler = clustered
    sparse = [{**row, "rare": "x"} if k < 4 else row for k, row in enumerate(rows)]
    model = pt.Record({**sampler.model_.attributes, "rare": pt.Text(), "never": pt.Text()})
    found = pt.metrics.reliability_without_labels(model, sparse, sampler.posterior_, n_attributes=1)
    reasons = {one.name: one.reason for one in found.attributes}
    assert "pairs that mention it: 0" in reasons["rare"]
    assert "never" not in reasons
    assert sum("was not left out" in reason for reason in reasons.values()) == 3
    assert not found.can_tell


def test_bad_input(clustered):
    rows, _, sampler = clustered
    with pytest.raises(ValueError, match="X has 3 records, the posterior 360 observations"):
        pt.metrics.reliability_without_labels(sampler.model_, rows[:3], sampler.posterior_)
    with pytest.raises(TypeError, match="must be a Record"):
        pt.metrics.reliability_without_labels(pt.Gaussian(), rows, sampler.posterior_)
    with pytest.raises(ValueError, match="n_records"):
        pt.metrics.reliability_without_labels(sampler.model_, rows, sampler.posterior_, n_records=1)


def test_likeness_takes_the_most_alike_values():
    alike = likeness(
        [["ada", "countess of lovelace"], [], ["countess of lovelace"], ["byron"], ["  "], ["  "]]
    )
    matrix = np.full((6, 6), np.nan)
    matrix[np.triu_indices(6, 1)] = alike
    assert matrix[0, 2] == 1.0
    assert matrix[4, 5] == 1.0
    assert matrix[0, 3] == 0.0
    assert np.isnan(matrix[1]).all()
