"""Rows of JSON: an object a line, divided by Python for the numbers of the lines, or an array, by DuckDB."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, BinaryIO

from partita.kb.io.encodings import Guess
from partita.kb.io.formats import LONGEST, Row, chunks

ARRAY = "SELECT * FROM read_json_objects(?, maximum_object_size = ?, format = 'array')"


def rows_of_lines(
    name: str, stream: BinaryIO, start: int, guess: Guess
) -> Iterator[tuple[Row, dict[str, Any]]]:
    """The objects of a stream, as they come; its first line has the number ``start``."""
    lines = (part for line in stream for part in line.splitlines())  # at carriage returns, too
    for number, line in enumerate(lines, start):
        if line.strip():
            yield Row(number, name), object_of(f"{name}, line {number}", guess.text(line, number))


def rows_of_array(name: str, path: str) -> Iterator[tuple[Row, dict[str, Any]]]:
    """The objects of an array."""
    rows = chunks(name, ARRAY, path, LONGEST)
    for number, (text,) in enumerate(rows, 1):
        yield Row(number, name), object_of(f"{name}, object {number}", text)


def object_of(place: str, text: str) -> dict[str, Any]:
    """A mapping, of its JSON."""
    try:
        found = json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        hint = "write an object a line, or an array of objects"
        raise ValueError(f"{place} cannot be read as JSON: {error}; {hint}") from None
    if not isinstance(found, dict):
        raise ValueError(f'{place} must be an object, like {{"name": "Ada"}}, not {type(found).__name__}')
    return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        name = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"{name!r} is there twice; make a list of its values")
    return found
