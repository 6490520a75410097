"""Runs side by side: each in a process of its own, results written by one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

from partita.experiments.experiment import Experiment, Setting
from partita.experiments.runner import Results, Run, compile_for, compiled_as, run_one

_given: dict[str, Experiment] = {}  # of a worker: its experiment
_compiled: set[Setting] = set()


def share_the_device() -> None:
    """Let several processes use one GPU: by default JAX takes most of its memory for the first."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


def complete(
    results: Results, jobs: int, methods: Sequence[str] | None = None
) -> Iterator[tuple[Setting, int]]:
    """Run what is missing in so many processes; yields after each run, when it is saved."""
    missing = results.missing(methods)
    pool = ProcessPoolExecutor(
        min(jobs, len(missing)) or 1, get_context("spawn"), begin, (results.experiment,)
    )
    try:
        futures = {pool.submit(work, *each): each for each in missing}
        for future in as_completed(futures):
            results.keep(future.result())
            yield futures[future]
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def begin(experiment: Experiment) -> None:
    """What a worker knows."""
    _given["experiment"] = experiment


def work(setting: Setting, replication: int) -> Run:
    """One run, after what it needs has been compiled."""
    experiment = _given["experiment"]
    alike = compiled_as(experiment, setting)
    if alike not in _compiled:
        compile_for(experiment, alike)
        _compiled.add(alike)
    return run_one(experiment, setting, replication)
