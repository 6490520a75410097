"""Where would a further observation go: against enumeration, and without a trace."""

import itertools
import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.special import betaln, gammaln, multigammaln

import partita as pt
from partita.smc.state.state import dismantle
from tests.helpers.oracle import Poisson

# Each model's log p(c) in closed form, from its members, written independently of the library.


def gaussian(members, shape=2.0, rate=1.0, mean=0.5, precision=0.1):
    n = len(members)
    average = members.mean(axis=0)
    squares = ((members - average) ** 2).sum(axis=0)
    final = rate + 0.5 * squares + 0.5 * precision * n / (precision + n) * (average - mean) ** 2
    a = shape + n / 2
    return np.sum(
        gammaln(a)
        - gammaln(shape)
        + shape * math.log(rate)
        - a * np.log(final)
        + 0.5 * math.log(precision / (precision + n))
        - 0.5 * n * math.log(2 * math.pi)
    )


SCALE = np.array([[2.0, 0.6], [0.6, 1.0]])


def multivariate(members, freedom=4.5, mean=0.5, precision=0.1):
    n, d = members.shape
    average = members.mean(axis=0)
    scatter = (members - average).T @ (members - average)
    offset = average - mean
    final = SCALE + scatter + precision * n / (precision + n) * np.outer(offset, offset)
    return (
        -0.5 * n * d * math.log(math.pi)
        + multigammaln((freedom + n) / 2, d)
        - multigammaln(freedom / 2, d)
        + 0.5 * freedom * np.linalg.slogdet(SCALE)[1]
        - 0.5 * (freedom + n) * np.linalg.slogdet(final)[1]
        + 0.5 * d * math.log(precision / (precision + n))
    )


def categorical(members, levels=3, concentration=0.4):
    counts = np.stack([(members == level).sum(axis=0) for level in range(levels)])
    total = levels * concentration
    return np.sum(
        gammaln(total)
        - gammaln(total + len(members))
        + (gammaln(concentration + counts) - gammaln(concentration)).sum(axis=0)
    )


def bernoulli(members, a=0.5, b=0.8):
    ones = members.sum(axis=0)
    return np.sum(betaln(a + ones, b + len(members) - ones) - betaln(a, b))


def poisson(members, shape=1.0, rate=0.1):
    x = members[:, 0]
    a, b = shape + x.sum(), rate + len(x)
    return gammaln(a) - gammaln(shape) - gammaln(x + 1.0).sum() + shape * math.log(rate) - a * math.log(b)


RNG = np.random.default_rng(12)
CASES = {
    "gaussian": (
        pt.Gaussian(shape=2.0, rate=1.0, mean=0.5, precision=0.1),
        gaussian,
        RNG.normal(scale=2.0, size=(6, 2)),
        RNG.normal(scale=3.0, size=(5, 2)),
    ),
    "multivariate": (
        pt.MultivariateGaussian(freedom=4.5, scale=SCALE, mean=0.5, precision=0.1),
        multivariate,
        RNG.normal(scale=2.0, size=(6, 2)),
        RNG.normal(scale=3.0, size=(5, 2)),
    ),
    "categorical": (
        pt.Categorical(n_categories=3, concentration=0.4),
        categorical,
        RNG.integers(0, 3, (6, 4)),
        RNG.integers(0, 3, (5, 4)),
    ),
    "bernoulli": (
        pt.Bernoulli(a=0.5, b=0.8),
        bernoulli,
        RNG.integers(0, 2, (6, 5)),
        RNG.integers(0, 2, (5, 5)),
    ),
    "user": (
        Poisson(1.0, 0.1),
        poisson,
        RNG.poisson([[3], [3], [8], [8], [20], [5]]),
        RNG.poisson(8, (5, 1)),
    ),
}
ALPHA = 0.7
each_case = pytest.mark.parametrize("case", CASES)


def all_partitions(n):
    rows = [(0,)]
    for _ in range(n - 1):
        rows = [(*row, label) for row in rows for label in range(max(row) + 2)]
    return np.array(rows)


