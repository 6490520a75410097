"""What a user may mean who types: entities, properties and types, and a glance at each."""

from __future__ import annotations

from html import escape
from typing import Any

from partita.kb import KnowledgeBase
from partita.models.records.folding import folded
from partita.serve.reconcile.candidates import ID, TYPES
from partita.serve.reconcile.describing import description, shortened
from partita.serve.reconcile.extending import OF_ENTITIES, properties
from partita.serve.reconcile.naming import naming
from partita.serve.reconcile.queries import TYPE

DEEPEST = 500  # entities that are looked through, however far a user goes on


def entities(kb: KnowledgeBase, prefix: str, cursor: int, limit: int) -> list[dict[str, Any]]:
    """The entities with words that begin like those of the prefix; one whose id it is comes first."""
    prefix = prefix.strip()
    rows = [named] if (named := named_by_id(kb, prefix)) else []
    wanted = min(cursor + limit, DEEPEST)
    try:
        found = kb.search(prefix, limit=wanted)
    except ValueError:  # nothing in it to search for
        found = []
    for one in found:
        if not rows or one.id != rows[0]["id"]:
            matches = [text for text in dict.fromkeys(map(shortened, one.matches)) if text != one.name]
            said = " · ".join([*matches[:3], f"{one.size:,} fragment{'s' * (one.size != 1)}"])
            rows.append({"id": one.id, "name": one.name or one.id, "description": said, "notable": TYPES})
    return rows[cursor:wanted]


def named_by_id(kb: KnowledgeBase, id: str) -> dict[str, Any] | None:
    """The entity with this id, if there is one."""
    if not ID.fullmatch(id):
        return None
    try:
        found = kb.entity(id)
    except KeyError:
        return None
    said = description(kb, found.id, naming(kb))
    return {"id": found.id, "name": found.name or found.id, "description": said, "notable": TYPES}


def attributes(kb: KnowledgeBase, prefix: str, cursor: int, limit: int) -> list[dict[str, str]]:
    """The properties that begin so, then those with a word that does; all of them without a prefix."""
    return completed(properties(kb), prefix)[cursor : cursor + limit]


def types(prefix: str) -> list[dict[str, str]]:
    """The one type that there is, if it may be meant."""
    return completed(TYPES, prefix)


def completed(known: list[dict[str, str]], prefix: str) -> list[dict[str, str]]:
    """Those whose id or name begins with the prefix, then those of which another word does; all without one."""
    if not prefix.strip():
        return known
    typed = folded(prefix)
    places = [min(place_of(typed, one["id"]), place_of(typed, one["name"])) for one in known]
    return [one for place in (0, 1) for one, own in zip(known, places, strict=True) if own == place]


def place_of(typed: str, text: str) -> int:
    """0 for a text that begins with what was typed, 1 for one of which a word does, 2 for others."""
    words = f" {folded(text)}"
    return 0 if words.startswith(f" {typed}") else 1 if f" {typed}" in words else 2


# ---------------------------------------------------------------------- at a glance


def glance_at_entity(kb: KnowledgeBase, id: str) -> str:
    """A little HTML that says which entity it is."""
    found = kb.entity(id)
    return glance(found.name or found.id, f"{found.id} · {description(kb, found.id, naming(kb))}")


def glance_at_property(kb: KnowledgeBase, id: str) -> str:
    """A little HTML that says what a property is."""
    if id in OF_ENTITIES:
        return glance(id, OF_ENTITIES[id])
    if id not in {one["id"] for one in properties(kb)}:
        raise KeyError(f"there is no property {id!r}")
    return glance(id, "an attribute of the knowledge base")


def glance_at_type(id: str) -> str:
    """A little HTML that says what a type is."""
    if id != TYPE:
        raise KeyError(f"there is no type {id!r}; the one there is is {TYPE!r}")
    return glance("Entity", "all that the knowledge base has")


def glance(title: str, text: str) -> str:
    """Title and text; whatever they say, it stays text."""
    return f"<p><strong>{escape(title)}</strong></p><p>{escape(text)}</p>"
