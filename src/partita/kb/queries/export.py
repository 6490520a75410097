"""Export: entities, the fragments they consist of, or draws from the posterior, as files.

- ``entities``: one a row, ``{"id", "name", "properties": {attribute: [{"value", "probability", "sources"}]},
  "fragments": [ids]}``; in CSV and Excel one column an attribute, several values separated by ``" | "``;
- ``fragments``: one a row, with the entity it is of and how sure that is;
- ``golden``: an entity a row, with one best value an attribute; see :mod:`.golden`;
- ``clusters``: a fragment a row, with ``unique_id``, ``cluster_id`` and ``match_probability``, as Splink has them;
- ``ftm``: entities as FollowTheMoney has them; see :mod:`.follow_the_money`;
- ``samples``: whole clusterings drawn from the posterior, one row for each draw and fragment.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike, fspath
from typing import Any, NamedTuple

from sqlalchemy import Connection, select

from partita.kb.columns import readers_in
from partita.kb.inputs import check_is_none
from partita.kb.io import write
from partita.kb.io.formats import format_of
from partita.kb.queries import answers
from partita.kb.queries.follow_the_money import follow_the_money
from partita.kb.queries.golden import FIXED, attributes_of, columns_of, golden, rules_of, sources_of
from partita.kb.queries.posterior import sample
from partita.kb.session import Session
from partita.kb.store import tables
from partita.models.records.fragments import as_text

SEPARATOR = " | "
CLUSTER = ("unique_id", "cluster_id", "match_probability", "source")  # columns that are no attributes
ENTITY = ("id", "name", "probability", "fragments")  # the same of entities
TABLES = ("csv", "tsv", "xlsx")  # formats whose cells are texts and numbers
STEP = 100  # rows after which whoever watches is told


class Wanted(NamedTuple):
    """What is to be exported; see :meth:`KnowledgeBase.export`."""

    what: str
    samples: int
    rules: Mapping[str, str]
    plain: bool
    with_fields: bool
    entities: Sequence[str] = ()  # ids of those that are wanted; all of them, if there is none

    def check(self) -> None:
        """Raise ValueError for what goes with another kind of export."""
        for given, name, what in (
            (self.rules, "rules", "golden"),
            (self.plain, "plain", "golden"),
            (self.with_fields, "with_fields", "clusters"),
        ):
            if given and self.what != what:
                raise ValueError(f"{name} goes with an export of {what!r}, not of {self.what!r}")
        if self.entities and self.what in ("ftm", "samples"):
            raise ValueError(f"an export of {self.what!r} is of all entities: leave them out")


def export(session: Session, path: str | PathLike[str], wanted: Wanted, format: str | None) -> int:
    """See :meth:`KnowledgeBase.export`."""
    wanted.check()
    check_is_none(session.store, path)
    format = format_of(fspath(path), format)
    rows = counted(session, rows_of(session, wanted, format))
    return write(rows, fspath(path), format, columns_wanted(session, wanted, format))


def columns_wanted(session: Session, wanted: Wanted, format: str) -> list[str] | None:
    """The columns where there is one an attribute, whichever row comes first; None where they are always the same."""
    with session.store.reading() as connection:
        attributes = attributes_of(connection)
    if wanted.what == "golden":
        named = columns_of(attributes).values()
        return [*FIXED, *(column for own in named for column in (own[:1] if wanted.plain else own))]
    if wanted.what == "clusters" and wanted.with_fields:
        return [*CLUSTER, *(column_of(name, CLUSTER) for name in attributes)]
    if wanted.what == "entities" and format in TABLES:
        return [*ENTITY, *(column_of(name, ENTITY) for name in attributes)]
    return None


def column_of(attribute: str, others: Sequence[str]) -> str:
    """The column of an attribute, beside others that are none."""
    return f"property {attribute}" if attribute in others else attribute


def rows_of(session: Session, wanted: Wanted, format: str) -> Iterator[dict[str, Any]]:
    """What is to be exported, row by row, as a format takes it."""
    kinds: dict[str, Callable[[], Iterator[dict[str, Any]]]] = {
        "entities": lambda: map(answers.Entity.as_dict, entities(session, wanted.entities)),
        "fragments": lambda: fragments(session, wanted.entities),
        "golden": lambda: golden_rows(session, wanted),
        "clusters": lambda: clusters(session, wanted),
        "ftm": lambda: in_the_manner_of_ftm(session),
        "samples": lambda: drawn(session, wanted.samples),
    }
    if wanted.what not in kinds:
        raise ValueError(f"cannot export {wanted.what!r}: it must be one of {', '.join(kinds)}")
    if format in TABLES and wanted.what == "entities":
        return map(flat, entities(session, wanted.entities))
    return kinds[wanted.what]()


def in_the_manner_of_ftm(session: Session) -> Iterator[dict[str, Any]]:
    """All entities as FollowTheMoney has them."""
    with session.store.reading() as connection:
        readers = readers_in(connection)
        for entity in answers.entities(connection, minimum=1, limit=None):
            yield follow_the_money(entity, readers)


def entities(session: Session, ids: Sequence[str]) -> Iterator[answers.Entity]:
    """All entities, the largest first; or some of them, in the order given."""
    with session.store.reading() as connection:
        if not ids:
            yield from answers.entities(connection, minimum=1, limit=None)
            return
        rows = (answers.entity_now(connection, id) for id in ids)
        yield from answers.described(connection, {row.number: row.name for row in rows})


def numbers_of(connection: Connection, ids: Sequence[str]) -> list[int]:
    """The numbers of some entities, without those that are named twice."""
    return list(dict.fromkeys(int(answers.entity_now(connection, id).number) for id in ids))


def flat(entity: answers.Entity) -> dict[str, Any]:
    """An entity as a row of a table."""
    held = SEPARATOR.join(entity.fragments)
    row = dict(zip(ENTITY, (entity.id, entity.name, entity.probability, held), strict=True))
    for attribute, values in entity.properties.items():
        row[column_of(attribute, ENTITY)] = SEPARATOR.join(str(value.value) for value in values)
    return row


def fragments(session: Session, ids: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Each fragment with its entity, in the order they came."""
    members, known = tables.members, tables.fragments
    query = (
        select(known.c.id, known.c.source, members.c.entity, members.c.probability)
        .join(members, members.c.fragment == known.c.number)
        .where(members.c.until.is_(None))
        .order_by(known.c.number)
    )
    with session.store.reading() as connection:
        if ids:
            query = query.where(members.c.entity.in_(numbers_of(connection, ids)))
        for row in connection.execute(query):
            entity = answers.entity_id(row.entity)
            yield {"fragment": row.id, "entity": entity, "probability": row.probability, "source": row.source}


