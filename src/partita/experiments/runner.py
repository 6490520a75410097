"""Running an experiment: every setting on every order, kept as it goes, so that it can stop and go on."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import gammaln

import partita as pt
from partita._core.typing import Integers
from partita.experiments.experiment import (
    ABLATION,
    AGGLOMERATIVE,
    GIBBS,
    GREEDY,
    METROPOLIS,
    NONE,
    REFINED,
    SMC,
    SPLIT,
    Experiment,
    Setting,
)

N_CHECKS = 20  # along a stream
FEW_CHECKS = 10  # with a network, which is asked ahead within a batch
N_MOMENTS = 40  # of an offline method's history
OFFLINE = (GIBBS, METROPOLIS, AGGLOMERATIVE)
Run = dict[str, Any]


def model_of(experiment: Experiment, setting: Setting) -> tuple[Any, float]:
    """The model as a setting wants it, and the concentration."""
    if setting.alone:
        return experiment.surrogates[setting.surrogate]
    model = experiment.model
    if not isinstance(model, pt.BlackBox) or setting.usual:
        return model, experiment.alpha
    changes: dict[str, Any] = {} if setting.proposals is None else {"n_proposals": setting.proposals}
    if setting.surrogate:
        other = None if setting.surrogate == NONE else experiment.surrogates[setting.surrogate][0]
        changes["surrogate"] = other
    if setting.pooled:
        changes |= experiment.model.score.pool
    if setting.lookahead is not None:
        changes["score"] = copy.copy(model.score)
        changes["score"].lookahead = setting.lookahead
        if "lookahead" in model.get_params(deep=False):
            changes["lookahead"] = setting.lookahead
    return copy.copy(model).set_params(**changes), experiment.alpha


def estimator(experiment: Experiment, setting: Setting, seed: int) -> Any:
    """The method, ready to fit."""
    model, alpha = model_of(experiment, setting)
    if setting.method == GREEDY:
        return pt.Greedy(model, alpha, random_state=seed, **experiment.options)
    if setting.method in (SPLIT, REFINED):
        return pt.SplitSMC(model, alpha, setting.size or 1, random_state=seed, **experiment.options)
    if setting.method == SMC:
        return pt.SMC(model, alpha, setting.size or 1, random_state=seed)
    limit = None if experiment.max_minutes is None else 60.0 * experiment.max_minutes
    common: Run = {"max_time": limit, "keep_labels": True, "random_state": seed}
    if setting.method == AGGLOMERATIVE:
        return pt.Agglomerative(model, alpha, batch_size=setting.size, **common)
    surrogate = experiment.surrogates[""][0] if setting.method == METROPOLIS else None
    return pt.Gibbs(model, alpha, surrogate=surrogate, max_sweeps=10**6, patience=setting.sweeps, **common)


def run_one(experiment: Experiment, setting: Setting, replication: int) -> Run:
    """One setting on one order."""
    X, truth = experiment.in_order(replication)
    run: Run = {
        **setting._asdict(),
        "replication": replication,
        "order": experiment.order_code(replication),
    }
    method = estimator(experiment, setting, replication)
    clock = time.perf_counter if experiment.neural else time.process_time
    if setting.method in OFFLINE:
        return run | {"max_minutes": experiment.max_minutes} | offline(method, X, truth, clock)
    checks = FEW_CHECKS if experiment.neural else N_CHECKS
    run |= stream(method, X, truth, setting.sweeps, clock, checks)
    if experiment.neural and replication == 0 and setting.method == SPLIT:
        run["picture"] = picture(method.posterior_)
    if setting.alone or setting.pooled:  # what the black box itself thinks of it
        run["log_density"] = density(experiment, X, method.labels_)
    return run


def density(experiment: Experiment, X: Any, labels: Integers) -> float:
    """Σ_c [log α + lgamma(|c|) + log p(c)] under the experiment's black box."""
    model = copy.copy(experiment.model)
    evaluator = model.evaluator()
    numbers = evaluator.add(X if model.reads_rows else model.validate(X))
    sets = [numbers[labels == c] for c in range(int(labels.max()) + 1)]
    sizes = np.array([len(members) for members in sets])
    found = evaluator.log_marginals(sets, "clusters") + gammaln(sizes) + np.log(experiment.alpha)
    return float(found.sum())


