"""Every view: readable by everyone, at any width, without an error or a foreign request."""

import re
from pathlib import Path
from urllib.parse import quote
from urllib.request import urlopen

import pytest

import partita.serve
from tests.serve.browser.serving import EVIL, build, hostile, loaded, served

PAGE = Path(partita.serve.__file__).parent / "page"
AXE = Path(__file__).parent / "vendor" / "axe.min.js"
VIEWS = ["entities", "entity", "fragment", "why", "review", "events", "honesty"]
WIDTHS = [360, 768, 1280, 2560]


def address(service, view):
    """Where a view is, and what is there when it is."""
    kb = service.desk.kb
    [question] = kb.uncertain(1)
    return {
        "entities": ("#/", ".entities tbody tr"),
        "entity": (f"#/entity/{question.first_entity}", ".rows tbody tr, .alternatives li"),
        "fragment": (f"#/fragment/{question.first}", ".said tr"),
        "why": (f"#/why/{question.first}/{question.second}", ".waterfall tfoot"),
        "review": ("#/review", "article.question"),
        "events": ("#/events", ".event"),
        "honesty": ("#/honesty", ".sureness tbody tr"),
    }[view]


@pytest.mark.parametrize("view", VIEWS)
def test_everyone_can_read_it(visit, shared, view):
    where, ready = address(shared, view)
    page = visit(f"{shared.url}/{where}", reduced_motion="reduce", bypass_csp=True)
    page.wait_for_selector(ready)
    loaded(page)
    page.evaluate(AXE.read_text(encoding="utf-8"))
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert not violations(page), scheme
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width, width
    page.set_viewport_size({"width": WIDTHS[0], "height": 800})
    assert not violations(page), "narrow"


def test_dialogs_can_be_read_by_everyone(visit, shared):
    where, ready = address(shared, "entity")
    page = visit(f"{shared.url}/{where}", width=360, reduced_motion="reduce", bypass_csp=True)
    page.wait_for_selector(ready)
    loaded(page)
    page.evaluate(AXE.read_text(encoding="utf-8"))
    for opened in ("Keyboard help", "Your name", "Join or keep apart"):
        button = page.get_by_role("button", name=opened)
        button.click()
        page.wait_for_selector("dialog[open]")
        assert not violations(page), opened
        page.keyboard.press("Escape")
        page.wait_for_selector("dialog", state="detached")
        assert button.evaluate("button => button === document.activeElement")  # where one was


def test_all_modules_are_fetched_at_once():
    with (PAGE / "index.html").open(encoding="utf-8") as file:
        named = set(re.findall(r'(?:href|src)="([^"]+\.m?js)"', file.read()))
    there = {str(path.relative_to(PAGE)) for path in [*PAGE.glob("*.js"), *PAGE.glob("vendor/*.mjs")]}
    assert named == there
    assert all(len(path.read_text(encoding="utf-8").splitlines()) < 300 for path in PAGE.glob("*.js"))


def test_a_page_is_never_of_two_versions(shared):
    with urlopen(f"{shared.url}/app.js") as answer:
        assert answer.headers["Cache-Control"] == "no-cache"


def violations(page):
    """What axe-core finds serious or critical."""
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    return [
        (one["id"], node["target"], node["failureSummary"])
        for one in found
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]


def test_values_stay_text(visit, tmp_path):
    path = build(tmp_path / "hostile.db", hostile())
    with served(path) as service:
        kb = service.desk.kb
        entity, fragments = next(kb.entities()), [id for one in kb.entities() for id in one.fragments]
        page = visit(f"{service.url}/#/")
        page.wait_for_selector(".entities tbody tr")
        assert EVIL in page.locator(".entities").inner_text()
        for where in (
            entity_link(entity.id),
            fragment_link(fragments[0]),
            why_link(fragments[0], fragments[1]),
            "#/review",
            "#/events",
        ):
            page.goto(f"{service.url}/{where}")
            loaded(page)
            assert page.locator(".failed").count() == 0, page.locator(".failed").first.inner_text()
            assert "<script>" in page.locator("main").inner_text()
        page.goto(f"{service.url}/#/?query=smith%3Cscript%3E")
        page.wait_for_timeout(300)
        assert page.evaluate("window.hacked") is None
        assert page.locator("main script, main img").count() == 0


def encoded(id):
    """An id as a part of an address."""
    return quote(id, safe="")


def entity_link(id):
    return f"#/entity/{encoded(id)}"


def fragment_link(id):
    return f"#/fragment/{encoded(id)}"


def why_link(one, other):
    return f"#/why/{encoded(one)}/{encoded(other)}"
