"""Who watches what takes long: bars on request, and reports of how far it has come."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from typing import TypeVar

Item = TypeVar("Item")

# Called with what is going on, how much of it is done, and how much there is of it, None if that is not known.
Report = Callable[[str, int, int | None], object]


def nobody(phase: str, done: int, total: int | None) -> None:
    """Nobody watches."""


def steps(items: Iterable[Item], description: str, show: bool) -> Iterator[Item]:
    """Yield ``items``, with a bar on the terminal if ``show``."""
    if not show:
        yield from items
        return
    from rich.progress import track

    total = len(items) if isinstance(items, Sized) else None
    yield from track(items, description=description, total=total)
