"""The site builds without a warning, its links lead somewhere, and a browser that shows it fetches nothing."""

import ast
import importlib
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

import partita as pt
from tests.helpers.files import ROOT

DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS))
LOADED = {  # attributes by which a page has a browser fetch something
    "script": ["src"],
    "img": ["src", "srcset"],
    "link": ["href"],
    "iframe": ["src"],
    "source": ["src", "srcset"],
    "video": ["src", "poster"],
    "audio": ["src"],
    "object": ["data"],
    "embed": ["src"],
    "use": ["href", "xlink:href"],
    "form": ["action"],
}
NOT_LOADED = {"canonical", "license", "index", "search", "next", "prev", "author"}  # what a link may be for
FAR = re.compile(r"^(?:https?:)?//", re.I)
IN_STYLE = re.compile(r"url\(\s*[\"']?((?:https?:)?//[^)\"']+)|@import\s+[\"']((?:https?:)?//[^\"']+)", re.I)


class Page(HTMLParser):
    """What a page is linked by, links to, and has fetched."""

    def __init__(self, text):
        super().__init__()
        self.places, self.links, self.loads = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = {key: value or "" for key, value in attributes}
        self.places |= {given[key] for key in ("id", "name") if key in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "link" and set(given.get("rel", "").split()) & NOT_LOADED:
            return
        self.loads += [given[key] for key in LOADED.get(tag, ()) if key in given]
        self.loads += [a or b for a, b in IN_STYLE.findall(given.get("style", ""))]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built; where ``PARTITA_SITE`` says that it has been, that one."""
    if built := os.environ.get("PARTITA_SITE"):
        return Path(built).resolve()
    folder = tmp_path_factory.mktemp("site")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-W",
        "--keep-going",
        "-q",
        "-b",
        "html",
        str(DOCS),
        str(folder),
    ]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stderr
    return folder


def test_the_site(site):
    """One test, so that it is built once."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    assert len(pages) > 50
    wrong = []
    for path, page in pages.items():
        for target in page.loads:
            if FAR.match(target):
                wrong.append(f"{path.name} fetches {target}")
            elif not target.startswith("data:"):
                file = unquote(target.partition("?")[0].partition("#")[0])
                if file and not (path.parent / file).exists():
                    wrong.append(f"{path.name}: {target} is not there")
        for target in page.links:
            if re.match(r"^(?:[a-z]+:|//)", target, re.I):
                continue
            name, _, place = unquote(target).partition("#")
            there = (path.parent / name).resolve() if name else path
            there = there / "index.html" if there.is_dir() else there
            if not there.is_file():
                wrong.append(f"{path.name}: {target} leads nowhere")
            elif place and there in pages and place not in pages[there].places:
                wrong.append(f"{path.name}: {target} leads to no place of that page")
    for path in site.rglob("*.css"):
        wrong += [
            f"{path.name} fetches {a or b}" for a, b in IN_STYLE.findall(path.read_text(encoding="utf-8"))
        ]
    assert not wrong, "\n".join(sorted(set(wrong))[:40])
    shown = {path.relative_to(site / "file").as_posix() for path in (site / "file").rglob("*.html")}
    assert {f"{name}.html" for name in ("src/partita/smc/steps/resample.py", "LICENSE")} <= shown | {
        "LICENSE.html"
    }
    text = (site / "reference" / "commands.html").read_text(encoding="utf-8")
    assert "partita import-splink" in text
    assert "--false-merge-cost" in text
    assert "<math" in (site / "how" / "method.html").read_text(encoding="utf-8")


LOOKED_AT = ("index", "knowledge-base", "looking", "start/sampler", "coming-from/splink", "results/tables")


def test_pages_fit_and_can_be_read_in_a_browser(site):
    api = pytest.importorskip("playwright.sync_api")
    found = (
        os.environ.get("PARTITA_TEST_BROWSER") or shutil.which("chromium") or shutil.which("google-chrome")
    )
    if not found:
        pytest.skip("no Chromium")
    fetched, wide, cut = [], [], []
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        for width in (390, 1280):
            page = browser.new_page(viewport={"width": width, "height": 900})
            page.on("request", lambda request: fetched.append(request.url))
            for name in LOOKED_AT:
                page.goto((site / f"{name}.html").as_uri())
                root = "document.documentElement"
                if page.evaluate(f"{root}.scrollWidth > {root}.clientWidth"):
                    wide.append((name, width))
                if width == 1280:  # what commands print has 100 columns, and stands there in full
                    cut += page.evaluate(
                        """[...document.querySelectorAll(".highlight-console pre")]
                        .filter(e => e.scrollWidth > e.clientWidth)
                        .filter(e => e.innerText.split("\\n").every(line => line.length <= 100))
                        .map(e => e.innerText)"""
                    )
        printed = page.goto((site / "knowledge-base.html").as_uri()) and page.evaluate(
            "getComputedStyle(document.querySelector('.highlight .go')).color"
        )
        browser.close()
    assert not [url for url in fetched if not url.startswith(("file:", "data:"))]
    assert not wide
    assert not cut
    assert printed == "rgb(0, 0, 0)"


def test_formulas_are_drawn_with_gaps_and_signs_that_fonts_have():
    sys.path.insert(0, str(DOCS / "_ext"))
    from docutils import nodes
    from mathml import GAP, drawn

    def formula(text):
        return drawn(nodes.math(text, text), False)

    assert formula(r"\log\alpha").count(GAP) == formula(r"\log p(c)").count(GAP) == 1
    assert formula(r"\kappa \log\alpha").count(GAP) == 2
    assert GAP not in formula(r"\max(a, b)")
    assert "\u2216" in formula(r"a \setminus b")
    assert formula(r"\Gamma(|c|)").count('lspace="0" rspace="0"') == 2
    assert 'lspace="0"' not in formula(r"p(z \mid x)")
    assert '<mi mathvariant="normal">Γ</mi>' in formula(r"\Gamma(n)")


# ---------------------------------------------------------------------- the reference

DIRECTIVE = re.compile(r"^\.\. auto(?:class|function|exception|data):: (\S+)$", re.M)
MODULES = ("kb", "bulk", "metrics", "datasets", "neural", "plots")


def public(module):
    """The public names of a module: ``__all__``, or what is defined in it."""
    found = getattr(module, "__all__", None)
    if found is not None:
        return set(found)
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    defined = (node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef))
    return {name for name in defined if not name.startswith("_")}