def picture(posterior: Any) -> Run:
    """What a drawing of a clustering needs of its posterior."""
    return {
        "labels": posterior.labels().tolist(),
        "entropy": np.round(posterior.entropy(), 6).tolist(),
        "subproblems": [subproblem.observations.tolist() for subproblem in posterior.subproblems],
    }


def stream(
    sampler: Any,
    X: Any,
    truth: Integers | None,
    sweeps: int,
    clock: Callable[[], float] = time.process_time,
    n_checks: int = N_CHECKS,
) -> Run:
    """Feed the data in batches, measuring after each; only the sampler's own work is timed."""
    seen = np.unique(np.linspace(0, len(X), n_checks + 1).astype(int))[1:]
    seconds, online, start = 0.0, [], 0
    for stop in seen:
        began = clock()
        sampler.partial_fit(X[start:stop])
        seconds += clock() - began
        if truth is not None:
            online.append(pt.bcubed(truth[:stop], sampler.labels_).f1)
        start = stop
    if sweeps:
        began = clock()
        sampler.refine(sweeps)
        seconds += clock() - began
    posterior = sampler.posterior_
    return {
        **counted(sampler.model_),
        **calibration(posterior, truth),
        "seconds": seconds,
        **measures(truth, sampler.labels_),
        "log_density": posterior.log_density(),
        "subproblems": posterior.n_subproblems,
        "log_effective_particles": posterior.log_effective_particles(),
        "seen": seen.tolist(),
        "online_f1": online,
    }


def counted(model: Any) -> Run:
    """How often a black box was called, and for how many clusters."""
    if not hasattr(model, "cache_info"):
        return {}
    info = model.cache_info()
    return {"calls": info.calls, "evaluations": info.evaluations}


def calibration(posterior: Any, truth: Integers | None) -> Run:
    """How far the probabilities that two observations belong together are from the truth, on average."""
    sizes = [len(subproblem.observations) for subproblem in posterior.subproblems]
    if truth is None or max(sizes) < 2:
        return {}
    found = pt.metrics.calibration_of(posterior, truth)
    return {"calibration_error": found.expected_calibration_error, "brier": found.brier}


def offline(
    method: Any, X: Any, truth: Integers | None, clock: Callable[[], float] = time.process_time
) -> Run:
    """Fit all the data at once, and measure the best clustering at some moments of the way."""
    began = clock()
    method.fit(X)
    seconds = clock() - began
    history = method.history_
    last = len(history.time) - 1
    moments = np.unique(np.geomspace(1, last + 1, N_MOMENTS).astype(int) - 1)
    found = [measures(truth, history.labels[k]) for k in history.leader[moments]]
    return {
        **counted(method.model_),
        "cut_short": method.max_time is not None and bool(history.time[-1] >= method.max_time),
        "seconds": seconds,
        **measures(truth, method.labels_),
        "log_density": method.log_density(),
        "history": {
            # Wall time, which others' work lengthens, in proportion as CPU time.
            "seconds": (history.time[moments] * (seconds / history.time[-1])).tolist(),
            "log_density": history.best_score[moments].tolist(),
            **{name: [each[name] for each in found] for name in found[0]},
        },
    }


def measures(truth: Integers | None, labels: Integers) -> Run:
    """The number of clusters, and how good they are where the truth is known."""
    result: Run = {"clusters": int(labels.max()) + 1}
    if truth is not None:
        result |= pt.bcubed(truth, labels)._asdict()
    return result


def compiled_as(experiment: Experiment, setting: Setting) -> Setting:
    """A setting for which the same has to be compiled; with a network, one that asks it for little."""
    if not experiment.neural:
        return setting
    size = None if setting.size is None else 3
    return setting._replace(size=size, sweeps=min(setting.sweeps, 1), proposals=None, lookahead=None)


