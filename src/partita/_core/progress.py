"""Who watches what takes long: bars on request, and reports of how far it has come."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from typing import TypeVar

Item = TypeVar("Item")

Watcher = Callable[[int, int], object]  # called with how much is done, and of how much
# Called with what is going on, how much of it is done, and how much there is of it, None if that is not known.
Report = Callable[[str, int, int | None], object]


def unwatched(done: int, total: int) -> None:
    """Nobody watches."""


def unreported(phase: str, done: int, total: int | None) -> None:
    """Nobody is told."""


def steps(items: Iterable[Item], description: str, show: bool | Callable[[Item], object]) -> Iterator[Item]:
    """Yield ``items``, with a bar on the terminal if ``show``; or call it with each when it is done."""
    if callable(show):
        for item in items:
            yield item
            show(item)
        return
    if not show:
        yield from items
        return
    from rich.progress import track

    total = len(items) if isinstance(items, Sized) else None
    yield from track(items, description=description, total=total)


@contextmanager
def told(
    total: int, description: str, show: bool | Callable[[int], object]
) -> Iterator[Callable[[int], object]]:
    """What to tell how much is done: it shows a bar on the terminal if ``show``, or passes it on."""
    if callable(show):
        yield show
        return
    if not show:
        yield lambda done: None
        return
    from rich.progress import Progress

    with Progress() as progress:
        task = progress.add_task(description, total=total)
        yield lambda done: progress.update(task, completed=done)
