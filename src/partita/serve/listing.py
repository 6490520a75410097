"""A page of the list of entities: in an order, or as a search has found them.

Which entities there are, and in which order, is worked out once a moment; what a page shows of each is read then.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

from sqlalchemy import Connection, select

from partita.kb import KnowledgeBase
from partita.kb.queries.answers import described, entity_id
from partita.kb.queries.listing import listed, with_values
from partita.kb.queries.search import Ranking, ranking, values_with
from partita.kb.store import tables
from partita.kb.store.database import select_all
from partita.models.records.fragments import as_text
from partita.serve.desk import Kept

SUMMARY = 3  # values that sum up an entity
SIZE = select(tables.entities.c.number, tables.entities.c.size)


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
    return [
        {
            "id": entity.id,
            "name": entity.name,
            "size": len(entity.fragments),
            "probability": entity.probability,
            "summary": summary(entity.name, entity.properties),
            "matches": [],
        }
        for entity in described(connection, names)
    ]


def summary(name: str | None, properties: dict[str, Any]) -> list[str]:
    """The commonest values of an entity's first attributes, beside what is in its name."""
    first = (as_text(values[0].value) for values in properties.values())
    return [text for text in dict.fromkeys(first) if text not in (name or "")][:SUMMARY]


def sizes_of(connection: Connection, ids: list[int]) -> dict[str, int]:
    """How many fragments entities have, by id."""
    rows = select_all(connection, SIZE, tables.entities.c.number, ids)
    return {str(entity_id(row.number)): row.size for row in rows}
