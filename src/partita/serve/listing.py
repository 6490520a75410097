"""A page of the list of entities: in an order, or as a search has found them.

Which entities there are, and in which order, is worked out once a moment; what a page shows of each is read then.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable
from typing import Any, NamedTuple

from sqlalchemy import Connection, select

from partita.kb import KnowledgeBase
from partita.kb.queries.answers import entity_id
from partita.kb.queries.listing import listed, with_values
from partita.kb.queries.search import Ranking, ranking, values_with
from partita.kb.store import tables
from partita.kb.store.fragments import SAID
from partita.kb.store.statements import Lookup
from partita.models.records.fragments import as_text
from partita.serve.desk import Kept

SUMMARY = 3  # values that sum up an entity
LOOKED_AT = 5  # fragments of an entity, the first ones, that it is summed up by
MEMBERS = Lookup(
    select(tables.members.c.entity, tables.members.c.fragment, tables.members.c.probability).where(
        tables.members.c.until.is_(None)
    ),
    tables.members.c.entity,
)


class Wanted(NamedTuple):
    """What is to be listed."""

    query: str | None = None
    sort: str = "size"
    minimum: int = 1
    where: tuple[tuple[str, str], ...] = ()

    @property
    def values(self) -> dict[str, list[str]]:
        """The values that are wanted of each attribute."""
        found: dict[str, list[str]] = {}
        for attribute, value in self.where:
            found.setdefault(attribute, []).append(value)
        return found


def page_of(kb: KnowledgeBase, kept: Kept, wanted: Wanted, limit: int, offset: int) -> dict[str, Any]:
    """Some of the entities that are wanted, and how many there are."""
    with kb.store.reading() as connection:
        key: Hashable = ("page", wanted, limit, offset)
        return kept(key, lambda: made(connection, kept, wanted, limit, offset))


def made(connection: Connection, kept: Kept, wanted: Wanted, limit: int, offset: int) -> dict[str, Any]:
    """The same, which nobody has asked for yet."""
    if wanted.query is None:
        in_order = kept(("listed", wanted), lambda: in_order_of(connection, wanted))
        shown, total = in_order[offset : offset + limit], len(in_order)
        found = summed_up(connection, dict(shown))
    else:
        ranked = kept(("ranked", wanted), lambda: found_by(connection, wanted))
        rows, total = ranked.rows[offset : offset + limit], len(ranked.rows)
        found = summed_up(connection, {row.number: row.name for row in rows})
        matches = values_with(connection, [row.fragment for row in rows], ranked.words)
        for one, row in zip(found, rows, strict=True):
            one |= {"matches": matches[row.fragment], "score": round(ranked.score[row.fragment], 3)}
    end = offset + len(found)
    return {"total": total, "entities": found, "next": end if found and end < total else None}


def in_order_of(connection: Connection, wanted: Wanted) -> list[tuple[int, str | None]]:
    """The numbers and names of the entities that are wanted."""
    rows = listed(connection, wanted.sort, wanted.minimum, wanted.values, None)
    return [(row.number, row.name) for row in rows]


def found_by(connection: Connection, wanted: Wanted) -> Ranking:
    """The entities that a search finds, and that are wanted."""
    found = ranking(connection, wanted.query or "")
    chosen = with_values(connection, wanted.values) if wanted.where else None
    rows = [
        row for row in found.rows if row.size >= wanted.minimum and (chosen is None or row.number in chosen)
    ]
    return found._replace(rows=rows)


def summed_up(connection: Connection, names: dict[int, str | None]) -> list[dict[str, Any]]:
    """Entities in a line each: what they are called, how large and how sure they are, and what else they say."""
    held: dict[int, list[tuple[int, float]]] = {number: [] for number in names}
    for entity, fragment, probability in MEMBERS(connection, names):
        held[entity].append((fragment, probability))
    first = {number: sorted(fragments)[:LOOKED_AT] for number, fragments in held.items()}
    said = dict(SAID(connection, {fragment for some in first.values() for fragment, _ in some}))
    return [
        {
            "id": entity_id(number),
            "name": name,
            "size": len(held[number]),
            "probability": sum(p for _, p in held[number]) / max(len(held[number]), 1),
            "summary": summary(name, [said[fragment] for fragment, _ in first[number]]),
            "matches": [],
        }
        for number, name in names.items()
    ]


def summary(name: str | None, said: list[str | None]) -> list[str]:
    """The commonest value of each of the first attributes, beside what is in the name."""
    counts: dict[str, Counter[str]] = {}
    for text in said:
        for attribute, values in json.loads(text or "{}").items():
            counts.setdefault(attribute, Counter()).update(map(as_text, values))
    found = (max(values, key=values.__getitem__) for values in counts.values() if values)
    return [text for text in dict.fromkeys(found) if text not in (name or "")][:SUMMARY]
