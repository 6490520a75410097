"""What the lines of a schema mean, for the comments of its TOML."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from partita.models.base import plain

HEADING = (
    "# How records are compared, attribute by attribute. Change what you like; strengths are learnt anew.",
    '# kind = "ignore" leaves an attribute out; separator = "; " makes several values of one text.',
)
MEANING = {
    "rate": "how alike entities of a type are in what they mention; 0: what is mentioned is no evidence",
    "name": "the attributes that name an entity, together",
    "missing": "texts that stand for nothing wherever they are a whole value, written just so; [] keeps all",
    "agreement": "how often two values of an entity are alike, from not at all to the very same; learnt",
    "weight": "what its evidence counts; learnt",
    "spread": "how far apart numbers are alike at all, relative to how far they lie apart in general",
    "separator": "divides a text into several values",
    "unreadable": "what a text is that is no number; without this line it is refused",
}
OF_ONE = MEANING | {"missing": "these stand for nothing here, too"}
PROPOSED = "without the first #, its texts are lists, and what is in them is compared one by one"
IGNORED = "it counts for nothing"


def comment(meaning: str | None) -> str:
    """The end of a line that says what it means, if there is anything to say."""
    return f"  # {meaning}" if meaning else ""


def meaning_of_kind(attribute: Any) -> str:
    """What a kind is for: the first line of its docstring, unless Python wrote that."""
    kind = type(attribute)
    said = (kind.__doc__ or "").strip().split("\n")[0].strip()
    return "" if said.startswith(f"{kind.__name__}(") else said.rstrip(".")


def as_toml(value: Any) -> str:
    """A number, a text or a list of these, as TOML has it."""
    return json.dumps(plain(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def common_start(lists: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """What all lists begin with."""
    found = []
    for texts in zip(*lists, strict=False):
        if len(set(texts)) > 1:
            break
        found.append(texts[0])
    return tuple(found)
