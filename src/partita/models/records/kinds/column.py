"""What an attribute looks like: its name and its values, for kinds to say whether they are theirs."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

from partita.models.records.folding import words_of
from partita.models.records.fragments import as_text

ENOUGH = 0.95  # of the values are of a kind for the attribute to be of it


class Column:
    """The name of an attribute and its values, as they came."""

    def __init__(self, name: str, values: list[Any]) -> None:
        self.name, self.values = name, values

    @cached_property
    def texts(self) -> list[str]:
        """The values as texts."""
        return [as_text(value).strip() for value in self.values]

    @cached_property
    def called(self) -> list[str]:
        """The words of the name, also of one such as firstName or first_name."""
        return words_of(re.sub(r"(?<=[a-z])(?=[A-Z])", " ", self.name))

    def mostly(self, what: str, test: Callable[[str], object]) -> str:
        """Why the values are ``what``, if the test holds for enough of them; else empty."""
        fitting, n = sum(bool(test(text)) for text in self.texts), len(self.texts)
        if not fitting >= ENOUGH * n > 0:
            return ""
        share = "all" if fitting == n else f"{min(round(100 * fitting / n), 99)} % of"
        return f"{share} {n:,} values are {what}"


class Noted(NamedTuple):
    """What was seen of an attribute when its kind was chosen."""

    why: str  # it was
    fragments: int  # that were looked at
    mentions: int  # how many of them mention the attribute
    values: int  # how many values they have of it
    distinct: int  # how many different ones, as the kind reads them
    divided_by: str = ""  # what its texts look divided by, if they look like lists
