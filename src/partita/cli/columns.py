"""What build and add say of the columns they read, and what they refuse before anything is learnt."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from partita.cli.output import note

if TYPE_CHECKING:
    from partita.kb import KnowledgeBase
    from partita.kb.fragments import Fragment, FragmentReader
    from partita.models.records.record import Record

LIKE_ENTITIES = re.compile(r"E[0-9]+")
ENOUGH = 50_000  # rows that are looked at before anything is learnt from them


class Watch:
    """Fragments on their way into a knowledge base, and what there is to say of their columns.

    Attributes
    ----------
    fragments : iterator of Fragment
        To be consumed instead of those that were given.
    """

    def __init__(
        self, base: KnowledgeBase, found: Iterator[Fragment], reader: FragmentReader, is_table: bool
    ) -> None:
        from partita.kb.columns import Nothings, comparing

        self._base, self._reader = base, reader
        self._remarks: list[dict[str, str]] = []
        if base.settings["learnt_from"]:
            first = list(islice(found, 1))
            if is_table:
                reader.check_ignored()
            readers = base.comparing
        else:
            first, model, self._remarks = looked_at(found, reader, base.settings["schema"])
            readers = comparing(model)
        self._nothings, self._known = Nothings(readers), set(readers)
        self._new: set[str] = set()  # columns that the model has not learnt
        self._like_entities: str | None = None  # an id that might be an entity's
        self.fragments = self._nothings.passing(self._seen(chain(first, found)))

    def _seen(self, found: Iterator[Fragment]) -> Iterator[Fragment]:
        """The same fragments, looked at."""
        for fragment in found:
            self._new |= fragment.properties.keys() - self._known
            if LIKE_ENTITIES.fullmatch(fragment.id):
                self._like_entities = self._like_entities or fragment.id
            yield fragment

    def report(self) -> dict[str, Any]:
        """Say what stood for nothing, and what was to be ignored but never there; for JSON, what was said."""
        if said := str(self._nothings):
            note(f"Note: {said}. What was written is kept; partita schema edit changes what counts.")
        for name in sorted(self._reader.unseen):
            note(f"Note: no row has a column {name!r} to ignore.")
        for name in sorted(self._new) if self._new and not ignores_others(self._base.schema) else ():
            note(
                f"Note: the column {name!r} is new: it says little until partita relearn learns what to make of it."
            )
        if self._like_entities is not None:
            id = self._like_entities
            note(
                f"Note: ids such as {id!r} look like those of entities; entity:{id} names the entity of that id."
            )
        found: dict[str, Any] = {name: dict(counts) for name, counts in self._nothings.counts.items()}
        return {"missing": found, "remarks": self._remarks}


def ignores_others(schema: str) -> bool:
    """Whether a schema ignores all attributes that it does not name."""
    others = tomllib.loads(schema).get("attributes", {}).get("*", {})
    return bool(others.get("kind") == "ignore")


def looked_at(
    found: Iterator[Fragment], reader: FragmentReader, schema: str | None
) -> tuple[list[Fragment], Record, list[dict[str, str]]]:
    """The first fragments, the schema that suits them unless there is one, and what is remarkable about it.

    That is said, too. ValueError if a column is to be ignored that there is not.
    """
    from partita.kb.columns import lists_of, remarks
    from partita.models.records.record import Record

    first = list(islice(found, ENOUGH))
    reader.check_ignored()
    said = [fragment.properties for fragment in first]
    if schema is not None:  # then somebody has looked at it
        return first, Record.from_toml(schema), []
    model = Record.infer(said)
    strange = remarks(said)
    for one in strange:
        note(f"Warning: the column {one.column!r} {one.text}: {one.option}")
    for name, separator in lists_of(model).items():
        note(
            f"Note: values of {name!r} look like lists: in the schema, separator = {json.dumps(separator)} has what is "
            "in them compared one by one."
        )
    return first, model, [one._asdict() for one in strange]
