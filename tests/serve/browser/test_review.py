"""Questions answered by keyboard alone: the same answers on the command line come to the same state."""

import random

from typer.testing import CliRunner

from partita.cli import app
from tests.helpers.effort import effort
from tests.serve.browser.serving import build, copied, doubtful, served, state_of

ON_THE_COMMAND_LINE = {"y": "y", "n": "n", "d": "u", "s": "s", "u": "b"}


def settled(page):
    """Wait until an answer is in; the question that stands there then."""
    page.wait_for_selector(".review[aria-busy=false]")
    found = page.locator("article.question")
    return (found.get_attribute("data-first"), found.get_attribute("data-second")) if found.count() else None


def press(page, key):
    """Press a key and wait for what comes of it; the question then."""
    turns = int(page.locator(".review").get_attribute("data-turns"))
    page.keyboard.press(key)
    then = max(turns - 1, 0) if key in "ubz" else turns + 1
    page.wait_for_selector(f'.review[aria-busy=false][data-turns="{then}"]')
    return settled(page)


def test_answers_by_keyboard_are_those_of_the_command_line(visit, tmp_path):
    number = effort(25, 200)
    whole = build(tmp_path / "whole.db", doubtful(effort(30, 260)))
    page_kb, line_kb = (copied(whole, tmp_path / name) for name in ("page.db", "line.db"))
    rng, keys = random.Random(0), []
    with served(page_kb) as service:
        page = visit(f"{service.url}/#/review")
        question = settled(page)
        answered = 0
        while answered < number:
            assert question is not None, f"no questions are left after {answered}"
            before = question
            key = rng.choice("yynnnds")
            keys.append(key)
            question = press(page, key)
            answered += 1
            if rng.random() < 0.15:
                keys.append("u")
                assert press(page, "u") == before  # it is asked again
                question, answered = before, answered - 1
        keys.append("z")
        question = press(page, "z")
        assert question == before
    lines = "".join(f"{ON_THE_COMMAND_LINE.get(key, 'b')}\n" for key in keys) + "q\n"
    result = CliRunner().invoke(app, ["uncertain", str(line_kb), "--ask", "--limit", "1000"], input=lines)
    assert result.exit_code == 0, result.output
    assert state_of(page_kb) == state_of(line_kb)


def test_what_an_answer_changes_is_said_and_whose_it_is(visit, own):
    page = visit(f"{own.url}/#/review")
    settled(page)
    page.get_by_role("button", name="Your name").click()
    page.keyboard.type("grace")
    page.keyboard.press("Enter")
    press(page, "n")
    said = page.locator(".changed")
    assert "by grace" in said.inner_text()
    assert "are different" in said.inner_text()
    assert "Wrong pairs that are expected" in said.inner_text()
    assert state_of(own.path)[1][-1][0] == "separate"
    assert page.evaluate("localStorage.length") == 0
    page.reload()
    assert page.get_by_role("button", name="grace").is_visible()  # for as long as the tab is open


def test_blind_hides_every_score(visit, shared):
    page = visit(f"{shared.url}/#/review")
    settled(page)
    assert "%" in page.locator("main").inner_text()
    page.keyboard.press("x")
    page.wait_for_selector("text=Scores are hidden")
    shown = page.locator("main").inner_text()
    assert "%" not in shown
    assert "wrong pairs" not in shown.lower()
    assert not page.locator(".question a").count()  # which would lead to them


def test_blind_does_not_tell_what_an_answer_has_changed(visit, own):
    """Which would say whether the two were thought to be the same."""
    page = visit(f"{own.url}/#/review")
    settled(page)
    page.keyboard.press("x")
    page.wait_for_selector("text=Scores are hidden")
    press(page, "n")
    said = page.locator(".changed")
    assert "are different" in said.inner_text()
    assert not said.locator("li").count()
    page.keyboard.press("x")
    page.wait_for_selector(".changed li")


def test_keys_pressed_while_one_waits_are_no_answers(visit, own):
    page = visit(f"{own.url}/#/review")
    settled(page)
    for _ in range(5):
        page.keyboard.press("n")
    page.wait_for_selector('.review[aria-busy=false][data-turns="1"]')
    assert len(state_of(own.path)[1]) == 1
