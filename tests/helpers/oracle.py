"""The oracle: what the library computes, once more, by brute force and without any of its code.

A *partition* is a frozenset of clusters, a cluster a frozenset of observation numbers. Everything is a plain
dict, list or set; nothing is fast. The library must agree with it.
"""

import itertools
import math
from collections import Counter
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from scipy.special import betaln, gammaln, logsumexp, multigammaln

import partita as pt
from partita.smc.files.packing import chain
from partita.smc.state.state import ARRAYS, COUNTS, dismantle

BELL = [1, 1, 2, 5, 15, 52, 203, 877, 4140]

# ---------------------------------------------------------------------- partitions


def partition_of(observations, labels):
    """The partition in which observations with equal labels are together."""
    clusters = {}
    for x, label in zip(observations, labels, strict=True):
        clusters.setdefault(int(label), []).append(int(x))
    return frozenset(map(frozenset, clusters.values()))


def all_partitions(n):
    """Every partition of 0..n−1."""
    found = [frozenset()]
    for x in range(n):
        found = [extended(partition, c, x) for partition in found for c in (*partition, frozenset())]
    return found


def extended(partition, cluster, x):
    """The partition with ``x`` in ``cluster``; the empty cluster stands for a new one."""
    return partition - {cluster} | {cluster | {x}}


def projected(partition, observations):
    """What a partition says of some of the observations."""
    return frozenset(c & observations for c in partition if c & observations)


def support(partition):
    """The observations of a partition."""
    return frozenset().union(*partition)


# ---------------------------------------------------------------------- models
# Each is log p(c) of the rows of one cluster, in closed form, the cluster's parameters integrated out.


def gaussian(rows, shape, rate, mean, precision):
    """Normal–inverse-gamma, independent columns (Murphy 2007, eq. 95, with b a rate)."""
    n, d = rows.shape
    centre = rows.mean(axis=0)
    scatter = ((rows - centre) ** 2).sum(axis=0)
    rate = np.broadcast_to(np.asarray(rate, float), d)
    b = rate + scatter / 2 + precision * n * (centre - mean) ** 2 / (2 * (precision + n))
    a = shape + n / 2
    return float(
        d * (math.lgamma(a) - math.lgamma(shape))
        + (shape * np.log(rate) - a * np.log(b)).sum()
        + d / 2 * (math.log(precision / (precision + n)) - n * math.log(2 * math.pi))
    )


def multivariate(rows, freedom, scale, mean, precision):
    """Normal–inverse-Wishart (Murphy 2007, eq. 266)."""
    n, d = rows.shape
    freedom = d + 2.0 if freedom is None else freedom
    scale = scale * np.eye(d) if np.ndim(scale) == 0 else np.asarray(scale, float)
    centre = rows.mean(axis=0)
    away = (centre - mean)[:, None]
    after = scale + (rows - centre).T @ (rows - centre) + precision * n / (precision + n) * (away @ away.T)
    return float(
        -n * d / 2 * math.log(math.pi)
        + multigammaln((freedom + n) / 2, d)
        - multigammaln(freedom / 2, d)
        + freedom / 2 * np.linalg.slogdet(scale)[1]
        - (freedom + n) / 2 * np.linalg.slogdet(after)[1]
        + d / 2 * math.log(precision / (precision + n))
    )


def categorical(rows, n_categories, concentration):
    """Dirichlet–multinomial, independent columns."""
    n, d = rows.shape
    total = 0.0
    for k in range(d):
        levels = n_categories if np.ndim(n_categories) == 0 else n_categories[k]
        prior = np.full(levels, concentration) if np.isscalar(concentration) else np.array(concentration[k])
        counts = np.bincount(rows[:, k].astype(int), minlength=levels)
        total += gammaln(prior.sum()) - gammaln(prior.sum() + n)
        total += (gammaln(prior + counts) - gammaln(prior)).sum()
    return float(total)


def bernoulli(rows, a, b):
    """Beta–Bernoulli, independent columns."""
    ones = rows.sum(axis=0)
    return float((betaln(a + ones, b + len(rows) - ones) - betaln(a, b)).sum())


