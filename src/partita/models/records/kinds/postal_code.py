"""Postal codes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from partita.models.records.fragments import as_text
from partita.models.records.kinds.column import Column
from partita.models.records.kinds.text import Text
from partita.models.registry import register

CODE = re.compile(r"(?i)(?=.*[0-9])(?=.{3,10}$)[a-z0-9]{1,6}(?:[ -]?[a-z0-9]{2,5})?")
COUNTRY = re.compile(r"[A-Za-z]{1,2}-(?=[0-9]{4,5}$)")  # before it: D-10115
OF_FLOAT = re.compile(r"\.0$")  # what a table makes of a code beside empty cells
PHRASES = (["post", "code"], ["code", "postal"], ["pin", "code"])
NAMES = ("zip", "zipcode", "postcode", "postalcode", "postal", "plz", "pincode", "eircode")


@register
@dataclass(frozen=True)
class PostalCode(Text):
    """Postal codes, in which neither case nor spaces matter: alike where they share digits and letters in a row.

    Parameters
    ----------
    agreement, weight, corpus, references
        See :class:`Attribute`.
    """

    kind: ClassVar[str] = "postal_code"

    @classmethod
    def why(cls, column: Column) -> str:
        named = any(word in NAMES for word in column.called) or column.called[:2] in PHRASES
        return column.mostly("postal codes, as its name says", CODE.fullmatch) if named else ""

    def parse(self, raw: Any) -> str:
        text = super().parse(COUNTRY.sub("", OF_FLOAT.sub("", as_text(raw).strip())))
        return (
            text.replace(" ", "") if text.isascii() else text
        )  # of other scripts, letters would melt into one
