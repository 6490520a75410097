"""Entities from records and names: how good, how honest, how fast and how large, beside other methods.

python -m benchmarks.entity_resolution [--half tuning|testing|both] [--sets …] [--methods …] [--orders 3]
                                       [--particles 20] [--no-peers] [--jobs 1] [--data DIR] [--show]

Needs ``pip install -e ".[bench]"`` and the sets in ``../shared/data``. Partita is one call for all sets,
:func:`cluster`; it sees no label, and its constants are chosen on the tuning half alone
(:mod:`benchmarks.entity_sets`). Peers run at their best, with settings chosen by the truth: linkage of texts
(:mod:`benchmarks.record_peers`) and Splink with its own demonstrations (:mod:`benchmarks.splink_peer`).
Beside them is what needs no choice: everything alone, equal values, equal names.

Each run has a process of its own, with kernels compiled before the clock starts. CPU seconds count user and
system time of the process and its children, memory is all of the process at its peak; reading the file is
not counted. Ours are means over random orders, Splink's over the random pairs that it learns from. With
``--jobs`` several sets are run at once; then wall seconds say little.

Calibration: the expected calibration error over ten bins of equal width, over two populations of pairs.
*Own*: all pairs that the method considered, for Splink those that its blocking rules let through, for
Partita those within a subproblem, for a method without probabilities those that it joins. *Common*: the same
pairs for all methods, those that a run of Partita or Splink gives a probability of 0.01 or more, and all true
pairs; a pair that a method did not consider has probability 0, so that a missed true pair counts in full.
There is none where Partita is not among the methods run. *Sure*: of all pairs with a probability above 0.99,
the share that is true.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np

import partita as pt
from benchmarks.common import RESULTS, Cost, console, keep, measured
from benchmarks.entity_sets import DATA, HALVES, load, sets_of
from benchmarks.entity_tables import (
    ALONE,
    LINKAGE,
    NAMES,
    OURS,
    REFINED,
    SPLINK,
    VALUES,
    show_halves,
    show_latency,
    show_sets,
)
from benchmarks.record_peers import (
    Answer,
    Records,
    equal_names,
    equal_values,
    everything_alone,
    linked_texts,
    pairs_of,
    scores,
)
from benchmarks.splink_peer import DEMOS, splink, splink_latency
from partita.metrics import calibration, pairs_for_calibration

PEERS: dict[str, Callable[..., Answer]] = {
    SPLINK: splink,
    LINKAGE: linked_texts,
    VALUES: equal_values,
    NAMES: equal_names,
    ALONE: everything_alone,
}
METHODS = (OURS, *PEERS)
LINKED = 10_000  # records at most: linkage keeps the distances of all pairs
MANY = 2_000  # records; beyond, only candidates are scored
REFINABLE = 40_000  # records; below, a second row shows what refinement adds
SWEEPS = 3  # of refinement
LATENCY = ("historical50k",)
SINGLE_INSERTS = 1_000
PROPOSED = 0.01  # a pair with this probability belongs to the common population
SURE = 0.99  # a pair with more is as good as certain
PAIRS = 2_000_000  # at most, of those within subproblems, for our own calibration
WARM_UP = 60  # records


def cluster(records: Records, particles: int = 20, expected: int = 0) -> Any:
    """Ours, the same for every set: everything is learnt from the records themselves.

    Where more records are ``expected`` than given, what is done for so many is done for these.
    """
    model = pt.Record.infer(records).fit_prior(records)
    options: dict[str, Any] = {"keys": "auto"} if max(len(records), expected) > MANY else {}
    return pt.SplitSMC(model, alpha="auto", n_particles=particles, random_state=0, **options).fit(records)


def warm_up(records: Records, particles: int) -> None:
    """Compile what is needed for these records, with a few of them."""
    sampler = cluster(records[:WARM_UP], particles, expected=len(records)).partial_fit(records[:1])
    if len(records) < REFINABLE:
        sampler.refine(SWEEPS)


# ---------------------------------------------------------------------- one run, in its own process


def run_ours(records: Records, truth: np.ndarray, particles: int, order: int) -> dict[str, Any]:
    """Partita on one random order: after one pass, and refined unless there are too many records."""
    arranged = np.random.default_rng(order).permutation(len(records))
    given = [records[k] for k in arranged]
    warm_up(given, particles)
    cost, sampler = measured(lambda: cluster(given, particles))
    results = {OURS: judged(sampler, cost, truth, arranged)}
    if len(records) < REFINABLE:
        more, _ = measured(lambda: sampler.refine(SWEEPS))
        both = Cost(
            cost.cpu_seconds + more.cpu_seconds,
            cost.wall_seconds + more.wall_seconds,
            max(cost.mebibytes, more.mebibytes),
        )
        results[REFINED] = judged(sampler, both, truth, arranged)
    return results


def judged(sampler: Any, cost: Cost, truth: np.ndarray, arranged: np.ndarray) -> dict[str, Any]:
    """What a sampler says of records that it saw in this order."""
    posterior = sampler.posterior_
    labels = np.empty(len(truth), np.int64)
    labels[arranged] = sampler.labels_
    first, second, together = likely_pairs(posterior)
    settings = {"alpha": float(sampler.alpha_)}
    result = summary(Answer(labels, arranged[first], arranged[second], together, cost, settings), truth)
    least_loss = posterior.labels(loss="bcubed")
    result["f1_least_loss"] = scores(truth[arranged], least_loss).f1
    try:
        i, j = pairs_for_calibration(posterior, PAIRS)
    except ValueError:  # no two records share a subproblem
        return result
    result["own"] = error(posterior.together(i, j), truth[arranged[i]] == truth[arranged[j]])
    return result


def likely_pairs(posterior: Any, least: float = 0.001) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Every pair that may share a cluster, and the probability that it does."""
    n, keys, weights = posterior.n_observations, [np.zeros(0, np.int64)], [np.zeros(0)]
    for subproblem in posterior.subproblems:
        observations = np.asarray(subproblem.observations)
        if len(observations) == 1:
            continue
        for partition, probability in zip(subproblem.partitions, subproblem.probabilities, strict=True):
            first, second = pairs_of(np.asarray(partition))
            keys.append(observations[first] * n + observations[second])
            weights.append(np.full(len(first), probability))
    distinct, which = np.unique(np.concatenate(keys), return_inverse=True)
    together = np.minimum(np.bincount(which, np.concatenate(weights), len(distinct)), 1.0)
    likely = together >= least
    return (*np.divmod(distinct[likely], n), together[likely])


