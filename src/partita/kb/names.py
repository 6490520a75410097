"""The names that fragments give their entities, and the attributes that they are taken from."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sqlalchemy import Connection, select

from partita.kb.store.tables import fragments, members
from partita.models.records.fragments import as_text
from partita.models.records.kinds import Text
from partita.models.records.record import Record

USUAL = ("name", "label", "title")  # attributes that name an entity


class Names:
    """The names that fragments give their entities; what is not known here is fetched from the store.

    Parameters
    ----------
    connection : callable
        Gives the connection of the transaction that is going on.
    """

    def __init__(self, connection: Callable[[], Connection]) -> None:
        self._connection = connection
        self._attributes: list[str] = []
        self._of: dict[int, list[str]] = {}  # fragments, by number, where they were asked for

    def follow(self, model: Record) -> None:
        """From now on names are taken from the attributes of this model."""
        self._attributes = name_attributes(model)

    def given_by(self, properties: Mapping[str, list[Any]]) -> list[str]:
        """The names in what a fragment says: the values of the best attribute that it mentions."""
        for attribute in self._attributes:
            if attribute in properties:
                return [as_text(value) for value in properties[attribute]]
        return []

    def remember(self, number: int, properties: Mapping[str, list[Any]]) -> None:
        """A fragment that the store does not have yet."""
        self._of[number] = self.given_by(properties)

    def of_fragment(self, number: int) -> list[str]:
        """The names that a fragment gives its entity."""
        if number not in self._of:
            query = select(fragments.c.properties).where(fragments.c.number == number)
            self.remember(number, json.loads(self._connection().scalar(query) or "{}"))
        return self._of[number]

    def of_entity(self, entity: int) -> Iterator[str]:
        """The names that an entity's fragments give it, as the store has them."""
        query = (
            select(fragments.c.number, fragments.c.properties)
            .join(members, members.c.fragment == fragments.c.number)
            .where(members.c.entity == entity, members.c.until.is_(None))
        )
        for row in self._connection().execute(query):
            self.remember(row.number, json.loads(row.properties or "{}"))
            yield from self._of[row.number]


def name_attributes(model: Record) -> list[str]:
    """The attributes that name an entity, the best first: the usual ones, then texts, the commonest first."""
    attributes = model.attributes or {}
    texts = [name for name, kind in attributes.items() if isinstance(kind, Text) and name not in USUAL]
    presence = model.presence or {}
    texts.sort(key=lambda name: -presence.get(name, 0.0))
    return [name for name in attributes if name.lower() in USUAL] + texts
