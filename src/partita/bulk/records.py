"""Records as a run reads them: an id each, and what it says as JSON."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from partita._core.typing import Array, Integers
from partita._core.version import __version__
from partita.bulk.work import VERSION, partial
from partita.models.records.fragments import check_fragment, is_missing, rows_of

CHUNK = 25_000  # records of a file
ID = "id"  # the field of the id, unless another is named: records may do without it
HASHED = np.dtype("S16")
Said = dict[str, Any]
Mark = tuple[str, str]  # an attribute and a value of it, as text: what records may share


def read(records: Any, id: str | None) -> Iterator[tuple[str, str]]:
    """Ids, and what records say, as JSON; errors name the row."""
    known = Ids()
    seen = id is None or id == ID
    row = -1
    for row, given in enumerate(rows_of(records)):
        if not isinstance(given, Mapping):
            raise TypeError(f"row {row} must map attributes to values, got {type(given).__name__}")
        own = None if id is None else given.get(id)
        seen = seen or id in given
        name = id_of(own) or str(row)
        known.add(row, name)
        yield name, as_json(f"row {row}", given, id)
    known.settle()
    if row >= 0 and not seen:
        raise ValueError(f"no record has the field {id!r}, which is to hold its id")


def id_of(own: Any) -> str:
    """An id as text; none if it says nothing."""
    if is_missing(own):
        return ""
    if isinstance(own, float) and own.is_integer():  # pandas makes 7.0 of 7 where another id is missing
        own = int(own)
    return str(own)


def alike(row: int, before: int, name: str) -> str:
    """What is wrong with two rows of one id."""
    by_place = ", and a row without an id has its place for one" if name in (str(row), str(before)) else ""
    return (
        f"row {row} and row {before} have the same id, {name!r} (rows count from 0{by_place}); if ids are not unique, "
        "name another field for them, or none"
    )


class Ids:
    """The ids of rows, of which no two are the same: a hash of each, but for the last few thousand."""

    def __init__(self) -> None:
        self.last: dict[str, int] = {}
        self.runs: list[
            tuple[Array, Integers]
        ] = []  # ids, sorted, and their rows; each has less than half of the last

    def add(self, row: int, name: str) -> None:
        """The id of the next row; ValueError if an earlier one has it, when some thousand rows have come."""
        if (before := self.last.setdefault(name, row)) != row:
            raise ValueError(alike(row, before, name))
        if len(self.last) == CHUNK:
            self.settle()

    def settle(self) -> None:
        """Compare the last ones with all before them; ValueError names the first that was there."""
        if not self.last:
            return
        ids, rows = np.array([hashed(name) for name in self.last], HASHED), np.array(list(self.last.values()))
        twice: dict[int, int] = {}
        for known, before in self.runs:
            at = np.searchsorted(known, ids)
            at[at == len(known)] = 0
            same = known[at] == ids
            twice |= zip(rows[same].tolist(), before[at[same]].tolist(), strict=True)
        if twice:
            row = min(twice)
            name = next(name for name, own in self.last.items() if own == row)
            raise ValueError(alike(row, twice[row], name))
        self.last = {}
        parts = [(ids, rows)]
        while self.runs and len(self.runs[-1][0]) <= 2 * sum(len(part) for part, _ in parts):
            parts.insert(0, self.runs.pop())
        ids, rows = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        order = np.argsort(ids, kind="stable")
        self.runs.append((ids[order], rows[order]))


def hashed(name: str) -> bytes:
    """Sixteen bytes that stand for an id."""
    return hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def as_json(place: str, given: Mapping[Any, Any], id: str | None) -> str:
    """What a record says, without its id; errors name its place, such as "row 3"."""
    own = check_fragment(place, {k: v for k, v in given.items() if k != id or id is None})
    said = dict(sorted(own.items()))  # so that the order of columns does not matter
    try:
        return json.dumps(said, allow_nan=False)
    except (TypeError, ValueError):
        for name, values in said.items():
            for value in values:
                if isinstance(value, float) and not math.isfinite(value):
                    raise ValueError(f"{place}, attribute {name!r}: {value!r} is no number") from None
                if not isinstance(value, str | int | float | list | dict):
                    kind = type(value).__name__
                    raise TypeError(
                        f"{place}, attribute {name!r}: {kind} is neither text nor a number"
                    ) from None
        raise


def begun(options: Mapping[str, Any]) -> Any:
    """A digest to which the records of a run are added, in order."""
    return hashlib.blake2b(
        json.dumps([VERSION, __version__, options], sort_keys=True).encode(), digest_size=16
    )


def add(digest: Any, rows: Iterable[tuple[str, str]]) -> None:
    """Add ids and what they say."""
    for pair in rows:
        digest.update(repr(pair).encode("utf-8", "surrogatepass"))


def in_chunks(rows: Iterable[tuple[str, str]], n: int) -> Iterator[list[tuple[str, str]]]:
    """So many at a time."""
    rest = iter(rows)
    while some := list(islice(rest, n)):
        yield some


def validated(model: Any, said: list[Said], rows: Sequence[int]) -> list[Any]:
    """Records as the model takes them; ValueError names the record by its row."""
    try:
        return list(model.validate(said))
    except ValueError:
        row, reason = refused(model, said)
        raise ValueError(f"row {rows[row]}: {reason}") from None


def refused(model: Any, said: list[Said]) -> tuple[int, str]:
    """The first record that the model does not take, counted from 0, and why."""
    for row, one in enumerate(said):
        try:
            model.validate([one])
        except ValueError as error:
            return row, str(error).removeprefix("row 0, ").removeprefix("row 0: ")
    raise AssertionError("the model takes each record, but not all of them")


class Records:
    """Records in files of a directory.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self.path, self.n = path, 0

    def append(self, rows: list[tuple[str, str]]) -> None:
        """Keep ``CHUNK`` more, or the last ones."""
        ids, said = zip(*rows, strict=True)
        columns = {"id": np.array(ids, object), "said": np.array(said, object)}
        target = self._file(self.n // CHUNK)
        with duckdb.connect() as connection:
            connection.register("rows", columns)
            connection.execute(
                f"COPY (SELECT id, said FROM rows) TO {quoted(partial(target))} (FORMAT parquet)"
            )
        partial(target).replace(target)
        self.n += len(rows)

    def close(self) -> None:
        """Throw away the files that a run with more records has left."""
        for file in self.path.glob("records-*.parquet"):
            if file.name > self._file((self.n - 1) // CHUNK).name:
                file.unlink()

    def chunks(self, start: int, stop: int) -> Iterator[tuple[int, list[Said]]]:
        """What those from ``start`` to ``stop`` say, some thousand at a time, with the number of the first."""
        for first in range(start - start % CHUNK, stop, CHUNK):
            texts = self._column(first // CHUNK, "said")
            yield max(first, start), parsed(texts[max(start - first, 0) : stop - first])

    def ids(self) -> list[str]:
        """Their ids."""
        return [id for first in range(0, self.n, CHUNK) for id in self._column(first // CHUNK, "id")]

    def sample(self, numbers: Integers) -> list[Said]:
        """What some say, by number, in ascending order."""
        found: list[Said] = []
        for first in range(0, self.n, CHUNK):
            start, stop = np.searchsorted(numbers, [first, first + CHUNK])
            if start < stop:
                texts = self._column(first // CHUNK, "said")
                found += parsed([texts[x - first] for x in numbers[start:stop].tolist()])
        return found

    def holders(self, marks: Sequence[Mark], most: int) -> list[list[int]]:
        """The numbers of those that have each mark; of none, where more than ``most`` have it."""
        wanted = {mark: k for k, mark in enumerate(marks)}
        found: list[list[int]] = [[] for _ in marks]
        for first, said in self.chunks(0, self.n):
            for k, number in having(wanted, enumerate(said, first)):
                if len(found[k]) <= most:
                    found[k].append(number)
        return [own if len(own) <= most else [] for own in found]

    def _file(self, number: int) -> Path:
        return self.path / f"records-{number:05d}.parquet"

    def _column(self, number: int, name: str) -> list[str]:
        with duckdb.connect() as connection:
            query = f"SELECT {name} FROM read_parquet({quoted(self._file(number))})"
            return list(chain.from_iterable(connection.execute(query).fetchall()))


def having(wanted: Mapping[Mark, int], records: Iterable[tuple[int, Said]]) -> Iterator[tuple[int, int]]:
    """Each mark that is wanted, by its number there, with the number of each record that has it."""
    names = {name for name, _ in wanted}
    for number, said in records:
        for name in said.keys() & names:
            for mark in {as_mark(value) for value in said[name]}:
                if (k := wanted.get((name, mark))) is not None:
                    yield k, number


def as_mark(value: Any) -> str:
    """The same text for the same value."""
    return value if isinstance(value, str) else json.dumps(value)


def parsed(texts: list[str]) -> list[Said]:
    """What records say, of their JSON: in one piece, which takes half as long."""
    found: list[Said] = json.loads(f"[{','.join(texts)}]")
    return found


def quoted(path: Path) -> str:
    """A path in SQL."""
    return "'" + str(path).replace("'", "''") + "'"
