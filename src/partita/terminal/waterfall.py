"""Explanations: each attribute's evidence as a bar to the left or right of zero."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from partita.kb.queries.explain import NETWORK, Explanation
from partita.terminal.drawing import cell, events, table
from partita.terminal.text import listed, percent, signed, values

HALF = 10  # characters of a bar on one side of zero
WIDE = 100  # characters of a line that has room for what fragments say, too
FOR, AGAINST = "green", "red"
BY_NETWORK = (
    "The log-odds are the language model's, with the say that records have. It does not tell what is due to "
    "which attribute: the lines of the attributes are what records say by themselves, and its own line is "
    "what it adds to that or takes away."
)


def explanation(console: Console, found: Explanation) -> None:
    """Why two fragments are together or apart: a waterfall."""
    console.print(cell(verdict(found), "bold"))
    wide = console.width >= WIDE
    console.print(Padding(waterfall(found, console.options.ascii_only, wide), (1, 0)))
    if any(step.attribute == NETWORK for step in found.steps):
        console.print(Padding(cell(BY_NETWORK), (0, 0, 1, 0)))
    console.print(clusterings(found))
    if found.events:
        console.print()
        events(console, found.events)


def verdict(found: Explanation) -> str:
    """Whether two fragments are together, how sure that is, and why, if a judgement has decided it."""
    held = "the same entity" if found.together else "different entities"
    sure = f"{percent(found.probability)} that they are the same"
    if not found.judgements:
        return f"{found.first} and {found.second} are held to be {held}: {sure}."
    numbers = listed([str(number) for number in found.judgements])
    decided = f"judgement {numbers} says so" if len(found.judgements) == 1 else f"judgements {numbers} say so"
    return f"{found.first} and {found.second} are {held}, because {decided}. The evidence alone: {sure}."


def waterfall(found: Explanation, ascii_only: bool, wide: bool) -> Table:
    """Each step's evidence as a bar to the left or right of zero, with its nats and the sum so far.

    Where it is ``wide`` enough, what the two fragments say stands beside it.
    """
    said = (found.first, found.second) if wide else ()
    made = table("evidence", *said, "nats", "", "sum", right=("nats", "sum"))
    for column, id in zip(made.columns[1:], said, strict=False):
        column.header = cell(id)
    made.columns[-2].header = Text("different".rjust(HALF) + axis_of(ascii_only) + "same".ljust(HALF))
    made.columns[0].no_wrap = made.columns[-2].no_wrap = True
    largest = max((abs(step.nats) for step in found.steps), default=0.0)
    total = 0.0
    for step in found.steps:
        total += step.nats
        made.add_row(
            cell(step.attribute),
            *(cell(values(given)) for given in (step.first, step.second) if wide),
            cell(signed(step.nats)),
            bar(step.nats, largest, ascii_only),
            cell(signed(total)),
        )
    made.add_section()
    made.add_row(cell("log-odds", "bold"), *[""] * (len(said) + 2), cell(signed(found.log_odds), "bold"))
    return made


def bar(nats: float, largest: float, ascii_only: bool) -> Text:
    """A bar from zero, to the right if it speaks for being the same."""
    full = "#" if ascii_only else "█"
    half = {1: "", -1: ""} if ascii_only else {1: "▌", -1: "▐"}
    halves = round(2 * HALF * abs(nats) / largest) if largest else 0
    sign = 1 if nats > 0 else -1
    drawn = full * (halves // 2)
    drawn = drawn + half[1] * (halves % 2) if sign > 0 else half[-1] * (halves % 2) + drawn
    left = Text(drawn.rjust(HALF) if sign < 0 else " " * HALF, style=AGAINST)
    right = Text(drawn.ljust(HALF) if sign > 0 else " " * HALF, style=FOR)
    return left + Text(axis_of(ascii_only), style="dim") + right


def axis_of(ascii_only: bool) -> str:
    """What marks zero."""
    return "|" if ascii_only else "│"


def clusterings(found: Explanation) -> RenderableType:
    """The best clustering and the strongest alternative, in words."""
    lines = [("As it is:", found.clusters), ("Otherwise:", found.alternative)]
    return Group(*(cell(f"{title:<11}") + cell(in_sentence(clusters)) for title, clusters in lines))


def in_sentence(clusters: Sequence[Sequence[str]]) -> str:
    """Clusters of fragments: which are one entity, and which another."""
    parts = [listed(ids) + (" alone" if len(ids) == 1 else " together") for ids in clusters]
    return "; ".join(parts) + "."