def poisson(rows, shape, rate):
    """Poisson counts with a Gamma prior, by the chain of negative binomial predictives."""
    total = 0.0
    for x in rows[:, 0]:
        total += gammaln(shape + x) - gammaln(shape) - gammaln(x + 1)
        total += shape * math.log(rate / (rate + 1)) - x * math.log(rate + 1)
        shape, rate = shape + x, rate + 1
    return float(total)


class Poisson(pt.Model):
    """A user's own model: the one in the docstring of ``pt.Model``."""

    def __init__(self, shape=1.0, rate=1.0):
        self.shape, self.rate = shape, rate

    def statistics(self, X):
        return np.column_stack([X[:, 0], gammaln(X[:, 0] + 1.0)])

    def log_marginal(self, totals, sizes):
        shape, rate = self.shape + totals[:, 0], self.rate + sizes
        return (
            gammaln(shape)
            - gammaln(self.shape)
            - totals[:, 1]
            + self.shape * np.log(self.rate)
            - shape * np.log(rate)
        )


class Coins(pt.Model):
    """The library's Bernoulli, as a user would write it."""

    def __init__(self, a=1.0, b=1.0):
        self.a, self.b = a, b

    def statistics(self, X):
        return X

    def log_marginal(self, totals, sizes):
        after = betaln(self.a + totals, self.b + sizes[:, None] - totals)
        return (after - betaln(self.a, self.b)).sum(axis=1)


DENSITIES = {
    pt.Gaussian: gaussian,
    pt.MultivariateGaussian: multivariate,
    pt.Categorical: categorical,
    pt.Bernoulli: bernoulli,
    Poisson: poisson,
    Coins: bernoulli,
}


def density(model):
    """The function log p(c) of the rows of one cluster, for a model of the library."""
    return partial(DENSITIES[type(model)], **model.get_params(deep=False))


def random_model(kind, rng, d):
    """A model of this kind with hyperparameters drawn at random, all different where they can be."""
    strength = rng.uniform(0.3, 3.0, d)
    if kind is pt.Gaussian:
        return pt.Gaussian(
            rng.uniform(0.5, 4.0), strength, rng.normal(size=d), math.exp(rng.uniform(-6.0, 1.0))
        )
    if kind is pt.MultivariateGaussian:
        root = rng.normal(size=(d, d))
        scale = root @ root.T + 0.1 * np.eye(d)
        return pt.MultivariateGaussian(
            d - 1 + rng.uniform(0.5, 4.0), scale, rng.normal(size=d), math.exp(rng.uniform(-6.0, 1.0))
        )
    if kind is pt.Categorical:
        levels = rng.integers(1, 4, d).tolist()
        return pt.Categorical(levels, [rng.uniform(0.1, 2.0, k) for k in levels])
    if kind is pt.Bernoulli:
        return pt.Bernoulli(strength, rng.uniform(0.1, 2.0, d))
    return Poisson(rng.uniform(0.3, 3.0), math.exp(rng.uniform(-4.0, 1.0)))


