"""Golden records: of each entity one best value an attribute, how probable it is, and how many fragments agree.

A *rule* says which value is the best. Values that only differ in spelling count as one: in case, accents and
punctuation, and in what else does not matter to their kind, such as the code of a country before a telephone number.
How probable a value is: the chance that a fragment, picked at random among those of the entity that say something of
the attribute, is of the entity and says this.
"""

from __future__ import annotations

import difflib
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, select

from partita.kb.columns import Readers, keys_of, readers_in
from partita.kb.queries.answers import PAGE, Answer, entity_id
from partita.kb.store import tables
from partita.kb.store.database import select_all
from partita.models.records.fragments import as_text
from partita.models.records.kinds import Attribute
from partita.models.records.kinds.number import PLAIN

RULES = ("probable", "recent", "recent:DATE_ATTRIBUTE", "longest", "source:FIRST,SECOND,…")
DIGITS = 4  # of probabilities
LONG_AGO = float("-inf")
NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
Key = frozenset[str] | frozenset[float]
Properties = Mapping[str, Sequence[Any]]
FIXED = ("id", "fragments", "probability")  # columns that are no attributes


class Rule(NamedTuple):
    """Which value is the best: the most probable among those that a rule prefers."""

    kind: str = "probable"  # or recent, longest, source
    by: tuple[str, ...] = ()  # the attribute that has the date, or the sources, the best first


class Said(NamedTuple):
    """A value of an attribute, as a fragment says it."""

    value: Any
    text: str
    key: Key  # the same for values that count as one
    fragment: int  # its number: later ones came later
    source: str | None
    probability: float  # that the fragment is of the entity
    moment: float  # of the fragment, where a rule asks for it


@dataclass(frozen=True)
class Best(Answer):
    """The best value of an attribute."""

    value: Any
    probability: float  # that a fragment which says something of the attribute is of the entity and says this
    agree: int  # fragments that say so


AS_WRITTEN = Readers()


@dataclass(frozen=True)
class Golden(Answer):
    """An entity with one value an attribute."""

    id: str
    fragments: int
    probability: float  # the mean, over the fragments, of being of this entity
    values: dict[str, Best]

    def as_row(self, columns: Mapping[str, Sequence[str]], plain: bool = False) -> dict[str, Any]:
        """A row of a table; see :func:`columns_of`. A plain one has values only."""
        row: dict[str, Any] = {"id": self.id, "fragments": self.fragments, "probability": self.probability}
        for attribute, best in self.values.items():
            found = (best.value,) if plain else (best.value, best.probability, best.agree)
            row |= dict(zip(columns[attribute], found, strict=False))
        return row


# ---------------------------------------------------------------------- rules


def rules_of(given: Mapping[str, str], attributes: Sequence[str], sources: Sequence[str]) -> dict[str, Rule]:
    """Rules from what users write, by attribute; ValueError where one cannot be."""
    rules = {}
    for attribute, text in given.items():
        kind, _, rest = text.partition(":")
        by = tuple(part.strip() for part in rest.split(",") if part.strip())
        fits = {"probable": not rest, "longest": not rest, "recent": len(by) < 2, "source": bool(by)}
        if not fits.get(kind, False):
            raise ValueError(f"{text!r} is no rule for {attribute!r}: choose from {', '.join(RULES)}")
        for name in (attribute, *(by if kind == "recent" else ())):
            check_is_there(name, attributes, "no fragment has the attribute")
        for name in by if kind == "source" else ():
            check_is_there(name, sources, "no fragment is from the source")
        rules[attribute] = Rule(kind, by)
    return rules


def check_is_there(name: str, known: Sequence[str], what: str) -> None:
    """ValueError for what a rule names and nothing has, with what may be meant."""
    if name not in known:
        near = difflib.get_close_matches(name, known, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known) or 'none'}"
        raise ValueError(f"{what} {name!r} that a rule names; {hint}")


def attributes_of(connection: Connection) -> list[str]:
    """All attributes of which fragments have ever said something, in the order of the schema."""
    said = set(connection.scalars(select(tables.said.c.attribute).distinct()))
    readers = readers_in(connection)
    return [*(name for name in readers if name in said), *sorted(said - readers.keys())]


def sources_of(connection: Connection) -> list[str]:
    """Where fragments are from."""
    source = tables.fragments.c.source
    return sorted(connection.scalars(select(source).where(source.is_not(None)).distinct()))


def columns_of(attributes: Sequence[str]) -> dict[str, tuple[str, str, str]]:
    """The columns of each attribute: of its value, how probable that is, and how many agree."""
    taken = {*FIXED, *attributes}

    def free(name: str) -> str:
        return f"property {name}" if name in taken else name

    return {
        name: (
            f"property {name}" if name in FIXED else name,
            free(f"{name}_probability"),
            free(f"{name}_agree"),
        )
        for name in attributes
    }


# ---------------------------------------------------------------------- entities


