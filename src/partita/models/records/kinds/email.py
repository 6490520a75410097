"""E-mail addresses."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from partita.models.records.folding import folded
from partita.models.records.fragments import as_text
from partita.models.records.kinds.column import Column
from partita.models.records.kinds.text import Text
from partita.models.registry import register

ADDRESS = re.compile(
    r"(?:mailto:)?([^\s@,;:<>\"()]+)@([a-z0-9-]+(?:\.[a-z0-9-]+)+)", re.ASCII | re.IGNORECASE
)
IN_BRACKETS = re.compile(r"[^<>]*<([^<>]+)>")
AT = re.compile(r"(?i)\s*[\[(]at[\])]\s*")  # as it is written to be read by people alone


@register
@dataclass(frozen=True)
class Email(Text):
    """E-mail addresses, in which case does not matter: alike where they share words, as in a name and a company.

    What is before a plus sign or between dots stays as it is: whether that is the same mailbox depends on the provider.
    What is no address is read as text.

    Parameters
    ----------
    agreement, weight, corpus, references
        See :class:`Attribute`.
    """

    kind: ClassVar[str] = "email"

    @classmethod
    def why(cls, column: Column) -> str:
        return column.mostly("e-mail addresses", lambda text: ADDRESS.fullmatch(bare(text)))

    def parse(self, raw: Any) -> str:
        text = bare(as_text(raw).strip())
        within = list(ADDRESS.finditer(text))  # with "E-mail:" before it, a subject or a remark after it
        if len(within) != 1:
            return folded(text)
        address = within[0]
        return folded(f"{address[1]} {address[2]}")


def bare(text: str) -> str:
    """An address without the name beside it, and with its @.

    >>> bare("Ada Byron <ada [at] b.example>")
    'ada@b.example'
    """
    text = AT.sub("@", text)
    inside = IN_BRACKETS.fullmatch(text)
    return inside[1].strip() if inside else text
