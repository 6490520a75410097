"""What the views do: the list, an entity and its mending, why, the live feed, tokens, the keyboard."""

import json
import subprocess
import sys

from typer.testing import CliRunner

import partita.kb
from partita.cli import app
from partita.serve.security import Token
from partita.terminal.text import event_in_words
from tests.serve.browser.serving import copied, loaded, served, state_of, until

SECRET = "a-secret-of-the-tests"


def explained(path, *ids):
    """What the command line says."""
    result = CliRunner().invoke(app, ["explain", str(path), *ids, "--json"])
    return json.loads(result.stdout)


# ---------------------------------------------------------------------- the list


def test_search_as_one_types_and_calls_off_what_is_stale(visit, shared):
    entity = next(one for one in shared.desk.kb.entities() if one.name)
    page = visit(f"{shared.url}/#/")
    page.wait_for_selector(".entities tbody tr")
    asked = []
    page.on("request", lambda request: "query=" in request.url and asked.append(request.url))
    page.keyboard.press("/")
    page.keyboard.type(entity.name, delay=15)
    until(page, "document.querySelector('.list-head').innerText.includes('found')")
    assert entity.name in page.locator(".entities tbody").inner_text()
    assert len(asked) < len(entity.name)  # not one for each key
    assert "query=" in page.url
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_selector(".entity h1")


def test_sort_filter_and_size(visit, shared):
    page = visit(f"{shared.url}/#/")
    page.wait_for_selector(".entities tbody tr")
    page.get_by_label("Sort").select_option("sure")
    until(page, "location.hash.includes('sort=sure')")
    least = min(shared.desk.kb.entities(sort="sure", limit=1), key=lambda one: one.probability)
    until(page, f"document.querySelector('.entities tbody tr').innerText.includes('{least.id}')")
    page.get_by_label("At least so many fragments").fill("4")
    n = len(list(shared.desk.kb.entities(minimum=4)))
    until(page, f"document.querySelector('.list-head').innerText.startsWith('{n} ')")
    page.get_by_role("button", name="+ filter").click()
    [value] = next(iter(shared.desk.kb.fragment(least.fragments[0]).properties.values()))[:1]
    name = next(iter(shared.desk.kb.fragment(least.fragments[0]).properties))
    page.get_by_label("Attribute").select_option(name)
    page.get_by_label("Value").fill(str(value))
    page.keyboard.press("Enter")
    page.wait_for_selector(".chip")
    until(page, "location.hash.includes('where=')")


# ---------------------------------------------------------------------- an entity


def test_an_entity_is_split_undone_and_looked_at_as_it_was(visit, own):
    entity = next(own.desk.kb.entities(limit=1))
    page = visit(f"{own.url}/#/entity/{entity.id}")
    page.wait_for_selector(".rows tbody tr")
    before = state_of(own.path)[0]
    page.get_by_label(f"Choose {entity.fragments[0]}", exact=True).check()
    page.get_by_role("button", name="Split off").click()
    page.wait_for_selector(".news-card")
    assert "is several things" in page.locator(".news-card").inner_text()
    with partita.kb.open(own.path, create=False) as kb:
        assert kb.entity_of(entity.fragments[0]).fragments != entity.fragments
    page.locator(".news-card").get_by_role("button", name="Undo").click()
    page.wait_for_selector("text=is undone")
    assert state_of(own.path)[0] == before
    page.locator(".slider input").focus()
    page.keyboard.press("Home")
    page.wait_for_selector("text=As it was after event")
    then = own.desk.kb.entity(entity.id, as_of=own.desk.kb.events(entity=entity.id)[0].number)
    until(page, f"document.querySelectorAll('.ids')[0]?.children.length === {len(then.fragments)}")


def test_two_entities_are_joined_from_the_page(visit, own):
    one, other = list(own.desk.kb.entities(limit=2))
    page = visit(f"{own.url}/#/entity/{one.id}")
    loaded(page)
    page.get_by_role("button", name="Join or keep apart").click()
    page.get_by_label("Which other entity?").fill(other.id)
    found = page.locator(".others li", has=page.locator(f".id:text-is('{other.id}')"))
    found.get_by_role("button", name="The same").click()
    page.wait_for_selector(".news-card")
    entities, judgements = state_of(own.path)
    assert judgements == [("confirm", one.id, other.id, True)]
    both = {*one.fragments, *other.fragments}
    assert any(both <= fragments for _, fragments, _ in entities.values())