def summary(answer: Answer, truth: np.ndarray) -> dict[str, Any]:
    """What the parent process needs: figures, and the pairs of some probability."""
    n = len(truth)
    low, high = np.minimum(answer.first, answer.second), np.maximum(answer.first, answer.second)
    likely = answer.together >= PROPOSED / 10
    keys = (low * n + high)[likely]
    order = np.argsort(keys)
    return {
        **scores(truth, answer.labels)._asdict(),
        **answer.cost._asdict(),
        "clusters": len(np.unique(answer.labels)),
        "own": error(answer.together, truth[low] == truth[high]),
        **certainty(answer.together, truth[low] == truth[high]),
        "settings": answer.settings,
        "pairs": (keys[order], answer.together[likely][order]),
    }


def error(together: np.ndarray, same: np.ndarray) -> float | None:
    """Expected calibration error; None if there are no pairs."""
    return calibration(together, same).expected_calibration_error if len(together) else None


def certainty(together: np.ndarray, same: np.ndarray) -> dict[str, Any]:
    """How many pairs are as good as certain, and which share of them is true."""
    certain = together > SURE
    return {"sure": float(same[certain].mean()) if certain.any() else None, "sure_pairs": int(certain.sum())}


def run(method: str, data: Path, name: str, particles: int, order: int) -> dict[str, Any]:
    """One method on one set, in this process: its rows of the table, ours being two."""
    records, truth = load(data, name)
    if method == OURS:
        return run_ours(records, truth, particles, order)
    return {method: summary(PEERS[method](name, records, truth, order), truth)}


def latency(method: str, data: Path, name: str, particles: int) -> dict[str, float]:
    """Milliseconds to take in one more record (ours) or to score it against all others (Splink)."""
    records = load(data, name)[0]
    records = [records[k] for k in np.random.default_rng(0).permutation(len(records))]
    if method == SPLINK:
        seconds = splink_latency(name, records)
    else:
        warm_up(records, particles)
        sampler, seconds = cluster(records[:-SINGLE_INSERTS], particles), []
        for record in records[-SINGLE_INSERTS:]:
            began = time.perf_counter()
            sampler.partial_fit([record])
            seconds.append(time.perf_counter() - began)
    quantiles = np.quantile(1e3 * np.array(seconds), (0.5, 0.99))
    return {"median": float(quantiles[0]), "p99": float(quantiles[1]), "records": len(seconds)}


