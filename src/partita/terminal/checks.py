"""What it looks like in a terminal how good a knowledge base is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.padding import Padding

from partita.terminal.drawing import cell, pairs, table
from partita.terminal.text import percent

if TYPE_CHECKING:
    from partita.kb.queries.diagnosis import Diagnosis
    from partita.metrics import Calibration, EvidenceSlopes, Reliability

CANNOT = "cannot tell"


# ---------------------------------------------------------------------- evaluate


def evaluation(console: Console, scores: Mapping[str, Any], reliability: Calibration | None) -> None:
    """How good a clustering is, and how honest its probabilities."""
    pairs(console, scores)
    if reliability is None:
        return
    made = table("said", "pairs", "mean", "true", right=("said", "pairs", "mean", "true"))
    for row in bins(reliability):
        if row["pairs"]:
            said = between(row["from"], row["to"])
            made.add_row(said, f"{row['pairs']:,}", percent(row["probability"]), percent(row["frequency"]))
    console.print(Padding(made, (1, 0, 0, 0)))


def bins(reliability: Calibration) -> list[dict[str, Any]]:
    """The bins of a reliability table, as JSON can hold them."""
    n = len(reliability.bin_count)
    return [
        {
            "from": b / n,
            "to": (b + 1) / n,
            "pairs": int(reliability.bin_count[b]),
            "probability": float(reliability.bin_probability[b]) if reliability.bin_count[b] else None,
            "frequency": float(reliability.bin_frequency[b]) if reliability.bin_count[b] else None,
        }
        for b in range(n)
    ]


# ---------------------------------------------------------------------- diagnose


def diagnosis(console: Console, found: Diagnosis) -> None:
    """How far probabilities are to be believed."""
    console.print(
        cell(f"{found.fragments:,} fragments of {found.entities:,} entities, α = {found.alpha:.3g}")
    )
    console.print()
    if found.reliability is None:
        console.print(cell("A language model reads fragments as a whole: no attribute can be left out."))
    else:
        reliability_curve(console, found.reliability)
    if found.slopes is not None:
        slopes(console, found.slopes)
    console.print()
    if not found.warnings:
        console.print(cell("No sign that learning has collapsed."))
    for sign in found.warnings:
        console.print(cell("Warning: ", "bold yellow") + cell(f"{sign.message}."))
        console.print(cell(f"  {sign.advice[0].upper()}{sign.advice[1:]}.", "dim"))


def reliability_curve(console: Console, found: Reliability) -> None:
    """What share of pairs is of one entity, as far as the attributes can tell."""
    console.print(
        cell("Of the pairs said to be of one entity, how many are? Estimated without labels, ", "bold")
    )
    console.print(
        cell(f"from {found.n_records:,} fragments, by leaving out one attribute at a time.", "bold")
    )
    made = table("said", "pairs", "mean", "true", "why not", right=("said", "pairs", "mean", "true"))
    for b, reason in enumerate(found.reasons):
        share = f"{found.share[b]:.0%} ± {found.error[b]:.0%}".replace("%", " %")
        mean = percent(float(found.probability[b])) if found.count[b] else ""
        said = between(found.edges[b], found.edges[b + 1])
        made.add_row(
            said, f"{found.count[b]:,}", mean, cell(CANNOT if reason else share), cell(reason, "dim")
        )
    console.print(Padding(made, (1, 0, 1, 0)))
    if not found.attributes:
        return
    columns = [between(found.edges[b], found.edges[b + 1]) for b in range(len(found.count))]
    right = ("alike within", "between", *columns)
    made = table("left out", "alike within", "between", *columns, "cannot tell", right=right)
    for one in found.attributes:
        alike = ["" if x != x else f"{x:.2f}" for x in (one.within, one.between)]
        told = ["" if x != x else percent(float(x)) for x in one.share]
        why = one.reason or next((reason for reason in reversed(one.reasons) if reason), "")
        made.add_row(cell(one.name), *alike, *told, cell(why, "dim"))
    console.print(made)


def slopes(console: Console, found: EvidenceSlopes) -> None:
    """The slope of truth on evidence."""
    console.print()
    console.print(cell("How much truth is in a nat of evidence? 1 is honest, less is too sure.", "bold"))
    made = table("evidence on", "slope", "±", "cases", right=("slope", "±", "cases"))
    for level, slope in found._asdict().items():
        if slope is None:
            made.add_row(level, CANNOT, "", "0")
        else:
            made.add_row(level, f"{slope.slope:.2f}", f"{slope.error:.2f}", f"{slope.cases:,}")
    console.print(Padding(made, (1, 0, 0, 0)))


def between(low: float, high: float) -> str:
    """A range of probabilities."""
    return f"{100 * low:.0f}–{100 * high:.0f} %"
