"""Run the recipes and the gallery, and put what they print and draw into them: ``python docs/gallery/pictures.py``.

With the names of pages (``recipes/households.md``) only these are run. On a page

- each block of Python runs, in order, in one namespace; one that begins with ``# name.py`` becomes a module;
- ``<!-- picture: NAME -->`` above a block: what it leaves in ``ax`` or ``figure`` becomes ``gallery/images/NAME.png``;
- ``<!-- printed -->`` above a block of text: it becomes what was printed since the last such block.

Read the text around it afterwards, and look at the pictures.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

HERE = Path(__file__).parent
DOCS = HERE.parent
IMAGES = HERE / "images"
BLOCK = re.compile(
    r"^(?P<above>(?:<!-- [^\n]* -->\n)*)```(?P<language>python|text)\n(?P<code>.*?)^```$", re.M | re.S
)
PICTURE = re.compile(r"<!-- picture: ([\w-]+) -->")
MODULE = re.compile(r"# (\w+)\.py\n")
SMALL, LARGEST = 60_000, 80_000  # bytes: from here on a picture gets fewer colours; no picture may be larger
DOTS = (
    140,
    115,
    90,
)  # an inch: as many as a picture may have without being too large, for screens that show them


def pages() -> list[Path]:
    """The pages with code, in order."""
    return sorted(page for folder in ("recipes", "gallery") for page in (DOCS / folder).glob("*.md"))


def run(page: Path, folder: Path) -> tuple[str, dict[str, Figure]]:
    """The page with what its blocks print, run in a folder, and what they draw."""
    namespace: dict[str, Any] = {"__name__": "example"}
    figures: dict[str, Figure] = {}
    printed = io.StringIO()

    def block(match: re.Match[str]) -> str:
        nonlocal printed
        code = match["code"]
        if "not run:" in match["above"]:
            return match[0]
        if match["language"] == "text":
            if "<!-- printed -->" not in match["above"]:
                return match[0]
            shown = "\n".join(line.rstrip() for line in printed.getvalue().strip("\n").split("\n"))
            printed = io.StringIO()
            return f"{match['above']}```text\n{shown}\n```"
        if module := MODULE.match(code):
            (folder / f"{module[1]}.py").write_text(code, encoding="utf-8")
            sys.modules.pop(module[1], None)
            importlib.invalidate_caches()
        else:
            with contextlib.redirect_stdout(printed):
                exec(compile(code, page.name, "exec"), namespace)
        if picture := PICTURE.search(match["above"]):
            figure = namespace["figure"] if "figure" in namespace else namespace["ax"].figure
            assert isinstance(figure, Figure)
            figures[picture[1]] = figure
            namespace.pop("figure", None)
        return match[0]

    with inside(folder):
        return BLOCK.sub(block, page.read_text(encoding="utf-8")), figures


@contextlib.contextmanager
def inside(folder: Path) -> Any:
    """In a folder, modules of which can be imported."""
    before = Path.cwd()
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        os.chdir(before)


def save(figure: Figure, name: str) -> None:
    """A picture as sharp as it may be."""
    IMAGES.mkdir(exist_ok=True)
    file = IMAGES / f"{name}.png"
    for dots in DOTS:
        file.write_bytes(drawn(figure, dots))
        if file.stat().st_size < LARGEST:
            return
    raise ValueError(f"{file.name}: {file.stat().st_size} bytes")


def drawn(figure: Figure, dots: int) -> bytes:
    """A picture as small as it gets."""
    from PIL import Image

    whole, small = io.BytesIO(), io.BytesIO()
    figure.savefig(whole, dpi=dots, format="png", bbox_inches="tight", pad_inches=0.12)
    whole.seek(0)
    picture = Image.open(whole).convert("RGB")
    if len(whole.getvalue()) > SMALL:
        picture = picture.quantize(200, dither=Image.Dither.NONE)
    picture.save(small, format="PNG", optimize=True)
    return small.getvalue()


def main(names: list[str]) -> None:
    """Run pages."""
    for page in [DOCS / name for name in names] or pages():
        with tempfile.TemporaryDirectory() as folder:
            text, figures = run(page, Path(folder))
        page.write_text(text, encoding="utf-8")
        for name, figure in figures.items():
            save(figure, name)


if __name__ == "__main__":
    main(sys.argv[1:])