def apart(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in a fresh process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


# ---------------------------------------------------------------------- all runs of a set


def compare(data: Path, name: str, methods: list[str], n_orders: int, particles: int) -> dict[str, Any]:
    """Every method on one set."""
    truth = load(data, name)[1]
    runs: dict[str, list[dict[str, Any]]] = {}
    for method in methods:
        reason = unsuitable(method, name, len(truth))
        if reason:
            console.print(f"{name}: {method} is not run: {reason}", markup=False)
            continue
        orders = range(n_orders if method in (OURS, SPLINK) else 1)  # the others draw nothing
        for order in orders:
            for row, figures in apart(run, method, data, name, particles, order).items():
                runs.setdefault(row, []).append(figures)
    population = common_pairs(runs, truth)
    same = truth[population // len(truth)] == truth[population % len(truth)]
    for of_method in runs.values():
        for each in of_method:
            together = probability_of(population, *each.pop("pairs"))
            each["common"] = error(together, same) if OURS in runs else None
    return {"records": len(truth), "methods": {method: averaged(of) for method, of in runs.items()}}


def unsuitable(method: str, name: str, n: int) -> str:
    """Why a method is not run on a set; empty if it is."""
    if method == SPLINK and name not in DEMOS:
        return "it has no demonstration of this set"
    if method == SPLINK and importlib.util.find_spec("splink") is None:
        return 'it is not installed: pip install -e ".[bench]"'
    if method == LINKAGE and n > LINKED:
        return f"{n:,} records have too many pairs"
    return ""


def common_pairs(runs: dict[str, list[dict[str, Any]]], truth: np.ndarray) -> np.ndarray:
    """The pairs on which methods are compared, as keys i·n + j."""
    first, second = pairs_of(truth)
    chosen = [np.minimum(first, second) * len(truth) + np.maximum(first, second)]
    for method in (OURS, REFINED, SPLINK):
        for each in runs.get(method, []):
            keys, together = each["pairs"]
            chosen.append(keys[together >= PROPOSED])
    return np.unique(np.concatenate(chosen))


def probability_of(population: np.ndarray, keys: np.ndarray, together: np.ndarray) -> np.ndarray:
    """A method's probabilities for pairs, 0 for those that it does not have."""
    if not len(keys):
        return np.zeros(len(population))
    place = np.minimum(np.searchsorted(keys, population), len(keys) - 1)
    return np.where(keys[place] == population, together[place], 0.0)


def averaged(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Means over the orders, the standard deviation of F1, and the most memory."""
    perhaps = ("own", "common", "sure")
    numbers = [key for key in runs[0] if key not in ("settings", *perhaps)]
    result: dict[str, Any] = {key: float(np.mean([run[key] for run in runs])) for key in numbers}
    for key in perhaps:
        known = [run[key] for run in runs if run[key] is not None]
        result[key] = float(np.mean(known)) if known else None
    result["f1_sd"] = float(np.std([run["f1"] for run in runs]))
    result["mebibytes"] = max(run["mebibytes"] for run in runs)
    return result | {"orders": len(runs), "settings": runs[0]["settings"]}


def with_last(kept: dict[str, Any], name: str, of_set: dict[str, Any]) -> dict[str, Any]:
    """All results there are: the last ones, with those of one set brought up to date, method by method."""
    before = kept.get(name, {"methods": {}})
    both = {key: before.get(key, {}) | of_set.get(key, {}) for key in ("methods", "latency")}
    return kept | {name: of_set | both}


# ---------------------------------------------------------------------- the command


def options(given: list[str] | None = None) -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the sets")
    parser.add_argument("--half", choices=(*HALVES, "both"), default="both")
    parser.add_argument("--sets", nargs="+", help="these alone, of whichever half")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--orders", type=int, default=3)
    parser.add_argument("--particles", type=int, default=20)
    parser.add_argument("--no-peers", action="store_true", help="Partita alone")
    parser.add_argument("--jobs", type=int, default=1, help="sets at a time")
    parser.add_argument("--show", action="store_true", help="run nothing, print the last results")
    chosen = parser.parse_args(given)
    chosen.methods = [OURS] if chosen.no_peers else chosen.methods
    chosen.sets = chosen.sets or sets_of(chosen.half)
    return chosen


def last_results() -> dict[str, Any]:
    """What earlier runs have kept, set by set."""
    path = RESULTS / "entity_resolution.json"
    kept: dict[str, Any] = json.loads(path.read_text())["sets"] if path.exists() else {}
    return kept


def run_all(chosen: argparse.Namespace) -> dict[str, Any]:
    """Run sets and keep what comes of each; sets and methods that are not run keep their last results."""
    results: dict[str, Any] = {}

    def done(name: str, of_set: dict[str, Any]) -> None:
        results[name] = results.get(name, {}) | of_set
        kept = with_last(last_results(), name, results[name])
        keep("entity_resolution", {"particles": chosen.particles, "sets": kept})

    with ThreadPoolExecutor(chosen.jobs) as pool:  # threads that wait for processes
        waiting = {
            pool.submit(compare, chosen.data, name, chosen.methods, chosen.orders, chosen.particles): name
            for name in chosen.sets
        }
        for each in as_completed(waiting):
            if error := each.exception():  # the other sets go on
                console.print(f"{waiting[each]} failed: {error!r}", markup=False)
            else:
                done(waiting[each], each.result())
    for name in set(LATENCY) & set(results):  # with nothing else under way
        timed = [m for m in chosen.methods if m in (OURS, SPLINK) and not unsuitable(m, name, 0)]
        done(name, {"latency": {m: apart(latency, m, chosen.data, name, chosen.particles) for m in timed}})
    return results


def main() -> None:
    """Run what the command line asks for."""
    chosen = options()
    kept = last_results() if chosen.show else run_all(chosen)
    results = {name: kept[name] for name in chosen.sets if name in kept}
    show_sets(results)
    show_latency(results)
    show_halves(results)
    if len(results) < len(chosen.sets):
        raise SystemExit(f"without results: {', '.join(sorted(set(chosen.sets) - set(results)))}")


if __name__ == "__main__":
    main()