def test_alternatives_and_the_matrix_are_those_of_the_library(visit, shared):
    entity = shared.desk.kb.uncertain(1)[0].first_entity
    page = visit(f"{shared.url}/#/entity/{entity}")
    page.wait_for_selector(".alternatives li")
    assert page.locator(".alternatives li").count() > 1
    page.wait_for_selector(".matrix canvas")
    page.locator(".alternatives li").get_by_role("button", name="Choose").first.click()
    chosen = page.locator(".rows tr.chosen").count()
    assert f"{chosen} of" in page.locator(".mend").inner_text()
    row = page.locator(".doubtful tbody tr").first
    one, other, p = (text.strip() for text in row.locator("td").all_inner_texts()[:3])
    assert abs(shared.desk.kb.together(one, other) - float(p.strip().rstrip(" %")) / 100) < 0.006


def test_an_entity_is_exported(visit, shared):
    entity = next(shared.desk.kb.entities(limit=1))
    page = visit(f"{shared.url}/#/entity/{entity.id}")
    loaded(page)
    page.locator(".actions summary").click()
    with page.expect_download() as found:
        page.get_by_role("button", name="The entity, JSON").click()
    [line] = found.value.path().read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["fragments"] == entity.fragments


# ---------------------------------------------------------------------- why


def test_the_waterfall_sums_to_what_the_command_line_prints(visit, doubts, shared, tmp_path):
    path = copied(doubts, tmp_path / "copy.db")
    [question] = shared.desk.kb.uncertain(1)
    found = explained(path, question.first, question.second)
    page = visit(f"{shared.url}/#/why/{question.first}/{question.second}")
    page.wait_for_selector(".waterfall tfoot")
    nats = [float(one.get_attribute("data-nats")) for one in page.locator(".waterfall [data-nats]").all()]
    names = page.locator(".waterfall tbody th").all_inner_texts()
    assert names == [step["attribute"] for step in found["steps"]]
    assert nats == [step["nats"] for step in found["steps"]]
    assert abs(sum(nats) - found["log_odds"]) < 1e-9
    total = float(page.locator("[data-log-odds]").get_attribute("data-log-odds"))
    assert total == found["log_odds"]
    written = page.locator("[data-log-odds]").inner_text()
    assert written == f"{found['log_odds']:+.2f}".replace("-", "−")


def test_events_are_told_in_the_words_of_the_command_line(visit, own):
    kb = own.desk.kb
    first, second = (one.id for one in kb.entities(limit=2))
    for judge in (kb.confirm, kb.unsure):
        judge(first, second)
        kb.undo()
    kb.split(first, kb.entity(first).fragments[:1])
    events = kb.events()
    page = visit(f"{own.url}/#/honesty")
    said = page.evaluate(
        "events => import('./words.js').then(w => events.map(e => w.inWords(w.eventPieces(e))))",
        [event.as_dict() for event in events],
    )
    expected = [event_in_words(event) for event in events if event.kind != "renamed"]
    assert [text for text, event in zip(said, events, strict=True) if event.kind != "renamed"] == expected


def test_differences_are_marked_in_words_and_characters(visit, shared):
    page = visit(f"{shared.url}/#/honesty")
    cases = [
        ("Ada Banerjee", "Ada Banerje", [["Ada Banerje", False], ["e", True]]),
        ("George Walker Bush", "George Bush", [["George ", False], ["Walker", True], [" Bush", False]]),
        ("LYON", "Lyon", [["LYON", False]]),
        ("José", "Jose", [["José", False]]),
        ("1861-11-05", "1861-11-06", [["1861-11-", False], ["05", True]]),
        ("", "x", [["", False]]),
    ]
    for one, other, expected in cases:
        call = "([a, b]) => import('./differ.js').then(d => d.compared(a ? [a] : [''], [b])[0])"
        found = page.evaluate(call, [one, other])
        assert [piece for piece in found if piece[0]] == [piece for piece in expected if piece[0]]


