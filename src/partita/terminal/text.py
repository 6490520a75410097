"""Words and numbers as people write them. Imports nothing, so that the help of ``partita`` is quick."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from partita.kb.queries.answers import Event

# Control characters, and those that change the direction of what follows them.
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
NAMED = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}
VALUES = 3  # of an attribute, in lists
IDS = 8  # of an entity's fragments, in sentences
LONGEST = 60  # characters of a value, in tables
LINES = 12  # of what a judgement has changed
COUNTED = {  # kinds of events that users care for, one of them and several
    "created": ("entity created", "entities created"),
    "joined": ("fragment joined an entity", "fragments joined entities"),
    "moved": ("fragment moved", "fragments moved"),
    "merged": ("merge", "merges"),
    "split": ("split", "splits"),
    "left": ("fragment left its entity", "fragments left their entities"),
    "emptied": ("entity ended", "entities ended"),
    "renamed": ("entity renamed", "entities renamed"),
}


def safe(text: object) -> str:
    """Text without characters that a terminal obeys: they are written as in a Python string."""
    return CONTROL.sub(lambda match: NAMED.get(match[0]) or _escape(match[0]), str(text))


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def shortened(text: str) -> str:
    """A value that fits a table."""
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def percent(probability: float) -> str:
    """A probability for people: never 0 % or 100 %, as alternatives that are far less likely have been let go."""
    if probability < 0.005:
        return "<1 %"
    return ">99 %" if probability >= 0.995 else f"{100.0 * probability:.0f} %"


def proportion(part: float) -> str:
    """What was counted, or holds by definition, for people: 0 % is nothing of it, and 100 % all."""
    return percent(part) if 0.0 < part < 1.0 else f"{100.0 * part:.0f} %"


def sure(probability: float, n: int) -> str:
    """How sure one of n fragments is of its entity: by definition entirely, if it is alone."""
    return proportion(probability) if n == 1 else percent(probability)


def signed(nats: float) -> str:
    """A number with its sign."""
    return f"{round(nats, 2) or 0.0:+.2f}".replace("-", "−")


def number(value: object) -> str:
    """A number as people write it."""
    if isinstance(value, float):
        return f"{value:.4f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def so_many(n: int, one: str, several: str) -> str:
    """A number of things."""
    return f"{n:,} {one if n == 1 else several}"


def listed(ids: Sequence[str]) -> str:
    """Ids in a sentence."""
    if len(ids) < 2:
        return "".join(ids)
    if len(ids) > IDS:
        return f"{', '.join(ids[: IDS - 1])} and {len(ids) - IDS + 1:,} more"
    return f"{', '.join(ids[:-1])} and {ids[-1]}"


def values(said: Iterable[object], most: int = VALUES) -> str:
    """Some values, in a cell."""
    found = [shortened(str(value)) for value in said]
    return " | ".join(found[:most]) + (" | …" if len(found) > most else "")


# ---------------------------------------------------------------------- what happened


def event_in_words(event: Event) -> str:
    """One event as a sentence."""
    entity, other, detail = event.entity, event.other, event.detail
    said = {
        "created": f"{entity} created",
        "joined": f"{event.fragment} joined {entity}",
        "moved": f"{listed(event.fragments) or 'a fragment'} moved from {other} to {entity}",
        "merged": f"{other} merged into {entity}{several(event.fragments)}",
        "split": f"{other} split off {entity}{several(event.fragments)}",
        "left": f"{event.fragment} left {entity}",
        "updated": f"{event.fragment} of {entity} has a new version",
        "emptied": f"{entity} has no fragments any more",
        "renamed": f"{entity} renamed from {detail.get('from')!r} to {detail.get('to')!r}",
        "naming": f"entities are named by {named_by(detail.get('name'))}",
        "confirmed": f"judged the same: {detail.get('first')} and {detail.get('second')}",
        "separated": f"judged different: {detail.get('first')} and {detail.get('second')}",
        "cut": "judged: " + judgement_in_words("split", str(detail.get("first")), str(detail.get("second"))),
        "unsure": f"judged undecidable: {detail.get('first')} and {detail.get('second')}",
        "undone": f"judgement {detail.get('judgement')} undone",
    }.get(event.kind, f"{event.kind} {entity or ''}")
    return said + reason(event)


def several(fragments: Sequence[str]) -> str:
    """How many fragments an event takes from one entity to another, if it is more than one."""
    return f" with {len(fragments):,} fragments" if len(fragments) > 1 else ""


def judgement_in_words(kind: str, first: str, second: str) -> str:
    """What a user has said."""
    if kind == "split" and second.startswith("by "):
        return f"{first} is several things, {second}"
    if kind == "split":
        verb = "are" if ", " in second else "is"
        return f"{first} is several things: {shortened(second)} {verb} of another than the rest"
    said = {"confirm": "the same", "separate": "different", "unsure": "undecidable"}[kind]
    return f"{first} and {second} are {said}"


def consequences_in_words(events: Sequence[Event]) -> list[str]:
    """What has changed, in a few lines: fragments that move the same way are counted."""
    ways = Counter((event.from_entity, event.to_entity) for event in events if event.kind == "moved")
    lines = []
    for event in events:
        way = event.from_entity, event.to_entity
        if event.kind != "moved" or ways[way] == 1:
            lines.append(event_in_words(event))
        elif ways[way] > 1:
            lines.append(f"{ways[way]:,} fragments moved from {way[0]} to {way[1]}{reason(event)}")
            del ways[way]
    if len(lines) > LINES:
        lines[LINES - 1 :] = [f"and {len(lines) - LINES + 1:,} more changes; partita events lists them"]
    return lines


def named_by(ways: object) -> str:
    """Attributes that name entities, the best first."""
    return ", else ".join(" ".join(way) for way in ways) if isinstance(ways, list) else ""


def reason(event: Event) -> str:
    """What brought an event about, if that is not in the sentence."""
    detail = event.detail
    if event.kind in ("confirmed", "separated", "cut", "unsure"):
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


def changes_in_words(changes: dict[str, int]) -> str:
    """The number of events of each kind, those that users care for."""
    parts = [
        f"{changes[kind]:,} {plural if changes[kind] > 1 else single}"
        for kind, (single, plural) in COUNTED.items()
        if changes.get(kind)
    ]
    return ", ".join(parts) or "no entity changed"


def added_in_words(done: dict[str, int]) -> str:
    """How many fragments were added, updated and so on."""
    said = {"added": "added", "updated": "updated", "removed": "removed", "unchanged": "unchanged"}
    said |= {"repeated": "repeated rows passed over", "skipped": "empty rows skipped"}
    parts = [f"{done[name]:,} {text}" for name, text in said.items() if done.get(name)]
    return ", ".join(parts) or "nothing to add"
