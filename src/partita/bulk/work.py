"""What a run has done so far: its model, and the shards that are done.

A run that finds what the same run has left goes on where that one ended. That it is the same is told by a digest of
all that has a say in the answer. Everything appears when it is whole.
"""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from fcntl import LOCK_EX, LOCK_NB, flock
from io import BytesIO
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np

from partita._core.typing import Array

VERSION = 1  # of what is kept
SHARDS = "shard-*-of-*.npz"
PORTIONS = "portions"  # what portions of the records say, and the links between them
OWN = ("run.json", "lock", "model.json", SHARDS, "records-*.parquet", ".*.part", "spilt", PORTIONS, "tables")


class Kept(ABC):
    """What is kept, by name."""

    @abstractmethod
    def begin(self, digest: str) -> None:
        """See that all that is kept is of the run with this digest."""

    @abstractmethod
    def write(self, name: str, contents: bytes) -> None:
        """Keep something."""

    @abstractmethod
    def read(self, name: str) -> bytes | None:
        """What was kept under a name; None if nothing was."""

    def write_json(self, name: str, contents: Any) -> None:
        """Keep something as JSON."""
        self.write(f"{name}.json", json.dumps(contents).encode())

    def read_json(self, name: str) -> Any:
        """What was kept under a name; None if nothing was."""
        found = self.read(f"{name}.json")
        return None if found is None else json.loads(found)

    def write_arrays(self, name: str, arrays: dict[str, Array]) -> None:
        """Keep arrays."""
        self.write(f"{name}.npz", packed(arrays))

    def read_arrays(self, name: str) -> dict[str, Array] | None:
        """The arrays that were kept under a name; None if none were."""
        found = self.read(f"{name}.npz")
        return None if found is None else unpacked(found)


class Work(Kept):
    """What is kept in a directory.

    Parameters
    ----------
    path : path
        It is made if it is not there. ValueError if it is there, and holds something else.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if self.path.exists() and not self._is_of_a_run():
            raise ValueError(f"{self.path} is there and is not the directory of a run: name another")
        self.path.mkdir(parents=True, exist_ok=True)
        self._lock = (self.path / "lock").open("w")
        try:
            flock(self._lock, LOCK_EX | LOCK_NB)
        except OSError:
            self._lock.close()
            raise ValueError(f"another run is at work in {self.path}") from None
        if not (self.path / "run.json").exists():
            self.write_json("run", {"partita": "bulk", "version": VERSION})

    def _is_of_a_run(self) -> bool:
        """Whether the directory is empty, or one that a run has made."""
        if not self.path.is_dir():
            return False
        names = {file.name for file in self.path.iterdir()}
        if "run.json" not in names:
            return names <= {"lock"}
        try:
            run = self.read_json("run")
        except ValueError:
            return False
        return isinstance(run, dict) and run.get("partita") == "bulk"

    def close(self) -> None:
        """Let other runs use the directory."""
        self._lock.close()

    def remove(self) -> None:
        """Throw away what runs have made, and the directory if nothing else is in it."""
        self._throw_away(*OWN)
        if not any(self.path.iterdir()):
            self.path.rmdir()

    def _throw_away(self, *patterns: str) -> None:
        for pattern in patterns:
            remove_all(self.path, pattern)

    def begin(self, digest: str) -> None:
        run = {"partita": "bulk", "version": VERSION, "digest": digest}
        if self.read_json("run") != run:
            self._throw_away("model.json", SHARDS, PORTIONS)
            self.write_json("run", run)

    def write(self, name: str, contents: bytes) -> None:
        target = self.path / name
        partial(target).write_bytes(contents)
        partial(target).replace(target)

    def read(self, name: str) -> bytes | None:
        file = self.path / name
        return file.read_bytes() if file.exists() else None


def partial(target: Path) -> Path:
    """Where a file is until it is whole."""
    return target.with_name(f".{target.name}.part")


def remove_all(folder: Path, pattern: str) -> None:
    """Throw away files, and folders with what is in them."""
    for file in folder.glob(pattern):
        if file.is_dir():
            rmtree(file)
        else:
            file.unlink()


def packed(arrays: dict[str, Array]) -> bytes:
    """Arrays as bytes."""
    file = BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def unpacked(contents: bytes) -> dict[str, Array]:
    """The arrays that :func:`packed` was given."""
    with np.load(BytesIO(contents)) as found:
        return dict(found)
