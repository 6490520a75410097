"""Golden records: of each entity one best value an attribute, how probable it is, and how many fragments agree.

A *rule* says which value is the best. Values that are the same when folded (case, accents, punctuation) count as one.
How probable a value is: the chance that a fragment, picked at random among those of the entity that say something of
the attribute, is of the entity and says this.
"""

from __future__ import annotations

import difflib
import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, select

from partita.kb.columns import missing_in, says_nothing
from partita.kb.queries.answers import PAGE, Answer, entity_id
from partita.kb.store import tables
from partita.kb.store.database import select_all
from partita.models.records.folding import folded
from partita.models.records.fragments import as_text

RULES = ("probable", "recent", "recent:DATE_ATTRIBUTE", "longest", "source:FIRST,SECOND,…")
DIGITS = 4  # of probabilities
LONG_AGO = float("-inf")
FIXED = ("id", "fragments", "probability")  # columns that are no attributes


class Rule(NamedTuple):
    """Which value is the best: the most probable among those that a rule prefers."""

    kind: str = "probable"  # or recent, longest, source
    by: tuple[str, ...] = ()  # the attribute that has the date, or the sources, the best first


class Said(NamedTuple):
    """A value of an attribute, as a fragment says it."""

    value: Any
    text: str
    key: str | float  # the same for values that count as one
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


EVERYTHING: Mapping[str, Collection[str]] = {}  # says something


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


def rules_of(given: Mapping[str, str], attributes: Sequence[str]) -> dict[str, Rule]:
    """Rules from what users write, by attribute; ValueError where one cannot be."""
    rules = {}
    for attribute, text in given.items():
        kind, _, rest = text.partition(":")
        by = tuple(part.strip() for part in rest.split(",") if part.strip())
        fits = {"probable": not rest, "longest": not rest, "recent": len(by) < 2, "source": bool(by)}
        if not fits.get(kind, False):
            raise ValueError(f"{text!r} is no rule for {attribute!r}: choose from {', '.join(RULES)}")
        for name in (attribute, *(by if kind == "recent" else ())):
            if name not in attributes:
                near = difflib.get_close_matches(name, attributes, 1)
                hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(attributes)}"
                raise ValueError(f"no fragment has the attribute {name!r} that a rule names; {hint}")
        rules[attribute] = Rule(kind, by)
    return rules


def attributes_of(connection: Connection) -> list[str]:
    """All attributes of which fragments have ever said something."""
    query = select(tables.said.c.attribute).distinct()
    return sorted(connection.scalars(query))


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


def golden(connection: Connection, rules: Mapping[str, Rule]) -> Iterator[Golden]:
    """All entities with one value an attribute, the largest first, of equal ones the oldest."""
    entities, members, fragments = tables.entities, tables.members, tables.fragments
    missing = missing_in(connection)
    live = select(entities.c.number).where(entities.c.ended.is_(None))
    numbers = list(connection.scalars(live.order_by(entities.c.size.desc(), entities.c.number)))
    query = (
        select(members.c.entity, members.c.probability, fragments)
        .join(fragments, fragments.c.number == members.c.fragment)
        .where(members.c.until.is_(None))
    )
    for start in range(0, len(numbers), PAGE):
        page = numbers[start : start + PAGE]
        held: dict[int, list[Any]] = {number: [] for number in page}
        for row in select_all(connection, query, members.c.entity, page):
            held[row.entity].append(row)
        for number in page:
            yield golden_of(number, sorted(held[number], key=lambda row: row.number), rules, missing)


def golden_of(
    number: int,
    rows: list[Any],
    rules: Mapping[str, Rule],
    missing: Mapping[str, Collection[str]] = EVERYTHING,
) -> Golden:
    """An entity's golden record, from its fragments in the order they came."""
    said: dict[str, list[Said]] = defaultdict(list)
    for row in rows:
        properties = json.loads(row.properties or "{}")
        for attribute, values in properties.items():
            moment = moment_of(row.id, properties, rules.get(attribute, Rule()))
            for value in values:
                if not says_nothing(value, missing.get(attribute, ())):
                    text = as_text(value)
                    own = (row.number, row.source, row.probability, moment)
                    said[attribute].append(Said(value, text, key_of(text), *own))
    sure = sum(row.probability for row in rows) / max(len(rows), 1)
    values = {attribute: best_of(found, rules.get(attribute, Rule())) for attribute, found in said.items()}
    return Golden(str(entity_id(number)), len(rows), round(sure, DIGITS), values)


def key_of(text: str) -> str | float:
    """The same for values that count as one: a number, or folded text."""
    try:
        return float(text)
    except ValueError:
        return folded(text)


def moment_of(id: str, properties: Mapping[str, list[Any]], rule: Rule) -> float:
    """When a fragment is from, by the attribute that the rule names; long ago if it does not say."""
    found = [value for name in rule.by if rule.kind == "recent" for value in properties.get(name, [])]
    return max((as_moment(id, rule.by[0], value) for value in found), default=LONG_AGO)


def as_moment(id: str, attribute: str, value: Any) -> float:
    """A date, a time or a number as a number; ValueError if it is neither."""
    text = as_text(value).strip()
    try:
        return float(text)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"fragment {id!r}, {attribute!r}: {text!r} is neither a number nor a date such as 2026-01-31 or "
            "2026-01-31T09:30; use the order they came in (recent) instead"
        ) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


# ---------------------------------------------------------------------- the best value


def best_of(said: list[Said], rule: Rule) -> Best:
    """The most probable of the values that a rule prefers, as it is most often written; of equal ones the first."""
    weight: dict[str | float, dict[int, float]] = defaultdict(dict)  # of each value: its fragments
    spelt: dict[tuple[str | float, str], float] = defaultdict(float)
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
