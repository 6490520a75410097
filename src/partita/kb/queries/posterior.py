"""What the posterior says of fragments, by their ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlalchemy import Connection

from partita.kb.clustering import Clustering
from partita.kb.store.fragments import no_fragment, numbers_of, present_ids


def together(
    connection: Connection, clustering: Clustering, a: str | Sequence[str], b: str | Sequence[str]
) -> Any:
    """See :meth:`KnowledgeBase.together`."""
    lists = [[given] if isinstance(given, str) else given for given in (a, b)]
    number = numbers_of(connection, {id for ids in lists for id in ids})
    for id in (*lists[0], *lists[1]):
        if id not in number:
            raise KeyError(no_fragment(connection, id))
    i, j = (np.searchsorted(clustering.present, [number[id] for id in ids]) for ids in lists)
    found = np.asarray(clustering.posterior.together(i[:, None], j[None, :]))
    return float(found[0, 0]) if isinstance(a, str) and isinstance(b, str) else found


def labels(connection: Connection, clustering: Clustering, loss: str, **costs: Any) -> dict[str, int]:
    """See :meth:`KnowledgeBase.labels`."""
    found = clustering.posterior.labels(loss=loss, **costs)
    return dict(zip(present_ids(connection), found.tolist(), strict=True))


def sample(
    connection: Connection, clustering: Clustering, n: int, random_state: Any = 0
) -> dict[str, list[int]]:
    """See :meth:`KnowledgeBase.sample`."""
    drawn = clustering.posterior.sample(n, random_state=random_state)
    return dict(zip(present_ids(connection), drawn.T.tolist(), strict=True))
