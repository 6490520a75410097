"""What a sync means, as people read it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from partita.terminal.text import listed, safe

if TYPE_CHECKING:
    from partita.kb.syncing import EntityChange, Synced


def meaning(synced: Synced) -> Iterator[str]:
    """Lines that say which fragments come, change and go, of which sources, and what that means to entities."""
    for change in synced.sources:
        source = "without a source" if change.source is None else f"source {change.source!r}"
        rows = f"{change.rows:,} {'row' if change.rows == 1 else 'rows'} now"
        now = f"{change.taken:,} replaced by rows of another source" if change.taken else rows
        yield safe(f"  {source}: {change.before:,} before, {now}")
    for what in ("added", "updated", "removed"):
        ids = getattr(synced, what)
        if ids:
            yield safe(f"  {what}: {listed(ids)}")
    kinds = (
        ("ends", [change for change in synced.entities if change.removed == change.fragments]),
        ("loses some", [change for change in synced.entities if 0 < change.removed < change.fragments]),
        ("changes", [change for change in synced.entities if change.updated and not change.removed]),
    )
    for what, changes in kinds:
        if changes:
            yield f"  {len(changes):,} {plural(what, len(changes))}: {listed([said(c) for c in changes])}"


def plural(what: str, n: int) -> str:
    """What happens to so many entities."""
    one = {"ends": "entity ends", "loses some": "entity loses fragments", "changes": "entity has updates"}
    many = {
        "ends": "entities end",
        "loses some": "entities lose fragments",
        "changes": "entities have updates",
    }
    return (one if n == 1 else many)[what]


def said(change: EntityChange) -> str:
    """An entity, with what happens to it."""
    if change.removed:
        return f"{change.entity} ({change.removed} of {change.fragments})"
    return f"{change.entity} ({change.updated} of {change.fragments})"
