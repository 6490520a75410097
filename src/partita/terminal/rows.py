"""An entity's fragments, one a line: what most of them say is dim, what differs is marked."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from partita.terminal.drawing import cell, table
from partita.terminal.text import safe, shortened, sure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from partita.kb.queries.answers import Entity
    from partita.kb.queries.rows import Row

NARROWEST = 18  # characters that a column may be cut to where there is no room
GAP = 3  # characters between columns
MARK, ASCII_MARK = "≠", "!"  # before what differs
FIRST = ("fragment", "source", "sure")


def entity_rows(console: Console, found: Entity, rows: Sequence[Row]) -> list[str]:
    """Print the fragments of an entity; returns the attributes for which there is no room."""
    mark = ASCII_MARK if console.options.ascii_only else MARK
    lines = [[row.id, row.source or "", sure(row.probability, len(rows))] for row in rows]
    attributes = attributes_of(rows)
    texts = {name: [in_a_cell(row, name, mark) for row in rows] for name in attributes}
    fixed = sum(max(map(len, [name, *(line[k] for line in lines)])) + GAP for k, name in enumerate(FIRST))
    shown = fitting(texts, console.width - fixed)
    made = table(*FIRST, *shown, right=("sure",))
    for column, (name, width) in zip(made.columns[len(FIRST) :], shown.items(), strict=True):
        column.header, column.max_width = cell(name), width
    for column in made.columns:
        column.no_wrap, column.overflow = True, "ellipsis"
    for k, (row, line) in enumerate(zip(rows, lines, strict=True)):
        said = (styled(texts[name][k], name in row.differs) for name in shown)
        made.add_row(cell(line[0], "bold"), cell(line[1]), cell(line[2]), *said)
    how = f"{len(rows):,} fragments" if len(rows) > 1 else "1 fragment"
    console.print(
        cell(found.id, "bold cyan") + cell("  ") + cell(found.name or "", "bold") + cell(f"  {how}")
    )
    console.print(Padding(made, (1, 0, 0, 0)))
    if any(row.differs for row in rows):
        console.print(cell(f"{mark} is not what most of them say.", "dim"))
    return [name for name in attributes if name not in shown]


def attributes_of(rows: Sequence[Row]) -> list[str]:
    """The attributes that rows mention, the commonest first."""
    counts = Counter(name for row in rows for name in row.properties)
    return [name for name, _ in counts.most_common()]


def in_a_cell(row: Row, name: str, mark: str) -> str:
    """What a fragment says of an attribute."""
    given: list[Any] = row.properties.get(name, [])
    text = safe(" | ".join(shortened(str(value)) for value in given))
    return f"{mark} {text}" if name in row.differs else text


def styled(text: str, differs: bool) -> Text:
    """A cell that stands out if it differs."""
    return Text(text, style="bold yellow" if differs else "dim")


def fitting(texts: dict[str, list[str]], room: int) -> dict[str, int]:
    """The attributes for which there is room, and how wide their columns are: NARROWEST at least, if they need it."""
    needed = {name: max(map(len, [safe(name), *column])) for name, column in texts.items()}
    shown: dict[str, int] = {}
    for name, width in needed.items():
        least = min(width, NARROWEST)
        if sum(shown.values()) + GAP * len(shown) + least <= room or not shown:
            shown[name] = least
    spare = room - sum(shown.values()) - GAP * (len(shown) - 1)
    for name in shown:
        more = min(max(spare, 0), needed[name] - shown[name])
        shown[name], spare = shown[name] + more, spare - more
    return shown
