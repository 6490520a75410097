"""Which attributes name an entity: those whose values identify it, as far as was learnt, and read like names.

A name is short and of words, no list, nearly every fragment has one, fragments of an entity agree on it, and strangers
hardly share it. So a job title is no name, for strangers share it; nor is the title of a patent where entities are its
inventors, for they have many; the title of a paper is, where entities are papers. What an attribute is called only
counts beside that. The parts of the names of people make one name together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice

from partita.models.records.describing import ALIKE_FROM
from partita.models.records.kinds import (
    Attribute,
    Category,
    Column,
    Date,
    Email,
    LongText,
    PersonName,
    Phone,
    PostalCode,
    Text,
    Url,
)
from partita.models.records.kinds.person_name import FAMILY as FAMILY_NAMES
from partita.models.records.kinds.person_name import GIVEN as GIVEN_NAMES
from partita.models.records.record import Record

Way = tuple[str, ...]  # attributes that make a name together, in order

NO_NAME = (Date, PostalCode)
NO_PART = (*NO_NAME, Email, LongText, Phone, Url)
WORTH = {
    Email: 0.35,
    LongText: 0.3,
    Url: 0.2,
    Phone: 0.15,
    PersonName: 1.2,
}  # beside other texts, which are 1
CALLED = {
    "name": 1.0,
    "names": 1.0,
    "fullname": 1.0,
    "label": 0.6,
    "title": 0.6,
}  # worth as much more, if it identifies
LISTED = 0.3  # of that for what lists several things in one text, such as tags
OF_OTHERS = 0.5  # of that for what is called the name of something, such as street_name
PART = 0.5  # what a part of a name is worth by itself
COMPOSED = 0.9  # and parts that make a name, beside a whole one
WORDS = 12  # from about so many words on a text is too long for a name
LOOKED_AT = 1000  # values of an attribute

PARTS = (  # of the names of people, in the order in which they make a name
    {"first", "given", "forename", "firstname", "givenname", "fname", "nombre", "nome", *GIVEN_NAMES},
    {"middle", "middlename", "mname", "tussenvoegsel"},
    {"last", "family", "surname", "lastname", "familyname", "lname", "nom", *FAMILY_NAMES},
    {"suffix"},
)
GIVEN, FAMILY = 0, 2
FILLERS = {"name", "names", "of", "the"}


def ways_of(model: Record) -> list[Way]:
    """The attributes that name an entity, the best first; several of them where they make a name together.

    Those that ``model.name`` says come first.
    """
    worth = {name: worth_of(model, name, kind) for name, kind in (model.attributes or {}).items() if kind}
    ranked: dict[Way, float] = {(name,): score for name, score in worth.items() if score > 0.0}
    for way in composed(list(worth), model):
        rare = min(sum(rarity(kind_of(model, name)) for name in way), 1.0)
        alike = math.prod(agreement(kind_of(model, name)) for name in way)
        known = min(presence(model, name) for name in way if place_of(name) in (GIVEN, FAMILY))
        ranked[way] = COMPOSED * WORTH[PersonName] * known * alike * rare**2 * (1.0 + CALLED["name"] * rare)
        for name in way:
            ranked[name,] = PART * ranked.get((name,), 0.0)
    said = [] if model.name is None else [tuple(model.name)]
    ways: list[Way] = []
    for way in [*said, *sorted(ranked, key=lambda way: -ranked[way])]:
        if not any(set(way) <= set(better) for better in ways):  # which gives what there is of it
            ways.append(way)
    return ways


def worth_of(model: Record, name: str, kind: Attribute) -> float:
    """How good a name an attribute is."""
    if not isinstance(kind, Text | Category) or isinstance(kind, NO_NAME) or name == "*":
        return 0.0
    of_kind = next((worth for known, worth in WORTH.items() if isinstance(kind, known)), 1.0)
    rare = rarity(kind)
    how = (LISTED if is_list(kind) else 1.0) * (1.0 + called(name) * rare)
    return of_kind * how * presence(model, name) * agreement(kind) * rare**2 * readability(kind)


def kind_of(model: Record, name: str) -> Attribute:
    """What models an attribute."""
    found = (model.attributes or {})[name]
    assert found is not None
    return found


def presence(model: Record, name: str) -> float:
    """The share of fragments that mention an attribute, as far as it is known."""
    if model.presence is not None:
        return model.presence.get(name, 0.0)
    noted = kind_of(model, name).noted
    return 1.0 if noted is None else noted.mentions / max(noted.fragments, 1)


def agreement(kind: Attribute) -> float:
    """How often two values of an entity are the same, or alike."""
    return float(sum(kind.agreement[ALIKE_FROM:]))


def rarity(kind: Attribute) -> float:
    """How rarely entities share a value, from 0, always, to 1, never: collision entropy, as a share of all there is."""
    counts = kind.corpus.counts.values()
    total = sum(counts)
    if total < 2.0:
        return 1.0
    shared = sum(n * max(n - 1.0, 0.0) for n in counts) / (total * (total - 1.0))
    return min(-math.log(max(shared, 1.0 / total)) / math.log(total), 1.0)


def readability(kind: Attribute) -> float:
    """How much values are like names: of letters, rather than digits, and of few words."""
    values = list(islice(kind.corpus.counts, LOOKED_AT))
    if not values:
        return 1.0
    text = "".join(values)
    letters = sum(map(str.isalpha, text)) / max(sum(map(str.isalnum, text)), 1)
    words = sum(value.count(" ") + 1 for value in values) / len(values)
    return letters**2 / (1.0 + (words / WORDS) ** 2)


def is_list(kind: Attribute) -> bool:
    """Whether texts are lists, or look like them."""
    return bool(kind.separator) or (kind.noted is not None and bool(kind.noted.divided_by))


def called(name: str) -> float:
    """How much more an attribute is worth for what it is called."""
    words = Column(name, []).called
    found = max((CALLED.get(word, 0.0) for word in words), default=0.0)
    return found if len(words) == 1 or "full" in words else OF_OTHERS * found


# ---------------------------------------------------------------------- parts of names


def composed(names: Sequence[str], model: Record) -> Iterator[Way]:
    """The attributes that are parts of the same name: of a person, or of an author, a spouse …"""
    parts: dict[tuple[str, ...], dict[int, str]] = {}
    for name in names:
        place, kind = place_of(name), kind_of(model, name)
        if place is not None and isinstance(kind, Text | Category) and not isinstance(kind, NO_PART):
            rest = tuple(word for word in Column(name, []).called if word not in FILLERS | PARTS[place])
            parts.setdefault(rest, {}).setdefault(place, name)
    for found in parts.values():
        if GIVEN in found and FAMILY in found:
            yield tuple(found[place] for place in sorted(found))


def place_of(name: str) -> int | None:
    """Which part of the name of a person an attribute is, if it is one."""
    words = set(Column(name, []).called)
    places = [place for place, known in enumerate(PARTS) if words & known]
    return places[0] if len(places) == 1 else None


# ---------------------------------------------------------------------- said by users


def name_wanted(name: str | Sequence[str] | None) -> str | list[str] | None:
    """What entities are to be named by, as the settings keep it."""
    return name if name is None or isinstance(name, str) else list(name)


def naming_attributes(model: Record, wanted: str | Sequence[str], insist: bool) -> list[str] | None:
    """The attributes that entities are to be named by; without ``insist`` those that the model has, None if none."""
    known = model.attributes or {}
    said = attributes_said(wanted, list(known))
    return said if insist else [name for name in said if known.get(name) is not None] or None


def attributes_said(text: str | Sequence[str], known: Sequence[str]) -> list[str]:
    """The attributes in "first_name last_name": divided by commas, or by spaces where they are not part of a name."""
    if not isinstance(text, str):
        return list(text)
    if text in known:
        return [text]
    if "," in text:
        return [part.strip() for part in text.split(",") if part.strip()]
    words, found = text.split(), []
    while words:
        longest = next((n for n in range(len(words), 0, -1) if " ".join(words[:n]) in known), 1)
        found.append(" ".join(words[:longest]))
        words = words[longest:]
    return found