def random_data(model, rng, n, d, spread=3.0):
    """Data that such a model may have to cluster; ``spread`` says how far apart real values lie.

    Points of a few groups, and later in the stream more and more points between two of them.
    """
    if isinstance(model, pt.Categorical):
        return np.column_stack([rng.integers(0, k, n) for k in model.n_categories]).astype(float)
    if isinstance(model, pt.Bernoulli):
        return rng.integers(0, 2, (n, d)).astype(float)
    if isinstance(model, Poisson):
        return rng.poisson(rng.choice([1.0, 5.0, 30.0], (n, 1))).astype(float)
    centres = rng.normal(scale=spread, size=(max(n // 4, 2), d))
    one, other = centres[rng.integers(0, len(centres), (2, n))]
    between = rng.random((n, 1)) * (rng.random((n, 1)) < np.linspace(0.0, 0.5, n)[:, None])
    return one + between * (other - one) + rng.normal(scale=rng.uniform(0.2, 1.0), size=(n, d))


# ---------------------------------------------------------------------- the posterior


class Scores:
    """Scores of clusters and partitions of some data: Σ_c [log α + lgamma(|c|) + log p(c)]."""

    def __init__(self, model, X, alpha):
        self.log_marginal, self.X, self.alpha = density(model), np.asarray(X, float), alpha
        self.known = {frozenset(): 0.0}

    def marginal(self, cluster):
        """log p(c), and 0 for the empty cluster."""
        if cluster not in self.known:
            self.known[cluster] = self.log_marginal(self.X[sorted(cluster)])
        return self.known[cluster]

    def __call__(self, partition):
        return sum(math.log(self.alpha) + math.lgamma(len(c)) + self.marginal(c) for c in partition)

    def gain(self, cluster, x):
        """Log-weight of putting ``x`` into a cluster: |c|·p(x|c), or α·p(x) for a new one."""
        more = self.marginal(cluster | {x}) - self.marginal(cluster)
        return more + math.log(len(cluster) or self.alpha)


def posterior(scores):
    """The exact posterior over all partitions of the data."""
    return normalised({p: scores(p) for p in all_partitions(len(scores.X))})


def normalised(log_weights):
    """Probabilities from log-weights, both as dicts."""
    total = logsumexp(list(log_weights.values()))
    return {key: math.exp(value - total) for key, value in log_weights.items()}


def together(probabilities, n):
    """Matrix of the probabilities that two observations share a cluster."""
    matrix = np.zeros((n, n))
    for partition, probability in probabilities.items():
        for c in partition:
            matrix[np.ix_(sorted(c), sorted(c))] += probability
    return matrix


def cluster_counts(probabilities):
    """Distribution of the number of clusters."""
    counts = Counter()
    for partition, probability in probabilities.items():
        counts[len(partition)] += probability
    return counts


def concentration(model, X, grid, prior):
    """Posterior of α over a grid: the exact evidence at each α, all partitions summed."""
    logs = []
    for alpha, weight in zip(grid, prior, strict=True):
        scores = Scores(model, X, alpha)
        evidence = logsumexp([scores(p) for p in all_partitions(len(X))])
        logs.append(math.log(weight) + math.lgamma(alpha) - math.lgamma(alpha + len(X)) + evidence)
    return np.exp(np.array(logs) - logsumexp(logs))


# ---------------------------------------------------------------------- reading the library


def factors(posterior):
    """A posterior's subproblems, {observations: {partition: probability}}, with their form checked.

    Subproblems are disjoint and hold everything; particles are distinct partitions of their subproblem, in
    descending order of weight; weights are normalised.
    """
    found = {}
    for subproblem in posterior.subproblems:
        observations = frozenset(subproblem.observations.tolist())
        assert len(observations) == len(subproblem.observations) == subproblem.partitions.shape[1]
        particles = [partition_of(subproblem.observations, row) for row in subproblem.partitions]
        assert len(set(particles)) == len(particles) == len(subproblem.probabilities), "equal particles"
        assert all(support(p) == observations for p in particles)
        assert np.all(np.diff(subproblem.probabilities) <= 0)
        assert abs(subproblem.probabilities.sum() - 1.0) < 1e-12
        found[observations] = dict(zip(particles, subproblem.probabilities.tolist(), strict=True))
    members = [x for observations in found for x in observations]
    assert sorted(members) == list(range(posterior.n_observations)), "not disjoint, or not complete"
    return found


def product(factors):
    """The distribution over whole clusterings that subproblems stand for."""
    result = {}
    for choice in itertools.product(*(particles.items() for particles in factors.values())):
        whole = frozenset().union(*(partition for partition, _ in choice))
        result[whole] = math.prod(probability for _, probability in choice)
    return result


def check_invariants(sampler, X, m, *, exact=True):
    """All that must hold of a sampler at any time; returns its :func:`factors`."""
    scores = X if isinstance(X, Scores) else Scores(sampler.model_, X, sampler.alpha_)
    found = factors(sampler.posterior_)
    best = 0.0
    for particles in found.values():
        assert len(particles) <= m
        own = {p: scores(p) for p in particles}
        best += own[next(iter(particles))]
        if exact:
            expected = normalised(own)
            for partition, probability in particles.items():
                assert abs(probability - expected[partition]) < 1e-8
        if sampler._splitting:
            assert len(components(particles)) == 1, "a subproblem that should have been split"
    assert abs(sampler.posterior_.log_density() - best) < 1e-8 * max(1.0, abs(best))
    assert sampler._splitting or len(found) == 1
    check_state(sampler._engine.state)
    return found


def check_state(state):
    """The invariants that `partita.smc.state.state` lists, of the arrays themselves."""
    parts, counts, *_ = dismantle(state)
    part, count = dict(zip(ARRAYS, parts, strict=True)), dict(zip(COUNTS, counts.tolist(), strict=True))
    observations = part["observations"][: count["n_observations"]]
    blocks, subproblems = part["blocks"][: count["n_blocks"]], part["subproblems"][: count["n_subproblems"]]
    met, cells, weights, clusters = [], 0, 0, []
    for s, (at, first, rows, columns, n_clusters, *_) in enumerate(subproblems.tolist()):
        if rows == 0:
            continue
        own, ids, matrix = np.split(
            part["cells"][at : at + columns + n_clusters + rows * columns], [columns, columns + n_clusters]
        )
        for j, b in enumerate(own):
            head, size, subproblem, column = blocks[b].tolist()
            assert (subproblem, column) == (s, j)
            assert size > 0
            x = head
            for _ in range(size):
                met.append(x)
                assert observations["block"][x] == b
                assert observations["previous"][observations["next"][x]] == x
                x = observations["next"][x]
            assert x == head
        matrix = matrix.reshape(rows, columns)
        assert sorted(set(matrix.ravel().tolist())) == sorted(ids.tolist())
        held = {}
        for row in matrix:
            for c in set(row.tolist()):
                columns_of = tuple(np.flatnonzero(row == c))
                assert held.setdefault(c, columns_of) == columns_of
                assert part["clusters"]["size"][c] == blocks["size"][own[row == c]].sum()
        assert len(set(held.values())) == n_clusters
        assert len(np.unique(matrix, axis=0)) == rows
        assert len(np.unique(matrix, axis=1).T) == columns
        assert (np.diff(part["weights"][first : first + rows]) <= 0.0).all()
        clusters += ids.tolist()
        cells, weights = cells + columns + n_clusters + rows * columns, weights + rows
    assert sorted(met) == list(range(len(observations)))
    assert (count["live_cells"], count["live_weights"]) == (cells, weights)
    check_free(count["free_block"], blocks["head"], blocks["size"] == 0)
    check_free(count["free_subproblem"], subproblems["cells"], subproblems["rows"] == 0)
    used = np.isin(np.arange(count["n_clusters"]), [0, *clusters])
    assert len(clusters) == len(set(clusters))
    check_free(count["free_cluster"], part["clusters"]["size"][: count["n_clusters"]], ~used)


def check_free(first, following, free):
    """The free entries, and they alone, form one list."""
    found = chain(first, following)
    assert sorted(found) == np.flatnonzero(free).tolist()


def assert_same_factors(found, expected, tolerance=1e-8):
    """The same subproblems, the same particles in each, and the same weights."""
    assert set(found) == set(expected)
    for observations, particles in expected.items():
        assert set(found[observations]) == set(particles)
        for partition, probability in particles.items():
            assert abs(found[observations][partition] - probability) < tolerance


# ---------------------------------------------------------------------- the sampler


def components(partitions):
    """Connected components of "these two observations share a cluster in some partition"."""
    found = []
    for cluster in itertools.chain.from_iterable(partitions):
        apart = [c for c in found if not c & cluster]
        found = [*apart, cluster.union(*(c for c in found if c & cluster))]
    return found


class Undecided(Exception):
    """Two weights are so close that rounding decides, which no test can foresee."""


def far_apart(a, b):
    """``a``, if rounding cannot confuse it with ``b``."""
    if abs(a - b) < 1e-9 * max(1.0, abs(a)):
        raise Undecided
    return a


def heaviest(items, m, weight):
    """The m heaviest."""
    order = sorted(items, key=weight, reverse=True)
    if len(order) > m:
        far_apart(weight(order[m - 1]), weight(order[m]))
    return order[:m]


@dataclass
class Naive:
    """Split SMC, line by line as DESIGN.md (section 1) has it.

    ``subproblems`` is a list of {partition: log-weight}, normalised. ``happened`` counts what the steps did.
    """

    scores: Scores
    m: int
    splitting: bool = True
    exact: bool = True
    subproblems: list = field(default_factory=list)
    happened: Counter = field(default_factory=Counter)

    def observe(self, x):
        putative = self.update(x)
        retained = self.resample(putative)
        if not retained or (self.splitting and all(frozenset({x}) in p for _, _, p in retained)):
            self.happened["alone"] += bool(retained)
            self.subproblems.append({frozenset({frozenset({x})}): 0.0})
            return
        involved = {s for _, s, _ in retained}
        joined = self.merge(retained, involved)
        others = [q for s, q in enumerate(self.subproblems) if s not in involved]
        self.subproblems = others + self.split(joined)

    def update(self, x):
        """All (weight, subproblem, partition with x in it)."""
        existing, new = [], []
        for s, particles in enumerate(self.subproblems):
            for partition, weight in particles.items():
                for c in partition:
                    gain = self.scores.gain(c, x)
                    existing.append((weight + gain, s, extended(partition, c, x)))
                gain = self.scores.gain(frozenset(), x)
                new.append((weight + gain, s, extended(partition, frozenset(), x)))
        if not existing:
            return []
        best = max(existing, key=lambda p: p[0])
        home = best[1]
        for weight, s, _ in existing:
            if s != home:
                far_apart(best[0], weight)
        return existing + [p for p in new if p[1] == home]

    def resample(self, putative):
        """The m heaviest of the subproblems worth joining, with normalised weights."""
        retained = heaviest(putative, self.m, lambda p: p[0])
        if not retained:
            return []
        total = logsumexp([weight for weight, _, _ in retained])
        share = Counter()
        for weight, s, _ in retained:
            share[s] += math.exp(weight - total)
        top = max(share, key=lambda s: share[s])
        for s in share:
            if s != top:
                far_apart(share[top], share[s])
                far_apart(share[s], 1 / self.m)
        stay = {s for s in share if s == top or share[s] > 1 / self.m}
        self.happened["dropped"] += len(stay) < len(share)
        retained = heaviest([p for p in putative if p[1] in stay], self.m, lambda p: p[0])
        total = logsumexp([weight for weight, _, _ in retained])
        return [(weight - total, s, partition) for weight, s, partition in retained]

    def merge(self, retained, involved):
        """The m heaviest of retained particle × one particle of each other subproblem."""
        self.happened["merged"] += len(involved) > 1
        joint = {}
        for weight, s, partition in retained:
            others = [self.subproblems[q].items() for q in involved if q != s]
            if len(joint) * math.prod(map(len, others)) > 1e6:
                raise Undecided
            for choice in itertools.product(*others):
                whole = partition.union(*(p for p, _ in choice))
                assert whole not in joint
                joint[whole] = weight + sum(w for _, w in choice)
        return dict(heaviest(joint.items(), self.m, lambda p: p[1]))

    def split(self, joined):
        """One subproblem a component: the distinct projections, with their scores or their marginals."""
        parts = components(joined) if self.splitting else [support(next(iter(joined)))]
        self.happened["split"] += len(parts) > 1
        result = []
        for part in parts:
            marginal = {}
            for partition, weight in joined.items():
                marginal.setdefault(projected(partition, part), []).append(weight)
            weights = {p: self.scores(p) if self.exact else logsumexp(w) for p, w in marginal.items()}
            total = logsumexp(list(weights.values()))
            result.append({p: w - total for p, w in weights.items()})
        return result

    def factors(self):
        """As :func:`factors` reads them from the library."""
        return {
            support(next(iter(particles))): {p: math.exp(w) for p, w in particles.items()}
            for particles in self.subproblems
        }
