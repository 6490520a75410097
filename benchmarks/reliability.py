"""Does the reliability curve without labels agree with the truth?

python -m benchmarks.reliability [SET ...] [--data ../shared/data] [--records 700] [--seed 0]

Whole clusters of each set are clustered, and the share of true pairs by probability, estimated by leaving attributes
out, stands beside the true one. It must be within .1 or say that it cannot tell. The constants of
:mod:`partita.metrics.left_out` were chosen on the sets that are the default. Takes ten minutes.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

import partita as pt
from benchmarks.common import keep, show
from benchmarks.entity_sets import DATA, load, some_clusters

SETS = (
    "rldata500",
    "fodors_zagat",
    "fake1000",
    "cora",
    "historical50k",
    "inventors_stream",
    "amazon_google",
    "ecb_mentions_a",
)
CLOSE = 0.1


def measure(data: Path, name: str, most: int, seed: int) -> dict[str, Any]:
    """The estimated and the true curve of one set."""
    records, truth = some_clusters(*load(data, name), most, seed)
    model = pt.Record.infer(records).fit_prior(records)
    sampler = pt.SplitSMC(model, n_particles=20, random_state=0).fit(records).refine(1)
    began = time.perf_counter()
    found = pt.metrics.reliability_without_labels(model, records, sampler.posterior_)
    seconds = time.perf_counter() - began
    first, second = np.triu_indices(len(records), 1)
    held = np.searchsorted(found.edges[:-1], sampler.posterior_.together(first, second), side="right") - 1
    same = truth[first] == truth[second]
    bins = found.as_dict()["bins"]
    for b, row in enumerate(bins):
        row["true"] = float(same[held == b].mean()) if row["pairs"] else None
    return {"records": len(records), "seconds": round(seconds, 1), "bins": bins}


def main() -> None:
    """Measure all sets, print a row for each, and keep what was measured unless sets were named."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("sets", nargs="*", default=SETS)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--records", type=int, default=700)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    results = {name: measure(chosen.data, name, chosen.records, chosen.seed) for name in chosen.sets}
    rows = []
    for name, of in results.items():
        cells = []
        for row in of["bins"]:
            if row["share"] is None:
                cells.append(f"? ({row['true']:.2f})" if row["pairs"] else "-")
            else:
                far = "" if abs(row["share"] - row["true"]) <= CLOSE else " FAR"
                cells.append(f"{row['share']:.2f} ({row['true']:.2f}){far}")
        rows.append([name, of["seconds"], *cells])
    edges = [f"{row['from']:.2f}-{row['to']:.2f}" for row in next(iter(results.values()))["bins"]]
    show("estimated (true) share of pairs; ? cannot tell", ["set", "seconds", *edges], rows)
    if tuple(chosen.sets) == SETS:
        keep("reliability", {"records": chosen.records, "seed": chosen.seed, "sets": results})


if __name__ == "__main__":
    main()