def clusters(session: Session, wanted: Wanted) -> Iterator[dict[str, Any]]:
    """Each fragment with its cluster, in columns as Splink names them, and what it says if that is wanted."""
    members, known = tables.members, tables.fragments
    query = (
        select(known, members.c.entity, members.c.probability)
        .join(members, members.c.fragment == known.c.number)
        .where(members.c.until.is_(None))
        .order_by(known.c.number)
    )
    with session.store.reading() as connection:
        if wanted.entities:
            query = query.where(members.c.entity.in_(numbers_of(connection, wanted.entities)))
        for row in connection.execute(query):
            found = {"unique_id": row.id, "cluster_id": answers.entity_id(row.entity)}
            found["match_probability"] = row.probability
            if wanted.with_fields:
                found["source"] = row.source
                for name, values in json.loads(row.properties).items():
                    one = values[0] if len(values) == 1 else SEPARATOR.join(map(as_text, values))
                    found[column_of(name, CLUSTER)] = one
            yield found


def golden_rows(session: Session, wanted: Wanted) -> Iterator[dict[str, Any]]:
    """Each entity with one value an attribute, as rows of a table."""
    with session.store.reading() as connection:
        attributes = attributes_of(connection)
        chosen = rules_of(wanted.rules, attributes, sources_of(connection))
        columns = columns_of(attributes)
        some = numbers_of(connection, wanted.entities) if wanted.entities else None
        for record in golden(connection, chosen, some):
            yield record.as_row(columns, wanted.plain)


def counted(session: Session, rows: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The same rows; whoever watches is told how many there have been."""
    for n, row in enumerate(rows, 1):
        yield row
        if n % STEP == 0:
            session.report("writing", n, None)


def drawn(session: Session, n: int) -> Iterator[dict[str, Any]]:
    """Clusterings drawn from the posterior, one row for each draw and fragment."""
    with session.asking() as (connection, clustering):
        found = sample(connection, clustering, n)
    for fragment, labels in found.items():
        for draw, label in enumerate(labels):
            yield {"draw": draw, "fragment": fragment, "cluster": label}
