"""Where records may go: places by probability, with the evidence of each in a line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console

from partita.kb.queries.match import NEW, Match
from partita.terminal.drawing import cell, table
from partita.terminal.text import percent, shortened, signed

NEGLIGIBLE = 0.05  # nats that are not worth a word


def matches(console: Console, found: Iterable[tuple[str, Sequence[Match]]], several: bool) -> None:
    """The places where records may go; what each is called stands before its own, if there are several."""
    made = table(*(["record"] if several else []), "entity", "sure", "name", "evidence", right=("sure",))
    for column in made.columns[:-1]:
        column.no_wrap = True
    for record, places in found:
        for rank, place in enumerate(places):
            made.add_row(
                *([cell(record if rank == 0 else "")] if several else []),
                cell(place.entity, "dim" if place.entity == NEW else "cyan"),
                cell(percent(place.probability)),
                cell(shortened(place.name or "")),
                cell(evidence(place), "dim"),
            )
    console.print(made)


def evidence(place: Match) -> str:
    """The steps of a place in a line, and their sum."""
    if not place.steps:
        return ""
    steps = [f"{step.attribute} {signed(step.nats)}" for step in place.steps if abs(step.nats) >= NEGLIGIBLE]
    return f"{', '.join(steps)} = {signed(place.log_odds)}"
