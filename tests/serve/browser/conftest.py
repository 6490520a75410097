"""One browser and one service for all tests of the page; a page of its own for each."""

import os
import shutil
from urllib.parse import urlsplit

import pytest

pytest.importorskip("fastapi", reason="the service needs the extra 'serve'")
pytest.importorskip("playwright.sync_api", reason="the page's tests need Playwright")

from playwright.sync_api import Error, sync_playwright

from tests.serve.browser.serving import WINDOWS, build, copied, doubtful, served

QUIET = (
    "--no-sandbox --disable-gpu --disable-background-networking --disable-component-update --disable-sync "
    "--no-first-run"
)
PATIENCE = 20_000  # milliseconds


@pytest.fixture(scope="module")  # as nothing else can use asyncio while Playwright does
def browser():
    """Chromium: that of the system, or Playwright's own; without either the tests skip."""
    found = (
        os.environ.get("PARTITA_TEST_BROWSER") or shutil.which("chromium") or shutil.which("google-chrome")
    )
    with sync_playwright() as playwright:
        try:
            chromium = playwright.chromium.launch(executable_path=found, args=QUIET.split())
        except Error as error:
            pytest.skip(f"there is no browser to test the page in: {error.message.splitlines()[0]}")
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def doubts(tmp_path_factory):
    """A knowledge base of people with many doubts; copy it before you change it."""
    return build(tmp_path_factory.mktemp("doubts") / "people.db", doubtful(30))


@pytest.fixture(scope="session")
def shared(doubts, tmp_path_factory):
    """A service that many tests read from, and none changes."""
    with served(copied(doubts, tmp_path_factory.mktemp("shared") / "kb.db")) as service:
        yield service


@pytest.fixture
def own(doubts, tmp_path):
    """A service of a copy that a test may change; the copy is ``own.path``."""
    with served(copied(doubts, tmp_path / "kb.db")) as service:
        service.path = tmp_path / "kb.db"
        yield service


class Watched:
    """A page, and what it has done that no page may do."""

    def __init__(self, context):
        self.page = context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.errors, self.foreign, self.allowed = [], [], ()
        self.page.on(
            "console", lambda message: message.type in ("error", "warning") and self.note(message.text)
        )
        self.page.on("pageerror", lambda error: self.note(str(error)))
        self.page.on("request", lambda request: self.look(request.url))

    def note(self, text):
        if not any(words in text for words in self.allowed):
            self.errors.append(text)

    def look(self, url):
        host = urlsplit(url)
        if host.scheme not in ("data", "blob", "about") and host.hostname != "127.0.0.1":
            self.foreign.append(url)


@pytest.fixture
def visit(browser):
    """Opens pages in windows of their own, and sees that none says an error or asks another host."""
    opened = []

    def open_page(url, *, width=1280, height=860, scheme="light", allowed=(), **settings):
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, **settings
        )
        watched = Watched(context)
        watched.allowed = allowed
        where = urlsplit(url)
        beside = WINDOWS[f"{where.scheme}://{where.netloc}"]
        beside.append(context)
        opened.append((context, watched, beside))
        watched.page.goto(url)
        return watched.page

    yield open_page
    for context, watched, beside in opened:
        context.close()
        beside.remove(context)  # or its service would close it again, when the browser may have gone
        assert not watched.errors
        assert not watched.foreign
