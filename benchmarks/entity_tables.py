"""Tables of the benchmark of entity resolution."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.common import console, show
from benchmarks.entity_sets import TARGETS, Honesty

OURS, REFINED = "Partita", "Partita, refined"
SPLINK, LINKAGE, VALUES, NAMES, ALONE = "Splink", "linkage", "equal values", "equal names", "alone"
BESIDE = (LINKAGE, VALUES, ALONE, SPLINK)
HONESTY = Honesty()
Row = dict[str, float | None]


def text(figure: float | None) -> str:
    """Three digits, or a dash where there is none."""
    return "–" if figure is None else f"{figure:.3f}"


def show_sets(results: dict[str, Any]) -> None:
    """Print one table of all sets and methods."""
    rows = []
    for name, of_set in results.items():
        for method, r in of_set["methods"].items():
            f1 = text(r["f1"]) + (f" ({r['f1_sd']:.3f})" if r["orders"] > 1 else "")
            figures = [text(r["precision"]), text(r["recall"]), f1, text(r["harmonic"])]
            honest = [text(r.get(key)) for key in ("own", "common", "sure")]
            costs = [f"{r['cpu_seconds']:.1f}", f"{r['mebibytes']:.0f}"]
            rows.append([name, method, *figures, *honest, *costs])
    columns = ["set", "method", "P", "R", "F1", "H", "ECE own", "common", "sure", "CPU s", "MiB"]
    show("B-cubed P, R, F1 per item, H of P and R; calibration error; cost", columns, rows)


def show_latency(results: dict[str, Any]) -> None:
    """Print how long a single record takes."""
    rows = [
        [name, method, f"{r['median']:.2f}", f"{r['p99']:.2f}"]
        for name, of_set in results.items()
        for method, r in of_set.get("latency", {}).items()
    ]
    if rows:
        show("one more record, milliseconds", ["set", "method", "median", "99 %"], rows)


# ---------------------------------------------------------------------- against the targets


def best_of_ours(methods: dict[str, Any]) -> dict[str, Any]:
    """Our figures after refinement, after one pass where there is none."""
    found: dict[str, Any] = methods.get(REFINED) or methods.get(OURS) or {}
    return found


def row_of(methods: dict[str, Any], target: float) -> Row:
    """One set: F1 of ours and of others, and how honest ours is."""
    ours = best_of_ours(methods)
    others = {method: methods.get(method, {}).get("f1") for method in BESIDE}
    honest = {key: ours.get(key) for key in ("own", "common", "sure")}
    return {"ours": ours.get("f1"), "target": target, **others, **honest}


def means(rows: dict[str, Row]) -> dict[str, tuple[float | None, int]]:
    """The mean of each column over the sets that have it, and how many these are."""
    columns = next(iter(rows.values()))
    known = {
        column: [figure for row in rows.values() if (figure := row[column]) is not None] for column in columns
    }
    return {column: (float(np.mean(of)) if of else None, len(of)) for column, of in known.items()}


def by_half(results: dict[str, Any]) -> dict[str, dict[str, Row]]:
    """The rows of both halves; sets that were not run are left out."""
    return {
        half: {n: row_of(results[n]["methods"], target) for n, target in targets.items() if n in results}
        for half, targets in TARGETS.items()
    }


def shortfalls(half: str, rows: dict[str, Row]) -> list[str]:
    """What misses its target, in words; F1 is held to it in three digits."""
    found = []
    for name, row in rows.items():
        f1, target, error, sure = (row[key] for key in ("ours", "target", "own", "sure"))
        if f1 is not None and target is not None and round(f1, 3) < target:
            found.append(f"{name}: F1 {f1:.3f} < {target:.3f}")
        if error is not None and error > HONESTY.error:
            found.append(f"{name}: calibration error {error:.3f} > {HONESTY.error}")
        if sure is not None and sure < HONESTY.sure:
            found.append(f"{name}: {sure:.3f} of sure pairs are true < {HONESTY.sure}")
    error = means(rows)["own"][0]
    if error is not None and error > HONESTY.mean_error:
        found.append(f"{half}: mean calibration error {error:.3f} > {HONESTY.mean_error}")
    return found


def show_halves(results: dict[str, Any]) -> None:
    """Print a table of each half against the targets, with means, and what misses them.

    A mean over fewer sets than the half has is followed by their number.
    """
    for half, rows in by_half(results).items():
        if not rows:
            continue
        table = [[name, *(text(figure) for figure in row.values())] for name, row in rows.items()]
        mean = [
            text(figure) + (f" ({of})" if of not in (0, len(rows)) else "")
            for figure, of in means(rows).values()
        ]
        columns = ["set", "ours", "target", *BESIDE, "ECE own", "common", "sure"]
        show(f"{half} half: F1 of ours and others; honesty of ours", columns, [*table, ["mean", *mean]])
        judged = sum(row["ours"] is not None for row in rows.values())
        missed = shortfalls(half, rows)
        lines = [f"{half}: {judged} of {len(TARGETS[half])} sets run, {len(missed)} targets missed", *missed]
        console.print("\n".join(lines), markup=False)
