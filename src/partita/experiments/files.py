"""Reading what an experiment runs on: points, orders, and fragments of entities."""

from __future__ import annotations

import csv
import gzip
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from partita._core.typing import Floats, Integers
from partita.models.records.fragments import check_fragment

Fragment = dict[str, Any]
LABELS = ("entity_id", "cluster_id")  # fields that hold the true entity, unless another is named
NOT_ATTRIBUTES = frozenset({*LABELS, "fragment_id", "record_id", "id", "source", "group", "split"})


def read_orders(path: Path, n: int, length: int) -> Integers:
    """The first n permutations of a file."""
    try:
        orders = np.load(path)
    except ValueError as error:
        raise ValueError(f"{path} is not a NumPy file of permutations") from error
    if getattr(orders, "shape", ())[1:] != (length,) or len(orders) < n:
        raise ValueError(f"{path} must hold {n} or more permutations of the {length} observations")
    if not (np.sort(orders, axis=1) == np.arange(length)).all():
        raise ValueError(f"{path}: each row must be a permutation of the {length} observations")
    result: Integers = orders[:n].astype(np.int64)
    return result


def read_points(path: Path) -> tuple[Floats, Integers | None]:
    """Observations from a CSV file with a header, and the true clusters if it has a column ``label``."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = [(number, row) for number, row in enumerate(csv.reader(file), start=1) if any(row)]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path} is not a CSV file in UTF-8") from error
    header = [name.strip() for name in rows[0][1]] if rows else []
    columns = [k for k, name in enumerate(header) if name.lower() != "label"]
    if len(rows) < 2 or not columns:
        raise ValueError(f"{path} has no observations: it needs a header and rows of numbers")
    if len(columns) < len(header) - 1:
        raise ValueError(f"{path} has more than one column label")
    if all(is_number(name) for name in header):
        raise ValueError(f"{path}, line 1: a header is missing, with the names of the columns")
    values, labels = [], []
    for number, row in rows[1:]:
        if len(row) != len(header):
            raise ValueError(f"{path}, line {number}: {len(row)} fields, but the header has {len(header)}")
        values.append([_number(path, number, header[k], row[k]) for k in columns])
        labels += [row[k].strip() for k in range(len(header)) if k not in columns]
        if labels and not labels[-1]:
            raise ValueError(f"{path}, line {number}: the label is empty")
    truth = np.unique(labels, return_inverse=True)[1].astype(np.int64) if labels else None
    return np.array(values), truth


def is_number(text: str) -> bool:
    """Whether a field of a file is one."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _number(path: Path, line: int, column: str, text: str) -> float:
    if not is_number(text):
        raise ValueError(f"{path}, line {line}, column {column}: {text!r} is not a number")
    if not math.isfinite(float(text)):
        raise ValueError(f"{path}, line {line}, column {column}: {text!r} is not finite")
    return float(text)


# ---------------------------------------------------------------------- fragments


def read_fragments(path: Path, labels: str | None = None) -> tuple[list[Fragment], Integers | None]:
    """Fragments from JSON lines or CSV, either of them gzipped or not, and their true entities.

    Parameters
    ----------
    path : path
        JSON lines ``{"properties": {attribute: value or values}, …}`` or flat ones, unless its name ends in
        ``.csv`` or ``.csv.gz``. In flat lines and in CSV, ``NOT_ATTRIBUTES`` are left out, and so are empty
        fields.
    labels : str, optional
        The field that holds the true entity; ``entity_id`` or ``cluster_id`` unless given.

    Returns
    -------
    fragments : list of dict
    truth : array of shape (n,) or None
        None if no field was named and there is neither of the usual ones.
    """
    name = path.name.lower().removesuffix(".gz")
    try:
        with opened(path) as file:
            rows = list(csv_rows(path, file) if name.endswith(".csv") else json_rows(path, file))
    except (UnicodeDecodeError, csv.Error, gzip.BadGzipFile) as error:
        raise ValueError(f"{path} is not a text file in UTF-8 with JSON lines or CSV") from error
    if not rows:
        raise ValueError(f"{path} has no fragments: it needs a JSON object a line, or CSV with a header")
    field = label_field(path, [row for _, row in rows], labels)
    fragments = [attributes(row, field) for _, row in rows]
    for (number, _), fragment in zip(rows, fragments, strict=True):
        check_fragment(f"{path}, line {number}", fragment)
    if field is None:
        return fragments, None
    for number, row in rows:
        if row.get(field) in (None, ""):
            raise ValueError(f"{path}, line {number}: no {field}, which the other lines have")
    entities = [str(row[field]) for _, row in rows]
    return fragments, np.unique(entities, return_inverse=True)[1].astype(np.int64)


def opened(path: Path) -> IO[str]:
    """A text file, gzipped if its name says so."""
    if path.name.lower().endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def json_rows(path: Path, file: IO[str]) -> Iterator[tuple[int, Fragment]]:
    """The objects of a file of JSON lines, with the numbers of their lines."""
    for number, line in enumerate(file, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise ValueError(f"{path}, line {number} is not JSON: {error}") from error
        if not isinstance(row, dict) or not isinstance(row.get("properties", {}), dict):
            raise ValueError(f"{path}, line {number}: a fragment is an object, and so are its properties")
        yield number, row


def csv_rows(path: Path, file: IO[str]) -> Iterator[tuple[int, Fragment]]:
    """The rows of a CSV file with a header, with the numbers of their lines."""
    reader = csv.DictReader(file)
    for row in reader:
        if None in row or None in row.values():
            raise ValueError(f"{path}, line {reader.line_num}: more or fewer fields than the header has")
        yield reader.line_num, row


def label_field(path: Path, rows: list[Fragment], named: str | None) -> str | None:
    """The field of the true entity: the one named, or a usual one that some row has."""
    found = [field for field in ((named,) if named else LABELS) if any(field in row for row in rows)]
    if named and not found:
        raise ValueError(f"{path} has no field {named}: choose another with --labels")
    return found[0] if found else None


def attributes(row: Fragment, label: str | None) -> Fragment:
    """What a fragment says of its entity."""
    given = row.get("properties")
    if given is not None:
        return dict(given)
    hidden = NOT_ATTRIBUTES | {label}
    return {name: value for name, value in row.items() if name not in hidden and value not in (None, "")}


def names_of(fragments: list[Fragment], attribute: str = "name") -> list[str]:
    """One name a fragment, the first where there are several."""
    names = []
    for row, fragment in enumerate(fragments):
        value = fragment.get(attribute)
        first = (value[0] if value else None) if isinstance(value, list | tuple) else value
        if first in (None, ""):
            raise ValueError(f"fragment {row} has no {attribute}; leave it out, or use --model record")
        names.append(str(first))
    return names
