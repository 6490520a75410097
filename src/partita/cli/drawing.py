"""What answers look like in a terminal. Everything from data passes :func:`partita.cli.session.safe`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from partita.cli.session import safe

if TYPE_CHECKING:
    from partita.kb.fragments import Fragment
    from partita.kb.queries.answers import Entity, Event, Found, Judgement
    from partita.kb.queries.explain import Explanation
    from partita.kb.queries.questions import Question

VALUES = 3  # of an attribute, in lists
IDS = 8  # of an entity's fragments, in sentences
HALF = 10  # characters of a bar on one side of zero
WIDE = 100  # characters of a line that has room for what fragments say, too
FOR, AGAINST = "green", "red"
LONGEST = 60  # characters of a value, in tables
ATTRIBUTES = 4  # that lists of entities show


def table(*columns: str, right: Sequence[str] = ()) -> Table:
    """A table without frames; columns by name, numbers to the right."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for name in columns:
        made.add_column(Text(name), justify="right" if name in right else "left", overflow="fold")
    return made


def cell(value: object, style: str = "") -> Text:
    """Text of data, for a table."""
    return Text(safe("" if value is None else value), style=style)


def shortened(text: str) -> str:
    """A value that fits a table."""
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def percent(probability: float) -> str:
    """A probability for people: never 0 % or 100 % unless it is."""
    if 0.0 < probability < 0.005:
        return "<1 %"
    if 0.995 <= probability < 1.0:
        return ">99 %"
    return f"{100.0 * probability:.0f} %"


def signed(nats: float) -> str:
    """A number with its sign."""
    return f"{round(nats, 2) or 0.0:+.2f}".replace("-", "−")


def listed(ids: Sequence[str]) -> str:
    """Ids in a sentence."""
    if len(ids) == 1:
        return ids[0]
    if len(ids) > IDS:
        return f"{', '.join(ids[: IDS - 1])} and {len(ids) - IDS + 1:,} more"
    return f"{', '.join(ids[:-1])} and {ids[-1]}"


def values(said: Iterable[object], most: int = VALUES) -> str:
    """Some values, in a cell."""
    found = [shortened(str(value)) for value in said]
    return " | ".join(found[:most]) + (" | …" if len(found) > most else "")


# ---------------------------------------------------------------------- entities


def entities(console: Console, found: Sequence[Entity]) -> None:
    """A list of entities."""
    made = table("entity", "fragments", "sure", "name", "says", right=("fragments", "sure"))
    for column in made.columns[:4]:
        column.no_wrap = True
    for entity in found:
        says = {
            name: [value.value for value in given]
            for name, given in entity.properties.items()
            if str(given[0].value) != entity.name and entity.name not in [str(v.value) for v in given]
        }
        made.add_row(
            cell(entity.id, "cyan"),
            cell(f"{len(entity.fragments):,}"),
            cell(percent(entity.probability)),
            cell(shortened(entity.name or "")),
            in_brief(says),
        )
    console.print(made)


def in_brief(says: Mapping[str, Sequence[Any]]) -> Text:
    """The first value of some attributes."""
    parts = [
        cell(f"{name}: ", "dim") + cell(shortened(str(given[0])))
        for name, given in list(says.items())[:ATTRIBUTES]
    ]
    found = Text(", ").join(parts)
    found.no_wrap, found.overflow = True, "ellipsis"
    return found


def entity(console: Console, found: Entity, events_of: Sequence[Event] | None) -> None:
    """All of one entity."""
    console.print(cell(found.id, "bold cyan") + cell("  ") + cell(found.name or "", "bold"))
    if found.merged_from is not None:
        console.print(cell(f"{found.merged_from} was merged into it", "dim"))
    how = f"{len(found.fragments):,} fragments" if len(found.fragments) > 1 else "1 fragment"
    console.print(cell(f"{how}, {percent(found.probability)} sure: {listed(found.fragments)}"))
    made = table("attribute", "value", "sure", "sources", right=("sure",))
    for name, given in found.properties.items():
        for k, value in enumerate(given):
            made.add_row(
                cell(name if k == 0 else "", "dim"),
                cell(value.value),
                cell(percent(value.probability)),
                cell(listed(value.sources)),
            )
    console.print(Padding(made, (1, 0, 0, 0)))
    if events_of is not None:
        console.print()
        events(console, events_of)


def fragment(console: Console, found: Fragment, of: Entity) -> None:
    """A fragment as it came, and the entity it is of."""
    console.print(cell(found.id, "bold") + cell(f"  from {found.source}" if found.source else ""))
    made = table("attribute", "value")
    for name, said in found.properties.items():
        for k, value in enumerate(said):
            made.add_row(cell(name if k == 0 else "", "dim"), cell(value))
    console.print(Padding(made, (0, 0, 1, 0)))
    others = [id for id in of.fragments if id != found.id]
    beside = f", together with {listed(others)}" if others else ", alone"
    console.print(cell("It is of ") + cell(of.id, "cyan") + cell(f" {of.name or ''}{beside}."))


