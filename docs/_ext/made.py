"""``<!-- made: NAME -->`` on a page becomes what is made of results or of the code, when the site is built."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import make_commands
import make_schema
import make_tables
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

MARK = re.compile(r"^<!-- made: ([\w-]+) -->$", re.M)
MADE: dict[str, Callable[[], str]] = make_tables.TABLES | {
    "commands": make_commands.commands,
    "kinds": make_schema.kinds,
    "entries": make_schema.entries,
}


def make(app: Sphinx, page: str, source: list[str]) -> None:
    """Put in what a page asks for."""

    def made(match: re.Match[str]) -> str:
        if match[1] not in MADE:
            raise ExtensionError(
                f"{page}: nothing is called {match[1]!r}; there are {', '.join(sorted(MADE))}"
            )
        return MADE[match[1]]()

    if MARK.search(source[0]):
        make_tables.USED.clear()
        source[0] = MARK.sub(made, source[0])
        for path in make_tables.USED:
            app.env.note_dependency(str(path))


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("source-read", make)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
