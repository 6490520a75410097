"""What build and add say of the columns they read, and what they refuse before anything is learnt."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from partita.cli.output import note

if TYPE_CHECKING:
    from partita.kb import KnowledgeBase
    from partita.kb.fragments import Fragment, FragmentReader
    from partita.models.records.record import Record

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

        self._reader = reader
        self._remarks: list[dict[str, str]] = []
        if base.settings["learnt_from"]:
            first = list(islice(found, 1))
            if is_table:
                reader.check_ignored()
            readers = base.comparing
        else:
            first, model, self._remarks = looked_at(found, reader, base.settings["schema"])
            readers = comparing(model)
        self._nothings = Nothings(readers)
        self.fragments = self._nothings.passing(chain(first, found))

    def report(self) -> dict[str, Any]:
        """Say what stood for nothing, and what was to be ignored but never there; for JSON, what was said."""
        if said := str(self._nothings):
            note(f"Note: {said}. What was written is kept; partita schema edit changes what counts.")
        for name in sorted(self._reader.unseen):
            note(f"Note: no row has a column {name!r} to ignore.")
        found: dict[str, Any] = {name: dict(counts) for name, counts in self._nothings.counts.items()}
        return {"missing": found, "remarks": self._remarks}


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
