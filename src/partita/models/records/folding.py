"""Text as the models compare it: what differs only in case, accents, width or punctuation is the same.

Marks on letters go where they are a matter of spelling habit (Latin, Greek and Cyrillic letters); in other
scripts they make the word, and stay. Letters of any script and digits are what words consist of, everything
else separates them, control characters included.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

SCRIPTS_WITH_ACCENTS = ("LATIN", "GREEK", "CYRILLIC")
LETTERS = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i"})
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
NOTHING = "\ufffd"  # what is left of a text of nothing but control characters
APOSTROPHES = str.maketrans("", "", "'\u2019\u02bc\u055a")
MARKS = "".join(  # vowel signs and the like: of words, but no letters to Python
    chr(code)
    for code in (*range(0x300, 0x2000), *range(0xA800, 0xAC00))
    if unicodedata.category(chr(code)).startswith("M")
)
WORD = re.compile(rf"[^\W_]+(?:[{MARKS}]+[^\W_]*)*")


@lru_cache(maxsize=4096)
def _has_accents(letter: str) -> bool:
    return unicodedata.name(letter, "").startswith(SCRIPTS_WITH_ACCENTS)


def without_accents(text: str) -> str:
    """The text without the marks on Latin, Greek and Cyrillic letters."""
    kept: list[str] = []
    bare = False  # whether the last letter drops its marks
    for letter in unicodedata.normalize("NFD", text):
        if unicodedata.combining(letter):
            if not bare:
                kept.append(letter)
            continue
        bare = _has_accents(letter)
        kept.append(letter)
    return unicodedata.normalize("NFC", "".join(kept))


def words_of(text: str) -> list[str]:
    """The words of a text, folded.

    >>> words_of("François-Xavier Ørsted, 3rd")
    ['francois', 'xavier', 'orsted', '3rd']
    """
    if text.isascii():
        folded = text.lower()
    else:
        folded = without_accents(unicodedata.normalize("NFKC", text).casefold()).translate(LETTERS)
    folded = CONTROL.sub(" ", folded.translate(APOSTROPHES))
    return WORD.findall(folded) or folded.split() or [NOTHING]


@lru_cache(maxsize=16384)  # a value is read when it is checked, encoded and given keys
def folded(text: str) -> str:
    """The words of a text, joined by spaces."""
    return " ".join(words_of(text))