def test_every_public_name_is_in_the_reference_once():
    found = [
        name
        for page in sorted((DOCS / "reference").glob("*.md"))
        for name in DIRECTIVE.findall(page.read_text(encoding="utf-8"))
    ]
    assert len(found) == len(set(found))
    same = {"bcubed"}  # as partita.metrics.bcubed, where the other measures are
    expected = {f"partita.{name}" for name in set(pt.__all__) - set(MODULES) - same}
    for name in MODULES:
        module = importlib.import_module(f"partita.{name}")
        expected |= {f"partita.{name}.{one}" for one in public(module)}
    assert set(found) == expected
    assert pt.bcubed is pt.metrics.bcubed


def test_every_kind_and_every_command_is_in_the_reference():
    import make_commands
    import make_schema
    import typer

    from partita.cli import app
    from partita.models import registry

    kinds, commands = make_schema.kinds(), make_commands.commands()
    assert all(f'`"{kind}"`' in kinds for kind in registry.KINDS if not kind.startswith("test"))
    for name in typer.main.get_command(app).commands:
        assert re.search(rf"^### partita {name}( |$)", commands, re.M), name
    assert "`--false-merge-cost X`" in commands
    assert "one of `map`, `bcubed`" in commands


# ---------------------------------------------------------------------- tables


def test_tables_are_made_of_all_results():
    import make_tables

    from benchmarks.entity_sets import HALVES

    assert HALVES["tuning"] == make_tables.TUNING
    every = {name for names in HALVES.values() for name in names}
    assert set(make_tables.ABOUT) == set(make_tables.ORIGINS) == every
    make_tables.USED.clear()
    made = {name: make() for name, make in make_tables.TABLES.items()}
    for name, text in made.items():
        assert "| ---" in text or name.endswith("in-words"), name
        assert "nan" not in text.lower().split(), name
        if name not in ("data-sets", "calibration-in-words"):
            assert re.search(r"Made by `(?:python -m benchmarks\.|partita reproduce)", text), name
    benchmarks = ROOT / "results" / "benchmarks"
    assert set(benchmarks.glob("*.json")) <= make_tables.USED  # nothing that was measured is left out
    folders = {path.parent.name for path in (ROOT / "results" / "experiments").glob("*/table.md")}
    assert set(make_tables.EXPERIMENTS) == folders
    marks = re.compile(r"^<!-- made: ([\w-]+) -->$", re.M)
    wanted = {one for page in DOCS.rglob("*.md") for one in marks.findall(page.read_text(encoding="utf-8"))}
    assert wanted - {"commands", "kinds", "entries"} == set(made)  # every table is on a page


def test_pictures_of_pages_are_there():
    import make_images

    mark = re.compile(r"<!-- picture: (\S+) -->")
    for page in [
        *DOCS.glob("*.md"),
        *DOCS.glob("start/*.md"),
        *DOCS.glob("coming-from/*.md"),
        *DOCS.glob("how/*.md"),
    ]:
        pictures = mark.findall(page.read_text(encoding="utf-8"))
        assert all((DOCS / picture).is_file() for picture in pictures)
        assert not pictures or page.relative_to(DOCS).as_posix() in make_images.PAGES


def test_the_readme_has_what_was_measured():
    import make_tables

    made = make_tables.TABLES["at-a-glance"]()
    said = "the README's table is out of date: put in what `python docs/make_tables.py at-a-glance` prints"
    assert made in (ROOT / "README.md").read_text(encoding="utf-8"), said
