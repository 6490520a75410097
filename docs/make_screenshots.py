"""Take the pictures of explorer.md: ``python docs/make_screenshots.py``, with Playwright and a Chromium.

The knowledge base is that of ``partita demo``, made anew; so they show what anyone sees who tries it.
"""

from __future__ import annotations

import io
import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from PIL import Image
from playwright.sync_api import Page, sync_playwright

import partita.kb
from partita.demo.entities import fragments, ingest
from partita.serve.app import create_app

IMAGES = Path(__file__).parent / "images"
SIZE = {"width": 1180, "height": 830}
COLOURS = 128  # of a picture: text and bars need no more, and the file is a third as large


@contextmanager
def served(path: Path) -> Iterator[str]:
    """The demonstration's knowledge base as a service; yields where it is."""
    app = create_app(path)
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    app.state.desk.stop()
    server.should_exit = True
    thread.join()


def demonstration(path: Path) -> tuple[str, str, str]:
    """Build it; the two fragments that are most worth asking about, and their entity."""
    rows, truth = fragments()
    with partita.kb.open(path) as kb:
        ingest(kb, rows, truth, lambda done: None)
        [question] = kb.uncertain(1)
        return question.first, question.second, question.first_entity


def shown(page: Page, url: str, ready: str) -> Page:
    """A view, when all of it is there."""
    page.goto(url)
    page.wait_for_selector(ready)
    page.wait_for_function("!document.querySelector('.loading')")
    page.wait_for_timeout(300)
    return page


def keep(page: Page, name: str, height: int | None = None) -> None:
    """A picture of what is shown, of a few colours."""
    if height is not None:
        page.set_viewport_size({"width": SIZE["width"], "height": height})
        page.wait_for_timeout(300)
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    made = picture.quantize(COLOURS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    path = IMAGES / f"explorer-{name}.png"
    made.save(path, optimize=True)
    print(f"{path.name}: {path.stat().st_size // 1000} kB")


def review(page: Page, url: str) -> None:
    """A question, after a few were answered."""
    shown(page, f"{url}/#/review", "article.question")
    for turn, key in enumerate("nn", 1):
        page.keyboard.press(key)
        page.wait_for_selector(f'.review[aria-busy=false][data-turns="{turn}"]')
    keep(page, "review", 760)


def main() -> None:
    """Build, serve, look."""
    found = os.environ.get("PARTITA_TEST_BROWSER") or shutil.which("chromium")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "partita-demo.db"
        first, second, entity = demonstration(path)
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        settings: dict[str, Any] = {"viewport": SIZE, "reduced_motion": "reduce"}
        with served(path) as url:
            light = browser.new_page(**settings, color_scheme="light")
            keep(shown(light, f"{url}/#/?sort=sure", ".entities tbody tr"), "entities", 560)
            keep(shown(light, f"{url}/#/entity/{entity}", ".alternatives li"), "entity", 1010)
            dark = browser.new_page(**settings, color_scheme="dark")
            keep(shown(dark, f"{url}/#/why/{first}/{second}", ".waterfall tfoot"), "why", 900)
            review(light, url)
            light.close()
            dark.close()
        browser.close()


if __name__ == "__main__":
    main()
