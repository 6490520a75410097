"""Records that are asked about without being added: read, checked as those that come in, and matched."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from itertools import islice
from typing import Any

from partita._core.checks import whole
from partita.kb.clustering import Clustering
from partita.kb.fragments import Fragment
from partita.kb.ingest import fragments_of
from partita.kb.queries.match import Matched, match
from partita.kb.session import Session
from partita.models.records.record import OTHER

BATCH = 500  # records that see the same moment of the store


def match_all(session: Session, given: Any, limit: int) -> Iterator[Matched]:
    """See :meth:`KnowledgeBase.match_all`."""
    most, fragments = whole("limit", limit, 1), fragments_of(given)
    return _matched(session, fragments, most)


def _matched(session: Session, fragments: Iterator[Fragment], limit: int) -> Iterator[Matched]:
    while some := list(islice(fragments, BATCH)):
        found = []
        with session.asking() as (connection, clustering):
            for fragment in some:
                checked = [read(clustering, fragment)]
                found.append(Matched(fragment.id, match(connection, clustering, checked, limit)))
        yield from found


def read(clustering: Clustering, fragment: Fragment) -> Any:
    """A record as the model takes it; ValueError names it, and what its attribute might have been."""
    model = clustering.model
    who = "the record" if fragment.id.startswith(fragment.digest) else f"record {fragment.id!r}"
    known = model.attributes or {}
    for name in fragment.properties:
        if name not in known and OTHER not in known:
            raise ValueError(f"{who}: {unknown(name, list(known))}")
    try:
        return model.validate([fragment.properties])[0]
    except ValueError as error:
        reason = str(error).removeprefix("row 0, ").removeprefix("row 0: ")
        raise ValueError(f"{who}: {reason}") from None


def unknown(name: str, known: list[str]) -> str:
    """That there is no such attribute, and which might be meant."""
    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(map(repr, known))}"
    return f"the knowledge base has no attribute {name!r}; {hint}"