def enumerated(log_marginal, X, x, labels):
    """p(label of x) as the docstring of predict_proba has it, over all partitions of X."""
    X, x = np.asarray(X, float), np.asarray(x, float)
    joint = []
    for row in all_partitions(len(X)):
        clusters = [np.flatnonzero(row == k) for k in range(row.max() + 1)]
        score = sum(math.log(ALPHA) + gammaln(len(c)) + log_marginal(X[c]) for c in clusters)
        for c in clusters:
            with_x = log_marginal(np.vstack([X[c], x]))
            joint.append((score + math.log(len(c)) + with_x - log_marginal(X[c]), c))
        joint.append((score + math.log(ALPHA) + log_marginal(x[None]), None))
    top = max(weight for weight, _ in joint)
    result = np.zeros(labels.max() + 2)
    for weight, c in joint:
        if c is None:
            result[-1] += math.exp(weight - top)
        else:
            for member in c:
                result[labels[member]] += math.exp(weight - top) / len(c)
    return result / result.sum()


@each_case
@pytest.mark.parametrize("kind", [pt.SplitSMC, pt.SMC])
def test_equal_to_enumeration_of_all_partitions(case, kind):
    model, log_marginal, X, new = CASES[case]
    sampler = kind(model, ALPHA, n_particles=300).fit(X)
    assert [len(s.probabilities) for s in sampler.posterior_.subproblems] == [203]  # Bell's number of 6
    expected = [enumerated(log_marginal, X, x, sampler.labels_) for x in new]
    np.testing.assert_allclose(sampler.predict_proba(new), expected, rtol=1e-8, atol=1e-12)


@each_case
def test_equal_to_enumeration_over_subproblems(case):
    """On a posterior that is a product, by its public arrays."""
    model, log_marginal, X, new = CASES[case]
    X = np.asarray(np.concatenate([X, X[::-1], np.roll(X, 1, axis=0)]), float)
    sampler = pt.SplitSMC(model, ALPHA, n_particles=7).fit(X)
    labels = sampler.labels_
    for x in np.asarray(new, float):
        expected = np.zeros(labels.max() + 2)
        expected[-1] = ALPHA * math.exp(log_marginal(x[None]))
        for s in sampler.posterior_.subproblems:
            for partition, weight in zip(s.partitions, s.probabilities, strict=True):
                for k in range(partition.max() + 1):
                    c = s.observations[partition == k]
                    gain = log_marginal(np.vstack([X[c], x])) - log_marginal(X[c])
                    for member in c:  # |c| of them, each with its share 1/|c|
                        expected[labels[member]] += weight * math.exp(gain)
        np.testing.assert_allclose(
            sampler.predict_proba(x[None])[0], expected / expected.sum(), rtol=1e-8, atol=1e-12
        )


def test_the_product_above_has_several_subproblems():
    model, _, X, _ = CASES["user"]
    X = np.concatenate([X, X[::-1], np.roll(X, 1, axis=0)])
    assert pt.SplitSMC(model, ALPHA, n_particles=7).fit(X).posterior_.n_subproblems > 1


def test_with_one_observation_it_is_a_formula():
    sampler = pt.Greedy(CASES["user"][0], alpha=2.0).fit([[4]])
    joins = math.exp(poisson(np.array([[4], [6]])) - poisson(np.array([[4]])))
    alone = 2.0 * math.exp(poisson(np.array([[6]])))
    np.testing.assert_allclose(
        sampler.predict_proba([[6]]), [[joins / (joins + alone), alone / (joins + alone)]]
    )


# ---------------------------------------------------------------------- conduct

KINDS = {
    "split": (pt.SplitSMC, {"n_particles": 10}),
    "rejuvenation": (pt.SplitSMC, {"n_particles": 10, "rejuvenation": 2}),
    "auto": (pt.SplitSMC, {"n_particles": 10, "alpha": "auto"}),
    "multinomial": (pt.SplitSMC, {"n_particles": 10, "resampling": "multinomial"}),
    "smc": (pt.SMC, {"n_particles": 10}),
    "greedy": (pt.Greedy, {}),
}


