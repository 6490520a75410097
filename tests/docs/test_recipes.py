"""The recipes run as they stand, print what they show and draw the pictures that they have."""

import re
import sys

import pytest

from partita.models import registry
from tests.helpers.files import ROOT

sys.path.insert(0, str(ROOT / "docs" / "gallery"))
import pictures

RECIPES = sorted((ROOT / "docs" / "recipes").glob("*.md"))
IMAGE = re.compile(r"\]\((?:\.\./gallery/)?images/([\w-]+)\.png\)")


@pytest.fixture(autouse=True)
def unregistered():
    """What a page registers is forgotten."""
    tables = registry.MODELS, registry.KINDS, registry.FAMILIES
    before = [dict(table) for table in tables]
    yield
    for table, known in zip(tables, before, strict=True):
        table.clear()
        table.update(known)


def beginnings(text):
    """The first words of each printed block, whatever the numbers."""
    printed = re.findall(r"<!-- printed -->\n```text\n(.*?)^```$", text, re.M | re.S)
    return [re.sub(r"\d+", "0", block).split()[:4] for block in printed]


def shares(text):
    """The shares in each printed block: precision, recall, F1."""
    printed = re.findall(r"<!-- printed -->\n```text\n(.*?)^```$", text, re.M | re.S)
    return [[float(one) for one in re.findall(r"\b[01]\.\d{3}\b", block)] for block in printed]


def check(page, folder):
    """Run a page."""
    shown = page.read_text(encoding="utf-8")
    printed, figures = pictures.run(page, folder)
    assert beginnings(printed) == beginnings(shown)
    for now, then in zip(shares(printed), shares(shown), strict=True):
        assert now == pytest.approx(then, abs=0.1), (
            "what the page says is out of date: docs/gallery/pictures.py"
        )
    assert set(figures) <= set(IMAGE.findall(shown)), "a picture that is drawn is shown"
    for name in IMAGE.findall(shown):
        assert (ROOT / "docs" / "gallery" / "images" / f"{name}.png").is_file(), name


@pytest.mark.parametrize("page", RECIPES, ids=lambda page: page.stem)
def test_the_recipe_runs(page, tmp_path):
    check(page, tmp_path)


def test_every_recipe_ends_with_a_picture():
    for page in RECIPES:
        if page.stem != "index":
            assert pictures.PICTURE.search(page.read_text(encoding="utf-8")), page.name
