"""The files that a knowledge base was made from, so that no answer is written over one of them.

Only codes of their names are kept, and for that no transaction of the sampler is needed.
"""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike, fspath
from pathlib import Path

from partita._core.hashing import code_of
from partita.kb.store.database import Store, get, put

INPUTS = "inputs"  # as the store calls them


def remember(store: Store, paths: Iterable[str | PathLike[str]]) -> None:
    """Know that files were read; what is no file, such as standard input, is passed over."""
    codes = {code(path) for path in paths if Path(path).is_file()}
    with store.reading() as connection:
        if codes <= set(get(connection, INPUTS, [])):
            return
    with store.writing() as connection:
        put(connection, INPUTS, sorted(codes | set(get(connection, INPUTS, []))))


def check_is_none(store: Store, path: str | PathLike[str]) -> None:
    """ValueError for a file that is there and that was read."""
    if not Path(path).is_file():
        return
    with store.reading() as connection:
        if code(path) in get(connection, INPUTS, []):
            raise ValueError(
                f"{fspath(path)} is what {store.name} was built from: name another file to write"
            )


def code(path: str | PathLike[str]) -> int:
    """What stands for a file, by whichever way it is named."""
    return code_of(str(Path(path).resolve()).encode("utf-8", "surrogatepass"))
