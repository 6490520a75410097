"""Running an experiment: every setting on every order, kept as it goes, so that it can stop and go on."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import partita as pt
from partita._typing import Integers
from partita.experiments.plan import (
    GIBBS,
    GREEDY,
    ONLINE,
    REFINED,
    SMC,
    SPLIT,
    Experiment,
    Setting,
)

N_CHECKS = 20  # along a stream
N_MOMENTS = 40  # of an offline method's history
Run = dict[str, Any]


def estimator(experiment: Experiment, setting: Setting, seed: int) -> Any:
    """The method, ready to fit."""
    model, alpha = experiment.model, experiment.alpha
    if setting.method == GREEDY:
        return pt.Greedy(model, alpha, random_state=seed, **experiment.options)
    if setting.method in (SPLIT, REFINED):
        return pt.SplitSMC(model, alpha, setting.size or 1, random_state=seed, **experiment.options)
    if setting.method == SMC:
        return pt.SMC(model, alpha, setting.size or 1, random_state=seed)
    if setting.method == GIBBS:
        return pt.Gibbs(
            model, alpha, max_sweeps=10**6, patience=setting.sweeps, keep_labels=True, random_state=seed
        )
    return pt.Agglomerative(model, alpha, batch_size=setting.size, keep_labels=True, random_state=seed)


def run_one(experiment: Experiment, setting: Setting, replication: int) -> Run:
    """One setting on one order."""
    X, truth = experiment.in_order(replication)
    run: Run = {
        **setting._asdict(),
        "replication": replication,
        "order": experiment.order_code(replication),
    }
    method = estimator(experiment, setting, replication)
    if setting.method in (*ONLINE, REFINED):
        return run | stream(method, X, truth, setting.sweeps)
    return run | offline(method, X, truth)


def stream(sampler: Any, X: Any, truth: Integers | None, sweeps: int) -> Run:
    """Feed the data in batches, measuring after each; only the sampler's own work is timed."""
    seen = np.unique(np.linspace(0, len(X), N_CHECKS + 1).astype(int))[1:]
    seconds, online, start = 0.0, [], 0
    for stop in seen:
        began = time.process_time()
        sampler.partial_fit(X[start:stop])
        seconds += time.process_time() - began
        if truth is not None:
            online.append(pt.bcubed(truth[:stop], sampler.labels_).f1)
        start = stop
    if sweeps:
        began = time.process_time()
        sampler.refine(sweeps)
        seconds += time.process_time() - began
    posterior, model = sampler.posterior_, sampler.model_
    counted = {"evaluations": model.cache_info().evaluations} if hasattr(model, "cache_info") else {}
    return {
        **counted,
        "seconds": seconds,
        **measures(truth, sampler.labels_),
        "log_density": posterior.log_density(),
        "subproblems": posterior.n_subproblems,
        "log_effective_particles": posterior.log_effective_particles(),
        "seen": seen.tolist(),
        "online_f1": online,
    }


def offline(method: Any, X: Any, truth: Integers | None) -> Run:
    """Fit all the data at once, and measure the best clustering at some moments of the way."""
    began = time.process_time()
    method.fit(X)
    seconds = time.process_time() - began
    history = method.history_
    last = len(history.time) - 1
    moments = np.unique(np.geomspace(1, last + 1, N_MOMENTS).astype(int) - 1)
    found = [measures(truth, history.labels[k]) for k in history.leader[moments]]
    return {
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


def ablation(
    experiment: Experiment,
    black_box: Callable[[int], Any],
    n_proposals: Sequence[int],
    methods: Sequence[str] = ONLINE,
    n_particles: int = 10,
) -> Iterator[Run]:
    """How much of a costly likelihood is worth paying for: the paper's figures against m′ (appendix A.3).

    Parameters
    ----------
    experiment : Experiment
        The data, orders and concentration; its own model is not used.
    black_box : callable
        From m′, how many assignments the surrogate proposes at each step, to the model; for example
        ``lambda m: pt.BlackBox(score, surrogate, n_proposals=m)``.
    n_proposals : sequence of int
        Values of m′.
    methods : sequence of str
        Which of greedy, SMC and split SMC.
    n_particles : int
        Of the latter two.

    Yields
    ------
    dict
        A run as :func:`run_one` gives it, with m′ as ``n_proposals`` and, of a black box, the number of
        ``evaluations``; for each m′, order and method.
    """
    settings = [Setting(method, None if method == GREEDY else n_particles) for method in methods]
    for number in n_proposals:
        varied = experiment._replace(model=black_box(number))
        for replication in range(len(experiment.orders)):
            for setting in settings:
                yield run_one(varied, setting, replication) | {"n_proposals": number}


def measures(truth: Integers | None, labels: Integers) -> Run:
    """The number of clusters, and how good they are where the truth is known."""
    result: Run = {"clusters": int(labels.max()) + 1}
    if truth is not None:
        result |= pt.bcubed(truth, labels)._asdict()
    return result


def compile_for(experiment: Experiment, setting: Setting) -> None:
    """Let a method compile what it needs before it is timed."""
    method = estimator(experiment, setting, 0).fit(experiment.X[:20])
    if setting.method == REFINED:
        method.refine(1)


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
        names = (*Setting._fields, "replication", "order")
        return {tuple(run[name] for name in names): run for run in self.runs}

    def missing(self) -> list[tuple[Setting, int]]:
        """What is still to be run, replication by replication."""
        done = self._done()
        return [
            (setting, replication)
            for replication in range(len(self.experiment.orders))
            for setting in self.experiment.settings
            if self._key(setting, replication) not in done
        ]

    def complete(self) -> Iterator[tuple[Setting, int]]:
        """Run what is missing; yields before each run."""
        missing = self.missing()
        for setting in {setting for setting, _ in missing}:
            compile_for(self.experiment, setting)
        for setting, replication in missing:
            yield setting, replication
            run = run_one(self.experiment, setting, replication)
            self.runs.append(run)
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
