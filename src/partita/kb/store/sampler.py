"""The sampler of a knowledge base in its store: subproblems as rows, the rest as a few numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sqlalchemy import Connection, select

from partita.kb.clustering import VERSION, Clustering, Numbers, Subproblem
from partita.kb.store import tables, values
from partita.kb.store.database import StoreError, check, checksum, get, insert_all, put
from partita.kb.store.statements import Deletion

DELETE = Deletion(tables.subproblems.c.slot)


def load(
    connection: Connection,
    clustering: Clustering,
    fetch: Callable[[Any], list[Any]],
    tell: Callable[[Any], list[Any]],
) -> dict[int, float]:
    """Restore a clustering from the store; what fragments say is fetched when it is needed.

    Returns how sure each fragment's membership is, by number. ValueError and the like if it makes no sense.
    """
    fragments, members = tables.fragments, tables.members
    columns = fragments.c.number, fragments.c.key_codes, members.c.entity, members.c.probability
    query = (
        select(*columns, fragments.c.value_numbers)
        .join(members, members.c.fragment == fragments.c.number)
        .where(fragments.c.gone.is_(None), members.c.until.is_(None))
        .order_by(fragments.c.number)
    )
    rows = connection.execute(query).all()
    numbers, keys, entity, sure, said = zip(*rows, strict=True) if rows else ((), (), (), (), ())
    starts = np.cumsum([0, *(len(each) // 8 for each in keys)])
    joined_keys = np.frombuffer(b"".join(keys), "<i8").astype(np.int64)
    here, owners = np.array(numbers, np.int64), np.array(entity, np.int64)
    kept = Numbers(**get(connection, "sampler"))
    clustering.restore(here, (starts, joined_keys), owners, read_subproblems(connection), kept, fetch, tell)
    if clustering.values is not None:
        clustering.values.take_in(values.load(connection), kept.next_value)
        clustering.recall(said)
    return dict(zip(numbers, sure, strict=True))


def save(connection: Connection, clustering: Clustering) -> None:
    """Write what has changed since it was last saved."""
    changed, freed = clustering.unsaved()
    DELETE(connection, [*freed, *(each.slot for each in changed)])
    insert_all(connection, tables.subproblems, [row_of(each) for each in changed])
    if clustering.values is not None:
        values.save(connection, clustering.values)
    put(connection, "sampler", clustering.to_numbers()._asdict())


def row_of(subproblem: Subproblem) -> dict[str, Any]:
    """A subproblem as a row of its table."""
    slot, rows, columns, clusters, body = subproblem
    row = {"slot": slot, "rows": rows, "columns": columns, "clusters": clusters, "version": VERSION}
    return row | {"body": body, "checksum": checksum(body, slot, rows, columns, clusters)}


def read_subproblems(connection: Connection) -> Iterator[Subproblem]:
    """All subproblems; StoreError for one that is damaged."""
    for row in connection.execute(select(tables.subproblems)):
        shape = row.slot, row.rows, row.columns, row.clusters
        check(row.body, row.checksum, f"subproblem {row.slot}", *shape)
        if row.version != VERSION:
            raise StoreError(f"subproblem {row.slot} has version {row.version}; this Partita reads {VERSION}")
        yield Subproblem(*shape, row.body)
