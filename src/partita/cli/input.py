"""Fragments from the files that a command names, with advice where they are not what was meant."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from partita.cli.arguments import Format
from partita.cli.opening import is_sqlite, nearby
from partita.cli.output import note

if TYPE_CHECKING:
    from partita.kb.fragments import Fragment, FragmentReader

# What divides a row into fields, but is not a comma, semicolon, tab or bar.
DIVIDERS = re.compile(r"\w\s*[:^~#/\\\x01\x1f]\s*\w|\w {2,}\w")

DIVIDED = (Format.csv, Format.tsv)
WITH_COLUMNS = (Format.parquet, Format.xlsx, Format.feather, Format.arrow)  # by the endings of their names


@dataclass
class Input:
    """Which files to read, and how."""

    paths: list[str]
    id: str | None = None
    no_id: bool = False
    source: str | None = None
    ignore: list[str] = field(default_factory=list)
    format: Format | None = None
    skip_empty: bool = False
    encoding: str | None = None
    sheet: str | None = None
    source_name: str | None = None
    without_id: str = "ids are made of what each row says"
    _noted: set[str] = field(default_factory=set)
    _counted: int | None = None
    _is_count_wanted: bool = False

    def __post_init__(self) -> None:
        if self.id is not None and self.no_id:
            raise ValueError("--id and --no-id exclude each other")
        if self.source is not None and self.source_name is not None:
            raise ValueError("--source and --source-name exclude each other")

    def reader(self) -> FragmentReader:
        """What makes fragments of rows."""
        from partita.kb.fragments import ID, SOURCE, FragmentReader

        id_field = None if self.no_id else self.id or ID
        return FragmentReader(id_field, self.source or SOURCE, self.ignore, self.skip_empty, self.source_name)

    def rows(self) -> Iterator[tuple[Any, dict[str, Any]]]:
        """The rows of all files, with their numbers."""
        from partita.kb.io import read

        check_are_data(self.paths)
        named = None if self.format is None else self.format.value
        return read(self.paths, named, encoding=self.encoding, sheet=self.sheet, note=self._note)

    def fragments(self, reader: FragmentReader) -> Iterator[Fragment]:
        """The fragments of all files, of which there must be one; ValueError if there is none."""
        found = reader.read(self.looked_at())
        first = next(found, None)
        if first is None:
            raise ValueError(f"{', '.join(self.paths)}: there is no row that says anything")
        return chain([first], found)

    def count(self) -> int | None:
        """How many rows there are, if they can be read twice."""
        if "-" in self.paths:
            return None
        if any(Path(path).exists() and not Path(path).is_file() for path in self.paths):
            return None  # a pipe
        return sum(1 for _ in self.rows())

    def known_count(self) -> int | None:
        """How many rows there are, if that has been counted; else it is wanted."""
        self._is_count_wanted = True
        return self._counted

    def count_if_wanted(self) -> None:
        """Count the rows once, if somebody has asked; to be called where no other writer waits for that."""
        if self._is_count_wanted and self._counted is None:
            self._counted, self._is_count_wanted = self.count(), False

    def _note(self, text: str) -> None:
        """Say something about a file, once: files may be read twice."""
        if text not in self._noted:
            self._noted.add(text)
            note(f"Note: {text}.")

    def looked_at(self) -> Iterator[tuple[Any, dict[str, Any]]]:
        """The rows of all files; the first of each is looked at for the usual mistakes."""
        file, alone = "", None
        for row, fields in self.rows():
            if row.file != file:
                self._check_alone(file, alone)
                file, alone = row.file, fields
                self._check(file, fields)
            else:
                alone = None
            yield row, fields
        self._check_alone(file, alone)

    def _check_alone(self, file: str, fields: dict[str, Any] | None) -> None:
        """Say so if the only row of a file holds objects that look like what was meant."""
        for name, value in (fields or {}).items():
            if isinstance(value, list) and len(value) > 1 and all(isinstance(item, dict) for item in value):
                self._note(
                    f"{file} is one object, so it is one row; if its rows are the {len(value):,} objects in {name!r}, "
                    "write that list to a file of its own"
                )

    def _check(self, file: str, fields: dict[str, Any]) -> None:
        if len(fields) == 1 and self._is_table(file):
            check_divided(file, next(iter(fields)))
        if "id" not in fields and self.id is None and not self.no_id:
            like = [name for name in fields if re.search(r"(?i)(^|[_\W])(id|key|nr|no)$|[a-z]I[dD]$", name)]
            hint = f"; if {like[0]!r} has them, --id {like[0]}" if like else ""
            note(f"Note: {file} has no field 'id', so {self.without_id}{hint}.")

        if self.source_name is not None and "source" in fields:
            note(
                f"Note: the field 'source' of {file} is not read: --source-name says where all rows are from."
            )

    def is_one_table(self) -> bool:
        """Whether all columns are known from the first row, as they are if it is the only one."""
        if not self.paths:
            return True
        if len(self.paths) != 1 or set(self.paths[0]) & set("*?["):
            return False
        if self.format is not None:
            return self.format in (*DIVIDED, *WITH_COLUMNS)
        return self._is_table(self.paths[0]) or self.paths[0].lower().endswith(tuple(WITH_COLUMNS))

    def _is_table(self, file: str) -> bool:
        if self.format is not None:
            return self.format in DIVIDED
        return file.lower().removesuffix(".gz").endswith((".csv", ".tsv")) or file == "standard input"


def check_divided(file: str, column: str) -> None:
    """Whether a file with one column should have had more: ValueError if it is certain, else a note."""
    message = (
        f"{file} has a single column, {column!r}; columns must be divided by commas, semicolons, tabs or bars"
    )
    if DIVIDERS.search(column):
        raise ValueError(message)
    note(f"Note: {message}, if there should be more.")


def check_are_data(paths: list[str]) -> None:
    """Raise ValueError for a knowledge base among the data, FileNotFoundError for a name misspelt."""
    for path in paths:
        if path != "-" and Path(path).is_file() and is_sqlite(Path(path)):
            raise ValueError(
                f"{path} is a knowledge base, not data; its fragments are had by partita export {path} "
                "fragments.jsonl --what fragments"
            )
        near = None if path == "-" or Path(path).exists() else nearby(Path(path))
        if near is not None and not set(path) & set("*?["):
            raise FileNotFoundError(f"there is no file {path}; did you mean {near}?")