def golden(
    connection: Connection, rules: Mapping[str, Rule], some: Sequence[int] | None = None
) -> Iterator[Golden]:
    """All entities with one value an attribute, the largest first, of equal ones the oldest; or some, by number."""
    entities, members, fragments = tables.entities, tables.members, tables.fragments
    readers = readers_in(connection)
    live = select(entities.c.number).where(entities.c.ended.is_(None))
    if some is None:
        some = list(connection.scalars(live.order_by(entities.c.size.desc(), entities.c.number)))
    query = (
        select(members.c.entity, members.c.probability, fragments)
        .join(fragments, fragments.c.number == members.c.fragment)
        .where(members.c.until.is_(None))
    )
    for start in range(0, len(some), PAGE):
        page = some[start : start + PAGE]
        held: dict[int, list[Any]] = {number: [] for number in page}
        for row in select_all(connection, query, members.c.entity, page):
            held[row.entity].append(row)
        for number in page:
            yield golden_of(number, sorted(held[number], key=lambda row: row.number), rules, readers)


def golden_of(
    number: int,
    rows: list[Any],
    rules: Mapping[str, Rule],
    readers: Readers = AS_WRITTEN,
) -> Golden:
    """An entity's golden record, from its fragments in the order they came."""
    said: dict[str, list[Said]] = defaultdict(list)
    given: list[tuple[str, Properties]] = [(row.id, json.loads(row.properties or "{}")) for row in rows]
    moments = {rule: moments_of(given, rule, readers) for rule in {Rule(), *rules.values()}}
    for k, (row, (_, properties)) in enumerate(zip(rows, given, strict=True)):
        for attribute, values in properties.items():
            moment = moments[rules.get(attribute, Rule())][k]
            for value in values:
                if key := key_of(readers[attribute], value):
                    own = (row.number, row.source, row.probability, moment)
                    said[attribute].append(Said(value, as_text(value), key, *own))
    sure = sum(row.probability for row in rows) / max(len(rows), 1)
    best = {attribute: best_of(found, rules.get(attribute, Rule())) for attribute, found in said.items()}
    return Golden(str(entity_id(number)), len(rows), round(sure, DIGITS), best)


def key_of(reader: Attribute, value: Any) -> Key:
    """The same for values that count as one: numbers, or texts as they are compared; empty for what says nothing.

    >>> key_of(Attribute(), "12.50") == key_of(Attribute(), 12.5) != key_of(Attribute(), "012.50")
    True
    """
    text = as_text(value).strip()
    if type(reader) is Attribute and PLAIN.fullmatch(text) and reader.items(value):
        return frozenset([float(text)])
    return keys_of(reader, value)


def moments_of(said: Sequence[tuple[str, Properties]], rule: Rule, readers: Readers) -> list[float]:
    """When each fragment, of an id and what it says, is from; long ago if it does not say, or the rule does not ask.

    All are dates or all are numbers, for they are compared: 20260131 is a date beside 2020-01-01.
    """
    if rule.kind != "recent" or not rule.by:
        return [LONG_AGO] * len(said)
    (name,) = rule.by
    reader = readers[name]
    found = [
        [as_text(item).strip() for value in properties.get(name, ()) for item in reader.items(value)]
        for _, properties in said
    ]
    read = as_number if all(NUMBER.fullmatch(text) for texts in found for text in texts) else as_date
    return [
        max((read(id, name, text) for text in texts), default=LONG_AGO)
        for (id, _), texts in zip(said, found, strict=True)
    ]


def as_number(id: str, attribute: str, text: str) -> float:
    """A number."""
    return float(text)


def as_date(id: str, attribute: str, text: str) -> float:
    """A date or a time as a number; ValueError if it is neither."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        wrong = (
            "is a number, and other fragments of its entity have dates there"
            if NUMBER.fullmatch(text)
            else "is neither a number nor a date such as 2026-01-31 or 2026-01-31T09:30"
        )
        raise ValueError(
            f"fragment {id!r}, {attribute!r}: {text!r} {wrong}; use the order they came in (recent) instead"
        ) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


# ---------------------------------------------------------------------- the best value


def best_of(said: list[Said], rule: Rule) -> Best:
    """The most probable of the values that a rule prefers, as it is most often written; of equal ones the first."""
    weight: dict[Key, dict[int, float]] = defaultdict(dict)  # of each value: its fragments
    spelt: dict[tuple[Key, str], float] = defaultdict(float)
    for each in said:
        weight[each.key][each.fragment] = each.probability
        spelt[each.key, each.text] += each.probability
    best = max(
        preferred(said, rule),
        key=lambda each: (
            round(sum(weight[each.key].values()), 9),
            -min(weight[each.key]),  # what came first
            round(spelt[each.key, each.text], 9),
        ),
    )
    agreeing = weight[best.key]
    mentions = len({each.fragment for each in said})
    return Best(best.value, round(sum(agreeing.values()) / mentions, DIGITS), len(agreeing))


def preferred(said: list[Said], rule: Rule) -> list[Said]:
    """The values among which a rule has the most probable be chosen."""
    if rule.kind == "recent":
        last = max((each.moment, each.fragment) for each in said)
        return [each for each in said if (each.moment, each.fragment) == last]
    if rule.kind == "longest":
        longest = max(len(each.text) for each in said)
        return [each for each in said if len(each.text) == longest]
    if rule.kind == "source":
        rank = {source: k for k, source in enumerate(rule.by)}
        ranks = [rank.get(each.source or "", len(rank)) for each in said]
        return [each for each, own in zip(said, ranks, strict=True) if own == min(ranks)]
    return said
