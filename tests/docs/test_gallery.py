"""The pages of the gallery run as they stand and draw what they show; each picture is shown."""

import pytest

from tests.docs.test_recipes import IMAGE, check, pictures
from tests.helpers.files import ROOT

GALLERY = ROOT / "docs" / "gallery"


@pytest.mark.parametrize("page", sorted(GALLERY.glob("*.md")), ids=lambda page: page.stem)
def test_the_page_runs(page, tmp_path):
    check(page, tmp_path)


def test_pictures_are_small_and_shown():
    there = {file.stem: file.stat().st_size for file in (GALLERY / "images").glob("*.png")}
    assert all(size < pictures.LARGEST for size in there.values())
    shown = {name for page in pictures.pages() for name in IMAGE.findall(page.read_text(encoding="utf-8"))}
    assert set(there) == shown
