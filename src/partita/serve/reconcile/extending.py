"""Columns from entities: which properties there are, and what they say of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any

from partita.kb import KnowledgeBase
from partita.kb.queries.answers import Entity, Value
from partita.kb.queries.golden import attributes_of
from partita.models.records.fragments import as_text
from partita.serve.reconcile.queries import Wanted

OF_ENTITIES = {  # properties that are no attributes: of what Partita knows of an entity
    "partita:sure": "how sure the entity is",
    "partita:size": "how many fragments it has",
    "partita:fragments": "the ids of its fragments",
}
MOST_FRAGMENTS = 1000  # whose ids are listed
LIMIT, LEAST = "limit", "least"
SETTINGS = [
    {
        "name": LIMIT,
        "label": "How many values at most",
        "type": "number",
        "default": 1,
        "help_text": "What most fragments say comes first; 0 for all.",
    },
    {
        "name": LEAST,
        "label": "How probable at least",
        "type": "number",
        "default": 0,
        "help_text": "From 0 to 1: leave out values that are less probably of the entity.",
    },
]


def properties(kb: KnowledgeBase) -> list[dict[str, str]]:
    """All properties: the attributes, and what is known of entities beside them."""
    with kb.store.reading() as connection:
        attributes = attributes_of(connection)
    own = [{"id": name, "name": name} for name in attributes]
    return own + [{"id": id, "name": name} for id, name in OF_ENTITIES.items() if id not in attributes]


def fetched(
    kb: KnowledgeBase, wanted: Wanted, ids: Sequence[str]
) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """What the properties say of some of the entities; nothing of one that is not there."""
    return {id: dict(columns(entity_there(kb, id), wanted)) for id in ids}


def entity_there(kb: KnowledgeBase, id: str) -> Entity | None:
    """The entity, or the one that it was merged into; None if there is none."""
    try:
        return kb.entity(id)
    except KeyError:
        return None


def columns(entity: Entity | None, wanted: Wanted) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Each property, and its values as the specification writes them."""
    for name, settings in wanted.properties.items():
        limit, least = number_of(name, settings, LIMIT, 1), number_of(name, settings, LEAST, 0)
        if entity is None:
            yield name, []
        elif name in entity.properties:
            yield name, values_of(entity.properties[name], limit, least)
        else:
            yield name, beside(entity, name)


def number_of(name: str, settings: dict[str, Any], which: str, usual: float) -> float:
    """A setting of a property."""
    given = settings.get(which)
    if given is None or given == "":
        return usual
    try:
        found = float(given)
    except (TypeError, ValueError, OverflowError):
        found = -1.0
    if isinstance(given, bool) or not 0.0 <= found < float("inf"):
        raise ValueError(f"extend: {which!r} of {name!r} must be a number of at least 0, not {given!r}")
    return found


def values_of(values: list[Value], limit: float, least: float) -> list[dict[str, Any]]:
    """The values of an attribute, what most fragments say first."""
    kept = [one.value for one in values if one.probability >= least]
    return [as_cell(value) for value in (kept[: int(limit)] if limit >= 1 else kept)]


def beside(entity: Entity, name: str) -> list[dict[str, Any]]:
    """What is known of an entity beside its attributes."""
    if name == "partita:sure":
        return [{"float": entity.probability}]
    if name == "partita:size":
        return [{"int": len(entity.fragments)}]
    if name == "partita:fragments":
        return [{"str": id} for id in entity.fragments[:MOST_FRAGMENTS]]
    return []


def as_cell(value: Any) -> dict[str, Any]:
    """A value as a cell holds it."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return {"str": as_text(value)}
    if isinstance(value, int):
        return {"int": value}
    return {"float": value} if isfinite(value) else {"str": repr(value)}
