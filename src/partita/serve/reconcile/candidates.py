"""Candidates: the entities that a query's record may be of, how surely, and why."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import isfinite
from typing import Any

from partita.kb import KnowledgeBase
from partita.kb.fragments import Fragment, Scalar
from partita.kb.queries.evidence import KIND, NETWORK, PRIOR, REST
from partita.kb.queries.match import NEW, Match
from partita.models.records.record import OTHER
from partita.serve.reconcile.describing import description
from partita.serve.reconcile.naming import naming, record_of
from partita.serve.reconcile.queries import TYPE, Query

TYPES = [{"id": TYPE, "name": "Entity"}]
CERTAIN = 0.99  # from this probability on a candidate may be taken without a look
AGAINST = -2.0  # nats, odds of 7 to 1: who says something that speaks so much against it should look
DIGITS = 4  # of scores and features
OF_NO_ATTRIBUTE = {PRIOR, KIND, NETWORK, REST}
NAMELESS = (
    "no attribute of this knowledge base reads like a name, so the text of a query says nothing: send properties, "
    "or say what names entities with partita relearn KB --name ATTRIBUTE"
)
ID = re.compile(r"(?:entity:)?E[0-9]{1,17}")


def answered(kb: KnowledgeBase, queries: Sequence[Query]) -> dict[str, list[dict[str, Any]]]:
    """The candidates of each query, the most probable first; nothing changes."""
    way = naming(kb)
    asked = [query for query in queries if query.possible]
    records = {query.id: record_of(query.text, query.properties, way) for query in asked}
    if not way and any(query.text and not records[query.id] for query in asked):
        raise ValueError(NAMELESS)
    most = max((query.limit for query in asked), default=1) + 1  # one of the places is that of what is new
    found = places(kb, {id: record for id, record in records.items() if record}, most)
    result: dict[str, list[dict[str, Any]]] = {query.id: [] for query in queries}
    for query in asked:
        known = [place for place in found.get(query.id, []) if place.entity != NEW]
        rows = [candidate(kb, place, k == 0, way) for k, place in enumerate(known[: query.limit])]
        result[query.id] = with_named(kb, query, rows, way)
    return result


def candidate(kb: KnowledgeBase, place: Match, is_first: bool, way: Sequence[str]) -> dict[str, Any]:
    """One candidate, as the specification has it."""
    return {
        "id": place.entity,
        "name": place.name or place.entity,
        "description": description(kb, place.entity, way),
        "type": TYPES,
        "score": round(100.0 * place.probability, DIGITS),
        "match": is_first and is_certain(place),
        "features": features(place),
    }


def is_certain(place: Match) -> bool:
    """Whether nobody needs to look: it is nearly certain, and nothing that the query says speaks against it."""
    said = [step.nats for step in place.steps if step.attribute not in OF_NO_ATTRIBUTE]
    return place.probability > CERTAIN and min(said, default=AGAINST) > AGAINST


def features(place: Match) -> list[dict[str, Any]]:
    """The evidence in nats by attribute; what is of no attribute stands in parentheses, and so does the sum."""
    found = {
        f"({step.attribute})" if step.attribute in OF_NO_ATTRIBUTE else step.attribute: step.nats
        for step in place.steps
    }
    found["(log-odds)"] = place.log_odds
    return [{"id": id, "value": round(nats, DIGITS)} for id, nats in found.items() if isfinite(nats)]


def with_named(
    kb: KnowledgeBase, query: Query, rows: list[dict[str, Any]], way: Sequence[str]
) -> list[dict[str, Any]]:
    """The same, and first the entity whose id is the text of the query, if there is one."""
    if not ID.fullmatch(query.text):
        return rows
    try:
        named = kb.entity(query.text)
    except KeyError:
        return rows
    first = {
        "id": named.id,
        "name": named.name or named.id,
        "description": description(kb, named.id, way),
        "type": TYPES,
        "score": 100.0,
        "match": not query.properties,  # which may say that it is somebody else
        "features": [],
    }
    others = [row | {"match": False} for row in rows if row["id"] != named.id]
    return [first, *others][: query.limit]


# ---------------------------------------------------------------------- records


def places(
    kb: KnowledgeBase, records: dict[str, dict[str, list[Scalar]]], limit: int
) -> dict[str, list[Match]]:
    """Where records may go, by the ids of their queries."""
    given = [Fragment(id, None, record) for id, record in records.items()]
    try:
        return {found.record: found.matches for found in kb.match_all(given, limit)}
    except ValueError:
        readable = [fragment for one in given if (fragment := without_unreadable(kb, one)).properties]
        return {found.record: found.matches for found in kb.match_all(readable, limit)}


def without_unreadable(kb: KnowledgeBase, fragment: Fragment) -> Fragment:
    """The same without values that its attributes cannot be read from, such as "about ten" of a number.

    In a spreadsheet there is always one, and it should not keep the others from being reconciled.
    """
    comparing = kb.comparing
    kept: dict[str, list[Scalar]] = {}
    for name, values in fragment.properties.items():
        if name not in comparing and OTHER not in comparing:
            kept[name] = values  # which is refused, with what might be meant
            continue
        for value in values:
            try:
                for item in comparing[name].items(value):
                    comparing[name].parse(item)
            except ValueError:
                continue
            kept.setdefault(name, []).append(value)
    return Fragment(fragment.id, None, kept)
