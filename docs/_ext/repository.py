"""Links to files of the repository that are no pages: each becomes a page of the site that shows the file.

So a link such as ``../src/partita/smc/sampler.py`` works on the repository's web view and in the site, without network.
Markdown of the repository that is a page under another name (``PAGES``) leads there; the page itself is a stub whose
contents are taken from the file.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from pygments.lexers import get_lexer_for_filename
from pygments.lexers.special import TextLexer
from pygments.util import ClassNotFound
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.errors import SphinxError
from sphinx.transforms import SphinxTransform

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    "CHANGELOG.md": "changelog",
    "CONTRIBUTING.md": "contributing",
    "SECURITY.md": "security",
    "results/RESULTS.md": "results/in-full",
    "results/EVIDENCE.md": "results/evidence",
}
STUBS = {page: name for name, page in PAGES.items()}
LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)\s#]+)(?=[)#])")
SHOWN = "file"  # the folder of the site that shows files


def fill(app: Sphinx, page: str, source: list[str]) -> None:
    """Put a file's contents in the place of a stub, its links as seen from there."""
    name = STUBS.get(page)
    if name is None:
        return
    file = ROOT / name
    app.env.note_dependency(str(file))
    here = (Path(app.srcdir) / page).parent

    def moved(match: re.Match[str]) -> str:
        there = (file.parent / match[1]).resolve()
        return Path(os.path.relpath(there, here)).as_posix()

    source[0] = LINK.sub(moved, file.read_text(encoding="utf-8"))


def files_of(env: Any) -> dict[str, set[str]]:
    """The files that each page links to."""
    if not hasattr(env, "repository_files"):
        env.repository_files = {}
    found: dict[str, set[str]] = env.repository_files
    return found


def forget(app: Sphinx, env: Any, page: str) -> None:
    """A page is read again, or gone."""
    files_of(env).pop(page, None)


class RepositoryLinks(SphinxTransform):
    """Turn links to files into links to the pages that are, or show, these."""

    default_priority = 5

    def apply(self, **kwargs: Any) -> None:
        for node in list(self.document.findall(addnodes.download_reference)):
            self.lead(node, node["reftarget"])
        for node in list(self.document.findall(addnodes.pending_xref)):
            outside = node.get("refdomain") == "doc" and node["reftarget"] not in self.env.found_docs
            if node.get("reftype") == "myst" and outside:
                name, place = node["reftarget"], node.get("reftargetid")
                self.lead(node, f"{name}.md" + (f"#{place}" if place else ""))

    def lead(self, node: nodes.Element, target: str) -> None:
        """Let a link lead to a page of the site, if the file is there; else Sphinx says that it is not."""
        name, _, place = target.partition("#")
        here = posixpath.dirname(self.env.docname)
        file = (Path(self.env.srcdir) / here / name).resolve()
        if not file.is_file():
            return
        path = file.relative_to(ROOT).as_posix()
        page = PAGES.get(path, f"{SHOWN}/{path}")
        if path not in PAGES:
            files_of(self.env).setdefault(self.env.docname, set()).add(path)
        up = "../" * self.env.docname.count("/")
        uri = f"{up}{page}.html" + (f"#{place}" if place else "")
        node.replace_self(nodes.reference("", "", *node.children, refuri=uri, internal=True))


def pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """A page for each file that is linked to."""
    for path in sorted(set().union(*files_of(app.env).values())):
        text = (ROOT / path).read_text(encoding="utf-8")
        try:
            lexer = get_lexer_for_filename(path, stripnl=False).aliases[0]
        except (ClassNotFound, IndexError):
            lexer = TextLexer.aliases[0]
        body = app.builder.highlighter.highlight_block(text, lexer, linenos=False)
        yield f"{SHOWN}/{path}", {"title": path, "body": f"<h1>{path}</h1>{body}"}, "page.html"


def check_version(app: Sphinx) -> None:
    """Refuse a builder for which the links would lead nowhere."""
    if app.builder.name not in {"html", "linkcheck", "dummy", "doctest"}:
        raise SphinxError("links to files are made for -b html")


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_transform(RepositoryLinks)
    app.connect("source-read", fill)
    app.connect("env-purge-doc", forget)
    app.connect("html-collect-pages", pages)
    app.connect("builder-inited", check_version)
    return {"version": "1", "parallel_read_safe": False, "parallel_write_safe": True}
