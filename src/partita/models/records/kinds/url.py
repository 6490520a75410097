"""Addresses of pages of the web."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from partita.models.records.folding import folded
from partita.models.records.fragments import as_text
from partita.models.records.kinds.column import Column
from partita.models.records.kinds.text import Text
from partita.models.registry import register

ADDRESS = re.compile(r"(?i)(?:(?:https?|ftp)://|www\.)[^\s/?#.@]+(?:\.[^\s/?#.@]+)+(?:[/?#:]\S*)?")
BEFORE = re.compile(r"(?i)(?:[a-z][a-z0-9+.-]*://)?(?:www\.)?")
PORT = re.compile(r"^([^/?#:]+):(?:80|443)(?=[/?#]|$)")  # the usual ones


@register
@dataclass(frozen=True)
class Url(Text):
    """Addresses of pages: host and path as words; neither the protocol nor "www." nor a last slash matters.

    Parameters
    ----------
    agreement, weight, corpus, references
        See :class:`Attribute`.
    """

    kind: ClassVar[str] = "url"

    @classmethod
    def why(cls, column: Column) -> str:
        return column.mostly("addresses of web pages", ADDRESS.fullmatch)

    def parse(self, raw: Any) -> str:
        text = as_text(raw).strip()
        return folded(PORT.sub(r"\1", BEFORE.sub("", text, count=1)) or text)
