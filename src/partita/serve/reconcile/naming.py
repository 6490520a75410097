"""What the text of a query is of: the attribute that names entities, or the parts of a name that several make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from partita.kb import KnowledgeBase
from partita.kb.fragments import Scalar
from partita.kb.naming import FAMILY, GIVEN, place_of, ways_of
from partita.kb.store.database import get
from partita.models.records.record import Record

MIDDLE, SUFFIX = 1, 3  # places in a name, beside those two
SUFFIXES = {"jr", "sr", "ii", "iii", "iv"}


def naming(kb: KnowledgeBase) -> list[str]:
    """The attributes that name entities together, as they are now; none if nothing reads like a name."""
    with kb.store.reading() as connection:
        ways = get(connection, "settings").get("named_by")
        if ways is None and (model := get(connection, "model")) is not None:  # made by an older version
            ways = ways_of(Record.from_json(model))
    return list(ways[0]) if ways else []


def record_of(
    text: str, properties: Mapping[str, list[Scalar]], way: Sequence[str]
) -> dict[str, list[Scalar]]:
    """What a query says, by attribute: its properties, and its text as the name.

    Of a name in parts, the parts that properties have are theirs.

    >>> record_of("Ada Lovelace", {"born": [1815]}, ["name"])
    {'born': [1815], 'name': ['Ada Lovelace']}
    >>> record_of("Lovelace, Ada", {"last_name": ["King"]}, ["first_name", "last_name"])
    {'last_name': ['King'], 'first_name': ['Ada']}
    """
    record = {name: list(values) for name, values in properties.items()}
    for name, part in parts_of(text, way).items() if text and way else ():
        if name not in record:
            record[name] = [part]
        elif len(way) == 1 and part not in record[name]:
            record[name].append(part)
    return record


def parts_of(text: str, way: Sequence[str]) -> dict[str, str]:
    """A text in the parts that make a name together.

    >>> parts_of("Martin Luther King Jr.", ["first", "last", "suffix"])
    {'first': 'Martin Luther', 'last': 'King', 'suffix': 'Jr.'}
    >>> parts_of("Canon EOS 5D", ["brand", "model"])
    {'brand': 'Canon', 'model': 'EOS 5D'}
    """
    if len(way) == 1:
        return {way[0]: text}
    places = {place_of(name): name for name in way}
    if GIVEN not in places or FAMILY not in places:
        return dict(zip(way, text.split(maxsplit=len(way) - 1), strict=False))
    said = {places[place]: part for place, part in in_places(text, set(places)).items() if part}
    return {name: said[name] for name in way if name in said}


def in_places(text: str, places: set[int | None]) -> dict[int | None, str]:
    """The name of a person by the places of its parts; one word alone is the family's."""
    family, comma, rest = text.partition(",")
    words = rest.split() if comma else text.split()
    suffix = ""
    if SUFFIX in places and len(words) > 1 and words[-1].strip(".").casefold() in SUFFIXES:
        suffix = words.pop()
    if not comma:
        family = words.pop() if words else ""
    split = 1 if MIDDLE in places else len(words)
    return {
        GIVEN: " ".join(words[:split]),
        MIDDLE: " ".join(words[split:]),
        FAMILY: family.strip(),
        SUFFIX: suffix,
    }
