"""Opening the knowledge base that a command names, with advice where something else was meant."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from partita.cli.output import note

if TYPE_CHECKING:
    from partita.kb import KnowledgeBase

DATA = (
    ".csv",
    ".tsv",
    ".json",
    ".jsonl",
    ".ndjson",
    ".parquet",
    ".pq",
    ".xlsx",
    ".feather",
    ".arrow",
    ".ipc",
    ".gz",
)  # names of data, not of stores
SQLITE = b"SQLite format 3\x00"
PARTICLES = 20  # of a new one, unless given


@contextmanager
def opened(target: str) -> Iterator[KnowledgeBase]:
    """A knowledge base that is there already."""
    check_is_store(target)
    from partita import kb

    with kb.open(target, create=False) as base:
        yield base


def check_is_store(target: str) -> None:
    """Raise ValueError if a knowledge base was meant and something else named."""
    if "://" in target:
        return
    path = Path(target)
    if path.is_file() and path.suffix.lower() in DATA and not is_sqlite(path):
        raise ValueError(
            f"{target} is data, not a knowledge base: the knowledge base comes first; "
            f"to make one of it, partita build {target} -o {path.stem}.db"
        )
    if not path.exists():
        near = nearby(path)
        raise ValueError(
            f"there is no knowledge base {target}"
            + (f"; did you mean {near}?" if near else f": build one with partita build DATA -o {target}")
        )


def is_sqlite(path: Path) -> bool:
    """Whether a file begins as those of SQLite do."""
    try:
        with path.open("rb") as file:
            return file.read(len(SQLITE)) == SQLITE
    except OSError:
        return False


def nearby(path: Path) -> str | None:
    """A file in the same folder with a name like this one's."""
    try:
        names = os.listdir(path.parent)
    except OSError:
        return None
    near = difflib.get_close_matches(path.name, names, 1, 0.75)
    return str(path.parent / near[0]) if near else None


# ---------------------------------------------------------------------- new or not


@contextmanager
def new_or_opened(
    target: str, schema: Path | None, particles: int | None, exact: bool, model: str | None, name: str | None
) -> Iterator[KnowledgeBase]:
    """A knowledge base, new or not; a new file that nothing came into is not left behind."""
    text = None if schema is None else read_schema(schema)
    if is_there(target):
        with opened(target) as base:
            note(f"Note: {target} is there already: adding to it.")
            check_is_same(base, target, text, particles, model, name)
            yield base
        return
    from partita import kb

    base = kb.open(
        target, schema=text, n_particles=particles or PARTICLES, exact=exact, model=model, name=name
    )
    try:
        with base:
            yield base
    except BaseException:
        if "://" not in target and is_empty(target):
            for suffix in ("", "-wal", "-shm"):
                Path(target + suffix).unlink(missing_ok=True)
        raise


@contextmanager
def opened_or_nothing(target: str) -> Iterator[KnowledgeBase]:
    """A knowledge base to look at; an empty one, which is thrown away, where there is none yet."""
    if is_there(target):
        with opened(target) as base:
            yield base
        return
    from partita import kb

    with TemporaryDirectory(prefix="partita-") as folder, kb.open(Path(folder, "empty.db")) as base:
        yield base


def is_there(target: str) -> bool:
    """Whether there is a knowledge base to go on with; ValueError if there is something else."""
    if "://" in target:
        from partita import kb

        try:
            kb.open(target, create=False).close()
        except kb.StoreError as error:
            if "there is no knowledge base" not in str(error):
                raise
            return False
        return True
    if not Path(target).exists():
        if Path(target).suffix.lower() in DATA:
            raise ValueError(f"{target} is a name for data: give the knowledge base another, such as kb.db")
        return False
    check_is_store(target)
    return Path(target).stat().st_size > 0 or Path(target).is_dir()


def is_empty(target: str) -> bool:
    """Whether a knowledge base holds nothing at all."""
    from partita import kb

    try:
        with kb.open(target, create=False) as base:
            stats = base.stats()
            return bool(stats["fragments"] == 0 and stats["events"] == 0)
    except kb.StoreError:
        return False


def check_is_same(
    base: KnowledgeBase,
    target: str,
    schema: str | None,
    particles: int | None,
    model: str | None,
    name: str | None,
) -> None:
    """Raise ValueError if a knowledge base was begun otherwise than is asked for now."""
    from partita.kb.language import RECORD, model_named

    kept = base.settings
    own = kept.get("model", RECORD)
    if model is not None and model_named(model) != own:
        raise ValueError(
            f"{target} clusters with the model {own}: leave --model out, or change it with "
            f"partita relearn {target} --model {model}"
        )
    if schema is not None and (kept["schema"] is None or schema != same_schema(kept["schema"])):
        raise ValueError(
            f"{target} has another schema: change it with partita relearn {target} --schema FILE"
        )
    if name is not None and name != kept.get("name"):
        raise ValueError(
            f"{target} is there already: change what names entities with partita relearn {target} --name {name!r}"
        )
    if particles is not None and particles != kept["n_particles"]:
        raise ValueError(
            f"{target} was begun with {kept['n_particles']} particles, which cannot be changed; leave "
            "--particles out, or build another"
        )


def same_schema(text: str) -> str:
    """A schema as the model writes it now, whichever version wrote it."""
    from partita.models.records.record import Record

    return Record.from_toml(text).to_toml()


def read_schema(path: Path) -> str:
    """A schema's file, as TOML that the model writes; ValueError if it is none."""
    from partita.models.records.record import Record

    try:
        return Record.from_toml(path.read_text(encoding="utf-8")).to_toml()
    except ValueError as error:  # TOML that is none, and text that is not UTF-8, too
        raise ValueError(f"{path} is not a schema: {error}") from None
