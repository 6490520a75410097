"""What answers look like in a terminal. Everything from data passes :func:`partita.terminal.text.safe`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from partita.terminal.text import event_in_words, listed, number, percent, safe, shortened, sure, values

if TYPE_CHECKING:
    from partita.kb.columns import Readers
    from partita.kb.fragments import Fragment
    from partita.kb.queries.answers import Entity, Event, Found, Judgement
    from partita.kb.queries.questions import Question

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


# ---------------------------------------------------------------------- entities


def entities(console: Console, found: Sequence[Entity], readers: Readers) -> None:
    """A list of entities, with the first value of some attributes that says something."""
    made = table("entity", "fragments", "sure", "name", "says", right=("fragments", "sure"))
    for column in made.columns[:4]:
        column.no_wrap = True
    for entity in found:
        said = {
            name: [value.value for value in given if readers[name].items(value.value)]
            for name, given in entity.properties.items()
        }
        says = {
            name: given for name, given in said.items() if given and entity.name not in [*map(str, given)]
        }
        made.add_row(
            cell(entity.id, "cyan"),
            cell(f"{len(entity.fragments):,}"),
            cell(sure(entity.probability, len(entity.fragments))),
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
    n = len(found.fragments)
    how = f"{n:,} fragments" if n > 1 else "1 fragment"
    console.print(cell(f"{how}, {sure(found.probability, n)} sure: {listed(found.fragments)}"))
    made = table("attribute", "value", "sure", "sources", right=("sure",))
    for name, given in found.properties.items():
        for k, value in enumerate(given):
            made.add_row(
                cell(name if k == 0 else "", "dim"),
                cell(value.value),
                cell(sure(value.probability, n)),
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


def judgements(console: Console, found: Sequence[Judgement]) -> None:
    """All judgements."""
    made = table("judgement", "kind", "first", "second", "user", "when", "undone", right=("judgement",))
    for row in found:
        undone = f"{row.undone_at[:19].replace('T', ' ')} by {row.undone_by}" if row.undone_at else ""
        made.add_row(
            *map(cell, (row.number, row.kind, row.first, shortened(row.second), row.user)),
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


# ---------------------------------------------------------------------- questions


def question(console: Console, number: int, asked: Question) -> None:
    """Two fragments side by side, and why they are asked about."""
    console.print(
        cell(f"{number}. Are {asked.first} and {asked.second} the same?", "bold")
        + cell(f"  {percent(asked.probability)}; an answer is worth {asked.value:.2f} wrong pairs")
    )
    console.print(cell(f"   {asked.reason}", "dim"))
    made = table("", asked.first, asked.second)
    made.columns[1].header, made.columns[2].header = cell(asked.first), cell(asked.second)
    for name in dict.fromkeys([*asked.first_properties, *asked.second_properties]):
        one, other = asked.first_properties.get(name, []), asked.second_properties.get(name, [])
        made.add_row(cell(name, "dim"), cell(values(one)), cell(values(other)))
    console.print(Padding(made, (0, 0, 1, 3)))