def compile_for(experiment: Experiment, setting: Setting) -> None:
    """Let a method compile what it needs before it is timed."""
    short = experiment._replace(max_minutes=1.0 / 60.0)
    method = estimator(short, setting._replace(sweeps=min(setting.sweeps, 1)), 0).fit(experiment.X[:20])
    if setting.method == REFINED:
        method.refine(1)


def chosen(experiment: Experiment, methods: Sequence[str] | None) -> list[Setting]:
    """The settings of some methods, all unless given, and of the ablation if it is among them."""
    main = [each for each in experiment.settings if methods is None or each.method in methods]
    more = experiment.ablation if methods is None or ABLATION in methods else ()
    return list(dict.fromkeys([*main, *more]))


class Results:
    """The runs of an experiment in a folder, saved after each."""

    def __init__(self, folder: Path, experiment: Experiment) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path, self.experiment = folder / "results.json", experiment
        self.fingerprint = experiment.fingerprint()
        self.codes = [experiment.order_code(replication) for replication in range(len(experiment.orders))]
        self.runs: list[Run] = []
        if self.path.exists():
            try:
                contents = json.loads(self.path.read_text(encoding="utf-8"))
                found, self.runs = contents["fingerprint"], contents["runs"]
            except (LookupError, TypeError, ValueError) as error:
                raise ValueError(
                    f"{self.path} holds no results: delete it, or choose another folder"
                ) from error
            if found != self.fingerprint:
                raise ValueError(
                    f"{self.path} holds results for other data or priors: choose another folder, or delete it"
                )

    def _key(self, setting: Setting, replication: int) -> tuple[Any, ...]:
        return (*setting, replication, self.codes[replication])

    def _done(self) -> dict[tuple[Any, ...], Run]:
        usual = Setting("")._asdict()  # what results of before do not say
        done = {}
        for run in self.runs:
            key = tuple(run.get(name, default) for name, default in usual.items())
            done[*key, run["replication"], run["order"]] = run
        return done

    def missing(self, methods: Sequence[str] | None = None) -> list[tuple[Setting, int]]:
        """What is still to be run, replication by replication; of some methods only, if so wished."""
        done = self._done()
        wanted = [
            (setting, replication)
            for replication in range(len(self.experiment.orders))
            for setting in chosen(self.experiment, methods)
            if replication == 0 or not setting.once
        ]
        return [each for each in wanted if not self._settled(done.get(self._key(*each)))]

    def _settled(self, run: Run | None) -> bool:
        """Whether a run is there, and no longer time would change it."""
        if run is None or not run.get("cut_short"):
            return run is not None
        limit = self.experiment.max_minutes
        return limit is not None and run["max_minutes"] >= limit

    def complete(self, methods: Sequence[str] | None = None) -> Iterator[tuple[Setting, int]]:
        """Run what is missing; yields before each run."""
        missing = self.missing(methods)
        for setting in {compiled_as(self.experiment, setting) for setting, _ in missing}:
            compile_for(self.experiment, setting)
        for setting, replication in missing:
            yield setting, replication
            self.keep(run_one(self.experiment, setting, replication))

    def keep(self, run: Run) -> None:
        """Add a run, in place of one that was cut short."""
        done = self._done()
        setting = Setting(*(run[name] for name in Setting._fields))
        earlier = done.get((*setting, run["replication"], run["order"]))
        self.runs = [each for each in self.runs if each is not earlier] + [run]
        self.save()

    def of(self, setting: Setting) -> list[Run]:
        """The runs of one setting, in order of their replications."""
        done = self._done()
        keys = [self._key(setting, replication) for replication in range(len(self.experiment.orders))]
        return [done[key] for key in keys if key in done]

    def save(self) -> None:
        """Write all runs, in one step."""
        contents = {
            "partita": pt.__version__,
            "experiment": self.experiment.name,
            "fingerprint": self.fingerprint,
            "runs": self.runs,
        }
        partial = self.path.with_suffix(".partial")
        partial.write_text(json.dumps(contents, indent=1), encoding="utf-8")
        partial.replace(self.path)
