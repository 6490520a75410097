"""Telephone numbers, however they are written."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from partita.models.records.folding import folded
from partita.models.records.fragments import as_text
from partita.models.records.kinds.column import Column
from partita.models.records.kinds.text import Text
from partita.models.registry import register

SHORTEST, LONGEST = 5, 15  # digits of a number
EXTENSION = re.compile(r"(?i)[\s,;]*(?:extension|ext|x|#)[\s.:#]*([0-9]{1,6})\s*")
PREFIX = re.compile(r"(?i)\s*(?:(?:tel|phone|fax|mobile|cell)\b[.:\s]*|[tpmf]\s*[.:]\s*)")
OF_FLOAT = re.compile(r"(\d{7,})\.0")  # what a table makes of a number beside empty cells
COUNTRY = re.compile(  # calling codes of one to three digits (ITU-T E.164), of which none begins another
    r"1|7|2[07]|3[0-469]|4[013-9]|5[1-8]|6[0-6]|8[1246]|9[0-58]|\d{3}"
)
AMERICAN = re.compile(r"1([2-9][0-9]{9})")  # with the 1 that calls abroad and far away begin with
WRITTEN = re.compile(r"\+?[0-9(][0-9 ()./\u00a0\u2010-\u2013-]*[0-9)]")
# What is hardly anything but a telephone number: from abroad, or three, three and four digits.
CERTAIN = re.compile(
    r"\+[0-9(][0-9 ()-]{6,}[0-9]|(?:1[-. ])?(?:\([0-9]{3}\) ?|[0-9]{3}[-./ ])[0-9]{3}[-. ][0-9]{4}"
)
ABROAD = 0.1  # of the numbers are CERTAIN, for a column of what else may be one
NAMES = {
    "phone",
    "tel",
    "tlf",
    "fax",
    "mobile",
    "cell",
    "cellphone",
    "gsm",
    "handy",
    "movil",
    "celular",
    "puhelin",
}
BEGINNINGS = ("telef", "teleph", "phone", "mobil")  # of "telefoonnummer", "téléphone", "mobilnummer" …


def is_number(text: str) -> bool:
    """Whether a text has the digits of a telephone number, and nothing but what divides them."""
    own = EXTENSION.split(PREFIX.sub("", text, count=1))[0].strip()
    return bool(WRITTEN.fullmatch(own)) and 7 <= sum(letter.isdigit() for letter in own) <= LONGEST


@register
@dataclass(frozen=True)
class Phone(Text):
    """Telephone numbers: the digits, without the code of a country and the zeros before that of a town.

    What is no telephone number is read as text.

    Parameters
    ----------
    agreement, weight, corpus, references
        See :class:`Attribute`.
    """

    kind: ClassVar[str] = "phone"

    @classmethod
    def why(cls, column: Column) -> str:
        if any(word in NAMES or word.startswith(BEGINNINGS) for word in column.called):
            return column.mostly("telephone numbers, as its name says", is_number)
        if sum(map(bool, map(CERTAIN.fullmatch, column.texts))) < ABROAD * len(column.texts):
            return ""
        return column.mostly("telephone numbers", lambda text: CERTAIN.fullmatch(text) or is_number(text))

    def parse(self, raw: Any) -> str:
        text = OF_FLOAT.sub(r"\1", as_text(raw))
        plain = folded(text)
        return read(text) or read(plain) or plain


def read(text: str) -> str:
    """A telephone number as words of digits, with its extension; empty if it is none."""
    number, extension = PREFIX.sub("", text, count=1), ""
    if (found := EXTENSION.search(number)) and found.end() == len(number):
        number, extension = number[: found.start()], f" x{found[1]}"
    digits = re.sub("[^0-9]", "", number)
    if any(letter.isalpha() for letter in number) or not SHORTEST <= len(digits) <= LONGEST:
        return ""
    return divided(national(digits, number.strip().startswith("+")) or digits) + extension


def national(digits: str, from_abroad: bool) -> str:
    """The digits that a number has within its country."""
    if digits.startswith("00"):  # as "+" is dialled in most countries
        digits, from_abroad = digits[2:], True
    if from_abroad and (code := COUNTRY.match(digits)):
        digits = digits[code.end() :]
    digits = digits.lstrip("0")
    return AMERICAN.sub(r"\1", digits) if AMERICAN.fullmatch(digits) else digits


def divided(digits: str) -> str:
    """The digits as words: the last four, the three before, and the rest, which is of a place and shared by many.

    >>> divided("2122655959")
    '212 265 5959'
    """
    return " ".join(part for part in (digits[:-7], digits[-7:-4], digits[-4:]) if part)
