"""The paper's Gaussian data: the scores that the research code and two re-implementations found.

Greedy resampling makes the algorithms deterministic for a given order, so a correct one finds the same.
"""

import json

import numpy as np
import pytest

import partita as pt
from tests.helpers import oracle
from tests.helpers.gauss700 import ALPHA, POINTS, SHARED, model, needs_data, table

RESULTS = SHARED / "reference" / "research_code_results.json"
SPLIT = {0: -1445.57, 1: -1422.42, 2: -1421.07, 3: -1421.07, 4: -1421.07}

needs_results = pytest.mark.skipif(not RESULTS.is_file(), reason=f"no reference figures at {RESULTS}")


@pytest.fixture(scope="module")
def data():
    """The points, and twenty orders of them."""
    return table()[:, :2], np.load(POINTS / "gauss700_orders.npy")


@needs_data
def test_split_smc_finds_the_known_scores(data):
    X, orders = data
    for seed, expected in SPLIT.items():
        sampler = pt.SplitSMC(model(), ALPHA, 100).fit(X[orders[seed]])
        assert sampler.posterior_.log_density() == pytest.approx(expected, abs=0.01)


@needs_data
def test_the_score_is_that_of_the_labels(data):
    """Recomputed from the labels by the oracle, as a whole."""
    X, orders = data
    X = X[orders[0]]
    sampler = pt.SplitSMC(model(), ALPHA, 100).fit(X)
    scores = oracle.Scores(model(), X, ALPHA)
    labelled = oracle.partition_of(range(len(X)), sampler.labels_)
    assert sampler.posterior_.log_density() == pytest.approx(scores(labelled), abs=1e-8)


def rows(configuration):
    """The research code's runs with this configuration on these data: {(m, seed): row}."""
    found = json.loads(RESULTS.read_text())
    chosen = [row for row in found if (row["dataset"], row["conf"]) == ("gauss700", configuration)]
    return {
        (row["m"], row["seed"]): row for row in chosen if row["variant"] == "reference" and row["n"] == 700
    }


@needs_data
@needs_results
@pytest.mark.parametrize("configuration", ["greedy", "smc"])
def test_greedy_and_plain_smc_agree_with_the_research_code(data, configuration):
    X, orders = data
    compared = 0
    for (m, seed), row in rows(configuration).items():
        sampler = pt.Greedy(model(), ALPHA) if configuration == "greedy" else pt.SMC(model(), ALPHA, m)
        sampler.fit(X[orders[seed]])
        assert sampler.posterior_.log_density() == pytest.approx(row["LP_float64"], abs=0.01)
        assert sampler.labels_.max() + 1 == row["n_clusters"]
        compared += 1
    assert compared >= 4