# ---------------------------------------------------------------------- live, tokens, keys


def test_the_feed_shows_what_another_process_does(visit, own):
    page = visit(f"{own.url}/#/events")
    page.wait_for_selector(".live.on")
    code = (
        "import sys, partita.kb\n"
        "with partita.kb.open(sys.argv[1], create=False) as kb:\n"
        "    kb.add([{'id': 'from-elsewhere', 'properties': {'first': 'Zebedee', 'last': 'Quartermain'}}])\n"
    )
    subprocess.run([sys.executable, "-c", code, str(own.path)], check=True)
    page.wait_for_selector(".event.fresh >> text=from-elsewhere")


def test_the_feed_goes_on_where_it_was_cut_off(visit, own):
    page = visit(f"{own.url}/#/events", allowed=["ERR_"])
    page.wait_for_selector(".live.on")
    seen = page.locator(".event").count()
    page.evaluate(
        """() => {  // what a browser does to a tab that is out of sight
            Object.defineProperty(document, 'hidden', {value: true, configurable: true});
            document.dispatchEvent(new Event('visibilitychange'));
        }"""
    )
    page.wait_for_selector(".live.off")
    first, second = (one.id for one in own.desk.kb.entities(limit=2))
    own.desk.kb.unsure(first, second)
    own.desk.kb.undo()
    assert page.locator(".event").count() == seen
    page.evaluate(
        """() => {
            Object.defineProperty(document, 'hidden', {value: false, configurable: true});
            document.dispatchEvent(new Event('visibilitychange'));
        }"""
    )
    until(page, f"document.querySelectorAll('.event').length === {seen + 2}")


def test_messages_are_read_however_they_are_cut(visit, shared):
    page = visit(f"{shared.url}/#/honesty")
    stream = "retry: 1000\n: hello\n\nid: 7\r\ndata: {}\r\n\r\n: still here\n\nid: 8\ndata: a\ndata: b\n\nid: 9\ndata:"
    read = """([text, size]) => import('./live.js').then(live => {
        const found = [], take = live.parser((id, data) => found.push([id, data]));
        for (let k = 0; k < text.length; k += size) take(text.slice(k, k + size));
        return found;
    })"""
    for size in (1, 2, 3, 7, 1000):
        assert page.evaluate(read, [stream, size]) == [["7", "{}"], ["8", "a\nb"]], size


def test_with_a_token(visit, doubts, tmp_path):
    path = copied(doubts, tmp_path / "kb.db")
    with served(path, tokens=[Token(SECRET.encode(), frozenset({"read", "judge"}), "ada")]) as service:
        page = visit(f"{service.url}/#/", allowed=["401"])
        page.get_by_label("This service was started with a token file").fill(SECRET)
        page.keyboard.press("Enter")
        page.wait_for_selector(".entities tbody tr")
        page.goto(f"{service.url}/#/events")
        page.wait_for_selector(".live.on")
        assert page.evaluate("[localStorage.length, sessionStorage.length, document.cookie]") == [0, 0, ""]

        other = visit(f"{service.url}/#token={SECRET}")
        other.wait_for_selector(".entities tbody tr")
        assert SECRET not in other.url
        assert SECRET not in other.content()


def test_keys_and_focus(visit, shared):
    page = visit(f"{shared.url}/#/")
    page.wait_for_selector(".entities tbody tr")
    page.keyboard.press("?")
    page.wait_for_selector("dialog[open]")
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog", state="detached")
    page.keyboard.press("g")
    page.keyboard.press("h")
    page.wait_for_selector("text=How honest it is")
    until(page, "document.activeElement.id === 'main'")  # once it is drawn
    assert page.evaluate("document.title").startswith("Honesty")
    page.keyboard.press("g")
    page.keyboard.press("e")
    page.wait_for_selector(".entities tbody tr")
    page.keyboard.press("j")
    page.keyboard.press("j")
    second = page.locator(".entities .entity-link").nth(1)
    assert second.evaluate("link => link === document.activeElement")
    page.keyboard.press("Enter")
    page.wait_for_selector(".entity h1")
    page.go_back()
    page.wait_for_selector(".entities tbody tr.here")


