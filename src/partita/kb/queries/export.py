"""Export: entities, the fragments they consist of, or draws from the posterior, as files.

- ``entities``: one a row, ``{"id", "name", "properties": {attribute: [{"value", "probability", "sources"}]},
  "fragments": [ids]}``; in CSV and Excel one column an attribute, several values separated by ``" | "``;
- ``fragments``: one a row, with the entity it is of and how sure that is;
- ``ftm``: entities in the manner of FollowTheMoney;
- ``samples``: whole clusterings drawn from the posterior, one row for each draw and fragment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from os import PathLike, fspath
from typing import Any

from sqlalchemy import select

from partita.kb.io import write
from partita.kb.io.formats import format_of
from partita.kb.queries import answers
from partita.kb.queries.posterior import sample
from partita.kb.session import Session
from partita.kb.store import tables

SEPARATOR = " | "


def export(session: Session, path: str | PathLike[str], what: str, format: str | None, samples: int) -> int:
    """See :meth:`KnowledgeBase.export`."""
    kinds: dict[str, Callable[[], Iterator[dict[str, Any]]]] = {
        "entities": lambda: map(answers.Entity.as_dict, entities(session)),
        "fragments": lambda: fragments(session),
        "ftm": lambda: map(follow_the_money, entities(session)),
        "samples": lambda: drawn(session, samples),
    }
    if what not in kinds:
        raise ValueError(f"cannot export {what!r}: it must be one of {', '.join(kinds)}")
    format = format_of(fspath(path), format)
    rows = kinds[what]()
    if format in ("csv", "tsv", "xlsx") and what == "entities":
        rows = map(flat, entities(session))
    return write(rows, fspath(path), format)


def entities(session: Session) -> Iterator[answers.Entity]:
    """All entities, the largest first."""
    with session.store.reading() as connection:
        yield from answers.entities(connection, minimum=1, limit=None)


def flat(entity: answers.Entity) -> dict[str, Any]:
    """An entity as a row of a table."""
    row: dict[str, Any] = {"id": entity.id, "name": entity.name, "probability": entity.probability}
    row["fragments"] = SEPARATOR.join(entity.fragments)
    for attribute, values in entity.properties.items():
        key = attribute if attribute not in row else f"property {attribute}"
        row[key] = SEPARATOR.join(str(value.value) for value in values)
    return row


def fragments(session: Session) -> Iterator[dict[str, Any]]:
    """Each fragment with its entity, in the order they came."""
    members, known = tables.members, tables.fragments
    query = (
        select(known.c.id, known.c.source, members.c.entity, members.c.probability)
        .join(members, members.c.fragment == known.c.number)
        .where(members.c.until.is_(None))
        .order_by(known.c.number)
    )
    with session.store.reading() as connection:
        for row in connection.execute(query):
            entity = answers.entity_id(row.entity)
            yield {"fragment": row.id, "entity": entity, "probability": row.probability, "source": row.source}


def follow_the_money(entity: answers.Entity) -> dict[str, Any]:
    """An entity in the manner of FollowTheMoney."""
    sources = {
        source for values in entity.properties.values() for value in values for source in value.sources
    }
    return {
        "id": entity.id,
        "schema": "Thing",
        "caption": entity.name,
        "properties": {name: [str(v.value) for v in values] for name, values in entity.properties.items()},
        "datasets": sorted(sources),
        "referents": entity.fragments,
    }


def drawn(session: Session, n: int) -> Iterator[dict[str, Any]]:
    """Clusterings drawn from the posterior, one row for each draw and fragment."""
    with session.asking() as (connection, clustering):
        found = sample(connection, clustering, n)
    for fragment, labels in found.items():
        for draw, label in enumerate(labels):
            yield {"draw": draw, "fragment": fragment, "cluster": label}
