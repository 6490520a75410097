"""How much memory: bytes an observation on a long stream, and how the state shrinks when doubts resolve.

python -m benchmarks.memory
"""

from __future__ import annotations

import numpy as np

import partita as pt
from benchmarks.common import keep, show
from partita.smc.state.state import ARRAYS, COUNTS, dismantle


def usage(sampler: pt.SplitSMC) -> dict[str, int]:
    """Bytes allocated for the state's arrays, and cells in use."""
    parts, counts, *_ = dismantle(sampler._engine.state)
    count = dict(zip(COUNTS, counts.tolist(), strict=True))
    bytes_of = {name: part.nbytes for name, part in zip(ARRAYS, parts, strict=True)}
    working = 8 * 3 * len(parts[3]) + (8 * 4 + 1) * len(parts[5])
    return {"bytes": sum(bytes_of.values()) + working, "live_cells": count["live_cells"]}


def long_stream(n: int = 200_000) -> list[dict[str, float]]:
    """Bytes an observation, m = 100, on a stream in 20 clusters that overlap a little."""
    generator = np.random.default_rng(0)
    centres = generator.uniform(-20, 20, (20, 2))
    X = centres[generator.integers(20, size=n)] + generator.normal(0, 1, (n, 2))
    sampler = pt.SplitSMC(pt.Gaussian(2.0, 2.0, 0.0, 0.005), alpha=1.0, n_particles=100)
    results, rows = [], []
    for first in range(0, n, n // 10):
        sampler.partial_fit(X[first : first + n // 10])
        seen, used = first + n // 10, usage(sampler)
        results.append({"n": seen, "bytes_per_observation": used["bytes"] / seen, **used})
        rows.append(
            [
                f"{seen:,}",
                f"{used['bytes'] / seen:.0f}",
                f"{used['bytes'] / 2**20:.1f}",
                f"{used['live_cells']:,}",
            ]
        )
    show(
        f"{n:,} points in 20 clusters, m = 100: memory of the state, all arrays as allocated",
        ["observations", "bytes each", "MiB", "cells in use"],
        rows,
    )
    return results


def doubts_resolve() -> list[dict[str, float]]:
    """Cells in use on a stream of six overlapping clusters: most while little is decided."""
    generator = np.random.default_rng(0)
    centres = generator.uniform(-6, 6, (6, 2))
    X = centres[generator.integers(6, size=1600)] + generator.normal(0, 1, (1600, 2))
    sampler = pt.SplitSMC(pt.Gaussian(2.0, 2.0, 0.0, 0.005), alpha=1.0, n_particles=100)
    results, rows = [], []
    seen = 0
    for n in (25, 50, 100, 200, 400, 800, 1600):
        sampler.partial_fit(X[seen:n])
        seen = n
        cells = usage(sampler)["live_cells"]
        results.append({"n": n, "live_cells": cells})
        rows.append([n, f"{cells:,}", f"{cells / n:.1f}"])
    show("six overlapping clusters, m = 100", ["observations", "cells in use", "per observation"], rows)
    return results


if __name__ == "__main__":
    keep("memory", {"long_stream": long_stream(), "doubts_resolve": doubts_resolve()})
