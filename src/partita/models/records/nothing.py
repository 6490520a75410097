"""What stands for nothing: "n/a" in a cell, and coordinates that are both 0.

Some texts are never values (``USUAL``): whatever the attribute, they stand for nothing. Others are values now and
then (``DOUBTFUL``): Null is a surname, Nan a given name, NA is Namibia. They stand for nothing where they do not look
like the other values of their attribute, as NULL does not among Adams and Baker, or occur far more often than any of
them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from partita.models.records.folding import words_of
from partita.models.records.fragments import as_text

USUAL = (
    *("-", "--", "---", "\u2013", "\u2014", "?", "??", "???"),
    *("n/a", "N/A", "n.a.", "N.A.", "#N/A", "<NA>", "nan", "NaN", "(null)", "<null>", "[null]", "\\N"),
    *("not available", "Not available", "not applicable", "Not applicable", "0000-00-00"),
)
DOUBTFUL = ("null", "none", "na", "nan", "nil", "unknown")
FEW = 3  # of a doubtful one are too few to be called frequent
OFTEN = 3.0  # times as often as the most frequent value of an attribute
ALIKE = 0.05  # of the other values are written in the same way, for one to look like them
CODE = 3  # letters, at most, of a code such as that of a country
CODES = 0.5  # of the other values have so few, for the attribute to have codes
NOWHERE = 2  # fragments at coordinates 0, 0 are no coincidence
ZERO = re.compile(r"[+-]?0+(?:\.0*)?")
LATITUDES, LONGITUDES = {"latitude", "lat"}, {"longitude", "lon", "lng", "long"}


def missing_in(values: Sequence[Any]) -> tuple[str, ...]:
    """The texts that stand for nothing in an attribute with such values: the usual ones, and what is found.

    >>> missing_in(["Adams", "Baker", "Clark", "NULL", "N/a"])[len(USUAL):]
    ('N/a', 'NULL')
    """
    counts = Counter(as_text(value).strip() for value in values)
    known = {text.casefold() for text in USUAL} - set(DOUBTFUL)
    spelt = {text for text in counts if text in USUAL or text.casefold() in known}
    doubtful = [text for text in counts if text not in USUAL and text.casefold() in DOUBTFUL]
    others = {text: n for text, n in counts.items() if text not in spelt and text.casefold() not in DOUBTFUL}
    found = sorted(spelt - set(USUAL)) + sorted(
        text for text in doubtful if is_out_of_place(text, counts[text], others)
    )
    return (*USUAL, *found)


def is_out_of_place(text: str, n: int, others: Mapping[str, int]) -> bool:
    """Whether a doubtful text that occurs n times stands for nothing among the other values."""
    if not others:
        return True
    total = sum(others.values())
    if len(text) <= CODE and sum(k for other, k in others.items() if len(other) <= CODE) >= CODES * total:
        return False
    look = writing(text)
    alike = sum(k for other, k in others.items() if writing(other) == look)
    return alike < ALIKE * total or n >= max(FEW, OFTEN * max(others.values()))


def writing(text: str) -> str:
    """Whether a text is of words, and these small, capital or capitalised."""
    if not any(letter.isalpha() for letter in text):
        return ""
    return "small" if text.islower() else "capital" if text.isupper() else "capitalised"


def nowhere(fragments: Sequence[Mapping[str, Sequence[Any]]]) -> dict[str, tuple[str, ...]]:
    """Of a pair of coordinates that are 0 together, and never alone, how these zeros are written.

    >>> nowhere([{"lat": ["0.0"], "lon": ["0.0"]}] * 2 + [{"lat": ["52.1"], "lon": ["4.3"]}])
    {'lat': ('0.0',), 'lon': ('0.0',)}
    """
    names = dict.fromkeys(name for fragment in fragments for name in fragment)
    found: dict[str, tuple[str, ...]] = {}
    for latitude, longitude in pairs_of_coordinates(list(names)):
        together, alone, zeros = 0, 0, {latitude: set[str](), longitude: set[str]()}
        for fragment in fragments:
            own = {name: zeros_of(fragment.get(name, ())) for name in zeros}
            if all(own.values()):
                together += 1
                for name, texts in own.items():
                    zeros[name] |= texts
            else:
                alone += any(own.values())
        if together >= NOWHERE and not alone:
            found |= {name: tuple(sorted(texts)) for name, texts in zeros.items()}
    return found


def zeros_of(values: Sequence[Any]) -> set[str]:
    """How a 0 is written, if these values are nothing else."""
    texts = {as_text(value).strip() for value in values}
    return texts if all(ZERO.fullmatch(text) for text in texts) else set()


def pairs_of_coordinates(names: list[str]) -> list[tuple[str, str]]:
    """The attributes that are a latitude and a longitude, called alike but for that."""
    places: dict[tuple[str, ...], dict[str, str]] = {}
    for name in names:
        words = words_of(name.replace("_", " "))
        for what, called in (("latitude", LATITUDES), ("longitude", LONGITUDES)):
            if set(words) & called:
                rest = tuple(word for word in words if word not in called)
                places.setdefault(rest, {})[what] = name
    return [(pair["latitude"], pair["longitude"]) for pair in places.values() if len(pair) == 2]
