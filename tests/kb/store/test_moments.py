"""What is read together sees one moment."""

import threading

import partita.kb
from tests.helpers.people import fragments

ROWS, _ = fragments(30)


def test_all_within_one_moment_see_it(url):
    with partita.kb.open(url) as kb, partita.kb.open(url) as other:
        kb.add(ROWS[:20])
        with kb.store.one_moment():
            before = kb.stats()["fragments"]
            other.add(ROWS[20:])
            assert kb.stats()["fragments"] == before == 20
            with kb.store.one_moment():
                assert kb.stats()["fragments"] == before
            assert kb.stats()["fragments"] == before
            assert sum(len(entity.fragments) for entity in kb.entities()) == before
        assert kb.stats()["fragments"] == 30


def test_a_change_ends_the_moment(url):
    with partita.kb.open(url) as kb:
        kb.add(ROWS[:20])
        with kb.store.one_moment():
            assert kb.stats()["fragments"] == 20
            kb.add(ROWS[20:])
            assert kb.stats()["fragments"] == 30
            assert kb.events()[-1].number == kb.stats()["events"]


def test_a_moment_is_that_of_its_thread(url):
    with partita.kb.open(url) as kb:
        kb.add(ROWS[:20])
        seen = []
        with kb.store.one_moment():
            kb.stats()
            with partita.kb.open(url) as other:
                other.add(ROWS[20:])
            thread = threading.Thread(target=lambda: seen.append(kb.stats()["fragments"]))
            thread.start()
            thread.join()
            assert seen == [30]
            assert kb.stats()["fragments"] == 20
