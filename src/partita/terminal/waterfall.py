"""Explanations: each attribute's evidence as a bar to the left or right of zero."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from partita.kb.queries.evidence import NETWORK, REST
from partita.kb.queries.explain import Explanation, Step
from partita.models.records.fragments import as_text
from partita.terminal.drawing import cell, events, table
from partita.terminal.text import listed, percent, shortened, signed, values

HALF = 10  # characters of a bar on one side of zero
NARROW = 7  # where there is a column more
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
    if not found.of_pair:
        console.print(cell(comparison(found)))
    wide = console.width >= WIDE
    console.print(Padding(waterfall(found, console.options.ascii_only, wide), (1, 0)))
    if any(step.attribute == NETWORK for step in found.steps):
        console.print(Padding(cell(BY_NETWORK), (0, 0, 1, 0)))
    if not found.of_pair and any(map(says_more, found.steps)):
        console.print(groups(found))
        console.print()
    console.print(clusterings(found))
    if found.events:
        console.print()
        events(console, found.events)


def verdict(found: Explanation) -> str:
    """Whether two fragments are together, how sure that is, and why, if a judgement has decided it."""
    held = "the same entity" if found.together else "different entities"
    first, second = called(found)
    sure = f"{percent(found.probability)} that they are the same"
    if not found.judgements:
        return f"{first} and {second} are held to be {held}: {sure}."
    numbers = listed([str(number) for number in found.judgements])
    decided = f"judgement {numbers} says so" if len(found.judgements) == 1 else f"judgements {numbers} say so"
    return f"{first} and {second} are {held}, because {decided}. The evidence alone: {sure}."


def called(found: Explanation) -> list[str]:
    """The two fragments, and the entities that they stand for, if these were asked for."""
    pairs = zip(found.asked, (found.first, found.second), strict=True)
    return [id if asked == id else f"{asked} (by its surest fragment, {id})" for asked, id in pairs]


def comparison(found: Explanation) -> str:
    """What is compared beside the two fragments."""
    one, other = (f"that of {id} ({counted_fragments(ids)})" for id, ids in groups_of(found))
    return (
        f"The probability is of groups: {one} and {other}, as one entity or as two. "
        f"The two fragments by themselves: {percent(expit(found.pair_log_odds))}."
    )


def groups_of(found: Explanation) -> list[tuple[str, list[str]]]:
    """The two fragments, each with those that it is together with when the two are apart."""
    return [(found.first, found.first_group), (found.second, found.second_group)]


def counted_fragments(ids: Sequence[str]) -> str:
    """How many fragments."""
    return f"{len(ids):,} fragments" if len(ids) > 1 else "it alone"


def expit(log_odds: float) -> float:
    """The probability that log-odds stand for."""
    return 1.0 / (1.0 + math.exp(-max(log_odds, -700.0)))


def waterfall(found: Explanation, ascii_only: bool, wide: bool) -> Table:
    """Each step's evidence as a bar to the left or right of zero, with its nats and the sum so far.

    Where it is ``wide`` enough, what the two fragments say stands beside it; where the groups that are compared are
    larger than that, the nats of the two fragments alone.
    """
    said = (found.first, found.second) if wide else ()
    nats = ("nats",) if found.of_pair else ("pair", "groups")
    half = HALF if found.of_pair or not wide else NARROW
    made = table("evidence", *said, *nats, "", "sum", right=(*nats, "sum"))
    for column, id in zip(made.columns[1:], said, strict=False):
        column.header = cell(id)
    against = "different" if half >= len("different") else "apart"
    made.columns[-2].header = Text(against[-half:].rjust(half) + axis_of(ascii_only) + "same".ljust(half))
    for column in made.columns[-len(nats) - 2 :]:
        column.no_wrap = True
    made.columns[0].no_wrap = True
    largest = max((abs(step.nats) for step in found.steps), default=0.0)
    total = 0.0
    for step in found.steps:
        total += step.nats
        alone = [] if found.of_pair else [cell(signed(step.pair) if step.attribute != REST else "", "dim")]
        made.add_row(
            cell(step.attribute),
            *(cell(values(given)) for given in (step.first, step.second) if wide),
            *alone,
            cell(signed(step.nats)),
            bar(step.nats, largest, ascii_only, half),
            cell(signed(total)),
        )
    made.add_section()
    sums = [] if found.of_pair else [cell(signed(found.pair_log_odds), "dim")]
    ends = [*sums, cell(""), cell("")]
    made.add_row(cell("log-odds", "bold"), *[""] * len(said), *ends, cell(signed(found.log_odds), "bold"))
    return made


def says_more(step: Step) -> bool:
    """Whether a group says something else of an attribute than its fragment, or something beside that."""
    sides = ((step.first, step.first_group), (step.second, step.second_group))
    return any({as_text(value) for value in own} != set(group) for own, group in sides)


def groups(found: Explanation) -> Table:
    """What most fragments of the groups say, where that is more than the two fragments do."""
    headers = [f"with {id} ({counted_fragments(ids)})" for id, ids in groups_of(found)]
    made = table("groups say", *headers)
    for column, header in zip(made.columns[1:], headers, strict=True):
        column.header = cell(header)
    for step in found.steps:
        if says_more(step):
            made.add_row(cell(step.attribute, "dim"), *map(counted, (step.first_group, step.second_group)))
    return made


def counted(group: dict[str, int]) -> Text:
    """Values with how many fragments have them."""
    parts = [
        cell(shortened(value)) + cell(f" ×{times:,}" if times > 1 else "", "dim")
        for value, times in group.items()
    ]
    return Text(" | ").join(parts)


def bar(nats: float, largest: float, ascii_only: bool, most: int = HALF) -> Text:
    """A bar from zero, of ``most`` characters at most, to the right if it speaks for being the same."""
    full = "#" if ascii_only else "█"
    half = {1: "", -1: ""} if ascii_only else {1: "▌", -1: "▐"}
    halves = round(2 * most * abs(nats) / largest) if largest else 0
    sign = 1 if nats > 0 else -1
    drawn = full * (halves // 2)
    drawn = drawn + half[1] * (halves % 2) if sign > 0 else half[-1] * (halves % 2) + drawn
    left = Text(drawn.rjust(most) if sign < 0 else " " * most, style=AGAINST)
    right = Text(drawn.ljust(most) if sign > 0 else " " * most, style=FOR)
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
