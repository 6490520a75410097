"""Progress bars, on request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from typing import TypeVar

Item = TypeVar("Item")


def steps(items: Iterable[Item], description: str, show: bool) -> Iterator[Item]:
    """Yield ``items``, with a bar on the terminal if ``show``."""
    if not show:
        yield from items
        return
    from rich.progress import track

    total = len(items) if isinstance(items, Sized) else None
    yield from track(items, description=description, total=total)
