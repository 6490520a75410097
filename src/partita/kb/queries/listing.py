"""Which entities to list, and in which order.

Values are compared as the models compare texts, whatever their case, accents and punctuation. The table of words
finds the fragments that may have a value, and what these say decides.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, func, select

from partita._core.checks import whole
from partita.kb.columns import keys_of, readers_in
from partita.kb.store import tables
from partita.kb.store.database import select_all
from partita.kb.store.fragments import LONGEST
from partita.models.records.folding import NOTHING, folded, words_of
from partita.models.records.fragments import as_text
from partita.models.records.kinds import Attribute

SORTS = ("size", "sure", "recent", "name")
LISTED = 10  # attributes that an error names


def listed(
    connection: Connection, sort: str, minimum: int, where: Mapping[str, Any] | None, limit: int | None
) -> list[Any]:
    """Rows of entities, with ``number`` and ``name``, in order; see :meth:`KnowledgeBase.entities`."""
    if sort not in SORTS:
        raise ValueError(f"sort must be one of {', '.join(map(repr, SORTS))}, got {sort!r}")
    whole("minimum", minimum, 1)
    if limit is not None:
        whole("limit", limit, 0)
    table = tables.entities
    query = select(table.c.number, table.c.name).where(table.c.ended.is_(None), table.c.size >= minimum)
    chosen = None if not where else with_values(connection, where)
    if sort != "name":
        query = ordered(query, sort)
    if chosen is None and sort != "name":
        return list(connection.execute(query.limit(limit)))
    rows = list(connection.execute(query))
    if chosen is not None:
        rows = [row for row in rows if row.number in chosen]
    if sort == "name":
        rows.sort(key=lambda row: (row.name is None, words_of(row.name or ""), row.number))
    return rows[:limit]


def ordered(query: Any, sort: str) -> Any:
    """The largest first; the least sure; or those that a fragment came to last."""
    table, members = tables.entities, tables.members
    if sort == "size":
        return query.order_by(table.c.size.desc(), table.c.number)
    measure = {"sure": func.avg(members.c.probability), "recent": func.max(members.c.since)}[sort]
    measured = select(members.c.entity, measure.label("measure")).where(members.c.until.is_(None))
    found = measured.group_by(members.c.entity).subquery()
    value = found.c.measure.desc() if sort == "recent" else found.c.measure
    query = query.join(found, found.c.entity == table.c.number)
    return query.order_by(value, table.c.size.desc(), table.c.number)


# ---------------------------------------------------------------------- by what they say


def with_values(connection: Connection, where: Mapping[str, Any]) -> set[int] | None:
    """The entities of which fragments give attributes these values; None, which is all, if it names no value."""
    found: set[int] | None = None
    readers = readers_in(connection)
    for attribute, wanted in where.items():
        check_known(connection, attribute)
        several = isinstance(wanted, Sequence) and not isinstance(wanted, str | bytes)
        for value in wanted if several else [wanted]:
            entities = having(connection, attribute, as_text(value), readers[attribute])
            found = entities if found is None else found & entities
    return found


def having(connection: Connection, attribute: str, value: str, reader: Attribute) -> set[int]:
    """The entities of which a fragment gives an attribute a value, alone or in a list."""
    said, words, members = tables.said, tables.words, tables.members
    query = select(said.c.fragment, said.c.value).where(said.c.attribute == attribute)
    for word in dict.fromkeys(words_of(value)):
        if word != NOTHING:
            query = query.where(
                said.c.fragment.in_(select(words.c.fragment).where(words.c.word == word[:LONGEST]))
            )
    wanted = folded(value)
    fragments = {
        row.fragment
        for row in connection.execute(query)
        if folded(row.value) == wanted or wanted in keys_of(reader, row.value)
    }
    of = select(members.c.entity).where(members.c.until.is_(None))
    return {row.entity for row in select_all(connection, of, members.c.fragment, fragments)}


def check_known(connection: Connection, attribute: str) -> None:
    """KeyError for an attribute that no fragment has ever mentioned; it says which there are."""
    said = tables.said
    if connection.scalar(select(said.c.attribute).where(said.c.attribute == attribute).limit(1)) is not None:
        return
    known = sorted(connection.scalars(select(said.c.attribute).distinct()))
    near = difflib.get_close_matches(attribute, known, 1, 0.5)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    there = ", ".join(map(repr, known[:LISTED])) + (", …" if len(known) > LISTED else "")
    raise KeyError(
        f"no fragment has an attribute {attribute!r}{hint}" + (f" There are {there}" if there else "")
    )
