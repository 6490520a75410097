"""The directory of a run: its records, its model, its plan, and the shards that are done.

A run that finds a directory of the same run goes on where that one ended. That it is the same is told by a digest of
all that has a say in the answer. Every file appears when it is whole.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from partita._core.typing import Array, Integers

VERSION = 1  # of what is in the directory
CHUNK = 25_000  # records of a file
Records = Iterable[tuple[str, dict[str, Any]]]  # ids, and what they say


class Work:
    """A directory in which a run keeps what it has done.

    Parameters
    ----------
    path : path
        It is made if it is not there. ValueError if it is there, and holds something else.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.n = 0
        if self.path.exists() and any(self.path.iterdir()) and not (self.path / "run.json").exists():
            raise ValueError(f"{self.path} is there and is not the directory of a run: name another")
        self.path.mkdir(parents=True, exist_ok=True)
        if not (self.path / "run.json").exists():
            self.write_json("run", {"version": VERSION})

    # ------------------------------------------------------------------ records

    def begin(self, records: Records, options: dict[str, Any]) -> bool:
        """Keep the records; returns whether what is there is of the same run, else it is thrown away."""
        digest = hashlib.blake2b(json.dumps([VERSION, options], sort_keys=True).encode(), digest_size=16)
        self.n = 0
        for number, rows in enumerate(in_chunks(records, CHUNK)):
            ids, said = zip(*((id, json.dumps(said)) for id, said in rows), strict=True)
            for pair in zip(ids, said, strict=True):
                digest.update(repr(pair).encode("utf-8", "surrogatepass"))
            self._write_rows(number, ids, said)
            self.n += len(ids)
        if not self.n:
            raise ValueError("there is no record: at least one is needed")
        run = {"version": VERSION, "digest": digest.hexdigest(), "n": self.n}
        same = bool(self.read_json("run") == run)
        if not same:
            for file in self.path.iterdir():
                if file.name == "model.json" or file.suffix == ".npz":
                    file.unlink()
            self.write_json("run", run)
        return same

    def _write_rows(self, number: int, ids: tuple[str, ...], said: tuple[str, ...]) -> None:
        rows = {"id": np.array(ids, object), "said": np.array(said, object)}
        target = self.path / f"records-{number:05d}.parquet"
        with duckdb.connect() as connection:
            connection.register("rows", rows)
            connection.execute(
                f"COPY (SELECT id, said FROM rows) TO {quoted(partial(target))} (FORMAT parquet)"
            )
        partial(target).replace(target)

    def chunks(self) -> Iterator[tuple[int, list[dict[str, Any]]]]:
        """What the records say, some thousand at a time, with the number of the first."""
        for number in range(-(-self.n // CHUNK)):
            yield number * CHUNK, [json.loads(text) for text in self._column(number, "said")]

    def ids(self) -> Iterator[str]:
        """The ids of the records."""
        for number in range(-(-self.n // CHUNK)):
            yield from self._column(number, "id")

    def _column(self, number: int, name: str) -> list[str]:
        file = self.path / f"records-{number:05d}.parquet"
        with duckdb.connect() as connection:
            found = connection.execute(f"SELECT {name} FROM read_parquet({quoted(file)})").fetchall()
        return list(chain.from_iterable(found))

    def sample(self, numbers: Integers) -> list[dict[str, Any]]:
        """What some records say, by number, in ascending order."""
        found: list[dict[str, Any]] = []
        for first, said in self.chunks():
            start, stop = np.searchsorted(numbers, [first, first + len(said)])
            found += [said[x - first] for x in numbers[start:stop].tolist()]
        return found

    # ------------------------------------------------------------------ what is done

    def write_json(self, name: str, contents: Any) -> None:
        """Keep something as JSON."""
        target = self.path / f"{name}.json"
        partial(target).write_text(json.dumps(contents))
        partial(target).replace(target)

    def read_json(self, name: str) -> Any:
        """What was kept under a name; None if nothing was."""
        file = self.path / f"{name}.json"
        return json.loads(file.read_text()) if file.exists() else None

    def write_arrays(self, name: str, arrays: dict[str, Array]) -> None:
        """Keep arrays."""
        target = self.path / f"{name}.npz"
        with partial(target).open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
        partial(target).replace(target)

    def read_arrays(self, name: str) -> dict[str, Array] | None:
        """The arrays that were kept under a name; None if none were."""
        file = self.path / f"{name}.npz"
        if not file.exists():
            return None
        with np.load(file) as found:
            return dict(found)

    def remove(self) -> None:
        """Throw it all away."""
        shutil.rmtree(self.path)


def in_chunks(records: Records, n: int) -> Iterator[list[tuple[str, dict[str, Any]]]]:
    """So many at a time."""
    rest = iter(records)
    while some := list(islice(rest, n)):
        yield some


def partial(target: Path) -> Path:
    """Where a file is until it is whole."""
    return target.with_name(f".{target.name}.part")


def quoted(path: Path) -> str:
    """A path in SQL."""
    return "'" + str(path).replace("'", "''") + "'"
