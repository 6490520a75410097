"""What it looks like in a terminal how good a knowledge base is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.padding import Padding

from partita.terminal.drawing import cell, pairs, table
from partita.terminal.text import percent, proportion, shortened

if TYPE_CHECKING:
    from partita.kb.queries.diagnosis import Diagnosis
    from partita.kb.queries.mistakes import Mistaken
    from partita.metrics import Calibration, EvidenceSlopes, Reliability

CANNOT = "cannot tell"
TRUE = 4  # true entities that an entity is said to hold
SPREAD = 6  # entities that a true one is said to be spread over
LABELS = {  # of the scores whose names do not say it all
    "precision": "precision, B-cubed",
    "recall": "recall, B-cubed",
    "f1": "F1, mean over fragments",
    "harmonic f1": "F1, harmonic: 2PR/(P+R)",
    "pair precision": "precision of pairs",
    "pair recall": "recall of pairs",
    "pair f1": "F1 of pairs",
}


# ---------------------------------------------------------------------- evaluate


def evaluation(console: Console, scores: Mapping[str, Any], reliability: Calibration | None) -> None:
    """How good a clustering is, and how honest its probabilities."""
    pairs(console, {LABELS.get(name, name): score for name, score in scores.items()})
    if reliability is None:
        return
    made = table("said", "pairs", "mean", "true", right=("said", "pairs", "mean", "true"))
    for row in bins(reliability):
        if row["pairs"]:
            said = between(row["from"], row["to"])
            made.add_row(said, f"{row['pairs']:,}", percent(row["probability"]), proportion(row["frequency"]))
    console.print(Padding(made, (1, 0, 0, 0)))


def worst(console: Console, found: Sequence[Mistaken]) -> None:
    """What is wrong in the entities that are most wrong."""
    if not found:
        console.print(Padding(cell("No entity is wrong, as far as the truth is known."), (1, 0, 0, 0)))
        return
    console.print(
        Padding(cell("Most wrong, by pairs of fragments wrongly joined or missed", "bold"), (1, 0, 0, 0))
    )
    made = table("entity", "name", "joined", "missed", "what is wrong", right=("joined", "missed"))
    for one in found:
        numbers = (cell(f"{number:,}" if number else "") for number in (one.joined, one.missed))
        wrong = cell("; ".join(what_is_wrong(one)))
        made.add_row(cell(one.entity, "cyan"), cell(shortened(one.name or "")), *numbers, wrong)
    console.print(made)


def what_is_wrong(one: Mistaken) -> list[str]:
    """What is wrong in an entity, in words."""
    found = []
    if one.joined:
        held = [f"{len(fragments):,} of {shortened(true)}" for true, fragments in one.holds.items()]
        found.append(f"{some(held, TRUE)} (joined wrongly)")
    for true, share in one.spread.items():
        over = some([f"{entity} ({n:,})" for entity, n in share.items()], SPREAD)
        found.append(f"{shortened(true)} is spread over {over}")
    return found


def some(listed: Sequence[str], most: int) -> str:
    """The first of some things, and how many more there are."""
    more = len(listed) - most
    return ", ".join(listed[:most]) + (f" and {more:,} more" if more > 0 else "")


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
