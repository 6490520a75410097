"""How much there is of everything in a knowledge base."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, func, select

from partita.kb.store import tables
from partita.kb.store.database import Store, get


def stats(connection: Connection, store: Store, settings: dict[str, Any]) -> dict[str, Any]:
    """See :meth:`KnowledgeBase.stats`."""
    fragments, entities, judged = tables.fragments, tables.entities, tables.judgements

    def count(column: Any, *conditions: Any) -> int:
        return int(connection.scalar(select(func.count(column)).where(*conditions)) or 0)

    size = store_size(connection, store)
    n = count(fragments.c.number, fragments.c.gone.is_(None))
    return {
        "fragments": n,
        "entities": count(entities.c.number, entities.c.ended.is_(None)),
        "with several fragments": count(entities.c.number, entities.c.ended.is_(None), entities.c.size > 1),
        "subproblems": count(tables.subproblems.c.slot),
        "undecided subproblems": count(tables.subproblems.c.slot, tables.subproblems.c.rows > 1),
        "events": count(tables.events.c.number),
        "judgements": count(judged.c.number, judged.c.undone_at.is_(None)),
        "revision": get(connection, "revision"),
        "model": settings.get("model", "record"),
        "particles": settings["n_particles"],
        "learnt from": settings["learnt_from"],
        "bytes": size,
        "bytes per fragment": round(size / n) if n else 0,
    }


def store_size(connection: Connection, store: Store) -> int:
    """How many bytes the store takes."""
    if store.is_sqlite:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar() or 0
        return int(pages) * int(connection.exec_driver_sql("PRAGMA page_size").scalar() or 0)
    names = [f"'{table.name}'::regclass" for table in tables.metadata.sorted_tables]
    sizes = " + ".join(f"pg_total_relation_size({name})" for name in names)
    return int(connection.exec_driver_sql(f"SELECT {sizes}").scalar() or 0)
