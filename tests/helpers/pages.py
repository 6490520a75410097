"""The blocks of code on the pages, and whether they are to be run."""

import re
from pathlib import Path
from typing import NamedTuple

from tests.helpers.files import ROOT

FENCE = re.compile(
    r"^(?P<above>(?:<!-- [^\n]* -->\n)*)```(?P<language>[\w{}-]*)\n(?P<code>.*?)^```$", re.M | re.S
)
REASON = re.compile(r"<!-- not run: (.*?) -->")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", ROOT / "results" / "RESULTS.md"]
PAGES += sorted((ROOT / "docs").rglob("*.md"))


class Block(NamedTuple):
    """A block of code."""

    language: str
    code: str
    line: int
    reason: str | None  # why it is not run, if it is marked so


def blocks(page: Path) -> list[Block]:
    """The blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in FENCE.finditer(text):
        reason = REASON.search(match["above"])
        line = text.count("\n", 0, match.start("language")) + 1
        found.append(Block(match["language"], match["code"], line, reason and reason[1].strip()))
    return found


def name(page: Path) -> str:
    """A page's path in the repository."""
    return page.relative_to(ROOT).as_posix()
