"""How much labels and answers help: learning curves.

python -m benchmarks.labels [--half tuning] [--sets …] [--most 500] [--pairs 0 20 100 500] [--orders 2] [--data DIR]

Whole clusters of each set, at most 500 records, in some random orders. A prior is learnt without labels, with the
answers to some questions, and with all labels; with each the records are clustered as
:mod:`benchmarks.entity_resolution` does, and refined. B-cubed F1 of that: the answers teach the prior and nothing
else, the clustering is not held to them, so the curve is what they say of the other records. One order alone says
little: the same records in another one move F1 by a hundredth, up or down.

The questions are such as people are asked. Half are pairs of records that share something rare, whatever the answer
is; the others are any pairs, as many of one entity as of two. Those of a short list begin the longer ones. Where
a figure is less than without answers it has a "!".
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

import partita as pt
from benchmarks.common import console, keep, show
from benchmarks.entity_sets import DATA, HALVES, load, sets_of, some_clusters
from benchmarks.record_peers import Records

PARTICLES = 20
SWEEPS = 2
RARE = 10  # records that share a value for it to be rare
ALL = "all labels"
TOLERANCE = 0.005  # of F1, below which a difference says nothing

Answers = list[tuple[int, int, bool]]


def questions(records: Records, truth: np.ndarray, n: int, seed: int) -> Answers:
    """Up to n different pairs of records, with the true answers."""
    generator = np.random.default_rng(seed)
    alike = sorted(sharing(records))
    alike = [alike[k] for k in generator.permutation(len(alike)).tolist()]
    asked: dict[tuple[int, int], bool] = {}
    for k in range(2 * n):
        if len(asked) == n:
            break
        if k % 2 == 0 and alike:
            i, j = alike.pop()
        else:
            i, j = any_pair(truth, same=k % 4 == 1, generator=generator)
        asked[min(i, j), max(i, j)] = bool(truth[i] == truth[j])
    return [(i, j, same) for (i, j), same in asked.items()]


def sharing(records: Records) -> set[tuple[int, int]]:
    """Pairs of records that share a value which few have."""
    holders: dict[tuple[str, str], list[int]] = defaultdict(list)
    for row, record in enumerate(records):
        for name, given in record.items():
            for value in {str(each) for each in (given if isinstance(given, list) else [given])}:
                holders[name, value].append(row)
    return {pair for rows in holders.values() if len(rows) <= RARE for pair in combinations(rows, 2)}


def any_pair(truth: np.ndarray, same: bool, generator: np.random.Generator) -> tuple[int, int]:
    """Two records of one entity, or of two, at random; of two, if no entity has two records."""
    for _ in range(100):
        i = int(generator.integers(len(truth)))
        others = np.flatnonzero((truth == truth[i]) == same)
        others = others[others != i]
        if len(others):
            return i, int(generator.choice(others))
    return any_pair(truth, not same, generator)


def f1(model: Any, records: Records, truth: np.ndarray) -> float:
    """How good the clusters are that a model leads to."""
    sampler = pt.SplitSMC(model, alpha="auto", n_particles=PARTICLES, random_state=0).fit(records)
    return float(pt.bcubed(truth, sampler.refine(SWEEPS).labels_).f1)


def curve(records: Records, truth: np.ndarray, known: list[int], order: int) -> dict[str, float]:
    """F1 of records in one random order by how many pairs are known, and with all labels."""
    arranged = np.random.default_rng(order).permutation(len(truth))
    records, truth = [records[k] for k in arranged], truth[arranged]
    schema, asked = pt.Record.infer(records), questions(records, truth, max(known), order)
    found = {str(n): f1(schema.fit_prior(records, pairs=asked[:n]), records, truth) for n in known}
    return found | {ALL: f1(schema.fit_prior(records, truth), records, truth)}


def mean(curves: list[dict[str, float]]) -> dict[str, float]:
    """The mean of learning curves."""
    return {n: float(np.mean([each[n] for each in curves])) for n in curves[0]}


# ---------------------------------------------------------------------- the command


def options(given: list[str] | None = None) -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the sets")
    parser.add_argument("--half", choices=(*HALVES, "both"), default="tuning")
    parser.add_argument("--sets", nargs="+", help="these alone, of whichever half")
    parser.add_argument("--most", type=int, default=500, help="records of a set")
    parser.add_argument("--pairs", type=int, nargs="+", default=[0, 20, 100, 500], help="how many are known")
    parser.add_argument(
        "--orders", type=int, default=2, help="of the records, each with questions of its own"
    )
    chosen = parser.parse_args(given)
    chosen.pairs = sorted({0, *chosen.pairs})
    chosen.sets = chosen.sets or sets_of(chosen.half)
    return chosen


def written(found: float, without: float) -> str:
    """A figure, marked if it is less than without answers."""
    return f"{found:.3f}{'!' if found < without - TOLERANCE else ''}"


def main(given: list[str] | None = None) -> None:
    """Run what the command line asks for."""
    chosen = options(given)
    results: dict[str, Any] = {}
    for name in chosen.sets:
        records, truth = some_clusters(*load(chosen.data, name), chosen.most, 0)
        results[name] = mean([curve(records, truth, chosen.pairs, order) for order in range(chosen.orders)])
        line = "  ".join(f"{n}: {written(found, results[name]['0'])}" for n, found in results[name].items())
        console.print(f"{name} ({len(records)} records)  {line}", markup=False)
    of_all = results | {"mean": mean(list(results.values()))}
    rows = [[name, *(written(value, of["0"]) for value in of.values())] for name, of in of_all.items()]
    show("B-cubed F1 by how many pairs are known", ["set", *of_all["mean"]], rows)
    keep("labels", {"most": chosen.most, "orders": chosen.orders, "sets": results})


if __name__ == "__main__":
    main()