def search(console: Console, found: Sequence[Found]) -> None:
    """What a search has found."""
    made = table("entity", "fragments", "name", "matches", right=("fragments",))
    for row in found:
        made.add_row(
            cell(row.id, "cyan"),
            cell(f"{row.size:,}"),
            cell(shortened(row.name or "")),
            cell(values(row.matches)),
        )
    console.print(made)


# ---------------------------------------------------------------------- history


def events(console: Console, found: Sequence[Event]) -> None:
    """What has happened, in order."""
    made = table("event", "when", "what", right=("event",))
    for event in found:
        made.add_row(
            cell(event.number), cell(event.at[:19].replace("T", " "), "dim"), cell(event_in_words(event))
        )
    console.print(made)


def event_in_words(event: Event) -> str:
    """One event as a sentence."""
    entity, other, detail = event.entity, event.other, event.detail
    said = {
        "created": f"{entity} created",
        "joined": f"{event.fragment} joined {entity}",
        "moved": f"a fragment moved from {other} to {entity}",
        "merged": f"{other} merged into {entity}",
        "split": f"{other} split off {entity}",
        "left": f"{event.fragment} left {entity}",
        "updated": f"{event.fragment} of {entity} has a new version",
        "emptied": f"{entity} has no fragments any more",
        "renamed": f"{entity} renamed from {detail.get('from')!r} to {detail.get('to')!r}",
        "confirmed": f"judged the same: {detail.get('first')} and {detail.get('second')}",
        "separated": f"judged different: {detail.get('first')} and {detail.get('second')}",
        "unsure": f"judged undecidable: {detail.get('first')} and {detail.get('second')}",
        "undone": f"judgement {detail.get('judgement')} undone",
    }.get(event.kind, f"{event.kind} {entity or ''}")
    return said + reason(event)


def reason(event: Event) -> str:
    """What brought an event about, if that is not in the sentence."""
    detail = event.detail
    if event.kind in ("confirmed", "separated", "unsure"):
        return f" (judgement {detail.get('judgement')})"
    if event.kind in ("joined", "left", "updated", "undone"):
        return ""
    causes = {
        "refined": "looking again",
        "relearnt": "learning anew",
        "judged_before": "an earlier judgement",
    }
    if "judgement" in detail:
        return f" by judgement {detail['judgement']}"
    if "undone" in detail:
        return f" by undoing judgement {detail['undone']}"
    found = [text for name, text in causes.items() if detail.get(name)]
    return f" by {found[0]}" if found else f" by {event.fragment}" if event.fragment else ""


def judgements(console: Console, found: Sequence[Judgement]) -> None:
    """All judgements."""
    made = table("judgement", "kind", "first", "second", "user", "when", "undone", right=("judgement",))
    for row in found:
        undone = f"{row.undone_at[:19].replace('T', ' ')} by {row.undone_by}" if row.undone_at else ""
        made.add_row(
            *map(cell, (row.number, row.kind, row.first, row.second, row.user)),
            cell(row.at[:19].replace("T", " "), "dim"),
            cell(undone, "dim"),
        )
    console.print(made)


def pairs(console: Console, found: Mapping[str, Any]) -> None:
    """Numbers by name."""
    made = Table(box=None, show_header=False, pad_edge=False)
    made.add_column(style="dim")
    made.add_column(justify="right")
    for name, value in found.items():
        made.add_row(cell(name), cell(number(value)))
    console.print(made)


def number(value: object) -> str:
    """A number as people write it."""
    if isinstance(value, float):
        return f"{value:.4f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


# ---------------------------------------------------------------------- explanations


NETWORK = "language model"  # a step of an explanation
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


# ---------------------------------------------------------------------- questions


def question(console: Console, number: int, asked: Question) -> None:
    """Two fragments side by side."""
    same = asked.first_entity == asked.second_entity
    where = f"both of {asked.first_entity}" if same else f"of {asked.first_entity} and {asked.second_entity}"
    console.print(
        cell(f"{number}. Are {asked.first} and {asked.second} the same?", "bold")
        + cell(f"  {percent(asked.probability)}; {where}; an answer is worth {asked.value:.2f} wrong pairs")
    )
    made = table("", asked.first, asked.second)
    made.columns[1].header, made.columns[2].header = cell(asked.first), cell(asked.second)
    for name in dict.fromkeys([*asked.first_properties, *asked.second_properties]):
        one, other = asked.first_properties.get(name, []), asked.second_properties.get(name, [])
        made.add_row(cell(name, "dim"), cell(values(one)), cell(values(other)))
    console.print(Padding(made, (0, 0, 1, 3)))
