from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import gammaln
from sklearn.base import clone

from partita.models.evidence import *
from partita.models.gaussian import Gaussian

VERBOSE = False
LEARN = 0
ROUNDS, ORDERS, PATIENCE, POLISH, POLISH_ORDERS = 6, 1, 2, 0, 1
PARTICLES = 10
SAMPLE = 1000
LEARNERS = {Gaussian: GaussianLearner}


def maximise(learner, labels, start):
    clusters = learner.summary(labels)

    def negative(vector):
        e, ge = learner.log_evidence(vector, clusters)
        h, gh = learner.log_hyperprior(vector)
        return -(e + h), -(ge + gh)

    found = minimize(
        negative, start, jac=True, method="L-BFGS-B", bounds=list(zip(learner.low, learner.high))
    )
    return found.x, -found.fun


def cluster(model, X, log_alpha, particles=None, seed=0, learn=1):
    from partita.smc.engine import Engine
    from partita.smc.snapshot import posterior_of

    enc = model.encode(X)
    e = Engine(
        model, (particles or PARTICLES, 0, 0, 1, 1, 0, learn), X.shape[1], enc.shape[1], log_alpha, seed
    )
    e.run(e.store(enc))
    return posterior_of(e.state).labels()


def ewens(labels):
    from scipy.optimize import minimize_scalar

    sizes = np.bincount(labels)
    n = len(labels)
    K = len(sizes)

    def f(la):
        a = np.exp(la)
        return -(K * la + gammaln(a) - gammaln(a + n) - 2 * np.log1p(a))

    r = minimize_scalar(f, bounds=(np.log(1e-3), np.log(n) + 1e-9), method="bounded")
    return gammaln(sizes).sum() - r.fun, r.x


def fit_prior(model, X, labels=None):
    X = np.asarray(X, float)
    if labels is not None:
        learner = LEARNERS[type(model)](model, X, np.arange(len(X)))
        labels = np.unique(labels, return_inverse=True)[1]
        fits = [maximise(learner, labels, s) for s in learner.starts()]
        if VERBOSE:
            print([round(f[1], 3) for f in fits])
        best = max(fits, key=lambda f: f[1])
        return clone(model).set_params(**learner.parameters(best[0]))
    rows = np.random.default_rng(0).permutation(len(X))[:SAMPLE]
    learner = LEARNERS[type(model)](model, X, rows)
    sample = X[rows]
    rng = np.random.default_rng(1)
    make = lambda v: clone(model).set_params(**learner.parameters(v))

    def round_(vector, la, orders):
        m = make(vector)
        best = (-np.inf, None, None, None)
        for _ in range(orders):
            p = rng.permutation(len(sample))
            labels = np.empty(len(p), int)
            labels[p] = cluster(m, sample[p], la, learn=LEARN)
            clusters = learner.summary(labels)
            ew, new_la = ewens(labels)
            J = ew + learner.log_evidence(vector, clusters)[0] + learner.log_hyperprior(vector)[0]
            if best[0] < J:
                best = (J, labels, ew, new_la)
        new, J = maximise(learner, best[1], vector)
        J += best[2]
        if VERBOSE:
            print(
                round(J, 2),
                best[1].max() + 1,
                np.exp(new[:2]).round(5),
                np.exp(new[2 + learner.d :] / 2).round(4),
            )
        return J, new, best[3], best[1]

    best = (-np.inf, None, 0.0)
    for vector in learner.starts():
        cur = (-np.inf, vector, 0.0)
        fails = 0
        for r in range(ROUNDS):
            new = round_(cur[1], cur[2], ORDERS)
            if new[0] > cur[0] + 0.1:
                cur = new
                fails = 0
            else:
                fails += 1
            if fails >= PATIENCE:
                break
        if VERBOSE:
            print()
        if cur[0] > best[0]:
            best = cur
    for r in range(POLISH):
        new = round_(best[1], best[2], POLISH_ORDERS)
        if new[0] > best[0] + 0.1:
            best = new
        elif r > 1:
            break
    global LAST
    LAST = best
    return make(best[1])