# ---------------------------------------------------------------------- where things stand


def test_bars_of_risk_end_before_their_numbers(visit, shared):
    page = visit(f"{shared.url}/#/honesty")
    page.wait_for_selector(".risk tbody tr:nth-child(3)")
    ends = page.evaluate(
        """[...document.querySelectorAll('.risk tbody tr')].map(row => [
            row.querySelector('.risk-bar .bar-full').getBoundingClientRect().right,
            row.querySelector('td:last-child .number').getBoundingClientRect().left])"""
    )
    assert all(bar < number for bar, number in ends)


def test_on_a_narrow_page_what_each_of_two_says_keeps_its_side(visit, shared):
    [question] = shared.desk.kb.uncertain(1)
    page = visit(f"{shared.url}/#/why/{question.first}/{question.second}", width=360)
    page.wait_for_selector(".waterfall tfoot")
    page.evaluate(  # of the last step the first one says nothing
        """() => { const row = [...document.querySelectorAll('.waterfall tbody tr')].at(-1);
            row.children[1].replaceChildren(); row.children[2].textContent = 'said by the second'; }"""
    )
    sides = page.evaluate(
        """[...document.querySelectorAll('.waterfall tbody td.said-by:nth-child(3)')]
            .filter(one => one.offsetParent && one.textContent).map(one => one.getBoundingClientRect().left)"""
    )
    assert sides
    assert min(sides) > 150


def test_typing_replaces_the_suggested_entity(visit, shared):
    entity = next(one for one in shared.desk.kb.entities() if one.name)
    page = visit(f"{shared.url}/#/entity/{entity.id}")
    loaded(page)
    page.get_by_role("button", name="Join or keep apart").click()
    page.keyboard.type("E2")
    assert page.get_by_label("Which other entity?").input_value() == "E2"


def test_the_slider_stands_where_a_change_was_complete(visit, own):
    """Several fragments that moved at once: between their events there was nothing to look at."""
    kb = own.desk.kb
    entity = max(kb.entities(), key=lambda one: len(one.fragments))
    kb.split(entity.id, entity.fragments[:2])
    kb.undo()
    page = visit(f"{own.url}/#/entity/{entity.id}")
    loaded(page)
    slider = page.locator(".slider input")
    slider.focus()
    steps = int(slider.get_attribute("max"))
    assert 0 < steps < len(kb.events(entity=entity.id)) - 1
    for _ in range(min(steps, 4)):
        page.keyboard.press("ArrowLeft")
        page.wait_for_selector("text=As it was after event")
        moment = int(page.locator(".slider-said .number").inner_text().replace(",", ""))
        until(page, f"document.querySelector('.note.then').innerText.includes('event {moment:,}.')")
        then = len(kb.entity(entity.id, as_of=moment).fragments)
        until(page, f"document.querySelector('.entity-head .under').innerText.startsWith('{then} fragment')")
        assert f"— {then} fragment" in page.locator(".slider-said").inner_text()


def test_keys_reach_fragments_and_every_line_is_explained(visit, shared):
    """Without the links and buttons before them; and whoever has never heard of a prior finds what it is."""
    entity = max(shared.desk.kb.entities(), key=lambda one: len(one.fragments))
    page = visit(f"{shared.url}/#/entity/{entity.id}")
    page.wait_for_selector(".rows tbody tr")
    for key, chosen in (("j", 1), ("j", 2), ("k", 1), ("k", 2)):
        page.keyboard.press(key)
        page.keyboard.press("Space")
        page.wait_for_function(f"document.querySelectorAll('.rows tr.chosen').length === {chosen}")
    page.wait_for_timeout(100)
    page.keyboard.press("w")
    page.wait_for_selector(".waterfall tfoot")
    assert not page.locator("details.meanings dd").first.is_visible()
    page.locator("details.meanings summary").click()
    said = page.locator("details.meanings").inner_text()
    for line in ("prior", "attributes mentioned", "other clusterings", "log-odds"):
        assert line in said
