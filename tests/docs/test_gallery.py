"""The pages of the gallery run as they stand and draw what they show; each picture is shown."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

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


def test_a_picture_that_would_be_too_large_has_fewer_dots(tmp_path, monkeypatch):
    monkeypatch.setattr(pictures, "IMAGES", tmp_path)
    for name, size in {"plain": 2, "noise": 200}.items():
        ax = Figure(figsize=(3.0, 3.0)).subplots()
        ax.imshow(np.random.default_rng(0).random((size, size)), cmap="Blues")
        pictures.save(ax.figure, name)
    width = {}
    for name in ("plain", "noise"):
        with Image.open(tmp_path / f"{name}.png") as picture:
            width[name] = picture.width
    assert width["noise"] < width["plain"]
    assert (tmp_path / "noise.png").stat().st_size < pictures.LARGEST
