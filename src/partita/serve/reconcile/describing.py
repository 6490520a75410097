"""A few values of entities, to tell namesakes apart: of their surest fragments, so that large ones cost no more."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection

from sqlalchemy import select

from partita.kb import KnowledgeBase
from partita.kb.queries.answers import entity_number
from partita.kb.store import tables
from partita.models.records.fragments import as_text

LOOKED_AT = 20  # fragments of each entity
VALUES = 3
LONGEST = 60  # characters of a value


def description(kb: KnowledgeBase, id: str, named_by: Collection[str]) -> str:
    """What most of an entity's fragments say beside what names it, and how many there are.

    Such as "mathematician · London · 12 fragments".
    """
    members, fragments, entities = tables.members, tables.fragments, tables.entities
    with kb.store.reading() as connection:
        number = entity_number(connection, id)
        query = (
            select(fragments.c.properties)
            .join(members, members.c.fragment == fragments.c.number)
            .where(members.c.entity == number, members.c.until.is_(None))
            .order_by(members.c.probability.desc(), fragments.c.number)
        )
        said = [json.loads(row or "{}") for row in connection.scalars(query.limit(LOOKED_AT))]
        size = connection.scalar(select(entities.c.size).where(entities.c.number == number)) or 0
    many = f"{size:,} fragment{'s' * (size != 1)}"
    return " · ".join([*commonest(said, named_by), many])


def commonest(said: list[dict[str, list[object]]], named_by: Collection[str]) -> list[str]:
    """The commonest value of each of a few attributes, of those first of which most is said; never the name.

    >>> commonest([{"name": ["Ada"], "city": ["London"]}, {"city": ["Bath"]}, {"city": ["London"]}], ["name"])
    ['London']
    """
    counts: dict[str, Counter[str]] = {}
    for fragment in said:
        for attribute in fragment.keys() - set(named_by):
            texts = {shortened(as_text(value)) for value in fragment[attribute]}
            counts.setdefault(attribute, Counter()).update(texts - {""})
    ranked = sorted(
        (found for found in counts.items() if found[1]), key=lambda pair: (-pair[1].total(), pair[0])
    )
    best = (max(found, key=lambda text: (found[text], -len(text), text)) for _, found in ranked)
    return list(dict.fromkeys(best))[:VALUES]


def shortened(text: str) -> str:
    """A value on one line, and not too long."""
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