def stream(case, n=40):
    """A longer stream of the case's kind of data."""
    X = np.asarray(CASES[case][2])
    rows = np.concatenate(list(itertools.repeat(X, n // len(X) + 1)))[:n]
    return rows + np.random.default_rng(5).normal(size=rows.shape) if rows.dtype == float else rows


def sampler_of(case, kind):
    make, parameters = KINDS[kind]
    return make(CASES[case][0], random_state=1, **({"alpha": ALPHA} | parameters))


def answers(sampler):
    posterior = sampler.posterior_
    return [
        sampler.labels_.tolist(),
        posterior.log_density(),
        [
            (s.observations.tolist(), s.partitions.tolist(), s.probabilities.tolist())
            for s in posterior.subproblems
        ],
    ]


def test_refining_after_a_prediction_is_the_same():
    X, new = stream("gaussian"), CASES["gaussian"][3]
    expected = answers(sampler_of("gaussian", "split").fit(X).refine(2))
    sampler = sampler_of("gaussian", "split").fit(X)
    sampler.predict_proba(new)
    assert answers(sampler.refine(2)) == expected


@pytest.mark.parametrize("make", [pt.SplitSMC, pt.SMC, pt.Greedy])
def test_the_most_probable_cluster(make):
    rng = np.random.default_rng(0)
    truth = rng.permutation(np.repeat(np.arange(4), 10))
    X = 20.0 * truth[:, None] + rng.normal(size=(40, 2))
    sampler = make(pt.Gaussian(rate=2.0, precision=0.001), alpha=1.0).fit(X)
    np.testing.assert_array_equal(sampler.predict(X), sampler.labels_)
    assert len(set(zip(truth, sampler.labels_, strict=True))) == 4
    far = np.array([[1e3, -1e3], [-500.0, 40.0], [10.0, 50.0], [1e9, 1e9]])
    assert sampler.predict(far).tolist() == [-1] * 4
    assert (sampler.predict_proba(far)[:, -1] > 0.99).all()
    assert sampler.predict([[0.0, 0.0], [1e6, 0.0], [60.0, 60.0]]).tolist() == [
        sampler.labels_[truth == 0][0],
        -1,
        sampler.labels_[truth == 3][0],
    ]
    assert sampler.predict(X[:1]).dtype.kind == "i"


def test_a_point_between_two_clusters_is_shared():
    X = np.array([[-3.0], [3.0]] * 10) + np.tile([[0.1], [0.1], [-0.1], [-0.1]], (5, 1))
    sampler = pt.SplitSMC(pt.Gaussian(rate=1.0, precision=0.01), alpha=0.1).fit(X)
    left, right, _ = sampler.predict_proba([[0.0]])[0]
    assert left == pytest.approx(right, rel=1e-2)
    left, right, _ = sampler.predict_proba([[0.5]])[0]
    assert left < right


def test_prediction_agrees_with_what_happens():
    """The probability that x joins no cluster is that of being alone once it has come in."""
    model, _, X, new = CASES["gaussian"]
    for x in new:
        sampler = pt.SMC(model, ALPHA, n_particles=1000).fit(X)
        predicted = sampler.predict_proba(x[None])[0, -1]
        sampler.partial_fit(x[None])
        (whole,) = sampler.posterior_.subproblems
        alone = (whole.partitions[:, :-1] != whole.partitions[:, -1:]).all(axis=1)
        assert whole.probabilities[alone].sum() == pytest.approx(predicted, rel=1e-9)


def test_threads_may_ask_at_the_same_time():
    X = np.random.default_rng(0).normal(0.0, 5.0, (500, 2))
    sampler = pt.SplitSMC(pt.Gaussian(), 1.0, 20).fit(X[:200])
    batches = np.array_split(X, 20)
    expected = [sampler.predict_proba(batch) for batch in batches]
    with ThreadPoolExecutor(4) as threads:
        for _ in range(5):
            for found, right in zip(threads.map(sampler.predict_proba, batches), expected, strict=True):
                np.testing.assert_array_equal(found, right)


def test_predicting_takes_no_room_in_the_sampler():
    sampler = pt.SplitSMC(pt.Gaussian(), 1.0, 5).fit(np.zeros((3, 2)))
    before = [part.nbytes for part in dismantle(sampler._engine.state)[0]]
    sampler.predict_proba(np.ones((10_000, 2)))
    assert [part.nbytes for part in dismantle(sampler._engine.state)[0]] == before
